//! Tests of the hooks over a driver that knows what is physically there (`world.rs`) and a real account.

mod arrays;
mod blocks;
mod contexts;
mod graphs;
mod pools;
mod property;
mod recycler;
mod recycler_limits;
mod recycler_property;
mod recycler_returns;
mod views;
mod world;

use std::sync::{Arc, Mutex};

use core::ptr::null_mut;

use driver::abi::*;
use driver::{CuResult, CudaError, Driver};
use ledger::slot::Class;
use ledger::{Account, Contents, Daemon, Mapping, Mode, Owner, Policy, Recycling, SlotIndex, View, mapping};

use crate::attach::Admitted;
use crate::books::Books;
use crate::hooks::{memory, pool, sync};
use rustix::fd::OwnedFd;
use world::State;

pub const MIB: u64 = 1 << 20;

/// A driver, an account, and the books of a process that charges it.
pub struct Stage {
    pub driver: Driver,
    pub books: Books,
    pub state: Arc<Mutex<State>>,
    policy: Mapping<Policy>,
    account: Mapping<Account>,
    _files: [OwnedFd; 2],
}

/// Makes a call of `$row` through its hook as the shim's export would. Variables are passed by raw pointer.
macro_rules! call {
    ($stage:expr, $row:ident => $hook:path, $($argument:expr),*) => {
        call!(@bind $stage, $row, $hook, [], [a b c d e f], $($argument,)*)
    };
    (@bind $stage:expr, $row:ident, $hook:path, [$($bound:ident)*], [$name:ident $($names:ident)*], $first:expr, $($rest:expr,)*) => {{
        let $name = $first;
        call!(@bind $stage, $row, $hook, [$($bound)* $name], [$($names)*], $($rest,)*)
    }};
    (@bind $stage:expr, $row:ident, $hook:path, [$($bound:ident)*], [$($names:ident)*],) => {{
        let stage = &$stage;
        // SAFETY: the arguments are the test's own variables.
        let pass = |driver: &driver::Driver| unsafe { driver.$row(driver::StreamApi::Legacy, $($bound),*) };
        let about = (driver::table::RowId::$row, driver::StreamApi::Legacy);
        // SAFETY: as above.
        crate::guard::Call::new(&stage.driver, about, Some(&stage.books), &pass).run(|call| unsafe { $hook(call, $($bound),*) })
    }};
}
use call;

impl Stage {
    /// An account of `cap` bytes, with a context of the driver's current on this thread.
    pub fn new(cap: u64, context_bytes: u64) -> Stage {
        let stage = Stage::bare(cap, context_bytes);
        let mut context = core::ptr::null_mut();
        call!(stage, cuDevicePrimaryCtxRetain => crate::hooks::context::retain, &raw mut context, 0).unwrap();
        stage.state.lock().unwrap().current = context as usize;
        stage
    }

    /// Without a context.
    pub fn bare(cap: u64, context_bytes: u64) -> Stage {
        let (policy_file, policy) = mapping::create::<Policy>(c"policy").unwrap();
        let (account_file, account) = mapping::create::<Account>(c"account").unwrap();
        let slot = SlotIndex::client(1).unwrap();
        let owner = Owner {
            pid: std::process::id(),
            start_time: 1,
            nonce: 1,
        };
        let mut daemon = Daemon::new(&policy, &account);
        daemon.set_cap(cap, Mode::Enforce).unwrap();
        daemon.set_context_bytes(context_bytes);
        daemon.claim(slot, &owner).unwrap();
        let admitted = Admitted {
            device: world::UUID,
            policy: View::open(mapping::reopen_read_only(&policy_file).unwrap()).unwrap(),
            account: Mapping::open(&account_file).unwrap(),
            slot,
        };
        let state = Arc::new(Mutex::new(State::new()));
        world::enter(&state);
        Stage {
            driver: world::driver(),
            books: Books::new(vec![admitted]),
            state,
            policy,
            account,
            _files: [policy_file, account_file],
        }
    }

    pub fn set_cap(&self, cap: u64, mode: Mode) {
        Daemon::new(&self.policy, &self.account)
            .set_cap(cap, mode)
            .unwrap();
    }

    pub fn set_recycling(&self, recycling: Recycling, contents: Contents) {
        Daemon::new(&self.policy, &self.account).set_recycling(recycling, contents);
    }

    /// The daemon wants back what is kept.
    pub fn press(&self) {
        Daemon::new(&self.policy, &self.account).press();
    }

    /// The account has one more client.
    pub fn add_client(&self) {
        let owner = Owner {
            pid: std::process::id(),
            start_time: 1,
            nonce: 2,
        };
        let slot = SlotIndex::client(2).unwrap();
        Daemon::new(&self.policy, &self.account)
            .claim(slot, &owner)
            .unwrap();
    }

    /// Bytes charged.
    pub fn used(&self) -> u64 {
        self.account.used()
    }

    pub fn peak(&self) -> u64 {
        self.account.peak()
    }

    /// Bytes there.
    pub fn physical(&self) -> u64 {
        self.state.lock().unwrap().physical()
    }

    pub fn class(&self, class: Class) -> u64 {
        self.account
            .slot(SlotIndex::client(1).unwrap())
            .class_bytes(class)
    }

    /// Events posted since the last look.
    pub fn events(&self) -> Vec<ledger::ring::Event> {
        let slot = SlotIndex::client(1).unwrap();
        let mut daemon = Daemon::new(&self.policy, &self.account);
        let mut cursor = daemon.cursor(slot);
        let mut events = Vec::new();
        daemon.drain(slot, &mut cursor, |event| events.push(event));
        events
    }

    /// How often the program's or our own calls reached the driver.
    pub fn calls(&self, name: &str) -> u32 {
        self.state.lock().unwrap().calls.get(name).copied().unwrap_or(0)
    }

    pub fn fail_next(&self, name: &'static str, code: u32) {
        self.state.lock().unwrap().fault = Some((name, code));
    }

    #[track_caller]
    pub fn assert_exact(&self) {
        assert_eq!(self.used(), self.physical(), "charged and there");
    }
}

pub fn alloc(stage: &Stage, bytes: u64) -> Result<u64, CudaError> {
    let mut pointer = 0;
    call!(stage, cuMemAlloc_v2 => memory::alloc, &raw mut pointer, bytes as usize).map(|()| pointer)
}

pub fn free(stage: &Stage, pointer: u64) -> CuResult {
    call!(stage, cuMemFree_v2 => memory::free, pointer)
}

pub fn alloc_async(stage: &Stage, bytes: u64) -> Result<u64, CudaError> {
    let mut pointer = 0;
    call!(stage, cuMemAllocAsync => pool::alloc, &raw mut pointer, bytes as usize, null_mut())
        .map(|()| pointer)
}

/// Has a pool grow once, after which the shim knows by how much this driver's do.
pub fn know_steps(stage: &Stage) {
    let block = alloc_async(stage, MIB).unwrap();
    free_async(stage, block, 0).unwrap();
    wait(stage, 0).unwrap();
}

pub fn free_async(stage: &Stage, pointer: u64, stream: usize) -> CuResult {
    call!(stage, cuMemFreeAsync => pool::free, pointer, stream as CUstream)
}

pub fn wait(stage: &Stage, stream: usize) -> CuResult {
    call!(stage, cuStreamSynchronize => sync::stream, stream as CUstream)
}

/// One of the driver's structs, all zeroes.
pub fn zeroed<T: Copy>() -> T {
    // SAFETY: used for the driver's structs of integers and pointers only.
    unsafe { core::mem::zeroed() }
}

/// The device's default pool, asked of the driver itself.
pub fn default_pool(stage: &Stage) -> CUmemoryPool {
    let mut pool = null_mut();
    // SAFETY: the driver of the test writes one handle.
    let asked = unsafe {
        stage
            .driver
            .cuDeviceGetMemPool(driver::StreamApi::Legacy, &mut pool, 0)
    };
    asked.unwrap();
    pool
}
