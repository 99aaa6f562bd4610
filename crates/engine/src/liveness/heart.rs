//! The heart of a role: it renews the lease of one job, and nothing else can hold it up.
//!
//! In production a thread of its own runs [`Heart::run`] on a runtime of its own, with a store handle of
//! its own; a simulator polls the same future. Every call has a deadline. A beat also carries the age
//! of the main loop's last turn: a role whose loop stands still is alive, and is shown as stalled.

use super::Own;
use crate::Cx;
use crate::error::EngineError;
use fencepost_core::liveness::{Beat, Phase};
use fencepost_core::time::Span;
use fencepost_store::query::lease::{self, Renewed};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::try_join;

/// What came of a beat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beaten {
    Renewed,
    /// No answer in time, or an error: the next beat follows.
    Missed(String),
    /// The job is over: lost, stopped or gone. It must register anew.
    Over,
}

/// Why a heart stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// It was asked to.
    Asked,
    /// Its job is over, or its lease is.
    Over,
}

/// Beats for one job. Its context must not be the guarded one: the assertion would only repeat what
/// the renewal decides, and its store must not be shared with the passes.
#[derive(Debug, Clone)]
pub struct Heart {
    cx: Cx,
    own: Arc<Own>,
}

impl Heart {
    /// A heart on a store handle of its own.
    pub const fn new(cx: Cx, own: Arc<Own>) -> Self {
        Self { cx, own }
    }

    /// One beat. `sleep` bounds the call.
    pub async fn beat_once<S, F>(&self, sleep: &S) -> Beaten
    where
        S: Fn(Span) -> F,
        F: Future<Output = ()>,
    {
        self.beat(sleep).await.0
    }

    /// A beat, and the shortest lease of the installation if that was read.
    async fn beat<S, F>(&self, sleep: &S) -> (Beaten, Option<Span>)
    where
        S: Fn(Span) -> F,
        F: Future<Output = ()>,
    {
        let beat = self.own.beat((self.cx.env.boottime)());
        let deadline = self.own.lease().heartbeat_interval;
        tokio::select! {
            biased;
            answer = self.renew(beat) => match answer {
                Ok((Renewed::Yes, shortest)) => {
                    self.own.acknowledged(beat);
                    (Beaten::Renewed, shortest)
                }
                Ok((Renewed::Old, _)) => (Beaten::Missed("a later beat came first".into()), None),
                Ok((Renewed::Over(_) | Renewed::Unknown, _)) => (Beaten::Over, None),
                Err(error) => (Beaten::Missed(error.to_string()), None),
            },
            () = sleep(deadline) => (Beaten::Missed(format!("no answer within {deadline}")), None),
        }
    }

    /// One transaction: an idle role makes few.
    async fn renew(&self, beat: Beat) -> Result<(Renewed, Option<Span>), EngineError> {
        let loop_age = self.own.loop_age((self.cx.env.boottime)());
        let sent = super::Beat { job: self.own.job_id, seq: beat.seq, loop_age };
        let mut renewals = super::renewals(&self.cx, &[sent]);
        let tx = self.cx.store.begin("renew_leases").await?;
        let (answers, shortest) =
            try_join!(biased; lease::renew(&tx, &mut renewals), lease::shortest_ttl(&tx))?;
        tx.commit().await?;
        Ok((answers.first().map_or(Renewed::Unknown, |(_, answer)| *answer), shortest))
    }

    /// Beats until it is asked to stop or its job is over.
    ///
    /// The interval follows the shortest lease of the installation: servers are how workers are heard,
    /// so they are heard well within a worker's TTL.
    pub async fn run<S, F>(self, sleep: S, mut stop: watch::Receiver<bool>) -> Stopped
    where
        S: Fn(Span) -> F,
        F: Future<Output = ()>,
    {
        let mut interval = self.own.lease().heartbeat_interval;
        while !*stop.borrow() {
            let (beaten, shortest) = self.beat(&sleep).await;
            match beaten {
                Beaten::Over => return self.over(),
                Beaten::Renewed => interval = self.interval(shortest),
                Beaten::Missed(_) => {}
            }
            if self.own.phase((self.cx.env.boottime)()) == Phase::Over {
                return self.over();
            }
            tokio::select! {
                biased;
                () = sleep(interval) => {}
                changed = stop.changed() => if changed.is_err() { return Stopped::Asked },
            }
        }
        Stopped::Asked
    }

    fn over(&self) -> Stopped {
        self.own.end();
        Stopped::Over
    }

    fn interval(&self, shortest: Option<Span>) -> Span {
        let most = self.own.lease().heartbeat_interval;
        shortest.map_or(most, |ttl| most.min(ttl.over(5)).max(Span::from_millis(50)))
    }
}
