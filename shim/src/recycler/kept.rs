//! Freeing into the recycler and asking of it. Every way out that is not a plain yes leaves the call to the driver, which
//! answers as it always would.
//!
//! Next: `blocks.rs`.

use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;

use driver::abi::{CUcontext, CUstream};
use driver::{CudaError, StreamApi};
use ledger::policy::{Contents, Recycling};
use ledger::slot::Class;

use super::blocks::Block;
use super::certificate::{can_record, within};
use super::{FORBIDDEN, MOST, SUITS, UNKNOWN, surroundings};
use crate::books::{Books, Here};
use crate::charge::{Account, monotonic_nanoseconds};
use crate::guard::{Call, Otherwise};
use crate::live::{AccountIndex, Allocation, is_small};
use crate::relaxed::relaxed;

/// So many frees are covered by one certificate where nothing is wanted sooner.
const BATCH: usize = 128;
/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;

impl Books {
    /// A kept block of exactly `bytes` for a call in `here`, charged already; `None`: ask the driver.
    pub fn recycled(&self, call: &Call<'_>, here: Here, bytes: u64) -> Option<u64> {
        if !self.recycler.holds() || is_small(bytes) {
            return None;
        }
        if self.recycling(call, here.account) == Recycling::Off
            || self.recycler.captures.any()
            || self.recycler.is_off.load(Relaxed)
        {
            return None;
        }
        let account = self.account(here.account);
        // A cap below what is used: nothing more is granted, and what is kept goes back first.
        if account.is_over() {
            return None;
        }
        let inside = self.recycler.endings.enter()?;
        let key = (here.owner, bytes);
        let take = || {
            let mut blocks = self.recycler.blocks.lock();
            let block = blocks.take_idle(key);
            self.recycler.note(&blocks);
            (block, blocks.runs_low())
        };
        let (mut found, runs_low) = take();
        if found.is_none() {
            self.ripen(call, key);
            found = take().0;
        } else if runs_low {
            self.ask_for_certificate(call);
        }
        let block = found?;
        account.reclassify(block.charge(), Class::Idle, Class::Device);
        let allocation = Allocation {
            class: Class::Device,
            ..block.allocation
        };
        self.live.lock().insert(block.pointer, allocation);
        // What is filled is waited for, which nobody else has to wait for.
        drop(inside);
        if self.fill(call, account.policy().contents(), &block) {
            return Some(block.pointer);
        }
        // What the policy wants in it is not in it: the driver may have it, unless its context took it along.
        let taken = self.live.lock().take(block.pointer);
        if let Some(taken) = taken {
            self.give_back(call, block.pointer, taken);
        }
        None
    }

    /// Keeps a block that was taken out of the books because the program frees it.
    ///
    /// # Errors
    /// The allocation, where the driver is to free it.
    pub fn recycle(&self, call: &Call<'_>, pointer: u64, taken: Allocation) -> Result<(), Allocation> {
        match self.try_recycle(call, pointer, taken) {
            Some(()) => Ok(()),
            None => Err(taken),
        }
    }

    fn try_recycle(&self, call: &Call<'_>, pointer: u64, taken: Allocation) -> Option<()> {
        let account = self.account(taken.account);
        if self.recycler.holds() {
            self.tend(call, taken.account, taken.context);
        } else if account.policy().recycling() == Recycling::Off {
            return None;
        }
        taken.plain?;
        let mode = self.recycling(call, taken.account);
        if mode == Recycling::Off || self.recycler.captures.any() || self.recycler.is_off.load(Relaxed) {
            return None;
        }
        let block = Block {
            pointer,
            allocation: Allocation {
                class: Class::Idle,
                ..taken
            },
            turn: 0,
            since: monotonic_nanoseconds(),
        };
        let held = self.recycler.blocks.lock().held(taken.account);
        if account.is_over() || held + block.charge() > most_kept(account) {
            return None;
        }
        let inside = self.recycler.endings.enter()?;
        let current = self.current(call)?;
        let here = self.contexts.lock().find(current)?;
        if here.owner != taken.context {
            return None;
        }
        account.reclassify(block.charge(), taken.class, Class::Idle);
        let open = {
            let mut blocks = self.recycler.blocks.lock();
            blocks.keep(block);
            self.recycler.note(&blocks);
            blocks.open_len()
        };
        if mode == Recycling::Elide {
            if open >= BATCH {
                self.ask_for_certificate(call);
            }
            return Some(());
        }
        drop(inside);
        // The waiting that the driver's own call has. What it finds wrong the driver is to say.
        if self.wait_in(call, taken.context) {
            return Some(());
        }
        // Where it is not kept any more another thread got it, behind a certificate, or gave it back, or its context took it
        // along: then it is freed, and perhaps somebody's.
        if self.recycler.drop_at(pointer).is_none() {
            return Some(());
        }
        account.reclassify(block.charge(), Class::Idle, taken.class);
        None
    }

    /// How a call ends that names a block we know nothing of. What is kept the program has freed: the driver would say so.
    pub fn unknown(&self, pointer: u64) -> Otherwise {
        match self.recycler.covers(pointer) {
            true => Otherwise::Fail(CudaError::INVALID_VALUE),
            false => Otherwise::Forward,
        }
    }

    /// What becomes of an account's memory that is freed, as the policy has it now. Nothing is kept where the account has more
    /// than one process: one that sleeps would keep from another what that asks for.
    pub(super) fn recycling(&self, call: &Call<'_>, account: AccountIndex) -> Recycling {
        let account = self.account(account);
        match account.policy().recycling() {
            Recycling::Off => Recycling::Off,
            _ if account.policy().mode() == ledger::Mode::Observe => Recycling::Off,
            _ if account.clients() > 1 || !self.suits(call) => Recycling::Off,
            // Copies between devices were seen to begin on memory in use, and why is not known.
            _ if self.contexts.lock().span_devices() => Recycling::Off,
            recycling => recycling,
        }
    }

    fn suits(&self, call: &Call<'_>) -> bool {
        match self.recycler.suits.load(Relaxed) {
            UNKNOWN => {
                let suits =
                    can_record(call.driver) && self.knows_all_devices(call.driver) && surroundings::suit();
                let answer = if suits { SUITS } else { FORBIDDEN };
                // Somebody may have forbidden it meanwhile.
                let _ = self
                    .recycler
                    .suits
                    .compare_exchange(UNKNOWN, answer, Relaxed, Relaxed);
                self.recycler.suits.load(Relaxed) == SUITS
            }
            known => known == SUITS,
        }
    }

    /// Puts into a block what the policy wants to be in it, and waits until it is, in a stream of our own.
    fn fill(&self, call: &Call<'_>, contents: Contents, block: &Block) -> bool {
        let value = match contents {
            Contents::Keep => return true,
            Contents::Zero => 0,
            Contents::Poison => 0xa5,
        };
        let (context, bytes) = block.key();
        let current = self.current(call);
        let known = self.recycler.blocks.lock().filler(context);
        let filled = relaxed(call.driver, || {
            within(call.driver, current, context, || {
                let stream = match known {
                    Some(stream) => stream,
                    None => {
                        let mut made: CUstream = null_mut();
                        // SAFETY: the driver writes one handle.
                        unsafe {
                            call.driver
                                .cuStreamCreate(StreamApi::Legacy, &mut made, NON_BLOCKING)?
                        };
                        self.recycler.blocks.lock().add_filler(context, made);
                        made
                    }
                };
                // SAFETY: the block is ours, as long as said, and nobody uses it.
                unsafe {
                    call.driver.cuMemsetD8Async(
                        StreamApi::Legacy,
                        block.pointer,
                        value,
                        bytes as usize,
                        stream,
                    )?;
                    call.driver.cuStreamSynchronize(StreamApi::Legacy, stream)
                }
            })
        });
        filled.is_ok()
    }

    /// A wait of the program's own for the only context there is, begun after `turn`, is as good as a certificate.
    pub fn waited_for(&self, call: &Call<'_>, context: Option<CUcontext>, turn: u64) {
        let Some(context) = context else { return };
        let (here, only) = {
            let contexts = self.contexts.lock();
            let here = contexts.find(context);
            (here, contexts.owners() == [context as usize])
        };
        let Some(here) = here.filter(|here| here.owner == context as usize) else {
            return;
        };
        if only {
            self.recycler.complete_until(turn);
        }
        self.tend(call, here.account, here.owner);
    }
}

/// Most bytes this process keeps for an account.
fn most_kept(account: &Account) -> u64 {
    (account.policy().cap() / 10).min(MOST)
}
