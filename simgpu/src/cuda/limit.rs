//! A context's limits, cache preferences and other settings that are only kept.

use super::Sim;
use super::current::current;
use super::edge::{needed, put, put_optional};
use driver::prelude::*;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const STACK_SIZE: u32 = 0;
const SYNC_DEPTH: u32 = 3;
const PENDING_LAUNCHES: u32 = 4;
const L2_FETCH: u32 = 5;
const PERSISTING_L2: u32 = 6;

/// What a fresh context has, by `CUlimit`.
const DEFAULTS: [u64; 7] = [1024, 1 << 20, 8 << 20, 2, 2048, 64, 0];
const MAX_STACK: u64 = 512 << 10;
const MAX_SYNC_DEPTH: u64 = 24;

/// Values by `CUlimit`, and the two cache preferences.
pub struct Limits {
    values: [AtomicU64; DEFAULTS.len()],
    cache: AtomicU32,
    banks: AtomicU32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            values: DEFAULTS.map(AtomicU64::new),
            cache: AtomicU32::new(0),
            banks: AtomicU32::new(1),
        }
    }
}

impl Limits {
    pub fn reset(&self) {
        for (value, default) in self.values.iter().zip(DEFAULTS) {
            value.store(default, Ordering::Relaxed);
        }
        self.cache.store(0, Ordering::Relaxed);
        self.banks.store(1, Ordering::Relaxed);
    }
}

impl Sim {
    pub(super) fn cuCtxSetLimit(_: StreamApi, limit: CUlimit, value: usize) -> CuResult {
        let context = current()?.1;
        let slot = context
            .limits
            .values
            .get(limit as usize)
            .ok_or(CudaError::UNSUPPORTED_LIMIT)?;
        let value = value as u64;
        let value = match limit {
            STACK_SIZE if value > MAX_STACK => return Err(CudaError::INVALID_VALUE),
            // Kernels get it in steps of 16 bytes.
            STACK_SIZE => value.next_multiple_of(16),
            SYNC_DEPTH if value > MAX_SYNC_DEPTH => return Err(CudaError::INVALID_VALUE),
            PENDING_LAUNCHES => value.max(1),
            L2_FETCH => value.clamp(32, 128),
            PERSISTING_L2 => value.min(u64::from(context.device.facts.l2_bytes) * 3 / 4),
            _ => value,
        };
        slot.store(value, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn cuCtxGetLimit(_: StreamApi, pvalue: *mut usize, limit: CUlimit) -> CuResult {
        needed(pvalue)?;
        let context = current()?.1;
        let slot = context
            .limits
            .values
            .get(limit as usize)
            .ok_or(CudaError::UNSUPPORTED_LIMIT)?;
        put(pvalue, slot.load(Ordering::Relaxed) as usize)
    }

    pub(super) fn cuCtxGetCacheConfig(_: StreamApi, pconfig: *mut CUfunc_cache) -> CuResult {
        needed(pconfig)?;
        put(pconfig, current()?.1.limits.cache.load(Ordering::Relaxed))
    }

    pub(super) fn cuCtxSetCacheConfig(_: StreamApi, config: CUfunc_cache) -> CuResult {
        let context = current()?.1;
        if config > 3 {
            return Err(CudaError::INVALID_VALUE);
        }
        context.limits.cache.store(config, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn cuCtxGetSharedMemConfig(_: StreamApi, pconfig: *mut CUsharedconfig) -> CuResult {
        needed(pconfig)?;
        put(pconfig, current()?.1.limits.banks.load(Ordering::Relaxed))
    }

    /// The devices modelled here have banks of one size: accepted and without effect.
    pub(super) fn cuCtxSetSharedMemConfig(_: StreamApi, config: CUsharedconfig) -> CuResult {
        current()?;
        if config > 2 {
            Err(CudaError::INVALID_VALUE)
        } else {
            Ok(())
        }
    }

    pub(super) fn cuCtxResetPersistingL2Cache(_: StreamApi) -> CuResult {
        current().map(|_| ())
    }

    pub(super) fn cuCtxGetStreamPriorityRange(
        _: StreamApi,
        least: *mut c_int,
        greatest: *mut c_int,
    ) -> CuResult {
        current()?;
        put_optional(least, super::stream::LEAST_PRIORITY);
        put_optional(greatest, super::stream::GREATEST_PRIORITY);
        Ok(())
    }

    pub(super) fn cuCtxGetExecAffinity(
        _: StreamApi,
        affinity: *mut CUexecAffinityParam,
        _kind: CUexecAffinityType,
    ) -> CuResult {
        needed(affinity)?;
        current()?;
        Err(CudaError::UNSUPPORTED_EXEC_AFFINITY)
    }

    pub(super) fn cuFlushGPUDirectRDMAWrites(
        _: StreamApi,
        _target: CUflushGPUDirectRDMAWritesTarget,
        _scope: CUflushGPUDirectRDMAWritesScope,
    ) -> CuResult {
        current()?;
        Err(CudaError::NOT_SUPPORTED)
    }
}
