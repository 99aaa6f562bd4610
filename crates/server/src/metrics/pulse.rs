//! What the store says of the installation: the same whichever process is asked.

use fencepost_core::time::Timestamp;
use fencepost_engine::Cx;
use fencepost_store::StoreError;
use fencepost_store::query::callback;
use fencepost_store::query::installation::{self, Standing};
use fencepost_store::query::pool::{self, Pool};
use fencepost_store::query::ramp;
use fencepost_store::query::vitals::{self, Effects, Figures, Jobs, Queued, Scheduled};
use std::collections::BTreeSet;
use tokio::try_join;

/// One reading.
#[derive(Debug)]
pub(super) struct Pulse {
    pub(super) now: Timestamp,
    pub(super) jobs: Vec<Jobs>,
    pub(super) queued: Vec<Queued>,
    /// Queues that running workers serve.
    pub(super) served: BTreeSet<String>,
    pub(super) scheduled: Vec<Scheduled>,
    pub(super) open: Vec<(String, i64)>,
    pub(super) held: Vec<(String, i64)>,
    pub(super) runs: Vec<(String, i64)>,
    pub(super) pools: Vec<Pool>,
    /// Starts a second, by pool.
    pub(super) ramps: Vec<(String, f64)>,
    pub(super) effects: Effects,
    pub(super) callbacks: callback::Counts,
    pub(super) figures: Figures,
    pub(super) standing: Option<Standing>,
}

impl Pulse {
    /// Reads it, in one snapshot.
    pub(super) async fn read(cx: &Cx) -> Result<Self, StoreError> {
        let tx = cx.store.read("metrics").await?;
        let (jobs, queued, served, scheduled, open, held, runs) = try_join!(
            biased;
            vitals::jobs(&tx),
            vitals::queued(&tx),
            vitals::served(&tx),
            vitals::scheduled(&tx),
            vitals::open(&tx),
            vitals::held(&tx),
            vitals::runs(&tx),
        )?;
        let (pools, ramps, effects, callbacks, figures, standing) = try_join!(
            biased;
            pool::list(&tx),
            ramp::list(&tx),
            vitals::effects(&tx),
            callback::counts(&tx),
            vitals::figures(&tx),
            installation::standing(&tx),
        )?;
        let rate = |(pool, ramp): (String, fencepost_core::ramp::Ramp)| {
            (pool, f64::from(ramp.rate) / 1_000.0)
        };
        let ramps = ramps.into_iter().map(rate).collect();
        let now = tx.now();
        Ok(Self {
            now,
            jobs,
            queued,
            served,
            scheduled,
            open,
            held,
            runs,
            pools,
            ramps,
            effects,
            callbacks,
            figures,
            standing,
        })
    }
}
