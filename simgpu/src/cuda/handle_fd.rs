//! Physical memory as a file descriptor, out and in.

use super::Sim;
use super::edge::{needed, put};
use super::node::node;
use super::physical::{self, POSIX_FD, Physical, Store};
use super::vram::{Label, exported};
use driver::prelude::*;
use std::os::fd::IntoRawFd;

impl Sim {
    pub(super) fn cuMemExportToShareableHandle(
        _: StreamApi,
        out: *mut c_void,
        handle: CUmemGenericAllocationHandle,
        kind: CUmemAllocationHandleType,
        flags: c_ulonglong,
    ) -> CuResult {
        node()?;
        needed(out)?;
        let physical = physical::get(handle)?;
        if flags != 0 || kind.count_ones() != 1 || kind & physical.handle_types == 0 {
            return Err(CudaError::INVALID_VALUE);
        }
        let descriptor = match &physical.store {
            Store::Own(extent) => {
                let uuid = physical.device().map_or([0; 16], |device| device.facts.uuid);
                physical.vram().export(
                    *extent,
                    Label {
                        bytes: physical.bytes,
                        uuid,
                    },
                )?
            }
            // The same opening: it goes on holding the range.
            Store::Held { file, .. } => file.try_clone().map_err(|_| CudaError::OPERATING_SYSTEM)?,
        };
        put(out.cast::<c_int>(), descriptor.into_raw_fd())
    }

    pub(super) fn cuMemImportFromShareableHandle(
        _: StreamApi,
        handle: *mut CUmemGenericAllocationHandle,
        os_handle: *mut c_void,
        kind: CUmemAllocationHandleType,
    ) -> CuResult {
        let node = node()?;
        needed(handle)?;
        if kind != POSIX_FD {
            return Err(CudaError::NOT_SUPPORTED);
        }
        let (file, offset, label) = exported(os_handle as usize as i32)?;
        let device = if label.uuid == [0; 16] {
            None
        } else {
            let visible = node.devices.iter().find(|device| device.facts.uuid == label.uuid);
            Some(visible.ok_or(CudaError::INVALID_DEVICE)?)
        };
        put(
            handle,
            physical::insert(Physical::imported(label.bytes, device, file, offset)),
        )
    }
}
