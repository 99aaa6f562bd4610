//! Sealing and opening what the vault keeps: AES-256-GCM, by keys that only servers and schedulers have.
//!
//! A ciphertext names its key and is bound to its row: one that was put in another row's place does not
//! open. Several keys may be given, as in Airflow: the first seals, each opens what it sealed, so a key
//! is replaced by putting a new one before it, sealing anew, and taking the old one away.
//!
//! Deliberately absent: the store's rows (`fencepost_store::query::vault`), and where keys come from.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fencepost_core::connection::Connection;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::{Digest, Sha256};

use crate::auth::hex;

/// What a ciphertext begins with.
const FORM: &str = "v1";
const KEY_LEN: usize = 32;

/// The keys of an installation, the one that seals first.
pub struct Keyring(Vec<Key>);

struct Key {
    id: String,
    key: LessSafeKey,
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids: Vec<&str> = self.0.iter().map(|key| key.id.as_str()).collect();
        write!(f, "Keyring{ids:?}")
    }
}

/// Why something cannot be sealed or opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    #[error("this process has no key for secrets: set [secrets] key_file (or keys)")]
    NoKey,
    #[error(
        "key {0} of [secrets] is not 32 bytes in base64 (make one with  openssl rand -base64 32)"
    )]
    BadKey(usize),
    #[error("it was sealed with the key {0}, which is not among the keys of this process")]
    OtherKey(String),
    #[error("it does not open: it was altered, or moved from another row")]
    Altered,
    #[error("no randomness: {0}")]
    Randomness(String),
}

impl Keyring {
    /// No keys: nothing can be sealed or opened.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// Keys in base64, separated by commas or white space; `#` begins a comment.
    pub fn parse(text: &str) -> Result<Self, VaultError> {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
        let words = lines.flat_map(|line| line.split([',', ' ', '\t', '\r']));
        let mut keys = Vec::new();
        for (index, word) in words.filter(|word| !word.is_empty()).enumerate() {
            let bytes = STANDARD.decode(word).ok().filter(|bytes| bytes.len() == KEY_LEN);
            let bytes = bytes.ok_or(VaultError::BadKey(index + 1))?;
            let key = UnboundKey::new(&AES_256_GCM, &bytes);
            let key = key.map_err(|_| VaultError::BadKey(index + 1))?;
            // Of a hash: it says nothing of the key.
            let id = hex(&Sha256::digest(&bytes)[..4]);
            keys.push(Key { id, key: LessSafeKey::new(key) });
        }
        if keys.is_empty() { Err(VaultError::NoKey) } else { Ok(Self(keys)) }
    }

    /// A fresh key as [`Keyring::parse`] reads it.
    pub fn fresh_key() -> Result<String, VaultError> {
        Ok(STANDARD.encode(random::<KEY_LEN>()?))
    }

    /// Whether there is any key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Seals a text for a row.
    pub fn seal(&self, kind: &str, name: &str, text: &str) -> Result<String, VaultError> {
        let key = self.0.first().ok_or(VaultError::NoKey)?;
        let nonce = random::<NONCE_LEN>()?;
        let mut bytes = text.as_bytes().to_vec();
        let sealing = Nonce::assume_unique_for_key(nonce);
        key.key
            .seal_in_place_append_tag(sealing, Aad::from(place(kind, name)), &mut bytes)
            .map_err(|_| VaultError::Altered)?;
        let body = [nonce.as_slice(), &bytes].concat();
        Ok(format!("{FORM}:{}:{}", key.id, STANDARD.encode(body)))
    }

    /// Opens what was sealed for that row.
    pub fn open(&self, kind: &str, name: &str, sealed: &str) -> Result<String, VaultError> {
        if self.0.is_empty() {
            return Err(VaultError::NoKey);
        }
        let parts: Vec<&str> = sealed.split(':').collect();
        let [FORM, id, body] = parts.as_slice() else { return Err(VaultError::Altered) };
        // Two keys could share the short name.
        let keys: Vec<&Key> = self.0.iter().filter(|key| key.id == **id).collect();
        if keys.is_empty() {
            return Err(VaultError::OtherKey((*id).into()));
        }
        let body = STANDARD.decode(body).map_err(|_| VaultError::Altered)?;
        let (nonce, bytes) = body.split_at_checked(NONCE_LEN).ok_or(VaultError::Altered)?;
        for key in keys {
            let Ok(nonce) = Nonce::try_assume_unique_for_key(nonce) else { continue };
            let mut bytes = bytes.to_vec();
            let opened = key.key.open_in_place(nonce, Aad::from(place(kind, name)), &mut bytes);
            if let Ok(plain) = opened {
                return String::from_utf8(plain.to_vec()).map_err(|_| VaultError::Altered);
            }
        }
        Err(VaultError::Altered)
    }

    /// Whether a ciphertext was sealed by the key that seals.
    pub fn is_current(&self, sealed: &str) -> bool {
        self.0.first().is_some_and(|key| sealed.split(':').nth(1) == Some(&key.id))
    }
}

/// A connection as it is kept.
pub(crate) fn connection(text: &str) -> Result<Connection, String> {
    let value = serde_json::from_str(text).map_err(|_| "it is no connection".to_owned())?;
    Connection::from_json(&value).map_err(|error| error.to_string())
}

/// What a ciphertext is bound to. No kind has a NUL, so no two rows are the same place.
fn place(kind: &str, name: &str) -> Vec<u8> {
    format!("{kind}\0{name}").into_bytes()
}

fn random<const N: usize>() -> Result<[u8; N], VaultError> {
    // As credentials: from the operating system, whatever the engine's randomness is.
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| VaultError::Randomness(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(texts: &[&str]) -> Keyring {
        Keyring::parse(&texts.join("\n")).unwrap()
    }

    #[test]
    fn what_is_sealed_opens_only_in_its_place_and_by_its_key() {
        let (old, new) = (Keyring::fresh_key().unwrap(), Keyring::fresh_key().unwrap());
        let ring = keys(&[&old]);
        let sealed = ring.seal("secret", "dsn", "postgres://x").unwrap();
        assert!(!sealed.contains("postgres"));
        assert_ne!(sealed, ring.seal("secret", "dsn", "postgres://x").unwrap());
        assert_eq!(ring.open("secret", "dsn", &sealed).as_deref(), Ok("postgres://x"));
        assert_eq!(ring.open("secret", "other", &sealed), Err(VaultError::Altered));
        assert_eq!(ring.open("variable", "dsn", &sealed), Err(VaultError::Altered));
        let flipped = format!("{}AAAA", &sealed[..sealed.len() - 4]);
        assert_eq!(ring.open("secret", "dsn", &flipped), Err(VaultError::Altered));
        for nonsense in ["", "v1", "v1:x", "v2:a:b", "v1:::"] {
            assert!(ring.open("secret", "dsn", nonsense).is_err(), "{nonsense}");
        }
        let other = keys(&[&new]).open("secret", "dsn", &sealed);
        assert!(matches!(other, Err(VaultError::OtherKey(_))), "{other:?}");
        let both = keys(&[&new, &old]);
        assert_eq!(both.open("secret", "dsn", &sealed).as_deref(), Ok("postgres://x"));
        assert!(!both.is_current(&sealed) && ring.is_current(&sealed));
    }

    #[test]
    fn keys_are_read_from_lists_and_files_and_bad_ones_are_told_by_their_place() {
        let key = Keyring::fresh_key().unwrap();
        assert_eq!(
            Keyring::parse(&format!("# ours\n{key} # new\n\n{key},{key}\n")).unwrap().0.len(),
            3
        );
        assert_eq!(Keyring::parse(&format!("{key} short")).err(), Some(VaultError::BadKey(2)));
        assert_eq!(Keyring::parse(" \n# nothing").err(), Some(VaultError::NoKey));
        assert_eq!(Keyring::none().seal("secret", "a", "b").err(), Some(VaultError::NoKey));
        assert!(!format!("{:?}", keys(&[&key])).contains(&key));
    }
}
