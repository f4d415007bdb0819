//! What an array will cost, asked of the driver itself: a twin whose memory would be mapped later takes none and tells what
//! it would need. The answer holds for every array of the same form. Where no twin can be had (a driver before 11.6, a device
//! that cannot map arrays later) the cost is an estimate.
//!
//! Next: `hooks/array.rs`.

use core::ptr::null_mut;
use std::collections::BTreeMap;

use driver::abi::{
    CUDA_ARRAY_MEMORY_REQUIREMENTS, CUDA_ARRAY3D_CUBEMAP, CUDA_ARRAY3D_DEFERRED_MAPPING,
    CUDA_ARRAY3D_DESCRIPTOR, CUDA_ARRAY3D_LAYERED, CUarray, CUdevice, CUmipmappedArray,
};
use driver::table::SymbolId;
use driver::{CudaError, Driver, StreamApi};

use crate::lock::{Lock, Rank};
use crate::relaxed::relaxed;

/// `CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED`.
const MAPS_LATER: u32 = 121;

/// Forms remembered at most; a program with more asks again.
const MOST: usize = 1024;

/// A form: device, extent, format, channels, flags and levels.
type Form = (CUdevice, [usize; 3], [u32; 3], u32);

/// What an array takes, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub bytes: u64,
    /// Why the driver did not tell, so that the bytes are an estimate. `INVALID_VALUE`: a driver that makes twins made none
    /// of this form, so that there can be no such array, and the program deserves to hear that.
    pub doubt: Option<CudaError>,
}

/// What is known of forms asked for before.
pub struct Costs(Lock<BTreeMap<Form, Cost>>);

impl Costs {
    pub const fn new() -> Costs {
        Costs(Lock::new(Rank::Costs, BTreeMap::new()))
    }

    /// What an array of this form takes; `levels` 0: it is not mipmapped. A failure that may pass is not remembered.
    pub fn of(
        &self,
        driver: &Driver,
        device: CUdevice,
        descriptor: &CUDA_ARRAY3D_DESCRIPTOR,
        levels: u32,
    ) -> Cost {
        let d = descriptor;
        let form = (
            device,
            [d.Width, d.Height, d.Depth],
            [d.Format, d.NumChannels, d.Flags],
            levels,
        );
        if let Some(cost) = self.0.lock().get(&form) {
            return *cost;
        }
        let cost = match ask(driver, device, descriptor, levels) {
            Ok(bytes) => Cost { bytes, doubt: None },
            Err(error) => Cost {
                bytes: estimate(descriptor, levels),
                doubt: Some(error),
            },
        };
        if cost.doubt.is_some_and(|error| !lasts(error)) {
            return cost;
        }
        let mut known = self.0.lock();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(form, cost);
        cost
    }
}

/// Whether the driver will say the same the next time.
fn lasts(error: CudaError) -> bool {
    [
        CudaError::INVALID_VALUE,
        CudaError::NOT_SUPPORTED,
        CudaError::NOT_FOUND,
    ]
    .contains(&error)
}

/// Whether twins can be made and asked: others would be refused for what they are, not for their form.
///
/// # Errors
/// `NOT_FOUND` where the driver is too old, `NOT_SUPPORTED` where the device cannot map arrays later, or the driver's own; never
/// `INVALID_VALUE`.
fn can_ask(driver: &Driver, device: CUdevice, levels: u32) -> Result<(), CudaError> {
    let question = if levels == 0 {
        SymbolId::cuArrayGetMemoryRequirements
    } else {
        SymbolId::cuMipmappedArrayGetMemoryRequirements
    };
    if driver.address(question).is_null() {
        return Err(CudaError::NOT_FOUND);
    }
    let mut can = 0;
    // SAFETY: the driver writes one number.
    match unsafe { driver.cuDeviceGetAttribute(StreamApi::Legacy, &mut can, MAPS_LATER, device) } {
        Ok(()) if can == 1 => Ok(()),
        Ok(()) | Err(CudaError::INVALID_VALUE) => Err(CudaError::NOT_SUPPORTED),
        Err(error) => Err(error),
    }
}

/// By a twin.
///
/// # Errors
/// As [`can_ask`], and the driver's; `INVALID_VALUE`: there can be no such array.
fn ask(
    driver: &Driver,
    device: CUdevice,
    descriptor: &CUDA_ARRAY3D_DESCRIPTOR,
    levels: u32,
) -> Result<u64, CudaError> {
    can_ask(driver, device, levels)?;
    let form = CUDA_ARRAY3D_DESCRIPTOR {
        Flags: descriptor.Flags | CUDA_ARRAY3D_DEFERRED_MAPPING,
        ..*descriptor
    };
    let mut needs = CUDA_ARRAY_MEMORY_REQUIREMENTS {
        size: 0,
        alignment: 0,
        reserved: [0; 4],
    };
    let api = StreamApi::Legacy;
    // SAFETY: the driver reads one descriptor, writes one handle and one answer; the twin is nobody else's.
    let asked = relaxed(driver, || unsafe {
        if levels == 0 {
            let mut twin: CUarray = null_mut();
            driver.cuArray3DCreate_v2(api, &mut twin, &form)?;
            let asked = driver.cuArrayGetMemoryRequirements(api, &mut needs, twin, device);
            let _ = driver.cuArrayDestroy(api, twin); // takes nothing, should it stay
            asked
        } else {
            let mut twin: CUmipmappedArray = null_mut();
            driver.cuMipmappedArrayCreate(api, &mut twin, &form, levels)?;
            let asked = driver.cuMipmappedArrayGetMemoryRequirements(api, &mut needs, twin, device);
            let _ = driver.cuMipmappedArrayDestroy(api, twin);
            asked
        }
    });
    asked?;
    let whole = needs.size.checked_next_multiple_of(needs.alignment.max(1));
    whole.map_or(Err(CudaError::INVALID_VALUE), |bytes| Ok(bytes as u64))
}

/// For drivers before 11.6, which cannot be asked: the tiles of the open-source drivers (rows of 64 bytes, eight to a unit, up
/// to sixteen units high and 32 layers deep), in 64 KiB. Formats whose channels we do not know count as four bytes each,
/// which none exceeds.
fn estimate(descriptor: &CUDA_ARRAY3D_DESCRIPTOR, levels: u32) -> u64 {
    let d = descriptor;
    let channel = match d.Format {
        0x01 | 0x08 => 1,
        0x02 | 0x09 | 0x10 => 2,
        _ => 4,
    };
    let element = channel * u64::from(d.NumChannels.clamp(1, 4));
    let apart = d.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP) != 0;
    let deep = (d.Depth as u64).max(1);
    let (depth, layers) = if apart { (1, deep) } else { (deep, 1) };
    let level = |level: u32| {
        let half = |extent: u64| (extent >> level.min(63)).max(1);
        let (width, height, depth) = (half(d.Width as u64), half((d.Height as u64).max(1)), half(depth));
        let units = height.div_ceil(8).checked_next_power_of_two()?.min(16);
        let slices = depth.checked_next_power_of_two()?.min(32);
        let row = width.checked_mul(element)?.checked_next_multiple_of(64)?;
        let rows = height.checked_next_multiple_of(8 * units)?;
        row.checked_mul(rows)?
            .checked_mul(depth.checked_next_multiple_of(slices)?)?
            .checked_mul(layers)
    };
    let sum = (0..levels.max(1)).try_fold(0u64, |sum, number| sum.checked_add(level(number)?));
    sum.and_then(|bytes| bytes.checked_next_multiple_of(64 << 10))
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_pads_to_tiles() {
        let of = |width, height, depth, flags, levels| {
            let descriptor = CUDA_ARRAY3D_DESCRIPTOR {
                Width: width,
                Height: height,
                Depth: depth,
                Format: 0x20,
                NumChannels: 1,
                Flags: flags,
            };
            estimate(&descriptor, levels)
        };
        assert_eq!(of(1, 0, 0, 0, 0), 64 << 10);
        assert_eq!(of(4096, 1000, 0, 0, 0), 16 << 20);
        assert_eq!(of(256, 256, 33, 0, 0), 16 << 20);
        assert_eq!(of(256, 256, 33, CUDA_ARRAY3D_LAYERED, 0), 33 * (256 << 10));
        assert_eq!(of(4096, 1000, 0, 0, 3), (16 << 20) + (4 << 20) + (1 << 20));
        assert_eq!(of(usize::MAX, 2, 2, 0, 0), u64::MAX);
    }
}
