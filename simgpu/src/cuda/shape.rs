//! Copies of rectangles and boxes.
//!
//! Arrays belong to a later stage of the stand-in: a copy that names one is `NOT_SUPPORTED`.

use super::Sim;
use super::block::{self, Block};
use super::context::context;
use super::copy::{self, Return, act, take_time};
use super::edge::get as read;
use super::stream::entry;
use driver::prelude::*;
use std::ptr::null_mut;
use std::sync::Arc;

/// One side of a copy.
#[derive(Clone, Copy)]
struct Side {
    kind: u32,
    base: u64,
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

impl Side {
    fn new(
        kind: u32,
        host: u64,
        device: u64,
        at: (usize, usize, usize),
        pitch: usize,
        height: usize,
    ) -> Side {
        let base = if kind == CU_MEMORYTYPE_HOST { host } else { device };
        Side {
            kind,
            base,
            x: at.0,
            y: at.1,
            z: at.2,
            pitch,
            height,
        }
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

    /// The block it lies in, if the driver knows it.
    fn look(&self, form: Form) -> Result<Option<Arc<Block>>, CudaError> {
        let invalid = CudaError::INVALID_VALUE;
        if self.base == 0 {
            return Err(invalid);
        }
        let first = self.row(0, 0).ok_or(invalid)?;
        let last = self.row(form.height - 1, form.depth - 1).ok_or(invalid)?;
        let bytes = (last - first).checked_add(form.width as u64).ok_or(invalid)?;
        match self.kind {
            CU_MEMORYTYPE_DEVICE => block::reachable(first, bytes).map(Some),
            CU_MEMORYTYPE_HOST | CU_MEMORYTYPE_UNIFIED => match block::find(first) {
                Some(_) => block::reachable(first, bytes).map(Some),
                None => Ok(None),
            },
            CU_MEMORYTYPE_ARRAY => Err(CudaError::NOT_SUPPORTED),
            _ => Err(invalid),
        }
    }
}

fn copy_box(
    api: StreamApi,
    to: Side,
    from: Side,
    form: Form,
    hStream: CUstream,
    returns: Return,
) -> CuResult {
    let (node, stream) = entry(api, hStream)?;
    let array = |side: &Side| side.kind == CU_MEMORYTYPE_ARRAY;
    if array(&to) || array(&from) {
        return Err(CudaError::NOT_SUPPORTED);
    }
    if form.width == 0 || form.height == 0 || form.depth == 0 {
        return Ok(());
    }
    let (to, from) = (to.completed(form)?, from.completed(form)?);
    let (known_to, known_from) = (to.look(form)?, from.look(form)?);
    let (path, engine) = copy::path(known_to.as_deref(), known_from.as_deref());
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

fn flat(api: StreamApi, copy: *const CUDA_MEMCPY2D, hStream: CUstream, returns: Return) -> CuResult {
    let c = read(copy)?;
    let at = (c.dstXInBytes, c.dstY, 0);
    let to = Side::new(c.dstMemoryType, c.dstHost as u64, c.dstDevice, at, c.dstPitch, 0);
    let at = (c.srcXInBytes, c.srcY, 0);
    let from = Side::new(c.srcMemoryType, c.srcHost as u64, c.srcDevice, at, c.srcPitch, 0);
    let form = Form {
        width: c.WidthInBytes,
        height: c.Height,
        depth: 1,
    };
    copy_box(api, to, from, form, hStream, returns)
}

fn solid(api: StreamApi, copy: *const CUDA_MEMCPY3D, hStream: CUstream, returns: Return) -> CuResult {
    let c = read(copy)?;
    let at = (c.dstXInBytes, c.dstY, c.dstZ);
    let to = Side::new(
        c.dstMemoryType,
        c.dstHost as u64,
        c.dstDevice,
        at,
        c.dstPitch,
        c.dstHeight,
    );
    let at = (c.srcXInBytes, c.srcY, c.srcZ);
    let from = Side::new(
        c.srcMemoryType,
        c.srcHost as u64,
        c.srcDevice,
        at,
        c.srcPitch,
        c.srcHeight,
    );
    let form = Form {
        width: c.WidthInBytes,
        height: c.Height,
        depth: c.Depth,
    };
    copy_box(api, to, from, form, hStream, returns)
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
