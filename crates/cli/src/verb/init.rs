//! `fencepost init`: an example project to start from. Never writes over a file.

use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Write an example project
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fencepost init hello && cd hello && fencepost validate dags/")]
pub(crate) struct Init {
    /// Where
    #[arg(default_value = ".")]
    dir: PathBuf,
}

const HELLO: &str = r#"# Three lines are a DAG; each key below is worth its line.
# Completion in editors:  fencepost schema dag > dags/fencepost.schema.json
description: Says hello, then counts the letters.
schedule: null                 # only when triggered; try "@daily"

tasks:
  hello:
    run: |
      echo "hello on {{ ds }}"
      echo "word=hello" >> "$FENCEPOST_OUTPUT_FILE"
  count:
    depends_on: [hello]
    retries: 2
    retry_delay: 10s
    run: |
      word="$FENCEPOST_INPUT_HELLO_WORD"
      echo "$word has ${#word} letters"
"#;
const SETTINGS: &str = r#"# Every key with its value and origin:  fencepost config list --config fencepost.toml
# Paths are relative to this file.
[dags]
path = "dags"

[worker]
slots = 4
"#;
const IGNORED: &str = ".fencepost/\n";

/// Writes the files and says what to do next.
pub(super) fn run(cx: &Cx, args: Init) -> Outcome {
    let dir = &args.dir;
    let files = [("dags/hello.yaml", HELLO), ("fencepost.toml", SETTINGS), (".gitignore", IGNORED)];
    if cx.global.dry_run {
        for (name, _) in files {
            cx.out.print(&format!("would write {}\n", dir.join(name).display()))?;
        }
        return Ok(Exit::Done);
    }
    let mut written = 0;
    for (name, text) in files {
        let path = dir.join(name);
        if write_new(&path, text)? {
            written += 1;
            cx.out.print(&format!("wrote {}\n", path.display()))?;
        } else {
            cx.out.remark(&format!("kept  {} (it was there)", path.display()));
        }
    }
    if written == 0 {
        return Ok(Exit::Done);
    }
    let to =
        if dir == Path::new(".") { String::new() } else { format!("cd {} && ", dir.display()) };
    cx.out.remark(&format!(
        "\nnext:  {to}fencepost validate dags/\n\
         then:  fencepost standalone --home .fencepost --config fencepost.toml"
    ));
    Ok(Exit::Done)
}

/// Whether the file was made; false: there was one.
fn write_new(path: &Path, text: &str) -> Outcome<bool> {
    let failed = |error: std::io::Error| {
        CliError::new(Exit::Unexpected, format!("cannot write {}: {error}", path.display()))
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    match std::fs::File::create_new(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).map(|()| true).map_err(failed),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(failed(error)),
    }
}
