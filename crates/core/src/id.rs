//! Names and numbers that identify things. Parsed and printed here, never generated here.

use core::fmt;
use core::str::FromStr;

/// An id that breaks the rule of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid {kind}: {rule}")]
pub struct IdError {
    kind: &'static str,
    text: String,
    rule: &'static str,
}

/// Longest name in bytes.
pub const NAME_MAX: usize = 200;
const NAME_RULE: &str = "1 to 200 of A-Z a-z 0-9 _ . -, not starting with a dot or a dash";

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= NAME_MAX
        && !text.starts_with(['.', '-'])
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}

fn is_run_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 250
        && !text.starts_with(['.', '-', '@'])
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-:+~=@".contains(&b))
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $check:ident, $rule:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);
        impl $name {
            /// Checks the rule of this kind.
            pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
                let text = text.into();
                if $check(&text) { Ok(Self(text)) }
                else { Err(IdError { kind: $kind, text, rule: $rule }) }
            }
            /// The name as text.
            pub fn as_str(&self) -> &str { &self.0 }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(&self.0) }
        }
        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> { Self::new(text) }
        }
    };
}

name!(
    /// The name of a DAG, `[A-Za-z0-9_.-]{1,200}`.
    DagId, "dag id", is_name, NAME_RULE
);
name!(
    /// The name of a task within its DAG.
    TaskId, "task id", is_name, NAME_RULE
);
name!(
    /// The name of a pool.
    PoolName, "pool name", is_name, NAME_RULE
);
name!(
    /// The name of a queue of workers.
    QueueName, "queue name", is_name, NAME_RULE
);
name!(
    /// The name of a run within its DAG: `manual__2026-09-22T14:03:11.000Z_abcd`.
    RunId, "run id", is_run_id,
    "1 to 250 of A-Z a-z 0-9 and _ . - : + ~ = @, not starting with a dot, a dash or @"
);

macro_rules! uuid {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u128);
        impl $name {
            /// From the 128 bits of a UUID.
            pub const fn from_u128(bits: u128) -> Self { Self(bits) }
            /// The 128 bits of the UUID.
            pub const fn as_u128(self) -> u128 { self.0 }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let b = self.0;
                write!(f, "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                    b >> 96, b >> 80 & 0xffff, b >> 64 & 0xffff, b >> 48 & 0xffff,
                    b & 0xffff_ffff_ffff)
            }
        }
        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                parse_uuid(text).map(Self).ok_or_else(|| IdError {
                    kind: $kind, text: text.into(), rule: "a UUID of 32 hexadecimal digits",
                })
            }
        }
    };
}

uuid!(
    /// One dispatch of a task instance: a UUIDv7.
    AttemptId, "attempt id"
);
uuid!(
    /// One incarnation of a scheduler, worker, server: a fresh UUIDv7 per process start.
    JobId, "job id"
);

/// A UUIDv7 (RFC 9562 section 5.7) from milliseconds since 1970 and 74 random bits.
pub const fn uuid_v7(unix_millis: u64, random: u128) -> u128 {
    let time = (unix_millis as u128 & 0xffff_ffff_ffff) << 80;
    let rand_a = (random >> 62) & 0xfff;
    let rand_b = random & 0x3fff_ffff_ffff_ffff;
    time | (7 << 76) | (rand_a << 64) | (2 << 62) | rand_b
}

fn parse_uuid(text: &str) -> Option<u128> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let plain = digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let shape = text.len() == 32 || (text.len() == 36 && text.matches('-').count() == 4);
    if plain && shape { u128::from_str_radix(&digits, 16).ok() } else { None }
}

/// Bits of the counter within a token.
pub const COUNTER_BITS: u32 = 39;

/// A fencing token: 24 bits of epoch, 39 bits of counter; strictly increasing over the
/// installation, one per attempt. Shown to people as `EPOCH-COUNTER`, sent as a decimal string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(i64);

impl Token {
    /// From the 63-bit number; negative numbers and numbers without an epoch are refused.
    pub fn from_i64(number: i64) -> Result<Self, IdError> {
        if number >> COUNTER_BITS >= 1 {
            Ok(Self(number))
        } else {
            Err(Self::error(&number.to_string()))
        }
    }
    /// From its parts. The epoch is 1 to 2^24-1, the counter below 2^39.
    pub fn new(epoch: u32, counter: u64) -> Result<Self, IdError> {
        let text = || format!("{epoch}-{counter}");
        if epoch == 0 || epoch >= 1 << 24 || counter >= 1 << COUNTER_BITS {
            return Err(Self::error(&text()));
        }
        let counter = i64::try_from(counter).map_err(|_| Self::error(&text()))?;
        Ok(Self((i64::from(epoch) << COUNTER_BITS) | counter))
    }
    /// The 63-bit number.
    pub const fn as_i64(self) -> i64 {
        self.0
    }
    /// The epoch, from 1.
    pub fn epoch(self) -> u32 {
        u32::try_from(self.0 >> COUNTER_BITS).unwrap_or(u32::MAX)
    }
    /// The counter within the installation.
    pub const fn counter(self) -> i64 {
        self.0 & ((1 << COUNTER_BITS) - 1)
    }
    fn error(text: &str) -> IdError {
        IdError { kind: "fencing token", text: text.into(), rule: "EPOCH-COUNTER or its decimal" }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch(), self.counter())
    }
}

/// Accepts `EPOCH-COUNTER` and the full decimal.
impl FromStr for Token {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let wrong = |_| Self::error(text);
        match text.split_once('-') {
            Some((epoch, counter)) => {
                Self::new(epoch.parse().map_err(wrong)?, counter.parse().map_err(wrong)?)
            }
            None => Self::from_i64(text.parse().map_err(wrong)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_shown_in_parts_and_read_both_ways() {
        let token = Token::new(7, 48_211).unwrap();
        assert_eq!(token.to_string(), "7-48211");
        assert_eq!("7-48211".parse::<Token>().unwrap(), token);
        assert_eq!(token.as_i64().to_string().parse::<Token>().unwrap(), token);
        assert!(Token::new(8, 0).unwrap() > Token::new(7, (1 << 39) - 1).unwrap());
        for text in ["", "48211", "0-5", "-1", "7-", "7-549755813888", "16777216-1"] {
            assert!(text.parse::<Token>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_v7_uuid_has_its_version_and_variant() {
        let id = AttemptId::from_u128(uuid_v7(1_790_000_000_000, u128::MAX));
        let text = id.to_string();
        assert_eq!(&text[14..15], "7");
        assert!("89ab".contains(&text[19..20]));
        assert_eq!(text.parse::<AttemptId>().unwrap(), id);
    }

    #[test]
    fn names_refuse_what_could_leave_a_folder() {
        for text in ["", "..", "a/b", "-x", ".x", "a b", "a\0", "é", &"x".repeat(201)] {
            assert!(DagId::new(text).is_err(), "{text}");
        }
        assert!(RunId::new("manual__2026-09-22T14:03:11.000Z_abcd").is_ok());
        assert!(RunId::new("../x").is_err());
    }
}
