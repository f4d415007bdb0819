//! What is kept goes back to the driver: before the program is refused anything, when the daemon wants it, when it is not asked
//! for again, and when recycling is switched off.
//!
//! Next: `hooks/exposure.rs`.

use core::sync::atomic::Ordering::Relaxed;

use driver::StreamApi;
use ledger::Recycling;
use ledger::slot::Class;

use super::blocks::{Block, Blocks};
use super::certificate::within;
use crate::books::Books;
use crate::charge::monotonic_nanoseconds;
use crate::guard::Call;
use crate::live::{AccountIndex, Allocation};
use crate::relaxed::relaxed;

/// Nobody asked for a block in this time: it is stale, in nanoseconds.
const STALE: u64 = 2_000_000_000;
/// Stale blocks are looked for at most this often, in nanoseconds, and so many go at a time.
const SWEEP: u64 = 60_000_000;
const SWEPT: usize = 4;

impl Books {
    /// Instead of a refusal: gives back kept blocks of `account` until they are `need` bytes, idle ones first. The driver waits
    /// for the work of the others, as it would have when the program freed them. Returns how many bytes it gave back.
    pub fn give_back_idle(&self, call: &Call<'_>, account: AccountIndex, need: u64) -> u64 {
        let mut given = 0;
        while given < need
            && let Some(block) = self.take_kept(|blocks| blocks.take_oldest(account))
        {
            given += self.give_back_block(call, block);
        }
        given
    }

    /// In a call of the program's own that waits for all of `context`, hence where the driver may: gives back what of it the
    /// daemon wants, what must not be kept any more, and some of what nobody asked for in two seconds.
    pub fn tend(&self, call: &Call<'_>, account: AccountIndex, context: usize) {
        if !self.recycler.holds() {
            return;
        }
        let (now, recycler) = (monotonic_nanoseconds(), &self.recycler);
        let pressure = self.account(account).policy().pressure();
        let is_pressed = recycler.pressures[account].swap(pressure, Relaxed) != pressure;
        if is_pressed {
            recycler.pressed.store(now, Relaxed);
        }
        let is_off = self.recycling(call, account) == Recycling::Off || recycler.is_off.load(Relaxed);
        let swept = recycler.swept.load(Relaxed);
        let is_due = now.saturating_sub(swept) >= SWEEP
            && (recycler.swept.compare_exchange(swept, now, Relaxed, Relaxed)).is_ok();
        if is_off || is_pressed || is_due {
            let before = if is_off {
                u64::MAX
            } else {
                recycler.pressed.load(Relaxed)
            };
            while let Some(block) = self.take_kept(|blocks| blocks.take_older(account, context, before)) {
                self.give_back_block(call, block);
            }
            let stale = now.saturating_sub(STALE);
            for _ in 0..SWEPT {
                let Some(block) = self.take_kept(|blocks| blocks.take_older(account, context, stale)) else {
                    break;
                };
                self.give_back_block(call, block);
            }
        }
    }

    /// Takes a block out to give it back; not while a context is being ended. The gate is open again when the driver frees
    /// it: that may take as long as a kernel runs, which may wait for the thread that wants to end a context.
    fn take_kept(&self, take: impl FnOnce(&mut Blocks) -> Option<Block>) -> Option<Block> {
        if !self.recycler.holds() {
            return None;
        }
        let _inside = self.recycler.endings.enter()?;
        let mut blocks = self.recycler.blocks.lock();
        let taken = take(&mut blocks);
        self.recycler.note(&blocks);
        taken
    }

    /// `context` may have ended, and then another one has its handle: what was kept of it is nobody's, and stays charged until
    /// its address is handed out again or the context ends for certain.
    pub fn lose_kept(&self, context: usize, until: u64) {
        for block in self.recycler.drop_kept(context, until) {
            self.account(block.allocation.account)
                .reclassify(block.charge(), Class::Idle, Class::Device);
            let lost = Allocation {
                class: Class::Device,
                plain: None,
                ..block.allocation
            };
            if !self.live.lock().put_back(block.pointer, lost) {
                self.settle(block.pointer, lost);
            }
        }
    }

    fn give_back_block(&self, call: &Call<'_>, block: Block) -> u64 {
        self.account(block.allocation.account)
            .reclassify(block.charge(), Class::Idle, Class::Device);
        let allocation = Allocation {
            class: Class::Device,
            ..block.allocation
        };
        match self.give_back(call, block.pointer, allocation) {
            true => block.charge(),
            false => 0,
        }
    }

    /// Has the driver free a block that is nobody's; false where it did not, and then it stays charged until its context ends.
    pub(super) fn give_back(&self, call: &Call<'_>, pointer: u64, allocation: Allocation) -> bool {
        let current = self.current(call);
        let freed = relaxed(call.driver, || {
            within(call.driver, current, allocation.context, || {
                // SAFETY: the block is the driver's, and the program has given it up.
                unsafe { call.driver.cuMemFree_v2(StreamApi::Legacy, pointer) }
            })
        });
        if freed.is_ok() {
            self.settle(pointer, allocation);
            return true;
        }
        let lost = Allocation {
            plain: None,
            ..allocation
        };
        // Its context may have ended meanwhile, and the block with it: whoever takes it out settles it.
        let gone = match self.live.lock().put_back(pointer, lost) {
            false => Some(lost),
            true => None,
        };
        let is_there = self.contexts.lock().owners().contains(&allocation.context);
        let gone = gone.or_else(|| match is_there {
            true => None,
            false => self.live.lock().take_made_at(pointer, lost.serial),
        });
        if let Some(gone) = gone {
            self.settle(pointer, gone);
        }
        false
    }
}
