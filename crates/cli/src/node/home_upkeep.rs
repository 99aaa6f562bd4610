//! What a home forgets, by the same retention as the store: now, and then every hour. It holds nothing up: it
//! runs beside everything else, and ends with the process.

use super::{keep, surroundings};
use crate::config::Settings;
use fencepost_worker::supervisor::{KeepAtHome, forget_old};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const BETWEEN: Duration = Duration::from_hours(1);

/// Begins. `only_shipped`: logs go once the server has them.
pub(super) fn begin(settings: &Settings, home: &Path, only_shipped: bool) {
    let keep = keep(settings);
    let (logs, state) = (keep.logs.to_std(), keep.runs.to_std());
    let keep = KeepAtHome { logs, state, only_shipped };
    tokio::spawn(upkeep(home.to_owned(), keep));
}

async fn upkeep(home: PathBuf, keep: KeepAtHome) {
    let mut told = Vec::new();
    loop {
        let home = home.clone();
        let looked = tokio::task::spawn_blocking(move || forget_old(&home, &keep, now())).await;
        let failures = looked.map(|gone| gone.failures).unwrap_or_default();
        // The same trouble once, not every hour.
        if failures != told {
            for failure in &failures {
                say(failure);
            }
            told = failures;
        }
        surroundings::pause(BETWEEN).await;
    }
}

fn now() -> SystemTime {
    let micros = u64::try_from(crate::clock::now().as_micros()).unwrap_or(0);
    SystemTime::UNIX_EPOCH + Duration::from_micros(micros)
}

#[expect(clippy::print_stderr, reason = "a home's own trouble, for whoever reads its log")]
fn say(failure: &str) {
    eprintln!("fencepost: an old directory stays: {failure}");
}
