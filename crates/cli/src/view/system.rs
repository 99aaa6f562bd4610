//! Pools, tokens, health, configuration.

use crate::output::paint::Paint;
use crate::output::span::{NOTHING, age, date_time, duration};
use crate::output::table::Cell;
use crate::output::{Column, Detail, Row};
use Column::Always;
use fencepost_api::rest::{ConfigValue, HealthComponent, Pool, Token};
use fencepost_core::time::{Span, Timestamp};

impl Row for Pool {
    const COLUMNS: &'static [Column] = &[
        Always("POOL"),
        Always("USED"),
        Always("SLOTS"),
        Always("WAITING"),
        Always("DESCRIPTION"),
    ];
    fn cells(&self, _now: Timestamp) -> Vec<Cell> {
        let full = self.used_slots >= self.slots;
        vec![
            Cell::painted(&self.name, Paint::Strong),
            Cell::painted(
                self.used_slots.to_string(),
                if full { Paint::Waiting } else { Paint::Plain },
            ),
            self.slots.to_string().into(),
            self.waiting.to_string().into(),
            Cell::or_dash(Some(&self.description)),
        ]
    }
    fn name(&self) -> String {
        self.name.clone()
    }
}

impl Detail for Pool {
    fn lines(&self, _now: Timestamp) -> Vec<(&'static str, Cell)> {
        vec![
            ("Pool", Cell::painted(&self.name, Paint::Strong)),
            ("Slots", format!("{} of {} in use", self.used_slots, self.slots).into()),
            ("Waiting", self.waiting.to_string().into()),
            ("Description", Cell::or_dash(Some(&self.description))),
        ]
    }
    fn name(&self) -> String {
        self.name.clone()
    }
}

impl Row for Token {
    const COLUMNS: &'static [Column] = &[
        Always("ID"),
        Always("NAME"),
        Always("ROLE"),
        Always("STATE"),
        Always("CREATED"),
        Always("EXPIRES"),
        Always("LAST USED"),
    ];
    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        let state = match self.revoked_at {
            Some(_) => Cell::painted("revoked", Paint::Dim),
            None => Cell::painted("valid", Paint::Good),
        };
        vec![
            self.id.as_str().into(),
            Cell::or_dash(self.name.as_ref()),
            self.role.as_str().into(),
            state,
            date_time(Some(&self.created_at)).into(),
            self.expires_at.as_deref().map_or("never".into(), |at| Cell::from(age(Some(at), now))),
            age(self.last_used_at.as_deref(), now).into(),
        ]
    }
    fn name(&self) -> String {
        self.id.clone()
    }
}

impl Row for HealthComponent {
    const COLUMNS: &'static [Column] =
        &[Always("ROLE"), Always("NAME"), Always("STATUS"), Always("LAST TURN"), Always("DETAIL")];
    fn cells(&self, _now: Timestamp) -> Vec<Cell> {
        let millis = self.age_ms.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
        vec![
            Cell::painted(&self.role, Paint::Strong),
            self.name.as_str().into(),
            Cell::state(&self.status),
            Cell::or_dash(millis.map(|ms| duration(Span::from_millis(ms)))),
            Cell::or_dash(self.detail.as_ref()),
        ]
    }
    fn name(&self) -> String {
        self.name.clone()
    }
}

impl Row for ConfigValue {
    const COLUMNS: &'static [Column] =
        &[Always("KEY"), Always("VALUE"), Always("ORIGIN"), Always("WHERE")];
    fn cells(&self, _now: Timestamp) -> Vec<Cell> {
        let paint = if self.origin == "default" { Paint::Dim } else { Paint::Good };
        let value = self.value.as_deref().unwrap_or(NOTHING);
        vec![
            Cell::painted(&self.key, Paint::Strong),
            Cell::painted(value, paint),
            self.origin.as_str().into(),
            Cell::or_dash(self.origin_detail.as_ref()),
        ]
    }
    fn name(&self) -> String {
        self.key.clone()
    }
}
