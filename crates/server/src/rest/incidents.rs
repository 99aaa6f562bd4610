//! Incidents: the list, one with its attempts, and a person's word that it is over.

use super::answer::{Answer, Done};
use super::call::Call;
use super::dag_view::time;
use super::failure::Failure;
use super::runs::check_text;
use super::{attempt_view, cursor};
use fencepost_api::problem::ProblemCode;
use fencepost_api::rest::{Action, Incident, IncidentDetail, IncidentQuery, LostAttempt, Ramp};
use fencepost_core::id::Token;
use fencepost_engine::liveness::incidents;
use fencepost_store::Tx;
use fencepost_store::query::attempt::afterwards;
use fencepost_store::query::{attempt, incident, ramp, vitals};
use std::collections::BTreeMap;

/// Attempts that are shown with an incident.
const SHOWN: u32 = 1_000;

pub(super) async fn list(call: &Call) -> Done {
    let query: IncidentQuery = call.query()?;
    let limit = cursor::limit(query.limit);
    let before = match cursor::read::<1>("incidents", query.cursor.as_deref())? {
        Some([id]) => cursor::number(&id)?,
        None => i64::MAX,
    };
    let tx = call.read().await?;
    let found = if query.open {
        incident::page_open(&tx, before, limit + 1).await?
    } else {
        incident::page(&tx, before, limit + 1).await?
    };
    let place = |one: &incident::Incident| cursor::write("incidents", &[&one.id.to_string()]);
    let (found, next) = cursor::cut(found, limit, place);
    let mut rows = Vec::new();
    for one in found {
        rows.push(wire(&tx, one).await?);
    }
    Answer::ok(&cursor::page(rows, next))
}

/// The incident that the address names: `inc-204`, or its number.
async fn find(call: &Call, tx: &Tx) -> Result<incident::Incident, Failure> {
    let name = call.arg(0);
    let number = name.strip_prefix("inc-").unwrap_or(name).parse::<i64>();
    let found = match number {
        Ok(id) => incident::get(tx, id).await?,
        Err(_) => None,
    };
    found.ok_or_else(|| {
        Failure::new(ProblemCode::NoSuchIncident, format!("there is no incident `{name}`"))
            .suggest("see  fencepost incidents list")
    })
}

pub(super) async fn show(call: &Call) -> Done {
    let tx = call.read().await?;
    let found = find(call, &tx).await?;
    let tokens = afterwards::of_incident(&tx, found.id, 0, SHOWN).await?;
    let replaced: BTreeMap<Token, Token> =
        afterwards::replaced_by(&tx, &tokens).await?.into_iter().collect();
    let rows = attempt::get(&tx, &tokens).await?;
    let lost = attempt_view::attempts(&tx, rows).await?.into_iter().map(|attempt| {
        let own = attempt.token.parse().ok().and_then(|token: Token| replaced.get(&token));
        let replaced_by = own.map(|token| token.as_i64().to_string());
        LostAttempt { attempt, replaced_by }
    });
    let attempts = lost.collect();
    let ramps = ramps(&tx).await?;
    Answer::ok(&IncidentDetail { incident: wire(&tx, found).await?, attempts, ramps })
}

async fn ramps(tx: &Tx) -> Result<Vec<Ramp>, Failure> {
    let queued = vitals::queued(tx).await?;
    let ramps = ramp::list(tx).await?.into_iter().map(|(pool, ramp)| {
        let own = queued.iter().filter(|one| one.ramp == pool);
        let waiting = u64::try_from(own.map(|one| one.count).sum::<i64>()).unwrap_or(0);
        Ramp { pool, rate_milli: ramp.rate, waiting }
    });
    Ok(ramps.collect())
}

pub(super) async fn close(call: &Call) -> Done {
    let action: Action = call.body()?;
    check_text("/reason", action.reason.as_deref())?;
    let Some(reason) = action.reason.filter(|reason| !reason.trim().is_empty()) else {
        return Err(Failure::field("/reason", "why nothing of it has to be looked after any more"));
    };
    let found = {
        let tx = call.read().await?;
        find(call, &tx).await?
    };
    if !incidents::close_by_hand(call.cx(), found.id, call.by(), &reason).await? {
        let text = format!("{} is closed already", incidents::name(found.id));
        return Err(Failure::new(ProblemCode::AlreadyTerminal, text));
    }
    let tx = call.read().await?;
    let found = find(call, &tx).await?;
    Answer::ok(&wire(&tx, found).await?)
}

async fn wire(tx: &Tx, found: incident::Incident) -> Result<Incident, Failure> {
    let uncertain = afterwards::uncertain(tx, found.id, found.job_id).await?;
    let known = |key: &str| found.evidence[key].as_str().map(ToOwned::to_owned);
    Ok(Incident {
        id: incidents::name(found.id),
        state: if found.closed_at.is_some() { "closed" } else { "open" }.into(),
        kind: found.kind.clone(),
        job: found.job_id.to_string(),
        job_kind: known("job_kind"),
        worker: known("worker"),
        host: known("host"),
        at: found.at.to_string(),
        declared_by: found.declared_by.clone(),
        observed_for: known("observed_for"),
        attempt_count: u64::try_from(found.attempts).unwrap_or(0),
        may_still_run: u64::try_from(uncertain).unwrap_or(0),
        settled_at: time(found.settled_at),
        closed_at: time(found.closed_at),
        closed_by: found.closed_by.clone(),
        close_reason: found.close_reason.clone(),
        evidence: found.evidence,
    })
}
