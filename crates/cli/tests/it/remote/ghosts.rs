//! What the store shows in a worker's hands, and the worker knows nothing of: it is asked, and its answer
//! acts.

use super::installation::{Installation, wait_for};
use fencepost_core::id::JobId;
use fencepost_core::state::{AttemptState, JobKind, Outcome};
use fencepost_engine::operations::claim::{Wants, claim};
use fencepost_engine::operations::start::{StartRequest, start};
use fencepost_store::query::attempt::{self, Attempt};
use fencepost_store::query::{job, run, task_instance};

async fn worker_job(own: &Installation) -> JobId {
    let found = async || {
        let tx = own.cx.store.read("test").await.unwrap();
        let live = job::live(&tx).await.unwrap();
        live.into_iter().find(|job| job.kind == JobKind::Worker).map(|job| job.job_id)
    };
    wait_for("the worker to register", async || found().await.is_some()).await;
    found().await.unwrap()
}

async fn attempts(own: &Installation, run_id: &str) -> Vec<Attempt> {
    let tx = own.cx.store.read("test").await.unwrap();
    let run = run::get(&tx, "one", run_id).await.unwrap().unwrap();
    // Instances are made when the run starts.
    match task_instance::of_tasks(&tx, run.run_pk, &[0]).await.unwrap().first() {
        Some(ti) => attempt::of_ti(&tx, ti.key).await.unwrap(),
        None => Vec::new(),
    }
}

/// The replies to a claim and to a start were lost for good: the worker says that it never ran, and it
/// is replaced within six beats.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ghost_is_asked_about_and_replaced() {
    let own = Installation::new().await;
    let worker = own.worker("home");
    let job = worker_job(&own).await;
    // On a queue that the worker does not ask for: it is claimed and started in its name alone.
    own.load("one.yaml", "dag_id: one\ntasks:\n  t: {run: 'true', queue: other}\n").await;
    let run = own.trigger("one").await;
    let queues = ["other".to_owned()];
    let wants = Wants { call: 0, held: &[], queues: &queues, free_slots: 1 };
    let mut claimed = Vec::new();
    wait_for("the task to be queued", async || !attempts(&own, &run).await.is_empty()).await;
    for (own, _) in claim(&own.cx, job, &wants).await.unwrap().claimed {
        claimed.push(own.token);
    }
    let (start_id, boot_id) = ("s".to_owned(), "boot".to_owned());
    let request = StartRequest { token: claimed[0], start_id, boot_id, call: 0 };
    start(&own.cx, job, &[request]).await.unwrap();
    wait_for("the ghost to be replaced", async || attempts(&own, &run).await.len() == 2).await;
    let found = attempts(&own, &run).await;
    assert_eq!(found[0].outcome, Some(Outcome::NeverRan));
    assert_eq!((found[1].state, found[1].try_number), (AttemptState::Queued, 1));
    worker.stop().await;
}
