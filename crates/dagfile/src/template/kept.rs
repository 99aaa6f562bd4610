//! `var` and `conn`: what the installation keeps, in Airflow's forms.

use fencepost_core::connection::Connection;
use minijinja::value::Object;
use minijinja::{Error, ErrorKind, State, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What is kept and was opened for a template.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Kept {
    pub variables: BTreeMap<String, String>,
    pub connections: BTreeMap<String, Connection>,
    /// Why something is not there, in sentences: added to what is said of an undefined name.
    pub missing: Vec<String>,
}

/// Names only.
impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.variables.keys()).entries(self.connections.keys()).finish()
    }
}

impl Kept {
    pub(super) fn add_to(&self, names: &mut BTreeMap<&str, Value>) {
        let text = |(name, value): (&String, &String)| (name.clone(), Value::from(value.as_str()));
        let json = |(name, value): (&String, &String)| {
            let json: serde_json::Value = serde_json::from_str(value).ok()?;
            Some((name.clone(), Value::from(minijinja::value::Serde(json))))
        };
        let values: BTreeMap<String, Value> = self.variables.iter().map(text).collect();
        let jsons: BTreeMap<String, Value> = self.variables.iter().filter_map(json).collect();
        let var = [("value", Value::from_pairs(values)), ("json", Value::from_pairs(jsons))];
        names.insert("var", Value::from_pairs(var));
        let conn = self.connections.iter().map(|(name, connection)| {
            let facts = facts(name, connection);
            (name.clone(), Value::from_object(Conn { facts, uri: connection.to_uri() }))
        });
        names.insert("conn", Value::from_pairs(conn.collect::<BTreeMap<_, _>>()));
    }
}

fn facts(name: &str, of: &Connection) -> BTreeMap<&'static str, Value> {
    let text = |text: &Option<String>| text.as_deref().map_or(Value::from(()), Value::from);
    let extra = serde_json::Value::Object(of.extra.clone());
    BTreeMap::from([
        ("conn_id", Value::from(name)),
        ("conn_type", Value::from(of.conn_type.as_str())),
        ("host", text(&of.host)),
        ("port", of.port.map_or(Value::from(()), Value::from)),
        ("schema", text(&of.schema)),
        ("login", text(&of.login)),
        ("password", text(&of.password)),
        ("extra", Value::from(extra.to_string())),
        ("extra_dejson", Value::from(minijinja::value::Serde(extra))),
    ])
}

/// `conn.NAME`: its fields, and `get_uri()`.
struct Conn {
    facts: BTreeMap<&'static str, Value>,
    uri: String,
}

impl fmt::Debug for Conn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("connection")
    }
}

impl Object for Conn {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.facts.get(key.as_str()?).cloned()
    }

    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        method: &str,
        _: &[Value],
    ) -> Result<Value, Error> {
        if method == "get_uri" {
            return Ok(Value::from(self.uri.as_str()));
        }
        Err(Error::from(ErrorKind::UnknownMethod))
    }
}
