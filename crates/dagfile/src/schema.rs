//! The JSON schema of the DAG file, for completion and hover texts in editors.
//!
//! Made from the table of keys. `x-since: later` marks what is known and refused, `x-later` the
//! values that are, `x-template: true` a text that is a Jinja template.

use crate::keys::{self, ACTIONS, Key, Level, Shape};
use crate::params::{KEYWORDS, TYPES};
use crate::read::output_types;
use fencepost_core::callback::{DEADLINE_KEYS, KINDS, keys_of};
use fencepost_core::http_task;
use fencepost_core::schedule::Cron;
use fencepost_core::wait::KEYS;
use serde_json::{Map, Value, json};

const NAME: &str = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}$";
const IDENTIFIER: &str = "^[A-Za-z_][A-Za-z0-9_]*$";

/// The schema (draft 7, which editors know best).
pub fn schema() -> Value {
    let mut task = object(Level::Task);
    let has = |action: &&str| json!({ "required": [action] });
    task["oneOf"] = ACTIONS.iter().map(has).collect();
    let mut root = object(Level::Dag);
    root["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    root["title"] = json!("Fencepost DAG file");
    root["anyOf"] = json!([{ "required": ["tasks"] }, { "required": ["task_groups"] }]);
    root["definitions"] = json!({
        "task": task,
        "task_group": object(Level::Group),
        "default_args": object(Level::TaskOrDefault),
        "duration": duration(),
        "retry_rule": retry_rule(),
        "param": param(),
        "assets": assets(),
    });
    root
}

fn object(level: Level) -> Value {
    let properties: Map<String, Value> =
        keys::at(level).map(|key| (key.name.to_owned(), property(key))).collect();
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn property(key: &Key) -> Value {
    let mut out = Map::new();
    out.insert("description".into(), json!(key.doc));
    if let Value::Object(shape) = shape(key.shape) {
        out.extend(shape);
    }
    if let Ok(default) = serde_json::from_str::<Value>(key.default) {
        out.insert("default".into(), default);
    }
    if key.is_template {
        out.insert("x-template".into(), json!(true));
    }
    Value::Object(out)
}

fn shape(shape: Shape) -> Value {
    match shape {
        Shape::Text => json!({ "type": "string" }),
        Shape::Name => json!({ "type": "string", "pattern": NAME }),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Whole { least, greatest } => {
            json!({ "type": "integer", "minimum": least, "maximum": greatest })
        }
        Shape::Duration => json!({ "$ref": "#/definitions/duration" }),
        Shape::Date => json!({ "type": ["string", "null"] }),
        Shape::Choice { values, later: [] } => json!({ "enum": values }),
        Shape::Choice { values, later } => json!({ "enum": values, "x-later": later }),
        Shape::Texts => json!({ "type": "array", "items": scalar() }),
        Shape::Words => json!({ "type": "array", "items": scalar(), "minItems": 1 }),
        Shape::Codes => json!({ "type": "array", "items": exit_code(0) }),
        Shape::TaskNames => {
            json!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true })
        }
        Shape::Env => map_of(IDENTIFIER, &scalar_or_null()),
        Shape::Secrets => {
            let sources = "^(store:.+|env:.+|file:/.*|exec:.+)$";
            map_of(IDENTIFIER, &json!({ "type": "string", "pattern": sources }))
        }
        Shape::Version => json!({ "const": 1 }),
        Shape::Schedule => schedule(),
        Shape::TimeZone => json!({ "type": "string", "examples": ["UTC", "Europe/Berlin"] }),
        Shape::Catchup => json!({ "enum": [true, false, "next"] }),
        Shape::Params => map_of(IDENTIFIER, &json!({ "$ref": "#/definitions/param" })),
        Shape::Tasks => {
            let mut tasks = map_of(NAME, &json!({ "$ref": "#/definitions/task" }));
            tasks["minProperties"] = json!(1);
            tasks
        }
        Shape::TaskGroups => map_of(NAME, &json!({ "$ref": "#/definitions/task_group" })),
        Shape::DefaultArgs => json!({ "$ref": "#/definitions/default_args" }),
        Shape::Expand => {
            let template = json!({ "type": "string", "pattern": "\\{\\{", "x-template": true });
            let list = json!({ "type": "array", "minItems": 1 });
            map_of(IDENTIFIER, &json!({ "anyOf": [list, template] }))
        }
        Shape::Outputs => {
            let types: Vec<&str> = output_types().map(|(name, _)| name).collect();
            map_of(IDENTIFIER, &json!({ "enum": types }))
        }
        Shape::Assets => {
            json!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true })
        }
        Shape::RetryPolicy => {
            json!({ "type": "array", "items": { "$ref": "#/definitions/retry_rule" } })
        }
        Shape::Resources => resources(),
        Shape::Program => json!({ "type": ["string", "array"], "items": scalar() }),
        Shape::TriggerDag => json!({ "anyOf": [{ "type": "string" }, {
            "type": "object",
            "properties": {
                "dag_id": { "type": "string" },
                "run_id": { "type": "string" },
                "logical_date": { "type": "string" },
                "params": { "type": "object" },
            },
            "required": ["dag_id"],
            "additionalProperties": false,
        }] }),
        Shape::Wait => wait(),
        Shape::Callbacks => callbacks(),
        Shape::Deadline => deadline(),
        Shape::Http => http(),
        Shape::True => json!({ "const": true }),
        Shape::Later => json!({ "x-since": "later" }),
    }
}

fn resources() -> Value {
    let properties = json!({
        "cpu": { "type": ["string", "number"] },
        "memory": { "type": ["string", "integer"] },
    });
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn scalar() -> Value {
    json!({ "type": ["string", "number", "boolean"] })
}

fn scalar_or_null() -> Value {
    json!({ "type": ["string", "number", "boolean", "null"] })
}

fn map_of(names: &str, value: &Value) -> Value {
    json!({ "type": "object", "propertyNames": { "pattern": names }, "additionalProperties": value })
}

fn exit_code(least: u8) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": 255 })
}

fn duration() -> Value {
    json!({
        "type": ["string", "null"],
        "pattern": "^([0-9]+(d|h|m|s|ms|us))+$|^[Pp]",
        "examples": ["30s", "5m", "1h30m", "PT1H30M"],
    })
}

fn schedule() -> Value {
    let names: Vec<&str> = Cron::names().collect();
    let cron = json!({ "type": "string", "examples": ["0 5 * * *", names] });
    let rule = |name: &str, value: Value| {
        json!({
            "type": "object", "additionalProperties": false,
            "required": [name], "properties": { name: value },
        })
    };
    json!({ "anyOf": [
        { "type": "null" },
        cron,
        { "type": "array", "items": cron, "minItems": 1 },
        rule("every", json!({ "$ref": "#/definitions/duration" })),
        rule("at", json!({ "type": "string" })),
        rule("assets", json!({ "$ref": "#/definitions/assets" })),
    ]})
}

/// A condition over assets.
fn assets() -> Value {
    let many =
        json!({ "type": "array", "items": { "$ref": "#/definitions/assets" }, "minItems": 1 });
    let of = |word: &str| {
        json!({
            "type": "object", "additionalProperties": false,
            "required": [word], "properties": { word: many },
        })
    };
    json!({ "anyOf": [{ "type": "string" }, many, of("all"), of("any")] })
}

fn wait() -> Value {
    let key = |(name, doc): &(&str, &str)| ((*name).to_owned(), json!({ "description": doc }));
    let properties: Map<String, Value> = KEYS.iter().map(key).collect();
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn callbacks() -> Value {
    let kind = |(name, doc): &(&str, &str)| {
        let one = match *name {
            "run" => json!({ "type": "string", "x-template": true, "description": doc }),
            _ => callback(name, doc),
        };
        json!({
            "type": "object", "additionalProperties": false,
            "required": [name], "properties": { *name: one },
        })
    };
    let kinds: Vec<Value> = KINDS.iter().map(kind).collect();
    json!({ "type": "array", "items": { "anyOf": kinds } })
}

fn callback(kind: &str, doc: &str) -> Value {
    let keys = keys_of(kind).iter().map(|key| ((*key).to_owned(), json!({})));
    let keys: Map<String, Value> = keys.collect();
    let object = json!({ "type": "object", "additionalProperties": false, "properties": keys });
    let given = match kind {
        "trigger_dag" => json!([{ "type": "string" }, object]),
        _ => json!([object]),
    };
    json!({ "description": doc, "anyOf": given })
}

fn deadline() -> Value {
    let key = |(name, doc): &(&str, &str)| {
        let mut shape = if *name == "callback" { callbacks() } else { json!({ "type": "string" }) };
        shape["description"] = json!(doc);
        ((*name).to_owned(), shape)
    };
    let properties: Map<String, Value> = DEADLINE_KEYS.iter().map(key).collect();
    json!({
        "type": "object", "additionalProperties": false,
        "required": ["callback"], "properties": properties,
    })
}

fn http() -> Value {
    let key = |(name, doc): &(&str, &str)| ((*name).to_owned(), json!({ "description": doc }));
    let properties: Map<String, Value> = http_task::KEYS.iter().map(key).collect();
    json!({ "anyOf": [{ "type": "string" }, {
        "type": "object",
        "properties": properties,
        "required": ["url"],
        "additionalProperties": false,
    }] })
}

fn retry_rule() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["exit_codes", "action"],
        "properties": {
            "exit_codes": { "type": "array", "items": exit_code(1), "minItems": 1 },
            "action": { "enum": ["fail", "retry"] },
            "delay": { "$ref": "#/definitions/duration" },
            "reason": { "type": "string" },
        },
    })
}

fn param() -> Value {
    let mut properties: Map<String, Value> =
        KEYWORDS.iter().map(|keyword| ((*keyword).to_owned(), json!({}))).collect();
    let types = json!({ "enum": TYPES });
    let several = json!({ "type": "array", "items": types });
    properties.insert("type".into(), json!({ "anyOf": [types, several] }));
    properties.insert("default".into(), json!({}));
    properties.insert("description".into(), json!({ "type": "string" }));
    json!({ "anyOf": [
        { "type": ["string", "number", "boolean", "array", "null"] },
        { "type": "object", "additionalProperties": false, "properties": properties },
    ]})
}
