//! How often a worker has registered from this home: a number on disk, raised before each request.
//!
//! A request to register may be delivered long after its sender is gone. By its number the store knows
//! that a later process of the home has registered since. The count has a file of its own, so that an
//! older version of the program leaves it as it is.

use super::replace;
use std::path::Path;
use std::{fs, io};

const FILE: &str = "registrations";

/// The next number: above all before it and above `above`.
pub(crate) fn next(home: &Path, above: u64) -> io::Result<u64> {
    let next = last(home)?.max(above).saturating_add(1);
    replace(home, FILE, format!("{next}\n").as_bytes())?;
    Ok(next)
}

fn last(home: &Path) -> io::Result<u64> {
    let path = home.join(FILE);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        text => text?,
    };
    text.trim().parse().map_err(|_| {
        let text = format!("`{}` holds no number; remove it to count anew", path.display());
        io::Error::new(io::ErrorKind::InvalidData, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_also_over_what_the_store_has_seen() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(next(home.path(), 0).unwrap(), 1);
        assert_eq!(next(home.path(), 0).unwrap(), 2);
        assert_eq!(next(home.path(), 7).unwrap(), 8);
        assert_eq!(next(home.path(), 7).unwrap(), 9);
    }

    #[test]
    fn a_count_that_cannot_be_read_is_not_begun_anew() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(FILE), "1x").unwrap();
        let error = next(home.path(), 0).unwrap_err();
        assert!(error.to_string().contains("remove it"), "{error}");
        assert_eq!(fs::read_to_string(home.path().join(FILE)).unwrap(), "1x");
    }
}
