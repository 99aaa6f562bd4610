//! The execution API as a worker calls it: each call goes over the network.

use super::Network;
use fencepost_api::execution::{
    Answer, Beat, Beaten, ExecutionApi, LogAnswer, LogPiece, Poll, Polled, Register, Registered,
    Reply, Report, Start, TakeOver,
};
use std::time::Duration;

impl ExecutionApi for Network {
    fn register(&self, request: Register) -> Reply<'_, Registered> {
        Box::pin(self.call("register", Duration::ZERO, move |api| {
            let request = request.clone();
            Box::pin(async move { api.register(request).await })
        }))
    }

    fn take_over(&self, request: TakeOver) -> Reply<'_, Answer> {
        Box::pin(self.call("take_over", Duration::ZERO, move |api| {
            let request = request.clone();
            Box::pin(async move { api.take_over(request).await })
        }))
    }

    fn poll(&self, request: Poll) -> Reply<'_, Polled> {
        let wait = Duration::from_millis(request.wait_ms);
        Box::pin(self.call("poll", wait, move |api| {
            let request = request.clone();
            Box::pin(async move { api.poll(request).await })
        }))
    }

    fn start(&self, job_id: &str, starts: Vec<Start>) -> Reply<'_, Vec<Answer>> {
        let job_id = job_id.to_owned();
        Box::pin(self.call("start", Duration::ZERO, move |api| {
            let (job_id, starts) = (job_id.clone(), starts.clone());
            Box::pin(async move { api.start(&job_id, starts).await })
        }))
    }

    fn report(&self, job_id: &str, reports: Vec<Report>) -> Reply<'_, Vec<Answer>> {
        let job_id = job_id.to_owned();
        Box::pin(self.call("report", Duration::ZERO, move |api| {
            let (job_id, reports) = (job_id.clone(), reports.clone());
            Box::pin(async move { api.report(&job_id, reports).await })
        }))
    }

    fn beat(&self, request: Beat) -> Reply<'_, Beaten> {
        Box::pin(self.call("beat", Duration::ZERO, move |api| {
            let request = request.clone();
            Box::pin(async move { api.beat(request).await })
        }))
    }

    fn release(&self, job_id: &str, tokens: Vec<String>) -> Reply<'_, Vec<Answer>> {
        let job_id = job_id.to_owned();
        Box::pin(self.call("release", Duration::ZERO, move |api| {
            let (job_id, tokens) = (job_id.clone(), tokens.clone());
            Box::pin(async move { api.release(&job_id, tokens).await })
        }))
    }

    fn logs(&self, job_id: &str, pieces: Vec<LogPiece>) -> Reply<'_, Vec<LogAnswer>> {
        let job_id = job_id.to_owned();
        Box::pin(self.call("logs", Duration::ZERO, move |api| {
            let (job_id, pieces) = (job_id.clone(), pieces.clone());
            Box::pin(async move { api.logs(&job_id, pieces).await })
        }))
    }

    fn leave(&self, job_id: &str) -> Reply<'_, ()> {
        let job_id = job_id.to_owned();
        Box::pin(self.call("leave", Duration::ZERO, move |api| {
            let job_id = job_id.clone();
            Box::pin(async move { api.leave(&job_id).await })
        }))
    }
}
