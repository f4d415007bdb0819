//! Copies of plain ranges: the time they take on the device, and the bytes.
//!
//! The bytes move during the call, except behind host functions, which may still have to write them:
//! then they move in stream order. A program that orders its own accesses cannot tell.

use super::array::{Array, array};
use super::block::{self, Block};
use super::capture::{self, Capturing};
use super::context::{Context, context};
use super::edge::{element, needed, put_optional};
use super::graph::work::{Given, Work};
use super::host_function::enqueue;
use super::node::Node;
use super::order::{before, submit};
use super::stream::{Stream, entry};
use super::{Sim, uses};
use crate::facts::CopyPath;
use driver::prelude::*;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Whether a call returns before its work is complete.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Return {
    Complete,
    AtOnce,
}
use Return::{AtOnce, Complete};

/// Copy engines: to the device and within, from the device.
pub const ENGINE_IN: u32 = 0;
pub const ENGINE_OUT: u32 = 1;

/// Lets the stream's device spend the time of a copy.
pub fn take_time(node: &Node, stream: &'static Stream, path: CopyPath, engine: u32, bytes: u64) -> CuResult {
    let facts = stream.context().device.facts;
    let ns = if node.null { 0 } else { facts.copy_ns(path, bytes) };
    submit(node, stream, |on_node| {
        node.client.copy_with(on_node, engine, ns, facts.traffic(path))
    })
}

/// Does what the stream's work does to memory: now, or behind the host functions before it.
pub fn act(
    node: &'static Node,
    stream: &'static Stream,
    returns: Return,
    effect: impl FnOnce() + Send + 'static,
) -> CuResult {
    if node.host_functions.load(Ordering::Acquire) == 0 {
        effect();
    } else {
        enqueue(node, stream, effect)?;
    }
    finish(node, stream, returns)
}

pub fn finish(node: &Node, stream: &'static Stream, returns: Return) -> CuResult {
    if returns == AtOnce || node.null && node.host_functions.load(Ordering::Acquire) == 0 {
        return Ok(());
    }
    before(stream)?;
    node.client.synchronize(stream.on_node(), stream.context().wait())
}

/// The device a block lies on; `None` for host memory.
pub fn device_of(block: &Block) -> Option<usize> {
    Some(block)
        .filter(|block| !block.is_host())?
        .device
        .map(|device| device.index)
}

/// Which way a copy between these devices goes; `None` stands for the host.
pub fn path(to: Option<usize>, from: Option<usize>) -> (CopyPath, u32) {
    match (to, from) {
        (Some(a), Some(b)) if a == b => (CopyPath::Device, ENGINE_IN),
        (Some(_), Some(_)) => (CopyPath::Peer, ENGINE_IN),
        (Some(_), None) => (CopyPath::Host, ENGINE_IN),
        _ => (CopyPath::Host, ENGINE_OUT),
    }
}

/// What a caller says an address is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Memory the driver must know.
    Device(u64),
    /// Memory of the program, or any other.
    Host(u64),
    /// Whatever it turns out to be.
    Any(u64),
    /// An array, so many bytes behind its beginning.
    Array(CUarray, usize),
}

/// Where the bytes of a side are.
struct Place {
    address: u64,
    device: Option<usize>,
    /// Keeps an array while its bytes move.
    _array: Option<Arc<Array>>,
}

impl Side {
    fn find(self, bytes: u64) -> Result<Place, CudaError> {
        let invalid = CudaError::INVALID_VALUE;
        let plain = |address, device| Place {
            address,
            device,
            _array: None,
        };
        let known = |address| {
            let block = block::reachable(address, bytes)?;
            Ok(plain(address, device_of(&block)))
        };
        match self {
            Side::Device(address) => known(address),
            Side::Host(0) | Side::Any(0) => Err(invalid),
            // What the driver knows it must know all of; the rest is the program's.
            Side::Host(address) | Side::Any(address) => match block::find(address) {
                Some(_) => known(address),
                None if super::reservation::around(address).is_some() => Err(invalid),
                None => Ok(plain(address, None)),
            },
            Side::Array(handle, offset) => {
                let array = array(handle)?;
                let end = (offset as u64).checked_add(bytes).ok_or(invalid)?;
                if end > array.form.linear_bytes() {
                    return Err(invalid);
                }
                Ok(Place {
                    address: array.base()? + offset as u64,
                    device: Some(array.context.device.index),
                    _array: Some(array),
                })
            }
        }
    }
}

pub fn copy(
    api: StreamApi,
    to: Side,
    from: Side,
    bytes: usize,
    hStream: CUstream,
    returns: Return,
) -> CuResult {
    let (node, stream) = entry(api, hStream)?;
    if bytes == 0 {
        return Ok(());
    }
    if let Some(capturing) = capturing(stream, returns)? {
        let copy = as_node(to, from, bytes);
        return capturing.add(Work::Copy(Given(copy), stream.context()));
    }
    let (to, from) = (to.find(bytes as u64)?, from.find(bytes as u64)?);
    let (path, engine) = path(to.device, from.device);
    uses::note(node, stream, &[to.address, from.address]);
    take_time(node, stream, path, engine, bytes as u64)?;
    act(node, stream, returns, move || {
        let (to, from) = (to, from); // whole, with the arrays they keep
        move_bytes(to.address, from.address, bytes);
    })
}

/// The capture that takes a copy; none takes one that the program waits for.
pub fn capturing(stream: &'static Stream, returns: Return) -> Result<Option<Capturing>, CudaError> {
    match capture::of(stream)? {
        Some(_) if returns == Complete => Err(capture::refuse(stream)),
        other => Ok(other),
    }
}

/// As the parameters of a node: one row.
fn as_node(to: Side, from: Side, bytes: usize) -> CUDA_MEMCPY3D {
    type Named = (u32, u64, u64, CUarray, usize);
    let named = |side: Side| -> Named {
        match side {
            Side::Device(address) => (CU_MEMORYTYPE_DEVICE, 0, address, null_mut(), 0),
            Side::Host(address) => (CU_MEMORYTYPE_HOST, address, 0, null_mut(), 0),
            Side::Any(address) => (CU_MEMORYTYPE_UNIFIED, 0, address, null_mut(), 0),
            Side::Array(array, offset) => (CU_MEMORYTYPE_ARRAY, 0, 0, array, offset),
        }
    };
    let (to, from) = (named(to), named(from));
    CUDA_MEMCPY3D {
        srcXInBytes: from.4,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: from.0,
        srcHost: from.1 as *const c_void,
        srcDevice: from.2,
        srcArray: from.3,
        reserved0: null_mut(),
        srcPitch: 0,
        srcHeight: 0,
        dstXInBytes: to.4,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: to.0,
        dstHost: to.1 as *mut c_void,
        dstDevice: to.2,
        dstArray: to.3,
        reserved1: null_mut(),
        dstPitch: 0,
        dstHeight: 0,
        WidthInBytes: bytes,
        Height: 1,
        Depth: 1,
    }
}

/// Moves bytes between ranges that were looked up, or are the program's.
pub fn move_bytes(to: u64, from: u64, bytes: usize) {
    // SAFETY: ranges of known blocks are mapped; others are the program's own, which it vouches for as
    // with the real driver. They may overlap.
    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) }
}

fn peer(ctx: CUcontext) -> Result<&'static Context, CudaError> {
    context(ctx)
}

/// The attributes of a batch say nothing that changes what is copied.
fn batch(
    api: StreamApi,
    dsts: *mut CUdeviceptr,
    srcs: *mut CUdeviceptr,
    sizes: *mut usize,
    count: usize,
    failed: *mut usize,
    hStream: CUstream,
) -> CuResult {
    entry(api, hStream)?;
    // The default streams take no batches.
    if (hStream as usize) <= 1 || count == 0 {
        return Err(CudaError::INVALID_VALUE);
    }
    put_optional(failed, usize::MAX);
    for i in 0..count {
        let one = || {
            let (to, from) = (element(dsts, i)?, element(srcs, i)?);
            copy(
                api,
                Side::Any(to),
                Side::Any(from),
                element(sizes, i)?,
                hStream,
                AtOnce,
            )
        };
        if let Err(error) = one() {
            put_optional(failed, i);
            return Err(error);
        }
    }
    Ok(())
}

impl Sim {
    pub(super) fn cuMemcpy(api: StreamApi, dst: CUdeviceptr, src: CUdeviceptr, n: usize) -> CuResult {
        copy(api, Side::Any(dst), Side::Any(src), n, null_mut(), Complete)
    }

    pub(super) fn cuMemcpyAsync(
        api: StreamApi,
        dst: CUdeviceptr,
        src: CUdeviceptr,
        n: usize,
        hStream: CUstream,
    ) -> CuResult {
        copy(api, Side::Any(dst), Side::Any(src), n, hStream, AtOnce)
    }

    pub(super) fn cuMemcpyWithAttributesAsync(
        api: StreamApi,
        dst: CUdeviceptr,
        src: CUdeviceptr,
        n: usize,
        attributes: *mut CUmemcpyAttributes,
        hStream: CUstream,
    ) -> CuResult {
        needed(attributes)?;
        copy(api, Side::Any(dst), Side::Any(src), n, hStream, AtOnce)
    }

    pub(super) fn cuMemcpyHtoD_v2(
        api: StreamApi,
        dst: CUdeviceptr,
        src: *const c_void,
        n: usize,
    ) -> CuResult {
        copy(
            api,
            Side::Device(dst),
            Side::Host(src as u64),
            n,
            null_mut(),
            Complete,
        )
    }

    pub(super) fn cuMemcpyHtoDAsync_v2(
        api: StreamApi,
        dst: CUdeviceptr,
        src: *const c_void,
        n: usize,
        hStream: CUstream,
    ) -> CuResult {
        copy(api, Side::Device(dst), Side::Host(src as u64), n, hStream, AtOnce)
    }

    pub(super) fn cuMemcpyDtoH_v2(api: StreamApi, dst: *mut c_void, src: CUdeviceptr, n: usize) -> CuResult {
        copy(
            api,
            Side::Host(dst as u64),
            Side::Device(src),
            n,
            null_mut(),
            Complete,
        )
    }

    pub(super) fn cuMemcpyDtoHAsync_v2(
        api: StreamApi,
        dst: *mut c_void,
        src: CUdeviceptr,
        n: usize,
        hStream: CUstream,
    ) -> CuResult {
        copy(api, Side::Host(dst as u64), Side::Device(src), n, hStream, AtOnce)
    }

    /// Copies within devices are asynchronous to the host in either form.
    pub(super) fn cuMemcpyDtoD_v2(api: StreamApi, dst: CUdeviceptr, src: CUdeviceptr, n: usize) -> CuResult {
        copy(api, Side::Device(dst), Side::Device(src), n, null_mut(), AtOnce)
    }

    pub(super) fn cuMemcpyDtoDAsync_v2(
        api: StreamApi,
        dst: CUdeviceptr,
        src: CUdeviceptr,
        n: usize,
        hStream: CUstream,
    ) -> CuResult {
        copy(api, Side::Device(dst), Side::Device(src), n, hStream, AtOnce)
    }

    pub(super) fn cuMemcpyPeer(
        api: StreamApi,
        dst: CUdeviceptr,
        dstContext: CUcontext,
        src: CUdeviceptr,
        srcContext: CUcontext,
        n: usize,
    ) -> CuResult {
        Sim::cuMemcpyPeerAsync(api, dst, dstContext, src, srcContext, n, null_mut())
    }

    pub(super) fn cuMemcpyPeerAsync(
        api: StreamApi,
        dst: CUdeviceptr,
        dstContext: CUcontext,
        src: CUdeviceptr,
        srcContext: CUcontext,
        n: usize,
        hStream: CUstream,
    ) -> CuResult {
        entry(api, hStream)?;
        peer(dstContext)?;
        peer(srcContext)?;
        copy(api, Side::Device(dst), Side::Device(src), n, hStream, AtOnce)
    }

    pub(super) fn cuMemcpyBatchAsync(
        api: StreamApi,
        dsts: *mut CUdeviceptr,
        srcs: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        attributes: *mut CUmemcpyAttributes,
        indices: *mut usize,
        number: usize,
        failed: *mut usize,
        hStream: CUstream,
    ) -> CuResult {
        needed(attributes)?;
        needed(indices)?;
        if number == 0 || number > count {
            return Err(CudaError::INVALID_VALUE);
        }
        batch(api, dsts, srcs, sizes, count, failed, hStream)
    }

    pub(super) fn cuMemcpyBatchAsync_v2(
        api: StreamApi,
        dsts: *mut CUdeviceptr,
        srcs: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        attributes: *mut CUmemcpyAttributes,
        indices: *mut usize,
        number: usize,
        hStream: CUstream,
    ) -> CuResult {
        Sim::cuMemcpyBatchAsync(
            api,
            dsts,
            srcs,
            sizes,
            count,
            attributes,
            indices,
            number,
            null_mut(),
            hStream,
        )
    }
}
