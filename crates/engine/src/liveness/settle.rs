//! Pages: what a departed job left behind is worked off, a thousand attempts to a transaction.
//!
//! Until its page is done an attempt takes its own terminal report under the current token, and the
//! first commit wins; a start, a renewal or a take-over is refused all the same, by its owner's row.
//! Any scheduler goes on where another stopped, also after a restart: the mark is in the store.

use super::declare::ALONE;
use super::incidents;
use crate::error::EngineError;
use crate::operations::Answer;
use crate::operations::report::{self, EndReport};
use crate::{Cx, Report, Share};
use fencepost_core::id::{JobId, Token};
use fencepost_core::state::AttemptState;
use fencepost_core::verdict::{Death, Ending};
use fencepost_store::Tx;
use fencepost_store::query::attempt::{self, Attempt};
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::incident;
use fencepost_store::query::lease::{self, Departed};
use serde_json::{Value, json};

/// Attempts in one transaction.
const PAGE: u32 = 1_000;
/// Departed jobs looked at in one pass.
const JOBS: u32 = 100;

/// Where a turn stopped: the job, and the last token of its that was looked at.
pub(super) type Place = (JobId, i64);

/// Works off what departed jobs left, as much as fits into a share of a turn; also where it stopped if there is
/// more, so that the next turn goes on behind what could not be settled.
pub(super) async fn settle(
    cx: &Cx,
    from: Option<Place>,
) -> Result<(Report, Option<Place>), EngineError> {
    let share = Share::of(cx);
    let look = cx.store.read("look_for_departed").await?;
    let departed = lease::departed(&look, JOBS).await?;
    drop(look);
    let mut report = Report::default();
    for job in departed {
        let (mut after, refused) = (begin(&job, from), report.troubles.len());
        while let Some(last) = page(cx, &job, after, &mut report).await? {
            after = last;
            if share.is_over(cx) {
                cx.wakes.engine();
                return Ok((report, Some((job.job, last))));
            }
        }
        if after > 0 && report.troubles.len() == refused {
            // Once more from the beginning: nothing is left, and the mark goes.
            page(cx, &job, 0, &mut report).await?;
        }
    }
    if report.moved > 0 {
        cx.wakes.engine();
    }
    Ok((report, None))
}

fn begin(job: &Departed, from: Option<Place>) -> i64 {
    from.filter(|(stopped, _)| *stopped == job.job).map_or(0, |(_, after)| after)
}

/// One page after a token; the last token of it, `None` once there is no more.
async fn page(
    cx: &Cx,
    job: &Departed,
    after: i64,
    report: &mut Report,
) -> Result<Option<i64>, EngineError> {
    let tx = cx.store.begin("settle_page").await?;
    lease::lock(&tx, job.job).await?;
    let left = attempt::left_by(&tx, job.job, after, PAGE).await?;
    let Some(last) = left.last().map(|attempt| attempt.token.as_i64()) else {
        if after == 0 && lease::settled(&tx, job.job).await? {
            incident::settle(&tx, job.job).await?;
            event::append(&tx, vec![settled_line(cx, job)]).await?;
            report.moved += 1;
        }
        tx.commit().await?;
        return Ok(None);
    };
    let reports = left.iter().map(|attempt| end_of(job, attempt)).collect();
    let answers = report::settle(cx, &tx, job.job, reports, evidence(cx, &tx, job)).await?;
    let mut taken: Vec<Token> = Vec::new();
    for (answer, attempt) in answers.iter().zip(&left) {
        match answer {
            Answer::Accepted => taken.push(attempt.token),
            Answer::Refused(why, text) => {
                let (why, token) = (why.as_str(), attempt.token);
                report.troubles.push(format!("attempt {token} cannot be settled: {why} {text}"));
            }
        }
    }
    incidents::expired(&tx, job.job, &taken).await?;
    tx.commit().await?;
    report.moved += taken.len();
    Ok(Some(last))
}

fn end_of(job: &Departed, attempt: &Attempt) -> EndReport {
    let death = if job.death.as_deref() == Some(ALONE) { Death::Single } else { Death::Orderly };
    let ending = match attempt.state {
        AttemptState::Queued | AttemptState::Claimed => Ending::NeverRan,
        AttemptState::Running
        | AttemptState::Stopping
        | AttemptState::LostOpen
        | AttemptState::Ended => Ending::Expired(death),
    };
    EndReport {
        token: attempt.token,
        ending,
        asked: None,
        outputs: Vec::new(),
        level: None,
        message: Some(format!("its worker `{}` is {}", job.name, job.state)),
        exit_code: None,
        signal: None,
        evidence: Some("expiry".into()),
        checkpoint: None,
        digest: format!("settled:{}:{}", job.job, attempt.token),
    }
}

/// The evidence of the declaration; of a job that ended without a successor, that it did.
fn evidence(cx: &Cx, tx: &Tx, job: &Departed) -> Value {
    let declared = job.evidence.as_deref().and_then(|text| serde_json::from_str(text).ok());
    declared.unwrap_or_else(|| {
        json!({
            "kind": "successor",
            "at": tx.now().to_string(),
            "job": job.job.to_string(),
            "worker": job.name,
            "declared_by": cx.actor(),
        })
    })
}

fn settled_line(cx: &Cx, job: &Departed) -> Event {
    Event {
        kind: "job_settled",
        actor: cx.actor().into(),
        reason: Some(format!("{} `{}`: nothing of it is left", job.kind, job.name)),
        evidence: Some(json!({ "job": job.job.to_string() })),
        ..Event::default()
    }
}
