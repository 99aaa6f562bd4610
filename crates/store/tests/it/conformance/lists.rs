//! The narrow statements of lists, API tokens and idempotency keys: each is run, on rows that it
//! finds, and their names are those of the sources.

use super::conformance;
use crate::place::{Passed, Place, ticking};
use crate::rows::{at, end, job_id, key, make, queue, settle, ti, worker};
use crate::statements::names_in;
use fencepost_core::hook::{HookVerdict, Hooks};
use fencepost_core::id::Token;
use fencepost_core::state::{AttemptState, JobKind, TiState};
use fencepost_core::time::Span;
use fencepost_store::query::api_token::{self, ApiToken};
use fencepost_store::query::dag::NewVersion;
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::idempotency::{self, Kept};
use fencepost_store::query::job::{self, Job};
use fencepost_store::query::listing::{attempts, dags, events, jobs, pools, runs, tasks};
use fencepost_store::query::{attempt, dag, lease, xcom};
use fencepost_store::{Store, Tx};
use serde_json::json;

conformance!(every_narrow_statement_answers);

async fn every_narrow_statement_answers(place: &impl Place) {
    let passed = Passed::default();
    let seen = passed.clone();
    let hook = Hooks::new(move |point| {
        seen.note(point);
        HookVerdict::Go
    });
    let store = place.open_with(ticking(), hook);
    let run_pk = settle(&store).await;
    let tokens = fill(&store, run_pk).await;
    passed.take();
    let tx = store.begin("lists").await.unwrap();
    lists_of_runs(&tx, run_pk).await;
    lists_of_dags(&tx).await;
    lists_of_attempts(&tx, run_pk, &tokens).await;
    lists_of_jobs(&tx).await;
    keys_and_secrets(&tx).await;
    let run: Vec<String> = passed
        .take()
        .into_iter()
        .filter_map(|point| point.strip_prefix("lists:").map(String::from))
        .collect();
    for name in names_in(&["query/listing", "query/api_token.rs", "query/idempotency.rs"]) {
        assert!(run.contains(&name), "{name} was not run");
    }
}

/// Two attempts, one of them ended; outputs, events, a version, a mistake in a file.
async fn fill(store: &Store, run_pk: i64) -> Vec<Token> {
    let tx = store.begin("fill").await.unwrap();
    make(&tx, &[ti(key(run_pk, 0), TiState::Success), ti(key(run_pk, 1), TiState::Scheduled)])
        .await;
    let tokens = queue(&tx, run_pk, 0, 2).await;
    attempt::end(&tx, &[end(tokens[0], AttemptState::Queued)]).await.unwrap();
    let output = ("rows".to_owned(), json!(12));
    let produced = xcom::Produced { ti: key(run_pk, 0), token: tokens[0], outputs: vec![output] };
    xcom::replace(&tx, &[produced]).await.unwrap();
    let line = Event {
        kind: "write_refused",
        dag_id: Some("d".into()),
        run_pk: Some(run_pk),
        task_id: Some("t0".into()),
        map_index: Some(-1),
        token: Some(tokens[0]),
        actor: "worker:w".into(),
        ..Event::default()
    };
    event::append(&tx, vec![line]).await.unwrap();
    let version = NewVersion {
        dag_id: "d",
        version: 1,
        content_hash: "hash",
        ir: &json!({}),
        source: "tasks: {}",
    };
    dag::insert_version(&tx, version).await.unwrap();
    dag::set_import_error(&tx, "bad.yaml", Some(&json!([]))).await.unwrap();
    tx.commit().await.unwrap();
    tokens
}

async fn lists_of_runs(tx: &Tx, run_pk: i64) {
    let filter = runs::RunFilter { states: ",running,".into(), ..runs::RunFilter::default() };
    let end = (at(i64::MAX), i64::MAX);
    let page = runs::page_of_dag(tx, "d", end, &filter, 9).await.unwrap();
    assert_eq!(page, [(at(10), run_pk)]);
    assert_eq!(runs::page(tx, i64::MAX, &filter, 9).await.unwrap(), page);
    let none = runs::RunFilter { prefix: "x".into(), ..runs::RunFilter::default() };
    assert_eq!(runs::page(tx, i64::MAX, &none, 9).await.unwrap(), []);
    let counts = runs::task_counts(tx, &[run_pk]).await.unwrap();
    let states: Vec<_> = counts.iter().map(|c| (c.state, c.count)).collect();
    assert_eq!(states, [(TiState::Scheduled, 1), (TiState::Success, 1)]);
    assert_eq!(runs::last_events(tx, &[run_pk]).await.unwrap().len(), 1);
    assert_eq!(runs::dots(tx, &["d"], 5).await.unwrap()[0].run_id, "r");
    assert_eq!(runs::count_active(tx, "d").await.unwrap(), 1);
    let keys = tasks::keys(tx, run_pk, &[(0, -2), (1, -2)], ",success,", 9).await.unwrap();
    assert_eq!(keys, [key(run_pk, 0)]);
    assert_eq!(tasks::outputs(tx, key(run_pk, 0)).await.unwrap()[0].value, json!(12));
}

async fn lists_of_dags(tx: &Tx) {
    let versions = dags::versions(tx, "d", i64::MAX, 9).await.unwrap();
    assert_eq!(versions.len(), 1);
    assert_eq!(dags::version_of(tx, "d", 1).await.unwrap().as_ref(), versions.first());
    let pk = versions[0].version_pk;
    assert_eq!(dags::version_numbers(tx, &[pk]).await.unwrap(), [(pk, 1)]);
    assert_eq!(dags::version_runs(tx, "d").await.unwrap(), [(1, 1)]);
    assert_eq!(dags::import_errors(tx, "", 9).await.unwrap()[0].0.fileloc, "bad.yaml");
    assert_eq!(dags::broken(tx, &["bad.yaml", "d.yaml"]).await.unwrap(), ["bad.yaml"]);
    let pool = pools::get(tx, "p").await.unwrap().unwrap();
    assert_eq!((pool.slots, pool.held, pool.waiting), (1_000, 0, 1));
    assert_eq!(pools::page(tx, "", 9).await.unwrap(), [pool]);
}

async fn lists_of_attempts(tx: &Tx, run_pk: i64, tokens: &[Token]) {
    let states =
        |states: &str| attempts::AttemptFilter { states: states.into(), ..Default::default() };
    let filter = states(",queued,running,ended,");
    assert_eq!(attempts::page(tx, 0, &filter, 9).await.unwrap(), tokens);
    let filter = states(",queued,");
    assert_eq!(attempts::page(tx, 0, &filter, 9).await.unwrap(), tokens[1..]);
    assert_eq!(attempts::of_ti(tx, key(run_pk, 0), 0, 9).await.unwrap(), tokens[..1]);
    assert_eq!(attempts::of_task(tx, run_pk, 1, 0, 9).await.unwrap(), tokens[1..]);
    assert_eq!(attempts::refused(tx, &tokens[..1]).await.unwrap(), [(tokens[0], 1)]);
    for filter in [
        events::EventFilter { run_pk: Some(run_pk), ..Default::default() },
        events::EventFilter { token: Some(tokens[0]), ..Default::default() },
        events::EventFilter { dag_id: "d".into(), ..Default::default() },
    ] {
        let page = events::page(tx, 0, &filter, 9).await.unwrap();
        assert_eq!(page.len(), 1, "{filter:?}");
        assert_eq!(page[0].run_id.as_deref(), Some("r"));
    }
}

/// The list shows what lives, and of what is over what a person may still do something about.
async fn lists_of_jobs(tx: &Tx) {
    let kind = JobKind::Worker;
    let all = jobs::JobFilter { kind, name: String::new(), all: true, lost_after: at(i64::MAX) };
    for job in jobs::page(tx, &all, ("", ""), 99).await.unwrap() {
        // Those of the other lists: they end here, and are taken off.
        job::stop(tx, job, false).await.unwrap();
        job::remove(tx, job).await.unwrap();
    }
    job::insert(tx, &Job { name: "lister".into(), ..worker(901) }).await.unwrap();
    let shown = jobs::JobFilter { all: false, ..all.clone() };
    assert_eq!(jobs::page(tx, &shown, ("", ""), 9).await.unwrap(), [job_id(901)]);
    let of_host = jobs::JobFilter { name: "h".into(), ..shown.clone() };
    assert_eq!(jobs::page(tx, &of_host, ("", ""), 9).await.unwrap(), [job_id(901)]);
    assert_eq!(
        jobs::page(tx, &of_host, ("lister", &job_id(901).to_string()), 9).await.unwrap(),
        []
    );
    assert_eq!(jobs::newest(tx, kind, "lister").await.unwrap(), Some(job_id(901)));
    assert!(job::drain(tx, job_id(901)).await.unwrap());
    assert!(job::resume(tx, job_id(901)).await.unwrap());
    assert!(!job::remove(tx, job_id(901)).await.unwrap(), "it lives");
    assert!(job::confirm_dead(tx, job_id(901), "{}").await.unwrap());
    assert!(!job::confirm_dead(tx, job_id(901), "{}").await.unwrap(), "it is dead already");
    let dead = jobs::load(tx, &[job_id(901)]).await.unwrap();
    assert_eq!((dead[0].leases, dead[0].evidence.as_deref()), (0, Some("{}")));
    // What it left is to be worked off first.
    assert_eq!(jobs::page(tx, &shown, ("", ""), 9).await.unwrap(), [job_id(901)]);
    assert!(!job::remove(tx, job_id(901)).await.unwrap());
    assert!(lease::settled(tx, job_id(901)).await.unwrap());
    assert_eq!(jobs::page(tx, &shown, ("", ""), 9).await.unwrap(), []);
    assert!(job::remove(tx, job_id(901)).await.unwrap());
}

async fn keys_and_secrets(tx: &Tx) {
    let token = ApiToken {
        id: "01".into(),
        name: "ci".into(),
        role: "admin".into(),
        created_at: at(1),
        expires_at: None,
        revoked_at: None,
        created_by: "setup".into(),
        used_at: None,
    };
    api_token::insert(tx, &token, "hash").await.unwrap();
    assert_eq!(api_token::by_hash(tx, "hash").await.unwrap().as_ref(), Some(&token));
    assert_eq!(api_token::get(tx, "01").await.unwrap().as_ref(), Some(&token));
    assert_eq!(api_token::page(tx, "", 9).await.unwrap(), [token]);
    api_token::used(tx, "01").await.unwrap();
    assert_eq!(api_token::get(tx, "01").await.unwrap().unwrap().used_at, Some(tx.now()));
    assert!(!api_token::revoke(tx, "01").await.unwrap(), "the last admin");
    assert_eq!(api_token::revoke_made_by(tx, "setup").await.unwrap(), 1);
    let day = Span::from_secs(86_400);
    let begun = Kept { digest: "a".into(), status: 0, body: String::new() };
    let done = Kept { status: 201, body: "{}".into(), ..begun.clone() };
    let other = Kept { digest: "b".into(), ..done.clone() };
    assert!(idempotency::put(tx, "k", &begun, day).await.unwrap());
    assert!(!idempotency::put(tx, "k", &other, day).await.unwrap(), "another request has it");
    assert!(idempotency::put(tx, "k", &done, day).await.unwrap());
    assert!(!idempotency::put(tx, "k", &done, day).await.unwrap(), "it is answered");
    idempotency::forget(tx, "k", "a").await.unwrap();
    assert_eq!(idempotency::find(tx, "k", day).await.unwrap(), Some(done));
    assert_eq!(idempotency::prune(tx, day).await.unwrap(), 0);
    assert_eq!(idempotency::prune(tx, Span::ZERO).await.unwrap(), 1);
}
