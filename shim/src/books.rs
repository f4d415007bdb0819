//! What this process is charged for, and to which account: the accounts by device, the live pointers, pools, physical
//! memory and contexts. Made when the process attaches, never given up.
//!
//! Next: `live.rs`, the pointers.

use core::ffi::c_int;
use core::ptr::null_mut;
use std::sync::OnceLock;

use driver::abi::{CUcontext, CUdevice, CUuuid};
use driver::{CudaError, Driver, StreamApi};
use ledger::client::Refusal;
use ledger::ring::{Kind, Reason};
use ledger::slot::Class;

use crate::array_cost::Costs;
use crate::attach::Admitted;
use crate::charge::{Account, Reservation, signed};
use crate::contexts::Contexts;
use crate::deferred::Deferred;
use crate::guard::{Call, Otherwise};
use crate::live::{AccountIndex, Allocation, Charged, Live, PAGE, is_small, shown};
use crate::lock::{Lock, Rank};
use crate::physical::Physical;
use crate::pools::Pools;
use crate::recycler::Recycler;

/// All of it.
pub struct Books {
    accounts: Vec<Account>,
    /// Which account each device is charged to; found when the driver first tells the devices' UUIDs.
    devices: OnceLock<Vec<(CUdevice, AccountIndex)>>,
    pub contexts: Lock<Contexts>,
    pub pools: Lock<Pools>,
    pub physical: Lock<Physical>,
    pub live: Lock<Live>,
    pub deferred: Deferred,
    pub recycler: Recycler,
    pub array_costs: Costs,
}

/// Where a call without a device of its own works.
#[derive(Clone, Copy, Debug)]
pub struct Here {
    pub account: AccountIndex,
    pub device: CUdevice,
    /// The context that will own what is allocated, as a number.
    pub owner: usize,
}

impl Books {
    pub fn new(admitted: Vec<Admitted>) -> Books {
        let accounts: Vec<Account> = admitted.into_iter().map(Account::new).collect();
        Books {
            recycler: Recycler::new(
                accounts
                    .iter()
                    .map(|account| account.policy().pressure())
                    .collect(),
            ),
            accounts,
            devices: OnceLock::new(),
            contexts: Lock::new(Rank::Contexts, Contexts::new()),
            pools: Lock::new(Rank::Pools, Pools::new()),
            physical: Lock::new(Rank::Physical, Physical::new()),
            live: Lock::new(Rank::Live, Live::new()),
            deferred: Deferred::new(),
            array_costs: Costs::new(),
        }
    }

    pub fn account(&self, index: AccountIndex) -> &Account {
        &self.accounts[index]
    }

    /// An account to tell the daemon by of what concerns the process as a whole.
    pub fn any_account(&self) -> Option<&Account> {
        self.accounts.first()
    }

    /// The account a device is charged to.
    ///
    /// # Errors
    /// [`Otherwise::Forward`] for a device this process was given no account of.
    pub fn of_device(&self, driver: &Driver, device: CUdevice) -> Result<AccountIndex, Otherwise> {
        let known = self.devices.get();
        // Not inside `get_or_init`: no thread waits for another one's driver call. Two threads find the same.
        let found = match known {
            Some(found) => found,
            None => {
                let asked = self.ask_devices(driver).ok_or(Otherwise::Forward)?;
                self.devices.get_or_init(|| asked)
            }
        };
        let entry = found.iter().find(|(known, _)| *known == device);
        entry.map(|(_, account)| *account).ok_or(Otherwise::Forward)
    }

    /// Whether every device the program sees has an account: then we are told of all contexts.
    pub fn knows_all_devices(&self, driver: &Driver) -> bool {
        let mut count: c_int = 0;
        // SAFETY: the driver writes one int.
        let asked = unsafe { driver.cuDeviceGetCount(StreamApi::Legacy, &mut count) };
        let known = self.devices.get().map_or(0, Vec::len);
        asked.is_ok() && usize::try_from(count) == Ok(known)
    }

    /// By UUID, since the numbers of the devices depend on what the program chose to see. `None` before `cuInit`.
    fn ask_devices(&self, driver: &Driver) -> Option<Vec<(CUdevice, AccountIndex)>> {
        let mut count: c_int = 0;
        // SAFETY: the driver writes one int.
        unsafe { driver.cuDeviceGetCount(StreamApi::Legacy, &mut count) }.ok()?;
        let mut found = Vec::new();
        for ordinal in 0..count {
            let mut device: CUdevice = 0;
            let (mut instance, mut whole) = (CUuuid::default(), CUuuid::default());
            // SAFETY: the driver writes one handle, and one UUID each. The second form is a MIG instance's own; older
            // drivers lack it.
            let known = unsafe {
                if driver
                    .cuDeviceGet(StreamApi::Legacy, &mut device, ordinal)
                    .is_err()
                {
                    continue;
                }
                [
                    driver
                        .cuDeviceGetUuid_v2(StreamApi::Legacy, &mut instance, device)
                        .is_ok(),
                    driver
                        .cuDeviceGetUuid(StreamApi::Legacy, &mut whole, device)
                        .is_ok(),
                ]
            };
            let by = |uuid: CUuuid| {
                self.accounts
                    .iter()
                    .position(|account| account.device == uuid.bytes)
            };
            let account =
                (known[0].then(|| by(instance)).flatten()).or_else(|| known[1].then(|| by(whole)).flatten());
            found.extend(account.map(|account| (device, account)));
        }
        Some(found)
    }

    /// The current context and the account of its device. A context nobody told us of is charged when it is first met.
    ///
    /// # Errors
    /// [`Otherwise::Forward`] without a current context or on a device without an account; out of memory where the context
    /// itself does not fit.
    pub fn here(&self, call: &Call<'_>) -> Result<Here, Otherwise> {
        let context = self.current(call).ok_or(Otherwise::Forward)?;
        if let Some(here) = self.contexts.lock().find(context) {
            return Ok(here);
        }
        let mut device: CUdevice = 0;
        // SAFETY: the driver writes one handle.
        let asked = unsafe { call.driver.cuCtxGetDevice(StreamApi::Legacy, &mut device) };
        asked.map_err(|_| Otherwise::Forward)?;
        let account = self.of_device(call.driver, device)?;
        self.meet_context(call, context, device, account)
    }

    /// The current context.
    pub fn current(&self, call: &Call<'_>) -> Option<CUcontext> {
        let mut context: CUcontext = null_mut();
        // SAFETY: the driver writes one handle.
        let asked = unsafe { call.driver.cuCtxGetCurrent(StreamApi::Legacy, &mut context) };
        (asked.is_ok() && !context.is_null()).then_some(context)
    }

    /// Charges `bytes` before a call that takes them. What the recycler and stream-ordered pools hold idle goes back before a
    /// refusal.
    ///
    /// # Errors
    /// Out of memory, with one event posted.
    pub fn reserve<'a>(
        &'a self,
        call: &Call<'_>,
        account: AccountIndex,
        bytes: u64,
        class: Class,
    ) -> Result<Reservation<'a>, Otherwise> {
        self.reserve_or(call, account, [bytes, bytes], class)
    }

    /// As [`Books::reserve`], and where `wanted` bytes do not fit, once more with `least`, which are no more.
    ///
    /// # Errors
    /// Out of memory.
    pub fn reserve_or<'a>(
        &'a self,
        call: &Call<'_>,
        account: AccountIndex,
        [wanted, least]: [u64; 2],
        class: Class,
    ) -> Result<Reservation<'a>, Otherwise> {
        let books = &self.accounts[account];
        loop {
            match books.try_reserve(wanted, class) {
                Ok(reservation) => return Ok(reservation),
                Err(refusal) if self.give_back_idle(call, account, missing(refusal)) == 0 => break,
                Err(_) => {}
            }
        }
        self.trim_pools(call, account, wanted);
        if least < wanted
            && let Ok(reservation) = books.try_reserve(wanted, class)
        {
            return Ok(reservation);
        }
        books.try_reserve(least, class).map_err(|refusal| {
            books.post_refusal(call.row, [call.asked(least), least], refusal);
            Otherwise::Fail(CudaError::OUT_OF_MEMORY)
        })
    }

    /// Passes a call on for which `cost` bytes of `account` were reserved. Where the device is full, what the recycler keeps goes
    /// back and the call is made once more; if that does not help, the daemon is told.
    ///
    /// # Errors
    /// The driver's.
    pub fn pass(&self, call: &Call<'_>, account: AccountIndex, cost: u64) -> Result<(), CudaError> {
        let mut result = call.pass();
        if result == Err(CudaError::OUT_OF_MEMORY) && self.give_back_idle(call, account, cost.max(1)) > 0 {
            result = call.pass();
        }
        result.inspect_err(|error| {
            if *error == CudaError::OUT_OF_MEMORY {
                let code = u64::from(error.code());
                self.accounts[account].post(call.row, Kind::Refused(Reason::Device), call.asked(cost), code);
            }
        })
    }

    /// Enters a block the driver just handed out and for which `reservation` was made.
    /// `plain`: nothing is known of it but its address and size.
    pub fn enter(
        &self,
        pointer: u64,
        here: Here,
        bytes: u64,
        (class, plain): (Class, bool),
        reservation: Reservation<'_>,
    ) {
        let account = self.account(here.account);
        let small = is_small(bytes);
        let shown = shown(bytes);
        let charge = reservation.bytes();
        let allocation = Allocation {
            account: here.account,
            context: here.owner,
            class,
            charged: if small {
                Charged::InSlab(shown)
            } else {
                Charged::Alone(charge)
            },
            plain: (plain && !small).then_some(bytes),
            serial: 0,
        };
        let (stale, slab_known) = {
            let mut live = self.live.lock();
            let slab_known = small && live.enter_slab(here.owner, pointer);
            (live.insert(pointer, allocation), slab_known)
        };
        if slab_known {
            drop(reservation);
        } else {
            reservation.keep();
        }
        if small {
            account.reclassify(shown, Class::Slab, class);
        }
        if let Some(stale) = stale {
            self.settle(pointer, stale);
        }
        if let Some(block) = self.recycler.drop_at(pointer) {
            self.settle(pointer, block.allocation);
        }
    }

    /// Enters an array the driver just handed out, which takes `bytes` and for which `reservation` was made; none for one
    /// whose memory the program maps itself.
    pub fn enter_array(&self, handle: u64, here: Here, bytes: u64, reservation: Option<Reservation<'_>>) {
        let account = self.account(here.account);
        let small = is_small(bytes);
        let charge = reservation.as_ref().map_or(0, Reservation::bytes);
        let allocation = Allocation {
            account: here.account,
            context: here.owner,
            class: Class::Array,
            charged: if small {
                Charged::InArrays(bytes)
            } else {
                Charged::Alone(charge)
            },
            plain: None,
            serial: 0,
        };
        let (stale, fits) = {
            let mut live = self.live.lock();
            let fits = small && live.enter_array(here.owner, bytes);
            (live.insert(handle, allocation), fits)
        };
        match reservation {
            Some(reservation) if !fits => drop(reservation.keep()),
            unneeded => drop(unneeded),
        }
        if small {
            account.reclassify(bytes, Class::Slab, Class::Array);
        }
        if let Some(stale) = stale {
            self.settle(handle, stale);
        }
    }

    /// Enters page-locked host memory, which is shown and not charged.
    pub fn enter_host(&self, pointer: u64, here: Here, bytes: u64) {
        self.account(here.account).note(Class::Host, signed(bytes));
        let allocation = Allocation {
            account: here.account,
            context: here.owner,
            class: Class::Host,
            charged: Charged::Shown(bytes),
            plain: None,
            serial: 0,
        };
        let stale = self.live.lock().insert(pointer, allocation);
        if let Some(stale) = stale {
            self.settle(pointer, stale);
        }
    }

    /// Gives back what a block was charged, after the driver freed it.
    pub fn settle(&self, pointer: u64, allocation: Allocation) {
        let account = self.account(allocation.account);
        match allocation.charged {
            Charged::Alone(bytes) => account.give_back(bytes, allocation.class),
            Charged::InSlab(shown) => {
                account.reclassify(shown, allocation.class, Class::Slab);
                if self.live.lock().leave_slab(allocation.context, pointer) {
                    account.give_back(PAGE, Class::Slab);
                }
            }
            Charged::InArrays(bytes) => {
                account.reclassify(bytes, allocation.class, Class::Slab);
                if self.live.lock().leave_array(allocation.context, bytes) {
                    account.give_back(PAGE, Class::Slab);
                }
                let tiles = self.physical.lock().take_tiles(pointer);
                for reference in tiles {
                    let last = self.physical.lock().drop_reference(reference);
                    self.give_back_physical(last);
                }
            }
            Charged::Tile(reference) => {
                let last = self.physical.lock().drop_reference(reference);
                self.give_back_physical(last);
            }
            Charged::InPool(pool) => self.pools.lock().forget_pointer(pool),
            Charged::Shown(bytes) => account.note(allocation.class, -signed(bytes)),
        }
    }

    /// Gives back the charge of physical memory that nothing holds any more.
    pub fn give_back_physical(&self, charge: Option<(AccountIndex, u64)>) {
        if let Some((account, bytes)) = charge {
            self.account(account).give_back(bytes, Class::Physical);
        }
    }

    /// Gives back what a context owned that the driver destroyed; only what existed at the instant `until`.
    pub fn settle_owned(&self, owner: usize, until: u64) {
        let owned = self.live.lock().take_owned(owner, until);
        for (pointer, allocation) in owned {
            self.settle(pointer, allocation);
        }
        for block in self.recycler.drop_context(owner, until) {
            self.settle(block.pointer, block.allocation);
        }
        self.deferred.settle(self, |deferred| {
            deferred.allocation.context == owner && deferred.allocation.serial <= until
        });
    }
}

/// Bytes that would have to be given back for a refused reservation to fit.
fn missing(refusal: Refusal) -> u64 {
    match refusal {
        Refusal::Full { asked, used, limit } => used.saturating_add(asked).saturating_sub(limit).max(1),
        Refusal::Contended => 0,
    }
}
