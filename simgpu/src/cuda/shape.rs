//! Copies of rectangles and boxes, between plain memory and arrays.

use super::Sim;
use super::array::{Array, array};
use super::block;
use super::context::context;
use super::copy::{self, Return, act, take_time};
use super::edge::get as read;
use super::graph::work::{Given, Work};
use super::node::Node;
use super::stream::{Stream, entry};
use driver::prelude::*;
use std::ptr::null_mut;
use std::sync::Arc;

/// One side of a copy.
#[derive(Clone)]
struct Side {
    kind: u32,
    base: u64,
    /// Set for an array, which has its own pitch and height.
    array: Option<Arc<Array>>,
    x: usize,
    y: usize,
    z: usize,
    pitch: usize,
    /// Rows per layer.
    height: usize,
}

#[derive(Clone, Copy)]
struct Form {
    width: usize,
    height: usize,
    depth: usize,
}

/// Where a caller says one side is: of each kind of memory one.
#[derive(Clone, Copy)]
struct Named {
    kind: u32,
    host: u64,
    device: u64,
    array: CUarray,
}

impl Side {
    fn new(named: Named, at: (usize, usize, usize), pitch: usize, height: usize) -> Result<Side, CudaError> {
        let Named {
            kind,
            host,
            device,
            array: handle,
        } = named;
        if kind == CU_MEMORYTYPE_ARRAY {
            let array = array(handle)?;
            return Ok(Side {
                kind,
                base: array.base()?,
                x: at.0,
                y: at.1,
                z: at.2,
                pitch: array.form.row_bytes() as usize,
                height: array.form.height as usize,
                array: Some(array),
            });
        }
        let base = if kind == CU_MEMORYTYPE_HOST { host } else { device };
        Ok(Side {
            kind,
            base,
            array: None,
            x: at.0,
            y: at.1,
            z: at.2,
            pitch,
            height,
        })
    }

    /// Pitch and rows per layer where the caller left them out, as he may when they do not matter.
    fn completed(mut self, form: Form) -> Result<Side, CudaError> {
        let row = self.x.checked_add(form.width).ok_or(CudaError::INVALID_VALUE)?;
        if self.pitch == 0 && form.height == 1 && form.depth == 1 && self.y == 0 && self.z == 0 {
            self.pitch = row;
        }
        if self.height == 0 && form.depth == 1 && self.z == 0 {
            self.height = self.y.saturating_add(form.height);
        }
        let layers = form.depth > 1 || self.z > 0;
        if self.pitch < row || layers && self.height < self.y.saturating_add(form.height) {
            return Err(CudaError::INVALID_VALUE);
        }
        Ok(self)
    }

    /// Where row `y` of layer `z` begins; `None` beyond the address space.
    fn row(&self, y: usize, z: usize) -> Option<u64> {
        let layer = self.z.checked_add(z)?.checked_mul(self.height)?;
        let row = layer
            .checked_add(self.y)?
            .checked_add(y)?
            .checked_mul(self.pitch)?;
        self.base.checked_add(row.checked_add(self.x)? as u64)
    }

    /// The device it lies on; `None`: the host.
    fn device(&self, form: Form) -> Result<Option<usize>, CudaError> {
        let invalid = CudaError::INVALID_VALUE;
        if let Some(array) = &self.array {
            let ends = [
                (self.x, form.width, array.form.row_bytes()),
                (self.y, form.height, array.form.height),
                (self.z, form.depth, array.form.slices()),
            ];
            let inside = |(at, extent, whole): (usize, usize, u64)| {
                at.checked_add(extent).is_some_and(|end| end as u64 <= whole)
            };
            return if ends.into_iter().all(inside) {
                Ok(Some(array.context.device.index))
            } else {
                Err(invalid)
            };
        }
        if self.base == 0 {
            return Err(invalid);
        }
        let first = self.row(0, 0).ok_or(invalid)?;
        let last = self.row(form.height - 1, form.depth - 1).ok_or(invalid)?;
        let bytes = (last - first).checked_add(form.width as u64).ok_or(invalid)?;
        match self.kind {
            CU_MEMORYTYPE_DEVICE => Ok(copy::device_of(&*block::reachable(first, bytes)?)),
            CU_MEMORYTYPE_HOST | CU_MEMORYTYPE_UNIFIED => match block::find(first) {
                Some(_) => Ok(copy::device_of(&*block::reachable(first, bytes)?)),
                None => Ok(None),
            },
            _ => Err(invalid),
        }
    }
}

fn copy_box(
    node: &'static Node,
    stream: &'static Stream,
    [to, from]: [Side; 2],
    form: Form,
    returns: Return,
) -> CuResult {
    if form.width == 0 || form.height == 0 || form.depth == 0 {
        return Ok(());
    }
    let (to, from) = (to.completed(form)?, from.completed(form)?);
    let (path, engine) = copy::path(to.device(form)?, from.device(form)?);
    let rows = form
        .height
        .checked_mul(form.depth)
        .ok_or(CudaError::INVALID_VALUE)?;
    let bytes = form.width.checked_mul(rows).ok_or(CudaError::INVALID_VALUE)?;
    take_time(node, stream, path, engine, bytes as u64)?;
    act(node, stream, returns, move || {
        for (y, z) in (0..form.depth).flat_map(|z| (0..form.height).map(move |y| (y, z))) {
            if let (Some(to), Some(from)) = (to.row(y, z), from.row(y, z)) {
                copy::move_bytes(to, from, form.width);
            }
        }
    })
}

/// A rectangle is a box one layer deep.
fn flat(api: StreamApi, copy: *const CUDA_MEMCPY2D, hStream: CUstream, returns: Return) -> CuResult {
    let c = read(copy)?;
    let deep = CUDA_MEMCPY3D {
        srcXInBytes: c.srcXInBytes,
        srcY: c.srcY,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: c.srcMemoryType,
        srcHost: c.srcHost,
        srcDevice: c.srcDevice,
        srcArray: c.srcArray,
        reserved0: null_mut(),
        srcPitch: c.srcPitch,
        srcHeight: 0,
        dstXInBytes: c.dstXInBytes,
        dstY: c.dstY,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: c.dstMemoryType,
        dstHost: c.dstHost,
        dstDevice: c.dstDevice,
        dstArray: c.dstArray,
        reserved1: null_mut(),
        dstPitch: c.dstPitch,
        dstHeight: 0,
        WidthInBytes: c.WidthInBytes,
        Height: c.Height,
        Depth: 1,
    };
    submit(api, deep, hStream, returns)
}

fn solid(api: StreamApi, copy: *const CUDA_MEMCPY3D, hStream: CUstream, returns: Return) -> CuResult {
    submit(api, read(copy)?, hStream, returns)
}

fn submit(api: StreamApi, copy: CUDA_MEMCPY3D, hStream: CUstream, returns: Return) -> CuResult {
    let (node, stream) = entry(api, hStream)?;
    match copy::capturing(stream, returns)? {
        Some(capturing) => capturing.add(Work::Copy(Given(copy), stream.context())),
        None => perform(node, stream, &copy, returns),
    }
}

/// Copies a box in the order of the stream.
pub fn perform(node: &'static Node, stream: &'static Stream, c: &CUDA_MEMCPY3D, returns: Return) -> CuResult {
    if c.srcLOD != 0 || c.dstLOD != 0 {
        return Err(CudaError::INVALID_VALUE);
    }
    let named = Named {
        kind: c.dstMemoryType,
        host: c.dstHost as u64,
        device: c.dstDevice,
        array: c.dstArray,
    };
    let to = Side::new(named, (c.dstXInBytes, c.dstY, c.dstZ), c.dstPitch, c.dstHeight)?;
    let named = Named {
        kind: c.srcMemoryType,
        host: c.srcHost as u64,
        device: c.srcDevice,
        array: c.srcArray,
    };
    let from = Side::new(named, (c.srcXInBytes, c.srcY, c.srcZ), c.srcPitch, c.srcHeight)?;
    let form = Form {
        width: c.WidthInBytes,
        height: c.Height,
        depth: c.Depth,
    };
    copy_box(node, stream, [to, from], form, returns)
}

fn peer(api: StreamApi, copy: *const CUDA_MEMCPY3D_PEER, hStream: CUstream, returns: Return) -> CuResult {
    let c = read(copy)?;
    context(c.srcContext)?;
    context(c.dstContext)?;
    // SAFETY: the two differ in the type of two pointers only.
    let plain = unsafe { std::mem::transmute::<CUDA_MEMCPY3D_PEER, CUDA_MEMCPY3D>(c) };
    solid(api, &plain, hStream, returns)
}

impl Sim {
    pub(super) fn cuMemcpy2D_v2(api: StreamApi, copy: *const CUDA_MEMCPY2D) -> CuResult {
        flat(api, copy, null_mut(), Return::Complete)
    }

    pub(super) fn cuMemcpy2DUnaligned_v2(api: StreamApi, copy: *const CUDA_MEMCPY2D) -> CuResult {
        flat(api, copy, null_mut(), Return::Complete)
    }

    pub(super) fn cuMemcpy2DAsync_v2(
        api: StreamApi,
        copy: *const CUDA_MEMCPY2D,
        hStream: CUstream,
    ) -> CuResult {
        flat(api, copy, hStream, Return::AtOnce)
    }

    pub(super) fn cuMemcpy3D_v2(api: StreamApi, copy: *const CUDA_MEMCPY3D) -> CuResult {
        solid(api, copy, null_mut(), Return::Complete)
    }

    pub(super) fn cuMemcpy3DAsync_v2(
        api: StreamApi,
        copy: *const CUDA_MEMCPY3D,
        hStream: CUstream,
    ) -> CuResult {
        solid(api, copy, hStream, Return::AtOnce)
    }

    pub(super) fn cuMemcpy3DPeer(api: StreamApi, copy: *const CUDA_MEMCPY3D_PEER) -> CuResult {
        peer(api, copy, null_mut(), Return::Complete)
    }

    pub(super) fn cuMemcpy3DPeerAsync(
        api: StreamApi,
        copy: *const CUDA_MEMCPY3D_PEER,
        hStream: CUstream,
    ) -> CuResult {
        peer(api, copy, hStream, Return::AtOnce)
    }
}
