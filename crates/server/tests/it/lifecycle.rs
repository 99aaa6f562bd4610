use crate::fixture::{Fixture, SALES, text};
use fencepost_api::execution::Ended;
use serde_json::{Value, json};

/// The states of a run's instances in the order of the list: `extract:none`.
async fn states(fixture: &Fixture, run: &str) -> Vec<String> {
    let list = fixture.get(&format!("/dags/sales/runs/{run}/tasks")).await;
    let one = |item: &Value| {
        let index = item["map_index"].as_i64().unwrap();
        let index = if index < 0 { String::new() } else { format!("[{index}]") };
        format!("{}{index}:{}", text(&item["task_id"]), text(&item["state"]))
    };
    list.items().iter().map(one).collect()
}

async fn triggered(fixture: &Fixture, run_id: &str) -> Value {
    let body = json!({"run_id": run_id, "params": {"day": "friday"}, "note": "by hand"});
    fixture.post("/dags/sales/runs", body).await.expect(202).json
}

#[tokio::test]
async fn a_run_from_its_trigger_to_its_end() {
    let fixture = Fixture::new().await;
    fixture.load(&[("sales.yaml", SALES)]).await;
    let reply = fixture.post("/dags/sales/runs", json!({"run_id": "r1"})).await.expect(202);
    assert_eq!(reply.header("location"), Some("/api/v1/dags/sales/runs/r1"));
    let run = &reply.json;
    assert_eq!((&run["state"], &run["triggered_by"]), (&json!("queued"), &json!("owner")));
    assert_eq!(run["task_counts"], json!({"none": 5}));
    assert_eq!(run["params"], json!({"day": "monday", "rows": 5}));
    let waiting =
        ["extract:none", "load:none", "publish[0]:none", "publish[1]:none", "publish[2]:none"];
    assert_eq!(states(&fixture, "r1").await, waiting);
    fixture.get("/dags/sales/runs/r1/tasks/publish;2").await.expect(200);
    fixture.get("/dags/sales/runs/r1/tasks/publish;3").await.expect(404);

    let worker = fixture.worker().await;
    fixture.turn().await;
    let claimed = worker.start_all().await;
    assert_eq!(claimed.len(), 1);
    let token = claimed[0].token.clone();
    let extract = fixture.get("/dags/sales/runs/r1/tasks/extract").await.expect(200).json;
    assert_eq!((&extract["state"], &extract["worker"]), (&json!("running"), &json!("w-1")));
    assert_eq!((&extract["token"], &extract["attempt_count"]), (&json!(token), &json!(1)));
    let active = fixture.get("/attempts").await;
    assert_eq!(active.each("token"), std::slice::from_ref(&token));
    assert_eq!(active.each("task_id"), ["extract"]);
    assert!(worker.end(&token, Ended::Exit { code: 0 }, &[("rows", json!(12))]).await);
    let outputs = fixture.get("/dags/sales/runs/r1/tasks/extract/outputs").await.expect(200).json;
    assert_eq!(outputs["outputs"], json!([{"name": "rows", "value": 12}]));
    assert_eq!(outputs["token"], json!(token));

    fixture.turn().await;
    for one in worker.start_all().await {
        assert_eq!(one.work.unwrap().argv, ["loader", "12"]);
        worker.succeed(&one.token).await;
    }
    fixture.turn().await;
    let mapped = worker.start_all().await;
    assert_eq!(mapped.len(), 3);
    for one in mapped {
        worker.succeed(&one.token).await;
    }
    fixture.turn().await;
    let run = fixture.get("/dags/sales/runs/r1").await.expect(200).json;
    assert_eq!((&run["state"], &run["task_counts"]), (&json!("success"), &json!({"success": 5})));
    let labels = fixture.get("/dags/sales/runs/r1/tasks?task_id=publish").await.each("map_label");
    assert_eq!(labels, ["emea", "amer", "apac"]);

    let events = fixture.get("/events?dag_id=sales&run_id=r1&limit=1000").await;
    let last = events.items().last().unwrap();
    assert_eq!((&last["kind"], &last["to"]), (&json!("run_state"), &json!("success")));
    assert_eq!(last["seq"], run["last_event_seq"]);
    let doctor = fixture.get("/doctor").await.expect(200).json;
    assert_eq!((&doctor["violations"], &doctor["attempts_checked"]), (&json!([]), &json!(5)));
}

#[tokio::test]
async fn clear_says_what_it_would_do_and_does_it() {
    let fixture = Fixture::new().await;
    fixture.load(&[("sales.yaml", SALES)]).await;
    triggered(&fixture, "r1").await;
    let worker = fixture.worker().await;
    fixture.turn().await;
    let extract = worker.start_all().await.remove(0);
    let done = Ended::Exit { code: 0 };
    assert!(worker.end(&extract.token, done, &[("rows", json!(1))]).await);
    fixture.turn().await;
    let load = worker.start_all().await.remove(0);

    let clear = "/dags/sales/runs/r1/tasks/extract:clear";
    let body = json!({"downstream": true, "reason": "bad input"});
    let plan = fixture.post(&format!("{clear}?dry_run=true"), body.clone()).await.expect(200).json;
    assert_eq!((&plan["dry_run"], &plan["version"]), (&json!(true), &json!(1)));
    let changes: Vec<String> =
        plan["changes"].as_array().unwrap().iter().map(Value::to_string).collect();
    assert_eq!(changes.len(), 2, "{plan:#}");
    let of = |task: &str| {
        plan["changes"].as_array().unwrap().iter().find(|c| c["task_id"] == task).unwrap().clone()
    };
    assert_eq!((&of("load")["to"], &of("load")["new_key"]), (&json!("restarting"), &json!(false)));
    assert_eq!((&of("extract")["to"], &of("extract")["new_key"]), (&json!("none"), &json!(true)));
    assert_eq!(states(&fixture, "r1").await[..2], ["extract:success", "load:running"]);

    let done = fixture.post(clear, body).await.expect(200).json;
    assert_eq!(done["changes"], plan["changes"]);
    assert_eq!(states(&fixture, "r1").await[..2], ["extract:none", "load:restarting"]);
    let reason = fixture.get("/events?dag_id=sales&run_id=r1&kind=reason_given").await;
    assert_eq!(reason.each("reason"), ["bad input"]);
    assert_eq!(reason.each("actor"), ["owner"]);
    // What runs comes back only when its processes are gone.
    assert!(worker.end(&load.token, Ended::Stopped { code: None, signal: Some(15) }, &[]).await);
    fixture.turn().await;
    assert_eq!(states(&fixture, "r1").await[..2], ["extract:queued", "load:none"]);
    let attempts = fixture.get("/dags/sales/runs/r1/tasks/extract/attempts").await;
    assert_eq!(attempts.each("why"), ["first", "cleared"]);
}

#[tokio::test]
async fn clear_takes_single_instances_and_what_lies_before() {
    let fixture = Fixture::new().await;
    fixture.load(&[("sales.yaml", SALES)]).await;
    triggered(&fixture, "r1").await;
    fixture.turn().await;
    for task in ["extract", "load", "publish"] {
        let mark = format!("/dags/sales/runs/r1/tasks/{task}:mark");
        fixture.post(&mark, json!({"state": "success"})).await.expect(200);
        fixture.turn().await;
    }
    let ended = fixture.get("/dags/sales/runs/r1").await.json;
    assert_eq!(ended["state"], "success", "{ended:#}");
    let body = json!({"tasks": ["publish;1", "load"], "upstream": true});
    let plan = fixture.post("/dags/sales/runs/r1:clear?dry_run=true", body).await.expect(200).json;
    let mut names: Vec<String> = plan["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| format!("{}{}", text(&c["task_id"]), c["map_index"]))
        .collect();
    names.sort();
    assert_eq!(names, ["extract-1", "load-1", "publish1"]);
    let body = json!({"tasks": ["load", "lod", "publish;x"]});
    let wrong = fixture.post("/dags/sales/runs/r1:clear", body).await.expect(422).json;
    assert_eq!(wrong["errors"][0]["pointer"], "/tasks/1");
    assert_eq!(wrong["errors"][1]["pointer"], "/tasks/2");
    let body = json!({"tasks": ["publish;1"]});
    fixture.post("/dags/sales/runs/r1:clear", body).await.expect(200);
    fixture.turn().await;
    assert_eq!(
        states(&fixture, "r1").await[2..],
        ["publish[0]:success", "publish[1]:queued", "publish[2]:success"]
    );
}

#[tokio::test]
async fn mark_decides_and_previews() {
    let fixture = Fixture::new().await;
    fixture.load(&[("sales.yaml", SALES)]).await;
    triggered(&fixture, "r1").await;
    fixture.turn().await;
    let mark = "/dags/sales/runs/r1/tasks/publish;1:mark";
    let body = json!({"state": "skipped", "upstream": true});
    let plan = fixture.post(&format!("{mark}?dry_run=true"), body.clone()).await.expect(200).json;
    assert_eq!(plan["changes"].as_array().unwrap().len(), 3, "{plan:#}");
    assert_eq!(states(&fixture, "r1").await[0], "extract:queued");
    fixture.post(mark, body).await.expect(200);
    let after = states(&fixture, "r1").await;
    assert_eq!(after[..2], ["extract:skipped", "load:skipped"]);
    assert_eq!(after[3], "publish[1]:skipped");
    for state in ["running", "sad", ""] {
        fixture.post(mark, json!({"state": state})).await.expect(422);
    }
    let none = fixture.post(mark, json!({})).await.expect(422);
    assert!(none.json["detail"].as_str().unwrap().contains("state"), "{:#}", none.json);
}

#[tokio::test]
async fn cancel_pause_note_and_delete() {
    let fixture = Fixture::new().await;
    fixture.load(&[("sales.yaml", SALES)]).await;
    triggered(&fixture, "r1").await;
    let run = "/dags/sales/runs/r1";
    let act = |verb: &'static str| {
        fixture.post(
            match verb {
                "pause" => "/dags/sales/runs/r1:pause",
                "resume" => "/dags/sales/runs/r1:resume",
                "cancel" => "/dags/sales/runs/r1:cancel",
                _ => "/dags/sales/runs/r1:kill",
            },
            json!({"reason": "why not"}),
        )
    };
    assert_eq!(act("pause").await.expect(200).json["paused"], true);
    fixture.turn().await;
    let why = fixture.get(&format!("{run}/explain")).await.expect(200).json;
    assert!(why["summary"].as_str().unwrap().contains("paused"), "{why:#}");
    assert_eq!(act("resume").await.expect(200).json["paused"], false);
    fixture.turn().await;
    let worker = fixture.worker().await;
    let extract = worker.start_all().await.remove(0);
    fixture.delete(run).await.expect(409);
    let stopping = act("cancel").await.expect(200).json;
    assert_eq!(stopping["state"], "running");
    assert!(stopping["reason"].as_str().unwrap().starts_with("cancel by owner"), "{stopping:#}");
    assert!(worker.end(&extract.token, Ended::Stopped { code: None, signal: Some(15) }, &[]).await);
    fixture.turn().await;
    let ended = fixture.get(run).await.json;
    assert_eq!((&ended["state"], &ended["note"]), (&json!("cancelled"), &json!("by hand")));
    assert_eq!(act("cancel").await.expect(409).code(), "already-terminal");
    assert_eq!(act("kill").await.expect(409).code(), "already-terminal");
    let noted = fixture.send("PATCH", run, json!({"note": ""})).await.expect(200).json;
    assert_eq!(noted["note"], Value::Null);
    fixture.delete(run).await.expect(204);
    assert_eq!(fixture.get(run).await.expect(404).code(), "no-such-run");
    fixture.post("/dags/sales/runs", json!({"run_id": "q"})).await.expect(202);
    assert_eq!(fixture.delete("/dags/sales/runs/q").await.expect(409).code(), "still-active");
    let again = fixture.post("/dags/sales/runs", json!({"run_id": "q"})).await.expect(409);
    assert_eq!(again.code(), "run-exists");
}

#[tokio::test]
async fn explain_and_rendered_say_what_waits_and_what_would_run() {
    let fixture = Fixture::new().await;
    fixture.load(&[("sales.yaml", SALES)]).await;
    triggered(&fixture, "r1").await;
    let early = fixture.get("/dags/sales/runs/r1/tasks/load/explain").await.expect(200).json;
    assert_eq!(early["task_id"], "load");
    fixture.turn().await;
    let why = fixture.get("/dags/sales/runs/r1/tasks/load/explain").await.expect(200).json;
    let blocking = why["gates"].as_array().unwrap().iter().find(|g| g["status"] == "blocking");
    assert_eq!(blocking.unwrap()["code"], "upstream_not_done", "{why:#}");

    let rendered = fixture.get("/dags/sales/runs/r1/tasks/extract/rendered").await.expect(200).json;
    let fields = rendered["fields"].as_array().unwrap();
    let field = |name: &str| fields.iter().find(|f| f["field"] == name).unwrap();
    assert_eq!(field("run")["text"], "echo friday");
    assert_eq!(field("env.WHO")["text"], "sales");
    let early = fixture.get("/dags/sales/runs/r1/tasks/load/rendered").await.expect(200).json;
    assert_eq!(early["fields"][0]["text"], "loader");
    assert!(early["fields"][1]["error"].is_string(), "{early:#}");
    let mapped = fixture.get("/dags/sales/runs/r1/tasks/publish/rendered").await.expect(422);
    assert!(mapped.json["suggestion"].as_str().unwrap().contains("publish;0"));
    let one = fixture.get("/dags/sales/runs/r1/tasks/publish;1/rendered").await.expect(200).json;
    assert_eq!(one["fields"][0]["text"], "echo amer");
}
