//! What goes wrong, by chance.

use crate::process::Process;
use crate::random::Random;
use crate::time;
use crate::world::{Worker, World};
use fencepost_core::time::Span;
use std::time::Duration;

/// Lets one thing go wrong; what lasts ends by itself.
pub(super) fn strike(world: &World, random: &Random, fails_over: bool) {
    let processes: Vec<&Process> = world.processes().collect();
    let process = processes[random.below(processes.len())];
    let worker = &world.workers[random.below(world.workers.len())];
    match random.below(if fails_over { 25 } else { 24 }) {
        0..=2 => crash(world, process, random.millis(100, 30_000)),
        3 | 4 => stop(world, process, random),
        5 | 6 => part(world, worker, random),
        7 | 8 => weather(world, worker, random),
        9 => outage(world, random),
        10 | 11 => cut_off(world, process, random),
        12 => step_store(world, random),
        13 => step_host(world, process, random),
        14 | 15 => shim(world, worker, random),
        16 => slow_shims(world, worker, random),
        17 => reboot(world, worker, random),
        18 | 19 => {
            world.sim.trace.fault("restart_in_order", || worker.process.name().to_owned());
            worker.stop.send_replace(true);
        }
        20 => crash(world, process, random.millis(60_000, 240_000)),
        21 => no_server(world, random),
        22 => part_all(world, random),
        24 => fail_over(world, random),
        _ => slow_store(world, process, random),
    }
}

fn crash(world: &World, process: &Process, restart: Duration) {
    world.sim.trace.fault("crash", || format!("{}, back after {restart:?}", process.name()));
    process.crash(restart);
}

fn later(wait: Duration, act: impl FnOnce() + Send + 'static) {
    drop(tokio::spawn(async move {
        time::pause(wait).await;
        act();
    }));
}

fn stop(world: &World, process: &Process, random: &Random) {
    let lasts = random.millis(500, 120_000);
    world.sim.trace.fault("pause", || format!("{} for {lasts:?}", process.name()));
    process.set_paused(true);
    let process = process.clone();
    later(lasts, move || process.set_paused(false));
}

fn part(world: &World, worker: &Worker, random: &Random) {
    let lasts = random.millis(2_000, 200_000);
    world.sim.trace.fault("partition", || format!("{} for {lasts:?}", worker.process.name()));
    worker.net.set(|weather| weather.is_cut = true);
    let net = worker.net.clone();
    later(lasts, move || net.set(|weather| weather.is_cut = false));
}

/// Many fall silent together, which is more likely one fault than many.
fn part_all(world: &World, random: &Random) {
    let lasts = random.millis(20_000, 220_000);
    world.sim.trace.fault("partition_of_all", || format!("{lasts:?}"));
    for worker in &world.workers {
        let net = worker.net.clone();
        net.set(|weather| weather.is_cut = true);
        later(lasts, move || net.set(|weather| weather.is_cut = false));
    }
}

fn no_server(world: &World, random: &Random) {
    let back = random.millis(10_000, 200_000);
    world.sim.trace.fault("no_server", || format!("for {back:?}"));
    for server in &world.servers {
        server.crash(back);
    }
}

/// The standby falls behind, and a moment later it has to take over.
fn fail_over(world: &World, random: &Random) {
    let behind = random.millis(10, 4_000);
    world.sim.lag();
    let sim = world.sim.clone();
    later(behind, move || sim.fail_over());
}

fn slow_shims(world: &World, worker: &Worker, random: &Random) {
    let wait = random.millis(100, 30_000);
    world.sim.trace.fault("slow_shims", || format!("{} by {wait:?}", worker.os.name()));
    worker.os.slow_shims(wait);
    let os = worker.os.clone();
    later(random.millis(1_000, 60_000), move || os.slow_shims(Duration::ZERO));
}

fn weather(world: &World, worker: &Worker, random: &Random) {
    let lasts = random.millis(10_000, 200_000);
    let bad = [20, 100, 300][random.below(3)];
    world.sim.trace.fault("bad_weather", || format!("{} {bad}", worker.process.name()));
    let delay = [5, 200, 3_000][random.below(3)];
    worker.net.set(|weather| {
        (weather.lose_request, weather.lose_answer, weather.double) = (bad, bad, bad);
        (weather.late, weather.delay_ms) = (300, delay);
    });
    let net = worker.net.clone();
    later(lasts, move || {
        net.set(|weather| {
            (weather.lose_request, weather.lose_answer, weather.double) = (0, 0, 0);
            weather.delay_ms = 2;
        });
    });
}

fn outage(world: &World, random: &Random) {
    let lasts = random.millis(1_000, 90_000);
    world.sim.trace.fault("store_outage", || format!("{lasts:?}"));
    let names: Vec<String> = world.processes().map(|p| p.name().to_owned()).collect();
    for name in &names {
        world.sim.set_store_weather(name, |weather| weather.is_cut = true);
    }
    let sim = world.sim.clone();
    later(lasts, move || {
        for name in &names {
            sim.set_store_weather(name, |weather| weather.is_cut = false);
        }
    });
}

fn cut_off(world: &World, process: &Process, random: &Random) {
    let lasts = random.millis(1_000, 120_000);
    let name = process.name().to_owned();
    world.sim.trace.fault("store_cut_off", || format!("{name} for {lasts:?}"));
    world.sim.set_store_weather(&name, |weather| weather.is_cut = true);
    let sim = world.sim.clone();
    later(lasts, move || sim.set_store_weather(&name, |weather| weather.is_cut = false));
}

fn minutes(random: &Random) -> i64 {
    i64::try_from(random.below(121)).unwrap_or(0) - 60
}

fn step_store(world: &World, random: &Random) {
    let minutes = minutes(random);
    world.sim.trace.fault("clock_step", || format!("of the store by {minutes} min"));
    world.sim.store_wall.step(Span::from_secs(60 * minutes));
}

fn step_host(world: &World, process: &Process, random: &Random) {
    let (minutes, name) = (minutes(random), process.name());
    world.sim.trace.fault("clock_step_of_host", || format!("of {name} by {minutes} min"));
    world.sim.wall_of(name).step(Span::from_secs(60 * minutes));
}

fn shim(world: &World, worker: &Worker, random: &Random) {
    let os = &worker.os;
    if random.chance(600) {
        if os.kill_a_shim() {
            world.sim.trace.fault("shim_killed", || os.name().to_owned());
        }
    } else if os.stop_a_shim() {
        world.sim.trace.fault("shim_stopped", || os.name().to_owned());
        let os = os.clone();
        later(random.millis(1_000, 60_000), move || os.continue_shims());
    }
}

fn reboot(world: &World, worker: &Worker, random: &Random) {
    let back = random.millis(5_000, 60_000);
    world.sim.trace.fault("reboot", || format!("{} for {back:?}", worker.os.name()));
    worker.process.crash(back);
    worker.os.reboot();
}

fn slow_store(world: &World, process: &Process, random: &Random) {
    let name = process.name().to_owned();
    let most = [50, 500, 3_000][random.below(3)];
    world.sim.trace.fault("slow_store", || format!("{name} up to {most} ms"));
    world.sim.set_store_weather(&name, |weather| weather.delay_ms = most);
    let sim = world.sim.clone();
    let lasts = random.millis(1_000, 60_000);
    later(lasts, move || sim.set_store_weather(&name, |weather| weather.delay_ms = 1));
}
