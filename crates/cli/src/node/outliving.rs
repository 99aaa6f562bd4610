//! Whether shims can outlive this process. Where they cannot, a stop is a drain: what runs is ended in time,
//! reported and released, for nobody would find it running.

use std::fs;
use std::process::{Command, Stdio};

/// Programs that are PID 1 of a container for the sake of one child, and end with it.
const INITS: [&str; 5] = ["tini", "tini-static", "docker-init", "dumb-init", "catatonit"];

/// Why its shims end with this process, in a sentence; `None`: they outlive it. `has_invocation`: systemd's
/// `INVOCATION_ID` is in the environment, which what a service starts inherits.
pub(super) fn why_not(has_invocation: bool) -> Option<String> {
    let name = |pid: i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name = |pid: i32| name(pid).trim().to_owned();
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    let is_service = || has_invocation && name(parent) == "systemd";
    in_container(std::process::id(), parent, || name(1))
        .or_else(|| is_service().then(kill_mode).flatten())
}

fn in_container(pid: u32, parent: i32, pid_one: impl FnOnce() -> String) -> Option<String> {
    if pid == 1 {
        return Some("it is PID 1 of its container".into());
    }
    let init = Some(()).filter(|()| parent == 1).map(|()| pid_one())?;
    INITS
        .contains(&init.as_str())
        .then(|| format!("`{init}`, PID 1 of its container, ends with it"))
}

/// A service whose processes are all ended with it.
fn kill_mode() -> Option<String> {
    let cgroup = fs::read_to_string("/proc/self/cgroup").ok()?;
    let unit = unit(&cgroup)?;
    let shown = Command::new("systemctl")
        .args(["show", "--property=KillMode", "--value", unit])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let mode = String::from_utf8(shown.ok()?.stdout).ok()?;
    ends_all(mode.trim())
        .then(|| format!("KillMode={} of {unit} ends all of its processes", mode.trim()))
}

fn unit(cgroup: &str) -> Option<&str> {
    cgroup.lines().flat_map(|line| line.rsplit('/')).find(|part| part.ends_with(".service"))
}

fn ends_all(mode: &str) -> bool {
    matches!(mode, "control-group" | "mixed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pid_one_and_the_child_of_a_small_init_end_with_their_container() {
        let of = |pid, parent, init: &str| in_container(pid, parent, || init.to_owned()).is_some();
        assert!(of(1, 0, "fencepost"));
        assert!(of(7, 1, "tini") && of(7, 1, "docker-init"));
        assert!(!of(7, 1, "systemd") && !of(7, 1, "bash") && !of(7, 3, "tini"));
    }

    #[test]
    fn the_unit_is_the_last_service_of_the_cgroup() {
        let unit = |text: &str| unit(text).map(ToOwned::to_owned);
        assert_eq!(unit("0::/system.slice/w.service\n").as_deref(), Some("w.service"));
        assert_eq!(
            unit("0::/user.slice/user@0.service/app.slice/w.service/x\n").as_deref(),
            Some("w.service")
        );
        assert_eq!(unit("0::/\n"), None);
        assert!(
            ends_all("control-group") && ends_all("mixed") && !ends_all("process") && !ends_all("")
        );
    }
}
