//! `fencepost completion`: scripts for shells.

use crate::cli::Cli;
use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use clap::{Args, CommandFactory, ValueEnum};

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  source <(fencepost completion bash)
  fencepost completion zsh > \"${fpath[1]}/_fencepost\"
  fencepost completion fish | source")]
pub(crate) struct Completion {
    /// Which shell
    shell: Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Prints it.
pub(super) fn run(cx: &Cx, args: Completion) -> Outcome {
    use clap_complete::{generate, shells};
    let mut command = Cli::command();
    let mut script = Vec::new();
    match args.shell {
        Shell::Bash => generate(shells::Bash, &mut command, "fencepost", &mut script),
        Shell::Zsh => generate(shells::Zsh, &mut command, "fencepost", &mut script),
        Shell::Fish => generate(shells::Fish, &mut command, "fencepost", &mut script),
    }
    cx.out.print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
