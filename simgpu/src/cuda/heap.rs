//! Small device blocks of a context, several to a granule, as the driver packs them.

use super::ranges::{ALIGN, Ranges};
use super::space::{self, GRANULE};
use super::vram::{Extent, Vram};
use driver::CudaError;

/// Requests below this share granules.
pub const SMALL: u64 = 1 << 20;

#[derive(Default)]
pub struct Heap {
    slabs: Vec<Slab>,
}

struct Slab {
    address: u64,
    extent: Extent,
    free: Ranges,
}

impl Heap {
    /// `bytes` below [`SMALL`]: the address, and the slab it lies in.
    pub fn take(&mut self, vram: &Vram, bytes: u64) -> Result<(u64, u64, Extent), CudaError> {
        let bytes = bytes.next_multiple_of(ALIGN);
        for slab in self.slabs.iter_mut().rev() {
            if let Some(at) = slab.free.take(bytes) {
                return Ok((slab.address + at, slab.address, slab.extent));
            }
        }
        let extent = vram.take(GRANULE)?;
        let Some(address) = shown(vram, extent) else {
            vram.give(extent);
            return Err(CudaError::OUT_OF_MEMORY);
        };
        let mut slab = Slab {
            address,
            extent,
            free: Ranges::new(GRANULE),
        };
        let at = slab.free.take(bytes).ok_or(CudaError::OUT_OF_MEMORY)?;
        self.slabs.push(slab);
        Ok((address + at, address, extent))
    }

    /// Gives back what `take` gave; an empty slab goes at once, except the last where `keep` says so.
    pub fn give(&mut self, vram: &Vram, address: u64, bytes: u64, keep: bool) {
        let inside = |slab: &Slab| (slab.address..slab.address + GRANULE).contains(&address);
        let Some(index) = self.slabs.iter().position(inside) else {
            return;
        };
        let slab = &mut self.slabs[index];
        slab.free
            .give(address - slab.address, bytes.next_multiple_of(ALIGN));
        if slab.free.is_all_free() && !(keep && self.slabs.len() == 1) {
            let slab = self.slabs.remove(index);
            space::unmap(slab.address, GRANULE);
            vram.give(slab.extent);
        }
    }

    /// Gives everything back, used or not.
    pub fn clear(&mut self, vram: &Vram) {
        for slab in self.slabs.drain(..) {
            space::unmap(slab.address, GRANULE);
            vram.give(slab.extent);
        }
    }
}

/// Reserves address space for a range and shows it there.
pub fn shown(vram: &Vram, extent: Extent) -> Option<u64> {
    let address = space::reserve(extent.bytes, GRANULE, 0)?;
    let shown = vram
        .file()
        .is_ok_and(|file| space::show(address, extent.bytes, file, extent.offset, true));
    if !shown {
        space::unmap(address, extent.bytes);
    }
    shown.then_some(address)
}
