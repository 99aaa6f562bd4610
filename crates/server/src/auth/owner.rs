//! The token of whoever owns the home: an owner-only file that the local clients read.

use super::{hash, new_secret};
use fencepost_api::rest::routes::Role;
use fencepost_engine::Cx;
use fencepost_store::StoreError;
use fencepost_store::query::api_token::{self, ApiToken};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The name of the owner's token in lists and events.
pub const OWNER: &str = "owner";
/// Who made it; one token of that hand is valid at a time.
const MADE_BY: &str = "standalone";
const MODE: u32 = 0o600;
/// The bits of a mode that are about group and others.
const OTHERS: u32 = 0o077;

/// Why there is no owner's token.
#[derive(Debug, thiserror::Error)]
pub enum OwnerTokenError {
    #[error("failed to write the token file {path}: {source}")]
    File { path: String, source: io::Error },
    #[error("failed to record the owner's token: {0}")]
    Store(#[from] StoreError),
    #[error("failed to draw a token: {0}")]
    Random(getrandom::Error),
}

/// Makes sure that `path` holds a valid admin token and is its owner's alone. A token that is not
/// valid any more, or that others could read, is replaced, and the old one becomes worthless.
///
/// The file comes before the row: a crash between leaves a file that the next start replaces, and
/// never a valid token that nobody knows.
pub async fn ensure_owner_token(cx: &Cx, path: &Path) -> Result<(), OwnerTokenError> {
    let failed = |source| OwnerTokenError::File { path: path.display().to_string(), source };
    if let Some(secret) = existing(path)
        && is_valid_admin(cx, &secret).await?
    {
        return Ok(());
    }
    let secret = new_secret().map_err(OwnerTokenError::Random)?;
    write(path, &secret).map_err(failed)?;
    let tx = cx.store.begin("owner_token").await?;
    api_token::revoke_made_by(&tx, MADE_BY).await?;
    let token = ApiToken {
        id: cx.env.job_id().to_string(),
        name: OWNER.into(),
        role: Role::Admin.as_str().into(),
        created_at: tx.now(),
        expires_at: None,
        revoked_at: None,
        created_by: MADE_BY.into(),
        used_at: None,
    };
    api_token::insert(&tx, &token, &hash(&secret)).await?;
    tx.commit().await?;
    Ok(())
}

fn existing(path: &Path) -> Option<String> {
    let mode = fs::metadata(path).ok()?.permissions().mode();
    if mode & OTHERS != 0 {
        return None;
    }
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

async fn is_valid_admin(cx: &Cx, secret: &str) -> Result<bool, StoreError> {
    let tx = cx.store.read("check_owner_token").await?;
    let found = api_token::by_hash(&tx, &hash(secret)).await?;
    Ok(found.is_some_and(|token| token.is_valid(tx.now()) && token.role == Role::Admin.as_str()))
}

/// Whole or not at all, and never readable by others.
fn write(path: &Path, secret: &str) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let draft = Path::new(&name);
    match fs::remove_file(draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(draft)?;
    file.write_all(format!("{secret}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(draft, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
