//! What a verb is given: its flags, the environment, and where to print.

use crate::client::{Client, Server};
use crate::environment::Environment;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::global::Global;
use crate::output::Output;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};

/// The context of one call of the binary.
#[derive(Debug, Clone)]
pub(crate) struct Cx {
    pub(crate) global: Global,
    pub(crate) env: Environment,
    pub(crate) out: Output,
}

impl Cx {
    /// Of these flags in this environment.
    pub(crate) fn new(global: Global, env: Environment) -> Self {
        let out = Output::new(&global, &env);
        Self { global, env, out }
    }

    /// The home of the installation.
    pub(crate) fn home(&self) -> PathBuf {
        self.env.home(self.global.home.as_ref())
    }

    /// A client of the server that flags, environment or home name. From here on Ctrl-C ends the
    /// process with the documented status: a client holds nothing that needs a goodbye.
    pub(crate) fn client(&self) -> Outcome<Client> {
        end_on_interrupt();
        Ok(Client::new(Server::find(&self.global, &self.env)?))
    }

    /// Asks before something that cannot be undone, when a person is there to answer. Without a
    /// terminal the command itself is the answer. The caller has shown what would be done.
    pub(crate) fn confirm(&self, question: &str) -> Outcome<()> {
        let person = self.env.stdin_is_terminal && self.env.stderr_is_terminal;
        if self.global.yes || !person {
            return Ok(());
        }
        let mut err = std::io::stderr().lock();
        write!(err, "{question} [y/N] ")?;
        err.flush()?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(CliError::new(Exit::Interrupted, "nothing was changed")),
        }
    }
}

/// Once a process. Where it cannot be arranged, the signal itself still ends the process.
fn end_on_interrupt() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let always = Arc::new(AtomicBool::new(true));
        let status = i32::from(Exit::Interrupted.code());
        let signal = signal_hook::consts::SIGINT;
        let _ = signal_hook::flag::register_conditional_shutdown(signal, status, always);
    });
}
