//! What a test does in the name of the first worker's process, which then says nothing of it: as if it
//! had died right there.

use super::World;
use fencepost_core::id::Token;
use fencepost_engine::operations::Answer;
use fencepost_engine::operations::claim::{Wants, claim};
use fencepost_engine::operations::start::{StartRequest, start};

impl World {
    /// Of that many, what the worker is given.
    pub(crate) async fn claim_by_hand(&self, free_slots: u32) -> Vec<Token> {
        let (job, queues) = (self.workers[0].job.unwrap(), ["default".to_owned()]);
        let wants = Wants { call: 0, held: &[], queues: &queues, free_slots };
        let work = claim(&self.cx, job, &wants).await.unwrap();
        work.claimed.iter().map(|(attempt, _)| attempt.token).collect()
    }

    /// The one attempt there is.
    pub(crate) async fn claim_one(&self) -> Token {
        self.claim_by_hand(1).await[0]
    }

    /// The start is asked for under that id, whoever has the attempt.
    pub(crate) async fn start_by_hand(&self, token: Token, start_id: &str) -> Answer {
        let job = self.workers[0].job.unwrap();
        let (start_id, boot_id) = (start_id.to_owned(), "boot".to_owned());
        let request = StartRequest { token, start_id, boot_id, call: 0 };
        start(&self.cx, job, &[request]).await.unwrap().remove(0)
    }
}
