//! Pieces of logs that a worker on another host sends.
//!
//! A piece is kept if it begins where the kept log ends, or beyond it (a gap is what the limit of a
//! log has dropped at the worker); anything else is an old piece that came again. The answer says
//! what is there, so a worker that knows nothing asks with an empty piece and goes on from there.

use super::Refused;
use crate::Cx;
use crate::error::EngineError;
use fencepost_core::id::{JobId, Token};
use fencepost_core::state::AttemptState;
use fencepost_store::query::attempt::{self, Attempt};
use fencepost_store::query::attempt_log::{self, Piece};
use std::collections::BTreeMap;

/// A piece, as it came; `content` is base64 of `size` bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    pub token: Token,
    pub segment: u32,
    pub offset: u64,
    pub size: u64,
    pub content: String,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// Everything before that segment and offset is there.
    Have(u32, u64),
    Refused(Refused, String),
}

/// Keeps pieces of a job's attempts; an answer for each, in their order.
pub async fn take(cx: &Cx, job_id: JobId, sent: &[Sent]) -> Result<Vec<Taken>, EngineError> {
    let tx = if sent.iter().any(|piece| piece.size > 0) {
        cx.store.begin("take_logs").await?
    } else {
        cx.store.read("look_at_logs").await?
    };
    let tokens: Vec<Token> = sent.iter().map(|piece| piece.token).collect();
    let known: BTreeMap<Token, Attempt> =
        attempt::look(&tx, &tokens).await?.into_iter().map(|a| (a.token, a)).collect();
    let mut ends: BTreeMap<Token, (u32, u64)> = BTreeMap::new();
    let (mut kept, mut answers) = (Vec::new(), Vec::new());
    for piece in sent {
        let own = match owned(known.get(&piece.token), job_id) {
            Ok(own) => own,
            Err((why, text)) => {
                answers.push(Taken::Refused(why, text));
                continue;
            }
        };
        let mut end = match ends.get(&piece.token) {
            Some(end) => *end,
            None => attempt_log::end_of(&tx, piece.token).await?,
        };
        if piece.size > 0 && (piece.segment, piece.offset) >= end {
            let row = row(piece, own);
            end = row.end();
            kept.push((piece.token, row));
        }
        ends.insert(piece.token, end);
        answers.push(Taken::Have(end.0, end.1));
    }
    if !kept.is_empty() {
        attempt_log::put(&tx, &kept).await?;
        tx.commit().await?;
        cx.wakes.readers();
    }
    Ok(answers)
}

fn owned(found: Option<&Attempt>, job_id: JobId) -> Result<&Attempt, (Refused, String)> {
    match found {
        None => Err((Refused::NotRunning, "no such attempt: its run was deleted".into())),
        Some(own) if own.job_id != Some(job_id) => {
            Err((Refused::RunningElsewhere, "another worker has it".into()))
        }
        Some(own) => Ok(own),
    }
}

fn row(piece: &Sent, own: &Attempt) -> Piece {
    let late = own.state == AttemptState::Ended && was_declared(own);
    let (segment, offset, size) = (piece.segment, piece.offset, piece.size);
    Piece { segment, offset, size, late, content: piece.content.clone() }
}

/// Whether somebody else than its worker ended it. Where its worker did, what was written before may
/// still be on its way, and is not late.
fn was_declared(own: &Attempt) -> bool {
    let evidence = own.evidence.as_deref().and_then(|text| {
        serde_json::from_str::<serde_json::Value>(text)
            .ok()?
            .get("kind")?
            .as_str()
            .map(str::to_owned)
    });
    matches!(evidence.as_deref(), Some("expiry" | "person" | "executor"))
}
