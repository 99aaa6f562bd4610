//! Lines of defence that are switched off, by the names of the promises that they keep, and the faults that
//! need them most.

use crate::fault::Kind;

/// A line of defence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defence {
    pub name: &'static str,
    /// The product's names of the guards.
    pub guards: &'static str,
    /// Faults that show what it is for.
    pub aim: &'static [Kind],
    /// One at a time, so that one's damage is not taken for the other's.
    pub alone: bool,
}

/// All that can be switched off here; the simulator does so with every guard.
pub const ALL: [Defence; 5] = [
    Defence {
        name: "no-token-check",
        guards: "finish_token,start_token",
        aim: &[Kind::StopWorker, Kind::CutWorker, Kind::HalfOpenWorker],
        alone: false,
    },
    Defence {
        name: "no-self-fence",
        guards: "local_deadline",
        aim: &[Kind::CutWorker, Kind::RefuseWorker, Kind::StopWorker],
        alone: false,
    },
    Defence {
        name: "no-observation",
        guards: "full_ttl,fit_to_judge,brake",
        aim: &[Kind::StopStore, Kind::NoServers],
        alone: false,
    },
    Defence {
        name: "no-owner-word",
        guards: "owner_word",
        aim: &[Kind::TwoInOneHome],
        alone: true,
    },
    Defence {
        name: "no-epoch",
        guards: "epoch,epoch_reconciling",
        aim: &[Kind::Promote],
        alone: false,
    },
];

/// The one of that name.
pub fn find(name: &str) -> Option<Defence> {
    ALL.into_iter().find(|defence| defence.name == name)
}
