//! The transition log: by page, and as a long poll.

use super::answer::{Answer, Done};
use super::call::Call;
use super::failure::Failure;
use super::{attempts, cursor};
use fencepost_api::rest::{Event, EventQuery, Evidence, ListQuery};
use fencepost_engine::operations::find_run;
use fencepost_store::query::event::Logged;
use fencepost_store::query::listing;
use fencepost_store::query::listing::events::EventFilter;

pub(super) async fn list(call: &Call) -> Done {
    let query: EventQuery = call.query()?;
    let limit = cursor::limit(query.limit);
    let filter = filter(call, &query).await?;
    let after = query.after.unwrap_or(0);
    let found = call
        .poll(query.wait_ms, true, || async {
            let tx = call.read().await?;
            let found = listing::events::page(&tx, after, &filter, limit + 1).await?;
            let worth = !found.is_empty();
            Ok((found, worth))
        })
        .await?;
    page(found, limit)
}

async fn filter(call: &Call, query: &EventQuery) -> Result<EventFilter, Failure> {
    let tx = call.read().await?;
    let run_pk = match (&query.dag_id, &query.run_id) {
        (Some(dag_id), Some(run_id)) => Some(find_run(&tx, dag_id, run_id).await?.run_pk),
        (None, Some(_)) => {
            return Err(Failure::field("?run_id", "needs dag_id: run ids are names within a DAG"));
        }
        (_, None) => None,
    };
    let token = match &query.attempt {
        Some(text) => Some(attempts::find(&tx, text).await?.token),
        None => None,
    };
    Ok(EventFilter {
        run_pk,
        token,
        dag_id: query.dag_id.clone().unwrap_or_default(),
        task_id: query.task_id.clone().unwrap_or_default(),
        map_index: query.map_index,
        kinds: kinds(query.kind.as_deref())?,
    })
}

fn kinds(text: Option<&str>) -> Result<String, Failure> {
    let words = text.unwrap_or_default().split(',').map(str::trim).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    let is_word = |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    match words.iter().find(|word| !is_word(word)) {
        Some(odd) => Err(Failure::field("?kind", format!("`{odd}` is not a kind of event"))),
        None => Ok(listing::words(words)),
    }
}

pub(super) async fn of_attempt(call: &Call) -> Done {
    page_of_attempt(call, String::new()).await
}

/// What an attempt tried after its end, and was refused.
pub(super) async fn refused_writes(call: &Call) -> Done {
    page_of_attempt(call, listing::words(vec!["write_refused"])).await
}

async fn page_of_attempt(call: &Call, kinds: String) -> Done {
    let query: ListQuery = call.query()?;
    let limit = cursor::limit(query.limit);
    let after = match cursor::read::<1>("events", query.cursor.as_deref())? {
        Some([seq]) => cursor::number(&seq)?,
        None => 0,
    };
    let tx = call.read().await?;
    let token = Some(attempts::find(&tx, call.arg(0)).await?.token);
    let filter = EventFilter { token, kinds, ..EventFilter::default() };
    page(listing::events::page(&tx, after, &filter, limit + 1).await?, limit)
}

fn page(found: Vec<Logged>, limit: u32) -> Done {
    let place = |event: &Logged| cursor::write("events", &[&event.seq.to_string()]);
    let (found, next) = cursor::cut(found, limit, place);
    Answer::ok(&cursor::page(found.into_iter().map(wire).collect(), next))
}

fn wire(event: Logged) -> Event {
    // What has a kind is evidence of an end; the rest is what the kind of event adds.
    let is_evidence = event.evidence.as_ref().is_some_and(|json| json["kind"].is_string());
    let (evidence, detail) = match event.evidence {
        Some(json) if is_evidence => match serde_json::from_value::<Evidence>(json.clone()) {
            Ok(evidence) => (Some(evidence), None),
            Err(_) => (None, Some(json)),
        },
        other => (None, other),
    };
    Event {
        seq: event.seq,
        at: event.at.to_string(),
        kind: event.kind,
        dag_id: event.dag_id,
        run_id: event.run_id,
        task_id: event.task_id,
        map_index: event.map_index,
        token: event.token.map(|token| token.as_i64().to_string()),
        actor: event.actor,
        from: event.from,
        to: event.to,
        reason: event.reason,
        evidence,
        detail,
    }
}
