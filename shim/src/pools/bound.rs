//! What bounds the memory that a device keeps for graphs, and when that falls: when it is trimmed, when an upload is undone, and
//! when graphs end.
//!
//! Next: `hooks/graph.rs`, the calls.

use driver::abi::CUdevice;
use driver::{CuResult, StreamApi};

use super::graphs::Need;
use super::{Pools, Source};
use crate::books::Books;
use crate::guard::Call;
use crate::live::PoolId;
use crate::relaxed::relaxed;

/// What bounds a pool for graphs.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Another one after each trimming that took something.
    pub(super) epoch: u64,
    /// The highest there was.
    latest: u64,
    /// No less than what the driver can have reserved: what was left at the last trimming, and the needs of all graphs
    /// launched since.
    pub(super) demand: u64,
    /// Times it was lowered because graphs ended.
    pub(super) lowered: u64,
    /// The last trimming, until the driver was asked what that left.
    trimmed: Option<Trimmed>,
}

#[derive(Clone, Copy, Debug)]
struct Trimmed {
    /// The pool's turn after it.
    turn: u64,
    /// The epoch before it, which goes on if this much is left; `None`: somebody was launched meanwhile.
    before: Option<(u64, u64)>,
}

impl Bound {
    pub const FIRST: Bound = Bound {
        epoch: 1,
        latest: 1,
        demand: 0,
        lowered: 0,
        trimmed: None,
    };

    fn begin_epoch(&mut self) {
        self.latest += 1;
        self.epoch = self.latest;
    }
}

impl Pools {
    /// The driver has `now` bytes reserved, and nothing is under way since the turn `turn`.
    pub(super) fn graphs_at_rest(&mut self, id: PoolId, now: u64, turn: u64) {
        let Some(pool) = self.pools.get_mut(&id) else {
            return;
        };
        let bound = &mut pool.bound;
        if let Some(trimmed) = bound.trimmed.take()
            && trimmed.turn == turn
        {
            match trimmed.before {
                // Nothing was taken: every graph has what it had.
                Some((epoch, left)) if now >= left => bound.epoch = epoch,
                // Nobody was launched since: that is the bound.
                _ => bound.demand = now,
            }
        }
        self.forget_ended(id, now);
    }

    /// Of a pool at rest that holds `now` bytes: those can be in use, and each graph that is still there can need its own beside
    /// them. What ended graphs needed counts no longer.
    fn forget_ended(&mut self, id: PoolId, now: u64) {
        let Some(pool) = self.pools.get_mut(&id) else {
            return;
        };
        let bound = &mut pool.bound;
        if bound.demand <= now {
            return;
        }
        let counted = self.graphs.needs.values().flatten();
        let counted = counted.filter(|need| need.pool == id && need.epoch == bound.epoch);
        let most = counted.fold(now, |sum, need| sum.saturating_add(need.cost));
        if most < bound.demand {
            bound.demand = most;
            bound.lowered += 1;
        }
    }

    /// Graphs with these needs are gone.
    pub(super) fn leave_graphs(&mut self, needs: &[Need]) {
        for need in needs {
            if let Some(pool) = self.pools.get(&need.pool)
                && pool.calls == 0
            {
                self.forget_ended(need.pool, pool.charge);
            }
        }
    }
}

impl Books {
    /// The driver added more than fits, and nothing runs yet that needs it: it takes everything back that no graph uses.
    pub fn undo_upload(&self, call: &Call<'_>, exec: usize) {
        let undone: Vec<(PoolId, CUdevice, u64)> = {
            let mut pools = self.pools.lock();
            let Pools { pools, graphs, .. } = &mut *pools;
            let mut undone = Vec::new();
            for need in graphs.needs.get_mut(&exec).into_iter().flatten() {
                let Some(pool) = pools.get_mut(&need.pool) else {
                    continue;
                };
                if need.epoch == pool.bound.epoch {
                    let covered = pool.charge.saturating_add(pool.reserved);
                    let without = pool.bound.demand.saturating_sub(need.cost);
                    pool.bound.demand = without.max(covered.min(pool.bound.demand));
                    need.epoch = 0;
                }
                if let Source::Graphs(device) = pool.source {
                    undone.push((need.pool, device, need.before));
                }
            }
            undone
        };
        for (id, device, before) in undone {
            if self.trim_device(call, id, device, Some(before)).is_ok() {
                self.refresh_pool(call, id);
            }
        }
    }

    /// Has the driver take back what no graph uses of the pool for a device's graphs.
    pub(super) fn trim_device(
        &self,
        call: &Call<'_>,
        id: PoolId,
        device: CUdevice,
        enough: Option<u64>,
    ) -> CuResult {
        self.trim_graphs(call, id, enough, || {
            // SAFETY: a device the driver told of.
            relaxed(call.driver, || unsafe {
                call.driver.cuDeviceGraphMemTrim(StreamApi::Legacy, device)
            })
        })
    }

    /// Has a pool for graphs trimmed, by whomever. From before it every graph counts anew, unless it leaves as much as there was,
    /// or `enough`.
    ///
    /// # Errors
    /// Those of `trim`.
    pub fn trim_graphs(
        &self,
        call: &Call<'_>,
        id: PoolId,
        enough: Option<u64>,
        trim: impl FnOnce() -> CuResult,
    ) -> CuResult {
        let begun = self.pools.lock().pools.get_mut(&id).map(|pool| {
            let before = (pool.source, pool.turn, pool.bound.epoch);
            pool.bound.begin_epoch();
            pool.bound.trimmed = None;
            before
        });
        let Some((source, turn, epoch)) = begun else {
            return trim();
        };
        let left = enough.or_else(|| source.reserved(call.driver));
        let result = trim();
        if let Some(pool) = self.pools.lock().pools.get_mut(&id) {
            pool.bound.begin_epoch();
            let undisturbed = pool.turn == turn;
            pool.bound.trimmed = result.is_ok().then_some(Trimmed {
                turn: pool.turn,
                before: left.filter(|_| undisturbed).map(|left| (epoch, left)),
            });
        }
        result
    }

    /// The device's primary context ended, and perhaps what graphs held there.
    pub fn graphs_may_have_ended(&self, call: &Call<'_>, device: CUdevice) {
        let Some(id) = self.graph_pool(device) else {
            return;
        };
        if let Some(pool) = self.pools.lock().pools.get_mut(&id) {
            pool.bound.begin_epoch();
            pool.bound.trimmed = Some(Trimmed {
                turn: pool.turn,
                before: None,
            });
        }
        self.refresh_pool(call, id);
    }
}
