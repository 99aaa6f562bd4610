//! The shim as a program of its own, for this crate's tests: `shim DIR`.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args_os().nth(1) {
        Some(dir) => fencepost_worker::shim::main(Path::new(&dir)),
        None => ExitCode::from(64),
    }
}
