//! Credentials of jobs and attempts: signed texts (HS256, in the form of a JWT) that name their
//! subject, so that nothing of them is stored and every server can check those of every other.
//!
//! A job's credential is worth what the join token is worth that it was got with: whether that one
//! is valid is read from the store, at most a second stale. An attempt's names the attempt, and is
//! good while that is the current one, which each call looks up.
//!
//! See docs/adr/0009-credentials-of-jobs-and-attempts.md for why.

use crate::auth::{hex, worthless};
use crate::rest::Failure;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fencepost_api::problem::{Problem, ProblemCode};
use fencepost_core::id::{AttemptId, JobId, Token};
use fencepost_core::time::{Span, Timestamp};
use fencepost_engine::Cx;
use fencepost_store::query::{api_token, installation, signing_key};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// `{"alg":"HS256","typ":"JWT"}`: the only header that is made, and the only one that is read.
const HEADER: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";
/// How long the validity of a join token is believed.
const BELIEVED: Span = Span::from_secs(1);
/// Join tokens whose validity is remembered.
const REMEMBERED: usize = 1_024;
/// What stands before a job's id in `sub`.
const JOB: &str = "job:";

/// The key and the name of an installation.
#[derive(Clone)]
pub(super) struct Keys {
    installation_id: String,
    key: [u8; 32],
}

/// What a credential says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    /// The join token's id; of a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    jti: Option<String>,
    /// The fencing token, in decimal; of an attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

/// Makes and checks credentials.
#[derive(Clone, Default)]
pub(super) struct Credentials {
    keys: Arc<tokio::sync::OnceCell<Keys>>,
    seen: Arc<Mutex<Seen>>,
}

/// What was last read of each join token, and when; `Err` is why it is worthless.
type Seen = BTreeMap<String, (Timestamp, Result<(), String>)>;

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials")
    }
}

impl Credentials {
    /// The keys, read once; an installation's first server draws them.
    pub(super) async fn keys(&self, cx: &Cx) -> Result<&Keys, Failure> {
        self.keys.get_or_try_init(|| load(cx)).await
    }

    /// The job that a credential names, if the token that it joined with is still valid.
    pub(super) async fn job(&self, cx: &Cx, text: &str) -> Result<JobId, Failure> {
        let claims = self.keys(cx).await?.read(text)?;
        let id = claims.sub.strip_prefix(JOB).and_then(|id| id.parse::<JobId>().ok());
        let (Some(job), Some(join)) = (id, claims.jti) else {
            return Err(unknown("the credential is not a worker's"));
        };
        self.join_is_valid(cx, &join).await?;
        Ok(job)
    }

    /// The attempt that a credential names.
    pub(super) async fn attempt(&self, cx: &Cx, text: &str) -> Result<(AttemptId, Token), Failure> {
        let claims = self.keys(cx).await?.read(text)?;
        let token = claims.token.and_then(|token| token.parse::<Token>().ok());
        match (claims.sub.parse::<AttemptId>(), token) {
            (Ok(id), Some(token)) => Ok((id, token)),
            _ => Err(unknown("the credential is not an attempt's")),
        }
    }

    async fn join_is_valid(&self, cx: &Cx, id: &str) -> Result<(), Failure> {
        let now = cx.store.clock().now();
        let fresh = |at: Timestamp| at <= now && now.since(at) < BELIEVED;
        let seen = self.seen().get(id).cloned();
        let verdict = match seen {
            Some((at, verdict)) if fresh(at) => verdict,
            _ => {
                let tx = cx.store.read("check_join_token").await?;
                let verdict = match api_token::get(&tx, id).await? {
                    None => Err("the join token was deleted".to_owned()),
                    Some(token) if token.is_valid(tx.now()) => Ok(()),
                    Some(token) => Err(worthless(&token)),
                };
                let mut seen = self.seen();
                if seen.len() >= REMEMBERED {
                    seen.clear();
                }
                seen.insert(id.to_owned(), (now, verdict.clone()));
                verdict
            }
        };
        verdict.map_err(|why| {
            Problem::new(ProblemCode::Unauthenticated, format!("{why}; this worker joined with it"))
                .suggest(
                    "make another (fencepost tokens create --role worker), put it into \
                     FENCEPOST_WORKER_TOKEN and start the worker again with the same home",
                )
                .into()
        })
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        // Entries are only inserted and replaced whole.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keys {
    /// The name of the installation.
    pub(super) fn installation_id(&self) -> &str {
        &self.installation_id
    }

    /// For a job that joined with the token of that id.
    pub(super) fn for_job(&self, job: &str, join: &str) -> String {
        self.write(&Claims {
            iss: self.installation_id.clone(),
            sub: format!("{JOB}{job}"),
            jti: Some(join.into()),
            token: None,
        })
    }

    /// For an attempt.
    pub(super) fn for_attempt(&self, id: AttemptId, token: Token) -> String {
        self.write(&Claims {
            iss: self.installation_id.clone(),
            sub: id.to_string(),
            jti: None,
            token: Some(token.as_i64().to_string()),
        })
    }

    fn write(&self, claims: &Claims) -> String {
        // Texts alone: this cannot fail.
        let claims = serde_json::to_vec(claims).unwrap_or_default();
        let signed = format!("{HEADER}.{}", URL_SAFE_NO_PAD.encode(claims));
        let signature = self.mac(&signed).map(|mac| mac.finalize().into_bytes());
        let signature = signature.map(|bytes| URL_SAFE_NO_PAD.encode(bytes)).unwrap_or_default();
        format!("{signed}.{signature}")
    }

    fn read(&self, text: &str) -> Result<Claims, Failure> {
        let not_ours = || unknown("the credential is not one of this installation");
        let (signed, signature) = text.rsplit_once('.').ok_or_else(not_ours)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| not_ours())?;
        let mac = self.mac(signed).ok_or_else(not_ours)?;
        // In constant time.
        mac.verify_slice(&signature).map_err(|_| not_ours())?;
        let (header, claims) = signed.split_once('.').ok_or_else(not_ours)?;
        let claims = URL_SAFE_NO_PAD.decode(claims).map_err(|_| not_ours())?;
        let claims: Claims = serde_json::from_slice(&claims).map_err(|_| not_ours())?;
        let ours = header == HEADER && claims.iss == self.installation_id;
        if ours { Ok(claims) } else { Err(not_ours()) }
    }

    fn mac(&self, text: &str) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        mac.update(text.as_bytes());
        Some(mac)
    }
}

fn unknown(why: &str) -> Failure {
    Failure::new(ProblemCode::Unauthenticated, why)
}

async fn load(cx: &Cx) -> Result<Keys, Failure> {
    let internal = |why: &str| Failure::new(ProblemCode::Internal, why);
    let found = {
        let tx = cx.store.read("load_signing_key").await?;
        signing_key::load(&tx).await?
    };
    let text = match found {
        Some(text) => text,
        None => draw(cx).await?,
    };
    let key = unhex(&text).ok_or_else(|| internal("the signing key in the store is damaged"))?;
    let tx = cx.store.read("load_installation").await?;
    let row = installation::load(&tx).await?;
    let row = row.ok_or_else(|| internal("the store has no installation yet"))?;
    Ok(Keys { installation_id: row.installation_id, key })
}

async fn draw(cx: &Cx) -> Result<String, Failure> {
    let internal = |why: String| Failure::new(ProblemCode::Internal, why);
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| internal(format!("no randomness: {error}")))?;
    let tx = cx.store.begin("make_signing_key").await?;
    signing_key::make(&tx, &hex(&bytes)).await?;
    // Another server may have come first: its key counts.
    let kept = signing_key::load(&tx).await?;
    tx.commit().await?;
    kept.ok_or_else(|| internal("the signing key was not kept".into()))
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    let mut bytes = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(byte: u8, installation: &str) -> Keys {
        Keys { installation_id: installation.into(), key: [byte; 32] }
    }

    #[test]
    fn a_credential_reads_back_only_whole_and_only_where_it_was_made() {
        assert_eq!(URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#), HEADER);
        let own = keys(1, "here");
        let text = own.for_job("J", "T");
        let claims = own.read(&text).unwrap();
        assert_eq!((claims.sub.as_str(), claims.jti.as_deref()), ("job:J", Some("T")));
        assert!(keys(2, "here").read(&text).is_err());
        assert!(keys(1, "there").read(&text).is_err());
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let other = String::from_utf8(bytes).unwrap();
            // The last letter of a signature has bits that say nothing.
            if at + 1 < text.len() {
                assert!(own.read(&other).is_err(), "{at}");
            }
        }
        for text in ["", ".", "..", "a.b.c", HEADER] {
            assert!(own.read(text).is_err(), "{text}");
        }
    }

    /// A text that says `"alg":"none"` is signed by nobody.
    #[test]
    fn another_algorithm_is_refused() {
        let own = keys(1, "here");
        let claims = own.for_job("J", "T");
        let claims = claims.split('.').nth(1).unwrap();
        let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"JWT"}"#);
        assert!(own.read(&format!("{header}.{claims}.")).is_err());
        let signed = format!("{header}.{claims}");
        let mac = own.mac(&signed).unwrap().finalize().into_bytes();
        assert!(own.read(&format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac))).is_err());
    }
}
