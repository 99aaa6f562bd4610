//! What one attempt may use at most, in the words of Kubernetes.

use serde_json::{Map, Value, json};

/// Limits of one attempt's processes together. They reserve nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resources {
    /// In thousandths of a core.
    pub cpu_millis: Option<u64>,
    /// In bytes.
    pub memory: Option<u64>,
}

const CPU: std::ops::RangeInclusive<u64> = 10..=1_000_000;
/// A process needs some pages to begin with.
const MEMORY: std::ops::RangeInclusive<u64> = 1 << 20..=1 << 50;
const UNITS: [(&str, u64); 8] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
];

impl Resources {
    /// Whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Cores as they are written: `2`, `0.5`, `"500m"`. From a hundredth to a thousand.
    pub fn cpu(written: &Value) -> Option<u64> {
        let millis = match written {
            Value::Number(number) => thousandths(number.as_f64()?)?,
            Value::String(text) => match text.strip_suffix('m') {
                Some(millis) => digits(millis)?,
                None => thousandths(decimal(text)?)?,
            },
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
        };
        CPU.contains(&millis).then_some(millis)
    }

    /// Memory as it is written: bytes, or `"512Mi"`, `"4Gi"`, `"1.5G"`. From 1 MiB up.
    pub fn memory(written: &Value) -> Option<u64> {
        let bytes = match written {
            Value::Number(number) => number.as_u64()?,
            Value::String(text) => {
                let unit =
                    UNITS.iter().find_map(|(name, of)| Some((text.strip_suffix(name)?, *of)));
                let (number, of) = unit.unwrap_or((text, 1));
                whole(decimal(number)? * of as f64)?
            }
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
        };
        MEMORY.contains(&bytes).then_some(bytes)
    }

    /// As stored, which [`Resources::cpu`] and [`Resources::memory`] read.
    pub fn to_json(self) -> Value {
        let mut out = Map::new();
        if let Some(millis) = self.cpu_millis {
            out.insert("cpu".into(), json!(format!("{millis}m")));
        }
        if let Some(bytes) = self.memory {
            out.insert("memory".into(), json!(bytes));
        }
        Value::Object(out)
    }
}

fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Digits and at most one point: no sign, no exponent, no words such as `inf`.
fn decimal(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    plain.then(|| text.parse().ok())?
}

fn thousandths(cores: f64) -> Option<u64> {
    whole((cores * 1_000.0).round())
}

fn whole(number: f64) -> Option<u64> {
    let is_one = number >= 0.0 && number.fract() == 0.0 && number <= 2_f64.powi(53);
    is_one.then(|| format!("{number:.0}").parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_read_as_kubernetes_writes_them() {
        for (written, millis) in
            [(json!(2), 2_000), (json!(0.5), 500), (json!("500m"), 500), (json!("1.25"), 1_250)]
        {
            assert_eq!(Resources::cpu(&written), Some(millis), "{written}");
        }
        for wrong in [
            json!(0),
            json!(-1),
            json!("1e3"),
            json!("m"),
            json!("2 cores"),
            json!(true),
            json!("inf"),
        ] {
            assert_eq!(Resources::cpu(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn memory_is_read_as_kubernetes_writes_it() {
        for (written, bytes) in [
            (json!(4 << 20), 4 << 20),
            (json!("4Gi"), 4 << 30),
            (json!("512Mi"), 512 << 20),
            (json!("1.5G"), 1_500_000_000),
        ] {
            assert_eq!(Resources::memory(&written), Some(bytes), "{written}");
        }
        for wrong in [
            json!("4GB"),
            json!("1Ki"),
            json!(1.5),
            json!("-4Gi"),
            json!(""),
            json!("Gi"),
            json!(null),
        ] {
            assert_eq!(Resources::memory(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_stored_is_read_again() {
        let own = Resources { cpu_millis: Some(1_500), memory: Some(4 << 30) };
        let stored = own.to_json();
        assert_eq!(Resources::cpu(&stored["cpu"]), own.cpu_millis);
        assert_eq!(Resources::memory(&stored["memory"]), own.memory);
        assert!(Resources::default().is_empty() && !own.is_empty());
    }
}
