//! How many blocks of a kernel an SM holds.

use super::Sim;
use super::current::current;
use super::edge::{needed, put};
use super::function::{self, Function};
use crate::facts::DeviceFacts;
use driver::prelude::*;

const WARP: u32 = 32;
/// Registers are given to a warp in units of this.
const REGISTER_UNIT: u32 = 256;

/// Blocks of `threads` threads and `dynamic` bytes of shared memory that one SM holds; 0 if not one.
#[inline]
pub fn blocks_per_sm(facts: &DeviceFacts, function: &Function, threads: u32, dynamic: u64) -> u32 {
    let info = &function.kernel().info;
    if threads == 0 || threads > function.max_threads() {
        return 0;
    }
    let warps = threads.div_ceil(WARP);
    let mut blocks = (facts.threads_per_sm / (warps * WARP)).min(facts.blocks_per_sm);
    if info.registers != 0 {
        let of_warp = (info.registers * WARP).next_multiple_of(REGISTER_UNIT);
        blocks = blocks.min(facts.registers_per_sm / (of_warp * warps).max(1));
    }
    let shared = u64::from(info.shared_bytes) + dynamic;
    if shared != 0 {
        let reserved = if facts.compute_major >= 8 { 1024 } else { 0 };
        let fitting = u64::from(facts.shared_per_sm) / (shared + reserved).next_multiple_of(128);
        blocks = blocks.min(fitting.min(u32::MAX as u64) as u32);
    }
    blocks
}

type SharedOfBlock = unsafe extern "C" fn(block: c_int) -> usize;

fn potential(
    grid: *mut c_int,
    block: *mut c_int,
    func: CUfunction,
    size_of: CUoccupancyB2DSize,
    dynamic: usize,
    limit: c_int,
) -> CuResult {
    let context = current()?.1;
    needed(grid)?;
    needed(block)?;
    let function = function::get(func)?;
    let facts = context.device.facts;
    let most = match u32::try_from(limit) {
        Ok(0) | Err(_) => function.max_threads(),
        Ok(limit) => limit.min(function.max_threads()),
    };
    let mut best = (0, 0, 0);
    for threads in (1..=most / WARP).rev().map(|warps| warps * WARP).chain([most]) {
        let dynamic = if size_of.is_null() {
            dynamic as u64
        } else {
            // SAFETY: the program says this is a function of this type.
            let size_of = unsafe { std::mem::transmute::<*mut c_void, SharedOfBlock>(size_of) };
            // SAFETY: as above; it looks at nothing but its argument.
            (unsafe { size_of(threads as c_int) }) as u64
        };
        let blocks = blocks_per_sm(facts, function, threads, dynamic);
        if blocks * threads > best.0 {
            best = (blocks * threads, blocks, threads);
        }
    }
    put(grid, (best.1 * facts.sm_count) as c_int)?;
    put(block, best.2 as c_int)
}

fn active(count: *mut c_int, func: CUfunction, threads: c_int, dynamic: usize) -> CuResult {
    let context = current()?.1;
    needed(count)?;
    let function = function::get(func)?;
    let threads = u32::try_from(threads).ok().filter(|&threads| threads != 0);
    let threads = threads.ok_or(CudaError::INVALID_VALUE)?;
    put(
        count,
        blocks_per_sm(context.device.facts, function, threads, dynamic as u64) as c_int,
    )
}

impl Sim {
    pub(super) fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        _: StreamApi,
        count: *mut c_int,
        func: CUfunction,
        threads: c_int,
        dynamic: usize,
    ) -> CuResult {
        active(count, func, threads, dynamic)
    }

    pub(super) fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        _: StreamApi,
        count: *mut c_int,
        func: CUfunction,
        threads: c_int,
        dynamic: usize,
        flags: c_uint,
    ) -> CuResult {
        if flags > 1 {
            return Err(CudaError::INVALID_VALUE);
        }
        active(count, func, threads, dynamic)
    }

    pub(super) fn cuOccupancyMaxPotentialBlockSize(
        _: StreamApi,
        grid: *mut c_int,
        block: *mut c_int,
        func: CUfunction,
        size_of: CUoccupancyB2DSize,
        dynamic: usize,
        limit: c_int,
    ) -> CuResult {
        potential(grid, block, func, size_of, dynamic, limit)
    }

    pub(super) fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        _: StreamApi,
        grid: *mut c_int,
        block: *mut c_int,
        func: CUfunction,
        size_of: CUoccupancyB2DSize,
        dynamic: usize,
        limit: c_int,
        flags: c_uint,
    ) -> CuResult {
        if flags > 1 {
            return Err(CudaError::INVALID_VALUE);
        }
        potential(grid, block, func, size_of, dynamic, limit)
    }

    pub(super) fn cuOccupancyAvailableDynamicSMemPerBlock(
        _: StreamApi,
        bytes: *mut usize,
        func: CUfunction,
        blocks: c_int,
        threads: c_int,
    ) -> CuResult {
        let context = current()?.1;
        needed(bytes)?;
        let function = function::get(func)?;
        let facts = context.device.facts;
        let threads = u32::try_from(threads).unwrap_or(0);
        let wanted = u32::try_from(blocks).unwrap_or(0);
        if wanted == 0 || blocks_per_sm(facts, function, threads, 0) < wanted {
            return Err(CudaError::INVALID_VALUE);
        }
        let reserved = if facts.compute_major >= 8 { 1024 } else { 0 };
        let share = facts.shared_per_sm / wanted;
        let used = function.kernel().info.shared_bytes + reserved;
        put(
            bytes,
            share.saturating_sub(used).min(facts.shared_per_block_optin) as usize,
        )
    }
}
