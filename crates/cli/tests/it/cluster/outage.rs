//! The store or all servers go away and come back: what is shorter than the fence costs nothing, what is
//! longer is ended by the shims themselves, and nobody is condemned for a silence that nobody could break.

use super::crowd::{Crowd, ask, now_ns, wait_until};
use super::world::{Cluster, Role};
use crate::installation::Installation;
use crate::standalone::world::{assert_once, ledger_task, wait_for};
use fencepost_core::time::Span;
use fencepost_store::PgOptions;
use fencepost_testing::cluster::{Cluster as Server, End};

const TASKS: usize = 6;
const SECOND: u64 = 1_000_000_000;
/// The fence of the workers whose absences are tried: long, so that the share of it that they take is
/// theirs and not a slow machine's.
const FENCE_NS: u64 = 20 * SECOND;
/// The short leases of the others.
const SHORT_TTL_NS: u64 = 6 * SECOND;

fn begun(cluster: &Cluster) -> usize {
    cluster.lines("ledger").iter().filter(|line| line.starts_with("begin")).count()
}

/// I26: every connection of every role is cut, again and again, and new ones refused for a while.
#[test]
fn cut_connections_cost_no_attempt() {
    let cluster = Cluster::new();
    let mut yaml = String::from("tasks:\n");
    for n in 0..TASKS {
        yaml.push_str(&format!("  t{n:02}:\n"));
        if n >= 3 {
            yaml.push_str(&format!("    depends_on: [t{:02}]\n", n - 3));
        }
        yaml.push_str(&ledger_task(&cluster.path("ledger"), "4"));
    }
    cluster.dag("cut", &yaml);
    let _server = cluster.server();
    let _schedulers = (cluster.scheduler("s1"), cluster.scheduler("s2"));
    let _worker = cluster.worker("w1");
    let run = cluster.trigger("cut");
    wait_for("the tasks to begin", || begun(&cluster) >= 3);
    let name = cluster.database().name().to_owned();
    for _ in 0..5 {
        let cut = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE datname = '{name}' AND pid <> pg_backend_pid()"
        );
        cluster.database().sql(&cut).unwrap();
    }
    cluster.wait_state("cut", &run, "success");
    assert_once(&cluster.lines("ledger"), TASKS);
    let events = cluster.json(&["events", "cut", &run]);
    let lost = events.as_array().unwrap().iter().filter(|e| e["kind"] == "attempt_lost").count();
    assert_eq!(lost, 0, "{events:#}");
    cluster.assert_sound();
}

/// A database server of its own, and a cluster on it.
fn installation(place: &std::path::Path) -> (Server, Cluster) {
    let server = Server::start(&place.join("server")).unwrap();
    let cluster = Cluster::on(server.url("postgres"));
    (server, cluster)
}

fn patient_leases(cluster: &mut Cluster) {
    for (key, value) in [
        ("worker.lease_ttl", "30s"),
        ("worker.heartbeat_interval", "1s"),
        ("worker.self_fence", "20s"),
        ("worker.kill_grace", "2s"),
    ] {
        cluster.setting(key, value);
    }
}

/// Two schedulers and two workers, each with room for all tasks.
fn crew(cluster: &Cluster) -> Vec<Role> {
    let mut roles = vec![cluster.scheduler("s1"), cluster.scheduler("s2")];
    roles.extend([cluster.worker_of_slots("w1", 64), cluster.worker_of_slots("w2", 64)]);
    roles
}

/// The roles have as many connections as they are configured for, whatever runs: tasks and workers have
/// none.
fn assert_bounded(server: &Server, roles: usize) {
    let of_one = PgOptions::new("", || Span::ZERO);
    // Beside its lanes: hints, and a heart with a lane each way and hints of its own.
    let most = roles * (of_one.writers + of_one.readers + 4);
    let count = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'fencepost%'";
    let found: usize = ask(server, count).parse().unwrap();
    assert!(found <= most, "{found} connections of {roles} roles, at most {most}");
}

/// So long that with what a return takes some 0.7 of the fence are over.
fn stay_away(from_ns: u64) {
    wait_until(from_ns + FENCE_NS * 6 / 10);
}

/// I26: PostgreSQL is stopped for 0.7 of the fence while fifty tasks run.
#[test]
fn slow_a_store_that_is_away_for_less_than_the_fence_costs_nothing() {
    let place = tempfile::tempdir().unwrap();
    let (mut server, mut cluster) = installation(place.path());
    patient_leases(&mut cluster);
    let _server = cluster.server();
    let _crew = crew(&cluster);
    let crowd = Crowd::gather(&cluster, 50, false);
    assert_bounded(&server, 3);
    let from_ns = now_ns();
    server.end(End::Fast).unwrap();
    stay_away(from_ns);
    server.run_again().unwrap();
    crowd.assert_unharmed(&server);
    assert_bounded(&server, 3);
}

/// I26: no server is there for 0.7 of the fence, and the store is well.
#[test]
fn slow_servers_that_are_away_for_less_than_the_fence_cost_nothing() {
    let place = tempfile::tempdir().unwrap();
    let (server, mut cluster) = installation(place.path());
    patient_leases(&mut cluster);
    let only = cluster.server();
    let _crew = crew(&cluster);
    let crowd = Crowd::gather(&cluster, 50, false);
    let from_ns = now_ns();
    only.kill9();
    stay_away(from_ns);
    let _server = cluster.server();
    crowd.assert_unharmed(&server);
}

/// I5, I8, I25, I26: PostgreSQL is stopped for three leases. All fifty tasks end by their own fence, each
/// is replaced once, and nobody is declared lost before a whole lease after its return.
#[test]
fn slow_a_store_that_is_away_for_three_leases_condemns_nobody() {
    let place = tempfile::tempdir().unwrap();
    let (mut server, mut cluster) = installation(place.path());
    cluster.short_worker_leases();
    cluster.short_scheduler_leases();
    let _server = cluster.server();
    let _crew = crew(&cluster);
    let crowd = Crowd::gather(&cluster, 50, true);
    server.end(End::Fast).unwrap();
    let away_ns = now_ns();
    wait_until(away_ns + 3 * SHORT_TTL_NS);
    server.run_again().unwrap();
    let returned = "SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint";
    let returned: i64 = ask(&server, returned).parse().unwrap();
    crowd.assert_fenced_and_replaced_once(&server, away_ns + SHORT_TTL_NS);
    let ttl = i64::try_from(SHORT_TTL_NS / 1_000).unwrap();
    let early = format!(
        "SELECT count(*) FROM event WHERE kind = 'job_lost' AND at < {}",
        // The instant was asked for after it answered again.
        returned - SECOND.cast_signed() / 1_000 + ttl
    );
    assert_eq!(ask(&server, &early), "0");
}

/// I26 at default settings: a hundred tasks and forty seconds without PostgreSQL.
#[test]
fn slow_forty_seconds_without_a_store_touch_none_of_a_hundred_tasks() {
    let place = tempfile::tempdir().unwrap();
    let (mut server, cluster) = installation(place.path());
    let _server = cluster.server();
    let _crew = crew(&cluster);
    let crowd = Crowd::gather(&cluster, 100, false);
    let from_ns = now_ns();
    server.end(End::Fast).unwrap();
    wait_until(from_ns + 40 * SECOND);
    server.run_again().unwrap();
    crowd.assert_unharmed(&server);
}
