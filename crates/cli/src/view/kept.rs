//! Variables, connections and secrets.

use crate::output::paint::Paint;
use crate::output::span::date_time;
use crate::output::table::Cell;
use crate::output::{Column, Detail, Row};
use Column::Always;
use fencepost_api::rest::{ConnectionTest, Kept, Rotated};
use fencepost_core::time::Timestamp;
use serde_json::Value;

fn said(kept: &Kept) -> Cell {
    match (&kept.trouble, &kept.value) {
        (Some(trouble), _) => Cell::painted(trouble, Paint::Alert),
        (None, Value::String(text)) => text.clone().into(),
        (None, Value::Null) => Cell::or_dash(None::<String>),
        (None, Value::Object(fields)) => {
            let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
            let port = fields.get("port").and_then(Value::as_u64);
            let port = port.map(|port| format!(":{port}")).unwrap_or_default();
            format!("{}://{}{port}", text("conn_type"), text("host")).into()
        }
        (None, other) => other.to_string().into(),
    }
}

impl Row for Kept {
    const COLUMNS: &'static [Column] =
        &[Always("NAME"), Always("VALUE"), Always("UPDATED"), Always("BY"), Always("DESCRIPTION")];
    fn cells(&self, _now: Timestamp) -> Vec<Cell> {
        vec![
            Cell::painted(&self.name, Paint::Strong),
            said(self),
            date_time(Some(&self.updated_at)).into(),
            self.updated_by.clone().into(),
            Cell::or_dash(Some(&self.description)),
        ]
    }
    fn name(&self) -> String {
        self.name.clone()
    }
}

impl Detail for Kept {
    fn lines(&self, _now: Timestamp) -> Vec<(&'static str, Cell)> {
        let mut lines = vec![("Name", Cell::painted(&self.name, Paint::Strong))];
        match (&self.trouble, self.value.as_object()) {
            (None, Some(fields)) => {
                const PARTS: [(&str, &str); 7] = [
                    ("conn_type", "Type"),
                    ("host", "Host"),
                    ("port", "Port"),
                    ("schema", "Schema"),
                    ("login", "Login"),
                    ("password", "Password"),
                    ("extra", "Extra"),
                ];
                for (field, label) in PARTS {
                    let text = match fields.get(field) {
                        None | Some(Value::Null) => None,
                        Some(Value::String(text)) => Some(text.clone()),
                        Some(other) => Some(other.to_string()),
                    };
                    lines.push((label, Cell::or_dash(text)));
                }
            }
            _ => lines.push(("Value", said(self))),
        }
        lines.push(("Description", Cell::or_dash(Some(&self.description))));
        lines.push(("Updated", date_time(Some(&self.updated_at)).into()));
        lines.push(("By", self.updated_by.clone().into()));
        lines
    }
    fn name(&self) -> String {
        self.name.clone()
    }
}

impl Detail for ConnectionTest {
    fn lines(&self, _now: Timestamp) -> Vec<(&'static str, Cell)> {
        let paint = if self.ok { Paint::Good } else { Paint::Alert };
        vec![
            ("Connection", Cell::painted(&self.name, Paint::Strong)),
            ("Reachable", Cell::painted(if self.ok { "yes" } else { "no" }, paint)),
            ("Message", self.message.clone().into()),
        ]
    }
    fn name(&self) -> String {
        self.name.clone()
    }
}

impl Detail for Rotated {
    fn lines(&self, _now: Timestamp) -> Vec<(&'static str, Cell)> {
        vec![
            ("Sealed anew", self.resealed.to_string().into()),
            ("Unreadable", Cell::or_dash(Some(self.unreadable.join(", ")))),
        ]
    }
    fn name(&self) -> String {
        self.resealed.to_string()
    }
}
