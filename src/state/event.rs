//! What can happen to a node, and the values that carries. `state.rs` takes it in.

use std::collections::BTreeMap;
use std::time::SystemTime;

use ledger::SlotIndex;

use super::Holder;
use crate::admission::identity::Place;
use crate::admission::orphan::Orphan;
use crate::admission::process::Identity;
use crate::config::{Mode, Overcommit, Problems};
use crate::device::Look;
use crate::enforce::Reading;

/// What happened. Devices are named by their place in the inventory.
#[derive(Debug, Clone)]
pub enum Event {
    /// An account came to be, with what it is granted per device.
    Opened {
        place: Place,
        granted: Vec<Granted>,
    },
    /// So many launches will bring it clients.
    Launches {
        account: String,
        count: usize,
    },
    /// Its caps changed.
    Granted {
        account: String,
        granted: Vec<Granted>,
    },
    Closed {
        account: String,
    },
    Admitted {
        id: ClientId,
        client: Client,
    },
    /// A client of an earlier daemon goes on as one of this.
    Adopted {
        id: ClientId,
        client: Client,
    },
    /// A process was turned away.
    Denied {
        pid: u32,
        user: String,
        reason: &'static str,
        message: String,
    },
    /// A client ended, or executed another program; what it held, per device, was given back.
    Left {
        id: ClientId,
        why: &'static str,
        released: Vec<u64>,
        corrupt: bool,
    },
    /// An allocation was refused to the client in `slot`.
    Refused {
        account: String,
        slot: SlotIndex,
        device: usize,
        refusal: Refusal,
    },
    /// So many refusals of which nothing else is known.
    Lost {
        account: String,
        device: usize,
        count: u64,
    },
    /// A client's shim says something is wrong.
    ClientFault {
        account: String,
        slot: SlotIndex,
        device: usize,
        what: &'static str,
        detail: u64,
    },
    /// The account's words were read.
    Read {
        account: String,
        readings: Vec<Reading>,
    },
    /// The devices were looked at; `holders` are the processes that are no clients, by pid, `own` the daemon's.
    Looked {
        looks: Vec<Look>,
        holders: BTreeMap<u32, Holder>,
        own: Vec<u32>,
    },
    /// Part of the daemon failed, or works again.
    Fault {
        what: String,
    },
    /// `set` changed a key; `default` drops what was set.
    Set {
        target: String,
        key: &'static str,
        text: String,
        by: String,
        until: Option<SystemTime>,
    },
    /// The node, or a device, was closed to newcomers or opened again.
    Drained {
        device: Option<usize>,
        closed: bool,
        by: String,
    },
    /// A value set for a time is over.
    SetEnded {
        target: String,
        key: &'static str,
        text: String,
        by: String,
    },
    /// The quota file was read again: what it says of the whole node, and every key that changed.
    Reloaded {
        cause: String,
        changed: Vec<String>,
        mode: Mode,
        overcommit: Overcommit,
        /// Bytes kept back, per device.
        reserved: Vec<u64>,
    },
    /// It was read again and is wrong.
    NotReloaded {
        cause: String,
        problems: Problems,
    },
    ConfigNote {
        message: String,
    },
    State {
        what: String,
    },
    /// Those who hold a device and for whom nobody alive answers, all of them.
    Orphans(BTreeMap<Identity, Orphan>),
}

/// What an account gets on one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granted {
    pub cap_bytes: u64,
    pub guaranteed_bytes: u64,
}

impl Granted {
    /// The lesser cap and the lesser guarantee.
    pub fn lesser(self, other: Granted) -> Granted {
        Granted {
            cap_bytes: self.cap_bytes.min(other.cap_bytes),
            guaranteed_bytes: self.guaranteed_bytes.min(other.guaranteed_bytes),
        }
    }
}

/// A client, for the daemon's lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u64);

/// One process of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    pub identity: Identity,
    pub account: String,
    pub slot: SlotIndex,
    pub command: String,
    pub user: String,
    /// Version of its shim, where it said one.
    pub shim: Option<String>,
    pub started_at: SystemTime,
    pub(super) launches: u64,
    pub(super) last_launch: Option<SystemTime>,
}

impl Client {
    pub fn new(identity: Identity, account: &str, slot: SlotIndex, command: String, user: String) -> Client {
        let account = account.into();
        let started_at = SystemTime::UNIX_EPOCH;
        Client {
            identity,
            account,
            slot,
            command,
            user,
            shim: None,
            started_at,
            launches: 0,
            last_launch: None,
        }
    }

    /// The same, admitted at `since`; what it launched before is not news.
    pub fn since(self, since: SystemTime, launches: u64) -> Client {
        Client {
            started_at: since,
            launches,
            ..self
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub at: SystemTime,
    pub pid: u32,
    /// Index of the device.
    pub device: u32,
    pub asked_bytes: u64,
    pub used_bytes: u64,
    pub cap_bytes: u64,
    pub reason: &'static str,
    /// Function that was refused, where it is known.
    pub function: Option<&'static str>,
}
