//! What goes wrong, by chance.

use crate::process::Process;
use crate::random::Random;
use crate::time;
use crate::world::{Worker, World};
use fencepost_core::time::Span;
use std::time::Duration;

/// Lets one thing go wrong; what lasts ends by itself.
pub(super) fn strike(world: &World, random: &Random) {
    let processes: Vec<&Process> = world.processes().collect();
    let process = processes[random.below(processes.len())];
    let worker = &world.workers[random.below(world.workers.len())];
    match random.below(12) {
        0 | 1 => {
            let restart = random.millis(100, 30_000);
            let name = process.name();
            world.sim.trace.fault("crash", || format!("{name}, back after {restart:?}"));
            process.crash(restart);
        }
        2 => stop(world, process, random),
        3 => part(world, worker, random),
        4 => weather(world, worker, random),
        5 => outage(world, random),
        6 => cut_off(world, process, random),
        7 => step_clock(world, random),
        8 => shim(world, worker, random),
        9 => reboot(world, worker, random),
        10 => {
            world.sim.trace.fault("restart_in_order", || worker.process.name().to_owned());
            worker.stop.send_replace(true);
        }
        _ => slow_store(world, process, random),
    }
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

fn weather(world: &World, worker: &Worker, random: &Random) {
    let lasts = random.millis(10_000, 200_000);
    let bad = [20, 100, 300][random.below(3)];
    world.sim.trace.fault("bad_weather", || format!("{} {bad}", worker.process.name()));
    let delay = [5, 200, 3_000][random.below(3)];
    worker.net.set(|weather| {
        (weather.lose_request, weather.lose_answer, weather.double) = (bad, bad, bad);
        weather.delay_ms = delay;
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

fn step_clock(world: &World, random: &Random) {
    let minutes = i64::try_from(random.below(121)).unwrap_or(0) - 60;
    let by = Span::from_secs(60 * minutes);
    world.sim.trace.fault("clock_step", || format!("of the store by {minutes} min"));
    world.sim.store_wall.step(by);
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
