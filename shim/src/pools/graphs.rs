//! The memory that a device keeps for graphs: one more pool of the driver's, which no program names. It grows when an executable
//! graph with allocation nodes is launched or uploaded for the first time, and shrinks when it is trimmed and not before.
//!
//! How much a launch can add is bounded by what all graphs launched since the last trimming need together: the driver may let
//! graphs share memory, and stop doing so at any launch. So before each launch that sum, as far as the pool is not charged that
//! much already, is reserved. Trimming begins a new epoch, in which every graph counts anew when it is launched.
//!
//! Next: `hooks/graph.rs`, the calls.

use std::collections::BTreeMap;

use driver::abi::CUdevice;
use ledger::slot::Class;

use super::{Begun, Source};
use crate::books::Books;
use crate::guard::{Call, Otherwise};
use crate::live::{AccountIndex, PoolId};

/// What an executable graph allocates on one device.
#[derive(Clone, Copy, Debug)]
struct Need {
    pool: PoolId,
    account: AccountIndex,
    bytes: u64,
    /// The epoch in which it was last launched; 0: never.
    epoch: u64,
}

/// The executable graphs with memory, and the pool of each device.
#[derive(Default)]
pub struct Graphs {
    needs: BTreeMap<usize, Vec<Need>>,
    pools: BTreeMap<CUdevice, PoolId>,
}

impl Graphs {
    pub const fn new() -> Graphs {
        Graphs {
            needs: BTreeMap::new(),
            pools: BTreeMap::new(),
        }
    }
}

/// What a graph needs, taken out of the books for a while.
pub struct Needs(Vec<Need>);

/// What bounds a pool for graphs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bound {
    /// Rises when the pool is trimmed.
    epoch: u64,
    /// No less than what the driver can have reserved: what was left at the last trimming, and the needs of all graphs
    /// launched since.
    demand: u64,
    /// The pool's turn when it was last trimmed, until the driver was asked what that left.
    trimmed: Option<u64>,
}

impl Bound {
    pub const FIRST: Bound = Bound {
        epoch: 1,
        demand: 0,
        trimmed: None,
    };

    /// The driver has `now` bytes reserved, and nothing is under way. Nobody was launched since the trimming: that is the bound.
    pub fn told(&mut self, now: u64, turn: u64) {
        if self.trimmed.take() == Some(turn) {
            self.demand = now;
        }
    }
}

/// A launch or upload under way, on one device.
#[must_use]
pub struct Launching<'a> {
    begun: Begun<'a>,
    /// Which of the graph's needs it is.
    at: usize,
    epoch: u64,
    /// What it added to the bound: 0 for a graph that was launched in this epoch.
    added: u64,
    /// Less was reserved than is foreseen.
    is_short: bool,
}

impl Launching<'_> {
    /// Whether the driver may add more than was reserved: then what it did must be undone.
    pub fn is_short(&self) -> bool {
        self.is_short
    }

    /// Whom it is charged to, and how many bytes the graph allocates there.
    pub fn account(&self) -> (AccountIndex, u64) {
        (self.begun.account, self.begun.bytes)
    }
}

/// What a launch would add to the bound, and by how much the pool may grow: as foreseen, and as needed at least.
struct Wanted {
    need: Need,
    epoch: u64,
    added: [u64; 2],
    growth: [u64; 2],
}

impl Books {
    /// Enters an executable graph with what it allocates on each device: whole pages, summed up.
    pub fn enter_graph(&self, exec: usize, needs: &[(CUdevice, AccountIndex, u64)]) {
        let mut pools = self.pools.lock();
        let mut entered = Vec::new();
        for &(device, account, bytes) in needs {
            let pool = match pools.graphs.pools.get(&device) {
                Some(pool) => *pool,
                None => {
                    let pool = pools.enter_source(Source::Graphs(device), Some(account));
                    pools.graphs.pools.insert(device, pool);
                    pool
                }
            };
            entered.push(Need {
                pool,
                account,
                bytes,
                epoch: 0,
            });
        }
        pools.graphs.needs.insert(exec, entered);
    }

    /// Forgets one that the driver destroyed; its memory stays where it is.
    pub fn forget_graph(&self, exec: usize) {
        self.pools.lock().graphs.needs.remove(&exec);
    }

    /// Takes one out of the books before the driver is asked to destroy it.
    pub fn take_graph(&self, exec: usize) -> Option<Needs> {
        self.pools.lock().graphs.needs.remove(&exec).map(Needs)
    }

    /// The driver did not.
    pub fn put_graph_back(&self, exec: usize, needs: Needs) {
        self.pools.lock().graphs.needs.entry(exec).or_insert(needs.0);
    }

    /// The pool for graphs of a device, if any graph of it was met.
    pub fn graph_pool(&self, device: CUdevice) -> Option<PoolId> {
        self.pools.lock().graphs.pools.get(&device).copied()
    }

    /// Before a launch or upload: reserves what may be added. `None`: nothing of this graph is charged.
    ///
    /// # Errors
    /// Out of memory.
    pub fn begin_launch<'a>(
        &'a self,
        call: &Call<'_>,
        exec: usize,
    ) -> Result<Option<Vec<Launching<'a>>>, Otherwise> {
        let count = self.pools.lock().graphs.needs.get(&exec).map(Vec::len);
        let Some(count) = count else {
            return Ok(None);
        };
        let mut begun = Vec::with_capacity(count);
        for at in 0..count {
            match self.begin_on(call, exec, at) {
                Ok(launching) => begun.extend(launching),
                Err(refused) => {
                    self.end_launch(call, exec, begun, false);
                    return Err(refused);
                }
            }
        }
        Ok(Some(begun))
    }

    fn begin_on<'a>(
        &'a self,
        call: &Call<'_>,
        exec: usize,
        at: usize,
    ) -> Result<Option<Launching<'a>>, Otherwise> {
        loop {
            let Some(wanted) = self.wanted(exec, at) else {
                return Ok(None);
            };
            let need = wanted.need;
            call.asks(need.bytes);
            let reservation = self.reserve_or(call, need.account, wanted.growth, Class::Graph)?;
            let mut pools = self.pools.lock();
            let Some(pool) = pools.pools.get_mut(&need.pool) else {
                return Ok(None);
            };
            if pool.bound.epoch != wanted.epoch {
                // Making room trimmed this very pool: the graph's own memory is gone, and counts again.
                continue;
            }
            let is_short = reservation.bytes() < wanted.growth[0];
            let added = wanted.added[usize::from(is_short)];
            pool.bound.demand = pool.bound.demand.saturating_add(added);
            let begun = pool.begin(need.pool, need.account, need.bytes, reservation);
            return Ok(Some(Launching {
                begun,
                at,
                epoch: wanted.epoch,
                added,
                is_short,
            }));
        }
    }

    fn wanted(&self, exec: usize, at: usize) -> Option<Wanted> {
        let pools = self.pools.lock();
        let need = *pools.graphs.needs.get(&exec)?.get(at)?;
        let pool = pools.pools.get(&need.pool)?;
        let covered = pool.charge.saturating_add(pool.reserved);
        let steps = &pools.graph_steps;
        let added = if need.epoch == pool.bound.epoch {
            [0; 2]
        } else {
            [steps.foreseen(need.bytes), steps.page_wise(need.bytes)]
        };
        let bound = pool.bound;
        Some(Wanted {
            need,
            epoch: bound.epoch,
            added,
            growth: added.map(|added| bound.demand.saturating_add(added).saturating_sub(covered)),
        })
    }

    /// After the launch or upload: what is charged becomes what the driver has reserved. A launch that failed may have taken
    /// memory all the same. False where the memory grew by more than was foreseen and the cap has no room for it.
    pub fn end_launch(
        &self,
        call: &Call<'_>,
        exec: usize,
        launching: Vec<Launching<'_>>,
        launched: bool,
    ) -> bool {
        let mut fits = true;
        for one in launching {
            let (id, bytes) = (one.begun.pool, one.begun.bytes);
            let grown = self.settle_begun(call, one.begun);
            fits &= grown.fits;
            let mut pools = self.pools.lock();
            if launched && grown.alone && one.added != 0 {
                pools.graph_steps.learn(bytes, grown.bytes);
            }
            let cost = pools.graph_steps.foreseen(bytes).max(grown.bytes);
            let Some(pool) = pools.pools.get_mut(&id) else {
                continue;
            };
            if !grown.known {
                pool.shrinks = true;
            }
            if pool.bound.epoch != one.epoch {
                continue;
            }
            if !launched && grown.known && grown.bytes == 0 {
                pool.bound.demand = pool.bound.demand.saturating_sub(one.added);
            }
            if launched && one.added != 0 && grown.known && grown.alone {
                pool.bound.demand = pool.bound.demand.saturating_sub(one.added).saturating_add(cost);
            }
            let needs = pools.graphs.needs.get_mut(&exec);
            if let Some(need) = needs.and_then(|needs| needs.get_mut(one.at)).filter(|_| launched) {
                need.epoch = one.epoch;
            }
        }
        fits
    }

    /// The driver added more than fits, and nothing runs yet that needs it: it takes everything back that no graph uses.
    pub fn undo_upload(&self, call: &Call<'_>, exec: usize) {
        let pools: Vec<PoolId> = {
            let pools = self.pools.lock();
            let needs = pools.graphs.needs.get(&exec);
            needs.into_iter().flatten().map(|need| need.pool).collect()
        };
        for id in pools {
            let source = self.pools.lock().pools.get(&id).map(|pool| pool.source);
            if let Some(source) = source
                && self.trim_source(call, id, source, 0)
            {
                self.refresh_pool(call, id);
            }
        }
    }

    /// Before and after a pool for graphs is trimmed, by whomever: every graph counts anew.
    pub fn new_epoch(&self, id: PoolId, trimmed: bool) {
        if let Some(pool) = self.pools.lock().pools.get_mut(&id) {
            pool.bound.epoch += 1;
            pool.bound.trimmed = trimmed.then_some(pool.turn);
        }
    }
}
