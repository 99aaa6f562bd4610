//! Databases on the shared server: one for a test, removed with its handle.

use crate::shared::{lock_file, shared};
use std::io::Result;
use std::sync::atomic::{AtomicU32, Ordering};

/// A database for one test.
#[derive(Debug)]
pub struct Database {
    name: String,
    url: String,
}

impl Database {
    /// An empty one.
    pub fn empty() -> Result<Self> {
        Self::make("template1")
    }

    /// A copy of the template of that name, which `fill` makes once, given the address of an
    /// empty database. The name must tell its content (a schema's checksum).
    pub fn from_template(name: &str, fill: impl FnOnce(&str)) -> Result<Self> {
        let template = format!("template_{name}");
        if let Ok(made) = Self::make(&template) {
            return Ok(made);
        }
        let shared = shared()?;
        let lock = lock_file(&shared.dir, "template")?;
        lock.lock()?;
        if let Ok(made) = Self::make(&template) {
            return Ok(made);
        }
        let half = Self::empty()?;
        fill(&half.url);
        // Under its name only once it is whole.
        let text = format!("ALTER DATABASE {} RENAME TO {template}", half.name);
        // The connections of `fill` may still be ending.
        let mut renamed = shared.cluster.sql("postgres", &text);
        for _ in 0..100 {
            if renamed.is_ok() {
                break;
            }
            let idle = format!(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'",
                half.name
            );
            shared.cluster.sql("postgres", &idle)?;
            renamed = shared.cluster.sql("postgres", &text);
        }
        renamed?;
        Self::make(&template)
    }

    fn make(template: &str) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let shared = shared()?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{count}", std::process::id());
        let text =
            format!("DROP DATABASE IF EXISTS {name};\nCREATE DATABASE {name} TEMPLATE {template}");
        shared.cluster.sql("postgres", &text)?;
        let url = shared.cluster.url(&name);
        Ok(Self { name, url })
    }

    /// Its address, by TCP.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its address, by a socket of this machine.
    pub fn socket_url(&self) -> Result<String> {
        Ok(shared()?.cluster.socket_url(&self.name))
    }

    /// Its name on the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs statements, separated by `;` and a new line, each in a transaction of its own.
    pub fn sql(&self, text: &str) -> Result<String> {
        shared()?.cluster.sql(&self.name, text)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Left behind, it goes with its server.
        let text = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let _ = shared().and_then(|shared| shared.cluster.sql("postgres", &text));
    }
}
