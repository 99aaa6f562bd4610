//! Whether the place that a connection names can be reached from here.

use super::answer::{Answer, Done};
use super::call::Call;
use super::vault;
use crate::vault::connection;
use fencepost_api::rest::ConnectionTest;
use fencepost_core::connection::Connection;
use fencepost_core::kept::Kind;
use std::time::Duration;
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(5);

pub(super) async fn test(call: &Call) -> Done {
    let text = vault::opened(call, Kind::Connection).await?;
    let found = match connection(&text) {
        Ok(connection) => reach(&connection).await,
        Err(why) => Err(why),
    };
    let (ok, message) = match found {
        Ok(message) => (true, message),
        Err(message) => (false, message),
    };
    Answer::ok(&ConnectionTest { name: call.arg(0).into(), ok, message })
}

async fn reach(connection: &Connection) -> Result<String, String> {
    let host = connection.host.as_deref().ok_or("it names no host: nothing to reach")?;
    let port = connection.port.or_else(|| usual_port(&connection.conn_type));
    let port = port.ok_or_else(|| {
        format!("it names no port, and `{}` has no usual one", connection.conn_type)
    })?;
    // The literal of an IPv6 address is written in brackets in a URI alone.
    let name = host.trim_start_matches('[').trim_end_matches(']');
    match tokio::time::timeout(PATIENCE, TcpStream::connect((name, port))).await {
        Ok(Ok(_)) => Ok(format!("{host}:{port} accepts connections (no login was tried)")),
        Ok(Err(error)) => Err(format!("{host}:{port}: {error}")),
        Err(_) => Err(format!("{host}:{port} has not answered within {} s", PATIENCE.as_secs())),
    }
}

fn usual_port(kind: &str) -> Option<u16> {
    Some(match kind {
        "http" => 80,
        "https" | "slack" | "slackwebhook" => 443,
        "postgres" | "postgresql" => 5432,
        "mysql" | "mariadb" => 3306,
        "redis" => 6379,
        "smtp" => 587,
        "ssh" | "sftp" => 22,
        "ftp" => 21,
        _ => return None,
    })
}
