//! The memory that a device keeps for graphs: one more pool of the driver's, which no program names. It grows when an executable
//! graph with allocation nodes is launched or uploaded for the first time, and shrinks when it is trimmed and not before.
//!
//! How much a launch can add is bounded by what all graphs launched since the last trimming need together: the driver may let
//! graphs share memory, and stop doing so at any launch. So before each launch that sum, as far as the pool is not charged that
//! much already, is reserved. Trimming that takes something begins a new epoch, in which every graph counts anew when it is
//! launched.
//!
//! Next: `pools/bound.rs`, what of this changes at a trimming and when graphs end.

use std::collections::BTreeMap;

use driver::CudaError;
use driver::abi::CUdevice;
use ledger::slot::Class;

use super::{Begun, Pools, Source};
use crate::books::Books;
use crate::charge::Reservation;
use crate::guard::{Call, Otherwise};
use crate::live::{AccountIndex, PoolId};

/// What an executable graph allocates on one device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    pub(super) pool: PoolId,
    account: AccountIndex,
    bytes: u64,
    /// The epoch in which it was last launched; 0: never.
    pub(super) epoch: u64,
    /// What it added to the bound in that epoch.
    pub(super) cost: u64,
    /// What the pool was charged before its last launch or upload.
    pub(super) before: u64,
}

/// The executable graphs with memory, and the pool of each device.
#[derive(Default)]
pub struct Graphs {
    pub(super) needs: BTreeMap<usize, Vec<Need>>,
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

/// A launch or upload under way, on one device.
#[must_use]
pub struct Launching<'a> {
    begun: Begun<'a>,
    /// Which of the graph's needs it is.
    at: usize,
    epoch: u64,
    /// What it added to the bound: 0 for a graph that was launched in this epoch.
    added: u64,
    /// How often the bound had been lowered.
    lowered: u64,
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
    added: [u64; 2],
    growth: [u64; 2],
}

impl Pools {
    fn wanted(&self, exec: usize, at: usize) -> Option<Wanted> {
        let need = *self.graphs.needs.get(&exec)?.get(at)?;
        let pool = self.pools.get(&need.pool)?;
        let covered = pool.charge.saturating_add(pool.reserved);
        let steps = &self.graph_steps;
        let added = if need.epoch == pool.bound.epoch {
            [0; 2]
        } else {
            [steps.foreseen(need.bytes), steps.page_wise(need.bytes)]
        };
        let demand = pool.bound.demand;
        Some(Wanted {
            need,
            added,
            growth: added.map(|added| demand.saturating_add(added).saturating_sub(covered)),
        })
    }

    fn begin_launch<'a>(
        &mut self,
        exec: usize,
        at: usize,
        added: u64,
        is_short: bool,
        reservation: Reservation<'a>,
    ) -> Option<Launching<'a>> {
        let need = self.graphs.needs.get_mut(&exec)?.get_mut(at)?;
        let pool = self.pools.get_mut(&need.pool)?;
        need.before = pool.charge;
        pool.bound.demand = pool.bound.demand.saturating_add(added);
        Some(Launching {
            begun: pool.begin(need.pool, need.account, need.bytes, reservation),
            at,
            epoch: pool.bound.epoch,
            added,
            lowered: pool.bound.lowered,
            is_short,
        })
    }
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
                cost: 0,
                before: 0,
            });
        }
        pools.graphs.needs.insert(exec, entered);
    }

    /// Forgets one that the driver destroyed; its memory stays where it is.
    pub fn forget_graph(&self, exec: usize) {
        if let Some(needs) = self.take_graph(exec) {
            self.ended_graph(&needs);
        }
    }

    /// The driver told the handle of a graph that was entered under another number.
    pub fn name_graph(&self, number: usize, exec: usize) {
        let mut pools = self.pools.lock();
        if let Some(needs) = pools.graphs.needs.remove(&number) {
            pools.graphs.needs.insert(exec, needs);
        }
    }

    /// Takes one out of the books before the driver is asked to destroy it.
    pub fn take_graph(&self, exec: usize) -> Option<Needs> {
        self.pools.lock().graphs.needs.remove(&exec).map(Needs)
    }

    /// The driver did.
    pub fn ended_graph(&self, needs: &Needs) {
        self.pools.lock().leave_graphs(&needs.0);
    }

    /// The driver did not. What it needs may have been left out of the bound meanwhile.
    pub fn put_graph_back(&self, exec: usize, mut needs: Needs) {
        for need in &mut needs.0 {
            need.epoch = 0;
        }
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
        for last in [false, true] {
            let Some(wanted) = self.pools.lock().wanted(exec, at) else {
                return Ok(None);
            };
            let account = wanted.need.account;
            call.asks(wanted.need.bytes);
            let reservation = self.reserve_or(call, account, wanted.growth, Class::Graph)?;
            let mut pools = self.pools.lock();
            // Making room may have trimmed this very pool, or another call of it ended: what counts is what is wanted now.
            let Some(wanted) = pools.wanted(exec, at) else {
                return Ok(None);
            };
            let [foreseen, least] = wanted.growth;
            let reservation = if reservation.bytes() >= least {
                reservation
            } else {
                drop(reservation);
                let account = self.account(account);
                let again = account.try_reserve(foreseen, Class::Graph);
                match again.or_else(|_| account.try_reserve(least, Class::Graph)) {
                    Ok(reservation) => reservation,
                    Err(refusal) if last => {
                        drop(pools);
                        account.post_refusal(call.row, [call.asked(least), least], refusal);
                        break;
                    }
                    Err(_) => continue,
                }
            };
            let is_short = reservation.bytes() < foreseen;
            let added = wanted.added[usize::from(is_short)];
            return Ok(pools.begin_launch(exec, at, added, is_short, reservation));
        }
        Err(Otherwise::Fail(CudaError::OUT_OF_MEMORY))
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
            let alone = grown.known && grown.alone;
            let cost = if alone {
                pools.graph_steps.foreseen(bytes).max(grown.bytes)
            } else {
                one.added
            };
            let Some(pool) = pools.pools.get_mut(&id) else {
                continue;
            };
            if !grown.known {
                pool.shrinks = true;
            }
            if pool.bound.epoch != one.epoch {
                continue;
            }
            // Lowered meanwhile, the bound may be without it already.
            let counted = if pool.bound.lowered == one.lowered {
                one.added
            } else {
                0
            };
            if !launched && grown.known && grown.bytes == 0 {
                pool.bound.demand = pool.bound.demand.saturating_sub(counted);
            }
            if launched && one.added != 0 {
                pool.bound.demand = pool.bound.demand.saturating_sub(counted).saturating_add(cost);
            }
            let needs = pools.graphs.needs.get_mut(&exec);
            let need = needs.and_then(|needs| needs.get_mut(one.at)).filter(|_| launched);
            if let Some(need) = need {
                need.epoch = one.epoch;
                if one.added != 0 {
                    need.cost = cost;
                }
            }
        }
        fits
    }
}
