//! Does faults to an installation, and undoes them.

use crate::clock::{boot_ns, pause};
use crate::fault::{Fault, Kind, Plan, Step};
use crate::installation::{DATABASE, Installation, SCHEDULERS, SERVERS, Shim, WORKERS, index};
use crate::proxy::{Cable, Mode};
use crate::record::{Done, Record};
use fencepost_testing::cluster::End;
use rustix::process::Signal;
use std::process::{Child, Command, Stdio};

/// Connections that somebody else takes: more than there are.
const GREEDY: usize = 130;
/// How long two workers are in one home.
const TOGETHER_MS: u64 = 5_000;
/// Busy processes: more than small machines have cores.
const BUSY: usize = 6;
/// The longest that a step waits until there is work to be hit.
const WORK_MS: u64 = 8_000;

/// Does a plan until the instant that `until` says.
pub fn torture(
    it: &Installation,
    plan: &mut Plan,
    record: &Record,
    least: usize,
    until: &dyn Fn() -> u64,
) {
    while boot_ns() < until() {
        let Some(step) = plan.next_step() else {
            pause(100);
            continue;
        };
        // Faults among idle processes show little; after a while they are done all the same.
        let busy = || it.shims(None).len() >= least || boot_ns() > until();
        let _ = crate::clock::wait_until(WORK_MS, busy);
        if boot_ns() > until() {
            return;
        }
        carry_out(it, &step, record);
        pause(step.rest_ms);
    }
}

/// Does the faults of a step at the same time; returns when all are undone.
fn carry_out(it: &Installation, step: &Step, record: &Record) {
    std::thread::scope(|scope| {
        for fault in &step.faults {
            scope.spawn(move || {
                let (began, running) = (boot_ns(), it.shims(None).len());
                let outcome = inflict(it, fault);
                let trouble = outcome.as_ref().err().map(|error| format!("{error:#}"));
                let target = outcome.unwrap_or_default();
                let kind = fault.kind.to_string();
                let (span_ms, ended) = (fault.span_ms, boot_ns());
                let done = Done { kind, target, span_ms, began, ended, running, trouble };
                crate::say(&format!(
                    "{:>22} {:<10} {:>5} ms, {running} attempts ran{}",
                    done.kind,
                    done.target,
                    fault.span_ms,
                    done.trouble.as_deref().map(|why| format!(": {why}")).unwrap_or_default()
                ));
                // The disk of the harness itself: without its record nothing can be judged.
                record.fault(&done).unwrap_or_else(|error| crate::say(&format!("{error:#}")));
            });
        }
    });
}

/// Does one fault and undoes it; whom it met.
fn inflict(it: &Installation, fault: &Fault) -> anyhow::Result<String> {
    let Fault { kind, pick, span_ms } = *fault;
    let of = |names: &[&'static str]| names[index(pick, names.len())];
    match kind {
        Kind::EndScheduler => Ok(end(it, of(&SCHEDULERS), span_ms)),
        Kind::EndServer => Ok(end(it, of(&SERVERS), span_ms)),
        Kind::EndWorker => Ok(end(it, of(&WORKERS), span_ms)),
        Kind::KillScheduler => Ok(kill(it, of(&SCHEDULERS), span_ms)),
        Kind::KillServer => Ok(kill(it, of(&SERVERS), span_ms)),
        Kind::KillWorker => Ok(kill(it, of(&WORKERS), span_ms)),
        Kind::KillWorkerAndShims => Ok(kill_with_shims(it, of(&WORKERS), span_ms)),
        Kind::KillShim => kill_shims(it, pick),
        Kind::StopShim => shim(it, pick, |shim| {
            shim.signal(Signal::STOP);
            pause(span_ms);
            shim.signal(Signal::CONT);
        }),
        Kind::StopScheduler => Ok(stop(it, of(&SCHEDULERS), span_ms)),
        Kind::StopServer => Ok(stop(it, of(&SERVERS), span_ms)),
        Kind::StopWorker => Ok(stop(it, of(&WORKERS), span_ms)),
        Kind::CutWorker => Ok(cable(it.worker_cable(pick), Mode::Hold, span_ms)),
        Kind::RefuseWorker => Ok(cable(it.worker_cable(pick), Mode::Refuse, span_ms)),
        Kind::DelayWorker => {
            Ok(cable(it.worker_cable(pick), Mode::Delay(100 + pick % 900), span_ms))
        }
        Kind::LoseAnswers => Ok(cable(it.worker_cable(pick), Mode::LoseAnswers, span_ms)),
        Kind::HalfOpenWorker => Ok(cable(it.worker_cable(pick), Mode::HoldQuestions, span_ms)),
        Kind::CutStore => Ok(cable(it.store_cable(pick), Mode::Hold, span_ms)),
        Kind::DelayStore => Ok(cable(it.store_cable(pick), Mode::Delay(20 + pick % 200), span_ms)),
        Kind::LoseStoreAnswers => Ok(cable(it.store_cable(pick), Mode::LoseAnswers, span_ms)),
        Kind::NoServers => Ok(no_servers(it, span_ms)),
        Kind::RestartStore => store_down(it, End::Fast, 0),
        Kind::StopStore => store_down(it, End::Fast, span_ms),
        Kind::CrashStore => store_down(it, End::Immediate, span_ms),
        Kind::EndSessions => end_sessions(it),
        Kind::FillStore => Ok(fill_store(it, span_ms)),
        Kind::BusyCpu => busy_cpu(span_ms),
        Kind::FillDisk => fill_disk(it, span_ms),
        Kind::Promote => promote(it, span_ms),
        Kind::TwoInOneHome => two_in_one_home(it, of(&WORKERS), span_ms),
    }
}

fn kill(it: &Installation, name: &str, span_ms: u64) -> String {
    it.roles.kill(name, span_ms);
    pause(span_ms);
    name.into()
}

fn end(it: &Installation, name: &str, span_ms: u64) -> String {
    it.roles.signal(name, Signal::TERM);
    pause(span_ms);
    name.into()
}

fn kill_with_shims(it: &Installation, name: &str, span_ms: u64) -> String {
    it.roles.take_down(name);
    for shim in it.shims(Some(name)) {
        shim.signal(Signal::KILL);
    }
    pause(span_ms);
    it.roles.raise(name);
    name.into()
}

fn stop(it: &Installation, name: &str, span_ms: u64) -> String {
    it.roles.signal(name, Signal::STOP);
    pause(span_ms);
    it.roles.signal(name, Signal::CONT);
    name.into()
}

/// A few of them, of any workers.
fn kill_shims(it: &Installation, pick: u64) -> anyhow::Result<String> {
    let met: Vec<String> = (0..3)
        .filter_map(|n| shim(it, pick.rotate_left(n), |shim| shim.signal(Signal::KILL)).ok())
        .collect();
    anyhow::ensure!(!met.is_empty(), "no shim lives");
    Ok(met.join(" "))
}

fn shim(it: &Installation, pick: u64, act: impl FnOnce(&Shim)) -> anyhow::Result<String> {
    let shims = it.shims(None);
    let Some(met) = shims.get(index(pick, shims.len())) else { anyhow::bail!("no shim lives") };
    act(met);
    Ok(met.token.clone())
}

fn cable((name, cable): (&str, &Cable), mode: Mode, span_ms: u64) -> String {
    cable.set(mode);
    pause(span_ms);
    cable.set(Mode::Open);
    name.into()
}

fn no_servers(it: &Installation, span_ms: u64) -> String {
    for name in SERVERS {
        it.roles.take_down(name);
    }
    pause(span_ms);
    for name in SERVERS {
        it.roles.raise(name);
    }
    "both".into()
}

fn store_down(it: &Installation, how: End, span_ms: u64) -> anyhow::Result<String> {
    it.cluster().end(how)?;
    pause(span_ms);
    it.cluster().run_again()?;
    Ok("store".into())
}

fn end_sessions(it: &Installation) -> anyhow::Result<String> {
    let ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                 WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    let count = it.cluster().sql(DATABASE, ended)?;
    Ok(format!("{} of them", count.trim()))
}

/// Sessions that wait for a password take connections too.
fn fill_store(it: &Installation, span_ms: u64) -> String {
    let port = it.cluster().port();
    let connect = |_| std::net::TcpStream::connect(("127.0.0.1", port)).ok();
    let taken: Vec<std::net::TcpStream> = (0..GREEDY).filter_map(connect).collect();
    let hello = hello();
    for mut stream in &taken {
        // Those that are too many are refused.
        let _ = std::io::Write::write_all(&mut stream, &hello);
    }
    pause(span_ms);
    format!("{} more", taken.len())
}

/// The start of a session: what makes the server take it for one and ask for the password.
fn hello() -> Vec<u8> {
    let mut body = 196_608_i32.to_be_bytes().to_vec();
    body.extend(b"user\0postgres\0database\0postgres\0\0");
    let length = i32::try_from(body.len() + 4).unwrap_or(i32::MAX);
    [&length.to_be_bytes()[..], &body].concat()
}

fn busy_cpu(span_ms: u64) -> anyhow::Result<String> {
    let spin = || {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    };
    let mut all: Vec<Child> = (0..BUSY).map(|_| spin()).collect::<std::io::Result<_>>()?;
    pause(span_ms);
    for child in &mut all {
        child.kill()?;
        child.wait()?;
    }
    Ok(format!("{BUSY} busy"))
}

fn fill_disk(it: &Installation, span_ms: u64) -> anyhow::Result<String> {
    let Some((name, disk)) = &it.disk else {
        anyhow::bail!("this user may not mount a small disk")
    };
    disk.fill(span_ms)?;
    Ok((*name).into())
}

fn promote(it: &Installation, span_ms: u64) -> anyhow::Result<String> {
    it.cluster().back_up()?;
    pause(span_ms);
    it.cluster().fail_over()?;
    Ok("store".into())
}

fn two_in_one_home(it: &Installation, name: &str, span_ms: u64) -> anyhow::Result<String> {
    it.roles.signal(name, Signal::STOP);
    let second = it.second_in_home_of(name);
    pause(if second.is_ok() { span_ms } else { 0 });
    it.roles.signal(name, Signal::CONT);
    let second = second?;
    pause(TOGETHER_MS);
    // Both go: whoever is started then is the home's only one.
    it.roles.remove(&second);
    it.roles.kill(name, 0);
    Ok(name.into())
}

/// Whatever was left half done is undone.
pub fn heal(it: &Installation) {
    for cable in it.cables() {
        cable.set(Mode::Open);
    }
    for shim in it.shims(None) {
        shim.signal(Signal::CONT);
    }
    for name in SCHEDULERS.iter().chain(&SERVERS).chain(&WORKERS) {
        it.roles.signal(name, Signal::CONT);
        it.roles.raise(name);
    }
    let mut cluster = it.cluster();
    if !cluster.answers() {
        // It may be up and full, or still recovering: then this is refused, and it answers later.
        let _ = cluster.run_again();
    }
}
