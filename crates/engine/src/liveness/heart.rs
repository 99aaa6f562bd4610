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
        let beat = self.own.beat((self.cx.env.boottime)());
        let deadline = self.own.lease().heartbeat_interval;
        tokio::select! {
            biased;
            answer = self.renew(beat) => match answer {
                Ok(Renewed::Yes) => {
                    self.own.acknowledged(beat);
                    Beaten::Renewed
                }
                Ok(Renewed::Old) => Beaten::Missed("a later beat came first".into()),
                Ok(Renewed::Over(_) | Renewed::Unknown) => Beaten::Over,
                Err(error) => Beaten::Missed(error.to_string()),
            },
            () = sleep(deadline) => Beaten::Missed(format!("no answer within {deadline}")),
        }
    }

    async fn renew(&self, beat: Beat) -> Result<Renewed, EngineError> {
        let loop_age = self.own.loop_age((self.cx.env.boottime)());
        let sent = super::Beat { job: self.own.job_id, seq: beat.seq, loop_age };
        let answers = super::renew(&self.cx, &[sent]).await?;
        Ok(answers.first().map_or(Renewed::Unknown, |(_, answer)| *answer))
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
            match self.beat_once(&sleep).await {
                Beaten::Over => return self.over(),
                Beaten::Renewed => interval = self.interval().await.unwrap_or(interval),
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

    async fn interval(&self) -> Result<Span, EngineError> {
        let most = self.own.lease().heartbeat_interval;
        let tx = self.cx.store.read("shortest_lease").await?;
        let shortest = lease::shortest_ttl(&tx).await?;
        Ok(shortest.map_or(most, |ttl| most.min(ttl.over(5)).max(Span::from_millis(50))))
    }
}
