//! Attributes of kernels, and how many of their blocks fit.

use super::context;
use super::device::put;
use super::kernel;
use super::lookup::DRIVER;
use super::structs::{FunctionAttributes, LaunchConfig};
use driver::prelude::*;

pub unsafe fn attributes(to: *mut FunctionAttributes, host: *const c_void) -> CuResult {
    context::current()?;
    let function = kernel::function(host)?;
    let attribute = |number: c_uint| -> c_int {
        let mut value = 0;
        // SAFETY: a local and a function of the driver's. What it does not know stays 0.
        let _ = unsafe { DRIVER.cuFuncGetAttribute(StreamApi::Legacy, &mut value, number, function) };
        value
    };
    // In the numbering of CUfunction_attribute.
    let answer = FunctionAttributes {
        most_threads: attribute(0),
        shared_bytes: attribute(1) as usize,
        constant_bytes: attribute(2) as usize,
        local_bytes: attribute(3) as usize,
        registers: attribute(4),
        ptx_version: attribute(5),
        binary_version: attribute(6),
        cache_mode: attribute(7),
        most_dynamic_shared_bytes: attribute(8),
        shared_carveout: attribute(9),
        cluster_required: attribute(10),
        cluster_width: attribute(11),
        cluster_height: attribute(12),
        cluster_depth: attribute(13),
        cluster_non_portable: attribute(14),
        cluster_scheduling: attribute(15),
        reserved: [0; 16],
    };
    // SAFETY: the caller's struct, of the same size in both releases.
    unsafe { put(to, answer) }
}

pub unsafe fn set_attribute(host: *const c_void, attribute: c_uint, value: c_int) -> CuResult {
    context::current()?;
    // SAFETY: a function of the driver's.
    unsafe { DRIVER.cuFuncSetAttribute(StreamApi::Legacy, kernel::function(host)?, attribute, value) }
}

pub unsafe fn set_cache(host: *const c_void, preference: c_uint) -> CuResult {
    context::current()?;
    // SAFETY: a function of the driver's.
    unsafe { DRIVER.cuFuncSetCacheConfig(StreamApi::Legacy, kernel::function(host)?, preference) }
}

pub unsafe fn name(to: *mut *const c_char, host: *const c_void) -> CuResult {
    context::current()?;
    // SAFETY: the caller's pointer and a function of the driver's.
    unsafe { DRIVER.cuFuncGetName(StreamApi::Legacy, to, kernel::function(host)?) }
}

pub unsafe fn parameter(
    host: *const c_void,
    index: usize,
    offset: *mut usize,
    bytes: *mut usize,
) -> CuResult {
    context::current()?;
    // SAFETY: the caller's pointers and a function of the driver's.
    unsafe { DRIVER.cuFuncGetParamInfo(StreamApi::Legacy, kernel::function(host)?, index, offset, bytes) }
}

pub unsafe fn parameters(host: *const c_void, count: *mut usize) -> CuResult {
    context::current()?;
    // SAFETY: the caller's pointer and a function of the driver's.
    unsafe { DRIVER.cuFuncGetParamCount(StreamApi::Legacy, kernel::function(host)?, count) }
}

pub unsafe fn blocks(to: *mut c_int, host: *const c_void, threads: c_int, shared_bytes: usize) -> CuResult {
    // SAFETY: handed on.
    unsafe { blocks_flagged(to, host, threads, shared_bytes, 0) }
}

pub unsafe fn blocks_flagged(
    to: *mut c_int,
    host: *const c_void,
    threads: c_int,
    shared_bytes: usize,
    flags: c_uint,
) -> CuResult {
    context::current()?;
    // SAFETY: the caller's pointer and a function of the driver's.
    unsafe {
        let function = kernel::function(host)?;
        DRIVER.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
            StreamApi::Legacy,
            to,
            function,
            threads,
            shared_bytes,
            flags,
        )
    }
}

pub unsafe fn dynamic_shared(to: *mut usize, host: *const c_void, blocks: c_int, threads: c_int) -> CuResult {
    context::current()?;
    // SAFETY: the caller's pointer and a function of the driver's.
    unsafe {
        let function = kernel::function(host)?;
        DRIVER.cuOccupancyAvailableDynamicSMemPerBlock(StreamApi::Legacy, to, function, blocks, threads)
    }
}

pub unsafe fn cluster_size(to: *mut c_int, host: *const c_void, config: *const LaunchConfig) -> CuResult {
    context::current()?;
    // SAFETY: null or the caller's struct; the caller's pointer and a function of the driver's.
    unsafe {
        let config = config.as_ref().ok_or(CudaError::INVALID_VALUE)?.for_driver()?;
        let function = kernel::function(host)?;
        DRIVER.cuOccupancyMaxPotentialClusterSize(StreamApi::Legacy, to, function, &config)
    }
}

pub unsafe fn clusters(to: *mut c_int, host: *const c_void, config: *const LaunchConfig) -> CuResult {
    context::current()?;
    // SAFETY: as in `cluster_size`.
    unsafe {
        let config = config.as_ref().ok_or(CudaError::INVALID_VALUE)?.for_driver()?;
        let function = kernel::function(host)?;
        DRIVER.cuOccupancyMaxActiveClusters(StreamApi::Legacy, to, function, &config)
    }
}

pub unsafe fn set_shared(host: *const c_void, config: c_uint) -> CuResult {
    context::current()?;
    // SAFETY: a function of the driver's.
    unsafe { DRIVER.cuFuncSetSharedMemConfig(StreamApi::Legacy, kernel::function(host)?, config) }
}

/// The runtime names the kernel first, the driver third.
pub unsafe fn set_kernel_attribute(
    handle: CUkernel,
    attribute: c_uint,
    value: c_int,
    device: c_int,
) -> CuResult {
    context::current()?;
    // SAFETY: the driver checks all of them.
    unsafe { DRIVER.cuKernelSetAttribute(StreamApi::Legacy, attribute, value, handle, device) }
}
