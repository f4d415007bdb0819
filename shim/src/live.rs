//! Which pointers this process holds, what each was charged, and how it has to be given back. A pointer that is not here is
//! none of ours to judge: it is passed on and nothing is subtracted.
//!
//! Small blocks are the driver's to place: it packs them into slabs of 2 MiB. What counts against the cap are the slabs,
//! that is, the distinct 2 MiB blocks of addresses in which at least one small allocation of a context lives.
//!
//! Arrays stand here by their handles: those too are addresses of this process, and meet no pointer. What the driver does
//! with small ones is not to be seen; they are charged by the slabs that their sum in a context fills.
//!
//! Next: `charge.rs`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use ledger::slot::Class;

use crate::physical::Reference;

/// The driver gives out physical memory in these units.
pub const PAGE: u64 = 2 << 20;
/// Requests below this are packed into slabs.
const SMALL: u64 = 1 << 20;
/// Small requests are rounded up to this for the figures shown.
const SMALL_UNIT: u64 = 512;

/// Index of an account in `Books`.
pub type AccountIndex = usize;

/// A stream-ordered pool, by a number of our own: the driver uses its handles again.
pub type PoolId = u64;

/// Which slab: the context, as a number, and the address divided by the slab's size.
type Slab = (usize, u64);

/// How an allocation is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charged {
    /// By itself: this many bytes.
    Alone(u64),
    /// With the slab it lies in. The bytes are what it adds to the figures shown.
    InSlab(u64),
    /// With the pool it came from.
    InPool(PoolId),
    /// With the small arrays of its context, of which this one takes so many bytes.
    InArrays(u64),
    /// With the physical memory it is mapped to: a tile of a sparse array.
    Tile(Reference),
    /// Not at all, only shown: host memory.
    Shown(u64),
}

/// One pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    pub account: AccountIndex,
    /// The context that owns it, as a number; a pool's memory has no such owner.
    pub context: usize,
    pub class: Class,
    pub charged: Charged,
    /// The exact size of a block of `cuMemAlloc` that nobody but its program knows: it may be recycled.
    pub plain: Option<u64>,
    /// Rises with every allocation: tells those made before an instant.
    pub serial: u64,
}

/// Bytes to reserve before the driver is asked for `bytes`.
pub fn charge_for(bytes: u64) -> u64 {
    if bytes < SMALL {
        PAGE
    } else {
        bytes.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX)
    }
}

/// Whether the driver packs a request of `bytes` with others.
pub fn is_small(bytes: u64) -> bool {
    bytes < SMALL
}

/// The live pointers.
#[derive(Default)]
pub struct Live {
    pointers: BTreeMap<u64, Allocation>,
    slabs: BTreeMap<Slab, u32>,
    /// Bytes of the small arrays of each context.
    arrays: BTreeMap<usize, u64>,
    serial: u64,
}

impl Live {
    pub const fn new() -> Live {
        Live {
            pointers: BTreeMap::new(),
            slabs: BTreeMap::new(),
            arrays: BTreeMap::new(),
            serial: 0,
        }
    }

    /// An instant: allocations made from now on have a later serial.
    pub fn now(&self) -> u64 {
        self.serial
    }

    /// Enters a pointer and returns what was known of the same address before: a block that went away unseen.
    pub fn insert(&mut self, pointer: u64, mut allocation: Allocation) -> Option<Allocation> {
        self.serial += 1;
        allocation.serial = self.serial;
        self.pointers.insert(pointer, allocation)
    }

    /// Enters a small allocation of `bytes` in its slab. True when the slab was charged already.
    pub fn enter_slab(&mut self, context: usize, pointer: u64) -> bool {
        let lives = self.slabs.entry((context, pointer / PAGE)).or_insert(0);
        *lives += 1;
        *lives > 1
    }

    /// Takes a small allocation out of its slab. True when it was the last one there.
    pub fn leave_slab(&mut self, context: usize, pointer: u64) -> bool {
        let slab = (context, pointer / PAGE);
        match self.slabs.get_mut(&slab) {
            Some(lives) if *lives > 1 => {
                *lives -= 1;
                false
            }
            Some(_) => self.slabs.remove(&slab).is_some(),
            None => false,
        }
    }

    /// Enters a small array of `bytes`. True when it fits the slabs that its context's arrays are charged already.
    pub fn enter_array(&mut self, context: usize, bytes: u64) -> bool {
        let sum = self.arrays.entry(context).or_insert(0);
        let slabs = sum.div_ceil(PAGE);
        *sum += bytes;
        sum.div_ceil(PAGE) == slabs
    }

    /// Takes a small array of `bytes` out. True when a slab less is needed.
    pub fn leave_array(&mut self, context: usize, bytes: u64) -> bool {
        let Some(sum) = self.arrays.get_mut(&context) else {
            return false;
        };
        let slabs = sum.div_ceil(PAGE);
        *sum = sum.saturating_sub(bytes);
        let fewer = sum.div_ceil(PAGE) < slabs;
        if *sum == 0 {
            self.arrays.remove(&context);
        }
        fewer
    }

    /// Takes a pointer out; its charge stays until the driver has freed it.
    pub fn take(&mut self, pointer: u64) -> Option<Allocation> {
        self.pointers.remove(&pointer)
    }

    /// Enters again what was taken, because the driver did not free it; false where something else is there already.
    pub fn put_back(&mut self, pointer: u64, allocation: Allocation) -> bool {
        match self.pointers.entry(pointer) {
            Entry::Vacant(vacant) => {
                vacant.insert(allocation);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    /// Takes a pointer out where it is the one that was entered at the instant `serial`.
    pub fn take_made_at(&mut self, pointer: u64, serial: u64) -> Option<Allocation> {
        match self.pointers.get(&pointer) {
            Some(allocation) if allocation.serial == serial => self.pointers.remove(&pointer),
            _ => None,
        }
    }

    /// Somebody else may know the block in which `address` lies: it is not recycled any more.
    pub fn expose(&mut self, address: u64) {
        if let Some((start, allocation)) = self.pointers.range_mut(..=address).next_back()
            && allocation.plain.is_some_and(|bytes| address - start < bytes)
        {
            allocation.plain = None;
        }
    }

    /// Takes out what `context` owns and was allocated up to the instant `until`.
    pub fn take_owned(&mut self, context: usize, until: u64) -> Vec<(u64, Allocation)> {
        let owned = |_: &u64, allocation: &mut Allocation| {
            allocation.context == context
                && allocation.serial <= until
                && !matches!(allocation.charged, Charged::InPool(_))
        };
        self.pointers.extract_if(.., owned).collect()
    }
}

/// What a small request of `bytes` adds to the figures shown.
pub fn shown(bytes: u64) -> u64 {
    bytes.next_multiple_of(SMALL_UNIT)
}
