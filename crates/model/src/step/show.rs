//! Steps as people read them in a trace.

use super::{Fault, Mend, Step, name_of};
use crate::state::{Intent, Letter, Way};
use crate::store::declare;
use core::fmt;

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Straight => "",
            Self::LateRequest => " (the request is late, and given up)",
            Self::LateReply => " (the answer is late)",
            Self::Twice => " (the request will come again)",
        })
    }
}

impl fmt::Display for Intent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dispatch(ti) => write!(f, "queue t{ti}"),
            Self::Declare(expired) => {
                let job = declare::job_of(expired);
                write!(f, "declare job {job} lost, last heard with beat {}", expired.renew_seq)
            }
            Self::Settle(job) => write!(f, "work off what job {job} left"),
            Self::TakeBack(token) => write!(f, "take the claim of {token} back"),
            Self::Reconcile => f.write_str("see to the epoch"),
            Self::GiveUp(observed) => write!(f, "wait no longer, after {observed} of the epoch"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tick => f.write_str("a second passes"),
            Self::Join(slot) => write!(f, "worker {slot}: a process starts"),
            Self::Register(slot, way) => write!(f, "worker {slot}: registers{way}"),
            Self::Greet(slot) => write!(f, "worker {slot}: beats for the first time"),
            Self::Claim(slot, way) => write!(f, "worker {slot}: claims{way}"),
            Self::Start(slot, token, way) => write!(f, "worker {slot}: asks to start {token}{way}"),
            Self::Launch(slot, token) => write!(f, "worker {slot}: launches {token}"),
            Self::Begin(home, token, start) => {
                write!(f, "home {home}: start {start} of {token} begins")
            }
            Self::Exit(home, token, _) => write!(f, "home {home}: the task of {token} exits"),
            Self::Report(slot, token, way) => {
                write!(f, "worker {slot}: reports the end of {token}{way}")
            }
            Self::Settle(slot, token, way) => {
                write!(f, "worker {slot}: looks at {token}, which it inherited{way}")
            }
            Self::Answer(slot, token) => write!(f, "worker {slot}: answers what became of {token}"),
            Self::End(slot, token) => write!(f, "worker {slot}: ends {token}, which is disowned"),
            Self::Stop(slot, token) => write!(f, "worker {slot}: stops {token}"),
            Self::Rejoin(slot) => write!(f, "worker {slot}: begins again as another job"),
            Self::SchedulerJoins(number) => write!(f, "scheduler {number}: registers"),
            Self::Write(number, intent) => write!(f, "scheduler {number}: {intent}"),
            Self::Resume(number) => write!(f, "scheduler {number}: does what it was about to do"),
            Self::Deliver(_, letter) => match letter.as_ref() {
                Letter::Request { job, call, .. } => {
                    write!(f, "a late {} of job {job} arrives", name_of(call))
                }
                Letter::Reply { slot, job, .. } => {
                    write!(f, "a late answer to job {job} reaches worker {slot}")
                }
            },
            Self::CommitClaim => f.write_str("the server that stood still commits its claim"),
            Self::Fault(fault) => write!(f, "FAULT {fault}"),
            Self::Mend(mend) => write!(f, "{mend}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crash(slot) => write!(f, "worker {slot} is killed"),
            Self::Pause(slot) => write!(f, "worker {slot} stands still"),
            Self::Part(slot) => write!(f, "worker {slot} is cut off"),
            Self::PartAll => f.write_str("all workers are cut off"),
            Self::KillShim(home, token, _) => {
                write!(f, "home {home}: the shim of {token} is killed")
            }
            Self::Beat(slot, way) => write!(f, "worker {slot}: its next beat{way}"),
            Self::StallClaim(slot) => {
                write!(f, "a server stands still in a claim of worker {slot}")
            }
            Self::CrashScheduler(number) => write!(f, "scheduler {number} is killed"),
            Self::PauseScheduler(number) => write!(f, "scheduler {number} stands still"),
            Self::Stall(number, intent) => {
                write!(f, "scheduler {number} stands still, about to {intent}")
            }
            Self::ServersAway => f.write_str("no server is there"),
            Self::StoreAway => f.write_str("the store is out of reach"),
            Self::ClockStep => f.write_str("the store's clock jumps a lease forward"),
            Self::Lag => f.write_str("the standby no longer follows"),
            Self::Failover => f.write_str("the standby takes over"),
            Self::Cancel => f.write_str("a person cancels the run"),
        }
    }
}

impl fmt::Display for Mend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Continue(slot) => write!(f, "worker {slot} goes on"),
            Self::Heal(slot) => write!(f, "worker {slot} is reached again"),
            Self::HealAll => f.write_str("all workers are reached again"),
            Self::ContinueScheduler(number) => write!(f, "scheduler {number} goes on"),
            Self::RestartScheduler(number) => write!(f, "scheduler {number} is started again"),
            Self::Back => f.write_str("servers and store are there again"),
        }
    }
}
