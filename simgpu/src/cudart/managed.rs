//! Hints about managed memory. The runtime's 12 names a device by number, 13 by a location; one symbol has
//! either signature, so the word in question is taken as the register it comes in.

use super::context;
use super::lookup::DRIVER;
use super::release::Release;
use driver::prelude::*;

/// `CU_DEVICE_CPU`.
const HOST: CUdevice = -1;

/// The location in a register: its kind in the lower half, its number in the upper.
fn location(word: u64) -> CUmemLocation {
    CUmemLocation {
        kind: word as c_uint,
        id: (word >> 32) as c_int,
    }
}

/// The location of a device number of release 12.
fn location_of(device: CUdevice) -> CUmemLocation {
    match device {
        HOST => CUmemLocation {
            kind: CU_MEM_LOCATION_TYPE_HOST,
            id: 0,
        },
        id => CUmemLocation {
            kind: CU_MEM_LOCATION_TYPE_DEVICE,
            id,
        },
    }
}

/// `cudaMemAdvise`: `place` is a device in release 12, a location in 13.
pub unsafe fn advise(pointer: CUdeviceptr, bytes: usize, advice: c_uint, place: u64) -> CuResult {
    let location = match Release::own() {
        Release::Twelve => location_of(place as CUdevice),
        Release::Thirteen => location(place),
    };
    // SAFETY: handed on.
    unsafe { advise_location(pointer, bytes, advice, location) }
}

pub unsafe fn advise_location(
    pointer: CUdeviceptr,
    bytes: usize,
    advice: c_uint,
    to: CUmemLocation,
) -> CuResult {
    context::current()?;
    // SAFETY: the driver checks the range.
    unsafe { DRIVER.cuMemAdvise_v2(StreamApi::Legacy, pointer, bytes, advice, to) }
}

/// `cudaMemPrefetchAsync`: (device, stream) in release 12, (location, flags, stream) in 13.
pub unsafe fn prefetch(
    api: StreamApi,
    pointer: CUdeviceptr,
    bytes: usize,
    place: u64,
    fourth: usize,
    fifth: CUstream,
) -> CuResult {
    // SAFETY: handed on.
    unsafe {
        match Release::own() {
            Release::Twelve => {
                let to = location_of(place as CUdevice);
                prefetch_location(api, pointer, bytes, to, 0, fourth as CUstream)
            }
            Release::Thirteen => {
                prefetch_location(api, pointer, bytes, location(place), fourth as c_uint, fifth)
            }
        }
    }
}

pub unsafe fn prefetch_location(
    api: StreamApi,
    pointer: CUdeviceptr,
    bytes: usize,
    to: CUmemLocation,
    flags: c_uint,
    stream: CUstream,
) -> CuResult {
    context::current()?;
    // SAFETY: the driver checks the range and the stream.
    unsafe { DRIVER.cuMemPrefetchAsync_v2(api, pointer, bytes, to, flags, stream) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_comes_in_one_register() {
        let device_3 = CUmemLocation {
            kind: CU_MEM_LOCATION_TYPE_DEVICE,
            id: 3,
        };
        // SAFETY: two words, two words.
        let word = unsafe { std::mem::transmute::<CUmemLocation, u64>(device_3) };
        assert_eq!(location(word), device_3);
        assert_eq!(location_of(3), device_3);
        assert_eq!(location_of(-1).kind, CU_MEM_LOCATION_TYPE_HOST);
    }
}
