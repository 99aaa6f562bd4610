//! A session of PostgreSQL's that holds a lock until it is let go.

use fencepost_testing::cluster::Cluster as Server;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(super) struct Session {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Session {
    /// Begins a transaction and runs a statement in it.
    pub(super) fn holding(server: &Server, statement: &str) -> Self {
        let mut command = Command::new(server.bin().join("psql"));
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
        command.arg(server.url("postgres")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut own = Self { child, input, output };
        own.say(&format!("BEGIN; {statement};"));
        own
    }

    /// Runs a line to its end.
    fn say(&mut self, line: &str) {
        writeln!(self.input, "{line}\n\\echo done").unwrap();
        let mut answer = String::new();
        while answer.trim() != "done" {
            answer.clear();
            assert!(self.output.read_line(&mut answer).unwrap() > 0, "psql ended at `{line}`");
        }
    }

    /// Its locks are free when this returns.
    pub(super) fn let_go(mut self) {
        self.say("ROLLBACK;");
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
