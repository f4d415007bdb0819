//! The handshake and the rare requests, on a SEQPACKET socket. Work never goes over it.
//!
//! One fixed-size message each way; descriptors ride along. Next file of the walk: `proto/socket.rs`.

pub(crate) mod socket;

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"stintsim");
/// Server and client come from one build; anything else is refused.
pub(crate) const VERSION: u32 = 2;

/// Messages are plain integers.
///
/// # Safety
/// `repr(C)`, no padding, any bytes are valid.
pub(crate) unsafe trait Message: Copy + Default {}

/// What the peer wants to be, `Hello::role`.
pub(crate) mod role {
    pub const CLIENT: u32 = 0;
    /// Only looks.
    pub const OBSERVER: u32 = 1;
}

#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Hello {
    pub magic: u64,
    pub version: u32,
    pub role: u32,
    /// Most SMs the process may hold when contexts run side by side, in percent.
    pub share: u32,
    pub zero: u32,
}

/// Answer to `Hello`, with the descriptors of facts and board and, for a client, segment and kick.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Welcome {
    pub magic: u64,
    pub version: u32,
    pub zero: u32,
    /// How many clients the node had before this one.
    pub number: u64,
}

/// `Request::kind`.
pub(crate) mod ask {
    /// `value` bytes of `device`.
    pub const CHARGE: u32 = 1;
    pub const DISCHARGE: u32 = 2;
    /// A descriptor; answered with its id in `value`.
    pub const SHARE: u32 = 3;
    /// The id in `value`.
    pub const UNSHARE: u32 = 4;
    /// The id in `value`; answered with the descriptor.
    pub const FETCH: u32 = 5;
    /// Answered with a memfd: `report.rs`.
    pub const REPORT: u32 = 6;
    /// The server ends.
    pub const STOP: u32 = 7;
}

#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Request {
    pub kind: u32,
    pub device: u32,
    pub value: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Reply {
    /// A `CUresult`.
    pub status: u32,
    pub zero: u32,
    pub value: u64,
}

// SAFETY: repr(C), integers only, laid out without gaps.
unsafe impl Message for Hello {}
// SAFETY: as above.
unsafe impl Message for Welcome {}
// SAFETY: as above.
unsafe impl Message for Request {}
// SAFETY: as above.
unsafe impl Message for Reply {}
