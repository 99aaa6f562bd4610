//! Who listens on a port that is taken, as far as this host says it to this user.

use std::fs;
use std::path::Path;

/// `name (pid N)` of a process that listens on a port.
pub(super) fn holder(port: u16) -> Option<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let sockets: Vec<String> = tables
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| listening(&table, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if sockets.is_empty() {
        return None;
    }
    let processes = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    processes.map(|entry| entry.path()).filter(|path| has_one_of(path, &sockets)).find_map(named)
}

/// The sockets of a table that listen on a port.
fn listening(table: &str, port: u16) -> Vec<String> {
    const LISTENS: &str = "0A";
    let wanted = format!(":{port:04X}");
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_it = fields.get(1)?.ends_with(&wanted) && *fields.get(3)? == LISTENS;
        fields.get(9).filter(|_| is_it).map(|inode| (*inode).to_owned())
    };
    table.lines().filter_map(of_line).collect()
}

/// Descriptors of other users' processes cannot be read: then nobody is named.
fn has_one_of(process: &Path, sockets: &[String]) -> bool {
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else { return false };
    descriptors
        .filter_map(Result::ok)
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|target| sockets.iter().any(|socket| target.as_os_str() == socket.as_str()))
}

fn named(process: std::path::PathBuf) -> Option<String> {
    let pid: u32 = process.file_name()?.to_str()?.parse().ok()?;
    let name = fs::read_to_string(process.join("comm")).ok()?;
    Some(format!("`{}` (pid {pid})", name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_listener_is_named_and_a_free_port_has_none() {
        let own = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = own.local_addr().unwrap().port();
        let named = holder(port).unwrap();
        assert!(named.ends_with(&format!("(pid {})", std::process::id())), "{named}");
        drop(own);
        assert_eq!(holder(port), None);
    }

    #[test]
    fn only_sockets_that_listen_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:1CCD 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1\n\
             1: 0100007F:1CCD 0100007F:C000 01 00000000:00000000 00:00000000 00000000     0        0 4712 1\n\
             torn";
        assert_eq!(listening(table, 7373), ["4711"]);
        assert_eq!(listening(table, 1), Vec::<String>::new());
    }
}
