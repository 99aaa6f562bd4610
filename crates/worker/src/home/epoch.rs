//! The highest epoch that anybody in this home has seen, on disk.
//!
//! A store can be put back from a copy, or a standby be promoted that lacks the last commits; its epoch
//! then lies below tokens that were handed out already. Whoever knows a higher one says so, and the next
//! epoch lies above both (I2).

use super::replace;
use std::path::Path;
use std::{fs, io};

/// The file's name.
pub const FILE: &str = "epoch";

/// The epoch that is kept; 0: none.
pub fn kept(home: &Path) -> io::Result<u32> {
    let path = home.join(FILE);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        text => text?,
    };
    text.trim().parse().map_err(|_| {
        let text = format!("{}: `{}` is no epoch", path.display(), text.trim());
        io::Error::new(io::ErrorKind::InvalidData, text)
    })
}

/// Keeps an epoch; on disk when this returns.
pub fn keep(home: &Path, epoch: u32) -> io::Result<()> {
    replace(home, FILE, format!("{epoch}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_kept_and_one_that_cannot_be_read_is_not_begun_anew() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(kept(home.path()).unwrap(), 0);
        keep(home.path(), 7).unwrap();
        assert_eq!(kept(home.path()).unwrap(), 7);
        fs::write(home.path().join(FILE), "7x").unwrap();
        assert!(kept(home.path()).unwrap_err().to_string().contains("7x"));
    }
}
