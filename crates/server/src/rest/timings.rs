//! The schedules of DAG versions, kept: a version never changes, and a list of DAGs would decode
//! one for each row.

use super::failure::Failure;
use fencepost_core::schedule::Timing;
use fencepost_engine::Cx;
use fencepost_engine::error::EngineError;
use fencepost_store::Tx;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Versions kept; beyond that it begins anew.
const KEPT: usize = 10_000;

/// The cache, by version key.
#[derive(Debug, Default)]
pub(super) struct Timings(Mutex<BTreeMap<i64, Read>>);

/// `None`: the version cannot be read by this build.
type Read = Option<Arc<Timing>>;

impl Timings {
    /// The schedule of a version.
    pub(super) async fn of(&self, cx: &Cx, tx: &Tx, version_pk: i64) -> Result<Read, Failure> {
        if let Some(found) = self.kept().get(&version_pk) {
            return Ok(found.clone());
        }
        let read = match cx.catalog.version(tx, version_pk).await {
            Ok(version) => Some(Arc::new(version.dag.timing.clone())),
            Err(EngineError::BadVersion { .. }) => None,
            Err(other) => return Err(other.into()),
        };
        let mut kept = self.kept();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(version_pk, read.clone());
        Ok(read)
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<i64, Read>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
