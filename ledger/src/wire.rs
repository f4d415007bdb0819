//! The attach protocol: how a client gets its objects. Plain bytes over a `SOCK_SEQPACKET` socket, one message a packet.
//!
//! Read next: `mapping.rs`, which maps what arrived.
//!
//! The client sends a [`Hello`]. A daemon that cannot get the peer's pidfd from the socket answers with a [`Challenge`],
//! which the client sends back with `SCM_CREDENTIALS`. The daemon's last word is a [`Reply`] with one descriptor per object.
//! All integers are little-endian. A message longer than this build knows is read as far as it is known: fields are only
//! ever added at the end, zero meaning "absent".

/// The newest version of the protocol this build speaks.
pub const PROTOCOL: u16 = 1;
/// The oldest version this build speaks: from the second version on, the one before [`PROTOCOL`].
pub const OLDEST_PROTOCOL: u16 = 1;
/// Descriptors the kernel passes with one message, hence objects in a [`Reply`].
pub const MOST_OBJECTS: usize = 253;

const HELLO: u32 = u32::from_le_bytes(*b"StHe");
const CHALLENGE: u32 = u32::from_le_bytes(*b"StCh");
const REPLY: u32 = u32::from_le_bytes(*b"StRe");

/// Length of a [`Reply`] without objects, in bytes.
pub const REPLY_HEAD: usize = 16;
/// Length of the longest [`Reply`], in bytes.
pub const LONGEST_REPLY: usize = REPLY_HEAD + MOST_OBJECTS * ObjectEntry::LENGTH;

/// Why a message was not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// Shorter than its kind.
    Short,
    /// Another kind of message, or none of ours.
    Magic,
    /// A version this build does not speak; the version.
    Protocol(u16),
    /// A field holds a value it cannot have.
    Value,
}

/// Bits of [`Hello::flags`].
pub mod flags {
    /// The sender only reads: policy and account read-only, no slot.
    pub const OBSERVER: u16 = 1;
    /// The sender is a child made by `fork` of a client; a new slot is wanted.
    pub const FORKED: u16 = 2;
}

/// The client's first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Version the client speaks.
    pub protocol: u16,
    /// See [`flags`]. Bits the daemon does not know are ignored.
    pub flags: u16,
    /// The client's pid as it sees it itself: only for messages, the daemon asks the kernel.
    pub pid: u32,
    /// A random number drawn when the program started: tells two programs apart that one process executed.
    pub nonce: u64,
    /// Names the build of the client, for messages: text, padded with zeroes.
    pub build: [u8; 16],
}

impl Hello {
    /// Length of the message in bytes.
    pub const LENGTH: usize = 36;

    /// The message.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        put(&mut bytes, 0, HELLO.to_le_bytes());
        put(&mut bytes, 4, self.protocol.to_le_bytes());
        put(&mut bytes, 6, self.flags.to_le_bytes());
        put(&mut bytes, 8, self.pid.to_le_bytes());
        put(&mut bytes, 12, self.nonce.to_le_bytes());
        put(&mut bytes, 20, self.build);
        bytes
    }

    /// Reads a message.
    ///
    /// # Errors
    /// See [`WireError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let protocol = begins(bytes, Self::LENGTH, HELLO)?;
        Ok(Hello {
            protocol,
            flags: u16::from_le_bytes(get(bytes, 6)?),
            pid: u32::from_le_bytes(get(bytes, 8)?),
            nonce: u64::from_le_bytes(get(bytes, 12)?),
            build: get(bytes, 20)?,
        })
    }
}

/// "Say this again, with your credentials." The answer is the same message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// Version the rest of the exchange is in.
    pub protocol: u16,
    /// A random number, good once.
    pub nonce: u64,
}

impl Challenge {
    /// Length of the message in bytes.
    pub const LENGTH: usize = 16;

    /// The message.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        put(&mut bytes, 0, CHALLENGE.to_le_bytes());
        put(&mut bytes, 4, self.protocol.to_le_bytes());
        put(&mut bytes, 8, self.nonce.to_le_bytes());
        bytes
    }

    /// Reads a message.
    ///
    /// # Errors
    /// See [`WireError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let protocol = begins(bytes, Self::LENGTH, CHALLENGE)?;
        Ok(Challenge {
            protocol,
            nonce: u64::from_le_bytes(get(bytes, 8)?),
        })
    }
}

/// The daemon's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Status {
    /// Admitted; the objects follow.
    Admitted = 0,
    /// No tenant of this node is meant: nothing is enforced on this process.
    Unmanaged = 1,
    /// The tenant may not use this node.
    Denied = 2,
    /// All slots of the account are taken.
    NoSlot = 3,
    /// The client's protocol is not spoken here.
    Protocol = 4,
    /// The peer could not be identified.
    Identity = 5,
    /// The daemon admits nobody for now, because clients of its predecessor still live.
    Predecessor = 6,
    /// The daemon failed; its log says how.
    Failed = 7,
}

impl Status {
    fn from_bits(bits: u16) -> Option<Status> {
        use Status::{Admitted, Denied, Failed, Identity, NoSlot, Predecessor, Protocol, Unmanaged};
        [
            Admitted,
            Unmanaged,
            Denied,
            NoSlot,
            Protocol,
            Identity,
            Predecessor,
            Failed,
        ]
        .into_iter()
        .find(|status| *status as u16 == bits)
    }
}

/// What a descriptor of the reply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum ObjectKind {
    /// A `Policy`, to be mapped read-only.
    Policy = 1,
    /// An `Account`; read-only for an observer.
    Account = 2,
    /// Not made yet; see the architecture's "board".
    Board = 3,
    /// Not made yet; see the architecture's "demand".
    Demand = 4,
}

/// One object of a reply; its descriptor has the same place in the control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectEntry {
    /// What it is; `None` for a kind this build does not know, which is to be closed and left.
    pub kind: Option<ObjectKind>,
    /// The client's slot, 1 to 1023, for an account; 0 otherwise, and for an observer.
    pub slot: u16,
    /// The device it is about.
    pub device: [u8; 16],
    /// Its size in bytes.
    pub size: u64,
}

impl ObjectEntry {
    /// Length in bytes.
    pub const LENGTH: usize = 32;

    /// Names an object of `kind`.
    #[must_use]
    pub fn new(kind: ObjectKind, slot: u16, device: [u8; 16], size: u64) -> Self {
        ObjectEntry {
            kind: Some(kind),
            slot,
            device,
            size,
        }
    }

    fn encode(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        put(
            &mut bytes,
            0,
            self.kind.map_or(0, |kind| kind as u16).to_le_bytes(),
        );
        put(&mut bytes, 2, self.slot.to_le_bytes());
        put(&mut bytes, 8, self.size.to_le_bytes());
        put(&mut bytes, 16, self.device);
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        use ObjectKind::{Account, Board, Demand, Policy};
        let kind = u16::from_le_bytes(get(bytes, 0)?);
        let slot = u16::from_le_bytes(get(bytes, 2)?);
        if slot as usize >= crate::slot::SLOTS {
            return Err(WireError::Value);
        }
        Ok(ObjectEntry {
            kind: [Policy, Account, Board, Demand]
                .into_iter()
                .find(|known| *known as u16 == kind),
            slot,
            size: u64::from_le_bytes(get(bytes, 8)?),
            device: get(bytes, 16)?,
        })
    }
}

/// The daemon's last message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Version the reply is in: the client's, where the daemon speaks it.
    pub protocol: u16,
    /// The decision.
    pub status: Status,
    entries: Entries<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entries<'a> {
    Made(&'a [ObjectEntry]),
    Received(&'a [u8]),
}

impl<'a> Reply<'a> {
    /// A reply with its objects, of which the first [`MOST_OBJECTS`] count.
    #[must_use]
    pub fn new(protocol: u16, status: Status, objects: &'a [ObjectEntry]) -> Self {
        Reply {
            protocol,
            status,
            entries: Entries::Made(&objects[..objects.len().min(MOST_OBJECTS)]),
        }
    }

    /// The objects, in the order of the descriptors.
    pub fn objects(&self) -> impl Iterator<Item = ObjectEntry> + 'a {
        let (made, received) = match self.entries {
            Entries::Made(made) => (made, &[][..]),
            Entries::Received(received) => (&[][..], received),
        };
        let read = received
            .chunks_exact(ObjectEntry::LENGTH)
            .filter_map(|entry| ObjectEntry::decode(entry).ok());
        made.iter().copied().chain(read)
    }

    /// Writes the message to the beginning of `bytes` and returns its length.
    pub fn encode(&self, bytes: &mut [u8; LONGEST_REPLY]) -> usize {
        put(bytes, 0, REPLY.to_le_bytes());
        put(bytes, 4, self.protocol.to_le_bytes());
        put(bytes, 6, (self.status as u16).to_le_bytes());
        put(bytes, 12, 0u32.to_le_bytes());
        let mut count = 0;
        for entry in self.objects() {
            put(bytes, REPLY_HEAD + count * ObjectEntry::LENGTH, entry.encode());
            count += 1;
        }
        put(bytes, 8, (count as u32).to_le_bytes());
        REPLY_HEAD + count * ObjectEntry::LENGTH
    }

    /// Reads a message.
    ///
    /// # Errors
    /// See [`WireError`]. A reply whose status this build does not know is [`Status::Failed`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let protocol = begins(bytes, REPLY_HEAD, REPLY)?;
        let status = Status::from_bits(u16::from_le_bytes(get(bytes, 6)?)).unwrap_or(Status::Failed);
        let count = u32::from_le_bytes(get(bytes, 8)?) as usize;
        if count > MOST_OBJECTS {
            return Err(WireError::Value);
        }
        let entries = bytes
            .get(REPLY_HEAD..REPLY_HEAD + count * ObjectEntry::LENGTH)
            .ok_or(WireError::Short)?;
        for entry in entries.chunks_exact(ObjectEntry::LENGTH) {
            ObjectEntry::decode(entry)?;
        }
        Ok(Reply {
            protocol,
            status,
            entries: Entries::Received(entries),
        })
    }
}

/// The version to answer a client of version `theirs` in; `None` when neither understands the other.
///
/// A client one version newer is answered in ours: every build understands its predecessor's version.
#[must_use]
pub const fn answer_in(theirs: u16) -> Option<u16> {
    if theirs < OLDEST_PROTOCOL || theirs > PROTOCOL + 1 {
        None
    } else if theirs < PROTOCOL {
        Some(theirs)
    } else {
        Some(PROTOCOL)
    }
}

/// Checks length and magic and returns the version, which every message has at byte 4.
fn begins(bytes: &[u8], length: usize, magic: u32) -> Result<u16, WireError> {
    if u32::from_le_bytes(get(bytes, 0)?) != magic {
        return Err(WireError::Magic);
    }
    let protocol = u16::from_le_bytes(get(bytes, 4)?);
    if bytes.len() < length {
        return Err(WireError::Short);
    }
    Ok(protocol)
}

fn get<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], WireError> {
    bytes
        .get(at..at + N)
        .and_then(|part| part.try_into().ok())
        .ok_or(WireError::Short)
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&value);
}
