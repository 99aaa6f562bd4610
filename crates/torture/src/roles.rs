//! The processes of an installation, and what a service manager does with them: one that has ended is
//! started again, unless it is to stay down.

use crate::clock::{MS, boot_ns, pause};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Before a process that ended by itself is started again.
const AGAIN_MS: u64 = 500;

/// How a role is started.
#[derive(Debug, Clone)]
pub struct Recipe {
    pub name: String,
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
    /// Where its output goes.
    pub log: PathBuf,
}

struct Role {
    recipe: Recipe,
    child: Option<Child>,
    /// Not before this; `None`: it stays down.
    start_at: Option<u64>,
}

/// All roles, and the thread that keeps them.
pub struct Roles {
    all: Arc<Mutex<Vec<Role>>>,
    ends: Arc<AtomicBool>,
    keeper: Option<JoinHandle<()>>,
}

impl Roles {
    /// Starts to keep roles.
    pub fn keep() -> Self {
        let (all, ends) = (Arc::<Mutex<Vec<Role>>>::default(), Arc::<AtomicBool>::default());
        let (mine, told) = (Arc::clone(&all), Arc::clone(&ends));
        let keeper = std::thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                look(&mut lock(&mine));
                pause(50);
            }
        });
        Self { all, ends, keeper: Some(keeper) }
    }

    /// Adds a role, and starts it.
    pub fn add(&self, recipe: Recipe) {
        lock(&self.all).push(Role { recipe, child: None, start_at: Some(0) });
    }

    /// Kills it -9; it is started again after that time.
    pub fn kill(&self, name: &str, down_ms: u64) {
        self.with(name, |role| {
            end(role);
            role.start_at = Some(boot_ns() + down_ms * MS);
        });
    }

    /// Kills it -9; it stays down until it is [raised](Self::raise).
    pub fn take_down(&self, name: &str) {
        self.with(name, |role| {
            end(role);
            role.start_at = None;
        });
    }

    /// Kills it -9 for good.
    pub fn remove(&self, name: &str) {
        self.take_down(name);
        lock(&self.all).retain(|role| role.recipe.name != name);
    }

    /// How a role is started.
    pub fn recipe(&self, name: &str) -> Option<Recipe> {
        let mut found = None;
        self.with(name, |role| found = Some(role.recipe.clone()));
        found
    }

    /// It is started if it is down.
    pub fn raise(&self, name: &str) {
        self.with(name, |role| {
            if role.child.is_none() {
                role.start_at = Some(0);
            }
        });
    }

    /// Sends it a signal, if it runs.
    pub fn signal(&self, name: &str, signal: Signal) {
        self.with(name, |role| {
            if let Some(child) = &role.child {
                // It may just have ended, and is not waited for yet: its pid is still its own.
                let _ = kill_process(Pid::from_child(child), signal);
            }
        });
    }

    /// Whether it runs now.
    pub fn is_up(&self, name: &str) -> bool {
        let mut up = false;
        self.with(name, |role| up = role.child.is_some());
        up
    }

    fn with(&self, name: &str, act: impl FnOnce(&mut Role)) {
        let mut all = lock(&self.all);
        if let Some(role) = all.iter_mut().find(|role| role.recipe.name == name) {
            act(role);
        }
    }
}

impl Drop for Roles {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(keeper) = self.keeper.take() {
            drop(keeper.join());
        }
        for role in lock(&self.all).iter_mut().rev() {
            end(role);
        }
    }
}

fn lock(all: &Mutex<Vec<Role>>) -> std::sync::MutexGuard<'_, Vec<Role>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

/// SIGKILL works on stopped processes too.
fn end(role: &mut Role) {
    if let Some(mut child) = role.child.take() {
        // It may have ended already.
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn look(all: &mut [Role]) {
    for role in all {
        let ended = role.child.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None)));
        if ended {
            role.child = None;
            role.start_at = Some(boot_ns() + AGAIN_MS * MS);
        }
        let due = role.start_at.is_some_and(|at| at <= boot_ns());
        if role.child.is_none() && due {
            match start(&role.recipe) {
                Ok(child) => role.child = Some(child),
                Err(_) => role.start_at = Some(boot_ns() + AGAIN_MS * MS),
            }
        }
    }
}

fn start(recipe: &Recipe) -> std::io::Result<Child> {
    let log = File::options().create(true).append(true).open(&recipe.log)?;
    let mut command = bare(&recipe.program);
    command.args(&recipe.arguments).envs(recipe.environment.iter().cloned());
    // A group of its own: what is killed is this process and nothing else.
    command.process_group(0).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    command.spawn()
}

/// The program with nothing but the path in its environment.
pub fn bare(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::wait_until;

    #[test]
    fn what_ends_is_started_again_unless_it_is_to_stay_down() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let roles = Roles::keep();
        roles.add(Recipe {
            name: "r".into(),
            program: "/bin/sh".into(),
            arguments: ["-c", "echo ready; exec sleep 1000"].map(ToOwned::to_owned).into(),
            environment: Vec::new(),
            log: log.clone(),
        });
        let starts = || std::fs::read_to_string(&log).unwrap_or_default().lines().count();
        assert!(wait_until(20_000, || starts() == 1));
        roles.kill("r", 0);
        assert!(wait_until(20_000, || starts() == 2));
        roles.signal("r", Signal::STOP);
        roles.take_down("r");
        assert!(!roles.is_up("r"));
        roles.raise("r");
        assert!(wait_until(20_000, || starts() == 3 && roles.is_up("r")));
        roles.remove("r");
        assert!(roles.recipe("r").is_none() && !roles.is_up("r"));
    }
}
