//! Graphs: what a program says of their nodes, and what it is told of executable ones.
//!
//! Next: `table.rs`.

use super::{
    CUDA_MEMCPY3D, CUcontext, CUdeviceptr, CUfunction, CUgraphExecUpdateResult, CUgraphNode, CUgraphNodeType,
    CUhostFn, CUkernel, CUmemAccessDesc, CUmemPoolProps, CUstream, c_int, c_uchar, c_uint, c_ulonglong,
    c_void,
};

/// The first form, without kernel and context.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_KERNEL_NODE_PARAMS_v1 {
    pub func: CUfunction,
    pub gridDimX: c_uint,
    pub gridDimY: c_uint,
    pub gridDimZ: c_uint,
    pub blockDimX: c_uint,
    pub blockDimY: c_uint,
    pub blockDimZ: c_uint,
    pub sharedMemBytes: c_uint,
    pub kernelParams: *mut *mut c_void,
    pub extra: *mut *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_KERNEL_NODE_PARAMS {
    pub v1: CUDA_KERNEL_NODE_PARAMS_v1,
    /// Looked at where the function is null.
    pub kern: CUkernel,
    /// Null: the current one.
    pub ctx: CUcontext,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_MEMSET_NODE_PARAMS {
    pub dst: CUdeviceptr,
    pub pitch: usize,
    pub value: c_uint,
    /// 1, 2 or 4 bytes.
    pub elementSize: c_uint,
    /// Elements of a row.
    pub width: usize,
    pub height: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_HOST_NODE_PARAMS {
    pub function: CUhostFn,
    pub userData: *mut c_void,
}

/// As [`CUgraphNodeParams`] holds it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_MEMCPY_NODE_PARAMS {
    pub flags: c_int,
    pub reserved: c_int,
    pub copyCtx: CUcontext,
    pub copyParams: CUDA_MEMCPY3D,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_MEM_ALLOC_NODE_PARAMS {
    pub poolProps: CUmemPoolProps,
    pub accessDescs: *const CUmemAccessDesc,
    pub accessDescCount: usize,
    pub bytesize: usize,
    /// The driver's answer.
    pub dptr: CUdeviceptr,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_GRAPH_INSTANTIATE_PARAMS {
    pub flags: c_ulonglong,
    pub hUploadStream: CUstream,
    pub hErrNode_out: CUgraphNode,
    pub result_out: c_uint,
}

/// All zeroes: the one node comes after the other.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CUgraphEdgeData {
    pub from_port: c_uchar,
    pub to_port: c_uchar,
    pub kind: c_uchar,
    pub reserved: [c_uchar; 5],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUgraphExecUpdateResultInfo {
    pub result: CUgraphExecUpdateResult,
    pub errorNode: CUgraphNode,
    pub errorFromNode: CUgraphNode,
}

/// A node of any type; `union` holds the parameters of that type.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUgraphNodeParams {
    pub kind: CUgraphNodeType,
    pub reserved0: [c_int; 3],
    pub union: [u64; 29],
    pub reserved2: i64,
}

pub const CU_GRAPH_NODE_TYPE_KERNEL: CUgraphNodeType = 0;
pub const CU_GRAPH_NODE_TYPE_MEMCPY: CUgraphNodeType = 1;
pub const CU_GRAPH_NODE_TYPE_MEMSET: CUgraphNodeType = 2;
pub const CU_GRAPH_NODE_TYPE_HOST: CUgraphNodeType = 3;
pub const CU_GRAPH_NODE_TYPE_GRAPH: CUgraphNodeType = 4;
pub const CU_GRAPH_NODE_TYPE_EMPTY: CUgraphNodeType = 5;
pub const CU_GRAPH_NODE_TYPE_WAIT_EVENT: CUgraphNodeType = 6;
pub const CU_GRAPH_NODE_TYPE_EVENT_RECORD: CUgraphNodeType = 7;
pub const CU_GRAPH_NODE_TYPE_MEM_ALLOC: CUgraphNodeType = 10;
pub const CU_GRAPH_NODE_TYPE_MEM_FREE: CUgraphNodeType = 11;

pub const CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH: c_ulonglong = 1;
pub const CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD: c_ulonglong = 2;
pub const CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH: c_ulonglong = 4;
pub const CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY: c_ulonglong = 8;

/// Bytes that graphs use, and that the driver has reserved for them; each followed by its high mark.
pub const CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT: c_uint = 0;
pub const CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: c_uint = 2;

/// `CUstreamCaptureMode`: who else may not make unsafe calls while a capture goes on.
pub const CU_STREAM_CAPTURE_MODE_GLOBAL: c_uint = 0;
pub const CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: c_uint = 1;
pub const CU_STREAM_CAPTURE_MODE_RELAXED: c_uint = 2;

/// `CUstreamCaptureStatus`.
pub const CU_STREAM_CAPTURE_STATUS_NONE: c_uint = 0;
pub const CU_STREAM_CAPTURE_STATUS_ACTIVE: c_uint = 1;
pub const CU_STREAM_CAPTURE_STATUS_INVALIDATED: c_uint = 2;
