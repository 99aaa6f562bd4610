//! Leases: who renews in time is never declared, who fell silent is found in time, and a doubt only
//! delays. A small world of jobs that renew, observed by scans of any pattern.

use fencepost_core::guard::Guards;
use fencepost_core::id::JobId;
use fencepost_core::liveness::{Expired, Observer, ObserverSettings, Reading, Scan, Sight, Unfit};
use fencepost_core::state::JobKind;
use fencepost_core::time::{BootInstant, Span, Timestamp};
use proptest::prelude::*;

const TTL: i64 = 30_000;
const SCAN: i64 = 2_000;
const BEAT: i64 = 5_000;

fn settings(guards: Guards) -> ObserverSettings {
    ObserverSettings {
        scan_interval: Span::from_millis(SCAN),
        heartbeat_interval: Span::from_millis(BEAT),
        mass_loss_percent: 50,
        guards,
    }
}

/// A job that renewed at these instants (milliseconds, ascending, the first one is its start).
#[derive(Debug, Clone)]
struct Job {
    kind: JobKind,
    ttl: i64,
    renewals: Vec<i64>,
}

impl Job {
    fn steady(kind: JobKind, every: i64, until: i64) -> Self {
        let renewals = (0..=until / every).map(|n| n * every).collect();
        Self { kind, ttl: TTL, renewals }
    }
    fn reading(&self, n: u128, at: i64, step: i64) -> Option<Reading> {
        let seq = self.renewals.iter().take_while(|renewed| **renewed <= at).count();
        let renewed_at = self.renewals.get(seq.checked_sub(1)?)?;
        Some(Reading {
            job: JobId::from_u128(n),
            kind: self.kind,
            ttl: Span::from_millis(self.ttl),
            renew_seq: i64::try_from(seq).ok()?,
            renewed_at: Timestamp::from_micros((renewed_at + step) * 1_000),
            detached: false,
        })
    }
}

/// One look: after how long a wait, how long it takes, whether it fails, and by how much the store's
/// clock is wrong.
#[derive(Debug, Clone, Copy)]
struct Look {
    wait: i64,
    takes: i64,
    fails: bool,
    step: i64,
}

const STEADY: Look = Look { wait: SCAN, takes: 0, fails: false, step: 0 };

struct Watch {
    observer: Observer,
    now: i64,
}

impl Watch {
    fn new(guards: Guards) -> Self {
        Self { observer: Observer::new(settings(guards)), now: 0 }
    }

    fn look(&mut self, jobs: &[Job], look: Look) -> Sight {
        self.now += look.wait;
        let started = self.now;
        self.now += look.takes;
        if look.fails {
            self.observer.failed();
            return Sight::default();
        }
        // The snapshot lies anywhere within the statement.
        let at = started + look.takes / 2;
        let readings: Vec<Reading> =
            (0..).zip(jobs).filter_map(|(n, job)| job.reading(n, at, look.step)).collect();
        self.observer.scan(&Scan {
            started: BootInstant::from_micros(started * 1_000),
            ended: BootInstant::from_micros(self.now * 1_000),
            store_now: Timestamp::from_micros((at + look.step) * 1_000),
            epoch: 1,
            readings: &readings,
        })
    }

    /// Looks steadily until something expires.
    fn until_expired(&mut self, jobs: &[Job], most: i64) -> Option<(i64, Vec<Expired>)> {
        while self.now < most {
            let sight = self.look(jobs, STEADY);
            if !sight.expired.is_empty() {
                return Some((self.now, sight.expired));
            }
        }
        None
    }
}

fn looks() -> impl Strategy<Value = Vec<Look>> {
    let wait = prop_oneof![8 => 100..2 * SCAN, 1 => 0..100_000_i64];
    let takes = prop_oneof![8 => 0..200_i64, 1 => 0..20_000_i64];
    let step = prop_oneof![5 => Just(0), 1 => -7_200_000..7_200_000_i64];
    let look = (wait, takes, prop::bool::weighted(0.1), step);
    let look = look.prop_map(|(wait, takes, fails, step)| Look { wait, takes, fails, step });
    prop::collection::vec(look, 1..200)
}

/// Gaps between renewals, each less than a TTL.
fn renewals() -> impl Strategy<Value = Vec<i64>> {
    let gap = prop_oneof![9 => BEAT..BEAT + 500, 1 => 0..TTL];
    prop::collection::vec(gap, 2_000).prop_map(|gaps| {
        let add = |at: &mut i64, gap: i64| {
            *at += gap;
            Some(*at)
        };
        gaps.into_iter().scan(0, add).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn who_renews_in_time_is_never_expired(
        looks in looks(),
        jobs in prop::collection::vec((prop::bool::ANY, renewals()), 1..5),
    ) {
        let mut jobs: Vec<Job> = jobs.into_iter().map(|(is_worker, renewals)| Job {
            kind: if is_worker { JobKind::Worker } else { JobKind::Scheduler },
            ttl: TTL,
            renewals,
        }).collect();
        jobs.push(Job::steady(JobKind::Server, BEAT, 10_000_000));
        let mut watch = Watch::new(Guards::all());
        for look in looks {
            let sight = watch.look(&jobs, look);
            // The world ends with the last renewal of the shortest row.
            let over = jobs.iter().any(|job| job.renewals.last().is_none_or(|at| *at < watch.now));
            prop_assert!(over || sight.expired.is_empty(), "{:?} at {}", sight, watch.now);
        }
    }

    #[test]
    fn who_falls_silent_is_found_in_time(
        died in 0..100_000_i64,
        kind in prop::sample::select(vec![JobKind::Scheduler, JobKind::Server, JobKind::Worker]),
        offset in 0..SCAN,
    ) {
        let silent = Job { kind, ..Job::steady(kind, BEAT, died) };
        let last = *silent.renewals.last().unwrap_or(&0);
        let jobs = [silent, Job::steady(JobKind::Server, BEAT, 1_000_000)];
        let mut watch = Watch::new(Guards::all());
        watch.now = offset;
        let (at, expired) = watch.until_expired(&jobs, 400_000).unwrap_or_default();
        prop_assert_eq!(expired.first().map(|e| e.job), Some(JobId::from_u128(0)));
        prop_assert!(expired.iter().all(|e| e.window >= e.ttl));
        // The silence of a worker counts when a server is heard next: one beat more at most.
        let credit = if kind == JobKind::Worker { BEAT } else { 0 };
        prop_assert!(at >= last + TTL && at <= last + TTL + 2 * SCAN + credit, "{last} {at}");
    }

    #[test]
    fn servers_that_are_away_however_long_condemn_no_worker(
        away in 0..2_000_000_i64,
        from in 100_000..130_000_i64,
        workers in 1..6_u128,
    ) {
        // Away together, and back together: workers within a beat after the servers.
        let renewals = |lag: i64| -> Vec<i64> {
            let before = (0..).map(|n| n * BEAT + lag).take_while(|at| *at < from);
            let after = (0..).map(|n| from + away + n * BEAT + lag).take(100);
            before.chain(after).collect()
        };
        let mut jobs = vec![Job { kind: JobKind::Server, ttl: TTL, renewals: renewals(0) }];
        for n in 1..=workers {
            let lag = i64::try_from(n).unwrap_or(0) * 900;
            jobs.push(Job { kind: JobKind::Worker, ttl: TTL, renewals: renewals(lag) });
        }
        let mut watch = Watch::new(Guards::all());
        while watch.now < from + away + 100_000 {
            let sight = watch.look(&jobs, STEADY);
            let condemned = sight.expired.iter().filter(|e| e.job != JobId::from_u128(0)).count();
            prop_assert_eq!(condemned, 0, "at {}", watch.now);
        }
    }

    #[test]
    fn many_at_once_are_braked_for_one_ttl_and_found_then(
        dead in 3..8_usize,
        alive in 0..4_usize,
        died in 60_000..80_000_i64,
    ) {
        prop_assume!(dead * 2 >= dead + alive);
        let mut jobs = vec![Job::steady(JobKind::Server, BEAT, 1_000_000)];
        jobs.extend((0..dead).map(|_| Job::steady(JobKind::Worker, BEAT, died)));
        jobs.extend((0..alive).map(|_| Job::steady(JobKind::Worker, BEAT, 1_000_000)));
        let mut watch = Watch::new(Guards::all());
        let mut braked = 0;
        let (at, expired) = loop {
            let sight = watch.look(&jobs, STEADY);
            braked += sight.braked.len();
            if !sight.expired.is_empty() {
                break (watch.now, sight.expired);
            }
            prop_assert!(watch.now < 400_000);
        };
        prop_assert_eq!((braked, expired.len()), (dead, dead));
        prop_assert!(expired.iter().all(|e| !e.alone && e.window >= e.ttl.times(2)));
        let last = died / BEAT * BEAT;
        prop_assert!(at >= last + 2 * TTL && at <= last + 2 * TTL + 2 * SCAN + BEAT, "{at}");
    }
}

/// Whatever the TTL is: what is found is found after it, and within two scans.
#[test]
fn every_ttl_is_kept_to_within_two_scans() {
    for ttl in (1..=300).map(|secs| secs * 1_000) {
        let (scan, beat) = (SCAN.min(ttl / 10), BEAT.min(ttl / 6));
        let silent = Job { ttl, ..Job::steady(JobKind::Scheduler, beat, 7 * beat) };
        let last = 7 * beat;
        let jobs = [silent, Job::steady(JobKind::Server, beat, last + 3 * ttl)];
        let settings = ObserverSettings {
            scan_interval: Span::from_millis(scan),
            heartbeat_interval: Span::from_millis(beat),
            ..settings(Guards::all())
        };
        let mut watch = Watch { observer: Observer::new(settings), now: 0 };
        while watch.look(&jobs, Look { wait: scan, ..STEADY }).expired.is_empty() {
            assert!(watch.now <= last + 2 * ttl, "a TTL of {ttl} ms: nothing was found");
        }
        let late = watch.now - last - ttl;
        assert!((0..=2 * scan).contains(&late), "a TTL of {ttl} ms was found {late} ms late");
    }
}

#[test]
fn two_of_two_are_not_many() {
    let mut jobs = vec![Job::steady(JobKind::Server, BEAT, 1_000_000)];
    jobs.extend((0..2).map(|_| Job::steady(JobKind::Worker, BEAT, 60_000)));
    let found = Watch::new(Guards::all()).until_expired(&jobs, 400_000);
    assert!(found.is_some_and(|(at, expired)| {
        at < 60_000 + TTL + 2 * SCAN + BEAT && expired.iter().all(|e| e.alone)
    }));
}

#[test]
fn what_another_observer_declared_counts_for_the_brake() {
    let mut jobs = vec![Job::steady(JobKind::Server, BEAT, 1_000_000)];
    jobs.extend((0..2).map(|_| Job::steady(JobKind::Worker, BEAT, 55_000)));
    jobs.push(Job::steady(JobKind::Worker, BEAT, 35_000));
    let mut watch = Watch::new(Guards::all());
    while watch.now < 35_000 + TTL - 2 * SCAN {
        assert_eq!(watch.look(&jobs, STEADY).expired, []);
    }
    // It was a little faster.
    jobs.pop();
    let found = watch.until_expired(&jobs, 400_000);
    assert!(found.is_some_and(|(at, expired)| {
        at >= 55_000 + 2 * TTL && expired.iter().all(|e| !e.alone)
    }));
}

#[test]
fn one_that_could_not_be_declared_for_long_counts_for_the_brake_from_its_declaration_on() {
    let silent_from = TTL + 60 * TTL / 100;
    let mut jobs = vec![Job::steady(JobKind::Server, BEAT, 1_000_000)];
    jobs.extend((0..2).map(|_| Job::steady(JobKind::Worker, BEAT, silent_from)));
    jobs.push(Job::steady(JobKind::Worker, BEAT, 0));
    let mut watch = Watch::new(Guards::all());
    let mut refused = 0;
    while watch.now < TTL + 90 * TTL / 100 {
        refused += watch.look(&jobs, STEADY).expired.len();
    }
    assert!(refused > 1, "it was to be declared again and again");
    jobs.pop();
    let found = watch.until_expired(&jobs, 10 * TTL);
    assert!(found.is_some_and(|(at, expired)| {
        at >= silent_from - BEAT + 2 * TTL && expired.iter().all(|e| !e.alone)
    }));
}

#[test]
fn a_store_that_was_away_begins_all_windows_anew() {
    let mut jobs = vec![Job::steady(JobKind::Server, BEAT, 60_000)];
    jobs.push(Job::steady(JobKind::Scheduler, BEAT, 60_000));
    let mut watch = Watch::new(Guards::all());
    while watch.now < 85_000 {
        assert_eq!(watch.look(&jobs, STEADY).expired, []);
    }
    for _ in 0..4 {
        watch.look(&jobs, Look { fails: true, ..STEADY });
    }
    assert_eq!(watch.look(&jobs, STEADY).unfit, Some(Unfit::Failing));
    let back = watch.now;
    let found = watch.until_expired(&jobs, 400_000);
    assert!(found.is_some_and(|(at, _)| at >= back + TTL && at <= back + TTL + 2 * SCAN));
}

#[test]
fn a_new_epoch_begins_all_windows_anew() {
    let mut observer = Observer::new(settings(Guards::all()));
    let reading = Job::steady(JobKind::Scheduler, BEAT, 0).reading(1, 0, 0);
    let readings: Vec<Reading> = reading.into_iter().collect();
    let mut scan = |at: i64, epoch| {
        let now = BootInstant::from_micros(at * 1_000);
        let store_now = Timestamp::from_micros(at * 1_000);
        observer.scan(&Scan { started: now, ended: now, store_now, epoch, readings: &readings })
    };
    for at in (0..TTL).step_by(2_000) {
        assert_eq!(scan(at, 1).expired, []);
    }
    assert_eq!(scan(TTL, 2).unfit, Some(Unfit::NewEpoch));
    assert_eq!(scan(TTL + 2_000, 2).expired, []);
}

/// Guards that are switched off: the violation that each prevents is seen.
#[cfg(feature = "guard-switches")]
mod without {
    use super::*;
    use fencepost_core::guard::Guard;

    fn stumbles() -> (Vec<Job>, Vec<Look>) {
        // Everything stood still for ten minutes (a suspended host), and nobody died.
        let mut renewals: Vec<i64> = (0..12).map(|n| n * BEAT).collect();
        renewals.extend((0..100).map(|n| 661_000 + n * BEAT));
        let job = Job { kind: JobKind::Worker, ttl: TTL, renewals };
        let jobs = vec![Job { kind: JobKind::Server, ..job.clone() }, job];
        let mut looks = vec![STEADY; 29];
        looks.push(Look { wait: 602_000, ..STEADY });
        looks.extend([STEADY; 20]);
        (jobs, looks)
    }

    fn expired(guards: Guards) -> usize {
        let (jobs, looks) = stumbles();
        let mut watch = Watch::new(guards);
        looks.into_iter().map(|look| watch.look(&jobs, look).expired.len()).sum()
    }

    #[test]
    fn without_fit_to_judge_a_pause_condemns_the_living() {
        assert_eq!(expired(Guards::all()), 0);
        assert!(expired(Guards::all().without(Guard::FitToJudge)) > 0);
    }

    #[test]
    fn without_the_full_ttl_one_look_condemns_the_living() {
        assert!(expired(Guards::all().without(Guard::FullTtl)) > 0);
    }

    #[test]
    fn without_the_brake_many_are_condemned_at_once() {
        let mut jobs = vec![Job::steady(JobKind::Server, BEAT, 1_000_000)];
        // A network that was away for 40 s took four of four workers with it.
        jobs.extend((0..4).map(|_| {
            let before = (0..12).map(|n| n * BEAT);
            let renewals = before.chain((0..100).map(|n| 95_000 + n * BEAT)).collect();
            Job { kind: JobKind::Worker, ttl: TTL, renewals }
        }));
        let found = |guards| Watch::new(guards).until_expired(&jobs, 300_000).is_some();
        assert!(!found(Guards::all()));
        assert!(found(Guards::all().without(Guard::Brake)));
    }
}
