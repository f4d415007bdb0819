//! THE table: every driver function anybody resolves, one row each.
//!
//! A row reads
//! ```text
//! Class(handler) Name("cuBase")(argument: Type, …) [symbol VERSION StreamApi, …];
//! ```
//! `handler` is `forward` (nothing is decided, the call jumps on to the real driver) or
//! `module::function`, a hook in `shim/src/hooks/`. `Name` is unique; `cuBase` is what programs ask
//! `cuGetProcAddress` for, and a symbol answers from its VERSION on (cudaTypedefs.h numbers them:
//! 11020 is CUDA 11.2). The `_ptsz`/`_ptds` twin of a symbol is the same function whose default stream is
//! the calling thread's own.
//!
//! Adding a function = a row here, a handler in the shim if it charges or counts, an implementation in
//! `simgpu/src/cuda` if the stand-in has it. Names and prototypes are checked against cuda.h of several
//! releases by the header oracle in `tests/`.

use crate::names::{Names, length};
pub use crate::row::{Class, Row, StreamApi, Symbol};

/// Expands `$each! { row; row; … }` with every row of the table. Take `$arguments:tt` and
/// `$handler:tt` where rows and symbols are walked together: a group may be repeated, its parts not.
#[macro_export]
macro_rules! functions {
    ($each:ident) => {
        $each! {
            // Alloc
            Alloc(array::create_3d_v1) cuArray3DCreate("cuArray3DCreate")(pHandle: *mut CUarray, pAllocateArray: *const CUDA_ARRAY3D_DESCRIPTOR_v1) [cuArray3DCreate 2000 Legacy];
            Alloc(array::create_3d) cuArray3DCreate_v2("cuArray3DCreate")(pHandle: *mut CUarray, pAllocateArray: *const CUDA_ARRAY3D_DESCRIPTOR) [cuArray3DCreate_v2 3020 Legacy];
            Alloc(array::create_v1) cuArrayCreate("cuArrayCreate")(pHandle: *mut CUarray, pAllocateArray: *const CUDA_ARRAY_DESCRIPTOR_v1) [cuArrayCreate 2000 Legacy];
            Alloc(array::create) cuArrayCreate_v2("cuArrayCreate")(pHandle: *mut CUarray, pAllocateArray: *const CUDA_ARRAY_DESCRIPTOR) [cuArrayCreate_v2 3020 Legacy];
            Alloc(context::create) cuCtxCreate("cuCtxCreate")(pctx: *mut CUcontext, flags: c_uint, dev: CUdevice) [cuCtxCreate 2000 Legacy];
            Alloc(context::create) cuCtxCreate_v2("cuCtxCreate")(pctx: *mut CUcontext, flags: c_uint, dev: CUdevice) [cuCtxCreate_v2 3020 Legacy];
            Alloc(context::create_v3) cuCtxCreate_v3("cuCtxCreate")(pctx: *mut CUcontext, paramsArray: *mut CUexecAffinityParam, numParams: c_int, flags: c_uint, dev: CUdevice) [cuCtxCreate_v3 11040 Legacy];
            Alloc(context::create_v4) cuCtxCreate_v4("cuCtxCreate")(pctx: *mut CUcontext, ctxCreateParams: *mut CUctxCreateParams, flags: c_uint, dev: CUdevice) [cuCtxCreate_v4 12050 Legacy];
            Alloc(context::from_green) cuCtxFromGreenCtx("cuCtxFromGreenCtx")(pContext: *mut CUcontext, hCtx: CUgreenCtx) [cuCtxFromGreenCtx 12040 Legacy];
            Alloc(forward) cuCtxSetLimit("cuCtxSetLimit")(limit: CUlimit, value: usize) [cuCtxSetLimit 3010 Legacy];
            Alloc(graph::trim) cuDeviceGraphMemTrim("cuDeviceGraphMemTrim")(device: CUdevice) [cuDeviceGraphMemTrim 11040 Legacy];
            Alloc(context::retain) cuDevicePrimaryCtxRetain("cuDevicePrimaryCtxRetain")(pctx: *mut CUcontext, dev: CUdevice) [cuDevicePrimaryCtxRetain 7000 Legacy];
            Alloc(forward) cuExternalMemoryGetMappedBuffer("cuExternalMemoryGetMappedBuffer")(devPtr: *mut CUdeviceptr, extMem: CUexternalMemory, bufferDesc: *const CUDA_EXTERNAL_MEMORY_BUFFER_DESC) [cuExternalMemoryGetMappedBuffer 10000 Legacy];
            Alloc(forward) cuExternalMemoryGetMappedMipmappedArray("cuExternalMemoryGetMappedMipmappedArray")(mipmap: *mut CUmipmappedArray, extMem: CUexternalMemory, mipmapDesc: *const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC) [cuExternalMemoryGetMappedMipmappedArray 10000 Legacy];
            Alloc(forward) cuFuncLoad("cuFuncLoad")(function: CUfunction) [cuFuncLoad 12040 Legacy];
            Alloc(context::create) cuGLCtxCreate("cuGLCtxCreate")(pCtx: *mut CUcontext, Flags: c_uint, device: CUdevice) [cuGLCtxCreate 2000 Legacy];
            Alloc(context::create) cuGLCtxCreate_v2("cuGLCtxCreate")(pCtx: *mut CUcontext, Flags: c_uint, device: CUdevice) [cuGLCtxCreate_v2 3020 Legacy];
            Alloc(forward) cuGraphAddMemAllocNode("cuGraphAddMemAllocNode")(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, nodeParams: *mut CUDA_MEM_ALLOC_NODE_PARAMS) [cuGraphAddMemAllocNode 11040 Legacy];
            Alloc(forward) cuGraphAddNode("cuGraphAddNode")(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, nodeParams: *mut CUgraphNodeParams) [cuGraphAddNode 12020 Legacy];
            Alloc(forward) cuGraphAddNode_v2("cuGraphAddNode")(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, dependencyData: *const CUgraphEdgeData, numDependencies: usize, nodeParams: *mut CUgraphNodeParams) [cuGraphAddNode_v2 12030 Legacy];
            Alloc(forward) cuGraphAddNode_v3("cuGraphAddNode")(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, dependencyData: *const CUgraphEdgeData, numDependencies: usize, nodeParams: *mut CUgraphNodeParams) [cuGraphAddNode_v3 13040 Legacy];
            Alloc(graph::instantiate) cuGraphInstantiate("cuGraphInstantiate")(phGraphExec: *mut CUgraphExec, hGraph: CUgraph, phErrorNode: *mut CUgraphNode, logBuffer: *mut c_char, bufferSize: usize) [cuGraphInstantiate 10000 Legacy];
            Alloc(graph::instantiate) cuGraphInstantiate_v2("cuGraphInstantiate")(phGraphExec: *mut CUgraphExec, hGraph: CUgraph, phErrorNode: *mut CUgraphNode, logBuffer: *mut c_char, bufferSize: usize) [cuGraphInstantiate_v2 11000 Legacy];
            Alloc(graph::instantiate_with_flags) cuGraphInstantiateWithFlags("cuGraphInstantiateWithFlags")(phGraphExec: *mut CUgraphExec, hGraph: CUgraph, flags: c_ulonglong) [cuGraphInstantiateWithFlags 11040 Legacy];
            Alloc(graph::instantiate_with_params) cuGraphInstantiateWithParams("cuGraphInstantiateWithParams")(phGraphExec: *mut CUgraphExec, hGraph: CUgraph, instantiateParams: *mut CUDA_GRAPH_INSTANTIATE_PARAMS) [cuGraphInstantiateWithParams 12000 Legacy, cuGraphInstantiateWithParams_ptsz 12000 PerThread];
            Alloc(graph::upload) cuGraphUpload("cuGraphUpload")(hGraphExec: CUgraphExec, hStream: CUstream) [cuGraphUpload 11010 Legacy, cuGraphUpload_ptsz 11010 PerThread];
            Alloc(context::create_green) cuGreenCtxCreate("cuGreenCtxCreate")(phCtx: *mut CUgreenCtx, desc: CUdevResourceDesc, dev: CUdevice, flags: c_uint) [cuGreenCtxCreate 12040 Legacy];
            Alloc(forward) cuImportExternalMemory("cuImportExternalMemory")(extMem_out: *mut CUexternalMemory, memHandleDesc: *const CUDA_EXTERNAL_MEMORY_HANDLE_DESC) [cuImportExternalMemory 10000 Legacy];
            Alloc(exposure::ipc) cuIpcGetMemHandle("cuIpcGetMemHandle")(pHandle: *mut CUipcMemHandle, dptr: CUdeviceptr) [cuIpcGetMemHandle 4010 Legacy];
            Alloc(forward) cuIpcOpenMemHandle("cuIpcOpenMemHandle")(pdptr: *mut CUdeviceptr, handle: CUipcMemHandle, Flags: c_uint) [cuIpcOpenMemHandle 4010 Legacy];
            Alloc(forward) cuIpcOpenMemHandle_v2("cuIpcOpenMemHandle")(pdptr: *mut CUdeviceptr, handle: CUipcMemHandle, Flags: c_uint) [cuIpcOpenMemHandle_v2 11000 Legacy];
            Alloc(forward) cuLibraryLoadData("cuLibraryLoadData")(library: *mut CUlibrary, code: *const c_void, jitOptions: *mut CUjit_option, jitOptionsValues: *mut *mut c_void, numJitOptions: c_uint, libraryOptions: *mut CUlibraryOption, libraryOptionValues: *mut *mut c_void, numLibraryOptions: c_uint) [cuLibraryLoadData 12000 Legacy];
            Alloc(forward) cuLibraryLoadFromFile("cuLibraryLoadFromFile")(library: *mut CUlibrary, fileName: *const c_char, jitOptions: *mut CUjit_option, jitOptionsValues: *mut *mut c_void, numJitOptions: c_uint, libraryOptions: *mut CUlibraryOption, libraryOptionValues: *mut *mut c_void, numLibraryOptions: c_uint) [cuLibraryLoadFromFile 12000 Legacy];
            Alloc(forward) cuLinkComplete("cuLinkComplete")(state: CUlinkState, cubinOut: *mut *mut c_void, sizeOut: *mut usize) [cuLinkComplete 5050 Legacy];
            Alloc(exposure::bind_endpoint) cuLogicalEndpointBindAddr("cuLogicalEndpointBindAddr")(leId: CUlogicalEndpointId, dev: CUdevice, offset: cuuint64_t, ptr: *mut c_void, size: cuuint64_t, flags: c_ulonglong) [cuLogicalEndpointBindAddr 13030 Legacy];
            Alloc(forward) cuLogicalEndpointBindMem("cuLogicalEndpointBindMem")(leId: CUlogicalEndpointId, dev: CUdevice, offset: cuuint64_t, memHandle: CUmemGenericAllocationHandle, memOffset: cuuint64_t, size: cuuint64_t, flags: c_ulonglong) [cuLogicalEndpointBindMem 13030 Legacy];
            Alloc(forward) cuLogicalEndpointCreate("cuLogicalEndpointCreate")(leId: CUlogicalEndpointId, prop: *const CUlogicalEndpointProp) [cuLogicalEndpointCreate 13030 Legacy];
            Alloc(forward) cuLogicalEndpointImport("cuLogicalEndpointImport")(leId: CUlogicalEndpointId, handle: *const c_void, handleType: CUlogicalEndpointIpcHandleType) [cuLogicalEndpointImport 13030 Legacy];
            Alloc(forward) cuMemAddressReserve("cuMemAddressReserve")(ptr: *mut CUdeviceptr, size: usize, alignment: usize, addr: CUdeviceptr, flags: c_ulonglong) [cuMemAddressReserve 10020 Legacy];
            Alloc(memory::alloc_v1) cuMemAlloc("cuMemAlloc")(dptr: *mut CUdeviceptr_v1, bytesize: c_uint) [cuMemAlloc 2000 Legacy];
            Alloc(memory::alloc) cuMemAlloc_v2("cuMemAlloc")(dptr: *mut CUdeviceptr, bytesize: usize) [cuMemAlloc_v2 3020 Legacy];
            Alloc(pool::alloc) cuMemAllocAsync("cuMemAllocAsync")(dptr: *mut CUdeviceptr, bytesize: usize, hStream: CUstream) [cuMemAllocAsync 11020 Legacy, cuMemAllocAsync_ptsz 11020 PerThread];
            Alloc(pool::alloc_from) cuMemAllocFromPoolAsync("cuMemAllocFromPoolAsync")(dptr: *mut CUdeviceptr, bytesize: usize, pool: CUmemoryPool, hStream: CUstream) [cuMemAllocFromPoolAsync 11020 Legacy, cuMemAllocFromPoolAsync_ptsz 11020 PerThread];
            Alloc(host::alloc_v1) cuMemAllocHost("cuMemAllocHost")(pp: *mut *mut c_void, bytesize: c_uint) [cuMemAllocHost 2000 Legacy];
            Alloc(host::alloc) cuMemAllocHost_v2("cuMemAllocHost")(pp: *mut *mut c_void, bytesize: usize) [cuMemAllocHost_v2 3020 Legacy];
            Alloc(memory::alloc_managed) cuMemAllocManaged("cuMemAllocManaged")(dptr: *mut CUdeviceptr, bytesize: usize, flags: c_uint) [cuMemAllocManaged 6000 Legacy];
            Alloc(memory::alloc_pitch_v1) cuMemAllocPitch("cuMemAllocPitch")(dptr: *mut CUdeviceptr_v1, pPitch: *mut c_uint, WidthInBytes: c_uint, Height: c_uint, ElementSizeBytes: c_uint) [cuMemAllocPitch 2000 Legacy];
            Alloc(memory::alloc_pitch) cuMemAllocPitch_v2("cuMemAllocPitch")(dptr: *mut CUdeviceptr, pPitch: *mut usize, WidthInBytes: usize, Height: usize, ElementSizeBytes: c_uint) [cuMemAllocPitch_v2 3020 Legacy];
            Alloc(vmm::create) cuMemCreate("cuMemCreate")(handle: *mut CUmemGenericAllocationHandle, size: usize, prop: *const CUmemAllocationProp, flags: c_ulonglong) [cuMemCreate 10020 Legacy];
            Alloc(forward) cuMemExportToShareableHandle("cuMemExportToShareableHandle")(shareableHandle: *mut c_void, handle: CUmemGenericAllocationHandle, handleType: CUmemAllocationHandleType, flags: c_ulonglong) [cuMemExportToShareableHandle 10020 Legacy];
            Alloc(exposure::range) cuMemGetHandleForAddressRange("cuMemGetHandleForAddressRange")(handle: *mut c_void, dptr: CUdeviceptr, size: usize, handleType: CUmemRangeHandleType, flags: c_ulonglong) [cuMemGetHandleForAddressRange 11070 Legacy];
            Alloc(host::alloc_with_flags) cuMemHostAlloc("cuMemHostAlloc")(pp: *mut *mut c_void, bytesize: usize, Flags: c_uint) [cuMemHostAlloc 2020 Legacy];
            Alloc(host::register) cuMemHostRegister("cuMemHostRegister")(p: *mut c_void, bytesize: usize, Flags: c_uint) [cuMemHostRegister 4000 Legacy];
            Alloc(host::register) cuMemHostRegister_v2("cuMemHostRegister")(p: *mut c_void, bytesize: usize, Flags: c_uint) [cuMemHostRegister_v2 6050 Legacy];
            Alloc(vmm::import) cuMemImportFromShareableHandle("cuMemImportFromShareableHandle")(handle: *mut CUmemGenericAllocationHandle, osHandle: *mut c_void, shHandleType: CUmemAllocationHandleType) [cuMemImportFromShareableHandle 10020 Legacy];
            Alloc(vmm::map) cuMemMap("cuMemMap")(ptr: CUdeviceptr, size: usize, offset: usize, handle: CUmemGenericAllocationHandle, flags: c_ulonglong) [cuMemMap 10020 Legacy];
            Alloc(pool::create) cuMemPoolCreate("cuMemPoolCreate")(pool: *mut CUmemoryPool, poolProps: *const CUmemPoolProps) [cuMemPoolCreate 11020 Legacy];
            Alloc(forward) cuMemPoolExportPointer("cuMemPoolExportPointer")(shareData_out: *mut CUmemPoolPtrExportData, ptr: CUdeviceptr) [cuMemPoolExportPointer 11020 Legacy];
            Alloc(forward) cuMemPoolExportToShareableHandle("cuMemPoolExportToShareableHandle")(handle_out: *mut c_void, pool: CUmemoryPool, handleType: CUmemAllocationHandleType, flags: c_ulonglong) [cuMemPoolExportToShareableHandle 11020 Legacy];
            Alloc(pool::import) cuMemPoolImportFromShareableHandle("cuMemPoolImportFromShareableHandle")(pool_out: *mut CUmemoryPool, handle: *mut c_void, handleType: CUmemAllocationHandleType, flags: c_ulonglong) [cuMemPoolImportFromShareableHandle 11020 Legacy];
            Alloc(forward) cuMemPoolImportPointer("cuMemPoolImportPointer")(ptr_out: *mut CUdeviceptr, pool: CUmemoryPool, shareData: *mut CUmemPoolPtrExportData) [cuMemPoolImportPointer 11020 Legacy];
            Alloc(vmm::retain) cuMemRetainAllocationHandle("cuMemRetainAllocationHandle")(handle: *mut CUmemGenericAllocationHandle, addr: *mut c_void) [cuMemRetainAllocationHandle 11000 Legacy];
            Alloc(array::create_mipmapped) cuMipmappedArrayCreate("cuMipmappedArrayCreate")(pHandle: *mut CUmipmappedArray, pMipmappedArrayDesc: *const CUDA_ARRAY3D_DESCRIPTOR, numMipmapLevels: c_uint) [cuMipmappedArrayCreate 5000 Legacy];
            Alloc(forward) cuModuleLoad("cuModuleLoad")(module: *mut CUmodule, fname: *const c_char) [cuModuleLoad 2000 Legacy];
            Alloc(forward) cuModuleLoadData("cuModuleLoadData")(module: *mut CUmodule, image: *const c_void) [cuModuleLoadData 2000 Legacy];
            Alloc(forward) cuModuleLoadDataEx("cuModuleLoadDataEx")(module: *mut CUmodule, image: *const c_void, numOptions: c_uint, options: *mut CUjit_option, optionValues: *mut *mut c_void) [cuModuleLoadDataEx 2010 Legacy];
            Alloc(forward) cuModuleLoadFatBinary("cuModuleLoadFatBinary")(module: *mut CUmodule, fatCubin: *const c_void) [cuModuleLoadFatBinary 2000 Legacy];
            Alloc(exposure::bind_multicast) cuMulticastBindAddr("cuMulticastBindAddr")(mcHandle: CUmemGenericAllocationHandle, mcOffset: usize, memptr: CUdeviceptr, size: usize, flags: c_ulonglong) [cuMulticastBindAddr 12010 Legacy];
            Alloc(exposure::bind_multicast_v2) cuMulticastBindAddr_v2("cuMulticastBindAddr")(mcHandle: CUmemGenericAllocationHandle, dev: CUdevice, mcOffset: usize, memptr: CUdeviceptr, size: usize, flags: c_ulonglong) [cuMulticastBindAddr_v2 13010 Legacy];
            Alloc(forward) cuMulticastBindMem("cuMulticastBindMem")(mcHandle: CUmemGenericAllocationHandle, mcOffset: usize, memHandle: CUmemGenericAllocationHandle, memOffset: usize, size: usize, flags: c_ulonglong) [cuMulticastBindMem 12010 Legacy];
            Alloc(forward) cuMulticastBindMem_v2("cuMulticastBindMem")(mcHandle: CUmemGenericAllocationHandle, dev: CUdevice, mcOffset: usize, memHandle: CUmemGenericAllocationHandle, memOffset: usize, size: usize, flags: c_ulonglong) [cuMulticastBindMem_v2 13010 Legacy];
            Alloc(forward) cuMulticastCreate("cuMulticastCreate")(mcHandle: *mut CUmemGenericAllocationHandle, prop: *const CUmulticastObjectProp) [cuMulticastCreate 12010 Legacy];
            Alloc(context::create_vdpau) cuVDPAUCtxCreate("cuVDPAUCtxCreate")(pCtx: *mut CUcontext, flags: c_uint, device: CUdevice, vdpDevice: VdpDevice, vdpGetProcAddress: *mut VdpGetProcAddress) [cuVDPAUCtxCreate 3010 Legacy];
            Alloc(context::create_vdpau) cuVDPAUCtxCreate_v2("cuVDPAUCtxCreate")(pCtx: *mut CUcontext, flags: c_uint, device: CUdevice, vdpDevice: VdpDevice, vdpGetProcAddress: *mut VdpGetProcAddress) [cuVDPAUCtxCreate_v2 3020 Legacy];
            // Free
            Free(array::destroy) cuArrayDestroy("cuArrayDestroy")(hArray: CUarray) [cuArrayDestroy 2000 Legacy];
            Free(context::destroy) cuCtxDestroy("cuCtxDestroy")(ctx: CUcontext) [cuCtxDestroy 2000 Legacy];
            Free(context::destroy) cuCtxDestroy_v2("cuCtxDestroy")(ctx: CUcontext) [cuCtxDestroy_v2 4000 Legacy];
            Free(context::detach) cuCtxDetach("cuCtxDetach")(ctx: CUcontext) [cuCtxDetach 2000 Legacy];
            Free(forward) cuDestroyExternalMemory("cuDestroyExternalMemory")(extMem: CUexternalMemory) [cuDestroyExternalMemory 10000 Legacy];
            Free(context::release) cuDevicePrimaryCtxRelease("cuDevicePrimaryCtxRelease")(dev: CUdevice) [cuDevicePrimaryCtxRelease 7000 Legacy];
            Free(context::release) cuDevicePrimaryCtxRelease_v2("cuDevicePrimaryCtxRelease")(dev: CUdevice) [cuDevicePrimaryCtxRelease_v2 11000 Legacy];
            Free(context::reset) cuDevicePrimaryCtxReset("cuDevicePrimaryCtxReset")(dev: CUdevice) [cuDevicePrimaryCtxReset 7000 Legacy];
            Free(context::reset) cuDevicePrimaryCtxReset_v2("cuDevicePrimaryCtxReset")(dev: CUdevice) [cuDevicePrimaryCtxReset_v2 11000 Legacy];
            Free(forward) cuGraphAddMemFreeNode("cuGraphAddMemFreeNode")(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, dptr: CUdeviceptr) [cuGraphAddMemFreeNode 11040 Legacy];
            Free(forward) cuGraphDestroy("cuGraphDestroy")(hGraph: CUgraph) [cuGraphDestroy 10000 Legacy];
            Free(forward) cuGraphDestroyNode("cuGraphDestroyNode")(hNode: CUgraphNode) [cuGraphDestroyNode 10000 Legacy];
            Free(graph::destroy) cuGraphExecDestroy("cuGraphExecDestroy")(hGraphExec: CUgraphExec) [cuGraphExecDestroy 10000 Legacy];
            Free(context::destroy_green) cuGreenCtxDestroy("cuGreenCtxDestroy")(hCtx: CUgreenCtx) [cuGreenCtxDestroy 12040 Legacy];
            Free(forward) cuIpcCloseMemHandle("cuIpcCloseMemHandle")(dptr: CUdeviceptr) [cuIpcCloseMemHandle 4010 Legacy];
            Free(forward) cuLibraryUnload("cuLibraryUnload")(library: CUlibrary) [cuLibraryUnload 12000 Legacy];
            Free(forward) cuLogicalEndpointDestroy("cuLogicalEndpointDestroy")(leId: CUlogicalEndpointId) [cuLogicalEndpointDestroy 13030 Legacy];
            Free(forward) cuLogicalEndpointUnbind("cuLogicalEndpointUnbind")(leId: CUlogicalEndpointId, dev: CUdevice, offset: cuuint64_t, size: cuuint64_t) [cuLogicalEndpointUnbind 13030 Legacy];
            Free(forward) cuMemAddressFree("cuMemAddressFree")(ptr: CUdeviceptr, size: usize) [cuMemAddressFree 10020 Legacy];
            Free(memory::free_v1) cuMemFree("cuMemFree")(dptr: CUdeviceptr_v1) [cuMemFree 2000 Legacy];
            Free(memory::free) cuMemFree_v2("cuMemFree")(dptr: CUdeviceptr) [cuMemFree_v2 3020 Legacy];
            Free(pool::free) cuMemFreeAsync("cuMemFreeAsync")(dptr: CUdeviceptr, hStream: CUstream) [cuMemFreeAsync 11020 Legacy, cuMemFreeAsync_ptsz 11020 PerThread];
            Free(host::free) cuMemFreeHost("cuMemFreeHost")(p: *mut c_void) [cuMemFreeHost 2000 Legacy];
            Free(host::unregister) cuMemHostUnregister("cuMemHostUnregister")(p: *mut c_void) [cuMemHostUnregister 4000 Legacy];
            Free(pool::destroy) cuMemPoolDestroy("cuMemPoolDestroy")(pool: CUmemoryPool) [cuMemPoolDestroy 11020 Legacy];
            Free(pool::trim) cuMemPoolTrimTo("cuMemPoolTrimTo")(pool: CUmemoryPool, minBytesToKeep: usize) [cuMemPoolTrimTo 11020 Legacy];
            Free(vmm::release) cuMemRelease("cuMemRelease")(handle: CUmemGenericAllocationHandle) [cuMemRelease 10020 Legacy];
            Free(vmm::unmap) cuMemUnmap("cuMemUnmap")(ptr: CUdeviceptr, size: usize) [cuMemUnmap 10020 Legacy];
            Free(array::destroy_mipmapped) cuMipmappedArrayDestroy("cuMipmappedArrayDestroy")(hMipmappedArray: CUmipmappedArray) [cuMipmappedArrayDestroy 5000 Legacy];
            Free(forward) cuModuleUnload("cuModuleUnload")(hmod: CUmodule) [cuModuleUnload 2000 Legacy];
            Free(forward) cuMulticastUnbind("cuMulticastUnbind")(mcHandle: CUmemGenericAllocationHandle, dev: CUdevice, mcOffset: usize, size: usize) [cuMulticastUnbind 12010 Legacy];
            // Work
            Work(forward) cuCtxRecordEvent("cuCtxRecordEvent")(hCtx: CUcontext, hEvent: CUevent) [cuCtxRecordEvent 12050 Legacy];
            Work(forward) cuCtxWaitEvent("cuCtxWaitEvent")(hCtx: CUcontext, hEvent: CUevent) [cuCtxWaitEvent 12050 Legacy];
            Work(forward) cuEGLStreamConsumerAcquireFrame("cuEGLStreamConsumerAcquireFrame")(conn: *mut CUeglStreamConnection, pCudaResource: *mut CUgraphicsResource, pStream: *mut CUstream, timeout: c_uint) [cuEGLStreamConsumerAcquireFrame 7000 Legacy];
            Work(forward) cuEGLStreamConsumerConnect("cuEGLStreamConsumerConnect")(conn: *mut CUeglStreamConnection, stream: EGLStreamKHR) [cuEGLStreamConsumerConnect 7000 Legacy];
            Work(forward) cuEGLStreamConsumerConnectWithFlags("cuEGLStreamConsumerConnectWithFlags")(conn: *mut CUeglStreamConnection, stream: EGLStreamKHR, flags: c_uint) [cuEGLStreamConsumerConnectWithFlags 8000 Legacy];
            Work(forward) cuEGLStreamConsumerDisconnect("cuEGLStreamConsumerDisconnect")(conn: *mut CUeglStreamConnection) [cuEGLStreamConsumerDisconnect 7000 Legacy];
            Work(forward) cuEGLStreamConsumerReleaseFrame("cuEGLStreamConsumerReleaseFrame")(conn: *mut CUeglStreamConnection, pCudaResource: CUgraphicsResource, pStream: *mut CUstream) [cuEGLStreamConsumerReleaseFrame 7000 Legacy];
            Work(exposure::produce_frames) cuEGLStreamProducerConnect("cuEGLStreamProducerConnect")(conn: *mut CUeglStreamConnection, stream: EGLStreamKHR, width: EGLint, height: EGLint) [cuEGLStreamProducerConnect 7000 Legacy];
            Work(forward) cuEGLStreamProducerDisconnect("cuEGLStreamProducerDisconnect")(conn: *mut CUeglStreamConnection) [cuEGLStreamProducerDisconnect 7000 Legacy];
            Work(forward) cuEGLStreamProducerPresentFrame("cuEGLStreamProducerPresentFrame")(conn: *mut CUeglStreamConnection, eglframe: CUeglFrame, pStream: *mut CUstream) [cuEGLStreamProducerPresentFrame 7000 Legacy];
            Work(forward) cuEGLStreamProducerReturnFrame("cuEGLStreamProducerReturnFrame")(conn: *mut CUeglStreamConnection, eglframe: *mut CUeglFrame, pStream: *mut CUstream) [cuEGLStreamProducerReturnFrame 7000 Legacy];
            Work(forward) cuEventRecord("cuEventRecord")(hEvent: CUevent, hStream: CUstream) [cuEventRecord 2000 Legacy, cuEventRecord_ptsz 7000 PerThread];
            Work(forward) cuEventRecordWithFlags("cuEventRecordWithFlags")(hEvent: CUevent, hStream: CUstream, flags: c_uint) [cuEventRecordWithFlags 11010 Legacy, cuEventRecordWithFlags_ptsz 11010 PerThread];
            Work(forward) cuFabricCpyBatchAsync("cuFabricCpyBatchAsync")(numOps: usize, opList: *mut CUDA_FABRIC_COPY_BATCH_OP, flags: c_ulonglong, hStream: CUstream) [cuFabricCpyBatchAsync 13050 Legacy, cuFabricCpyBatchAsync_ptsz 13050 PerThread];
            Work(forward) cuGLMapBufferObject("cuGLMapBufferObject")(dptr: *mut CUdeviceptr_v1, size: *mut c_uint, buffer: GLuint) [cuGLMapBufferObject 2000 Legacy];
            Work(forward) cuGLMapBufferObject_v2("cuGLMapBufferObject")(dptr: *mut CUdeviceptr, size: *mut usize, buffer: GLuint) [cuGLMapBufferObject_v2 3020 Legacy, cuGLMapBufferObject_v2_ptds 7000 PerThread];
            Work(forward) cuGLMapBufferObjectAsync("cuGLMapBufferObjectAsync")(dptr: *mut CUdeviceptr_v1, size: *mut c_uint, buffer: GLuint, hStream: CUstream) [cuGLMapBufferObjectAsync 2030 Legacy];
            Work(forward) cuGLMapBufferObjectAsync_v2("cuGLMapBufferObjectAsync")(dptr: *mut CUdeviceptr, size: *mut usize, buffer: GLuint, hStream: CUstream) [cuGLMapBufferObjectAsync_v2 3020 Legacy, cuGLMapBufferObjectAsync_v2_ptsz 7000 PerThread];
            Work(forward) cuGLUnmapBufferObject("cuGLUnmapBufferObject")(buffer: GLuint) [cuGLUnmapBufferObject 2000 Legacy];
            Work(forward) cuGLUnmapBufferObjectAsync("cuGLUnmapBufferObjectAsync")(buffer: GLuint, hStream: CUstream) [cuGLUnmapBufferObjectAsync 2030 Legacy];
            Work(graph::launch) cuGraphLaunch("cuGraphLaunch")(hGraphExec: CUgraphExec, hStream: CUstream) [cuGraphLaunch 10000 Legacy, cuGraphLaunch_ptsz 10000 PerThread];
            Work(forward) cuGraphicsMapResources("cuGraphicsMapResources")(count: c_uint, resources: *mut CUgraphicsResource, hStream: CUstream) [cuGraphicsMapResources 3000 Legacy, cuGraphicsMapResources_ptsz 7000 PerThread];
            Work(forward) cuGraphicsUnmapResources("cuGraphicsUnmapResources")(count: c_uint, resources: *mut CUgraphicsResource, hStream: CUstream) [cuGraphicsUnmapResources 3000 Legacy, cuGraphicsUnmapResources_ptsz 7000 PerThread];
            Work(forward) cuGreenCtxRecordEvent("cuGreenCtxRecordEvent")(hCtx: CUgreenCtx, hEvent: CUevent) [cuGreenCtxRecordEvent 12040 Legacy];
            Work(forward) cuGreenCtxWaitEvent("cuGreenCtxWaitEvent")(hCtx: CUgreenCtx, hEvent: CUevent) [cuGreenCtxWaitEvent 12040 Legacy];
            Work(launch::count) cuLaunch("cuLaunch")(f: CUfunction) [cuLaunch 2000 Legacy];
            Work(launch::count) cuLaunchCooperativeKernel("cuLaunchCooperativeKernel")(f: CUfunction, gridDimX: c_uint, gridDimY: c_uint, gridDimZ: c_uint, blockDimX: c_uint, blockDimY: c_uint, blockDimZ: c_uint, sharedMemBytes: c_uint, hStream: CUstream, kernelParams: *mut *mut c_void) [cuLaunchCooperativeKernel 9000 Legacy, cuLaunchCooperativeKernel_ptsz 9000 PerThread];
            Work(launch::count) cuLaunchCooperativeKernelMultiDevice("cuLaunchCooperativeKernelMultiDevice")(launchParamsList: *mut CUDA_LAUNCH_PARAMS, numDevices: c_uint, flags: c_uint) [cuLaunchCooperativeKernelMultiDevice 9000 Legacy];
            Work(launch::count) cuLaunchGrid("cuLaunchGrid")(f: CUfunction, grid_width: c_int, grid_height: c_int) [cuLaunchGrid 2000 Legacy];
            Work(launch::count) cuLaunchGridAsync("cuLaunchGridAsync")(f: CUfunction, grid_width: c_int, grid_height: c_int, hStream: CUstream) [cuLaunchGridAsync 2000 Legacy];
            Work(forward) cuLaunchHostFunc("cuLaunchHostFunc")(hStream: CUstream, function: CUhostFn, userData: *mut c_void) [cuLaunchHostFunc 10000 Legacy, cuLaunchHostFunc_ptsz 10000 PerThread];
            Work(forward) cuLaunchHostFunc_v2("cuLaunchHostFunc")(hStream: CUstream, function: CUhostFn, userData: *mut c_void, syncMode: c_uint) [cuLaunchHostFunc_v2 13010 Legacy, cuLaunchHostFunc_v2_ptsz 13010 PerThread];
            Work(launch::count) cuLaunchKernel("cuLaunchKernel")(f: CUfunction, gridDimX: c_uint, gridDimY: c_uint, gridDimZ: c_uint, blockDimX: c_uint, blockDimY: c_uint, blockDimZ: c_uint, sharedMemBytes: c_uint, hStream: CUstream, kernelParams: *mut *mut c_void, extra: *mut *mut c_void) [cuLaunchKernel 4000 Legacy, cuLaunchKernel_ptsz 7000 PerThread];
            Work(launch::count) cuLaunchKernelEx("cuLaunchKernelEx")(config: *const CUlaunchConfig, f: CUfunction, kernelParams: *mut *mut c_void, extra: *mut *mut c_void) [cuLaunchKernelEx 11060 Legacy, cuLaunchKernelEx_ptsz 11060 PerThread];
            Work(forward) cuMemBatchDecompressAsync("cuMemBatchDecompressAsync")(paramsArray: *mut CUmemDecompressParams, count: usize, flags: c_uint, errorIndex: *mut usize, stream: CUstream) [cuMemBatchDecompressAsync 12060 Legacy, cuMemBatchDecompressAsync_ptsz 12060 PerThread];
            Work(forward) cuMemDiscardAndPrefetchBatchAsync("cuMemDiscardAndPrefetchBatchAsync")(dptrs: *mut CUdeviceptr, sizes: *mut usize, count: usize, prefetchLocs: *mut CUmemLocation, prefetchLocIdxs: *mut usize, numPrefetchLocs: usize, flags: c_ulonglong, hStream: CUstream) [cuMemDiscardAndPrefetchBatchAsync 13000 Legacy, cuMemDiscardAndPrefetchBatchAsync_ptsz 13000 PerThread];
            Work(forward) cuMemDiscardBatchAsync("cuMemDiscardBatchAsync")(dptrs: *mut CUdeviceptr, sizes: *mut usize, count: usize, flags: c_ulonglong, hStream: CUstream) [cuMemDiscardBatchAsync 13000 Legacy, cuMemDiscardBatchAsync_ptsz 13000 PerThread];
            Work(array::map) cuMemMapArrayAsync("cuMemMapArrayAsync")(mapInfoList: *mut CUarrayMapInfo, count: c_uint, hStream: CUstream) [cuMemMapArrayAsync 11010 Legacy, cuMemMapArrayAsync_ptsz 11010 PerThread];
            Work(forward) cuMemPrefetchAsync("cuMemPrefetchAsync")(devPtr: CUdeviceptr, count: usize, dstDevice: CUdevice, hStream: CUstream) [cuMemPrefetchAsync 8000 Legacy, cuMemPrefetchAsync_ptsz 8000 PerThread];
            Work(forward) cuMemPrefetchAsync_v2("cuMemPrefetchAsync")(devPtr: CUdeviceptr, count: usize, location: CUmemLocation, flags: c_uint, hStream: CUstream) [cuMemPrefetchAsync_v2 12020 Legacy, cuMemPrefetchAsync_v2_ptsz 12020 PerThread];
            Work(forward) cuMemPrefetchBatchAsync("cuMemPrefetchBatchAsync")(dptrs: *mut CUdeviceptr, sizes: *mut usize, count: usize, prefetchLocs: *mut CUmemLocation, prefetchLocIdxs: *mut usize, numPrefetchLocs: usize, flags: c_ulonglong, hStream: CUstream) [cuMemPrefetchBatchAsync 13000 Legacy, cuMemPrefetchBatchAsync_ptsz 13000 PerThread];
            Work(forward) cuMemcpy("cuMemcpy")(dst: CUdeviceptr, src: CUdeviceptr, ByteCount: usize) [cuMemcpy 4000 Legacy, cuMemcpy_ptds 7000 PerThread];
            Work(forward) cuMemcpy2D("cuMemcpy2D")(pCopy: *const CUDA_MEMCPY2D_v1) [cuMemcpy2D 2000 Legacy];
            Work(forward) cuMemcpy2D_v2("cuMemcpy2D")(pCopy: *const CUDA_MEMCPY2D) [cuMemcpy2D_v2 3020 Legacy, cuMemcpy2D_v2_ptds 7000 PerThread];
            Work(forward) cuMemcpy2DAsync("cuMemcpy2DAsync")(pCopy: *const CUDA_MEMCPY2D_v1, hStream: CUstream) [cuMemcpy2DAsync 2000 Legacy];
            Work(forward) cuMemcpy2DAsync_v2("cuMemcpy2DAsync")(pCopy: *const CUDA_MEMCPY2D, hStream: CUstream) [cuMemcpy2DAsync_v2 3020 Legacy, cuMemcpy2DAsync_v2_ptsz 7000 PerThread];
            Work(forward) cuMemcpy2DUnaligned("cuMemcpy2DUnaligned")(pCopy: *const CUDA_MEMCPY2D_v1) [cuMemcpy2DUnaligned 2000 Legacy];
            Work(forward) cuMemcpy2DUnaligned_v2("cuMemcpy2DUnaligned")(pCopy: *const CUDA_MEMCPY2D) [cuMemcpy2DUnaligned_v2 3020 Legacy, cuMemcpy2DUnaligned_v2_ptds 7000 PerThread];
            Work(forward) cuMemcpy3D("cuMemcpy3D")(pCopy: *const CUDA_MEMCPY3D_v1) [cuMemcpy3D 2000 Legacy];
            Work(forward) cuMemcpy3D_v2("cuMemcpy3D")(pCopy: *const CUDA_MEMCPY3D) [cuMemcpy3D_v2 3020 Legacy, cuMemcpy3D_v2_ptds 7000 PerThread];
            Work(forward) cuMemcpy3DAsync("cuMemcpy3DAsync")(pCopy: *const CUDA_MEMCPY3D_v1, hStream: CUstream) [cuMemcpy3DAsync 2000 Legacy];
            Work(forward) cuMemcpy3DAsync_v2("cuMemcpy3DAsync")(pCopy: *const CUDA_MEMCPY3D, hStream: CUstream) [cuMemcpy3DAsync_v2 3020 Legacy, cuMemcpy3DAsync_v2_ptsz 7000 PerThread];
            Work(forward) cuMemcpy3DBatchAsync("cuMemcpy3DBatchAsync")(numOps: usize, opList: *mut CUDA_MEMCPY3D_BATCH_OP, failIdx: *mut usize, flags: c_ulonglong, hStream: CUstream) [cuMemcpy3DBatchAsync 12080 Legacy, cuMemcpy3DBatchAsync_ptsz 12080 PerThread];
            Work(forward) cuMemcpy3DBatchAsync_v2("cuMemcpy3DBatchAsync")(numOps: usize, opList: *mut CUDA_MEMCPY3D_BATCH_OP, flags: c_ulonglong, hStream: CUstream) [cuMemcpy3DBatchAsync_v2 13000 Legacy, cuMemcpy3DBatchAsync_v2_ptsz 13000 PerThread];
            Work(forward) cuMemcpy3DPeer("cuMemcpy3DPeer")(pCopy: *const CUDA_MEMCPY3D_PEER) [cuMemcpy3DPeer 4000 Legacy, cuMemcpy3DPeer_ptds 7000 PerThread];
            Work(forward) cuMemcpy3DPeerAsync("cuMemcpy3DPeerAsync")(pCopy: *const CUDA_MEMCPY3D_PEER, hStream: CUstream) [cuMemcpy3DPeerAsync 4000 Legacy, cuMemcpy3DPeerAsync_ptsz 7000 PerThread];
            Work(forward) cuMemcpy3DWithAttributesAsync("cuMemcpy3DWithAttributesAsync")(op: *mut CUDA_MEMCPY3D_BATCH_OP, flags: c_ulonglong, hStream: CUstream) [cuMemcpy3DWithAttributesAsync 13020 Legacy, cuMemcpy3DWithAttributesAsync_ptsz 13020 PerThread];
            Work(forward) cuMemcpyAsync("cuMemcpyAsync")(dst: CUdeviceptr, src: CUdeviceptr, ByteCount: usize, hStream: CUstream) [cuMemcpyAsync 4000 Legacy, cuMemcpyAsync_ptsz 7000 PerThread];
            Work(forward) cuMemcpyAtoA("cuMemcpyAtoA")(dstArray: CUarray, dstOffset: c_uint, srcArray: CUarray, srcOffset: c_uint, ByteCount: c_uint) [cuMemcpyAtoA 2000 Legacy];
            Work(forward) cuMemcpyAtoA_v2("cuMemcpyAtoA")(dstArray: CUarray, dstOffset: usize, srcArray: CUarray, srcOffset: usize, ByteCount: usize) [cuMemcpyAtoA_v2 3020 Legacy, cuMemcpyAtoA_v2_ptds 7000 PerThread];
            Work(forward) cuMemcpyAtoD("cuMemcpyAtoD")(dstDevice: CUdeviceptr_v1, srcArray: CUarray, srcOffset: c_uint, ByteCount: c_uint) [cuMemcpyAtoD 2000 Legacy];
            Work(forward) cuMemcpyAtoD_v2("cuMemcpyAtoD")(dstDevice: CUdeviceptr, srcArray: CUarray, srcOffset: usize, ByteCount: usize) [cuMemcpyAtoD_v2 3020 Legacy, cuMemcpyAtoD_v2_ptds 7000 PerThread];
            Work(forward) cuMemcpyAtoH("cuMemcpyAtoH")(dstHost: *mut c_void, srcArray: CUarray, srcOffset: c_uint, ByteCount: c_uint) [cuMemcpyAtoH 2000 Legacy];
            Work(forward) cuMemcpyAtoH_v2("cuMemcpyAtoH")(dstHost: *mut c_void, srcArray: CUarray, srcOffset: usize, ByteCount: usize) [cuMemcpyAtoH_v2 3020 Legacy, cuMemcpyAtoH_v2_ptds 7000 PerThread];
            Work(forward) cuMemcpyAtoHAsync("cuMemcpyAtoHAsync")(dstHost: *mut c_void, srcArray: CUarray, srcOffset: c_uint, ByteCount: c_uint, hStream: CUstream) [cuMemcpyAtoHAsync 2000 Legacy];
            Work(forward) cuMemcpyAtoHAsync_v2("cuMemcpyAtoHAsync")(dstHost: *mut c_void, srcArray: CUarray, srcOffset: usize, ByteCount: usize, hStream: CUstream) [cuMemcpyAtoHAsync_v2 3020 Legacy, cuMemcpyAtoHAsync_v2_ptsz 7000 PerThread];
            Work(forward) cuMemcpyBatchAsync("cuMemcpyBatchAsync")(dsts: *mut CUdeviceptr, srcs: *mut CUdeviceptr, sizes: *mut usize, count: usize, attrs: *mut CUmemcpyAttributes, attrsIdxs: *mut usize, numAttrs: usize, failIdx: *mut usize, hStream: CUstream) [cuMemcpyBatchAsync 12080 Legacy, cuMemcpyBatchAsync_ptsz 12080 PerThread];
            Work(forward) cuMemcpyBatchAsync_v2("cuMemcpyBatchAsync")(dsts: *mut CUdeviceptr, srcs: *mut CUdeviceptr, sizes: *mut usize, count: usize, attrs: *mut CUmemcpyAttributes, attrsIdxs: *mut usize, numAttrs: usize, hStream: CUstream) [cuMemcpyBatchAsync_v2 13000 Legacy, cuMemcpyBatchAsync_v2_ptsz 13000 PerThread];
            Work(forward) cuMemcpyDtoA("cuMemcpyDtoA")(dstArray: CUarray, dstOffset: c_uint, srcDevice: CUdeviceptr_v1, ByteCount: c_uint) [cuMemcpyDtoA 2000 Legacy];
            Work(forward) cuMemcpyDtoA_v2("cuMemcpyDtoA")(dstArray: CUarray, dstOffset: usize, srcDevice: CUdeviceptr, ByteCount: usize) [cuMemcpyDtoA_v2 3020 Legacy, cuMemcpyDtoA_v2_ptds 7000 PerThread];
            Work(forward) cuMemcpyDtoD("cuMemcpyDtoD")(dstDevice: CUdeviceptr_v1, srcDevice: CUdeviceptr_v1, ByteCount: c_uint) [cuMemcpyDtoD 2000 Legacy];
            Work(forward) cuMemcpyDtoD_v2("cuMemcpyDtoD")(dstDevice: CUdeviceptr, srcDevice: CUdeviceptr, ByteCount: usize) [cuMemcpyDtoD_v2 3020 Legacy, cuMemcpyDtoD_v2_ptds 7000 PerThread];
            Work(forward) cuMemcpyDtoDAsync("cuMemcpyDtoDAsync")(dstDevice: CUdeviceptr_v1, srcDevice: CUdeviceptr_v1, ByteCount: c_uint, hStream: CUstream) [cuMemcpyDtoDAsync 3000 Legacy];
            Work(forward) cuMemcpyDtoDAsync_v2("cuMemcpyDtoDAsync")(dstDevice: CUdeviceptr, srcDevice: CUdeviceptr, ByteCount: usize, hStream: CUstream) [cuMemcpyDtoDAsync_v2 3020 Legacy, cuMemcpyDtoDAsync_v2_ptsz 7000 PerThread];
            Work(forward) cuMemcpyDtoH("cuMemcpyDtoH")(dstHost: *mut c_void, srcDevice: CUdeviceptr_v1, ByteCount: c_uint) [cuMemcpyDtoH 2000 Legacy];
            Work(forward) cuMemcpyDtoH_v2("cuMemcpyDtoH")(dstHost: *mut c_void, srcDevice: CUdeviceptr, ByteCount: usize) [cuMemcpyDtoH_v2 3020 Legacy, cuMemcpyDtoH_v2_ptds 7000 PerThread];
            Work(forward) cuMemcpyDtoHAsync("cuMemcpyDtoHAsync")(dstHost: *mut c_void, srcDevice: CUdeviceptr_v1, ByteCount: c_uint, hStream: CUstream) [cuMemcpyDtoHAsync 2000 Legacy];
            Work(forward) cuMemcpyDtoHAsync_v2("cuMemcpyDtoHAsync")(dstHost: *mut c_void, srcDevice: CUdeviceptr, ByteCount: usize, hStream: CUstream) [cuMemcpyDtoHAsync_v2 3020 Legacy, cuMemcpyDtoHAsync_v2_ptsz 7000 PerThread];
            Work(forward) cuMemcpyHtoA("cuMemcpyHtoA")(dstArray: CUarray, dstOffset: c_uint, srcHost: *const c_void, ByteCount: c_uint) [cuMemcpyHtoA 2000 Legacy];
            Work(forward) cuMemcpyHtoA_v2("cuMemcpyHtoA")(dstArray: CUarray, dstOffset: usize, srcHost: *const c_void, ByteCount: usize) [cuMemcpyHtoA_v2 3020 Legacy, cuMemcpyHtoA_v2_ptds 7000 PerThread];
            Work(forward) cuMemcpyHtoAAsync("cuMemcpyHtoAAsync")(dstArray: CUarray, dstOffset: c_uint, srcHost: *const c_void, ByteCount: c_uint, hStream: CUstream) [cuMemcpyHtoAAsync 2000 Legacy];
            Work(forward) cuMemcpyHtoAAsync_v2("cuMemcpyHtoAAsync")(dstArray: CUarray, dstOffset: usize, srcHost: *const c_void, ByteCount: usize, hStream: CUstream) [cuMemcpyHtoAAsync_v2 3020 Legacy, cuMemcpyHtoAAsync_v2_ptsz 7000 PerThread];
            Work(forward) cuMemcpyHtoD("cuMemcpyHtoD")(dstDevice: CUdeviceptr_v1, srcHost: *const c_void, ByteCount: c_uint) [cuMemcpyHtoD 2000 Legacy];
            Work(forward) cuMemcpyHtoD_v2("cuMemcpyHtoD")(dstDevice: CUdeviceptr, srcHost: *const c_void, ByteCount: usize) [cuMemcpyHtoD_v2 3020 Legacy, cuMemcpyHtoD_v2_ptds 7000 PerThread];
            Work(forward) cuMemcpyHtoDAsync("cuMemcpyHtoDAsync")(dstDevice: CUdeviceptr_v1, srcHost: *const c_void, ByteCount: c_uint, hStream: CUstream) [cuMemcpyHtoDAsync 2000 Legacy];
            Work(forward) cuMemcpyHtoDAsync_v2("cuMemcpyHtoDAsync")(dstDevice: CUdeviceptr, srcHost: *const c_void, ByteCount: usize, hStream: CUstream) [cuMemcpyHtoDAsync_v2 3020 Legacy, cuMemcpyHtoDAsync_v2_ptsz 7000 PerThread];
            Work(forward) cuMemcpyPeer("cuMemcpyPeer")(dstDevice: CUdeviceptr, dstContext: CUcontext, srcDevice: CUdeviceptr, srcContext: CUcontext, ByteCount: usize) [cuMemcpyPeer 4000 Legacy, cuMemcpyPeer_ptds 7000 PerThread];
            Work(forward) cuMemcpyPeerAsync("cuMemcpyPeerAsync")(dstDevice: CUdeviceptr, dstContext: CUcontext, srcDevice: CUdeviceptr, srcContext: CUcontext, ByteCount: usize, hStream: CUstream) [cuMemcpyPeerAsync 4000 Legacy, cuMemcpyPeerAsync_ptsz 7000 PerThread];
            Work(forward) cuMemcpyWithAttributesAsync("cuMemcpyWithAttributesAsync")(dst: CUdeviceptr, src: CUdeviceptr, size: usize, attr: *mut CUmemcpyAttributes, hStream: CUstream) [cuMemcpyWithAttributesAsync 13020 Legacy, cuMemcpyWithAttributesAsync_ptsz 13020 PerThread];
            Work(forward) cuMemsetD16("cuMemsetD16")(dstDevice: CUdeviceptr_v1, us: c_ushort, N: c_uint) [cuMemsetD16 2000 Legacy];
            Work(forward) cuMemsetD16_v2("cuMemsetD16")(dstDevice: CUdeviceptr, us: c_ushort, N: usize) [cuMemsetD16_v2 3020 Legacy, cuMemsetD16_v2_ptds 7000 PerThread];
            Work(forward) cuMemsetD16Async("cuMemsetD16Async")(dstDevice: CUdeviceptr, us: c_ushort, N: usize, hStream: CUstream) [cuMemsetD16Async 3020 Legacy, cuMemsetD16Async_ptsz 7000 PerThread];
            Work(forward) cuMemsetD2D16("cuMemsetD2D16")(dstDevice: CUdeviceptr_v1, dstPitch: c_uint, us: c_ushort, Width: c_uint, Height: c_uint) [cuMemsetD2D16 2000 Legacy];
            Work(forward) cuMemsetD2D16_v2("cuMemsetD2D16")(dstDevice: CUdeviceptr, dstPitch: usize, us: c_ushort, Width: usize, Height: usize) [cuMemsetD2D16_v2 3020 Legacy, cuMemsetD2D16_v2_ptds 7000 PerThread];
            Work(forward) cuMemsetD2D16Async("cuMemsetD2D16Async")(dstDevice: CUdeviceptr, dstPitch: usize, us: c_ushort, Width: usize, Height: usize, hStream: CUstream) [cuMemsetD2D16Async 3020 Legacy, cuMemsetD2D16Async_ptsz 7000 PerThread];
            Work(forward) cuMemsetD2D32("cuMemsetD2D32")(dstDevice: CUdeviceptr_v1, dstPitch: c_uint, ui: c_uint, Width: c_uint, Height: c_uint) [cuMemsetD2D32 2000 Legacy];
            Work(forward) cuMemsetD2D32_v2("cuMemsetD2D32")(dstDevice: CUdeviceptr, dstPitch: usize, ui: c_uint, Width: usize, Height: usize) [cuMemsetD2D32_v2 3020 Legacy, cuMemsetD2D32_v2_ptds 7000 PerThread];
            Work(forward) cuMemsetD2D32Async("cuMemsetD2D32Async")(dstDevice: CUdeviceptr, dstPitch: usize, ui: c_uint, Width: usize, Height: usize, hStream: CUstream) [cuMemsetD2D32Async 3020 Legacy, cuMemsetD2D32Async_ptsz 7000 PerThread];
            Work(forward) cuMemsetD2D8("cuMemsetD2D8")(dstDevice: CUdeviceptr_v1, dstPitch: c_uint, uc: c_uchar, Width: c_uint, Height: c_uint) [cuMemsetD2D8 2000 Legacy];
            Work(forward) cuMemsetD2D8_v2("cuMemsetD2D8")(dstDevice: CUdeviceptr, dstPitch: usize, uc: c_uchar, Width: usize, Height: usize) [cuMemsetD2D8_v2 3020 Legacy, cuMemsetD2D8_v2_ptds 7000 PerThread];
            Work(forward) cuMemsetD2D8Async("cuMemsetD2D8Async")(dstDevice: CUdeviceptr, dstPitch: usize, uc: c_uchar, Width: usize, Height: usize, hStream: CUstream) [cuMemsetD2D8Async 3020 Legacy, cuMemsetD2D8Async_ptsz 7000 PerThread];
            Work(forward) cuMemsetD32("cuMemsetD32")(dstDevice: CUdeviceptr_v1, ui: c_uint, N: c_uint) [cuMemsetD32 2000 Legacy];
            Work(forward) cuMemsetD32_v2("cuMemsetD32")(dstDevice: CUdeviceptr, ui: c_uint, N: usize) [cuMemsetD32_v2 3020 Legacy, cuMemsetD32_v2_ptds 7000 PerThread];
            Work(forward) cuMemsetD32Async("cuMemsetD32Async")(dstDevice: CUdeviceptr, ui: c_uint, N: usize, hStream: CUstream) [cuMemsetD32Async 3020 Legacy, cuMemsetD32Async_ptsz 7000 PerThread];
            Work(forward) cuMemsetD8("cuMemsetD8")(dstDevice: CUdeviceptr_v1, uc: c_uchar, N: c_uint) [cuMemsetD8 2000 Legacy];
            Work(forward) cuMemsetD8_v2("cuMemsetD8")(dstDevice: CUdeviceptr, uc: c_uchar, N: usize) [cuMemsetD8_v2 3020 Legacy, cuMemsetD8_v2_ptds 7000 PerThread];
            Work(forward) cuMemsetD8Async("cuMemsetD8Async")(dstDevice: CUdeviceptr, uc: c_uchar, N: usize, hStream: CUstream) [cuMemsetD8Async 3020 Legacy, cuMemsetD8Async_ptsz 7000 PerThread];
            Work(forward) cuSignalExternalSemaphoresAsync("cuSignalExternalSemaphoresAsync")(extSemArray: *const CUexternalSemaphore, paramsArray: *const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, numExtSems: c_uint, stream: CUstream) [cuSignalExternalSemaphoresAsync 10000 Legacy, cuSignalExternalSemaphoresAsync_ptsz 10000 PerThread];
            Work(forward) cuStreamAddCallback("cuStreamAddCallback")(hStream: CUstream, callback: CUstreamCallback, userData: *mut c_void, flags: c_uint) [cuStreamAddCallback 5000 Legacy, cuStreamAddCallback_ptsz 7000 PerThread];
            Work(forward) cuStreamAttachMemAsync("cuStreamAttachMemAsync")(hStream: CUstream, dptr: CUdeviceptr, length: usize, flags: c_uint) [cuStreamAttachMemAsync 6000 Legacy, cuStreamAttachMemAsync_ptsz 7000 PerThread];
            Work(forward) cuStreamBatchMemOp("cuStreamBatchMemOp")(stream: CUstream, count: c_uint, paramArray: *mut CUstreamBatchMemOpParams, flags: c_uint) [cuStreamBatchMemOp 8000 Legacy, cuStreamBatchMemOp_ptsz 8000 PerThread];
            Work(forward) cuStreamBatchMemOp_v2("cuStreamBatchMemOp")(stream: CUstream, count: c_uint, paramArray: *mut CUstreamBatchMemOpParams, flags: c_uint) [cuStreamBatchMemOp_v2 11070 Legacy, cuStreamBatchMemOp_v2_ptsz 11070 PerThread];
            Work(forward) cuStreamWaitEvent("cuStreamWaitEvent")(hStream: CUstream, hEvent: CUevent, Flags: c_uint) [cuStreamWaitEvent 3020 Legacy, cuStreamWaitEvent_ptsz 7000 PerThread];
            Work(forward) cuStreamWaitValue32("cuStreamWaitValue32")(stream: CUstream, addr: CUdeviceptr, value: cuuint32_t, flags: c_uint) [cuStreamWaitValue32 8000 Legacy, cuStreamWaitValue32_ptsz 8000 PerThread];
            Work(forward) cuStreamWaitValue32_v2("cuStreamWaitValue32")(stream: CUstream, addr: CUdeviceptr, value: cuuint32_t, flags: c_uint) [cuStreamWaitValue32_v2 11070 Legacy, cuStreamWaitValue32_v2_ptsz 11070 PerThread];
            Work(forward) cuStreamWaitValue64("cuStreamWaitValue64")(stream: CUstream, addr: CUdeviceptr, value: cuuint64_t, flags: c_uint) [cuStreamWaitValue64 9000 Legacy, cuStreamWaitValue64_ptsz 9000 PerThread];
            Work(forward) cuStreamWaitValue64_v2("cuStreamWaitValue64")(stream: CUstream, addr: CUdeviceptr, value: cuuint64_t, flags: c_uint) [cuStreamWaitValue64_v2 11070 Legacy, cuStreamWaitValue64_v2_ptsz 11070 PerThread];
            Work(forward) cuStreamWriteValue32("cuStreamWriteValue32")(stream: CUstream, addr: CUdeviceptr, value: cuuint32_t, flags: c_uint) [cuStreamWriteValue32 8000 Legacy, cuStreamWriteValue32_ptsz 8000 PerThread];
            Work(forward) cuStreamWriteValue32_v2("cuStreamWriteValue32")(stream: CUstream, addr: CUdeviceptr, value: cuuint32_t, flags: c_uint) [cuStreamWriteValue32_v2 11070 Legacy, cuStreamWriteValue32_v2_ptsz 11070 PerThread];
            Work(forward) cuStreamWriteValue64("cuStreamWriteValue64")(stream: CUstream, addr: CUdeviceptr, value: cuuint64_t, flags: c_uint) [cuStreamWriteValue64 9000 Legacy, cuStreamWriteValue64_ptsz 9000 PerThread];
            Work(forward) cuStreamWriteValue64_v2("cuStreamWriteValue64")(stream: CUstream, addr: CUdeviceptr, value: cuuint64_t, flags: c_uint) [cuStreamWriteValue64_v2 11070 Legacy, cuStreamWriteValue64_v2_ptsz 11070 PerThread];
            Work(forward) cuWaitExternalSemaphoresAsync("cuWaitExternalSemaphoresAsync")(extSemArray: *const CUexternalSemaphore, paramsArray: *const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, numExtSems: c_uint, stream: CUstream) [cuWaitExternalSemaphoresAsync 10000 Legacy, cuWaitExternalSemaphoresAsync_ptsz 10000 PerThread];
            // Sync
            Sync(sync::context) cuCtxSynchronize("cuCtxSynchronize")() [cuCtxSynchronize 2000 Legacy];
            Sync(sync::context_v2) cuCtxSynchronize_v2("cuCtxSynchronize")(ctx: CUcontext) [cuCtxSynchronize_v2 13000 Legacy];
            Sync(sync::event) cuEventSynchronize("cuEventSynchronize")(hEvent: CUevent) [cuEventSynchronize 2000 Legacy];
            Sync(forward) cuFlushGPUDirectRDMAWrites("cuFlushGPUDirectRDMAWrites")(target: CUflushGPUDirectRDMAWritesTarget, scope: CUflushGPUDirectRDMAWritesScope) [cuFlushGPUDirectRDMAWrites 11030 Legacy];
            Sync(sync::stream) cuStreamSynchronize("cuStreamSynchronize")(hStream: CUstream) [cuStreamSynchronize 2000 Legacy, cuStreamSynchronize_ptsz 7000 PerThread];
            // Capture
            Capture(capture::begin_v1) cuStreamBeginCapture("cuStreamBeginCapture")(hStream: CUstream) [cuStreamBeginCapture 10000 Legacy, cuStreamBeginCapture_ptsz 10000 PerThread];
            Capture(capture::begin) cuStreamBeginCapture_v2("cuStreamBeginCapture")(hStream: CUstream, mode: CUstreamCaptureMode) [cuStreamBeginCapture_v2 10010 Legacy, cuStreamBeginCapture_v2_ptsz 10010 PerThread];
            Capture(capture::begin_to_cig) cuStreamBeginCaptureToCig("cuStreamBeginCaptureToCig")(hStream: CUstream, streamCigCaptureParams: *mut CUstreamCigCaptureParams) [cuStreamBeginCaptureToCig 13010 Legacy, cuStreamBeginCaptureToCig_ptsz 13010 PerThread];
            Capture(capture::begin_to_graph) cuStreamBeginCaptureToGraph("cuStreamBeginCaptureToGraph")(hStream: CUstream, hGraph: CUgraph, dependencies: *const CUgraphNode, dependencyData: *const CUgraphEdgeData, numDependencies: usize, mode: CUstreamCaptureMode) [cuStreamBeginCaptureToGraph 12030 Legacy, cuStreamBeginCaptureToGraph_ptsz 12030 PerThread];
            Capture(capture::begin_again) cuStreamBeginRecaptureToGraph("cuStreamBeginRecaptureToGraph")(hStream: CUstream, mode: CUstreamCaptureMode, hGraph: CUgraph, callbackFunc: CUgraphRecaptureCallback, userData: *mut c_void) [cuStreamBeginRecaptureToGraph 13030 Legacy, cuStreamBeginRecaptureToGraph_ptsz 13030 PerThread];
            Capture(capture::end) cuStreamEndCapture("cuStreamEndCapture")(hStream: CUstream, phGraph: *mut CUgraph) [cuStreamEndCapture 10000 Legacy, cuStreamEndCapture_ptsz 10000 PerThread];
            Capture(capture::end_to_cig) cuStreamEndCaptureToCig("cuStreamEndCaptureToCig")(hStream: CUstream) [cuStreamEndCaptureToCig 13010 Legacy, cuStreamEndCaptureToCig_ptsz 13010 PerThread];
            Capture(forward) cuStreamUpdateCaptureDependencies("cuStreamUpdateCaptureDependencies")(hStream: CUstream, dependencies: *mut CUgraphNode, numDependencies: usize, flags: c_uint) [cuStreamUpdateCaptureDependencies 11030 Legacy, cuStreamUpdateCaptureDependencies_ptsz 11030 PerThread];
            Capture(forward) cuStreamUpdateCaptureDependencies_v2("cuStreamUpdateCaptureDependencies")(hStream: CUstream, dependencies: *mut CUgraphNode, dependencyData: *const CUgraphEdgeData, numDependencies: usize, flags: c_uint) [cuStreamUpdateCaptureDependencies_v2 12030 Legacy, cuStreamUpdateCaptureDependencies_v2_ptsz 12030 PerThread];
            Capture(forward) cuThreadExchangeStreamCaptureMode("cuThreadExchangeStreamCaptureMode")(mode: *mut CUstreamCaptureMode) [cuThreadExchangeStreamCaptureMode 10010 Legacy];
            // Query
            Query(forward) cuArray3DGetDescriptor("cuArray3DGetDescriptor")(pArrayDescriptor: *mut CUDA_ARRAY3D_DESCRIPTOR_v1, hArray: CUarray) [cuArray3DGetDescriptor 2000 Legacy];
            Query(forward) cuArray3DGetDescriptor_v2("cuArray3DGetDescriptor")(pArrayDescriptor: *mut CUDA_ARRAY3D_DESCRIPTOR, hArray: CUarray) [cuArray3DGetDescriptor_v2 3020 Legacy];
            Query(forward) cuArrayGetDescriptor("cuArrayGetDescriptor")(pArrayDescriptor: *mut CUDA_ARRAY_DESCRIPTOR_v1, hArray: CUarray) [cuArrayGetDescriptor 2000 Legacy];
            Query(forward) cuArrayGetDescriptor_v2("cuArrayGetDescriptor")(pArrayDescriptor: *mut CUDA_ARRAY_DESCRIPTOR, hArray: CUarray) [cuArrayGetDescriptor_v2 3020 Legacy];
            Query(forward) cuArrayGetMemoryRequirements("cuArrayGetMemoryRequirements")(memoryRequirements: *mut CUDA_ARRAY_MEMORY_REQUIREMENTS, array: CUarray, device: CUdevice) [cuArrayGetMemoryRequirements 11060 Legacy];
            Query(forward) cuArrayGetPlane("cuArrayGetPlane")(pPlaneArray: *mut CUarray, hArray: CUarray, planeIdx: c_uint) [cuArrayGetPlane 11020 Legacy];
            Query(forward) cuArrayGetSparseProperties("cuArrayGetSparseProperties")(sparseProperties: *mut CUDA_ARRAY_SPARSE_PROPERTIES, array: CUarray) [cuArrayGetSparseProperties 11010 Legacy];
            Query(forward) cuCheckpointProcessGetRestoreThreadId("cuCheckpointProcessGetRestoreThreadId")(pid: c_int, tid: *mut c_int) [cuCheckpointProcessGetRestoreThreadId 12080 Legacy];
            Query(forward) cuCheckpointProcessGetState("cuCheckpointProcessGetState")(pid: c_int, state: *mut CUprocessState) [cuCheckpointProcessGetState 12080 Legacy];
            Query(forward) cuCoredumpGetAttribute("cuCoredumpGetAttribute")(attrib: CUcoredumpSettings, value: *mut c_void, size: *mut usize) [cuCoredumpGetAttribute 12010 Legacy];
            Query(forward) cuCoredumpGetAttributeGlobal("cuCoredumpGetAttributeGlobal")(attrib: CUcoredumpSettings, value: *mut c_void, size: *mut usize) [cuCoredumpGetAttributeGlobal 12010 Legacy];
            Query(forward) cuCtxGetApiVersion("cuCtxGetApiVersion")(ctx: CUcontext, version: *mut c_uint) [cuCtxGetApiVersion 3020 Legacy];
            Query(forward) cuCtxGetCacheConfig("cuCtxGetCacheConfig")(pconfig: *mut CUfunc_cache) [cuCtxGetCacheConfig 3020 Legacy];
            Query(forward) cuCtxGetCurrent("cuCtxGetCurrent")(pctx: *mut CUcontext) [cuCtxGetCurrent 4000 Legacy];
            Query(forward) cuCtxGetDevResource("cuCtxGetDevResource")(hCtx: CUcontext, resource: *mut CUdevResource, kind: CUdevResourceType) [cuCtxGetDevResource 12040 Legacy];
            Query(forward) cuCtxGetDevice("cuCtxGetDevice")(device: *mut CUdevice) [cuCtxGetDevice 2000 Legacy];
            Query(forward) cuCtxGetDevice_v2("cuCtxGetDevice")(device: *mut CUdevice, ctx: CUcontext) [cuCtxGetDevice_v2 13000 Legacy];
            Query(forward) cuCtxGetExecAffinity("cuCtxGetExecAffinity")(pExecAffinity: *mut CUexecAffinityParam, kind: CUexecAffinityType) [cuCtxGetExecAffinity 11040 Legacy];
            Query(forward) cuCtxGetFlags("cuCtxGetFlags")(flags: *mut c_uint) [cuCtxGetFlags 7000 Legacy];
            Query(forward) cuCtxGetId("cuCtxGetId")(ctx: CUcontext, ctxId: *mut c_ulonglong) [cuCtxGetId 12000 Legacy];
            Query(forward) cuCtxGetLimit("cuCtxGetLimit")(pvalue: *mut usize, limit: CUlimit) [cuCtxGetLimit 3010 Legacy];
            Query(forward) cuCtxGetSharedMemConfig("cuCtxGetSharedMemConfig")(pConfig: *mut CUsharedconfig) [cuCtxGetSharedMemConfig 4020 Legacy];
            Query(forward) cuCtxGetStreamPriorityRange("cuCtxGetStreamPriorityRange")(leastPriority: *mut c_int, greatestPriority: *mut c_int) [cuCtxGetStreamPriorityRange 5050 Legacy];
            Query(forward) cuDevSmResourceSplitByCount("cuDevSmResourceSplitByCount")(result: *mut CUdevResource, nbGroups: *mut c_uint, input: *const CUdevResource, remainder: *mut CUdevResource, flags: c_uint, minCount: c_uint) [cuDevSmResourceSplitByCount 12040 Legacy];
            Query(forward) cuDeviceCanAccessPeer("cuDeviceCanAccessPeer")(canAccessPeer: *mut c_int, dev: CUdevice, peerDev: CUdevice) [cuDeviceCanAccessPeer 4000 Legacy];
            Query(forward) cuDeviceComputeCapability("cuDeviceComputeCapability")(major: *mut c_int, minor: *mut c_int, dev: CUdevice) [cuDeviceComputeCapability 2000 Legacy];
            Query(forward) cuDeviceGet("cuDeviceGet")(device: *mut CUdevice, ordinal: c_int) [cuDeviceGet 2000 Legacy];
            Query(forward) cuDeviceGetAttribute("cuDeviceGetAttribute")(pi: *mut c_int, attrib: CUdevice_attribute, dev: CUdevice) [cuDeviceGetAttribute 2000 Legacy];
            Query(forward) cuDeviceGetByPCIBusId("cuDeviceGetByPCIBusId")(dev: *mut CUdevice, pciBusId: *const c_char) [cuDeviceGetByPCIBusId 4010 Legacy];
            Query(forward) cuDeviceGetCliqueCount("cuDeviceGetCliqueCount")(count: *mut usize, dev: CUdevice) [cuDeviceGetCliqueCount 13040 Legacy];
            Query(forward) cuDeviceGetCliqueInfo("cuDeviceGetCliqueInfo")(cliqueInfo: *mut CUcliqueInfo, count: *mut usize, dev: CUdevice) [cuDeviceGetCliqueInfo 13040 Legacy];
            Query(forward) cuDeviceGetCount("cuDeviceGetCount")(count: *mut c_int) [cuDeviceGetCount 2000 Legacy];
            Query(forward) cuDeviceGetDefaultMemPool("cuDeviceGetDefaultMemPool")(pool_out: *mut CUmemoryPool, dev: CUdevice) [cuDeviceGetDefaultMemPool 11020 Legacy];
            Query(forward) cuDeviceGetDevResource("cuDeviceGetDevResource")(device: CUdevice, resource: *mut CUdevResource, kind: CUdevResourceType) [cuDeviceGetDevResource 12040 Legacy];
            Query(forward) cuDeviceGetExecAffinitySupport("cuDeviceGetExecAffinitySupport")(pi: *mut c_int, kind: CUexecAffinityType, dev: CUdevice) [cuDeviceGetExecAffinitySupport 11040 Legacy];
            Query(forward) cuDeviceGetFabricClusterUuid("cuDeviceGetFabricClusterUuid")(uuid: *mut CUuuid, dev: CUdevice) [cuDeviceGetFabricClusterUuid 13040 Legacy];
            Query(forward) cuDeviceGetGraphMemAttribute("cuDeviceGetGraphMemAttribute")(device: CUdevice, attr: CUgraphMem_attribute, value: *mut c_void) [cuDeviceGetGraphMemAttribute 11040 Legacy];
            Query(forward) cuDeviceGetHostAtomicCapabilities("cuDeviceGetHostAtomicCapabilities")(capabilities: *mut c_uint, operations: *const CUatomicOperation, count: c_uint, dev: CUdevice) [cuDeviceGetHostAtomicCapabilities 13000 Legacy];
            Query(forward) cuDeviceGetLuid("cuDeviceGetLuid")(luid: *mut c_char, deviceNodeMask: *mut c_uint, dev: CUdevice) [cuDeviceGetLuid 10000 Legacy];
            Query(forward) cuDeviceGetMemPool("cuDeviceGetMemPool")(pool: *mut CUmemoryPool, dev: CUdevice) [cuDeviceGetMemPool 11020 Legacy];
            Query(forward) cuDeviceGetName("cuDeviceGetName")(name: *mut c_char, len: c_int, dev: CUdevice) [cuDeviceGetName 2000 Legacy];
            Query(forward) cuDeviceGetNvSciSyncAttributes("cuDeviceGetNvSciSyncAttributes")(nvSciSyncAttrList: *mut c_void, dev: CUdevice, flags: c_int) [cuDeviceGetNvSciSyncAttributes 10020 Legacy];
            Query(forward) cuDeviceGetP2PAtomicCapabilities("cuDeviceGetP2PAtomicCapabilities")(capabilities: *mut c_uint, operations: *const CUatomicOperation, count: c_uint, srcDevice: CUdevice, dstDevice: CUdevice) [cuDeviceGetP2PAtomicCapabilities 13000 Legacy];
            Query(forward) cuDeviceGetP2PAttribute("cuDeviceGetP2PAttribute")(value: *mut c_int, attrib: CUdevice_P2PAttribute, srcDevice: CUdevice, dstDevice: CUdevice) [cuDeviceGetP2PAttribute 8000 Legacy];
            Query(forward) cuDeviceGetPCIBusId("cuDeviceGetPCIBusId")(pciBusId: *mut c_char, len: c_int, dev: CUdevice) [cuDeviceGetPCIBusId 4010 Legacy];
            Query(forward) cuDeviceGetProperties("cuDeviceGetProperties")(prop: *mut CUdevprop, dev: CUdevice) [cuDeviceGetProperties 2000 Legacy];
            Query(forward) cuDeviceGetTexture1DLinearMaxWidth("cuDeviceGetTexture1DLinearMaxWidth")(maxWidthInElements: *mut usize, format: CUarray_format, numChannels: c_uint, dev: CUdevice) [cuDeviceGetTexture1DLinearMaxWidth 11010 Legacy];
            Query(forward) cuDeviceGetUuid("cuDeviceGetUuid")(uuid: *mut CUuuid, dev: CUdevice) [cuDeviceGetUuid 9020 Legacy];
            Query(forward) cuDeviceGetUuid_v2("cuDeviceGetUuid")(uuid: *mut CUuuid, dev: CUdevice) [cuDeviceGetUuid_v2 11040 Legacy];
            Query(forward) cuDevicePrimaryCtxGetState("cuDevicePrimaryCtxGetState")(dev: CUdevice, flags: *mut c_uint, active: *mut c_int) [cuDevicePrimaryCtxGetState 7000 Legacy];
            Query(device::total_memory_v1) cuDeviceTotalMem("cuDeviceTotalMem")(bytes: *mut c_uint, dev: CUdevice) [cuDeviceTotalMem 2000 Legacy];
            Query(device::total_memory) cuDeviceTotalMem_v2("cuDeviceTotalMem")(bytes: *mut usize, dev: CUdevice) [cuDeviceTotalMem_v2 3020 Legacy];
            Query(forward) cuDriverGetVersion("cuDriverGetVersion")(driverVersion: *mut c_int) [cuDriverGetVersion 2020 Legacy];
            Query(forward) cuEventQuery("cuEventQuery")(hEvent: CUevent) [cuEventQuery 2000 Legacy];
            Query(forward) cuFuncGetAttribute("cuFuncGetAttribute")(pi: *mut c_int, attrib: CUfunction_attribute, hfunc: CUfunction) [cuFuncGetAttribute 2020 Legacy];
            Query(forward) cuFuncGetModule("cuFuncGetModule")(hmod: *mut CUmodule, hfunc: CUfunction) [cuFuncGetModule 11000 Legacy];
            Query(forward) cuFuncGetName("cuFuncGetName")(name: *mut *const c_char, hfunc: CUfunction) [cuFuncGetName 12030 Legacy];
            Query(forward) cuFuncGetParamCount("cuFuncGetParamCount")(func: CUfunction, paramCount: *mut usize) [cuFuncGetParamCount 13020 Legacy];
            Query(forward) cuFuncGetParamInfo("cuFuncGetParamInfo")(func: CUfunction, paramIndex: usize, paramOffset: *mut usize, paramSize: *mut usize) [cuFuncGetParamInfo 12040 Legacy];
            Query(forward) cuFuncIsLoaded("cuFuncIsLoaded")(state: *mut CUfunctionLoadingState, function: CUfunction) [cuFuncIsLoaded 12040 Legacy];
            Query(forward) cuGLGetDevices("cuGLGetDevices")(pCudaDeviceCount: *mut c_uint, pCudaDevices: *mut CUdevice, cudaDeviceCount: c_uint, deviceList: CUGLDeviceList) [cuGLGetDevices 4010 Legacy];
            Query(forward) cuGLGetDevices_v2("cuGLGetDevices")(pCudaDeviceCount: *mut c_uint, pCudaDevices: *mut CUdevice, cudaDeviceCount: c_uint, deviceList: CUGLDeviceList) [cuGLGetDevices_v2 6050 Legacy];
            Query(forward) cuGetErrorName("cuGetErrorName")(error: CUresult, pStr: *mut *const c_char) [cuGetErrorName 6000 Legacy];
            Query(forward) cuGetErrorString("cuGetErrorString")(error: CUresult, pStr: *mut *const c_char) [cuGetErrorString 6000 Legacy];
            Query(forward) cuGetExportTable("cuGetExportTable")(ppExportTable: *mut *const c_void, pExportTableId: *const CUuuid) [cuGetExportTable 3000 Legacy];
            Query(proc_address::get_v1) cuGetProcAddress("cuGetProcAddress")(symbol: *const c_char, pfn: *mut *mut c_void, cudaVersion: c_int, flags: cuuint64_t) [cuGetProcAddress 11030 Legacy];
            Query(proc_address::get) cuGetProcAddress_v2("cuGetProcAddress")(symbol: *const c_char, pfn: *mut *mut c_void, cudaVersion: c_int, flags: cuuint64_t, symbolStatus: *mut CUdriverProcAddressQueryResult) [cuGetProcAddress_v2 12000 Legacy, cuGetProcAddress_v2_ptsz 12000 PerThread];
            Query(forward) cuGraphBatchMemOpNodeGetParams("cuGraphBatchMemOpNodeGetParams")(hNode: CUgraphNode, nodeParams_out: *mut CUDA_BATCH_MEM_OP_NODE_PARAMS) [cuGraphBatchMemOpNodeGetParams 11070 Legacy];
            Query(forward) cuGraphChildGraphNodeGetGraph("cuGraphChildGraphNodeGetGraph")(hNode: CUgraphNode, phGraph: *mut CUgraph) [cuGraphChildGraphNodeGetGraph 10000 Legacy];
            Query(forward) cuGraphEventRecordNodeGetEvent("cuGraphEventRecordNodeGetEvent")(hNode: CUgraphNode, event_out: *mut CUevent) [cuGraphEventRecordNodeGetEvent 11010 Legacy];
            Query(forward) cuGraphEventWaitNodeGetEvent("cuGraphEventWaitNodeGetEvent")(hNode: CUgraphNode, event_out: *mut CUevent) [cuGraphEventWaitNodeGetEvent 11010 Legacy];
            Query(forward) cuGraphExecGetFlags("cuGraphExecGetFlags")(hGraphExec: CUgraphExec, flags: *mut cuuint64_t) [cuGraphExecGetFlags 12000 Legacy];
            Query(forward) cuGraphExecGetId("cuGraphExecGetId")(hGraphExec: CUgraphExec, graphId: *mut c_uint) [cuGraphExecGetId 13010 Legacy];
            Query(forward) cuGraphExternalSemaphoresSignalNodeGetParams("cuGraphExternalSemaphoresSignalNodeGetParams")(hNode: CUgraphNode, params_out: *mut CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) [cuGraphExternalSemaphoresSignalNodeGetParams 11020 Legacy];
            Query(forward) cuGraphExternalSemaphoresWaitNodeGetParams("cuGraphExternalSemaphoresWaitNodeGetParams")(hNode: CUgraphNode, params_out: *mut CUDA_EXT_SEM_WAIT_NODE_PARAMS) [cuGraphExternalSemaphoresWaitNodeGetParams 11020 Legacy];
            Query(forward) cuGraphGetEdges("cuGraphGetEdges")(hGraph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, numEdges: *mut usize) [cuGraphGetEdges 10000 Legacy];
            Query(forward) cuGraphGetEdges_v2("cuGraphGetEdges")(hGraph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, edgeData: *mut CUgraphEdgeData, numEdges: *mut usize) [cuGraphGetEdges_v2 12030 Legacy];
            Query(forward) cuGraphGetId("cuGraphGetId")(hGraph: CUgraph, graphId: *mut c_uint) [cuGraphGetId 13010 Legacy];
            Query(forward) cuGraphGetNodes("cuGraphGetNodes")(hGraph: CUgraph, nodes: *mut CUgraphNode, numNodes: *mut usize) [cuGraphGetNodes 10000 Legacy];
            Query(forward) cuGraphGetRootNodes("cuGraphGetRootNodes")(hGraph: CUgraph, rootNodes: *mut CUgraphNode, numRootNodes: *mut usize) [cuGraphGetRootNodes 10000 Legacy];
            Query(forward) cuGraphHostNodeGetParams("cuGraphHostNodeGetParams")(hNode: CUgraphNode, nodeParams: *mut CUDA_HOST_NODE_PARAMS) [cuGraphHostNodeGetParams 10000 Legacy];
            Query(forward) cuGraphKernelNodeGetAttribute("cuGraphKernelNodeGetAttribute")(hNode: CUgraphNode, attr: CUkernelNodeAttrID, value_out: *mut CUkernelNodeAttrValue) [cuGraphKernelNodeGetAttribute 11000 Legacy];
            Query(forward) cuGraphKernelNodeGetParams("cuGraphKernelNodeGetParams")(hNode: CUgraphNode, nodeParams: *mut CUDA_KERNEL_NODE_PARAMS_v1) [cuGraphKernelNodeGetParams 10000 Legacy];
            Query(forward) cuGraphKernelNodeGetParams_v2("cuGraphKernelNodeGetParams")(hNode: CUgraphNode, nodeParams: *mut CUDA_KERNEL_NODE_PARAMS) [cuGraphKernelNodeGetParams_v2 12000 Legacy];
            Query(forward) cuGraphMemAllocNodeGetParams("cuGraphMemAllocNodeGetParams")(hNode: CUgraphNode, params_out: *mut CUDA_MEM_ALLOC_NODE_PARAMS) [cuGraphMemAllocNodeGetParams 11040 Legacy];
            Query(forward) cuGraphMemFreeNodeGetParams("cuGraphMemFreeNodeGetParams")(hNode: CUgraphNode, dptr_out: *mut CUdeviceptr) [cuGraphMemFreeNodeGetParams 11040 Legacy];
            Query(forward) cuGraphMemcpyNodeGetParams("cuGraphMemcpyNodeGetParams")(hNode: CUgraphNode, nodeParams: *mut CUDA_MEMCPY3D) [cuGraphMemcpyNodeGetParams 10000 Legacy];
            Query(forward) cuGraphMemsetNodeGetParams("cuGraphMemsetNodeGetParams")(hNode: CUgraphNode, nodeParams: *mut CUDA_MEMSET_NODE_PARAMS) [cuGraphMemsetNodeGetParams 10000 Legacy];
            Query(forward) cuGraphNodeGetContainingGraph("cuGraphNodeGetContainingGraph")(hNode: CUgraphNode, phGraph: *mut CUgraph) [cuGraphNodeGetContainingGraph 13010 Legacy];
            Query(forward) cuGraphNodeGetDependencies("cuGraphNodeGetDependencies")(hNode: CUgraphNode, dependencies: *mut CUgraphNode, numDependencies: *mut usize) [cuGraphNodeGetDependencies 10000 Legacy];
            Query(forward) cuGraphNodeGetDependencies_v2("cuGraphNodeGetDependencies")(hNode: CUgraphNode, dependencies: *mut CUgraphNode, edgeData: *mut CUgraphEdgeData, numDependencies: *mut usize) [cuGraphNodeGetDependencies_v2 12030 Legacy];
            Query(forward) cuGraphNodeGetDependentNodes("cuGraphNodeGetDependentNodes")(hNode: CUgraphNode, dependentNodes: *mut CUgraphNode, numDependentNodes: *mut usize) [cuGraphNodeGetDependentNodes 10000 Legacy];
            Query(forward) cuGraphNodeGetDependentNodes_v2("cuGraphNodeGetDependentNodes")(hNode: CUgraphNode, dependentNodes: *mut CUgraphNode, edgeData: *mut CUgraphEdgeData, numDependentNodes: *mut usize) [cuGraphNodeGetDependentNodes_v2 12030 Legacy];
            Query(forward) cuGraphNodeGetEnabled("cuGraphNodeGetEnabled")(hGraphExec: CUgraphExec, hNode: CUgraphNode, isEnabled: *mut c_uint) [cuGraphNodeGetEnabled 11060 Legacy];
            Query(forward) cuGraphNodeGetLocalId("cuGraphNodeGetLocalId")(hNode: CUgraphNode, nodeId: *mut c_uint) [cuGraphNodeGetLocalId 13010 Legacy];
            Query(forward) cuGraphNodeGetParams("cuGraphNodeGetParams")(hNode: CUgraphNode, nodeParams: *mut CUgraphNodeParams) [cuGraphNodeGetParams 13020 Legacy];
            Query(forward) cuGraphNodeGetToolsId("cuGraphNodeGetToolsId")(hNode: CUgraphNode, toolsNodeId: *mut c_ulonglong) [cuGraphNodeGetToolsId 13010 Legacy];
            Query(forward) cuGraphNodeGetType("cuGraphNodeGetType")(hNode: CUgraphNode, kind: *mut CUgraphNodeType) [cuGraphNodeGetType 10000 Legacy];
            Query(forward) cuGraphicsResourceGetMappedEglFrame("cuGraphicsResourceGetMappedEglFrame")(eglFrame: *mut CUeglFrame, resource: CUgraphicsResource, index: c_uint, mipLevel: c_uint) [cuGraphicsResourceGetMappedEglFrame 7000 Legacy];
            Query(forward) cuGraphicsResourceGetMappedMipmappedArray("cuGraphicsResourceGetMappedMipmappedArray")(pMipmappedArray: *mut CUmipmappedArray, resource: CUgraphicsResource) [cuGraphicsResourceGetMappedMipmappedArray 5000 Legacy];
            Query(forward) cuGraphicsResourceGetMappedPointer("cuGraphicsResourceGetMappedPointer")(pDevPtr: *mut CUdeviceptr_v1, pSize: *mut c_uint, resource: CUgraphicsResource) [cuGraphicsResourceGetMappedPointer 3000 Legacy];
            Query(forward) cuGraphicsResourceGetMappedPointer_v2("cuGraphicsResourceGetMappedPointer")(pDevPtr: *mut CUdeviceptr, pSize: *mut usize, resource: CUgraphicsResource) [cuGraphicsResourceGetMappedPointer_v2 3020 Legacy];
            Query(forward) cuGraphicsSubResourceGetMappedArray("cuGraphicsSubResourceGetMappedArray")(pArray: *mut CUarray, resource: CUgraphicsResource, arrayIndex: c_uint, mipLevel: c_uint) [cuGraphicsSubResourceGetMappedArray 3000 Legacy];
            Query(forward) cuGreenCtxGetDevResource("cuGreenCtxGetDevResource")(hCtx: CUgreenCtx, resource: *mut CUdevResource, kind: CUdevResourceType) [cuGreenCtxGetDevResource 12040 Legacy];
            Query(forward) cuGreenCtxGetId("cuGreenCtxGetId")(greenCtx: CUgreenCtx, greenCtxId: *mut c_ulonglong) [cuGreenCtxGetId 12090 Legacy];
            Query(forward) cuIpcGetEventHandle("cuIpcGetEventHandle")(pHandle: *mut CUipcEventHandle, event: CUevent) [cuIpcGetEventHandle 4010 Legacy];
            Query(forward) cuKernelGetAttribute("cuKernelGetAttribute")(pi: *mut c_int, attrib: CUfunction_attribute, kernel: CUkernel, dev: CUdevice) [cuKernelGetAttribute 12000 Legacy];
            Query(forward) cuKernelGetFunction("cuKernelGetFunction")(pFunc: *mut CUfunction, kernel: CUkernel) [cuKernelGetFunction 12000 Legacy];
            Query(forward) cuKernelGetLibrary("cuKernelGetLibrary")(pLib: *mut CUlibrary, kernel: CUkernel) [cuKernelGetLibrary 12050 Legacy];
            Query(forward) cuKernelGetName("cuKernelGetName")(name: *mut *const c_char, hfunc: CUkernel) [cuKernelGetName 12030 Legacy];
            Query(forward) cuKernelGetParamCount("cuKernelGetParamCount")(kernel: CUkernel, paramCount: *mut usize) [cuKernelGetParamCount 13020 Legacy];
            Query(forward) cuKernelGetParamInfo("cuKernelGetParamInfo")(kernel: CUkernel, paramIndex: usize, paramOffset: *mut usize, paramSize: *mut usize) [cuKernelGetParamInfo 12040 Legacy];
            Query(forward) cuLibraryGetGlobal("cuLibraryGetGlobal")(dptr: *mut CUdeviceptr, bytes: *mut usize, library: CUlibrary, name: *const c_char) [cuLibraryGetGlobal 12000 Legacy];
            Query(forward) cuLibraryGetKernel("cuLibraryGetKernel")(pKernel: *mut CUkernel, library: CUlibrary, name: *const c_char) [cuLibraryGetKernel 12000 Legacy];
            Query(forward) cuLibraryGetKernelCount("cuLibraryGetKernelCount")(count: *mut c_uint, lib: CUlibrary) [cuLibraryGetKernelCount 12040 Legacy];
            Query(forward) cuLibraryGetManaged("cuLibraryGetManaged")(dptr: *mut CUdeviceptr, bytes: *mut usize, library: CUlibrary, name: *const c_char) [cuLibraryGetManaged 12000 Legacy];
            Query(forward) cuLibraryGetModule("cuLibraryGetModule")(pMod: *mut CUmodule, library: CUlibrary) [cuLibraryGetModule 12000 Legacy];
            Query(forward) cuLibraryGetUnifiedFunction("cuLibraryGetUnifiedFunction")(fptr: *mut *mut c_void, library: CUlibrary, symbol: *const c_char) [cuLibraryGetUnifiedFunction 12000 Legacy];
            Query(forward) cuLogicalEndpointGetLimits("cuLogicalEndpointGetLimits")(bindAlignment: *mut cuuint64_t, maxSize: *mut cuuint64_t, prop: *const CUlogicalEndpointProp) [cuLogicalEndpointGetLimits 13030 Legacy];
            Query(forward) cuLogicalEndpointQuery("cuLogicalEndpointQuery")(leId: CUlogicalEndpointId, count: cuuint32_t, queryStatus: *mut c_int) [cuLogicalEndpointQuery 13030 Legacy];
            Query(forward) cuLogsCurrent("cuLogsCurrent")(iterator_out: *mut CUlogIterator, flags: c_uint) [cuLogsCurrent 12090 Legacy];
            Query(forward) cuLogsDumpToFile("cuLogsDumpToFile")(iterator: *mut CUlogIterator, pathToFile: *const c_char, flags: c_uint) [cuLogsDumpToFile 12090 Legacy];
            Query(forward) cuLogsDumpToMemory("cuLogsDumpToMemory")(iterator: *mut CUlogIterator, buffer: *mut c_char, size: *mut usize, flags: c_uint) [cuLogsDumpToMemory 12090 Legacy];
            Query(forward) cuMemGetAccess("cuMemGetAccess")(flags: *mut c_ulonglong, location: *const CUmemLocation, ptr: CUdeviceptr) [cuMemGetAccess 10020 Legacy];
            Query(forward) cuMemGetAddressRange("cuMemGetAddressRange")(pbase: *mut CUdeviceptr_v1, psize: *mut c_uint, dptr: CUdeviceptr_v1) [cuMemGetAddressRange 2000 Legacy];
            Query(exposure::address_range) cuMemGetAddressRange_v2("cuMemGetAddressRange")(pbase: *mut CUdeviceptr, psize: *mut usize, dptr: CUdeviceptr) [cuMemGetAddressRange_v2 3020 Legacy];
            Query(forward) cuMemGetAllocationGranularity("cuMemGetAllocationGranularity")(granularity: *mut usize, prop: *const CUmemAllocationProp, option: CUmemAllocationGranularity_flags) [cuMemGetAllocationGranularity 10020 Legacy];
            Query(forward) cuMemGetAllocationPropertiesFromHandle("cuMemGetAllocationPropertiesFromHandle")(prop: *mut CUmemAllocationProp, handle: CUmemGenericAllocationHandle) [cuMemGetAllocationPropertiesFromHandle 10020 Legacy];
            Query(forward) cuMemGetDefaultMemPool("cuMemGetDefaultMemPool")(pool_out: *mut CUmemoryPool, location: *mut CUmemLocation, kind: CUmemAllocationType) [cuMemGetDefaultMemPool 13000 Legacy];
            Query(device::memory_info_v1) cuMemGetInfo("cuMemGetInfo")(free: *mut c_uint, total: *mut c_uint) [cuMemGetInfo 2000 Legacy];
            Query(device::memory_info) cuMemGetInfo_v2("cuMemGetInfo")(free: *mut usize, total: *mut usize) [cuMemGetInfo_v2 3020 Legacy];
            Query(forward) cuMemGetLocationInfo("cuMemGetLocationInfo")(ptr: CUdeviceptr, size: usize, summaryGranularity: usize, samplingGranularity: usize, location_out: *mut CUmemLocation) [cuMemGetLocationInfo 13040 Legacy];
            Query(forward) cuMemGetMemPool("cuMemGetMemPool")(pool: *mut CUmemoryPool, location: *mut CUmemLocation, kind: CUmemAllocationType) [cuMemGetMemPool 13000 Legacy];
            Query(forward) cuMemHostGetDevicePointer("cuMemHostGetDevicePointer")(pdptr: *mut CUdeviceptr_v1, p: *mut c_void, Flags: c_uint) [cuMemHostGetDevicePointer 2020 Legacy];
            Query(forward) cuMemHostGetDevicePointer_v2("cuMemHostGetDevicePointer")(pdptr: *mut CUdeviceptr, p: *mut c_void, Flags: c_uint) [cuMemHostGetDevicePointer_v2 3020 Legacy];
            Query(forward) cuMemHostGetFlags("cuMemHostGetFlags")(pFlags: *mut c_uint, p: *mut c_void) [cuMemHostGetFlags 2030 Legacy];
            Query(forward) cuMemPoolGetAccess("cuMemPoolGetAccess")(flags: *mut CUmemAccess_flags, memPool: CUmemoryPool, location: *mut CUmemLocation) [cuMemPoolGetAccess 11020 Legacy];
            Query(forward) cuMemPoolGetAttribute("cuMemPoolGetAttribute")(pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void) [cuMemPoolGetAttribute 11020 Legacy];
            Query(forward) cuMemRangeGetAttribute("cuMemRangeGetAttribute")(data: *mut c_void, dataSize: usize, attribute: CUmem_range_attribute, devPtr: CUdeviceptr, count: usize) [cuMemRangeGetAttribute 8000 Legacy];
            Query(forward) cuMemRangeGetAttributes("cuMemRangeGetAttributes")(data: *mut *mut c_void, dataSizes: *mut usize, attributes: *mut CUmem_range_attribute, numAttributes: usize, devPtr: CUdeviceptr, count: usize) [cuMemRangeGetAttributes 8000 Legacy];
            Query(forward) cuMipmappedArrayGetLevel("cuMipmappedArrayGetLevel")(pLevelArray: *mut CUarray, hMipmappedArray: CUmipmappedArray, level: c_uint) [cuMipmappedArrayGetLevel 5000 Legacy];
            Query(forward) cuMipmappedArrayGetMemoryRequirements("cuMipmappedArrayGetMemoryRequirements")(memoryRequirements: *mut CUDA_ARRAY_MEMORY_REQUIREMENTS, mipmap: CUmipmappedArray, device: CUdevice) [cuMipmappedArrayGetMemoryRequirements 11060 Legacy];
            Query(forward) cuMipmappedArrayGetSparseProperties("cuMipmappedArrayGetSparseProperties")(sparseProperties: *mut CUDA_ARRAY_SPARSE_PROPERTIES, mipmap: CUmipmappedArray) [cuMipmappedArrayGetSparseProperties 11010 Legacy];
            Query(forward) cuModuleGetFunction("cuModuleGetFunction")(hfunc: *mut CUfunction, hmod: CUmodule, name: *const c_char) [cuModuleGetFunction 2000 Legacy];
            Query(forward) cuModuleGetFunctionCount("cuModuleGetFunctionCount")(count: *mut c_uint, module: CUmodule) [cuModuleGetFunctionCount 12040 Legacy];
            Query(forward) cuModuleGetGlobal("cuModuleGetGlobal")(dptr: *mut CUdeviceptr_v1, bytes: *mut c_uint, hmod: CUmodule, name: *const c_char) [cuModuleGetGlobal 2000 Legacy];
            Query(forward) cuModuleGetGlobal_v2("cuModuleGetGlobal")(dptr: *mut CUdeviceptr, bytes: *mut usize, hmod: CUmodule, name: *const c_char) [cuModuleGetGlobal_v2 3020 Legacy];
            Query(forward) cuModuleGetLoadingMode("cuModuleGetLoadingMode")(mode: *mut CUmoduleLoadingMode) [cuModuleGetLoadingMode 11070 Legacy];
            Query(forward) cuModuleGetSurfRef("cuModuleGetSurfRef")(pSurfRef: *mut CUsurfref, hmod: CUmodule, name: *const c_char) [cuModuleGetSurfRef 3000 Legacy];
            Query(forward) cuModuleGetTexRef("cuModuleGetTexRef")(pTexRef: *mut CUtexref, hmod: CUmodule, name: *const c_char) [cuModuleGetTexRef 2000 Legacy];
            Query(forward) cuMulticastGetGranularity("cuMulticastGetGranularity")(granularity: *mut usize, prop: *const CUmulticastObjectProp, option: CUmulticastGranularity_flags) [cuMulticastGetGranularity 12010 Legacy];
            Query(forward) cuOccupancyAvailableDynamicSMemPerBlock("cuOccupancyAvailableDynamicSMemPerBlock")(dynamicSmemSize: *mut usize, func: CUfunction, numBlocks: c_int, blockSize: c_int) [cuOccupancyAvailableDynamicSMemPerBlock 10020 Legacy];
            Query(forward) cuOccupancyMaxActiveBlocksPerMultiprocessor("cuOccupancyMaxActiveBlocksPerMultiprocessor")(numBlocks: *mut c_int, func: CUfunction, blockSize: c_int, dynamicSMemSize: usize) [cuOccupancyMaxActiveBlocksPerMultiprocessor 6050 Legacy];
            Query(forward) cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags")(numBlocks: *mut c_int, func: CUfunction, blockSize: c_int, dynamicSMemSize: usize, flags: c_uint) [cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags 7000 Legacy];
            Query(forward) cuOccupancyMaxActiveClusters("cuOccupancyMaxActiveClusters")(numClusters: *mut c_int, func: CUfunction, config: *const CUlaunchConfig) [cuOccupancyMaxActiveClusters 11070 Legacy];
            Query(forward) cuOccupancyMaxPotentialBlockSize("cuOccupancyMaxPotentialBlockSize")(minGridSize: *mut c_int, blockSize: *mut c_int, func: CUfunction, blockSizeToDynamicSMemSize: CUoccupancyB2DSize, dynamicSMemSize: usize, blockSizeLimit: c_int) [cuOccupancyMaxPotentialBlockSize 6050 Legacy];
            Query(forward) cuOccupancyMaxPotentialBlockSizeWithFlags("cuOccupancyMaxPotentialBlockSizeWithFlags")(minGridSize: *mut c_int, blockSize: *mut c_int, func: CUfunction, blockSizeToDynamicSMemSize: CUoccupancyB2DSize, dynamicSMemSize: usize, blockSizeLimit: c_int, flags: c_uint) [cuOccupancyMaxPotentialBlockSizeWithFlags 7000 Legacy];
            Query(forward) cuOccupancyMaxPotentialClusterSize("cuOccupancyMaxPotentialClusterSize")(clusterSize: *mut c_int, func: CUfunction, config: *const CUlaunchConfig) [cuOccupancyMaxPotentialClusterSize 11070 Legacy];
            Query(exposure::attribute) cuPointerGetAttribute("cuPointerGetAttribute")(data: *mut c_void, attribute: CUpointer_attribute, ptr: CUdeviceptr) [cuPointerGetAttribute 4000 Legacy];
            Query(exposure::attributes) cuPointerGetAttributes("cuPointerGetAttributes")(numAttributes: c_uint, attributes: *mut CUpointer_attribute, data: *mut *mut c_void, ptr: CUdeviceptr) [cuPointerGetAttributes 7000 Legacy];
            Query(forward) cuStreamGetAttribute("cuStreamGetAttribute")(hStream: CUstream, attr: CUstreamAttrID, value_out: *mut CUstreamAttrValue) [cuStreamGetAttribute 11000 Legacy, cuStreamGetAttribute_ptsz 11000 PerThread];
            Query(forward) cuStreamGetCaptureInfo("cuStreamGetCaptureInfo")(hStream: CUstream, captureStatus_out: *mut CUstreamCaptureStatus, id_out: *mut cuuint64_t) [cuStreamGetCaptureInfo 10010 Legacy, cuStreamGetCaptureInfo_ptsz 10010 PerThread];
            Query(forward) cuStreamGetCaptureInfo_v2("cuStreamGetCaptureInfo")(hStream: CUstream, captureStatus_out: *mut CUstreamCaptureStatus, id_out: *mut cuuint64_t, graph_out: *mut CUgraph, dependencies_out: *mut *const CUgraphNode, numDependencies_out: *mut usize) [cuStreamGetCaptureInfo_v2 11030 Legacy, cuStreamGetCaptureInfo_v2_ptsz 11030 PerThread];
            Query(forward) cuStreamGetCaptureInfo_v3("cuStreamGetCaptureInfo")(hStream: CUstream, captureStatus_out: *mut CUstreamCaptureStatus, id_out: *mut cuuint64_t, graph_out: *mut CUgraph, dependencies_out: *mut *const CUgraphNode, edgeData_out: *mut *const CUgraphEdgeData, numDependencies_out: *mut usize) [cuStreamGetCaptureInfo_v3 12030 Legacy, cuStreamGetCaptureInfo_v3_ptsz 12030 PerThread];
            Query(forward) cuStreamGetCtx("cuStreamGetCtx")(hStream: CUstream, pctx: *mut CUcontext) [cuStreamGetCtx 9020 Legacy, cuStreamGetCtx_ptsz 9020 PerThread];
            Query(forward) cuStreamGetCtx_v2("cuStreamGetCtx")(hStream: CUstream, pCtx: *mut CUcontext, pGreenCtx: *mut CUgreenCtx) [cuStreamGetCtx_v2 12050 Legacy, cuStreamGetCtx_v2_ptsz 12050 PerThread];
            Query(forward) cuStreamGetDevResource("cuStreamGetDevResource")(hStream: CUstream, resource: *mut CUdevResource, kind: CUdevResourceType) [cuStreamGetDevResource 13010 Legacy, cuStreamGetDevResource_ptsz 13010 PerThread];
            Query(forward) cuStreamGetDevice("cuStreamGetDevice")(hStream: CUstream, device: *mut CUdevice) [cuStreamGetDevice 12080 Legacy, cuStreamGetDevice_ptsz 12080 PerThread];
            Query(forward) cuStreamGetFlags("cuStreamGetFlags")(hStream: CUstream, flags: *mut c_uint) [cuStreamGetFlags 5050 Legacy, cuStreamGetFlags_ptsz 7000 PerThread];
            Query(forward) cuStreamGetGreenCtx("cuStreamGetGreenCtx")(hStream: CUstream, phCtx: *mut CUgreenCtx) [cuStreamGetGreenCtx 12040 Legacy];
            Query(forward) cuStreamGetId("cuStreamGetId")(hStream: CUstream, streamId: *mut c_ulonglong) [cuStreamGetId 12000 Legacy, cuStreamGetId_ptsz 12000 PerThread];
            Query(forward) cuStreamGetPriority("cuStreamGetPriority")(hStream: CUstream, priority: *mut c_int) [cuStreamGetPriority 5050 Legacy, cuStreamGetPriority_ptsz 7000 PerThread];
            Query(forward) cuStreamIsCapturing("cuStreamIsCapturing")(hStream: CUstream, captureStatus: *mut CUstreamCaptureStatus) [cuStreamIsCapturing 10000 Legacy, cuStreamIsCapturing_ptsz 10000 PerThread];
            Query(forward) cuStreamQuery("cuStreamQuery")(hStream: CUstream) [cuStreamQuery 2000 Legacy, cuStreamQuery_ptsz 7000 PerThread];
            Query(forward) cuSurfObjectGetResourceDesc("cuSurfObjectGetResourceDesc")(pResDesc: *mut CUDA_RESOURCE_DESC, surfObject: CUsurfObject) [cuSurfObjectGetResourceDesc 5000 Legacy];
            Query(forward) cuSurfRefGetArray("cuSurfRefGetArray")(phArray: *mut CUarray, hSurfRef: CUsurfref) [cuSurfRefGetArray 3000 Legacy];
            Query(forward) cuTexObjectGetResourceDesc("cuTexObjectGetResourceDesc")(pResDesc: *mut CUDA_RESOURCE_DESC, texObject: CUtexObject) [cuTexObjectGetResourceDesc 5000 Legacy];
            Query(forward) cuTexObjectGetResourceViewDesc("cuTexObjectGetResourceViewDesc")(pResViewDesc: *mut CUDA_RESOURCE_VIEW_DESC, texObject: CUtexObject) [cuTexObjectGetResourceViewDesc 5000 Legacy];
            Query(forward) cuTexObjectGetTextureDesc("cuTexObjectGetTextureDesc")(pTexDesc: *mut CUDA_TEXTURE_DESC, texObject: CUtexObject) [cuTexObjectGetTextureDesc 5000 Legacy];
            Query(forward) cuTexRefGetAddress("cuTexRefGetAddress")(pdptr: *mut CUdeviceptr_v1, hTexRef: CUtexref) [cuTexRefGetAddress 2000 Legacy];
            Query(forward) cuTexRefGetAddress_v2("cuTexRefGetAddress")(pdptr: *mut CUdeviceptr, hTexRef: CUtexref) [cuTexRefGetAddress_v2 3020 Legacy];
            Query(forward) cuTexRefGetAddressMode("cuTexRefGetAddressMode")(pam: *mut CUaddress_mode, hTexRef: CUtexref, dim: c_int) [cuTexRefGetAddressMode 2000 Legacy];
            Query(forward) cuTexRefGetArray("cuTexRefGetArray")(phArray: *mut CUarray, hTexRef: CUtexref) [cuTexRefGetArray 2000 Legacy];
            Query(forward) cuTexRefGetBorderColor("cuTexRefGetBorderColor")(pBorderColor: *mut f32, hTexRef: CUtexref) [cuTexRefGetBorderColor 8000 Legacy];
            Query(forward) cuTexRefGetFilterMode("cuTexRefGetFilterMode")(pfm: *mut CUfilter_mode, hTexRef: CUtexref) [cuTexRefGetFilterMode 2000 Legacy];
            Query(forward) cuTexRefGetFlags("cuTexRefGetFlags")(pFlags: *mut c_uint, hTexRef: CUtexref) [cuTexRefGetFlags 2000 Legacy];
            Query(forward) cuTexRefGetFormat("cuTexRefGetFormat")(pFormat: *mut CUarray_format, pNumChannels: *mut c_int, hTexRef: CUtexref) [cuTexRefGetFormat 2000 Legacy];
            Query(forward) cuTexRefGetMaxAnisotropy("cuTexRefGetMaxAnisotropy")(pmaxAniso: *mut c_int, hTexRef: CUtexref) [cuTexRefGetMaxAnisotropy 5000 Legacy];
            Query(forward) cuTexRefGetMipmapFilterMode("cuTexRefGetMipmapFilterMode")(pfm: *mut CUfilter_mode, hTexRef: CUtexref) [cuTexRefGetMipmapFilterMode 5000 Legacy];
            Query(forward) cuTexRefGetMipmapLevelBias("cuTexRefGetMipmapLevelBias")(pbias: *mut f32, hTexRef: CUtexref) [cuTexRefGetMipmapLevelBias 5000 Legacy];
            Query(forward) cuTexRefGetMipmapLevelClamp("cuTexRefGetMipmapLevelClamp")(pminMipmapLevelClamp: *mut f32, pmaxMipmapLevelClamp: *mut f32, hTexRef: CUtexref) [cuTexRefGetMipmapLevelClamp 5000 Legacy];
            Query(forward) cuTexRefGetMipmappedArray("cuTexRefGetMipmappedArray")(phMipmappedArray: *mut CUmipmappedArray, hTexRef: CUtexref) [cuTexRefGetMipmappedArray 5000 Legacy];
            Query(forward) cuVDPAUGetDevice("cuVDPAUGetDevice")(pDevice: *mut CUdevice, vdpDevice: VdpDevice, vdpGetProcAddress: *mut VdpGetProcAddress) [cuVDPAUGetDevice 3010 Legacy];
            Query(forward) cuWGLGetDevice("cuWGLGetDevice")(pDevice: *mut CUdevice, hGpu: *mut c_void) [cuWGLGetDevice 2020 Legacy];
            // Other
            Other(forward) cuCheckpointOperationComplete("cuCheckpointOperationComplete")(handle: CUcheckpointOperationHandle) [cuCheckpointOperationComplete 13040 Legacy];
            Other(forward) cuCheckpointProcessCheckpoint("cuCheckpointProcessCheckpoint")(pid: c_int, args: *mut CUcheckpointCheckpointArgs) [cuCheckpointProcessCheckpoint 12080 Legacy];
            Other(forward) cuCheckpointProcessLock("cuCheckpointProcessLock")(pid: c_int, args: *mut CUcheckpointLockArgs) [cuCheckpointProcessLock 12080 Legacy];
            Other(forward) cuCheckpointProcessRestore("cuCheckpointProcessRestore")(pid: c_int, args: *mut CUcheckpointRestoreArgs) [cuCheckpointProcessRestore 12080 Legacy];
            Other(forward) cuCheckpointProcessUnlock("cuCheckpointProcessUnlock")(pid: c_int, args: *mut CUcheckpointUnlockArgs) [cuCheckpointProcessUnlock 12080 Legacy];
            Other(forward) cuCoredumpDeregisterCompleteCallback("cuCoredumpDeregisterCompleteCallback")(callback: CUcoredumpCallbackHandle) [cuCoredumpDeregisterCompleteCallback 13020 Legacy];
            Other(forward) cuCoredumpDeregisterStartCallback("cuCoredumpDeregisterStartCallback")(callback: CUcoredumpCallbackHandle) [cuCoredumpDeregisterStartCallback 13020 Legacy];
            Other(forward) cuCoredumpRegisterCompleteCallback("cuCoredumpRegisterCompleteCallback")(callback: CUcoredumpStatusCallback, userData: *mut c_void, callbackOut: *mut CUcoredumpCallbackHandle) [cuCoredumpRegisterCompleteCallback 13020 Legacy];
            Other(forward) cuCoredumpRegisterStartCallback("cuCoredumpRegisterStartCallback")(callback: CUcoredumpStatusCallback, userData: *mut c_void, callbackOut: *mut CUcoredumpCallbackHandle) [cuCoredumpRegisterStartCallback 13020 Legacy];
            Other(forward) cuCoredumpSetAttribute("cuCoredumpSetAttribute")(attrib: CUcoredumpSettings, value: *mut c_void, size: *mut usize) [cuCoredumpSetAttribute 12010 Legacy];
            Other(forward) cuCoredumpSetAttributeGlobal("cuCoredumpSetAttributeGlobal")(attrib: CUcoredumpSettings, value: *mut c_void, size: *mut usize) [cuCoredumpSetAttributeGlobal 12010 Legacy];
            Other(context::attach) cuCtxAttach("cuCtxAttach")(pctx: *mut CUcontext, flags: c_uint) [cuCtxAttach 2000 Legacy];
            Other(forward) cuCtxDisablePeerAccess("cuCtxDisablePeerAccess")(peerContext: CUcontext) [cuCtxDisablePeerAccess 4000 Legacy];
            Other(forward) cuCtxEnablePeerAccess("cuCtxEnablePeerAccess")(peerContext: CUcontext, Flags: c_uint) [cuCtxEnablePeerAccess 4000 Legacy];
            Other(forward) cuCtxPopCurrent("cuCtxPopCurrent")(pctx: *mut CUcontext) [cuCtxPopCurrent 2000 Legacy];
            Other(forward) cuCtxPopCurrent_v2("cuCtxPopCurrent")(pctx: *mut CUcontext) [cuCtxPopCurrent_v2 4000 Legacy];
            Other(forward) cuCtxPushCurrent("cuCtxPushCurrent")(ctx: CUcontext) [cuCtxPushCurrent 2000 Legacy];
            Other(forward) cuCtxPushCurrent_v2("cuCtxPushCurrent")(ctx: CUcontext) [cuCtxPushCurrent_v2 4000 Legacy];
            Other(forward) cuCtxResetPersistingL2Cache("cuCtxResetPersistingL2Cache")() [cuCtxResetPersistingL2Cache 11000 Legacy];
            Other(forward) cuCtxSetCacheConfig("cuCtxSetCacheConfig")(config: CUfunc_cache) [cuCtxSetCacheConfig 3020 Legacy];
            Other(forward) cuCtxSetCurrent("cuCtxSetCurrent")(ctx: CUcontext) [cuCtxSetCurrent 4000 Legacy];
            Other(forward) cuCtxSetFlags("cuCtxSetFlags")(flags: c_uint) [cuCtxSetFlags 12010 Legacy];
            Other(forward) cuCtxSetSharedMemConfig("cuCtxSetSharedMemConfig")(config: CUsharedconfig) [cuCtxSetSharedMemConfig 4020 Legacy];
            Other(forward) cuDestroyExternalSemaphore("cuDestroyExternalSemaphore")(extSem: CUexternalSemaphore) [cuDestroyExternalSemaphore 10000 Legacy];
            Other(forward) cuDevResourceGenerateDesc("cuDevResourceGenerateDesc")(phDesc: *mut CUdevResourceDesc, resources: *mut CUdevResource, nbResources: c_uint) [cuDevResourceGenerateDesc 12040 Legacy];
            Other(forward) cuDevSmResourceSplit("cuDevSmResourceSplit")(result: *mut CUdevResource, nbGroups: c_uint, input: *const CUdevResource, remainder: *mut CUdevResource, flags: c_uint, groupParams: *mut CU_DEV_SM_RESOURCE_GROUP_PARAMS) [cuDevSmResourceSplit 13010 Legacy];
            Other(forward) cuDevicePrimaryCtxSetFlags("cuDevicePrimaryCtxSetFlags")(dev: CUdevice, flags: c_uint) [cuDevicePrimaryCtxSetFlags 7000 Legacy];
            Other(forward) cuDevicePrimaryCtxSetFlags_v2("cuDevicePrimaryCtxSetFlags")(dev: CUdevice, flags: c_uint) [cuDevicePrimaryCtxSetFlags_v2 11000 Legacy];
            Other(forward) cuDeviceRegisterAsyncNotification("cuDeviceRegisterAsyncNotification")(device: CUdevice, callbackFunc: CUasyncCallback, userData: *mut c_void, callback: *mut CUasyncCallbackHandle) [cuDeviceRegisterAsyncNotification 12040 Legacy];
            Other(forward) cuDeviceSetGraphMemAttribute("cuDeviceSetGraphMemAttribute")(device: CUdevice, attr: CUgraphMem_attribute, value: *mut c_void) [cuDeviceSetGraphMemAttribute 11040 Legacy];
            Other(forward) cuDeviceSetMemPool("cuDeviceSetMemPool")(dev: CUdevice, pool: CUmemoryPool) [cuDeviceSetMemPool 11020 Legacy];
            Other(forward) cuDeviceUnregisterAsyncNotification("cuDeviceUnregisterAsyncNotification")(device: CUdevice, callback: CUasyncCallbackHandle) [cuDeviceUnregisterAsyncNotification 12040 Legacy];
            Other(forward) cuEventCreate("cuEventCreate")(phEvent: *mut CUevent, Flags: c_uint) [cuEventCreate 2000 Legacy];
            Other(forward) cuEventCreateFromEGLSync("cuEventCreateFromEGLSync")(phEvent: *mut CUevent, eglSync: EGLSyncKHR, flags: c_uint) [cuEventCreateFromEGLSync 9000 Legacy];
            Other(forward) cuEventDestroy("cuEventDestroy")(hEvent: CUevent) [cuEventDestroy 2000 Legacy];
            Other(forward) cuEventDestroy_v2("cuEventDestroy")(hEvent: CUevent) [cuEventDestroy_v2 4000 Legacy];
            Other(forward) cuEventElapsedTime("cuEventElapsedTime")(pMilliseconds: *mut f32, hStart: CUevent, hEnd: CUevent) [cuEventElapsedTime 2000 Legacy];
            Other(forward) cuEventElapsedTime_v2("cuEventElapsedTime")(pMilliseconds: *mut f32, hStart: CUevent, hEnd: CUevent) [cuEventElapsedTime_v2 12080 Legacy];
            Other(forward) cuFuncSetAttribute("cuFuncSetAttribute")(hfunc: CUfunction, attrib: CUfunction_attribute, value: c_int) [cuFuncSetAttribute 9000 Legacy];
            Other(forward) cuFuncSetBlockShape("cuFuncSetBlockShape")(hfunc: CUfunction, x: c_int, y: c_int, z: c_int) [cuFuncSetBlockShape 2000 Legacy];
            Other(forward) cuFuncSetCacheConfig("cuFuncSetCacheConfig")(hfunc: CUfunction, config: CUfunc_cache) [cuFuncSetCacheConfig 3000 Legacy];
            Other(forward) cuFuncSetSharedMemConfig("cuFuncSetSharedMemConfig")(hfunc: CUfunction, config: CUsharedconfig) [cuFuncSetSharedMemConfig 4020 Legacy];
            Other(forward) cuFuncSetSharedSize("cuFuncSetSharedSize")(hfunc: CUfunction, bytes: c_uint) [cuFuncSetSharedSize 2000 Legacy];
            Other(forward) cuGLInit("cuGLInit")() [cuGLInit 2000 Legacy];
            Other(forward) cuGLRegisterBufferObject("cuGLRegisterBufferObject")(buffer: GLuint) [cuGLRegisterBufferObject 2000 Legacy];
            Other(forward) cuGLSetBufferObjectMapFlags("cuGLSetBufferObjectMapFlags")(buffer: GLuint, Flags: c_uint) [cuGLSetBufferObjectMapFlags 2030 Legacy];
            Other(forward) cuGLUnregisterBufferObject("cuGLUnregisterBufferObject")(buffer: GLuint) [cuGLUnregisterBufferObject 2000 Legacy];
            Other(forward) cuGraphAddBatchMemOpNode("cuGraphAddBatchMemOpNode")(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, nodeParams: *const CUDA_BATCH_MEM_OP_NODE_PARAMS) [cuGraphAddBatchMemOpNode 11070 Legacy];
            Other(forward) cuGraphAddChildGraphNode("cuGraphAddChildGraphNode")(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, childGraph: CUgraph) [cuGraphAddChildGraphNode 10000 Legacy];
            Other(forward) cuGraphAddDependencies("cuGraphAddDependencies")(hGraph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, numDependencies: usize) [cuGraphAddDependencies 10000 Legacy];
            Other(forward) cuGraphAddDependencies_v2("cuGraphAddDependencies")(hGraph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, edgeData: *const CUgraphEdgeData, numDependencies: usize) [cuGraphAddDependencies_v2 12030 Legacy];
            Other(forward) cuGraphAddEmptyNode("cuGraphAddEmptyNode")(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize) [cuGraphAddEmptyNode 10000 Legacy];
            Other(forward) cuGraphAddEventRecordNode("cuGraphAddEventRecordNode")(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, event: CUevent) [cuGraphAddEventRecordNode 11010 Legacy];
            Other(forward) cuGraphAddEventWaitNode("cuGraphAddEventWaitNode")(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, event: CUevent) [cuGraphAddEventWaitNode 11010 Legacy];
            Other(forward) cuGraphAddExternalSemaphoresSignalNode("cuGraphAddExternalSemaphoresSignalNode")(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, nodeParams: *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) [cuGraphAddExternalSemaphoresSignalNode 11020 Legacy];
            Other(forward) cuGraphAddExternalSemaphoresWaitNode("cuGraphAddExternalSemaphoresWaitNode")(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, nodeParams: *const CUDA_EXT_SEM_WAIT_NODE_PARAMS) [cuGraphAddExternalSemaphoresWaitNode 11020 Legacy];
            Other(forward) cuGraphAddHostNode("cuGraphAddHostNode")(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, nodeParams: *const CUDA_HOST_NODE_PARAMS) [cuGraphAddHostNode 10000 Legacy];
            Other(forward) cuGraphAddKernelNode("cuGraphAddKernelNode")(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, nodeParams: *const CUDA_KERNEL_NODE_PARAMS_v1) [cuGraphAddKernelNode 10000 Legacy];
            Other(forward) cuGraphAddKernelNode_v2("cuGraphAddKernelNode")(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, nodeParams: *const CUDA_KERNEL_NODE_PARAMS) [cuGraphAddKernelNode_v2 12000 Legacy];
            Other(forward) cuGraphAddMemcpyNode("cuGraphAddMemcpyNode")(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, copyParams: *const CUDA_MEMCPY3D, ctx: CUcontext) [cuGraphAddMemcpyNode 10000 Legacy];
            Other(forward) cuGraphAddMemsetNode("cuGraphAddMemsetNode")(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, memsetParams: *const CUDA_MEMSET_NODE_PARAMS, ctx: CUcontext) [cuGraphAddMemsetNode 10000 Legacy];
            Other(forward) cuGraphBatchMemOpNodeSetParams("cuGraphBatchMemOpNodeSetParams")(hNode: CUgraphNode, nodeParams: *const CUDA_BATCH_MEM_OP_NODE_PARAMS) [cuGraphBatchMemOpNodeSetParams 11070 Legacy];
            Other(forward) cuGraphClone("cuGraphClone")(phGraphClone: *mut CUgraph, originalGraph: CUgraph) [cuGraphClone 10000 Legacy];
            Other(forward) cuGraphConditionalHandleCreate("cuGraphConditionalHandleCreate")(pHandle_out: *mut CUgraphConditionalHandle, hGraph: CUgraph, ctx: CUcontext, defaultLaunchValue: c_uint, flags: c_uint) [cuGraphConditionalHandleCreate 12030 Legacy];
            Other(forward) cuGraphCreate("cuGraphCreate")(phGraph: *mut CUgraph, flags: c_uint) [cuGraphCreate 10000 Legacy];
            Other(forward) cuGraphDebugDotPrint("cuGraphDebugDotPrint")(hGraph: CUgraph, path: *const c_char, flags: c_uint) [cuGraphDebugDotPrint 11030 Legacy];
            Other(forward) cuGraphEventRecordNodeSetEvent("cuGraphEventRecordNodeSetEvent")(hNode: CUgraphNode, event: CUevent) [cuGraphEventRecordNodeSetEvent 11010 Legacy];
            Other(forward) cuGraphEventWaitNodeSetEvent("cuGraphEventWaitNodeSetEvent")(hNode: CUgraphNode, event: CUevent) [cuGraphEventWaitNodeSetEvent 11010 Legacy];
            Other(forward) cuGraphExecBatchMemOpNodeSetParams("cuGraphExecBatchMemOpNodeSetParams")(hGraphExec: CUgraphExec, hNode: CUgraphNode, nodeParams: *const CUDA_BATCH_MEM_OP_NODE_PARAMS) [cuGraphExecBatchMemOpNodeSetParams 11070 Legacy];
            Other(forward) cuGraphExecChildGraphNodeSetParams("cuGraphExecChildGraphNodeSetParams")(hGraphExec: CUgraphExec, hNode: CUgraphNode, childGraph: CUgraph) [cuGraphExecChildGraphNodeSetParams 11010 Legacy];
            Other(forward) cuGraphExecEventRecordNodeSetEvent("cuGraphExecEventRecordNodeSetEvent")(hGraphExec: CUgraphExec, hNode: CUgraphNode, event: CUevent) [cuGraphExecEventRecordNodeSetEvent 11010 Legacy];
            Other(forward) cuGraphExecEventWaitNodeSetEvent("cuGraphExecEventWaitNodeSetEvent")(hGraphExec: CUgraphExec, hNode: CUgraphNode, event: CUevent) [cuGraphExecEventWaitNodeSetEvent 11010 Legacy];
            Other(forward) cuGraphExecExternalSemaphoresSignalNodeSetParams("cuGraphExecExternalSemaphoresSignalNodeSetParams")(hGraphExec: CUgraphExec, hNode: CUgraphNode, nodeParams: *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) [cuGraphExecExternalSemaphoresSignalNodeSetParams 11020 Legacy];
            Other(forward) cuGraphExecExternalSemaphoresWaitNodeSetParams("cuGraphExecExternalSemaphoresWaitNodeSetParams")(hGraphExec: CUgraphExec, hNode: CUgraphNode, nodeParams: *const CUDA_EXT_SEM_WAIT_NODE_PARAMS) [cuGraphExecExternalSemaphoresWaitNodeSetParams 11020 Legacy];
            Other(forward) cuGraphExecHostNodeSetParams("cuGraphExecHostNodeSetParams")(hGraphExec: CUgraphExec, hNode: CUgraphNode, nodeParams: *const CUDA_HOST_NODE_PARAMS) [cuGraphExecHostNodeSetParams 10020 Legacy];
            Other(forward) cuGraphExecKernelNodeSetParams("cuGraphExecKernelNodeSetParams")(hGraphExec: CUgraphExec, hNode: CUgraphNode, nodeParams: *const CUDA_KERNEL_NODE_PARAMS_v1) [cuGraphExecKernelNodeSetParams 10010 Legacy];
            Other(forward) cuGraphExecKernelNodeSetParams_v2("cuGraphExecKernelNodeSetParams")(hGraphExec: CUgraphExec, hNode: CUgraphNode, nodeParams: *const CUDA_KERNEL_NODE_PARAMS) [cuGraphExecKernelNodeSetParams_v2 12000 Legacy];
            Other(forward) cuGraphExecMemcpyNodeSetParams("cuGraphExecMemcpyNodeSetParams")(hGraphExec: CUgraphExec, hNode: CUgraphNode, copyParams: *const CUDA_MEMCPY3D, ctx: CUcontext) [cuGraphExecMemcpyNodeSetParams 10020 Legacy];
            Other(forward) cuGraphExecMemsetNodeSetParams("cuGraphExecMemsetNodeSetParams")(hGraphExec: CUgraphExec, hNode: CUgraphNode, memsetParams: *const CUDA_MEMSET_NODE_PARAMS, ctx: CUcontext) [cuGraphExecMemsetNodeSetParams 10020 Legacy];
            Other(forward) cuGraphExecNodeSetParams("cuGraphExecNodeSetParams")(hGraphExec: CUgraphExec, hNode: CUgraphNode, nodeParams: *mut CUgraphNodeParams) [cuGraphExecNodeSetParams 12020 Legacy];
            Other(forward) cuGraphExecUpdate("cuGraphExecUpdate")(hGraphExec: CUgraphExec, hGraph: CUgraph, hErrorNode_out: *mut CUgraphNode, updateResult_out: *mut CUgraphExecUpdateResult) [cuGraphExecUpdate 10020 Legacy];
            Other(forward) cuGraphExecUpdate_v2("cuGraphExecUpdate")(hGraphExec: CUgraphExec, hGraph: CUgraph, resultInfo: *mut CUgraphExecUpdateResultInfo) [cuGraphExecUpdate_v2 12000 Legacy];
            Other(forward) cuGraphExternalSemaphoresSignalNodeSetParams("cuGraphExternalSemaphoresSignalNodeSetParams")(hNode: CUgraphNode, nodeParams: *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) [cuGraphExternalSemaphoresSignalNodeSetParams 11020 Legacy];
            Other(forward) cuGraphExternalSemaphoresWaitNodeSetParams("cuGraphExternalSemaphoresWaitNodeSetParams")(hNode: CUgraphNode, nodeParams: *const CUDA_EXT_SEM_WAIT_NODE_PARAMS) [cuGraphExternalSemaphoresWaitNodeSetParams 11020 Legacy];
            Other(forward) cuGraphHostNodeSetParams("cuGraphHostNodeSetParams")(hNode: CUgraphNode, nodeParams: *const CUDA_HOST_NODE_PARAMS) [cuGraphHostNodeSetParams 10000 Legacy];
            Other(forward) cuGraphKernelNodeCopyAttributes("cuGraphKernelNodeCopyAttributes")(dst: CUgraphNode, src: CUgraphNode) [cuGraphKernelNodeCopyAttributes 11000 Legacy];
            Other(forward) cuGraphKernelNodeSetAttribute("cuGraphKernelNodeSetAttribute")(hNode: CUgraphNode, attr: CUkernelNodeAttrID, value: *const CUkernelNodeAttrValue) [cuGraphKernelNodeSetAttribute 11000 Legacy];
            Other(forward) cuGraphKernelNodeSetParams("cuGraphKernelNodeSetParams")(hNode: CUgraphNode, nodeParams: *const CUDA_KERNEL_NODE_PARAMS_v1) [cuGraphKernelNodeSetParams 10000 Legacy];
            Other(forward) cuGraphKernelNodeSetParams_v2("cuGraphKernelNodeSetParams")(hNode: CUgraphNode, nodeParams: *const CUDA_KERNEL_NODE_PARAMS) [cuGraphKernelNodeSetParams_v2 12000 Legacy];
            Other(forward) cuGraphMemcpyNodeSetParams("cuGraphMemcpyNodeSetParams")(hNode: CUgraphNode, nodeParams: *const CUDA_MEMCPY3D) [cuGraphMemcpyNodeSetParams 10000 Legacy];
            Other(forward) cuGraphMemsetNodeSetParams("cuGraphMemsetNodeSetParams")(hNode: CUgraphNode, nodeParams: *const CUDA_MEMSET_NODE_PARAMS) [cuGraphMemsetNodeSetParams 10000 Legacy];
            Other(forward) cuGraphNodeFindInClone("cuGraphNodeFindInClone")(phNode: *mut CUgraphNode, hOriginalNode: CUgraphNode, hClonedGraph: CUgraph) [cuGraphNodeFindInClone 10000 Legacy];
            Other(forward) cuGraphNodeSetEnabled("cuGraphNodeSetEnabled")(hGraphExec: CUgraphExec, hNode: CUgraphNode, isEnabled: c_uint) [cuGraphNodeSetEnabled 11060 Legacy];
            Other(forward) cuGraphNodeSetParams("cuGraphNodeSetParams")(hNode: CUgraphNode, nodeParams: *mut CUgraphNodeParams) [cuGraphNodeSetParams 12020 Legacy];
            Other(forward) cuGraphNodeSetParams_v2("cuGraphNodeSetParams")(hNode: CUgraphNode, nodeParams: *mut CUgraphNodeParams) [cuGraphNodeSetParams_v2 13040 Legacy];
            Other(forward) cuGraphReleaseUserObject("cuGraphReleaseUserObject")(graph: CUgraph, object: CUuserObject, count: c_uint) [cuGraphReleaseUserObject 11030 Legacy];
            Other(forward) cuGraphRemoveDependencies("cuGraphRemoveDependencies")(hGraph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, numDependencies: usize) [cuGraphRemoveDependencies 10000 Legacy];
            Other(forward) cuGraphRemoveDependencies_v2("cuGraphRemoveDependencies")(hGraph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, edgeData: *const CUgraphEdgeData, numDependencies: usize) [cuGraphRemoveDependencies_v2 12030 Legacy];
            Other(forward) cuGraphRetainUserObject("cuGraphRetainUserObject")(graph: CUgraph, object: CUuserObject, count: c_uint, flags: c_uint) [cuGraphRetainUserObject 11030 Legacy];
            Other(forward) cuGraphicsEGLRegisterImage("cuGraphicsEGLRegisterImage")(pCudaResource: *mut CUgraphicsResource, image: EGLImageKHR, flags: c_uint) [cuGraphicsEGLRegisterImage 7000 Legacy];
            Other(forward) cuGraphicsGLRegisterBuffer("cuGraphicsGLRegisterBuffer")(pCudaResource: *mut CUgraphicsResource, buffer: GLuint, Flags: c_uint) [cuGraphicsGLRegisterBuffer 3000 Legacy];
            Other(forward) cuGraphicsGLRegisterImage("cuGraphicsGLRegisterImage")(pCudaResource: *mut CUgraphicsResource, image: GLuint, target: GLenum, Flags: c_uint) [cuGraphicsGLRegisterImage 3000 Legacy];
            Other(forward) cuGraphicsResourceSetMapFlags("cuGraphicsResourceSetMapFlags")(resource: CUgraphicsResource, flags: c_uint) [cuGraphicsResourceSetMapFlags 3000 Legacy];
            Other(forward) cuGraphicsResourceSetMapFlags_v2("cuGraphicsResourceSetMapFlags")(resource: CUgraphicsResource, flags: c_uint) [cuGraphicsResourceSetMapFlags_v2 6050 Legacy];
            Other(forward) cuGraphicsUnregisterResource("cuGraphicsUnregisterResource")(resource: CUgraphicsResource) [cuGraphicsUnregisterResource 3000 Legacy];
            Other(forward) cuGraphicsVDPAURegisterOutputSurface("cuGraphicsVDPAURegisterOutputSurface")(pCudaResource: *mut CUgraphicsResource, vdpSurface: VdpOutputSurface, flags: c_uint) [cuGraphicsVDPAURegisterOutputSurface 3010 Legacy];
            Other(forward) cuGraphicsVDPAURegisterVideoSurface("cuGraphicsVDPAURegisterVideoSurface")(pCudaResource: *mut CUgraphicsResource, vdpSurface: VdpVideoSurface, flags: c_uint) [cuGraphicsVDPAURegisterVideoSurface 3010 Legacy];
            Other(forward) cuGreenCtxStreamCreate("cuGreenCtxStreamCreate")(phStream: *mut CUstream, greenCtx: CUgreenCtx, flags: c_uint, priority: c_int) [cuGreenCtxStreamCreate 12050 Legacy];
            Other(forward) cuImportExternalSemaphore("cuImportExternalSemaphore")(extSem_out: *mut CUexternalSemaphore, semHandleDesc: *const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC) [cuImportExternalSemaphore 10000 Legacy];
            Other(device::init) cuInit("cuInit")(Flags: c_uint) [cuInit 2000 Legacy];
            Other(forward) cuIpcOpenEventHandle("cuIpcOpenEventHandle")(phEvent: *mut CUevent, handle: CUipcEventHandle) [cuIpcOpenEventHandle 4010 Legacy];
            Other(forward) cuKernelSetAttribute("cuKernelSetAttribute")(attrib: CUfunction_attribute, val: c_int, kernel: CUkernel, dev: CUdevice) [cuKernelSetAttribute 12000 Legacy];
            Other(forward) cuKernelSetCacheConfig("cuKernelSetCacheConfig")(kernel: CUkernel, config: CUfunc_cache, dev: CUdevice) [cuKernelSetCacheConfig 12000 Legacy];
            Other(forward) cuLibraryEnumerateKernels("cuLibraryEnumerateKernels")(kernels: *mut CUkernel, numKernels: c_uint, lib: CUlibrary) [cuLibraryEnumerateKernels 12040 Legacy];
            Other(forward) cuLinkAddData("cuLinkAddData")(state: CUlinkState, kind: CUjitInputType, data: *mut c_void, size: usize, name: *const c_char, numOptions: c_uint, options: *mut CUjit_option, optionValues: *mut *mut c_void) [cuLinkAddData 5050 Legacy];
            Other(forward) cuLinkAddData_v2("cuLinkAddData")(state: CUlinkState, kind: CUjitInputType, data: *mut c_void, size: usize, name: *const c_char, numOptions: c_uint, options: *mut CUjit_option, optionValues: *mut *mut c_void) [cuLinkAddData_v2 6050 Legacy];
            Other(forward) cuLinkAddFile("cuLinkAddFile")(state: CUlinkState, kind: CUjitInputType, path: *const c_char, numOptions: c_uint, options: *mut CUjit_option, optionValues: *mut *mut c_void) [cuLinkAddFile 5050 Legacy];
            Other(forward) cuLinkAddFile_v2("cuLinkAddFile")(state: CUlinkState, kind: CUjitInputType, path: *const c_char, numOptions: c_uint, options: *mut CUjit_option, optionValues: *mut *mut c_void) [cuLinkAddFile_v2 6050 Legacy];
            Other(forward) cuLinkCreate("cuLinkCreate")(numOptions: c_uint, options: *mut CUjit_option, optionValues: *mut *mut c_void, stateOut: *mut CUlinkState) [cuLinkCreate 5050 Legacy];
            Other(forward) cuLinkCreate_v2("cuLinkCreate")(numOptions: c_uint, options: *mut CUjit_option, optionValues: *mut *mut c_void, stateOut: *mut CUlinkState) [cuLinkCreate_v2 6050 Legacy];
            Other(forward) cuLinkDestroy("cuLinkDestroy")(state: CUlinkState) [cuLinkDestroy 5050 Legacy];
            Other(forward) cuLogicalEndpointAddDevice("cuLogicalEndpointAddDevice")(leId: CUlogicalEndpointId, dev: CUdevice) [cuLogicalEndpointAddDevice 13030 Legacy];
            Other(forward) cuLogicalEndpointExport("cuLogicalEndpointExport")(handle: *mut c_void, leId: CUlogicalEndpointId, handleType: CUlogicalEndpointIpcHandleType) [cuLogicalEndpointExport 13030 Legacy];
            Other(forward) cuLogicalEndpointIdRelease("cuLogicalEndpointIdRelease")(baseLeId: CUlogicalEndpointId, count: cuuint32_t) [cuLogicalEndpointIdRelease 13030 Legacy];
            Other(forward) cuLogicalEndpointIdReserve("cuLogicalEndpointIdReserve")(baseLeId: *mut CUlogicalEndpointId, count: cuuint32_t) [cuLogicalEndpointIdReserve 13030 Legacy];
            Other(forward) cuLogsRegisterCallback("cuLogsRegisterCallback")(callbackFunc: CUlogsCallback, userData: *mut c_void, callback_out: *mut CUlogsCallbackHandle) [cuLogsRegisterCallback 12090 Legacy];
            Other(forward) cuLogsUnregisterCallback("cuLogsUnregisterCallback")(callback: CUlogsCallbackHandle) [cuLogsUnregisterCallback 12090 Legacy];
            Other(forward) cuMemAdvise("cuMemAdvise")(devPtr: CUdeviceptr, count: usize, advice: CUmem_advise, device: CUdevice) [cuMemAdvise 8000 Legacy];
            Other(forward) cuMemAdvise_v2("cuMemAdvise")(devPtr: CUdeviceptr, count: usize, advice: CUmem_advise, location: CUmemLocation) [cuMemAdvise_v2 12020 Legacy];
            Other(forward) cuMemPoolSetAccess("cuMemPoolSetAccess")(pool: CUmemoryPool, map: *const CUmemAccessDesc, count: usize) [cuMemPoolSetAccess 11020 Legacy];
            Other(pool::set_attribute) cuMemPoolSetAttribute("cuMemPoolSetAttribute")(pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void) [cuMemPoolSetAttribute 11020 Legacy];
            Other(forward) cuMemSetAccess("cuMemSetAccess")(ptr: CUdeviceptr, size: usize, desc: *const CUmemAccessDesc, count: usize) [cuMemSetAccess 10020 Legacy];
            Other(forward) cuMemSetMemPool("cuMemSetMemPool")(location: *mut CUmemLocation, kind: CUmemAllocationType, pool: CUmemoryPool) [cuMemSetMemPool 13000 Legacy];
            Other(forward) cuModuleEnumerateFunctions("cuModuleEnumerateFunctions")(functions: *mut CUfunction, numFunctions: c_uint, module: CUmodule) [cuModuleEnumerateFunctions 12040 Legacy];
            Other(forward) cuMulticastAddDevice("cuMulticastAddDevice")(mcHandle: CUmemGenericAllocationHandle, dev: CUdevice) [cuMulticastAddDevice 12010 Legacy];
            Other(forward) cuParamSetSize("cuParamSetSize")(hfunc: CUfunction, numbytes: c_uint) [cuParamSetSize 2000 Legacy];
            Other(forward) cuParamSetTexRef("cuParamSetTexRef")(hfunc: CUfunction, texunit: c_int, hTexRef: CUtexref) [cuParamSetTexRef 2000 Legacy];
            Other(forward) cuParamSetf("cuParamSetf")(hfunc: CUfunction, offset: c_int, value: f32) [cuParamSetf 2000 Legacy];
            Other(forward) cuParamSeti("cuParamSeti")(hfunc: CUfunction, offset: c_int, value: c_uint) [cuParamSeti 2000 Legacy];
            Other(forward) cuParamSetv("cuParamSetv")(hfunc: CUfunction, offset: c_int, ptr: *mut c_void, numbytes: c_uint) [cuParamSetv 2000 Legacy];
            Other(exposure::set_attribute) cuPointerSetAttribute("cuPointerSetAttribute")(value: *const c_void, attribute: CUpointer_attribute, ptr: CUdeviceptr) [cuPointerSetAttribute 6000 Legacy];
            Other(forward) cuProfilerInitialize("cuProfilerInitialize")(configFile: *const c_char, outputFile: *const c_char, outputMode: CUoutput_mode) [cuProfilerInitialize 4000 Legacy];
            Other(forward) cuProfilerStart("cuProfilerStart")() [cuProfilerStart 4000 Legacy];
            Other(forward) cuProfilerStop("cuProfilerStop")() [cuProfilerStop 4000 Legacy];
            Other(forward) cuStreamCopyAttributes("cuStreamCopyAttributes")(dst: CUstream, src: CUstream) [cuStreamCopyAttributes 11000 Legacy, cuStreamCopyAttributes_ptsz 11000 PerThread];
            Other(forward) cuStreamCreate("cuStreamCreate")(phStream: *mut CUstream, Flags: c_uint) [cuStreamCreate 2000 Legacy];
            Other(forward) cuStreamCreateWithPriority("cuStreamCreateWithPriority")(phStream: *mut CUstream, flags: c_uint, priority: c_int) [cuStreamCreateWithPriority 5050 Legacy];
            Other(sync::destroy) cuStreamDestroy("cuStreamDestroy")(hStream: CUstream) [cuStreamDestroy 2000 Legacy];
            Other(sync::destroy) cuStreamDestroy_v2("cuStreamDestroy")(hStream: CUstream) [cuStreamDestroy_v2 4000 Legacy];
            Other(forward) cuStreamSetAttribute("cuStreamSetAttribute")(hStream: CUstream, attr: CUstreamAttrID, value: *const CUstreamAttrValue) [cuStreamSetAttribute 11000 Legacy, cuStreamSetAttribute_ptsz 11000 PerThread];
            Other(forward) cuSurfObjectCreate("cuSurfObjectCreate")(pSurfObject: *mut CUsurfObject, pResDesc: *const CUDA_RESOURCE_DESC) [cuSurfObjectCreate 5000 Legacy];
            Other(forward) cuSurfObjectDestroy("cuSurfObjectDestroy")(surfObject: CUsurfObject) [cuSurfObjectDestroy 5000 Legacy];
            Other(forward) cuSurfRefSetArray("cuSurfRefSetArray")(hSurfRef: CUsurfref, hArray: CUarray, Flags: c_uint) [cuSurfRefSetArray 3000 Legacy];
            Other(forward) cuTensorMapEncodeIm2col("cuTensorMapEncodeIm2col")(tensorMap: *mut CUtensorMap, tensorDataType: CUtensorMapDataType, tensorRank: cuuint32_t, globalAddress: *mut c_void, globalDim: *const cuuint64_t, globalStrides: *const cuuint64_t, pixelBoxLowerCorner: *const c_int, pixelBoxUpperCorner: *const c_int, channelsPerPixel: cuuint32_t, pixelsPerColumn: cuuint32_t, elementStrides: *const cuuint32_t, interleave: CUtensorMapInterleave, swizzle: CUtensorMapSwizzle, l2Promotion: CUtensorMapL2promotion, oobFill: CUtensorMapFloatOOBfill) [cuTensorMapEncodeIm2col 12000 Legacy];
            Other(forward) cuTensorMapEncodeIm2colWide("cuTensorMapEncodeIm2colWide")(tensorMap: *mut CUtensorMap, tensorDataType: CUtensorMapDataType, tensorRank: cuuint32_t, globalAddress: *mut c_void, globalDim: *const cuuint64_t, globalStrides: *const cuuint64_t, pixelBoxLowerCornerWidth: c_int, pixelBoxUpperCornerWidth: c_int, channelsPerPixel: cuuint32_t, pixelsPerColumn: cuuint32_t, elementStrides: *const cuuint32_t, interleave: CUtensorMapInterleave, mode: CUtensorMapIm2ColWideMode, swizzle: CUtensorMapSwizzle, l2Promotion: CUtensorMapL2promotion, oobFill: CUtensorMapFloatOOBfill) [cuTensorMapEncodeIm2colWide 12080 Legacy];
            Other(forward) cuTensorMapEncodeTiled("cuTensorMapEncodeTiled")(tensorMap: *mut CUtensorMap, tensorDataType: CUtensorMapDataType, tensorRank: cuuint32_t, globalAddress: *mut c_void, globalDim: *const cuuint64_t, globalStrides: *const cuuint64_t, boxDim: *const cuuint32_t, elementStrides: *const cuuint32_t, interleave: CUtensorMapInterleave, swizzle: CUtensorMapSwizzle, l2Promotion: CUtensorMapL2promotion, oobFill: CUtensorMapFloatOOBfill) [cuTensorMapEncodeTiled 12000 Legacy];
            Other(forward) cuTensorMapReplaceAddress("cuTensorMapReplaceAddress")(tensorMap: *mut CUtensorMap, globalAddress: *mut c_void) [cuTensorMapReplaceAddress 12000 Legacy];
            Other(forward) cuTensorMapSetAllocationClass("cuTensorMapSetAllocationClass")(tensorMap: *mut CUtensorMap, allocClass: CUtensorMapAllocClass, outAllocClass: *mut CUtensorMapAllocClass) [cuTensorMapSetAllocationClass 13050 Legacy];
            Other(forward) cuTexObjectCreate("cuTexObjectCreate")(pTexObject: *mut CUtexObject, pResDesc: *const CUDA_RESOURCE_DESC, pTexDesc: *const CUDA_TEXTURE_DESC, pResViewDesc: *const CUDA_RESOURCE_VIEW_DESC) [cuTexObjectCreate 5000 Legacy];
            Other(forward) cuTexObjectDestroy("cuTexObjectDestroy")(texObject: CUtexObject) [cuTexObjectDestroy 5000 Legacy];
            Other(forward) cuTexRefCreate("cuTexRefCreate")(pTexRef: *mut CUtexref) [cuTexRefCreate 2000 Legacy];
            Other(forward) cuTexRefDestroy("cuTexRefDestroy")(hTexRef: CUtexref) [cuTexRefDestroy 2000 Legacy];
            Other(forward) cuTexRefSetAddress("cuTexRefSetAddress")(ByteOffset: *mut c_uint, hTexRef: CUtexref, dptr: CUdeviceptr_v1, bytes: c_uint) [cuTexRefSetAddress 2000 Legacy];
            Other(forward) cuTexRefSetAddress_v2("cuTexRefSetAddress")(ByteOffset: *mut usize, hTexRef: CUtexref, dptr: CUdeviceptr, bytes: usize) [cuTexRefSetAddress_v2 3020 Legacy];
            Other(forward) cuTexRefSetAddress2D("cuTexRefSetAddress2D")(hTexRef: CUtexref, desc: *const CUDA_ARRAY_DESCRIPTOR_v1, dptr: CUdeviceptr_v1, Pitch: c_uint) [cuTexRefSetAddress2D 2020 Legacy];
            Other(forward) cuTexRefSetAddress2D_v2("cuTexRefSetAddress2D")(hTexRef: CUtexref, desc: *const CUDA_ARRAY_DESCRIPTOR, dptr: CUdeviceptr, Pitch: usize) [cuTexRefSetAddress2D_v2 3020 Legacy];
            Other(forward) cuTexRefSetAddress2D_v3("cuTexRefSetAddress2D")(hTexRef: CUtexref, desc: *const CUDA_ARRAY_DESCRIPTOR, dptr: CUdeviceptr, Pitch: usize) [cuTexRefSetAddress2D_v3 4010 Legacy];
            Other(forward) cuTexRefSetAddressMode("cuTexRefSetAddressMode")(hTexRef: CUtexref, dim: c_int, am: CUaddress_mode) [cuTexRefSetAddressMode 2000 Legacy];
            Other(forward) cuTexRefSetArray("cuTexRefSetArray")(hTexRef: CUtexref, hArray: CUarray, Flags: c_uint) [cuTexRefSetArray 2000 Legacy];
            Other(forward) cuTexRefSetBorderColor("cuTexRefSetBorderColor")(hTexRef: CUtexref, pBorderColor: *mut f32) [cuTexRefSetBorderColor 8000 Legacy];
            Other(forward) cuTexRefSetFilterMode("cuTexRefSetFilterMode")(hTexRef: CUtexref, fm: CUfilter_mode) [cuTexRefSetFilterMode 2000 Legacy];
            Other(forward) cuTexRefSetFlags("cuTexRefSetFlags")(hTexRef: CUtexref, Flags: c_uint) [cuTexRefSetFlags 2000 Legacy];
            Other(forward) cuTexRefSetFormat("cuTexRefSetFormat")(hTexRef: CUtexref, fmt: CUarray_format, NumPackedComponents: c_int) [cuTexRefSetFormat 2000 Legacy];
            Other(forward) cuTexRefSetMaxAnisotropy("cuTexRefSetMaxAnisotropy")(hTexRef: CUtexref, maxAniso: c_uint) [cuTexRefSetMaxAnisotropy 5000 Legacy];
            Other(forward) cuTexRefSetMipmapFilterMode("cuTexRefSetMipmapFilterMode")(hTexRef: CUtexref, fm: CUfilter_mode) [cuTexRefSetMipmapFilterMode 5000 Legacy];
            Other(forward) cuTexRefSetMipmapLevelBias("cuTexRefSetMipmapLevelBias")(hTexRef: CUtexref, bias: f32) [cuTexRefSetMipmapLevelBias 5000 Legacy];
            Other(forward) cuTexRefSetMipmapLevelClamp("cuTexRefSetMipmapLevelClamp")(hTexRef: CUtexref, minMipmapLevelClamp: f32, maxMipmapLevelClamp: f32) [cuTexRefSetMipmapLevelClamp 5000 Legacy];
            Other(forward) cuTexRefSetMipmappedArray("cuTexRefSetMipmappedArray")(hTexRef: CUtexref, hMipmappedArray: CUmipmappedArray, Flags: c_uint) [cuTexRefSetMipmappedArray 5000 Legacy];
            Other(forward) cuUserObjectCreate("cuUserObjectCreate")(object_out: *mut CUuserObject, ptr: *mut c_void, destroy: CUhostFn, initialRefcount: c_uint, flags: c_uint) [cuUserObjectCreate 11030 Legacy];
            Other(forward) cuUserObjectRelease("cuUserObjectRelease")(object: CUuserObject, count: c_uint) [cuUserObjectRelease 11030 Legacy];
            Other(forward) cuUserObjectRetain("cuUserObjectRetain")(object: CUuserObject, count: c_uint) [cuUserObjectRetain 11030 Legacy];
        }
    };
}

impl RowId {
    pub fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }
}

/// What is asked of a symbol while a program runs comes from tables without addresses; [`SYMBOLS`] and [`ROWS`] are for
/// tools and tests, and stay out of the libraries that are loaded into every program.
impl SymbolId {
    pub fn name(self) -> &'static str {
        NAMES.get(self as usize)
    }

    /// The name for C.
    pub fn c_name(self) -> Option<&'static core::ffi::CStr> {
        NAMES.c_str(self as usize)
    }

    /// What programs ask `cuGetProcAddress` for.
    pub fn base(self) -> &'static str {
        BASES.get(self as usize)
    }

    pub fn row(self) -> RowId {
        ABOUT[self as usize].0
    }

    /// The first driver version that has it.
    pub fn version(self) -> i32 {
        ABOUT[self as usize].1
    }

    pub fn stream_api(self) -> StreamApi {
        ABOUT[self as usize].2
    }

    /// The whole entry.
    pub fn symbol(self) -> &'static Symbol {
        &SYMBOLS[self as usize]
    }
}

/// The symbol a driver of any age answers for `base` asked at `version`: the newest that is not newer.
/// `None` when the name is unknown or appeared later.
pub fn resolve(base: &str, version: i32, stream_api: StreamApi) -> Option<SymbolId> {
    let newest = |api: StreamApi| {
        let usable = variants(base).filter(|id| id.stream_api() == api && id.version() <= version);
        usable.max_by_key(|id| id.version())
    };
    match stream_api {
        StreamApi::Legacy => newest(StreamApi::Legacy),
        StreamApi::PerThread => newest(StreamApi::PerThread).or_else(|| newest(StreamApi::Legacy)),
    }
}

/// The symbol of this exact name.
pub fn by_name(name: &str) -> Option<SymbolId> {
    NAMES
        .places(name)
        .first()
        .map(|place| ALL_SYMBOLS[usize::from(*place)])
}

/// All symbols of a base name, in table order.
pub fn variants(base: &str) -> impl Iterator<Item = SymbolId> + Clone + use<> {
    BASES
        .places(base)
        .iter()
        .map(|place| ALL_SYMBOLS[usize::from(*place)])
}

const NAME_LIST: [&str; SYMBOL_COUNT] = {
    let mut list = [""; SYMBOL_COUNT];
    let mut at = 0;
    while at < SYMBOL_COUNT {
        list[at] = SYMBOLS[at].name;
        at += 1;
    }
    list
};

const BASE_LIST: [&str; SYMBOL_COUNT] = {
    let mut list = [""; SYMBOL_COUNT];
    let mut at = 0;
    while at < SYMBOL_COUNT {
        list[at] = ROWS[SYMBOLS[at].row as usize].base;
        at += 1;
    }
    list
};

static NAMES: Names<SYMBOL_COUNT, { length(&NAME_LIST) }> = Names::of(&NAME_LIST);
static BASES: Names<SYMBOL_COUNT, { length(&BASE_LIST) }> = Names::of(&BASE_LIST);

/// Row, version and default stream of each symbol.
static ABOUT: [(RowId, i32, StreamApi); SYMBOL_COUNT] = {
    let mut about = [(SYMBOLS[0].row, 0, StreamApi::Legacy); SYMBOL_COUNT];
    let mut at = 0;
    while at < SYMBOL_COUNT {
        about[at] = (SYMBOLS[at].row, SYMBOLS[at].version, SYMBOLS[at].stream_api);
        at += 1;
    }
    about
};

/// `(memory::alloc)` as `memory::alloc`.
const fn handler_name(group: &'static str) -> &'static str {
    let (_, inner) = group.split_at(1);
    inner.split_at(inner.len() - 1).0
}

macro_rules! declare {
    ($($class:ident $handler:tt $name:ident($base:literal)($($argument:ident: $kind:ty),*) [$($symbol:ident $version:literal $api:ident),+];)*) => {
        /// One per row, in table order.
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum RowId { $($name),* }

        /// One per exported symbol, in table order.
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum SymbolId { $($($symbol),+),* }

        pub const ALL_SYMBOLS: &[SymbolId] = &[$($(SymbolId::$symbol),+),*];

        /// The rows, indexed by [`RowId`].
        pub const ROWS: &[Row] = &[$(Row {
            name: stringify!($name),
            base: $base,
            class: Class::$class,
            handler: handler_name(stringify!($handler)),
            arguments: &[$((stringify!($argument), stringify!($kind))),*],
        }),*];

        /// The symbols, indexed by [`SymbolId`].
        pub const SYMBOLS: &[Symbol] = &[$($(Symbol {
            name: stringify!($symbol),
            version: $version,
            stream_api: StreamApi::$api,
            row: RowId::$name,
        }),+),*];

        /// How many symbols there are.
        pub const SYMBOL_COUNT: usize = SYMBOLS.len();
    };
}

crate::functions!(declare);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_unique_and_found_by_name() {
        for &id in ALL_SYMBOLS {
            let symbol = id.symbol();
            assert_eq!(by_name(symbol.name), Some(id));
            assert!(variants(symbol.row.row().base).any(|variant| variant == id));
            let short = (id.name(), id.base(), id.row(), id.version(), id.stream_api());
            let whole = (
                symbol.name,
                symbol.row.row().base,
                symbol.row,
                symbol.version,
                symbol.stream_api,
            );
            assert_eq!(short, whole);
        }
        assert_eq!(by_name("cuNeverHeardOf"), None);
    }

    #[test]
    fn the_newest_variant_not_newer_than_asked_answers() {
        let name = |base, version, api| resolve(base, version, api).map(|id| id.symbol().name);
        use StreamApi::{Legacy, PerThread};
        assert_eq!(name("cuMemAlloc", 3020, Legacy), Some("cuMemAlloc_v2"));
        assert_eq!(name("cuMemAlloc", 2000, Legacy), Some("cuMemAlloc"));
        assert_eq!(name("cuGetProcAddress", 11030, Legacy), Some("cuGetProcAddress"));
        assert_eq!(
            name("cuGetProcAddress", 13050, Legacy),
            Some("cuGetProcAddress_v2")
        );
        assert_eq!(
            name("cuMemAllocAsync", 11020, PerThread),
            Some("cuMemAllocAsync_ptsz")
        );
        assert_eq!(name("cuMemAlloc", 13000, PerThread), Some("cuMemAlloc_v2"));
        assert_eq!(name("cuMemAllocAsync", 11010, Legacy), None);
        assert_eq!(
            name("cuMemAlloc_v2", 13000, Legacy),
            None,
            "only base names are asked for"
        );
    }

    #[test]
    fn prototypes_in_c() {
        let c = |name: &str| by_name(name).unwrap().symbol().row.row().c_arguments();
        assert_eq!(c("cuMemAlloc_v2"), "CUdeviceptr *, size_t");
        assert_eq!(c("cuProfilerStart"), "void");
        assert_eq!(c("cuGetErrorString"), "CUresult, const char * *");
        assert_eq!(c("cuGetExportTable"), "const void * *, const CUuuid *");
    }

    /// A function whose name speaks of memory or work must not be filed under `Other` or `Query` by
    /// accident. Those that may are named here by what they do instead.
    #[test]
    fn allocations_and_work_are_classified() {
        let suspicious = [
            "Alloc",
            "Launch",
            "Memcpy",
            "Memset",
            "MemCreate",
            "Import",
            "Prefetch",
            "Batch",
        ];
        let excused = [
            (
                "cuGraphAddMem",
                "a node copies or sets when the graph is launched",
            ),
            ("cuGraphAddBatchMemOpNode", "works when the graph is launched"),
            ("cuGraphMem", "parameters of a node"),
            ("cuGraphExecMem", "parameters of a node"),
            ("cuGraphBatchMemOpNode", "parameters of a node"),
            ("cuGraphExecBatchMemOpNode", "parameters of a node"),
            ("cuImportExternalSemaphore", "a semaphore holds no memory"),
            ("cuMemGetAlloc", "only answers"),
            ("cuTensorMapSetAllocationClass", "a property of a descriptor"),
        ];
        for row in ROWS {
            let named = suspicious.iter().any(|word| row.name.contains(word));
            let unclassified = matches!(row.class, Class::Other | Class::Query);
            let excuse = excused.iter().any(|(prefix, _)| row.name.starts_with(prefix));
            assert!(
                !(named && unclassified && !excuse),
                "{} is {:?}",
                row.name,
                row.class
            );
        }
    }
}
