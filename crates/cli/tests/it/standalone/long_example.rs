//! The long example of the interfaces: every key of it together, run for real. Its commands are stand-ins that
//! write down how they were called; what is at the installation's place (an address, a folder, the
//! outside vault, which is no part of this program yet) is put in.

use super::callbacks::{Outside, serve};
use super::world::{World, wait_for};
use crate::installation::Installation;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const EXAMPLE: &str = include_str!("../../../../dagfile/tests/it/long_example.yaml");
const COMMANDS: [&str; 6] = ["s3-put", "loader", "dbt", "publish-extract", "billing", "s3-rm"];

/// The exports are ready, and what is posted is kept.
fn answer(stream: TcpStream, outside: &Outside) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    stream.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    outside.requests.lock().unwrap().push((path, String::new(), body));
    let end = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    stream.get_mut().write_all(end.as_bytes())
}

fn script(path: &Path, text: &str) {
    std::fs::write(path, format!("#!/bin/bash\n{text}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Programs that write a line of their name and words to the ledger.
fn stand_ins(world: &World) {
    let bin = world.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let ledger = world.path("ledger");
    for name in COMMANDS {
        let more = match name {
            "loader" => " key=$LOADER_IDEMPOTENCY_KEY token=$LOADER_FENCING_TOKEN",
            "dbt" => " in=$PWD state=$DBT_TARGET_PATH app=$PGAPPNAME dsn=${#WAREHOUSE_DSN}",
            _ => "",
        };
        let text = format!("echo \"{name} $*{more}\" >> '{}'", ledger.display());
        script(&bin.join(name), &text);
    }
    // It says what it must not: the log hides it.
    let bad = world.path("bad");
    script(
        &bin.join("erp-export"),
        &format!(
            "echo \"dsn $WAREHOUSE_DSN\"; [ ! -e '{}' ] || exit 64; while [ $# -gt 1 ]; do shift; done; \
             echo rows > \"$1\"",
            bad.display()
        ),
    );
    script(&bin.join("parquet-rows"), "echo 128412");
}

fn ledger(world: &World, start: &str) -> Vec<String> {
    let text = std::fs::read_to_string(world.path("ledger")).unwrap_or_default();
    text.lines().filter(|line| line.starts_with(start)).map(str::to_owned).collect()
}

fn ended(world: &World, run: &str) -> String {
    let state = || world.json(&["runs", "show", "sales_daily", run])["state"].clone();
    wait_for(&format!("{run} to end"), || {
        ["success", "failed"].iter().any(|word| state() == **word)
    });
    state().as_str().unwrap().to_owned()
}

/// The hour in Berlin: a slot at five would be recorded as missed, six hours later, if the test ran then.
fn hour_there() -> u32 {
    let asked = Command::new("date").env("TZ", "Europe/Berlin").arg("+%H").output().unwrap();
    String::from_utf8_lossy(&asked.stdout).trim().parse().unwrap()
}

/// The installation that the example speaks of.
fn installed(outside: &Outside) -> World {
    let mut world = World::new();
    stand_ins(&world);
    let port = serve(outside, answer);
    let dbt = world.path("dbt");
    std::fs::create_dir(&dbt).unwrap();
    let text = EXAMPLE
        .replace("0 5 * * *", &format!("0 {} * * *", hour_there()))
        .replace("vault:kv/sales#dsn", "store:warehouse_dsn")
        .replace("https://erp.example", &format!("http://127.0.0.1:{port}"))
        .replace("/srv/dbt/sales", dbt.to_str().unwrap());
    std::fs::write(world.path("dags/sales.yaml"), text).unwrap();
    world.env.push(("PATH".into(), format!("{}:/usr/bin:/bin", world.path("bin").display())));
    world.env.push(("RECEIVER".into(), format!("http://127.0.0.1:{port}/oncall")));
    world.setting("http.allow", "127.0.0.1");
    world
}

fn keep_what_it_needs(world: &World) {
    wait_for("the DAG", || world.json(&["dags", "show", "sales_daily"]).is_object());
    world.must(&["secrets", "set", "warehouse_dsn", "postgres://sales:hunter22@warehouse/sales"]);
    world.must(&["connections", "set", "exports_s3", "s3://key:word@exports"]);
    let (_, receiver) = world.env.iter().find(|(name, _)| name == "RECEIVER").unwrap();
    world.must(&["connections", "set", "slack_oncall", receiver]);
    world.must(&["pools", "set", "warehouse", "4"]);
}

/// Of all the slots since January the newest one that is due is run, when the DAG is unpaused.
fn the_slot_that_is_due(world: &World) {
    world.must(&["dags", "unpause", "sales_daily", "--yes"]);
    let newest = || world.json(&["runs", "list", "sales_daily"])[0]["run_id"].clone();
    wait_for("the slot's run", || newest().is_string());
    let run = newest().as_str().unwrap().to_owned();
    assert!(run.starts_with("scheduled__"), "{run}");
    assert_eq!(ended(world, &run), "success", "{}", world.stderr());
    let rows = world.json(&["tasks", "outputs", "sales_daily", &run, "extract"]).to_string();
    assert!(rows.contains("128412"), "{rows}");
    let loads = ledger(world, "loader --src s3://staging/");
    assert!(
        loads.len() == 1 && loads[0].contains("key=") && loads[0].contains("token="),
        "{loads:?}"
    );
    let built = ledger(world, "dbt build --vars");
    assert_eq!(built.len(), 1, "{built:?}");
    let at = format!("in={} ", world.path("dbt").display());
    let given = "app=fencepost:sales_daily dsn=41";
    assert!(built[0].contains(&at) && built[0].contains(given), "{built:?}");
    assert_eq!(ledger(world, "publish-extract --region").len(), 3);
    assert_eq!(ledger(world, "billing charge --day").len(), 1);
    assert_eq!(ledger(world, "s3-rm -r s3://staging/").len(), 1);
    let log = world.must(&["logs", "sales_daily", &run, "extract"]);
    assert!(log.contains("dsn ***") && !log.contains("hunter22"), "{log}");
    let assets = world.json(&["assets", "list"]).to_string();
    assert!(assets.contains("warehouse.orders"), "{assets}");
}

/// Data that its policy knows as bad: no retry, the teardown all the same, and whoever is on call hears of it.
fn bad_data(world: &World, outside: &Outside) {
    std::fs::write(world.path("bad"), "").unwrap();
    world.must(&["dags", "trigger", "sales_daily", "--run-id", "bad"]);
    assert_eq!(ended(world, "bad"), "failed");
    let tries = world.json(&["tasks", "attempts", "sales_daily", "bad", "extract"]);
    assert_eq!(tries.as_array().map(Vec::len), Some(1), "{tries}");
    assert_eq!(ledger(world, "s3-rm -r s3://staging/bad/").len(), 1);
    let says = |body: &Value| {
        body["text"].as_str().is_some_and(|text| text.starts_with("sales_daily bad failed: "))
    };
    wait_for("the message", || {
        let requests = outside.requests.lock().unwrap();
        requests.iter().any(|(path, _, body)| path == "/oncall" && says(body))
    });
}

#[test]
fn the_long_example_runs_from_its_wait_to_its_teardown() {
    let outside = Outside::default();
    let world = installed(&outside);
    let node = world.start();
    keep_what_it_needs(&world);
    the_slot_that_is_due(&world);
    // By hand, with other params.
    let params = ["-p", "full_refresh=true", "-p", "regions=[\"emea\"]"];
    world.must(&[&["dags", "trigger", "sales_daily", "--run-id", "hand"][..], &params].concat());
    assert_eq!(ended(&world, "hand"), "success");
    assert_eq!(ledger(&world, "dbt build --full-refresh --vars").len(), 1);
    assert_eq!(ledger(&world, "publish-extract --region").len(), 4);
    bad_data(&world, &outside);
    world.assert_sound();
    node.stop();
}
