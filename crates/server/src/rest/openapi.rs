//! The API as an OpenAPI 3.1 document, made from the route table: what is served and what is
//! described cannot differ. Bodies are named by their types; their schemas are open objects.

use super::answer::{Answer, Done};
use fencepost_api::problem::{CONTENT_TYPE, ProblemCode};
use fencepost_api::rest::routes::{ALL, Method, PREFIX, Permission, Route};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The document.
pub(super) fn show() -> Done {
    Answer::ok(&document())
}

fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in ALL {
        let entry = paths.entry(format!("{PREFIX}{}", route.path)).or_insert_with(|| json!({}));
        entry[route.method.as_str().to_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Fencepost",
            "version": "v1",
            "description": "Runs, task instances and attempts of an installation. Lists are pages \
                            with an opaque cursor; errors are problems (RFC 9457) with a stable code.",
        },
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": {
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
            "schemas": { "Problem": problem() },
            "responses": {
                "Problem": {
                    "description": "A problem",
                    "content": {
                        CONTENT_TYPE: { "schema": { "$ref": "#/components/schemas/Problem" } },
                    },
                },
            },
        },
    })
}

fn operation(route: &Route) -> Value {
    let status = success(route);
    let content = json!({ "application/json": { "schema": { "type": "object" } } });
    let mut good = json!({ "description": route.summary });
    if status != "204" {
        good["content"] = content.clone();
    }
    let mut operation = json!({
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.permission.as_str()],
        "parameters": parameters(route),
        "responses": {
            status: good,
            "default": { "$ref": "#/components/responses/Problem" },
        },
    });
    let is_public = route.permission == Permission::Public;
    operation["security"] = if is_public { json!([]) } else { json!([{ "bearer": [] }]) };
    if matches!(route.method, Method::Post | Method::Put | Method::Patch) {
        operation["requestBody"] = json!({ "required": false, "content": content });
    }
    operation
}

/// The status of a good answer, as the summary says it.
fn success(route: &Route) -> &'static str {
    ["201", "202", "204"]
        .into_iter()
        .find(|status| route.summary.contains(&format!("-> {status}")))
        .unwrap_or("200")
}

fn parameters(route: &Route) -> Vec<Value> {
    let names = route.path.split(['{', '}']).skip(1).step_by(2);
    let mut parameters: Vec<Value> = names.map(|name| parameter(name, "path", "string")).collect();
    let query: &[(&str, &str)] = match route.summary.split("->").next().unwrap_or_default() {
        asked if asked.contains("DryRun") => &[("dry_run", "boolean")],
        asked if asked.contains("SlotQuery") => &[("n", "integer")],
        asked if asked.contains("EventQuery") => {
            &[("limit", "integer"), ("after", "integer"), ("wait_ms", "integer")]
        }
        asked if asked.contains("Query") => &[("limit", "integer"), ("cursor", "string")],
        _ => &[],
    };
    parameters.extend(query.iter().map(|(name, kind)| parameter(name, "query", kind)));
    if route.method == Method::Post {
        parameters.push(parameter("Idempotency-Key", "header", "string"));
    }
    parameters
}

fn parameter(name: &str, place: &str, kind: &str) -> Value {
    json!({ "name": name, "in": place, "required": place == "path", "schema": { "type": kind } })
}

fn problem() -> Value {
    let codes: BTreeSet<&str> = ProblemCode::ALL.iter().map(|code| code.as_str()).collect();
    json!({
        "type": "object",
        "required": ["type", "title", "status", "code", "detail"],
        "properties": {
            "type": { "type": "string", "format": "uri" },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "code": { "type": "string", "examples": codes },
            "detail": { "type": "string" },
            "instance": { "type": "string" },
            "suggestion": { "type": "string" },
            "errors": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["pointer", "message"],
                    "properties": {
                        "pointer": { "type": "string" },
                        "message": { "type": "string" },
                        "suggestion": { "type": "string" },
                    },
                },
            },
        },
    })
}
