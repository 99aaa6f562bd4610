//! Between the words of the wire and the values of the domain.

use crate::auth::hex;
use crate::rest::Failure;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fencepost_api::execution::{
    Answer, AskedFor, Beat, Beaten, Ended, LogAnswer, LogPiece, LogPlace, RefusedReason, Register,
    Report, Says,
};
use fencepost_api::problem::{Problem, ProblemCode};
use fencepost_core::id::{JobId, Token};
use fencepost_core::liveness::inventory;
use fencepost_core::state::JobKind;
use fencepost_core::time::Span;
use fencepost_core::verdict::{Asked, Death, Ending, Unusable};
use fencepost_engine::error::{EngineError, Refusal};
use fencepost_engine::operations::beat;
use fencepost_engine::operations::logs::{Sent, Taken};
use fencepost_engine::operations::register::Identity;
use fencepost_engine::operations::report::EndReport;
use fencepost_engine::operations::{self, Refused};
use fencepost_store::StoreErrorKind;
use sha2::{Digest, Sha256};

/// An error of the engine as a problem.
pub(crate) fn problem(error: &EngineError) -> Problem {
    let code = match error {
        EngineError::Store(store) => match store.kind {
            StoreErrorKind::Full => ProblemCode::NoSpace,
            StoreErrorKind::Unavailable
            | StoreErrorKind::Contended
            | StoreErrorKind::Fenced
            | StoreErrorKind::EpochOver => ProblemCode::Unavailable,
            StoreErrorKind::Setup
            | StoreErrorKind::Constraint
            | StoreErrorKind::Corrupt
            | StoreErrorKind::Decode => ProblemCode::Internal,
        },
        EngineError::NoVersion(_) | EngineError::BadVersion { .. } => ProblemCode::Internal,
        EngineError::Refused(refusal) => refusal_code(refusal),
    };
    let mut problem = Problem::new(code, error.to_string());
    if let EngineError::Refused(Refusal::StaleHome { last, .. }) = error {
        problem.registration = u64::try_from(*last).ok();
    }
    problem
}

fn refusal_code(refusal: &Refusal) -> ProblemCode {
    match refusal {
        Refusal::NoDag(_) => ProblemCode::NoSuchDag,
        Refusal::NoRun { .. } => ProblemCode::NoSuchRun,
        Refusal::NoTask { .. } => ProblemCode::NoSuchTask,
        Refusal::NoAttempt(_) => ProblemCode::NoSuchAttempt,
        Refusal::Inactive(_) => ProblemCode::InactiveDag,
        Refusal::RunExists { .. } => ProblemCode::RunExists,
        Refusal::Invalid(_) => ProblemCode::ValidationFailed,
        Refusal::AlreadyTerminal { .. } => ProblemCode::AlreadyTerminal,
        Refusal::StillActive { .. } | Refusal::WorkerActive { .. } => ProblemCode::StillActive,
        Refusal::NoWorker(_) => ProblemCode::NoSuchWorker,
        Refusal::StaleHome { .. } => ProblemCode::StaleHome,
        Refusal::NoPool(_) => ProblemCode::NoSuchPool,
        Refusal::NoCallback(_) => ProblemCode::NoSuchCallback,
        Refusal::NoBackfill(_) => ProblemCode::NoSuchBackfill,
        Refusal::NoAsset(_) => ProblemCode::NoSuchAsset,
        Refusal::BackfillUnderWay(_) => ProblemCode::BackfillUnderWay,
        Refusal::PoolInUse(_) => ProblemCode::PoolInUse,
    }
}

pub(super) fn job(text: &str) -> Result<JobId, Failure> {
    text.parse().map_err(|e| Failure::new(ProblemCode::BadRequest, format!("{e}")))
}

pub(super) fn attempt_token(text: &str) -> Result<Token, Failure> {
    text.parse().map_err(|e| Failure::new(ProblemCode::BadRequest, format!("{e}")))
}

pub(super) fn worker_identity(request: &Register) -> Result<Identity, Failure> {
    Ok(Identity {
        job_id: job(&request.job_id)?,
        kind: JobKind::Worker,
        name: request.name.clone(),
        host: request.host.clone(),
        pid: request.pid,
        pid_start: i64::try_from(request.pid_start).unwrap_or(i64::MAX),
        boot_id: request.boot_id.clone(),
        machine_id: request.machine_id.clone(),
        home_id: request.home_id.clone(),
        registration: i64::try_from(request.registration).unwrap_or(i64::MAX),
        version: request.version.clone(),
        queues: request.queues.clone(),
        slots: request.slots,
        lease_ttl: request.lease_ttl_ms.map(Span::from_millis),
    })
}

pub(super) fn answer(answer: operations::Answer) -> Answer {
    match answer {
        operations::Answer::Accepted => Answer::Accepted,
        operations::Answer::Refused(why, detail) => {
            Answer::Refused { reason: refused(why), detail }
        }
    }
}

pub(super) const fn refused(why: Refused) -> RefusedReason {
    match why {
        Refused::Superseded => RefusedReason::Superseded,
        Refused::Fenced => RefusedReason::Fenced,
        Refused::Cancelled => RefusedReason::Cancelled,
        Refused::NotRunning => RefusedReason::NotRunning,
        Refused::RunningElsewhere => RefusedReason::RunningElsewhere,
    }
}

pub(super) fn beat(request: Beat) -> Result<beat::Beat, Failure> {
    let mut checkpoints = Vec::new();
    for (token, content) in request.checkpoints {
        checkpoints.push((attempt_token(&token)?, content));
    }
    let mut levels = Vec::new();
    for (token, level) in request.levels {
        levels.push((attempt_token(&token)?, level));
    }
    Ok(beat::Beat {
        job_id: job(&request.job_id)?,
        seq: request.seq,
        call: request.call,
        says: says(request.says)?,
        unanswered: request.unanswered,
        unstarted: tokens(&request.unstarted)?,
        epoch: request.epoch,
        reconciles: request.reconciles,
        loop_age: Span::from_millis(i64::try_from(request.loop_age_ms).unwrap_or(i64::MAX)),
        inventory: tokens(&request.inventory)?,
        checkpoints,
        levels,
    })
}

fn tokens(names: &[String]) -> Result<Vec<Token>, Failure> {
    names.iter().map(|name| attempt_token(name)).collect()
}

fn says(says: Says) -> Result<beat::Says, Failure> {
    Ok(match says {
        Says::Nothing => beat::Says::Nothing,
        Says::All => beat::Says::All,
        Says::Digest { count, sum } => {
            let sum = u128::from_str_radix(&sum, 16)
                .map_err(|e| Failure::new(ProblemCode::BadRequest, format!("sum `{sum}`: {e}")))?;
            beat::Says::Digest(inventory::Digest { count, sum })
        }
    })
}

pub(super) fn beaten(taken: &beat::Beaten) -> Beaten {
    let names = |tokens: &[Token]| tokens.iter().map(|t| t.as_i64().to_string()).collect();
    Beaten {
        is_over: taken.is_over,
        disowned: names(&taken.disowned),
        questions: names(&taken.questions),
        wants_inventory: taken.wants_inventory,
        epoch: taken.epoch,
        is_reconciled: taken.is_reconciled,
    }
}

/// A piece of a log; what is not base64 was broken on its way.
pub(super) fn piece(piece: LogPiece) -> Result<Sent, Failure> {
    let bytes = STANDARD.decode(&piece.content).map_err(|error| {
        let text = format!("the log of {}: not base64: {error}", piece.token);
        Failure::new(ProblemCode::BadRequest, text)
    })?;
    Ok(Sent {
        token: attempt_token(&piece.token)?,
        segment: piece.at.segment,
        offset: piece.at.offset,
        size: bytes.len() as u64,
        content: piece.content,
    })
}

pub(super) fn log_answer(taken: Taken) -> LogAnswer {
    match taken {
        Taken::Have(segment, offset) => LogAnswer::Have { next: LogPlace { segment, offset } },
        Taken::Refused(why, detail) => LogAnswer::Refused { reason: refused(why), detail },
    }
}

pub(super) fn end_report(report: Report) -> Result<EndReport, Failure> {
    let wire = serde_json::to_string(&report)
        .map_err(|e| Failure::new(ProblemCode::BadRequest, e.to_string()))?;
    let digest = hex(&Sha256::digest(wire.as_bytes()));
    let (exit_code, signal) = status(&report.ended);
    let evidence =
        if let Ended::Gone { evidence } = &report.ended { Some(evidence.clone()) } else { None };
    Ok(EndReport {
        token: attempt_token(&report.token)?,
        ending: ending(&report),
        asked: report.asked.map(asked),
        outputs: report.outputs,
        level: report.level,
        message: report.message,
        exit_code,
        signal,
        evidence,
        checkpoint: report.checkpoint,
        digest,
    })
}

fn status(ended: &Ended) -> (Option<i64>, Option<i64>) {
    match ended {
        Ended::Exit { code } | Ended::CouldNotExec { code } => (Some((*code).into()), None),
        Ended::Signal { signal } => (None, Some((*signal).into())),
        Ended::ExecutionTimeout { code } | Ended::StallTimeout { code } => {
            (code.map(Into::into), None)
        }
        Ended::Stopped { code, signal } => (code.map(Into::into), signal.map(Into::into)),
        Ended::TemplateError | Ended::OutputsInvalid | Ended::NeverRan | Ended::Gone { .. } => {
            (None, None)
        }
    }
}

fn ending(report: &Report) -> Ending {
    match &report.ended {
        Ended::Exit { code } if report.oom && report.asked.is_none() => Ending::OutOfMemory(*code),
        // As a shell names it.
        Ended::Signal { signal } if report.oom => {
            Ending::OutOfMemory(u8::try_from(signal.saturating_add(128)).unwrap_or(137))
        }
        Ended::Exit { code } => Ending::Exit(*code),
        Ended::Signal { signal } => Ending::Signal(*signal),
        Ended::CouldNotExec { code } => Ending::CouldNotExec(*code),
        Ended::ExecutionTimeout { code } => Ending::ExecutionTimeout(*code),
        Ended::StallTimeout { code } => Ending::StallTimeout(*code),
        Ended::Stopped { .. } => Ending::Stopped,
        Ended::TemplateError => Ending::Unusable(Unusable::Template),
        Ended::OutputsInvalid => Ending::Unusable(Unusable::Outputs),
        Ended::NeverRan => Ending::NeverRan,
        // Only the death of a worker or a host may be a sign of poison: not that of a shim beside a worker
        // that lives and says so, nor a task that fenced itself or was drained away.
        Ended::Gone { evidence } => Ending::Gone(match evidence.as_str() {
            "self_fence" | "drain" | "exit_status" => Death::Orderly,
            _ => Death::Single,
        }),
    }
}

fn asked(asked: AskedFor) -> Asked {
    match asked {
        AskedFor::Success => Asked::Success,
        AskedFor::Skip => Asked::Skip,
        AskedFor::Fail => Asked::Fail,
        AskedFor::Retry { after_ms } => Asked::Retry { after: after_ms.map(Span::from_millis) },
        AskedFor::Hold => Asked::Hold,
        AskedFor::Defer { wait } => Asked::Defer(wait),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(ended: Ended, oom: bool) -> Report {
        let token = String::new();
        let (asked, outputs, level, message, checkpoint) = (None, Vec::new(), None, None, None);
        Report { token, ended, asked, outputs, level, message, oom, checkpoint }
    }

    #[test]
    fn what_ran_out_of_memory_is_named_as_a_shell_does() {
        let of = |ended| ending(&report(ended, true));
        assert_eq!(of(Ended::Signal { signal: 9 }), Ending::OutOfMemory(137));
        assert_eq!(of(Ended::Exit { code: 3 }), Ending::OutOfMemory(3));
        assert_eq!(ending(&report(Ended::Signal { signal: 9 }, false)), Ending::Signal(9));
    }

    #[test]
    fn a_shim_that_dies_beside_its_worker_is_no_sign_of_poison() {
        let death =
            |evidence: &str| ending(&report(Ended::Gone { evidence: evidence.into() }, false));
        assert_eq!(death("exit_status"), Ending::Gone(Death::Orderly));
        assert_eq!(death("self_fence"), Ending::Gone(Death::Orderly));
        assert_eq!(death("drain"), Ending::Gone(Death::Orderly));
        assert_eq!(death("successor"), Ending::Gone(Death::Single));
        assert_eq!(death("boot_id"), Ending::Gone(Death::Single));
    }
}
