//! Values and rows, and how a row is read column by column.

use crate::error::{StoreError, StoreErrorKind};
use fencepost_core::id::{AttemptId, JobId, Token};
use fencepost_core::time::{Span, Timestamp};

/// A value of a statement: what both databases can hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    Null,
    Int(i64),
    Text(String),
}

impl Value {
    /// Without NUL bytes, which PostgreSQL does not hold in a text: no output of a task makes the
    /// books fail (I22). The same on both databases.
    pub(crate) fn storable(self) -> Self {
        match self {
            Self::Text(text) if text.contains('\0') => Self::Text(text.replace('\0', "\u{fffd}")),
            Self::Text(_) | Self::Int(_) | Self::Null => self,
        }
    }
}

/// A row of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row(pub Vec<Value>);

impl Row {
    /// Reads the columns from left to right; `what` names the row in errors.
    pub fn columns(self, what: &'static str) -> Columns {
        Columns { values: self.0.into_iter(), at: 0, what }
    }
}

/// The columns of a row that are not read yet.
#[derive(Debug)]
pub struct Columns {
    values: std::vec::IntoIter<Value>,
    at: usize,
    what: &'static str,
}

impl Columns {
    fn next(&mut self) -> Result<Value, StoreError> {
        self.at += 1;
        self.values.next().ok_or_else(|| self.wrong("has too few columns"))
    }

    /// An error that names the row and the column.
    pub fn wrong(&self, why: &str) -> StoreError {
        let message = format!("{}, column {}: {why}", self.what, self.at);
        StoreError::new(StoreErrorKind::Decode, self.what, message)
    }

    /// An integer that may be null.
    pub fn opt_int(&mut self) -> Result<Option<i64>, StoreError> {
        match self.next()? {
            Value::Null => Ok(None),
            Value::Int(n) => Ok(Some(n)),
            Value::Text(_) => Err(self.wrong("is text, not a number")),
        }
    }
    /// An integer.
    pub fn int(&mut self) -> Result<i64, StoreError> {
        self.opt_int()?.ok_or_else(|| self.wrong("is null"))
    }
    /// An integer that fits in `T`.
    pub fn number<T: TryFrom<i64>>(&mut self) -> Result<T, StoreError> {
        T::try_from(self.int()?).map_err(|_| self.wrong("is out of range"))
    }
    /// A number that may be null.
    pub fn opt_number<T: TryFrom<i64>>(&mut self) -> Result<Option<T>, StoreError> {
        match self.opt_int()? {
            None => Ok(None),
            Some(n) => T::try_from(n).map(Some).map_err(|_| self.wrong("is out of range")),
        }
    }
    /// A truth value, kept as 0 or 1.
    pub fn flag(&mut self) -> Result<bool, StoreError> {
        Ok(self.int()? != 0)
    }
    /// A text that may be null.
    pub fn opt_text(&mut self) -> Result<Option<String>, StoreError> {
        match self.next()? {
            Value::Null => Ok(None),
            Value::Text(text) => Ok(Some(text)),
            Value::Int(_) => Err(self.wrong("is a number, not text")),
        }
    }
    /// A text.
    pub fn text(&mut self) -> Result<String, StoreError> {
        self.opt_text()?.ok_or_else(|| self.wrong("is null"))
    }
    /// An instant.
    pub fn time(&mut self) -> Result<Timestamp, StoreError> {
        Ok(Timestamp::from_micros(self.int()?))
    }
    /// An instant that may be null.
    pub fn opt_time(&mut self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.opt_int()?.map(Timestamp::from_micros))
    }
    /// A token; 0 or null is none.
    pub fn opt_token(&mut self) -> Result<Option<Token>, StoreError> {
        match self.opt_int()? {
            None | Some(0) => Ok(None),
            Some(n) => Token::from_i64(n).map(Some).map_err(|e| self.wrong(&e.to_string())),
        }
    }
    /// A token.
    pub fn token(&mut self) -> Result<Token, StoreError> {
        self.opt_token()?.ok_or_else(|| self.wrong("is no token"))
    }
    /// A name of a closed set.
    pub fn named<T>(&mut self, parse: fn(&str) -> Option<T>) -> Result<T, StoreError> {
        let text = self.text()?;
        parse(&text).ok_or_else(|| self.wrong(&format!("`{text}` is unknown")))
    }
    /// A name of a closed set that may be null.
    pub fn opt_named<T>(&mut self, parse: fn(&str) -> Option<T>) -> Result<Option<T>, StoreError> {
        match self.opt_text()? {
            None => Ok(None),
            Some(text) => {
                parse(&text).map(Some).ok_or_else(|| self.wrong(&format!("`{text}` is unknown")))
            }
        }
    }
    /// A UUID.
    pub fn attempt_id(&mut self) -> Result<AttemptId, StoreError> {
        self.text()?.parse().map_err(|_| self.wrong("is not a UUID"))
    }
    /// A UUID that may be null.
    pub fn opt_job_id(&mut self) -> Result<Option<JobId>, StoreError> {
        match self.opt_text()? {
            None => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| self.wrong("is not a UUID")),
        }
    }
    /// JSON.
    pub fn json(&mut self) -> Result<serde_json::Value, StoreError> {
        let text = self.text()?;
        serde_json::from_str(&text).map_err(|e| self.wrong(&e.to_string()))
    }
}

impl From<i64> for Value {
    fn from(n: i64) -> Self {
        Self::Int(n)
    }
}
impl From<i32> for Value {
    fn from(n: i32) -> Self {
        Self::Int(n.into())
    }
}
impl From<u32> for Value {
    fn from(n: u32) -> Self {
        Self::Int(n.into())
    }
}
impl From<usize> for Value {
    fn from(n: usize) -> Self {
        Self::Int(i64::try_from(n).unwrap_or(i64::MAX))
    }
}
impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Int(flag.into())
    }
}
impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}
impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}
impl From<Timestamp> for Value {
    fn from(at: Timestamp) -> Self {
        Self::Int(at.as_micros())
    }
}
impl From<Span> for Value {
    fn from(span: Span) -> Self {
        Self::Int(span.as_micros())
    }
}
impl From<Token> for Value {
    fn from(token: Token) -> Self {
        Self::Int(token.as_i64())
    }
}
impl From<AttemptId> for Value {
    fn from(id: AttemptId) -> Self {
        Self::Text(id.to_string())
    }
}
impl From<JobId> for Value {
    fn from(id: JobId) -> Self {
        Self::Text(id.to_string())
    }
}
impl From<&serde_json::Value> for Value {
    fn from(json: &serde_json::Value) -> Self {
        Self::Text(json.to_string())
    }
}
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
