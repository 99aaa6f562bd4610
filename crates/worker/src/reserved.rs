//! Files that take their room on the disk before a task can fill it: a result, and the last line
//! of a log, are written whatever the task has done to the disk.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const ROOM: [u8; 4096] = [b' '; 4096];

/// Takes the room.
pub(crate) fn make(path: &Path) -> io::Result<()> {
    let mut file =
        File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(&ROOM)
}

/// Uses the room: overwritten in place and cut afterwards, so that the blocks that were taken are
/// the ones that are used. Without a reservation this is an ordinary write.
pub(crate) fn fill(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut file =
        File::options().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)?;
    Ok(file)
}
