//! Stream-ordered pools. What counts is what a pool has *reserved* from the device, which the driver alone knows: it grows
//! with an allocation and shrinks at a later synchronisation or trim.
//!
//! Before an allocation its size is reserved, rounded up to the step in which pools of this driver were seen to grow; until one
//! was seen to grow, 32 MiB is presumed. Where that does not fit, only what the allocation needs is reserved, though no less
//! than the least that a pool was seen to grow by: that a pool once grew by much does not mean that it must. After it the
//! pool's charge becomes what the driver says is reserved, as far as that is more. Nothing is settled while an allocation of
//! the pool is under way: the driver may have told of its growth, which the allocation's own reservation covers, and so would
//! be charged twice.
//!
//! Next: `pools/source.rs`, `pools/graphs.rs`, the pool that graphs allocate from, and `hooks/pool.rs`, the calls.

mod bound;
mod graphs;
mod source;

use core::ffi::c_int;
use std::collections::BTreeMap;

use driver::StreamApi;
use driver::abi::{CU_MEM_LOCATION_TYPE_DEVICE, CUdevice, CUmemoryPool};
use ledger::slot::Class;

use crate::books::Books;
use crate::charge::{Account, Reservation};
use crate::guard::{Call, Otherwise};
use crate::live::{AccountIndex, PoolId};
use crate::relaxed::relaxed;
use crate::steps::Steps;
use bound::Bound;
use graphs::Graphs;
pub use graphs::Launching;
use source::Source;

/// An attribute of a pool, as cuda.h numbers it.
pub const RELEASE_THRESHOLD: u32 = 4;

/// A pool.
#[derive(Clone, Copy, Debug)]
struct Pool {
    source: Source,
    /// `None`: not charged (host memory, imported).
    account: Option<AccountIndex>,
    /// Bytes charged, beside the reservations of calls under way.
    charge: u64,
    /// Calls under way, and the bytes they reserved.
    calls: u32,
    reserved: u64,
    /// Rises with every allocation begun or done.
    turn: u64,
    /// Pointers that live in it.
    pointers: u64,
    /// A thread is asking the driver; another wants to know again.
    asking: bool,
    again: bool,
    /// It may shrink at the next synchronisation.
    shrinks: bool,
    /// The driver destroyed it, or will when the last pointer is freed.
    destroyed: bool,
    /// How much it may keep, by the program's wish.
    threshold: u64,
    /// Of a pool for graphs.
    bound: Bound,
}

/// All pools used so far.
pub struct Pools {
    pools: BTreeMap<PoolId, Pool>,
    handles: BTreeMap<usize, PoolId>,
    /// How those with handles were seen to grow, and those for graphs.
    steps: Steps,
    graph_steps: Steps,
    graphs: Graphs,
    next: PoolId,
}

/// An allocation under way.
#[must_use]
pub struct Begun<'a> {
    pub pool: PoolId,
    pub account: AccountIndex,
    reservation: Reservation<'a>,
    turn: u64,
    bytes: u64,
}

impl Pools {
    pub const fn new() -> Pools {
        Pools {
            pools: BTreeMap::new(),
            handles: BTreeMap::new(),
            steps: Steps::new(),
            graph_steps: Steps::new(),
            graphs: Graphs::new(),
            next: 0,
        }
    }

    /// Enters a pool the program created or imported, or one of the driver's own that it uses for the first time.
    pub fn enter(&mut self, handle: CUmemoryPool, account: Option<AccountIndex>) -> PoolId {
        let id = self.enter_source(Source::Handle(handle as usize), account);
        self.handles.insert(handle as usize, id);
        id
    }

    fn enter_source(&mut self, source: Source, account: Option<AccountIndex>) -> PoolId {
        self.next += 1;
        let pool = Pool {
            source,
            account,
            charge: 0,
            calls: 0,
            reserved: 0,
            turn: 0,
            pointers: 0,
            asking: false,
            again: false,
            shrinks: false,
            destroyed: false,
            threshold: 0,
            bound: Bound::FIRST,
        };
        self.pools.insert(self.next, pool);
        self.next
    }

    /// The pool with this handle, and the account it is charged to.
    pub fn find(&self, handle: CUmemoryPool) -> Option<(PoolId, Option<AccountIndex>)> {
        let id = *self.handles.get(&(handle as usize))?;
        Some((id, self.pools.get(&id)?.account))
    }

    /// A pointer of the pool is gone.
    pub fn forget_pointer(&mut self, id: PoolId) {
        if let Some(pool) = self.pools.get_mut(&id) {
            pool.pointers = pool.pointers.saturating_sub(1);
            pool.shrinks = true;
        }
    }

    /// The program wishes the pool to keep up to `bytes`.
    pub fn set_threshold(&mut self, handle: CUmemoryPool, bytes: u64) {
        if let Some(pool) = self.find(handle).and_then(|(id, _)| self.pools.get_mut(&id)) {
            pool.threshold = bytes;
            pool.shrinks = true;
        }
    }

    /// Whether any pool may shrink at a synchronisation.
    pub fn may_shrink(&self) -> bool {
        self.pools.values().any(|pool| pool.shrinks && !pool.destroyed)
    }
}

impl Pool {
    /// An allocation begins, for which `reservation` was made.
    fn begin<'a>(
        &mut self,
        id: PoolId,
        account: AccountIndex,
        bytes: u64,
        reservation: Reservation<'a>,
    ) -> Begun<'a> {
        self.turn += 1;
        self.calls += 1;
        self.reserved = self.reserved.saturating_add(reservation.bytes());
        Begun {
            pool: id,
            account,
            turn: self.turn,
            reservation,
            bytes,
        }
    }
}

/// What came of an allocation or a launch.
struct Grown {
    /// What the pool grew by since it was last asked.
    bytes: u64,
    /// The driver told it.
    known: bool,
    /// No other call was under way, and nothing was freed since the pool was last asked.
    alone: bool,
    fits: bool,
}

impl Books {
    /// Before an allocation of `bytes` from a charged pool.
    ///
    /// # Errors
    /// Out of memory.
    pub fn begin_in_pool<'a>(
        &'a self,
        call: &Call<'_>,
        pool: PoolId,
        account: AccountIndex,
        bytes: u64,
    ) -> Result<Begun<'a>, Otherwise> {
        let wanted = {
            let pools = self.pools.lock();
            [pools.steps.foreseen(bytes), pools.steps.needed(bytes)]
        };
        let reservation = self.reserve_or(call, account, wanted, Class::Pool)?;
        // Under way only now: making room may have had to lower this pool's charge.
        let mut pools = self.pools.lock();
        let Some(entry) = pools.pools.get_mut(&pool) else {
            return Err(Otherwise::Forward);
        };
        Ok(entry.begin(pool, account, bytes, reservation))
    }

    /// The driver did not allocate.
    pub fn failed_in_pool(&self, begun: Begun<'_>) {
        if let Some(entry) = self.pools.lock().pools.get_mut(&begun.pool) {
            entry.calls -= 1;
            entry.reserved = entry.reserved.saturating_sub(begun.reservation.bytes());
        }
    }

    /// The driver allocated. False when the pool grew beyond what was reserved and the cap has no room for that: the
    /// allocation must be undone.
    pub fn allocated_in_pool(&self, call: &Call<'_>, begun: Begun<'_>) -> bool {
        let (id, bytes) = (begun.pool, begun.bytes);
        if let Some(pool) = self.pools.lock().pools.get_mut(&id) {
            pool.pointers += 1;
        }
        let grown = self.settle_begun(call, begun);
        if grown.alone {
            self.pools.lock().steps.learn(bytes, grown.bytes);
        }
        grown.fits
    }

    /// What an allocation made the pool grow by becomes part of its charge.
    fn settle_begun(&self, call: &Call<'_>, begun: Begun<'_>) -> Grown {
        let gone = Grown {
            bytes: 0,
            known: false,
            alone: false,
            fits: true,
        };
        let Some(source) = self.pools.lock().pools.get(&begun.pool).map(|pool| pool.source) else {
            return gone;
        };
        let now = source.reserved(call.driver);
        let account = self.account(begun.account);
        let mut pools = self.pools.lock();
        let Some(pool) = pools.pools.get_mut(&begun.pool) else {
            return gone;
        };
        let held = begun.reservation.bytes();
        pool.calls -= 1;
        pool.reserved = pool.reserved.saturating_sub(held);
        // A pool that may have shrunk since it was asked grew by more than the difference tells.
        let alone = pool.calls == 0 && pool.turn == begun.turn && !pool.shrinks;
        // Whoever asked the driver before this may have been told less than is now charged.
        pool.turn += 1;
        let grown = now.map_or(held, |now| now.saturating_sub(pool.charge));
        Grown {
            bytes: grown,
            known: now.is_some(),
            alone,
            fits: settle_growth(account, pool, begun.reservation, grown),
        }
    }

    /// Makes a pool's charge what the driver has reserved for it. One thread asks at a time; the others leave it the word.
    pub fn refresh_pool(&self, call: &Call<'_>, id: PoolId) {
        loop {
            let (source, turn) = {
                let mut pools = self.pools.lock();
                let Some(pool) = pools.pools.get_mut(&id) else {
                    return;
                };
                if pool.destroyed {
                    return self.close_pool_if_empty(pools, id);
                }
                if pool.asking {
                    pool.again = true;
                    return;
                }
                pool.asking = true;
                pool.again = false;
                (pool.source, pool.turn)
            };
            let now = source.reserved(call.driver);
            let used = source.used(call.driver);
            let mut pools = self.pools.lock();
            let Some(pool) = pools.pools.get_mut(&id) else {
                return;
            };
            pool.asking = false;
            if let (Some(now), Some(account)) = (now, pool.account)
                && pool.calls == 0
                && pool.turn == turn
            {
                pool.shrinks = matches!(source, Source::Handle(_))
                    && used.is_none_or(|used| now > used && now > pool.threshold);
                let account = self.account(account);
                if now < pool.charge {
                    let fell = pool.charge - now;
                    pool.charge = now;
                    account.give_back(fell, source.class());
                } else if let Ok(grown) = account.try_reserve(now - pool.charge, source.class()) {
                    pool.charge += grown.keep();
                }
                let again = pool.again;
                pools.graphs_at_rest(id, now, turn);
                if again {
                    continue;
                }
                return;
            }
            if !pool.again {
                return;
            }
        }
    }

    /// After a synchronisation: every pool that may have shrunk.
    pub fn refresh_pools(&self, call: &Call<'_>) {
        let shrinking: Vec<PoolId> = {
            let pools = self.pools.lock();
            let shrinks = pools.pools.iter().filter(|(_, pool)| pool.shrinks);
            shrinks.map(|(id, _)| *id).collect()
        };
        for pool in shrinking {
            self.refresh_pool(call, pool);
        }
    }

    /// Makes room for `wanted` bytes by taking idle memory from the pools of an account. The driver may decline.
    pub fn trim_pools(&self, call: &Call<'_>, account: AccountIndex, wanted: u64) {
        let candidates: Vec<(PoolId, Source, u64)> = {
            let pools = self.pools.lock();
            let charged = pools
                .pools
                .iter()
                .filter(|(_, pool)| pool.account == Some(account) && pool.charge > 0 && !pool.destroyed);
            charged
                .map(|(id, pool)| (*id, pool.source, pool.charge))
                .collect()
        };
        let mut missing = wanted;
        for (id, source, charge) in candidates {
            let used = source.used(call.driver).unwrap_or(charge);
            let idle = charge.saturating_sub(used);
            if idle == 0 {
                continue;
            }
            if self.trim_source(call, id, source, charge - idle.min(missing)) {
                self.refresh_pool(call, id);
                let left = self.pools.lock().pools.get(&id).map_or(0, |pool| pool.charge);
                missing = missing.saturating_sub(charge.saturating_sub(left));
            }
            if missing == 0 {
                return;
            }
        }
    }

    /// Has the driver take back what lies idle beyond `keep` bytes, of graphs all that does. Trimming needs no context and moves
    /// nothing that is in use.
    fn trim_source(&self, call: &Call<'_>, id: PoolId, source: Source, keep: u64) -> bool {
        let trimmed = match source {
            // SAFETY: a live pool of the driver's.
            Source::Handle(pool) => relaxed(call.driver, || unsafe {
                call.driver
                    .cuMemPoolTrimTo(StreamApi::Legacy, pool as CUmemoryPool, keep as usize)
            }),
            Source::Graphs(device) => self.trim_device(call, id, device, None),
        };
        trimmed.is_ok()
    }

    /// Takes a pool's handle out of the books before the driver is asked to destroy it: it may come back as another pool's.
    pub fn take_pool(&self, handle: CUmemoryPool) -> Option<PoolId> {
        self.pools.lock().handles.remove(&(handle as usize))
    }

    /// The driver did not destroy it.
    pub fn put_pool_back(&self, handle: CUmemoryPool, id: PoolId) {
        self.pools.lock().handles.entry(handle as usize).or_insert(id);
    }

    /// The driver did. The memory stays as long as pointers into it live.
    pub fn destroyed_pool(&self, id: PoolId) {
        let mut pools = self.pools.lock();
        if let Some(pool) = pools.pools.get_mut(&id) {
            pool.destroyed = true;
        }
        self.close_pool_if_empty(pools, id);
    }

    fn close_pool_if_empty(&self, mut pools: crate::lock::Held<'_, Pools>, id: PoolId) {
        let Some(pool) = pools.pools.get(&id).copied() else {
            return;
        };
        if pool.destroyed && pool.pointers == 0 && pool.calls == 0 {
            pools.pools.remove(&id);
            if let Some(account) = pool.account {
                self.account(account).give_back(pool.charge, pool.source.class());
            }
        }
    }

    /// The account of a pool nobody told us of: one of the driver's own. It is some device's, or the host's.
    pub fn account_of_unknown_pool(
        &self,
        call: &Call<'_>,
        pool: CUmemoryPool,
        otherwise: AccountIndex,
    ) -> Option<AccountIndex> {
        const LOCATION_ID: u32 = 11;
        const LOCATION_KIND: u32 = 12;
        let number = |attribute| {
            let mut value: c_int = 0;
            // SAFETY: these attributes are integers; a driver that does not know them says so.
            let asked = unsafe {
                call.driver
                    .cuMemPoolGetAttribute(StreamApi::Legacy, pool, attribute, (&raw mut value).cast())
            };
            asked.ok().map(|()| value)
        };
        match (number(LOCATION_KIND), number(LOCATION_ID)) {
            (Some(kind), Some(device)) if kind as u32 == CU_MEM_LOCATION_TYPE_DEVICE => {
                self.of_device(call.driver, device as CUdevice).ok()
            }
            (Some(kind), _) if kind as u32 == 0 => Some(otherwise),
            (Some(_), _) => None,
            (None, _) => Some(otherwise),
        }
    }
}

/// Charges what a pool grew by out of the reservation; the rest of it is given back. What it grew by beyond the reservation
/// may be other calls' growth, which their reservations cover.
fn settle_growth(account: &Account, pool: &mut Pool, reservation: Reservation<'_>, grown: u64) -> bool {
    let (held, class) = (reservation.bytes(), pool.source.class());
    if grown <= held {
        pool.charge += grown;
        reservation.keep();
        account.give_back(held - grown, class);
        return true;
    }
    pool.charge += reservation.keep();
    let more = grown - held;
    match account.try_reserve(more, class) {
        Ok(more) => {
            pool.charge += more.keep();
            true
        }
        Err(_) => more <= pool.reserved,
    }
}
