//! How a process that only looks joins its node: once, at the first query a tenant is to see its own part of. No
//! descriptor is kept, and no lock is held meanwhile.
//!
//! Next: `ledger/src/attach.rs`, the conversation; then `pids.rs`.

use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
};
use std::os::unix::ffi::OsStrExt;

use driver::nvml::{NvmlError, c_char, c_uint, nvmlDevice_t};
use driver::run_dir::{self, ATTACH_SOCKET};
use ledger::slot::{Class, Owner, Slot};
use ledger::wire::{ObjectKind, Status, flags};
use ledger::{Account, Policy, View, attach};
use rustix::fs::fstat;
use rustix::time::{ClockId, clock_gettime};

use crate::pids::Neighbours;
use crate::real::{self, Name};

/// What the account has on one device.
pub struct Share {
    device: [u8; 16],
    policy: View<Policy>,
    account: View<Account>,
    /// The account object's inode: who maps it is a client or an observer of the account.
    inode: u64,
}

impl Share {
    /// Whether the tenant is to see its own part; in observe mode everybody sees everything.
    fn is_shown(&self) -> bool {
        self.policy.mode() == ledger::policy::Mode::Enforce
    }

    /// Free, total and used bytes as the tenant is to see them, given the device's own. What this process keeps for its own
    /// next request is free to it.
    pub fn view(&self, free: u64, total: u64) -> (u64, u64, u64) {
        let idle = self.own_idle();
        let used = self.account.used().saturating_sub(idle);
        let (free, total) = self
            .policy
            .view(free.saturating_add(idle).min(total), total, used);
        (free, total, used.min(total))
    }

    /// Bytes that the shim in this very process keeps.
    fn own_idle(&self) -> u64 {
        let keeps = |slot: &&Slot| slot.class_bytes(Class::Idle) > 0;
        let mut keepers = self
            .account
            .occupied()
            .map(|slot| self.account.slot(slot))
            .filter(keeps);
        let mut neighbours = self.neighbours();
        let own = std::process::id();
        let is_own = |slot: &&Slot| slot.owner().and_then(|owner| neighbours.id_of(&owner)) == Some(own);
        keepers
            .find(is_own)
            .map_or(0, |slot| slot.class_bytes(Class::Idle))
    }

    /// The account's clients that hold memory here, and how much.
    pub fn clients(&self) -> Vec<(Owner, u64)> {
        let slots = self.account.occupied().map(|slot| self.account.slot(slot));
        slots
            .filter_map(|slot| Some((slot.owner()?, slot.charge())))
            .filter(|(_, bytes)| *bytes > 0)
            .collect()
    }

    /// The processes that this namespace shows of the account's.
    pub fn neighbours(&self) -> Neighbours {
        Neighbours::of(self.inode)
    }

    /// All clients of the account, whatever they hold.
    pub fn owners(&self) -> Vec<Owner> {
        let slots = self.account.occupied().map(|slot| self.account.slot(slot));
        slots.filter_map(|slot| slot.owner()).collect()
    }
}

/// The shares, for as long as the process lives: an empty list where nothing is to be changed.
static SHARES: AtomicPtr<Vec<Share>> = AtomicPtr::new(null_mut());
/// When a node that did not admit this process may be asked again, in seconds of the monotonic clock; and what holds until
/// then.
static NOT_BEFORE: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicBool = AtomicBool::new(false);
const PAUSE_SECONDS: u64 = 5;

/// What the node said to this process.
enum Answer {
    /// For as long as it lives: these shares, and everything where there are none.
    Settled(Vec<Share>),
    /// Everything, for now.
    Open,
    /// Nothing, for now.
    Refused,
}

/// The account's share of `device`, which the real library has accepted; `None` where everything passes through.
///
/// # Errors
/// `UNKNOWN` where the node refuses this process: its CUDA calls fail, and the whole device is not its to see. It is the
/// library's own word for what it cannot tell, which every query may give and which tools show as such.
pub fn share_of(device: nvmlDevice_t) -> Result<Option<&'static Share>, NvmlError> {
    let Some(shares) = shares() else {
        return match REFUSED.load(Relaxed) && uuid_text(device).is_some() {
            true => Err(NvmlError::UNKNOWN),
            false => Ok(None),
        };
    };
    if shares.is_empty() {
        return Ok(None);
    }
    let uuid = uuid_text(device).and_then(|text| parse(text.split(|&b| b == 0).next()?));
    Ok(uuid.and_then(|uuid| {
        shares
            .iter()
            .find(|share| share.device == uuid && share.is_shown())
    }))
}

fn shares() -> Option<&'static Vec<Share>> {
    // SAFETY: null, or from `Box::into_raw` below and never freed.
    if let Some(known) = unsafe { SHARES.load(Acquire).as_ref() } {
        return Some(known);
    }
    if seconds() < NOT_BEFORE.load(Relaxed) {
        return None;
    }
    let asked = ask();
    let Answer::Settled(asked) = asked else {
        REFUSED.store(matches!(asked, Answer::Refused), Relaxed);
        NOT_BEFORE.store(seconds() + PAUSE_SECONDS, Relaxed);
        return None;
    };
    let mine = Box::into_raw(Box::new(asked));
    match SHARES.compare_exchange(null_mut(), mine, AcqRel, Acquire) {
        // SAFETY: ours, and now everybody's for ever.
        Ok(_) => unsafe { mine.as_ref() },
        Err(first) => {
            // Another thread was quicker; an observer may be admitted twice.
            // SAFETY: nobody else has seen ours, and `first` is never freed.
            unsafe {
                drop(Box::from_raw(mine));
                first.as_ref()
            }
        }
    }
}

fn ask() -> Answer {
    let Some(run_dir) = run_dir::of_shim() else {
        return Answer::Settled(Vec::new());
    };
    let path = run_dir.join(ATTACH_SOCKET);
    let hello = attach::hello(nonce(), flags::OBSERVER);
    let (mut policies, mut accounts) = (Vec::new(), Vec::new());
    let status = attach::ask(path.as_os_str().as_bytes(), &hello, |entry, descriptor| {
        match entry.kind {
            Some(ObjectKind::Policy) => match View::<Policy>::open(descriptor) {
                Ok(policy) => policies.push((entry.device, policy)),
                Err(_) => return false,
            },
            Some(ObjectKind::Account) => {
                let inode = fstat(&descriptor).map_or(0, |about| about.st_ino);
                match View::<Account>::open(descriptor) {
                    Ok(account) => accounts.push((entry.device, account, inode)),
                    Err(_) => return false,
                }
            }
            _ => {}
        }
        true
    });
    match status {
        Some(Status::Admitted) => {}
        Some(Status::Unmanaged) => return Answer::Settled(Vec::new()),
        None if run_dir::absent_may_run(&run_dir) => return Answer::Open,
        Some(_) | None => return Answer::Refused,
    }
    let share = |(device, account, inode): ([u8; 16], View<Account>, u64)| {
        let at = policies.iter().position(|(other, _)| *other == device)?;
        let (_, policy) = policies.swap_remove(at);
        Some(Share {
            device,
            policy,
            account,
            inode,
        })
    };
    match accounts.into_iter().map(share).collect() {
        Some(shares) => Answer::Settled(shares),
        None => Answer::Refused,
    }
}

/// Tells this query from another program's in the same process; the shim's is another, which the daemon does not mind.
fn nonce() -> u64 {
    let mut drawn = [0u8; 8];
    // SAFETY: the buffer is as long as said. Should the kernel refuse, the clock still tells programs apart.
    unsafe { libc::getrandom(drawn.as_mut_ptr().cast(), drawn.len(), libc::GRND_NONBLOCK) };
    (u64::from_ne_bytes(drawn) ^ seconds()) | 1
}

fn seconds() -> u64 {
    clock_gettime(ClockId::Monotonic).tv_sec as u64
}

/// The device's UUID as the real library writes it, NUL included; `None` where it does not know the device.
fn uuid_text(device: nvmlDevice_t) -> Option<[u8; 96]> {
    type GetUuid = unsafe extern "C" fn(nvmlDevice_t, *mut c_char, c_uint) -> driver::nvml::NvmlResult;
    // SAFETY: the real library's function of this name, or one that only returns an error.
    let get = unsafe {
        core::mem::transmute::<*const core::ffi::c_void, GetUuid>(real::address(
            Name::nvmlDeviceGetUUID as usize,
        ))
    };
    let mut text = [0u8; 96];
    // SAFETY: a buffer as long as said.
    unsafe { get(device, text.as_mut_ptr().cast(), text.len() as c_uint) }.ok()?;
    Some(text)
}

/// The UUID as the ledger has it: `GPU-` and sixteen bytes in hexadecimal, with dashes anywhere between them. `None` for a
/// MIG instance, which has another form.
fn parse(text: &[u8]) -> Option<[u8; 16]> {
    let digits = text.strip_prefix(b"GPU-")?.iter().filter(|&&b| b != b'-');
    let mut digits = digits.map(|&b| (b as char).to_digit(16).map(|digit| digit as u8));
    let mut bytes = [0; 16];
    for byte in &mut bytes {
        *byte = digits.next()?? << 4 | digits.next()??;
    }
    digits.next().is_none().then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_uuid_is_sixteen_bytes() {
        let bytes = parse(b"GPU-00010203-0405-0607-0809-0a0b0c0d0eff");
        assert_eq!(
            bytes,
            Some([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255])
        );
        for wrong in [
            "MIG-00010203-0405-0607-0809-0a0b0c0d0eff",
            "GPU-0001",
            "GPU-",
            "GPU-zz",
        ] {
            assert_eq!(parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
