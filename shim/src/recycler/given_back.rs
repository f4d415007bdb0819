//! What is kept goes back to the driver: before the program is refused anything, when the daemon wants it, when it is not asked
//! for again, and when recycling is switched off.
//!
//! Next: `hooks/exposure.rs`.

use core::sync::atomic::Ordering::Relaxed;

use driver::StreamApi;
use ledger::slot::Class;

use super::blocks::Block;
use super::certificate::within;
use crate::books::Books;
use crate::charge::monotonic_nanoseconds;
use crate::guard::Call;
use crate::live::{AccountIndex, Allocation};
use crate::relaxed::relaxed;

/// Nobody asked for a block in this time: it is stale, in nanoseconds.
const STALE: u64 = 2_000_000_000;
/// Stale blocks are looked for at most this often, in nanoseconds.
const SWEEP: u64 = 1_000_000_000;

impl Books {
    /// Gives back kept blocks of `account` until they are `need` bytes, the oldest first; waits for their work where that is
    /// needed and possible. Returns how many bytes it gave back.
    pub fn give_back_idle(&self, call: &Call<'_>, account: AccountIndex, need: u64) -> u64 {
        if !self.recycler.holds() {
            return 0;
        }
        let (mut given, mut waited) = (0, false);
        while given < need {
            let Some(inside) = self.recycler.endings.enter() else {
                break;
            };
            let oldest = {
                let mut blocks = self.recycler.blocks.lock();
                let oldest = blocks.take_oldest(account);
                self.recycler.note(&blocks);
                oldest
            };
            if let Some(block) = oldest {
                given += self.give_back_block(call, block);
                continue;
            }
            drop(inside);
            if waited || self.recycler.turn_waiting().is_none() || !self.wait_here(call) {
                break;
            }
            waited = true;
        }
        given
    }

    /// Waits for the current context's work, which makes idle what was freed before.
    fn wait_here(&self, call: &Call<'_>) -> bool {
        let Some(current) = self.current(call) else {
            return false;
        };
        let owner = self.contexts.lock().find(current).map(|here| here.owner);
        owner.is_some_and(|owner| self.wait_in(call, owner))
    }

    /// Gives back half of what nobody asked for in two seconds. At most once a second.
    pub fn sweep(&self, call: &Call<'_>) {
        if !self.recycler.holds() {
            return;
        }
        let (now, swept) = (monotonic_nanoseconds(), self.recycler.swept.load(Relaxed));
        let is_due = now.saturating_sub(swept) >= SWEEP;
        if !is_due
            || self
                .recycler
                .swept
                .compare_exchange(swept, now, Relaxed, Relaxed)
                .is_err()
        {
            return;
        }
        let Some(_inside) = self.recycler.endings.enter() else {
            return;
        };
        let before = now.saturating_sub(STALE);
        self.look_at_certificates(call);
        let open_since = self.recycler.blocks.lock().open_since();
        if open_since.is_some_and(|since| since < before) {
            self.ask_for_certificate(call);
        }
        let stale = {
            let mut blocks = self.recycler.blocks.lock();
            let stale = blocks.take_stale(before);
            self.recycler.note(&blocks);
            stale
        };
        for block in stale {
            self.give_back_block(call, block);
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
        match freed {
            Ok(()) => self.settle(pointer, allocation),
            Err(_) => self.live.lock().put_back(
                pointer,
                Allocation {
                    plain: None,
                    ..allocation
                },
            ),
        }
        freed.is_ok()
    }
}
