//! Holds a home until its standard input ends, for this crate's tests: `hold_home DIR NAME`.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use fencepost_worker::clock::ClockKind;
use fencepost_worker::home::{HomeClaim, TakeOver, lock};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let (Some(dir), Some(name)) = (args.next().map(PathBuf::from), args.next()) else {
        return ExitCode::from(64);
    };
    let claim = HomeClaim {
        installation_id: "one".into(),
        machine_id: Some("here".into()),
        worker_name: name.to_string_lossy().into_owned(),
    };
    let Ok(home) = lock(&dir, &claim, TakeOver::IfStalled { quiet_ns: u64::MAX }) else {
        return ExitCode::FAILURE;
    };
    home.turned(ClockKind::Boottime.now_ns());
    let mut out = std::io::stdout();
    let _ = writeln!(out, "held").and_then(|()| out.flush());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    ExitCode::SUCCESS
}
