//! Physical memory made by `cuMemCreate`: charged as long as a handle or a mapping holds it, which is as long as the driver
//! keeps it. Several handles and mappings may name the same memory.
//!
//! References are counted before a call that adds one and after a call that drops one, so that the memory is never thought
//! gone while it is there.
//!
//! Tiles are known by the place they were mapped at: a region mapped by one entry of a list and unmapped, or mapped anew, in
//! parts or by another division stays charged until its array ends. That errs to the safe side: the memory may be gone and
//! still count, never the reverse.
//!
//! Next: `hooks/vmm.rs`.

use std::collections::BTreeMap;

use driver::abi::{CUarrayMapInfo, CUarrayMapInfo_subresource};

use crate::live::AccountIndex;

/// Memory, by a number of our own.
type Block = u64;

#[derive(Clone, Copy, Debug)]
struct Memory {
    account: AccountIndex,
    charge: u64,
    /// Handles and mappings.
    references: u64,
}

#[derive(Clone, Copy, Debug)]
struct Handle {
    block: Block,
    references: u64,
}

#[derive(Clone, Copy, Debug)]
struct Mapped {
    size: u64,
    block: Block,
}

/// A reference that was counted; to be given to [`Physical::drop_reference`] when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference(Block);

/// A part of a sparse array, or all of an array whose memory is mapped later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tile {
    array: u64,
    kind: u32,
    place: CUarrayMapInfo_subresource,
    /// The device it is mapped on, as a bit: each has its own memory there.
    devices: u32,
}

/// `CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL`.
const TAIL: u32 = 1;

impl Tile {
    /// The place an entry names. Of a tail's eight words three are padding, where a program leaves what was there.
    pub fn of(info: &CUarrayMapInfo) -> Tile {
        let mut place = info.subresource;
        if info.subresourceType == TAIL {
            for padding in [1, 6, 7] {
                place.words[padding] = 0;
            }
        }
        Tile {
            array: info.resource as u64,
            kind: info.subresourceType,
            place,
            devices: info.deviceBitMask,
        }
    }
}

/// Mappings taken out of the books while the driver unmaps them.
pub type Unmapped = Vec<(u64, u64, Reference)>;

/// All physical memory of this process's making.
#[derive(Default)]
pub struct Physical {
    memory: BTreeMap<Block, Memory>,
    handles: BTreeMap<u64, Handle>,
    mappings: BTreeMap<u64, Mapped>,
    tiles: BTreeMap<Tile, Reference>,
    next: Block,
}

impl Physical {
    pub const fn new() -> Physical {
        Physical {
            memory: BTreeMap::new(),
            handles: BTreeMap::new(),
            mappings: BTreeMap::new(),
            tiles: BTreeMap::new(),
            next: 0,
        }
    }

    /// New memory behind a new handle. Returns the charge of what the handle named before, if that went away unseen.
    pub fn create(&mut self, handle: u64, account: AccountIndex, charge: u64) -> Option<(AccountIndex, u64)> {
        self.next += 1;
        let memory = Memory {
            account,
            charge,
            references: 1,
        };
        self.memory.insert(self.next, memory);
        let stale = self.handles.insert(
            handle,
            Handle {
                block: self.next,
                references: 1,
            },
        )?;
        self.drop_references(stale.block, stale.references)
    }

    /// Counts a reference to what `handle` names. `None`: not ours.
    pub fn add_by_handle(&mut self, handle: u64) -> Option<Reference> {
        let block = self.handles.get(&handle)?.block;
        self.memory.get_mut(&block)?.references += 1;
        Some(Reference(block))
    }

    /// Counts a reference to what is mapped at `address`.
    pub fn add_by_address(&mut self, address: u64) -> Option<Reference> {
        let (start, mapped) = self.mappings.range(..=address).next_back()?;
        if address - start >= mapped.size {
            return None;
        }
        self.memory.get_mut(&mapped.block)?.references += 1;
        Some(Reference(mapped.block))
    }

    /// A counted reference turned out to be a mapping.
    pub fn map(&mut self, address: u64, size: u64, reference: Reference) {
        let mapped = Mapped {
            size,
            block: reference.0,
        };
        self.mappings.insert(address, mapped);
    }

    /// A counted reference turned out to be a tile's. Returns what the tile held before.
    pub fn map_tile(&mut self, tile: Tile, reference: Reference) -> Option<Reference> {
        self.tiles.insert(tile, reference)
    }

    /// Takes a tile out.
    pub fn take_tile(&mut self, tile: Tile) -> Option<Reference> {
        self.tiles.remove(&tile)
    }

    /// Takes the tiles of an array out, which is gone.
    pub fn take_tiles(&mut self, array: u64) -> Vec<Reference> {
        let of = self.tiles.extract_if(.., |tile, _| tile.array == array);
        of.map(|(_, reference)| reference).collect()
    }

    /// A counted reference turned out to be one more use of `handle`. Returns a charge as [`Physical::create`] does.
    pub fn retain(&mut self, handle: u64, reference: Reference) -> Option<(AccountIndex, u64)> {
        let fresh = Handle {
            block: reference.0,
            references: 1,
        };
        match self.handles.get_mut(&handle) {
            Some(known) if known.block == reference.0 => {
                known.references += 1;
                None
            }
            _ => {
                let stale = self.handles.insert(handle, fresh)?;
                self.drop_references(stale.block, stale.references)
            }
        }
    }

    /// Takes one use off `handle`, before the driver is asked to.
    pub fn take_handle(&mut self, handle: u64) -> Option<Reference> {
        let known = self.handles.get_mut(&handle)?;
        let block = known.block;
        known.references -= 1;
        if known.references == 0 {
            self.handles.remove(&handle);
        }
        Some(Reference(block))
    }

    /// Takes the mappings inside a range out, before the driver is asked to.
    pub fn take_mappings(&mut self, address: u64, size: u64) -> Unmapped {
        let end = address.saturating_add(size);
        if end <= address {
            return Vec::new();
        }
        self.mappings
            .extract_if(address..end, |start, mapped| {
                start.saturating_add(mapped.size) <= end
            })
            .map(|(start, mapped)| (start, mapped.size, Reference(mapped.block)))
            .collect()
    }

    /// A reference ended. Returns the charge to give back when it was the last.
    pub fn drop_reference(&mut self, reference: Reference) -> Option<(AccountIndex, u64)> {
        self.drop_references(reference.0, 1)
    }

    fn drop_references(&mut self, block: Block, count: u64) -> Option<(AccountIndex, u64)> {
        let memory = self.memory.get_mut(&block)?;
        memory.references = memory.references.saturating_sub(count);
        if memory.references > 0 {
            return None;
        }
        let memory = self.memory.remove(&block)?;
        Some((memory.account, memory.charge))
    }
}
