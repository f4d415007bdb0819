//! The parameters of nodes as C has them, to and from what a node does.

use super::INVALID;
use super::memory::Allocation;
use super::work::{Given, Work};
use crate::cuda::context::Context;
use crate::cuda::current::named_or_current;
use crate::cuda::{event, launch};
use driver::prelude::*;
use std::ptr::null_mut;
use std::sync::Arc;

/// What the union of a node's parameters holds.
pub fn of_union<T: Copy>(params: &CUgraphNodeParams) -> T {
    const { assert!(size_of::<T>() <= size_of::<[u64; 29]>()) };
    // SAFETY: the union is at least as long, and T is a C struct of integers and pointers, of which all bits are values.
    unsafe { std::ptr::from_ref(&params.union).cast::<T>().read_unaligned() }
}

/// Parameters of any type with `value` in the union.
pub fn in_union<T: Copy>(kind: CUgraphNodeType, value: T) -> CUgraphNodeParams {
    const { assert!(size_of::<T>() <= size_of::<[u64; 29]>()) };
    let mut params = CUgraphNodeParams {
        kind,
        reserved0: [0; 3],
        union: [0; 29],
        reserved2: 0,
    };
    // SAFETY: as above.
    unsafe {
        std::ptr::from_mut(&mut params.union)
            .cast::<T>()
            .write_unaligned(value);
    }
    params
}

pub fn kernel(params: &CUDA_KERNEL_NODE_PARAMS) -> Result<Work, CudaError> {
    let context = named_or_current(params.ctx)?;
    let p = &params.v1;
    // A kernel of a library is the same kind of object here (`function.rs`).
    let function = if p.func.is_null() { params.kern } else { p.func };
    let shape = launch::Shape {
        grid: [p.gridDimX, p.gridDimY, p.gridDimZ],
        block: [p.blockDimX, p.blockDimY, p.blockDimZ],
        shared: p.sharedMemBytes,
        cooperative: false,
    };
    launch::Kernel::of(context, function, shape, p.kernelParams, p.extra).map(Work::Kernel)
}

/// As above, of the first form.
pub fn kernel_v1(params: CUDA_KERNEL_NODE_PARAMS_v1) -> Result<Work, CudaError> {
    kernel(&CUDA_KERNEL_NODE_PARAMS {
        v1: params,
        kern: null_mut(),
        ctx: null_mut(),
    })
}

pub fn kernel_params(work: &Work) -> Result<CUDA_KERNEL_NODE_PARAMS, CudaError> {
    let Work::Kernel(kernel) = work else {
        return Err(INVALID);
    };
    let (kernel_params, extra) = kernel.arguments.pointers();
    let ([gx, gy, gz], [bx, by, bz]) = (kernel.shape.grid, kernel.shape.block);
    Ok(CUDA_KERNEL_NODE_PARAMS {
        v1: CUDA_KERNEL_NODE_PARAMS_v1 {
            func: kernel.function as CUfunction,
            gridDimX: gx,
            gridDimY: gy,
            gridDimZ: gz,
            blockDimX: bx,
            blockDimY: by,
            blockDimZ: bz,
            sharedMemBytes: kernel.shape.shared,
            kernelParams: kernel_params,
            extra,
        },
        kern: null_mut(),
        ctx: kernel.context.handle(),
    })
}

pub fn copy(params: CUDA_MEMCPY3D, ctx: CUcontext) -> Result<Work, CudaError> {
    let context = named_or_current(ctx)?;
    let known = |kind: u32| (CU_MEMORYTYPE_HOST..=CU_MEMORYTYPE_UNIFIED).contains(&kind);
    let levels = params.srcLOD != 0 || params.dstLOD != 0;
    if !known(params.srcMemoryType) || !known(params.dstMemoryType) || levels {
        return Err(INVALID);
    }
    Ok(Work::Copy(Given(params), context))
}

pub fn copy_params(work: &Work) -> Result<(CUDA_MEMCPY3D, &'static Context), CudaError> {
    match work {
        Work::Copy(copy, context) => Ok((copy.0, context)),
        _ => Err(INVALID),
    }
}

pub fn set(params: CUDA_MEMSET_NODE_PARAMS, ctx: CUcontext) -> Result<Work, CudaError> {
    let context = named_or_current(ctx)?;
    let row = params.width.checked_mul(params.elementSize as usize);
    let sizes = matches!(params.elementSize, 1 | 2 | 4) && params.width != 0 && params.height != 0;
    let pitched = params.height <= 1 || row.is_some_and(|row| row <= params.pitch);
    if !sizes || row.is_none() || !pitched || params.dst == 0 {
        return Err(INVALID);
    }
    Ok(Work::Set(params, context))
}

pub fn set_params(work: &Work) -> Result<(CUDA_MEMSET_NODE_PARAMS, &'static Context), CudaError> {
    match work {
        Work::Set(set, context) => Ok((*set, context)),
        _ => Err(INVALID),
    }
}

pub fn host(params: CUDA_HOST_NODE_PARAMS) -> Result<Work, CudaError> {
    if params.function.is_null() {
        return Err(INVALID);
    }
    Ok(Work::Host(Given(params)))
}

pub fn host_params(work: &Work) -> Result<CUDA_HOST_NODE_PARAMS, CudaError> {
    match work {
        Work::Host(host) => Ok(host.0),
        _ => Err(INVALID),
    }
}

pub fn record(event: CUevent) -> Result<Work, CudaError> {
    event::get(event)?;
    Ok(Work::Record(Given(event)))
}

pub fn wait(event: CUevent) -> Result<Work, CudaError> {
    event::get(event)?;
    Ok(Work::Wait(Given(event)))
}

pub fn alloc_params(allocation: &Arc<Allocation>) -> CUDA_MEM_ALLOC_NODE_PARAMS {
    CUDA_MEM_ALLOC_NODE_PARAMS {
        poolProps: CUmemPoolProps {
            allocType: 1,
            handleTypes: 0,
            location: allocation.location,
            win32SecurityAttributes: null_mut(),
            maxSize: 0,
            usage: 0,
            reserved: [0; 54],
        },
        accessDescs: std::ptr::null(),
        accessDescCount: 0,
        bytesize: allocation.bytes as usize,
        dptr: allocation.base,
    }
}
