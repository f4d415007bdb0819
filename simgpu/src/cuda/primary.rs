//! Primary contexts: one per device and process, alive while somebody retains it.

use super::Sim;
use super::context::{Context, MAP_HOST, check_flags};
use super::edge::{needed, put, put_optional};
use super::node::{Device, node};
use driver::prelude::*;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// The device's primary context, alive or not: always the same handle.
pub fn primary(device: &'static Device) -> &'static Context {
    device.primary.get_or_init(|| Context::new(device, true))
}

impl Sim {
    pub(super) fn cuDevicePrimaryCtxRetain(_: StreamApi, pctx: *mut CUcontext, dev: CUdevice) -> CuResult {
        let node = node()?;
        needed(pctx)?;
        let context = primary(node.device(dev)?);
        let mut retained = context.retained.lock().unwrap_or_else(PoisonError::into_inner);
        if *retained == 0 {
            context.activate()?;
        }
        *retained += 1;
        put(pctx, context.handle())
    }

    pub(super) fn cuDevicePrimaryCtxRelease(api: StreamApi, dev: CUdevice) -> CuResult {
        Sim::cuDevicePrimaryCtxRelease_v2(api, dev)
    }

    pub(super) fn cuDevicePrimaryCtxRelease_v2(_: StreamApi, dev: CUdevice) -> CuResult {
        let context = primary(node()?.device(dev)?);
        let mut retained = context.retained.lock().unwrap_or_else(PoisonError::into_inner);
        match *retained {
            0 => Err(CudaError::INVALID_CONTEXT),
            1 => {
                *retained = 0;
                context.destroy()
            }
            _ => {
                *retained -= 1;
                Ok(())
            }
        }
    }

    pub(super) fn cuDevicePrimaryCtxReset(api: StreamApi, dev: CUdevice) -> CuResult {
        Sim::cuDevicePrimaryCtxReset_v2(api, dev)
    }

    /// Ends the context whoever retains it, and starts it anew for those who do.
    pub(super) fn cuDevicePrimaryCtxReset_v2(_: StreamApi, dev: CUdevice) -> CuResult {
        let context = primary(node()?.device(dev)?);
        let mut retained = context.retained.lock().unwrap_or_else(PoisonError::into_inner);
        if *retained != 0 {
            *retained = 0;
            context.destroy()?;
        }
        context.flags.store(0, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn cuDevicePrimaryCtxSetFlags(api: StreamApi, dev: CUdevice, flags: c_uint) -> CuResult {
        Sim::cuDevicePrimaryCtxSetFlags_v2(api, dev, flags)
    }

    pub(super) fn cuDevicePrimaryCtxSetFlags_v2(_: StreamApi, dev: CUdevice, flags: c_uint) -> CuResult {
        let context = primary(node()?.device(dev)?);
        check_flags(flags)?;
        context.flags.store(flags | MAP_HOST, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn cuDevicePrimaryCtxGetState(
        _: StreamApi,
        dev: CUdevice,
        flags: *mut c_uint,
        active: *mut c_int,
    ) -> CuResult {
        let device = node()?.device(dev)?;
        if flags.is_null() && active.is_null() {
            return Err(CudaError::INVALID_VALUE);
        }
        let context = device.primary.get();
        put_optional(
            flags,
            context.map_or(0, |context| context.flags.load(Ordering::Relaxed)),
        );
        put_optional(active, context.is_some_and(|context| context.is_alive()) as c_int);
        Ok(())
    }
}
