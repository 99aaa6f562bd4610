//! A connection: how to reach something outside, as a URI and as fields, in Airflow's words.
//!
//! `TYPE://LOGIN:PASSWORD@HOST:PORT/SCHEMA?EXTRA`; each part is percent-encoded. Extra is an object; in a
//! URI its texts are parameters, and anything else is one parameter `__extra__` with JSON.

use serde_json::{Map, Value};
use std::fmt;

/// The parameter of a URI that carries extra as JSON.
const EXTRA: &str = "__extra__";

/// Where something is, and who we are there.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Connection {
    pub conn_type: String,
    pub host: Option<String>,
    pub port: Option<u16>,
    pub schema: Option<String>,
    pub login: Option<String>,
    pub password: Option<String>,
    pub extra: Map<String, Value>,
}

/// Nothing that could hold a secret is shown.
impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({}://{})", self.conn_type, self.host.as_deref().unwrap_or_default())
    }
}

/// Why a text is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    #[error("no `TYPE://` at its beginning")]
    NoType,
    #[error("the port is not a number up to 65535")]
    Port,
    #[error("a `%` that is not followed by two hexadecimal digits, or no UTF-8")]
    Escape,
    #[error("`{EXTRA}` is not a JSON object")]
    Extra,
    #[error(
        "a field has the wrong type, or is not one of conn_type, host, port, schema, login, password, extra"
    )]
    Field,
}

impl Connection {
    /// Reads a URI.
    pub fn from_uri(uri: &str) -> Result<Self, ConnectionError> {
        let (kind, rest) = uri.trim().split_once("://").ok_or(ConnectionError::NoType)?;
        if kind.is_empty() {
            return Err(ConnectionError::NoType);
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (place, schema) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, address) = place.rsplit_once('@').unwrap_or(("", place));
        let (login, password) = match user.split_once(':') {
            Some((login, password)) => (login, some(decode(password)?)),
            None => (user, None),
        };
        let (host, port) = split_address(address)?;
        Ok(Self {
            // Airflow's spelling: a type with a `_` cannot be a scheme.
            conn_type: kind.replace('-', "_"),
            host: some(decode(host)?),
            port,
            schema: some(decode(schema)?),
            login: some(decode(login)?),
            password,
            extra: extra_of(query)?,
        })
    }

    /// As a URI.
    pub fn to_uri(&self) -> String {
        let mut uri = format!("{}://", self.conn_type.replace('_', "-"));
        if self.login.is_some() || self.password.is_some() {
            uri.push_str(&encode(self.login.as_deref().unwrap_or_default()));
            if let Some(password) = &self.password {
                uri.push(':');
                uri.push_str(&encode(password));
            }
            uri.push('@');
        }
        if let Some(host) = &self.host {
            let is_v6 = host.contains(':') && host.starts_with('[');
            uri.push_str(&if is_v6 { host.clone() } else { encode(host) });
        }
        if let Some(port) = self.port {
            uri.push_str(&format!(":{port}"));
        }
        if let Some(schema) = &self.schema {
            uri.push('/');
            uri.push_str(&encode(schema));
        }
        if !self.extra.is_empty() {
            if self.schema.is_none() {
                uri.push('/');
            }
            uri.push('?');
            uri.push_str(&self.query());
        }
        uri
    }

    fn query(&self) -> String {
        let texts: Option<Vec<String>> = self
            .extra
            .iter()
            .map(|(name, value)| {
                value.as_str().map(|text| format!("{}={}", encode(name), encode(text)))
            })
            .collect();
        match texts {
            Some(pairs) if !self.extra.contains_key(EXTRA) => pairs.join("&"),
            _ => format!("{EXTRA}={}", encode(&Value::Object(self.extra.clone()).to_string())),
        }
    }

    /// As fields.
    pub fn to_json(&self) -> Value {
        serde_json::json!({
            "conn_type": self.conn_type,
            "host": self.host,
            "port": self.port,
            "schema": self.schema,
            "login": self.login,
            "password": self.password,
            "extra": self.extra,
        })
    }

    /// Reads fields, or a URI in a text.
    pub fn from_json(value: &Value) -> Result<Self, ConnectionError> {
        let fields = match value {
            Value::String(uri) => return Self::from_uri(uri),
            Value::Object(fields) => fields,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                return Err(ConnectionError::Field);
            }
        };
        let mut connection = Self::default();
        for (name, value) in fields {
            let text = || match value {
                Value::Null => Ok(None),
                Value::String(text) => Ok(some(text.clone())),
                Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    Err(ConnectionError::Field)
                }
            };
            match name.as_str() {
                "conn_type" => connection.conn_type = text()?.unwrap_or_default(),
                "host" => connection.host = text()?,
                "schema" => connection.schema = text()?,
                "login" => connection.login = text()?,
                "password" => connection.password = text()?,
                "port" if value.is_null() => {}
                "port" => {
                    let port = value.as_u64().and_then(|port| u16::try_from(port).ok());
                    connection.port = Some(port.ok_or(ConnectionError::Port)?);
                }
                "extra" => connection.extra = extra_from(value)?,
                _ => return Err(ConnectionError::Field),
            }
        }
        if connection.conn_type.is_empty() {
            return Err(ConnectionError::NoType);
        }
        Ok(connection)
    }

    /// The same fields, with everything that may be secret replaced by `***`.
    pub fn masked(&self) -> Value {
        let mut fields = self.to_json();
        if self.password.is_some() {
            fields["password"] = "***".into();
        }
        let names = self.extra.keys().map(|name| (name.clone(), Value::from("***")));
        fields["extra"] = Value::Object(names.collect());
        fields
    }

    /// What must not be seen in a log.
    pub fn secrets(&self) -> Vec<String> {
        let mut found: Vec<String> = self.password.iter().cloned().collect();
        // HTTP Basic sends this one in base64.
        let login = self.login.as_deref().unwrap_or_default();
        found.extend(self.password.iter().map(|password| format!("{login}:{password}")));
        if self.password.is_some() || !self.extra.is_empty() {
            found.push(self.to_uri());
        }
        for (name, value) in &self.extra {
            if is_sensitive(name) {
                texts(value, &mut found);
            }
        }
        found
    }
}

fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether a name says that what it names is secret: Airflow's list.
pub fn is_sensitive(name: &str) -> bool {
    const WORDS: [&str; 12] = [
        "access_token",
        "access_key",
        "api_key",
        "apikey",
        "authorization",
        "keyfile_dict",
        "passphrase",
        "passwd",
        "password",
        "private_key",
        "secret",
        "token",
    ];
    let name = name.to_ascii_lowercase();
    WORDS.iter().any(|word| name.contains(word)) || name == "service_account"
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

fn split_address(address: &str) -> Result<(&str, Option<u16>), ConnectionError> {
    // In `[::1]` the colons are the host's.
    let from = address.rfind(']').map_or(0, |end| end + 1);
    match address[from..].rfind(':') {
        Some(colon) => {
            let port = &address[from + colon + 1..];
            let number = if port.is_empty() { None } else { Some(port.parse()) };
            let number = number.transpose().map_err(|_| ConnectionError::Port)?;
            Ok((&address[..from + colon], number))
        }
        None => Ok((address, None)),
    }
}

fn extra_of(query: &str) -> Result<Map<String, Value>, ConnectionError> {
    let mut extra = Map::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decode(name)?, decode(value)?);
        if name == EXTRA {
            let object = serde_json::from_str::<Map<String, Value>>(&value);
            extra.extend(object.map_err(|_| ConnectionError::Extra)?);
        } else {
            extra.insert(name, Value::String(value));
        }
    }
    Ok(extra)
}

fn extra_from(value: &Value) -> Result<Map<String, Value>, ConnectionError> {
    match value {
        Value::Null => Ok(Map::new()),
        Value::Object(extra) => Ok(extra.clone()),
        // Airflow's exports have it as a text.
        Value::String(text) if text.trim().is_empty() => Ok(Map::new()),
        Value::String(text) => serde_json::from_str(text).map_err(|_| ConnectionError::Extra),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => Err(ConnectionError::Extra),
    }
}

/// Percent-encodes everything but what RFC 3986 leaves unreserved.
pub fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn decode(text: &str) -> Result<String, ConnectionError> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let mut digit = || {
                let digit = bytes.next().and_then(|byte| char::from(byte).to_digit(16));
                digit.and_then(|digit| u8::try_from(digit).ok()).ok_or(ConnectionError::Escape)
            };
            out.push(digit()? * 16 + digit()?);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).map_err(|_| ConnectionError::Escape)
}
