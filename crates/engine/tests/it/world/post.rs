//! The outside that callbacks are delivered to: it outlives every crash, and knows repeats by their id.

use fencepost_core::callback::Callback;
use fencepost_engine::callbacks::{CallbackPass, Courier, Delivery, Told};
use fencepost_engine::error::EngineError;
use fencepost_engine::{Cx, Pass, Report};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

/// Receivers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Post {
    arrived: Arc<Mutex<Vec<Delivery>>>,
    /// What a receiver answers instead of taking it, by its address.
    pub(crate) refuses: Arc<Mutex<BTreeMap<String, String>>>,
    /// How often somebody asked.
    asked: Arc<Mutex<usize>>,
}

impl Post {
    /// What arrived, each id once, in order of the texts.
    pub(crate) fn told(&self) -> Vec<String> {
        let arrived = self.arrived.lock().unwrap();
        let by_id: BTreeMap<&str, String> =
            arrived.iter().map(|one| (one.id.as_str(), text(one))).collect();
        let mut told: Vec<String> = by_id.into_values().collect();
        told.sort();
        told
    }

    pub(crate) fn deliveries(&self) -> Vec<Delivery> {
        self.arrived.lock().unwrap().clone()
    }

    pub(crate) fn asked(&self) -> usize {
        *self.asked.lock().unwrap()
    }

    pub(crate) fn refuse(&self, target: &str, why: Option<&str>) {
        let mut refuses = self.refuses.lock().unwrap();
        match why {
            Some(why) => drop(refuses.insert(target.into(), why.into())),
            None => drop(refuses.remove(target)),
        }
    }
}

fn text(delivery: &Delivery) -> String {
    match &delivery.callback {
        Callback::Slack { text, .. } => text.clone(),
        Callback::Webhook { body: Some(body), .. } => body.to_string(),
        Callback::Webhook { .. } => delivery.told.to_string(),
        Callback::Email { subject, .. } => subject.clone().unwrap_or_default(),
        Callback::TriggerDag { dag_id, .. } => dag_id.clone(),
        Callback::Run { script } => script.clone(),
    }
}

impl Courier for Post {
    fn deliver<'a>(
        &'a self,
        delivery: &'a Delivery,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        *self.asked.lock().unwrap() += 1;
        let refused = self.refuses.lock().unwrap().get(&delivery.callback.target()).cloned();
        if refused.is_none() {
            self.arrived.lock().unwrap().push(delivery.clone());
        }
        Box::pin(async move { refused.map_or(Ok(()), Err) })
    }
}

/// A pass whose deliveries come to their end within its turn.
pub(crate) struct Delivering(CallbackPass);

impl Delivering {
    pub(crate) fn to(post: &Post) -> Self {
        let told = Told { url: "http://fencepost".into(), ..Told::default() };
        Self(CallbackPass::new(Arc::new(post.clone()), told))
    }
}

impl Pass for Delivering {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn pass<'a>(
        &'a mut self,
        cx: &'a Cx,
    ) -> Pin<Box<dyn Future<Output = Result<Report, EngineError>> + Send + 'a>> {
        Box::pin(async move {
            let mut whole = self.0.pass(cx).await?;
            while self.0.is_delivering() {
                tokio::task::yield_now().await;
                let next = self.0.pass(cx).await?;
                whole.moved += next.moved;
                whole.next_due = next.next_due;
            }
            Ok(whole)
        })
    }
}
