//! What befalls a small world.

use crate::net::Echo;
use crate::process::Process;
use crate::sim::StoreWeather;
use crate::world::World;
use fencepost_core::time::Span;
use std::time::Duration;

/// A process, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Worker(usize),
    Scheduler(usize),
    Server(usize),
}

/// What goes wrong, and what is well again.
#[derive(Debug, Clone, Copy)]
pub enum Accident {
    /// SIGKILL; it is started again.
    Crash(Who),
    /// SIGKILL; nobody starts it again.
    Lose(Who),
    Start(Who),
    /// SIGSTOP, SIGCONT.
    Stop(Who),
    Continue(Who),
    /// SIGKILL to the shim of what runs there.
    KillShim(usize),
    /// SIGSTOP to new shims there as they begin, for so many seconds.
    SlowShims(usize, u64),
    /// The worker's machine starts anew.
    Reboot(usize),
    /// SIGTERM: a restart in order.
    Restart(usize),
    /// A worker's network.
    Part(usize),
    Join(usize),
    /// Requests of a worker come again: (call, seconds between, times).
    Echo(usize, &'static str, u64, u32),
    /// Requests of a worker come so many seconds late: (call, seconds); 0 ends it.
    Delay(usize, &'static str, u64),
    /// Answers to a worker's requests of a name take so many seconds; 0 ends it.
    SlowAnswers(usize, &'static str, u64),
    /// All workers' networks.
    PartAll,
    JoinAll,
    /// The store is away for everybody.
    Outage,
    StoreIsBack,
    /// The next transaction of a process waits for its turn, so many seconds.
    Stall(Who, u64),
    /// The store's clock, by minutes.
    StepStore(i64),
    /// A boot-time clock that runs at so many percent.
    FastClock(Who, u64),
    /// Another process begins in the home of a living worker.
    Rival(usize),
    /// The standby stops following; later it takes over.
    Lag,
    Failover,
}

impl Accident {
    /// It happens, now.
    pub fn befall(self, world: &World) {
        let (sim, restart) = (&world.sim, Duration::from_secs(1));
        let net = |n: usize| &world.workers[n].net;
        match self {
            Self::Crash(who) => process(world, who).crash(restart),
            Self::Lose(who) => process(world, who).down(),
            Self::Start(who) => process(world, who).up(),
            Self::Stop(who) => process(world, who).set_paused(true),
            Self::Continue(who) => process(world, who).set_paused(false),
            Self::KillShim(n) => drop(world.workers[n].os.kill_a_shim()),
            Self::SlowShims(n, secs) => world.workers[n].os.slow_shims(Duration::from_secs(secs)),
            Self::Reboot(n) => {
                world.workers[n].process.crash(Duration::from_secs(20));
                world.workers[n].os.reboot();
            }
            Self::Restart(n) => drop(world.workers[n].stop.send(true)),
            Self::Part(n) => net(n).set(|weather| weather.is_cut = true),
            Self::Join(n) => net(n).set(|weather| weather.is_cut = false),
            Self::Echo(n, call, secs, times) => {
                let every = Duration::from_secs(secs);
                let echo = Echo { call, every, times, is_late: false };
                net(n).set(|weather| weather.echo = Some(echo));
            }
            Self::Delay(n, call, secs) => {
                let every = Duration::from_secs(secs);
                let echo = (secs > 0).then_some(Echo { call, every, times: 1, is_late: true });
                net(n).set(|weather| weather.echo = echo);
            }
            Self::SlowAnswers(n, call, secs) => {
                let slow = (secs > 0).then_some((call, Duration::from_secs(secs)));
                net(n).set(|weather| weather.slow_answers = slow);
            }
            Self::PartAll | Self::JoinAll => {
                let is_cut = matches!(self, Self::PartAll);
                for worker in &world.workers {
                    worker.net.set(|weather| weather.is_cut = is_cut);
                }
            }
            Self::Outage | Self::StoreIsBack => {
                let is_cut = matches!(self, Self::Outage);
                store_weather(world, |weather| weather.is_cut = is_cut);
            }
            Self::Stall(who, secs) => {
                let wait = Duration::from_secs(secs);
                sim.traps.stall(process(world, who).name(), wait);
            }
            Self::FastClock(who, percent) => {
                sim.set_clock_rate(process(world, who).name(), percent);
            }
            Self::StepStore(minutes) => sim.store_wall.step(Span::from_secs(60 * minutes)),
            Self::Rival(n) => drop(world.workers[n].rival()),
            Self::Lag => sim.lag(),
            Self::Failover => sim.fail_over(),
        }
    }
}

fn process(world: &World, who: Who) -> &Process {
    match who {
        Who::Worker(n) => &world.workers[n].process,
        Who::Scheduler(n) => &world.schedulers[n],
        Who::Server(n) => &world.servers[n],
    }
}

fn store_weather(world: &World, change: impl Fn(&mut StoreWeather)) {
    for process in world.processes() {
        world.sim.set_store_weather(process.name(), |weather| change(weather));
    }
}
