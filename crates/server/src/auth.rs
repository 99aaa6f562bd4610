//! Who calls: bearer tokens of 256 random bits, of which only the SHA-256 is stored.
//!
//! A token is looked up by its hash, so nothing is compared byte by byte with a secret. Whether it
//! is valid is read from the store at each call: a revocation counts from its commit on.

mod owner;

pub use owner::{OWNER, OwnerTokenError, ensure_owner_token};

use crate::rest::Failure;
use fencepost_api::problem::{Problem, ProblemCode};
use fencepost_api::rest::routes::{Permission, Role};
use fencepost_core::time::{Span, Timestamp};
use fencepost_engine::Cx;
use fencepost_store::query::api_token::{self, ApiToken};
use sha2::{Digest, Sha256};

/// What stands before the random part of a token, so that scanners of leaked secrets know it.
const PREFIX: &str = "fp_";
/// How exactly the store knows when a token was used last.
const REMEMBERED: Span = Span::from_mins(5);

/// Somebody with a valid token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The token's id.
    pub id: String,
    /// How events name them: the token's name, or its id.
    pub name: String,
    pub role: Role,
    /// When the store was last told that the token is used.
    used_at: Option<Timestamp>,
}

impl Principal {
    fn of(token: &ApiToken) -> Option<Self> {
        let role = Role::parse(&token.role)?;
        let name = match token.name.as_str() {
            "" => format!("token:{}", token.id),
            name => name.into(),
        };
        Some(Self { id: token.id.clone(), name, role, used_at: token.used_at })
    }

    /// Refuses what their role does not allow.
    pub(crate) fn check(&self, permission: Permission) -> Result<(), Failure> {
        if self.role.allows(permission) {
            return Ok(());
        }
        let needed = Role::ALL.iter().find(|role| role.allows(permission));
        let needed = needed.map_or("another role", |role| role.as_str());
        let (scope, role) = (permission.as_str(), self.role.as_str());
        let text = format!("this needs {scope}; `{}` is a token of role {role}", self.name);
        Err(Problem::new(ProblemCode::Forbidden, text)
            .suggest(format!("use a token of role {needed}"))
            .into())
    }
}

/// A fresh token; it is told once, and never stored.
pub fn new_secret() -> Result<String, getrandom::Error> {
    // Credentials come from the operating system whatever the engine's randomness is.
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{PREFIX}{}", hex(&bytes)))
}

/// How a token is stored.
pub fn hash(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// The holder of a token, if it is valid now.
pub(crate) async fn authenticate(cx: &Cx, secret: &str) -> Result<Principal, Failure> {
    let unknown = || {
        Problem::new(ProblemCode::Unauthenticated, "the token is not known here")
            .suggest("the local standalone keeps one in $FENCEPOST_HOME/token")
    };
    let tx = cx.store.read("authenticate").await?;
    let token = api_token::by_hash(&tx, &hash(secret)).await?.ok_or_else(unknown)?;
    if token.is_valid(tx.now()) {
        return Ok(Principal::of(&token).ok_or_else(unknown)?);
    }
    Err(Problem::new(ProblemCode::Unauthenticated, worthless(&token)).into())
}

/// Tells the store, once in a while, that a token is used. What cannot be told is told another time.
pub(crate) async fn remember(cx: &Cx, principal: &Principal) {
    let now = cx.store.clock().now();
    if principal.used_at.is_some_and(|at| now.since(at) < REMEMBERED) {
        return;
    }
    if let Ok(tx) = cx.store.begin("token_used").await
        && api_token::used(&tx, &principal.id).await.is_ok()
    {
        drop(tx.commit().await);
    }
}

/// Why a token that is known lets nobody in.
pub(crate) fn worthless(token: &ApiToken) -> String {
    let at = |at: Option<Timestamp>| at.map(|at| format!(" at {at}")).unwrap_or_default();
    match token.revoked_at {
        Some(_) => format!("the token was revoked{}", at(token.revoked_at)),
        None => format!("the token expired{}", at(token.expires_at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_long_fresh_and_printable() {
        let (a, b) = (new_secret().unwrap(), new_secret().unwrap());
        assert_ne!(a, b);
        assert_eq!(a.len(), PREFIX.len() + 64);
        assert!(a.bytes().all(|byte| byte.is_ascii_graphic()));
        assert_eq!(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
