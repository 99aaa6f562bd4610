//! File systems on which a lock is no proof.

use std::fs::File;
use std::path::Path;

use rustix::fs::fstatfs;

use super::HomeError;

/// statfs types on which a lock may be granted twice, or only to one machine of several.
const NOT_LOCAL: [(u32, &str); 11] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xfe53_4d42, "SMB2"),
    (0xff53_4d42, "CIFS"),
    (0x6573_5546, "FUSE"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x786f_4256, "VirtualBox shared folder"),
];

fn not_local(kind: u32) -> Option<&'static str> {
    NOT_LOCAL.iter().find(|row| row.0 == kind).map(|row| row.1)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "32-bit magic numbers")]
pub(super) fn check_local(home: &Path, lock: &File) -> Result<(), HomeError> {
    let kind =
        fstatfs(lock).map_err(|e| HomeError::io("looking at", home)(e.into()))?.f_type as u32;
    match not_local(kind) {
        Some(kind) => Err(HomeError::NotLocal { home: home.to_owned(), kind }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_and_fuse_file_systems_are_refused_by_name() {
        assert_eq!(not_local(0x6969), Some("NFS"));
        assert_eq!(not_local(0x6573_5546), Some("FUSE"));
        assert_eq!(not_local(0x0102_1997), Some("9p"));
        assert_eq!(not_local(0xef53), None, "ext4");
        assert_eq!(not_local(0x0102_1994), None, "tmpfs");
    }
}
