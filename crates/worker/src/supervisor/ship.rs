//! Logs go to the server: every second what is new, so that a log is there when its worker is not.
//!
//! The server says where it stands, so nothing is kept here but a mark in the directory of an ended
//! attempt whose log is all there; a worker that starts again looks for directories without one. A
//! log that is being written faster than it may be sent is sent to its limit, and its end when that
//! is known (what is in between stays on the worker, as the middle of any log that is too long).

use super::Shared;
use super::archive::{LIVE, archived, unmarked};
use super::launch::blocking;
use crate::dir::AttemptDir;
use crate::log::{near_end, read_raw};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fencepost_api::execution::{LogAnswer, LogPiece, LogPlace};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// From one call to the next.
const PACE: Duration = Duration::from_secs(1);
/// Bytes of one call, and of one log in it.
const CALL_MAX: usize = 256 << 10;
const LOG_MAX: usize = 64 << 10;
/// Calls before a worker ends in order.
const LAST_CALLS: usize = 8;
/// A file in the directory of an ended attempt whose log the server has to its end.
pub(super) const MARK: &str = "shipped";

/// A log on its way.
#[derive(Debug, Clone)]
struct Log {
    /// Of the attempt's directory.
    name: String,
    /// Where the server stands; `None`: it was not asked yet.
    next: Option<(u32, u64)>,
    sent: u64,
    ended: bool,
}

/// What is on its way, by token.
#[derive(Debug, Default)]
pub(super) struct Shipping(BTreeMap<String, Log>);

/// Ships until the worker ends.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut shipping = Shipping::default();
    let inner = Arc::clone(&shared);
    // What cannot be listed now is found at the next start.
    let left = blocking(&shared, move || Ok(unmarked(&inner.settings.home, MARK))).await;
    for name in left.unwrap_or_default() {
        shipping.add(name, true);
    }
    loop {
        super::pause(PACE).await;
        shipping.look(&shared);
        shipping.turn(&shared).await;
    }
}

/// What was written in the last moments goes before the worker does.
pub(super) async fn rest(shared: &Arc<Shared>, names: Vec<String>) {
    let mut shipping = Shipping::default();
    for name in names {
        shipping.add(name, false);
    }
    for _ in 0..LAST_CALLS {
        if !shipping.turn(shared).await {
            return;
        }
    }
}

impl Shipping {
    fn add(&mut self, name: String, ended: bool) {
        let token = name.split('-').next().unwrap_or(&name).to_owned();
        // A later start of the same attempt has a log of its own.
        if self.0.get(&token).is_none_or(|known| known.name != name) {
            self.0.insert(token, Log { name, next: None, sent: 0, ended });
        }
    }

    /// Which attempts run, and which of those that did have ended.
    fn look(&mut self, shared: &Shared) {
        // Also those that came and went between two looks.
        let over = std::mem::take(&mut *shared.over());
        for name in over {
            self.add(name, true);
        }
        let active = shared.active();
        for (token, log) in &mut self.0 {
            log.ended = !active.contains_key(token);
        }
        for (_, attempt) in active.iter().filter(|(_, attempt)| !attempt.name.is_empty()) {
            self.add(attempt.name.clone(), false);
        }
    }

    /// One call; whether it sent anything.
    async fn turn(&mut self, shared: &Arc<Shared>) -> bool {
        let (inner, logs) = (Arc::clone(shared), self.0.clone());
        let read = blocking(shared, move || Ok(pieces(&inner, &logs))).await;
        let (pieces, over) = read.unwrap_or_default();
        for token in over {
            self.0.remove(&token);
        }
        if pieces.is_empty() {
            return false;
        }
        // What fails is sent again with the next turn.
        let Ok(answers) = shared.api.logs(&shared.who.job_id, pieces.clone()).await else {
            return false;
        };
        for (piece, answer) in pieces.iter().zip(answers) {
            self.take(&shared.settings.home, piece, &answer);
        }
        true
    }

    fn take(&mut self, home: &Path, piece: &LogPiece, answer: &LogAnswer) {
        let Some(log) = self.0.get_mut(&piece.token) else { return };
        match answer {
            LogAnswer::Have { next } => {
                log.next = Some((next.segment, next.offset));
                log.sent += piece.content.len() as u64 / 4 * 3;
            }
            // Nobody will ever take it: another's, or its run is deleted.
            LogAnswer::Refused { .. } => {
                mark(&archived(home, &log.name));
                self.0.remove(&piece.token);
            }
        }
    }
}

/// The next pieces, fairly; and the tokens of logs that are all there.
fn pieces(shared: &Shared, logs: &BTreeMap<String, Log>) -> (Vec<LogPiece>, Vec<String>) {
    let (mut pieces, mut over, mut room) = (Vec::new(), Vec::new(), CALL_MAX);
    // Those that have sent least come first.
    let mut order: Vec<_> = logs.iter().collect();
    order.sort_by_key(|(_, log)| log.sent);
    for (token, log) in order {
        if room == 0 {
            break;
        }
        let Some(from) = log.next else {
            let (token, content) = (token.clone(), String::new());
            pieces.push(LogPiece { token, at: LogPlace::default(), content });
            continue;
        };
        let home = &shared.settings.home;
        let kept = archived(home, &log.name);
        let is_kept = kept.exists();
        let dir = AttemptDir::new(if is_kept { kept } else { home.join(LIVE).join(&log.name) });
        let Some(from) = within_limit(&dir, log, from, shared.settings.log_limit) else { continue };
        match read_raw(&dir, from, LOG_MAX.min(room)) {
            Ok(raw) if !raw.bytes.is_empty() => {
                room -= raw.bytes.len();
                let at = LogPlace { segment: raw.segment, offset: raw.offset };
                let content = STANDARD.encode(&raw.bytes);
                pieces.push(LogPiece { token: token.clone(), at, content });
            }
            // It stays where it is now, so this was its end.
            Ok(_) if log.ended && is_kept => {
                mark(dir.path());
                over.push(token.clone());
            }
            Ok(_) | Err(_) => {}
        }
    }
    (pieces, over)
}

/// Where to go on: beyond its limit a log waits for its end, and then only that is sent.
fn within_limit(dir: &AttemptDir, log: &Log, from: (u32, u64), limit: u64) -> Option<(u32, u64)> {
    if log.sent < limit {
        return Some(from);
    }
    if !log.ended {
        return None;
    }
    let end = near_end(dir, CALL_MAX as u64).ok()?;
    Some(from.max(end))
}

fn mark(dir: &Path) {
    // Without it the log is sent again after the next start, and changes nothing.
    let _ = std::fs::File::create(dir.join(MARK));
}
