use crate::fixture::Fixture;
use serde_json::json;
use std::fmt::Write;
use std::sync::atomic::Ordering;

/// A chain that the file tells from its end: t0 <- t1 <- ... in reverse order.
fn chain(tasks: usize) -> String {
    let mut text = "tasks:\n".to_owned();
    for n in (0..tasks).rev() {
        let after = if n == 0 { String::new() } else { format!(", depends_on: [t{}]", n - 1) };
        writeln!(text, "  t{n}: {{run: echo{after}}}").unwrap();
    }
    text
}

async fn all(fixture: &Fixture, list: &str, field: &str) -> Vec<String> {
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = fixture.get(&format!("{list}{cursor}")).await;
        seen.extend(page.each(field));
        match page.json["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return seen,
        }
    }
}

#[tokio::test]
async fn tasks_are_listed_in_topological_order_page_by_page() {
    let fixture = Fixture::new().await;
    fixture.load(&[("chain.yaml", &chain(25))]).await;
    fixture.post("/dags/chain/runs", json!({"run_id": "r"})).await.expect(202);
    let want: Vec<String> = (0..25).map(|n| format!("t{n}")).collect();
    for limit in [1, 7, 25, 1_000] {
        let list = format!("/dags/chain/runs/r/tasks?limit={limit}");
        assert_eq!(all(&fixture, &list, "task_id").await, want, "queued, {limit}");
    }
    fixture.turn().await;
    for limit in [1, 7, 25, 1_000] {
        let list = format!("/dags/chain/runs/r/tasks?limit={limit}");
        assert_eq!(all(&fixture, &list, "task_id").await, want, "running, {limit}");
    }
    let waiting = all(&fixture, "/dags/chain/runs/r/tasks?limit=5&state=none", "task_id").await;
    assert_eq!(waiting, want[1..]);
    let none = fixture.get("/dags/chain/runs/r/tasks?state=failed").await;
    assert_eq!((none.items().len(), &none.json["next_cursor"]), (0, &json!(null)));
}

#[tokio::test]
async fn mapped_instances_page_within_their_task() {
    let fixture = Fixture::new().await;
    let list: Vec<String> = (0..30).map(|n| n.to_string()).collect();
    let dag = format!(
        "tasks:\n  a: {{run: echo}}\n  m: {{run: echo, depends_on: [a], expand: {{n: [{}]}}}}\n  \
         z: {{run: echo, depends_on: [m]}}\n",
        list.join(", ")
    );
    fixture.load(&[("wide.yaml", &dag)]).await;
    fixture.post("/dags/wide/runs", json!({"run_id": "r"})).await.expect(202);
    let mut want = vec!["-1".to_owned()];
    want.extend(list);
    want.push("-1".into());
    for made in [false, true] {
        if made {
            fixture.turn().await;
        }
        for limit in [1, 4, 31, 32, 33] {
            let path = format!("/dags/wide/runs/r/tasks?limit={limit}");
            assert_eq!(all(&fixture, &path, "map_index").await, want, "{made} {limit}");
        }
    }
}

#[tokio::test]
async fn a_page_of_runs_is_stable_while_runs_are_made() {
    let fixture = Fixture::new().await;
    fixture.load(&[("chain.yaml", &chain(1))]).await;
    for n in 0..6 {
        let body =
            json!({"run_id": format!("r{n}"), "logical_date": format!("2026-01-0{}", n + 1)});
        fixture.post("/dags/chain/runs", body).await.expect(202);
    }
    for list in ["/dags/chain/runs?limit=4", "/runs?limit=4"] {
        let first = fixture.get(list).await;
        assert_eq!(first.each("run_id"), ["r5", "r4", "r3", "r2"]);
        let cursor = first.json["next_cursor"].as_str().unwrap().to_owned();
        let late = if list.starts_with("/runs") { "s1" } else { "s0" };
        let made = json!({"run_id": late, "logical_date": "none"});
        fixture.post("/dags/chain/runs", made).await.expect(202);
        let rest = fixture.get(&format!("{list}&cursor={cursor}")).await;
        assert_eq!(rest.each("run_id"), ["r1", "r0"], "{list}");
        fixture.post(&format!("/dags/chain/runs/{late}:cancel"), json!({})).await.expect(200);
        fixture.delete(&format!("/dags/chain/runs/{late}")).await.expect(204);
    }
    let some = "/dags/chain/runs?from=2026-01-02&to=2026-01-04";
    assert_eq!(fixture.get(some).await.each("run_id"), ["r2", "r1"]);
    assert_eq!(fixture.get("/runs?run_id_prefix=r4").await.each("run_id"), ["r4"]);
    assert_eq!(fixture.get("/runs?run_id_prefix=%25").await.items().len(), 0);
    assert_eq!(fixture.get("/runs?state=failed,success").await.items().len(), 0);
    assert_eq!(fixture.get("/runs?state=queued,failed").await.items().len(), 6);
}

#[tokio::test]
async fn events_page_by_number() {
    let fixture = Fixture::new().await;
    fixture.load(&[("chain.yaml", &chain(3))]).await;
    fixture.post("/dags/chain/runs", json!({"run_id": "r"})).await.expect(202);
    fixture.turn().await;
    let whole = fixture.get("/events?limit=1000").await;
    let seqs = whole.each("seq");
    assert!(seqs.len() > 3, "{seqs:?}");
    let first = fixture.get("/events?limit=2").await;
    assert!(first.json["next_cursor"].is_string());
    let after = fixture.get(&format!("/events?limit=1000&after={}", seqs[1])).await;
    assert_eq!(after.each("seq"), seqs[2..]);
    assert_eq!(after.json["next_cursor"], json!(null));
    let of_task = fixture.get("/events?task_id=t0&map_index=-1").await;
    assert!(of_task.each("task_id").iter().all(|task| task == "t0"));
    assert!(!of_task.items().is_empty());
    fixture.get("/events?run_id=r").await.expect(422);
    fixture.get("/events?dag_id=chain&run_id=none").await.expect(404);
}

#[tokio::test]
async fn what_a_page_asks_of_the_store_does_not_grow_with_the_run() {
    let fixture = Fixture::new().await;
    fixture.load(&[("small.yaml", &chain(10)), ("large.yaml", &chain(2_000))]).await;
    let mut asked = Vec::new();
    for dag in ["small", "large"] {
        fixture.post(&format!("/dags/{dag}/runs"), json!({"run_id": "r"})).await.expect(202);
        fixture.turn().await;
        for list in ["tasks?limit=10", "tasks/t0/attempts?limit=10"] {
            let before = fixture.points.passed.load(Ordering::SeqCst);
            fixture.get(&format!("/dags/{dag}/runs/r/{list}")).await.expect(200);
            asked.push(fixture.points.passed.load(Ordering::SeqCst) - before);
        }
    }
    assert_eq!(asked[..2], asked[2..]);
    assert!(asked.iter().all(|points| *points < 20), "{asked:?}");
}
