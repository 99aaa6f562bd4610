//! What may go wrong in a world, and how often.

/// A budget of faults: how many of each kind are left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    /// A worker is killed; its shims live on.
    pub crash: u8,
    /// A process of a worker starts in a home where none is acting.
    pub start: u8,
    /// A worker stands still.
    pub pause: u8,
    /// A worker is cut off.
    pub partition: u8,
    /// All workers are cut off at once.
    pub part_all: u8,
    /// A shim is killed, and its tree with it.
    pub shim: u8,
    pub scheduler_crash: u8,
    pub scheduler_pause: u8,
    /// A scheduler stands still between what it decided and the transaction that writes it.
    pub stall: u8,
    /// A server stands still within a claim.
    pub server_stall: u8,
    /// A call that arrives after its caller gave it up.
    pub late_request: u8,
    /// A call whose answer arrives late.
    pub late_reply: u8,
    /// A call that arrives twice.
    pub twice: u8,
    /// No server is there for a while.
    pub servers_away: u8,
    /// The store is out of reach for a while.
    pub store_away: u8,
    /// The store's clock jumps forward by a lease.
    pub clock_step: u8,
    /// The store fails over to a standby that lags.
    pub failover: u8,
    /// A person cancels the run.
    pub cancel: u8,
}

impl Faults {
    /// Whether anything befalls workers, what they run or their calls.
    pub(crate) const fn of_workers(&self) -> bool {
        let machines = self.crash + self.pause + self.partition + self.part_all + self.shim;
        let calls = self.server_stall + self.late_request + self.late_reply + self.twice;
        machines + calls + self.servers_away + self.store_away + self.failover > 0
    }
}

/// Calls that messages may be late or doubled of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Late {
    pub register: bool,
    pub beat: bool,
    pub claim: bool,
    pub start: bool,
    pub report: bool,
    pub take_over: bool,
}

impl Late {
    pub const ALL: Self = Self {
        register: true,
        beat: true,
        claim: true,
        start: true,
        report: true,
        take_over: true,
    };
    pub const NONE: Self = Self {
        register: false,
        beat: false,
        claim: false,
        start: false,
        report: false,
        take_over: false,
    };
}
