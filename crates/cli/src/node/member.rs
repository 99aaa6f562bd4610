//! A role's place among the others: the job that it is, and the heart that keeps its lease.
//!
//! The heart is a thread of its own with a runtime and a connection of its own, so that nothing that
//! this process does can hold it up. Once the lease is over whatever acted under it is dropped, and
//! the role becomes a new job.

use super::journal::{Journal, Level};
use super::surroundings::pause;
use super::{ended_thread, identity, shared};
use crate::config::Settings;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use fencepost_core::liveness::Phase;
use fencepost_core::state::JobKind;
use fencepost_engine::Cx;
use fencepost_engine::liveness::{Heart, Own, enroll};
use fencepost_engine::meters::FENCED;
use fencepost_engine::operations::register;
use fencepost_store::Store;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;

/// Before another attempt to open the heart's connection, or to become a new job.
const AGAIN: Duration = Duration::from_secs(1);
/// How often it is looked whether the lease is over.
const LOOK: Duration = Duration::from_millis(250);

/// A role that is a job.
pub(super) struct Member {
    /// Guarded: what it writes is refused once its lease is over.
    pub(super) cx: Cx,
    own: Arc<Own>,
    stop: watch::Sender<bool>,
    heart: JoinHandle<()>,
}

/// What it takes to become a member.
#[derive(Clone)]
pub(super) struct Membership {
    /// Not guarded.
    pub(super) cx: Cx,
    pub(super) settings: Settings,
    pub(super) kind: JobKind,
    pub(super) journal: Arc<Journal>,
}

impl Membership {
    /// Becomes a job with a lease.
    pub(super) async fn join(&self) -> Outcome<Member> {
        let lease = shared::lease(&self.settings, self.kind)?;
        let who = identity::of_role(&self.cx, self.kind);
        let cx = enroll(&self.cx, &who, lease)
            .await
            .map_err(|error| CliError::new(Exit::Unexpected, error.to_string()))?;
        let own = cx.own.clone().ok_or_else(|| {
            CliError::new(Exit::Unexpected, "the job was registered without a lease")
        })?;
        let (stop, stopped) = watch::channel(false);
        let heart = self.start_heart(Arc::clone(&own), stopped)?;
        Ok(Member { cx, own, stop, heart })
    }

    /// Becomes a new job, as soon as the store lets it; `None` if `stop` comes before.
    pub(super) async fn join_again(&self, stop: &mut watch::Receiver<bool>) -> Option<Member> {
        loop {
            tokio::select! {
                joined = self.join() => match joined {
                    Ok(member) => return Some(member),
                    Err(error) => {
                        self.say("cannot_register", &format!("cannot register again: {error}"));
                    }
                },
                () = told(stop) => return None,
            }
            tokio::select! {
                () = pause(AGAIN) => {}
                () = told(stop) => return None,
            }
        }
    }

    /// Its lease was over before it knew: what it believed is dropped.
    pub(super) fn fenced(&self) {
        self.cx.meters.count(FENCED, self.kind.as_str());
        self.say("fenced", "its lease is over: it registers anew");
    }

    fn say(&self, kind: &str, text: &str) {
        self.journal.say(Level::Warn, kind, text);
    }

    fn start_heart(&self, own: Arc<Own>, stop: watch::Receiver<bool>) -> Outcome<JoinHandle<()>> {
        let membership = self.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("heart".into()).stack_size(1 << 20);
        Ok(thread.spawn(move || runtime.block_on(membership.beat(own, stop)))?)
    }

    async fn beat(self, own: Arc<Own>, mut stop: watch::Receiver<bool>) {
        let store = tokio::select! {
            store = self.store_of_heart() => store,
            () = told(&mut stop) => return,
        };
        let heart = Heart::new(self.cx.on(&store), own);
        heart.run(|span| pause(span.to_std()), stop).await;
        // The passes look at the lease with their next turn.
        self.cx.wakes.engine();
    }

    async fn store_of_heart(&self) -> Store {
        loop {
            match shared::open_for_heart(&self.settings, self.kind).await {
                Ok(store) => return store,
                Err(error) => {
                    self.say("no_heart", &format!("the heart has no connection: {error}"));
                }
            }
            pause(AGAIN).await;
        }
    }
}

impl Member {
    /// Ready once its lease is over. Until then each look is a turn: where calls are served, it shows
    /// that what serves them goes round.
    pub(super) async fn over(&self) {
        loop {
            let now = (self.cx.env.boottime)();
            if self.own.phase(now) != Phase::Acting {
                return;
            }
            self.own.turned(now);
            pause(LOOK).await;
        }
    }

    /// Gives its lease up without a word: it is over already.
    pub(super) async fn drop_lease(self) {
        // Its heart has ended already, or ends now.
        let _ = self.stop.send(true);
        ended_thread(&self.heart).await;
    }

    /// Leaves in order: the others need not wait for its lease.
    pub(super) async fn leave(self) {
        // What cannot be written now is seen by the others when the lease ends.
        let _ = register::leave(&self.cx, self.own.job_id).await;
        self.drop_lease().await;
    }
}

/// Ready once it is true, or whoever would say so is gone.
pub(super) async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
