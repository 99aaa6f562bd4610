//! One living worker per home.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use fencepost_worker::attempt::HomeBoot;
use fencepost_worker::clock::ClockKind;
use fencepost_worker::home::{HomeClaim, HomeError, TakeOver, lock};

use crate::bench::{SECOND, kill, shim_exe, wait_for};

fn claim(name: &str) -> HomeClaim {
    HomeClaim {
        installation_id: "one".into(),
        machine_id: Some("here".into()),
        worker_name: name.into(),
    }
}

const PATIENT: TakeOver = TakeOver::IfStalled { quiet_ns: 600 * SECOND };

/// Another process that holds the home.
struct Holder(Child);

impl Holder {
    fn of(home: &Path) -> Self {
        let mut child = Command::new(shim_exe().with_file_name("hold_home"))
            .arg(home)
            .arg("holder")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut word = [0; 5];
        child.stdout.as_mut().unwrap().read_exact(&mut word).unwrap();
        assert_eq!(&word, b"held\n");
        Self(child)
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_held_home_is_refused_naming_the_holder_and_free_when_it_ends() {
    let temp = tempfile::tempdir().unwrap();
    let mut holder = Holder::of(temp.path());
    let refused = lock(temp.path(), &claim("second"), PATIENT).unwrap_err();
    assert!(
        matches!(&refused, HomeError::Held { pid, name, quiet_ns: Some(_) }
        if *pid == holder.pid() && name == "holder"),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("--take-over"), "{refused}");
    assert!(holder.0.try_wait().unwrap().is_none(), "nobody touched it");

    drop(holder.0.stdin.take());
    assert!(holder.0.wait().unwrap().success());
    let home = lock(temp.path(), &claim("second"), PATIENT).unwrap();
    let previous = home.previous().unwrap();
    assert_eq!((previous.worker_name.as_str(), previous.pid), ("holder", 0));
    assert_eq!(home.record().home_id, previous.home_id);
    assert_eq!(home.boot(), HomeBoot::Same);
}

fn ends_with(holder: &mut Holder, signal: i32) {
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(holder.0.wait().unwrap().signal(), Some(signal));
}

#[test]
fn a_take_over_ends_the_holder() {
    let temp = tempfile::tempdir().unwrap();
    let mut holder = Holder::of(temp.path());
    let home = lock(temp.path(), &claim("second"), TakeOver::Always).unwrap();
    ends_with(&mut holder, 9);
    assert_eq!(home.previous().unwrap().worker_name, "holder");
}

#[test]
fn a_stopped_or_stalled_holder_is_ended_without_being_asked() {
    let temp = tempfile::tempdir().unwrap();
    let mut stopped = Holder::of(temp.path());
    kill(stopped.pid(), "-STOP");
    wait_for("the stop", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", stopped.pid())).unwrap();
        stat.contains(") T ")
    });
    drop(lock(temp.path(), &claim("second"), PATIENT).unwrap());
    ends_with(&mut stopped, 9);

    let mut stalled = Holder::of(temp.path());
    let turned = ClockKind::Boottime.now_ns();
    wait_for("silence", || ClockKind::Boottime.now_ns() > turned + SECOND / 5);
    drop(
        lock(temp.path(), &claim("third"), TakeOver::IfStalled { quiet_ns: SECOND / 10 }).unwrap(),
    );
    ends_with(&mut stalled, 9);
}

#[test]
fn a_newcomer_of_another_installation_or_machine_refuses_always() {
    let temp = tempfile::tempdir().unwrap();
    let mut holder = Holder::of(temp.path());
    let stranger = HomeClaim { installation_id: "two".into(), ..claim("x") };
    let elsewhere = HomeClaim { machine_id: Some("there".into()), ..claim("x") };
    for round in 0..2 {
        let refused = lock(temp.path(), &stranger, TakeOver::Always).unwrap_err();
        assert!(matches!(refused, HomeError::OtherInstallation { .. }), "{round}: {refused}");
        let refused = lock(temp.path(), &elsewhere, TakeOver::Always).unwrap_err();
        assert!(matches!(refused, HomeError::OtherMachine { .. }), "{round}: {refused}");
        if round == 0 {
            assert!(holder.0.try_wait().unwrap().is_none(), "nobody touched it");
            drop(holder.0.stdin.take());
            assert!(holder.0.wait().unwrap().success());
        }
    }
}

#[test]
fn a_pid_that_was_reused_or_is_ours_is_never_signalled() {
    let temp = tempfile::tempdir().unwrap();
    let mut holder = Holder::of(temp.path());
    let file = temp.path().join("holder");
    let record = std::fs::read_to_string(&file).unwrap();
    // As if the holder's pid belonged to a process that started at another time.
    std::fs::write(&file, record.replace("\"start\":", "\"start\":1")).unwrap();
    let refused = lock(temp.path(), &claim("second"), TakeOver::Always).unwrap_err();
    assert!(matches!(refused, HomeError::Held { .. }), "{refused}");
    let own = format!("\"pid\":{}", std::process::id());
    let ours = record.replace(&format!("\"pid\":{}", holder.pid()), &own);
    std::fs::write(&file, ours).unwrap();
    let refused = lock(temp.path(), &claim("second"), TakeOver::Always).unwrap_err();
    assert!(matches!(refused, HomeError::Held { .. }), "{refused}");
    assert!(holder.0.try_wait().unwrap().is_none());
}

#[test]
fn another_boot_is_seen_and_a_broken_record_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    drop(lock(temp.path(), &claim("first"), PATIENT).unwrap());
    let file = temp.path().join("holder");
    let record = std::fs::read_to_string(&file).unwrap();
    let boot = record.split("\"boot_id\":\"").nth(1).unwrap().split('"').next().unwrap();
    std::fs::write(&file, record.replace(boot, &"0".repeat(32))).unwrap();
    assert_eq!(lock(temp.path(), &claim("first"), PATIENT).unwrap().boot(), HomeBoot::New);
    std::fs::write(&file, "{").unwrap();
    let refused = lock(temp.path(), &claim("first"), PATIENT).unwrap_err();
    assert!(matches!(refused, HomeError::Record { .. }), "{refused}");
}
