//! Runs the binary in a clean environment.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// One call of the binary, to be run.
pub(crate) struct Call {
    command: Command,
    home: tempfile::TempDir,
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Call {
    /// With these arguments, split at spaces, in an empty home.
    pub(crate) fn new(line: &str) -> Self {
        Self::of(&line.split_whitespace().collect::<Vec<_>>())
    }

    pub(crate) fn of(arguments: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
        command.args(arguments).env_clear().env("FENCEPOST_HOME", home.path());
        command.stdin(Stdio::null()).current_dir(home.path());
        Self { command, home }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// A file in the home.
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        std::fs::write(self.home.path().join(name), text).unwrap();
        self
    }

    pub(crate) fn spawn(mut self) -> (Child, tempfile::TempDir) {
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        (self.command.spawn().unwrap(), self.home)
    }

    pub(crate) fn run(self) -> Ran {
        self.run_and_keep().0
    }

    /// With the home, as the process left it.
    pub(crate) fn run_and_keep(mut self) -> (Ran, tempfile::TempDir) {
        (Ran::from(self.command.output().unwrap()), self.home)
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Runs the arguments against that server.
pub(crate) fn fencepost(server: &crate::server::Server, line: &str) -> Ran {
    Call::new(line).env("FENCEPOST_SERVER", &server.address).run()
}
