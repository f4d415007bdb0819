//! The policy words of one account on one device, which its gate obeys. Who decides them: `src/scheduler/lane.rs`.

/// What the gate does with a thread that wants to hand work to the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Gate {
    /// It waits. What is in flight runs to its end.
    #[default]
    Closed,
    /// It may, within window and lease.
    Open,
    /// It may until every communicator of this rank has reached the cut ([`super::Cut`]), then it waits.
    RunOn,
}

/// See the module. A change of [`Word::epoch`] begins a new lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Word {
    pub epoch: u32,
    pub gate: Gate,
    /// Closed while the demand of an account of high priority is up, without being told.
    pub yields: bool,
    /// GPU time that may be in flight; one kernel always may.
    pub window_ns: u64,
    /// GPU time that may be handed over under this epoch; then the gate closes by itself and rings.
    pub lease_ns: u64,
    /// Somebody waits for this one to be done: its gate rings when its work has run out.
    pub wanted: bool,
    /// Launches let through a closed gate so far.
    pub passes: u32,
}
