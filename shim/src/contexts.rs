//! Contexts and what each was charged. A device's primary context is one object however often it is retained; whoever makes
//! it reserves its cost, the others join.
//!
//! Next: `hooks/context.rs`, the calls that make and destroy them.

use std::collections::BTreeMap;

use driver::abi::{CUcontext, CUdevice};
use driver::{CudaError, StreamApi};
use ledger::slot::Class;

use crate::books::{Books, Here};
use crate::charge::Reservation;
use crate::guard::{Call, Otherwise};
use crate::live::AccountIndex;
use crate::process::PROCESS;

/// A context we know of.
#[derive(Clone, Copy, Debug)]
struct Known {
    here: Here,
    charge: u64,
    /// Uses by the oldest interface, which counts them.
    uses: u32,
    /// Rises with every context entered: tells those known before an instant.
    serial: u64,
}

/// A device's primary context.
#[derive(Clone, Copy, Debug, Default)]
struct Primary {
    /// Its handle once known, as a number.
    handle: usize,
    /// Times retained and not released.
    retained: u32,
    /// Calls under way that may make it.
    joining: u32,
    /// Whether its cost is charged (it may be 0).
    held: bool,
    charge: u64,
    /// Rises with every joining call.
    turn: u64,
}

/// All contexts of the process.
#[derive(Default)]
pub struct Contexts {
    known: BTreeMap<usize, Known>,
    primaries: BTreeMap<CUdevice, Primary>,
    /// Green contexts hold their device's primary context.
    greens: BTreeMap<usize, CUdevice>,
    serial: u64,
}

/// A primary context as it was before a call that may end it.
#[derive(Clone, Copy, Debug)]
pub struct Before {
    turn: u64,
    live: u64,
}

impl Contexts {
    pub const fn new() -> Contexts {
        Contexts {
            known: BTreeMap::new(),
            primaries: BTreeMap::new(),
            greens: BTreeMap::new(),
            serial: 0,
        }
    }

    /// Where calls in this context work, if it is known.
    pub fn find(&self, context: CUcontext) -> Option<Here> {
        self.known.get(&(context as usize)).map(|known| known.here)
    }

    /// Every context there is, as a number: those that own their memory, in which work of green ones is seen, too.
    pub fn owners(&self) -> Vec<usize> {
        let mut owners: Vec<usize> = self.known.values().map(|known| known.here.owner).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    /// Whether there are contexts on several devices.
    pub fn span_devices(&self) -> bool {
        let mut devices = self.known.values().map(|known| known.here.device);
        let first = devices.next();
        devices.any(|device| Some(device) != first)
    }

    /// Enters a context; returns the charge of one that had the same handle and went away unseen.
    fn enter(&mut self, context: CUcontext, here: Here, charge: u64) -> Option<(AccountIndex, u64)> {
        self.serial += 1;
        let known = Known {
            here,
            charge,
            uses: 1,
            serial: self.serial,
        };
        let stale = self.known.insert(context as usize, known)?;
        Some((stale.here.account, stale.charge))
    }

    /// Counts a use (`cuCtxAttach`).
    pub fn add_use(&mut self, context: CUcontext) {
        if let Some(known) = self.known.get_mut(&(context as usize)) {
            known.uses += 1;
        }
    }

    /// Takes back a use (`cuCtxDetach`); true when it was the last.
    pub fn drop_use(&mut self, context: CUcontext) -> bool {
        let Some(known) = self.known.get_mut(&(context as usize)) else {
            return false;
        };
        known.uses = known.uses.saturating_sub(1);
        known.uses == 0
    }

    /// An instant.
    pub fn now(&self) -> u64 {
        self.serial
    }

    /// Takes out a context known at the instant `until`.
    fn remove(&mut self, context: usize, until: u64) -> Option<Known> {
        match self.known.get(&context) {
            Some(known) if known.serial <= until => self.known.remove(&context),
            _ => None,
        }
    }

    /// Remembers which primary context a green one holds.
    pub fn enter_green(&mut self, green: usize, device: CUdevice) {
        self.greens.insert(green, device);
    }

    /// The device of a green context.
    pub fn device_of_green(&self, green: usize) -> Option<CUdevice> {
        self.greens.get(&green).copied()
    }

    pub fn forget_green(&mut self, green: usize) {
        self.greens.remove(&green);
    }

    fn primary(&mut self, device: CUdevice) -> &mut Primary {
        self.primaries.entry(device).or_default()
    }
}

impl Books {
    /// Charges a context that was made behind our back, when it is first met.
    ///
    /// # Errors
    /// Out of memory where it does not fit: nothing is allocated in it then.
    pub fn meet_context(
        &self,
        call: &Call<'_>,
        context: CUcontext,
        device: CUdevice,
        account: AccountIndex,
    ) -> Result<Here, Otherwise> {
        let cost = self.account(account).context_bytes();
        let reservation = self.reserve(call, account, cost, Class::Context)?;
        Ok(self.enter_context(context, device, account, reservation))
    }

    /// Enters a context for which `reservation` was made.
    pub fn enter_context(
        &self,
        context: CUcontext,
        device: CUdevice,
        account: AccountIndex,
        reservation: Reservation<'_>,
    ) -> Here {
        let owner = context as usize;
        let here = Here {
            account,
            device,
            owner,
        };
        let charge = reservation.keep();
        let stale = self.contexts.lock().enter(context, here, charge);
        self.give_back_context(stale);
        PROCESS.count_launches_in(self.account(account).launches());
        here
    }

    /// Enters the context of a green one: its memory is the primary context's.
    pub fn enter_green_context(&self, context: CUcontext, device: CUdevice, account: AccountIndex) {
        let mut contexts = self.contexts.lock();
        let primary = contexts.primary(device).handle;
        let owner = if primary == 0 { context as usize } else { primary };
        let stale = contexts.enter(
            context,
            Here {
                account,
                device,
                owner,
            },
            0,
        );
        drop(contexts);
        self.give_back_context(stale);
    }

    fn give_back_context(&self, charge: Option<(AccountIndex, u64)>) {
        if let Some((account, bytes)) = charge {
            self.account(account).give_back(bytes, Class::Context);
        }
    }

    /// A destroyed context gives back its cost and what it owned, as far as both existed before the call that destroyed it.
    pub fn leave_context(&self, context: CUcontext, known_until: u64, live_until: u64) {
        let known = self.contexts.lock().remove(context as usize, known_until);
        self.settle_owned(context as usize, live_until);
        if let Some(known) = known {
            self.account(known.here.account)
                .give_back(known.charge, Class::Context);
        }
    }

    /// Before a call that may make a device's primary context: its cost is charged, by us or already.
    ///
    /// # Errors
    /// Out of memory.
    pub fn join_primary(
        &self,
        call: &Call<'_>,
        device: CUdevice,
        account: AccountIndex,
    ) -> Result<(), Otherwise> {
        let joined = |reservation: Option<Reservation<'_>>| {
            let mut contexts = self.contexts.lock();
            let primary = contexts.primary(device);
            if !primary.held {
                let Some(reservation) = reservation else {
                    return false;
                };
                primary.charge = reservation.keep();
                primary.held = true;
            }
            // A reservation that turned out to be one too many gives itself back.
            primary.joining += 1;
            primary.turn += 1;
            true
        };
        if joined(None) {
            return Ok(());
        }
        let cost = self.account(account).context_bytes();
        match self.reserve(call, account, cost, Class::Context) {
            Ok(reservation) => joined(Some(reservation)),
            // Another thread may have charged it meanwhile.
            Err(_) if joined(None) => true,
            Err(refused) => return Err(refused),
        };
        Ok(())
    }

    /// After that call. `handle` is the context's, where the call told it.
    pub fn joined_primary(
        &self,
        device: CUdevice,
        account: AccountIndex,
        handle: Option<CUcontext>,
        made: bool,
    ) {
        let mut contexts = self.contexts.lock();
        let primary = contexts.primary(device);
        primary.joining -= 1;
        let mut surplus = None;
        if made {
            primary.retained += 1;
            if let Some(handle) = handle {
                let owner = handle as usize;
                primary.handle = owner;
                // Met before by its handle alone: then it was charged twice.
                surplus = contexts.enter(
                    handle,
                    Here {
                        account,
                        device,
                        owner,
                    },
                    0,
                );
            }
        } else if primary.retained == 0 && primary.joining == 0 {
            primary.held = false;
            surplus = Some((account, core::mem::take(&mut primary.charge)));
        }
        drop(contexts);
        self.give_back_context(surplus);
        if made {
            PROCESS.count_launches_in(self.account(account).launches());
        }
    }

    /// The instant before a call that may end a primary context.
    pub fn before_primary_ends(&self, device: CUdevice) -> Before {
        let turn = self.contexts.lock().primary(device).turn;
        let live = self.live.lock().now();
        Before { turn, live }
    }

    /// After that call succeeded. The driver says whether the context is still there; where it cannot, our count does.
    pub fn primary_may_have_ended(
        &self,
        call: &Call<'_>,
        device: CUdevice,
        account: AccountIndex,
        before: Before,
        released: u32,
    ) {
        let (mut flags, mut active) = (0, 0);
        // SAFETY: the driver writes two integers.
        let asked: Result<(), CudaError> = unsafe {
            call.driver
                .cuDevicePrimaryCtxGetState(StreamApi::Legacy, device, &mut flags, &mut active)
        };
        let mut contexts = self.contexts.lock();
        let primary = contexts.primary(device);
        primary.retained = primary.retained.saturating_sub(released);
        let ended = if asked.is_ok() {
            active == 0
        } else {
            primary.retained == 0 || released == 0
        };
        // A thread that retained it meanwhile has its context, or makes it anew under the charge that is there.
        let joined = primary.joining != 0 || primary.turn != before.turn;
        if !ended || joined {
            let owner = primary.handle;
            drop(contexts);
            match released {
                _ if owner == 0 => {}
                0 => self.settle_owned(owner, before.live),
                _ if joined => self.lose_kept(owner, before.live),
                _ => {}
            }
            return;
        }
        let (handle, charge) = (primary.handle, core::mem::take(&mut primary.charge));
        primary.held = false;
        primary.handle = 0;
        let met = contexts.known.remove(&handle).map_or(0, |known| known.charge);
        drop(contexts);
        if handle != 0 {
            self.settle_owned(handle, before.live);
        }
        self.give_back_context(Some((account, charge)));
        self.give_back_context(Some((account, met)));
        self.graphs_may_have_ended(call, device);
    }
}
