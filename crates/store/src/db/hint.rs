//! Hints: that there may be something to do for somebody in another process.

/// For whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// The passes of schedulers.
    Engine,
    /// Workers that wait for work or orders, at their servers.
    Workers,
}

impl Topic {
    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Workers => "workers",
        }
    }
    /// The topic of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Engine, Self::Workers].into_iter().find(|topic| topic.as_str() == name)
    }
}

/// What another process hinted at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    Topic(Topic),
    /// Hints may have been lost: everybody should look.
    LookAgain,
}
