//! The C types of the driver API under their C names, the only place besides the exports where CUDA's
//! spelling is used.
//!
//! Enums are plain integers: a value of a newer driver must pass through unharmed. Structs that nobody
//! here reads are opaque, with the size cuda.h 13.5 gives them; the others are laid out in full and must
//! still be read through raw pointers field by field, since an older client passes an older, shorter one.

#![allow(non_camel_case_types, non_snake_case, missing_docs)]

mod array;
mod graph;

pub use array::*;
pub use graph::*;

pub use core::ffi::{c_char, c_int, c_uchar, c_uint, c_ulonglong, c_ushort, c_void};

pub type CUdeviceptr = u64;
pub type CUdeviceptr_v1 = u32;
pub type CUdevice = c_int;
pub type cuuint32_t = u32;
pub type cuuint64_t = u64;
pub type CUtexObject = u64;
pub type CUsurfObject = u64;
pub type CUgraphConditionalHandle = u64;
pub type CUmemGenericAllocationHandle = u64;
pub type CUlogIterator = c_uint;
pub type CUlogicalEndpointId = u32;
pub type EGLint = i32;
pub type GLenum = c_uint;
pub type GLuint = c_uint;
pub type VdpDevice = u32;
pub type VdpVideoSurface = u32;
pub type VdpOutputSurface = u32;
pub type CUoutput_mode = c_uint;

macro_rules! handles {
    ($($name:ident)*) => { $(pub type $name = *mut c_void;)* };
}
handles! {
    CUarray CUasyncCallbackHandle CUcheckpointOperationHandle CUcontext CUcoredumpCallbackHandle
    CUdevResourceDesc CUeglStreamConnection CUevent CUexternalMemory CUexternalSemaphore CUfunction
    CUgraph CUgraphExec CUgraphNode CUgraphicsResource CUgreenCtx CUkernel CUlibrary CUlinkState
    CUlogsCallbackHandle CUmemoryPool CUmipmappedArray CUmodule CUstream CUsurfref CUtexref CUuserObject
    EGLImageKHR EGLStreamKHR EGLSyncKHR
}

macro_rules! enums {
    ($($name:ident)*) => { $(pub type $name = c_uint;)* };
}
enums! {
    CUGLDeviceList CUaddress_mode CUarray_format CUatomicOperation CUcoredumpSettings CUdevResourceType
    CUdevice_P2PAttribute CUdevice_attribute CUdriverProcAddressQueryResult CUexecAffinityType
    CUfilter_mode CUflushGPUDirectRDMAWritesScope CUflushGPUDirectRDMAWritesTarget CUfunc_cache
    CUfunctionLoadingState CUfunction_attribute CUgraphExecUpdateResult CUgraphMem_attribute
    CUgraphNodeType CUjitInputType CUjit_option CUkernelNodeAttrID CUlibraryOption CUlimit
    CUlogicalEndpointIpcHandleType CUmemAccess_flags CUmemAllocationGranularity_flags
    CUmemAllocationHandleType CUmemAllocationType CUmemPool_attribute CUmemRangeHandleType CUmem_advise
    CUmem_range_attribute CUmoduleLoadingMode CUmulticastGranularity_flags CUpointer_attribute
    CUprocessState CUresult CUsharedconfig CUstreamAttrID CUstreamCaptureMode CUstreamCaptureStatus
    CUtensorMapAllocClass CUtensorMapDataType CUtensorMapFloatOOBfill CUtensorMapIm2ColWideMode
    CUtensorMapInterleave CUtensorMapL2promotion CUtensorMapSwizzle
}

/// Callbacks are addresses: who calls them declares their type.
macro_rules! callbacks {
    ($($name:ident)*) => { $(pub type $name = *mut c_void;)* };
}
callbacks! {
    CUasyncCallback CUcoredumpStatusCallback CUgraphRecaptureCallback CUhostFn CUlogsCallback
    CUoccupancyB2DSize CUstreamCallback VdpGetProcAddress
}

macro_rules! opaque {
    ($($name:ident $size:literal $align:literal;)*) => { $(
        #[repr(C, align($align))]
        #[derive(Clone, Copy)]
        pub struct $name([u8; $size]);
        const _: () = assert!(size_of::<$name>() == $size);
    )* };
}
opaque! {
    CUDA_BATCH_MEM_OP_NODE_PARAMS 32 8;
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC 88 8;
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC 104 8;
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC 120 8;
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC 96 8;
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS 144 8;
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS 144 8;
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS 24 8;
    CUDA_EXT_SEM_WAIT_NODE_PARAMS 24 8;
    CUDA_FABRIC_COPY_BATCH_OP 64 8;
    CUDA_MEMCPY3D_BATCH_OP 112 8;
    CUDA_RESOURCE_DESC 144 8;
    CUDA_RESOURCE_VIEW_DESC 112 8;
    CUDA_TEXTURE_DESC 104 4;
    CU_DEV_SM_RESOURCE_GROUP_PARAMS 64 4;
    CUcheckpointCheckpointArgs 64 8;
    CUcheckpointLockArgs 64 8;
    CUcheckpointRestoreArgs 64 8;
    CUcheckpointUnlockArgs 64 8;
    CUcliqueInfo 8 4;
    CUdevResource 144 8;
    CUexecAffinityParam 8 4;
    CUkernelNodeAttrValue 64 8;
    CUlogicalEndpointProp 24 8;
    CUmemDecompressParams 64 8;
    CUmemcpyAttributes 24 4;
    CUstreamAttrValue 64 8;
    CUstreamBatchMemOpParams 48 8;
    CUstreamCigCaptureParams 8 8;
    CUtensorMap 128 128;
    CUeglFrame 64 8;
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CUuuid {
    pub bytes: [u8; 16],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUipcMemHandle {
    pub reserved: [u8; 64],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUipcEventHandle {
    pub reserved: [u8; 64],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUmemPoolPtrExportData {
    pub reserved: [u8; 64],
}

/// `kind` is `CUmemLocationType`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CUmemLocation {
    pub kind: c_uint,
    pub id: c_int,
}
pub const CU_MEM_LOCATION_TYPE_DEVICE: c_uint = 1;
pub const CU_MEM_LOCATION_TYPE_HOST: c_uint = 2;
pub const CU_MEM_LOCATION_TYPE_HOST_NUMA: c_uint = 3;
pub const CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: c_uint = 4;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUmemAllocationProp {
    pub kind: c_uint,
    pub requestedHandleTypes: c_uint,
    pub location: CUmemLocation,
    pub win32HandleMetaData: *mut c_void,
    pub compressionType: c_uchar,
    pub gpuDirectRDMACapable: c_uchar,
    pub usage: c_ushort,
    pub reserved: [u8; 4],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUmemAccessDesc {
    pub location: CUmemLocation,
    pub flags: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUmemPoolProps {
    pub allocType: c_uint,
    pub handleTypes: c_uint,
    pub location: CUmemLocation,
    pub win32SecurityAttributes: *mut c_void,
    pub maxSize: usize,
    pub usage: c_ushort,
    pub reserved: [u8; 54],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUmulticastObjectProp {
    pub numDevices: c_uint,
    pub size: usize,
    pub handleTypes: c_ulonglong,
    pub flags: c_ulonglong,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUlaunchConfig {
    pub gridDimX: c_uint,
    pub gridDimY: c_uint,
    pub gridDimZ: c_uint,
    pub blockDimX: c_uint,
    pub blockDimY: c_uint,
    pub blockDimZ: c_uint,
    pub sharedMemBytes: c_uint,
    pub hStream: CUstream,
    pub attrs: *mut c_void,
    pub numAttrs: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_LAUNCH_PARAMS {
    pub function: CUfunction,
    pub gridDimX: c_uint,
    pub gridDimY: c_uint,
    pub gridDimZ: c_uint,
    pub blockDimX: c_uint,
    pub blockDimY: c_uint,
    pub blockDimZ: c_uint,
    pub sharedMemBytes: c_uint,
    pub hStream: CUstream,
    pub kernelParams: *mut *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUctxCreateParams {
    pub execAffinityParams: *mut CUexecAffinityParam,
    pub numExecAffinityParams: c_int,
    pub cigParams: *mut c_void,
}

/// The legacy `cuDeviceGetProperties` block.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUdevprop {
    pub maxThreadsPerBlock: c_int,
    pub maxThreadsDim: [c_int; 3],
    pub maxGridSize: [c_int; 3],
    pub sharedMemPerBlock: c_int,
    pub totalConstantMemory: c_int,
    pub SIMDWidth: c_int,
    pub memPitch: c_int,
    pub regsPerBlock: c_int,
    pub clockRate: c_int,
    pub textureAlign: c_int,
}

/// `CUmemorytype` values.
pub const CU_MEMORYTYPE_HOST: c_uint = 1;
pub const CU_MEMORYTYPE_DEVICE: c_uint = 2;
pub const CU_MEMORYTYPE_ARRAY: c_uint = 3;
pub const CU_MEMORYTYPE_UNIFIED: c_uint = 4;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_MEMCPY2D {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcMemoryType: c_uint,
    pub srcHost: *const c_void,
    pub srcDevice: CUdeviceptr,
    pub srcArray: CUarray,
    pub srcPitch: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstMemoryType: c_uint,
    pub dstHost: *mut c_void,
    pub dstDevice: CUdeviceptr,
    pub dstArray: CUarray,
    pub dstPitch: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_MEMCPY3D {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcZ: usize,
    pub srcLOD: usize,
    pub srcMemoryType: c_uint,
    pub srcHost: *const c_void,
    pub srcDevice: CUdeviceptr,
    pub srcArray: CUarray,
    pub reserved0: *mut c_void,
    pub srcPitch: usize,
    pub srcHeight: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstZ: usize,
    pub dstLOD: usize,
    pub dstMemoryType: c_uint,
    pub dstHost: *mut c_void,
    pub dstDevice: CUdeviceptr,
    pub dstArray: CUarray,
    pub reserved1: *mut c_void,
    pub dstPitch: usize,
    pub dstHeight: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
    pub Depth: usize,
}

/// As [`CUDA_MEMCPY3D`], with a context in place of each reserved word.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_MEMCPY3D_PEER {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcZ: usize,
    pub srcLOD: usize,
    pub srcMemoryType: c_uint,
    pub srcHost: *const c_void,
    pub srcDevice: CUdeviceptr,
    pub srcArray: CUarray,
    pub srcContext: CUcontext,
    pub srcPitch: usize,
    pub srcHeight: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstZ: usize,
    pub dstLOD: usize,
    pub dstMemoryType: c_uint,
    pub dstHost: *mut c_void,
    pub dstDevice: CUdeviceptr,
    pub dstArray: CUarray,
    pub dstContext: CUcontext,
    pub dstPitch: usize,
    pub dstHeight: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
    pub Depth: usize,
}

/// The default stream of the calling thread's current context.
pub const CU_STREAM_LEGACY: CUstream = 1 as CUstream;
/// The default stream of the calling thread.
pub const CU_STREAM_PER_THREAD: CUstream = 2 as CUstream;

macro_rules! sizes {
    ($($name:ident $size:literal;)*) => { $(const _: () = assert!(size_of::<$name>() == $size);)* };
}
// As sizeof says with cuda.h 13.5.
sizes! {
    CUDA_ARRAY3D_DESCRIPTOR 40;
    CUDA_ARRAY3D_DESCRIPTOR_v1 24;
    CUDA_ARRAY_DESCRIPTOR_v1 16;
    CUDA_ARRAY_SPARSE_PROPERTIES 48;
    CUarrayMapInfo 96;
    CUDA_ARRAY_DESCRIPTOR 24;
    CUDA_ARRAY_MEMORY_REQUIREMENTS 32;
    CUDA_GRAPH_INSTANTIATE_PARAMS 32;
    CUDA_HOST_NODE_PARAMS 16;
    CUDA_KERNEL_NODE_PARAMS 72;
    CUDA_KERNEL_NODE_PARAMS_v1 56;
    CUDA_LAUNCH_PARAMS 56;
    CUDA_MEMCPY2D 128;
    CUDA_MEMCPY3D 200;
    CUDA_MEMCPY3D_PEER 200;
    CUDA_MEMCPY_NODE_PARAMS 216;
    CUDA_MEMSET_NODE_PARAMS 40;
    CUDA_MEM_ALLOC_NODE_PARAMS 120;
    CUctxCreateParams 24;
    CUdevprop 56;
    CUgraphEdgeData 8;
    CUgraphExecUpdateResultInfo 24;
    CUgraphNodeParams 256;
    CUipcEventHandle 64;
    CUipcMemHandle 64;
    CUlaunchConfig 56;
    CUmemAccessDesc 12;
    CUmemAllocationProp 32;
    CUmemLocation 8;
    CUmemPoolProps 88;
    CUmemPoolPtrExportData 64;
    CUmulticastObjectProp 32;
    CUuuid 16;
}

opaque! {
    CUDA_MEMCPY2D_v1 96 8;
    CUDA_MEMCPY3D_v1 144 8;
}
