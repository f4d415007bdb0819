//! Functions that are the driver's own under another name: same arguments, same meaning.
//!
//! A row reads `need driver's row(argument: Type, …) [symbol default-stream, …];` where `need` says what must
//! be there first: `driver`, or `context`, which makes the primary context of the thread's device current.

use super::context::current as context;
use super::entered;
use super::lookup::{DRIVER, ready as driver};
use driver::prelude::*;

macro_rules! passed {
    ($($need:ident $row:ident $arguments:tt [$($symbol:ident $api:ident),+];)*) => {
        $($(passed_export! { $need $row $arguments $symbol $api })+)*
        #[cfg(test)]
        pub(super) const PASSED: &[(&str, &str)] = &[$($((stringify!($symbol), stringify!($row))),+),*];
    };
}

macro_rules! passed_export {
    ($need:ident $row:ident ($($argument:ident: $kind:ty),*) $symbol:ident $api:ident) => {
        #[allow(non_snake_case, clippy::too_many_arguments)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $symbol($($argument: $kind),*) -> CuResult {
            entered(|| {
                $need()?;
                // SAFETY: the caller's arguments; both APIs demand the same of them.
                unsafe { DRIVER.$row(StreamApi::$api, $($argument),*) }
            })
        }
    };
}

passed! {
    driver cuDeviceGetAttribute(pi: *mut c_int, attrib: CUdevice_attribute, dev: CUdevice) [cudaDeviceGetAttribute Legacy];
    driver cuDeviceGetPCIBusId(pciBusId: *mut c_char, len: c_int, dev: CUdevice) [cudaDeviceGetPCIBusId Legacy];
    driver cuDeviceGetByPCIBusId(dev: *mut CUdevice, pciBusId: *const c_char) [cudaDeviceGetByPCIBusId Legacy];
    driver cuDeviceCanAccessPeer(canAccessPeer: *mut c_int, dev: CUdevice, peerDev: CUdevice) [cudaDeviceCanAccessPeer Legacy];
    driver cuDeviceGetP2PAttribute(value: *mut c_int, attrib: CUdevice_P2PAttribute, srcDevice: CUdevice, dstDevice: CUdevice) [cudaDeviceGetP2PAttribute Legacy];
    driver cuDeviceGetDefaultMemPool(pool_out: *mut CUmemoryPool, dev: CUdevice) [cudaDeviceGetDefaultMemPool Legacy];
    driver cuDeviceGetMemPool(pool: *mut CUmemoryPool, dev: CUdevice) [cudaDeviceGetMemPool Legacy];
    driver cuDeviceSetMemPool(dev: CUdevice, pool: CUmemoryPool) [cudaDeviceSetMemPool Legacy];
    driver cuDeviceGetGraphMemAttribute(device: CUdevice, attr: CUgraphMem_attribute, value: *mut c_void) [cudaDeviceGetGraphMemAttribute Legacy];
    driver cuDeviceSetGraphMemAttribute(device: CUdevice, attr: CUgraphMem_attribute, value: *mut c_void) [cudaDeviceSetGraphMemAttribute Legacy];
    driver cuDeviceGraphMemTrim(device: CUdevice) [cudaDeviceGraphMemTrim Legacy];
    driver cuMemGetDefaultMemPool(pool_out: *mut CUmemoryPool, location: *mut CUmemLocation, kind: CUmemAllocationType) [cudaMemGetDefaultMemPool Legacy];
    driver cuMemGetMemPool(pool: *mut CUmemoryPool, location: *mut CUmemLocation, kind: CUmemAllocationType) [cudaMemGetMemPool Legacy];
    driver cuMemSetMemPool(location: *mut CUmemLocation, kind: CUmemAllocationType, pool: CUmemoryPool) [cudaMemSetMemPool Legacy];
    context cuCtxSynchronize() [cudaDeviceSynchronize Legacy, cudaThreadSynchronize Legacy];
    context cuCtxGetLimit(pvalue: *mut usize, limit: CUlimit) [cudaDeviceGetLimit Legacy, cudaThreadGetLimit Legacy];
    context cuCtxSetLimit(limit: CUlimit, value: usize) [cudaDeviceSetLimit Legacy, cudaThreadSetLimit Legacy];
    context cuCtxGetCacheConfig(pconfig: *mut CUfunc_cache) [cudaDeviceGetCacheConfig Legacy, cudaThreadGetCacheConfig Legacy];
    context cuCtxSetCacheConfig(config: CUfunc_cache) [cudaDeviceSetCacheConfig Legacy, cudaThreadSetCacheConfig Legacy];
    context cuCtxGetSharedMemConfig(pConfig: *mut CUsharedconfig) [cudaDeviceGetSharedMemConfig Legacy];
    context cuCtxSetSharedMemConfig(config: CUsharedconfig) [cudaDeviceSetSharedMemConfig Legacy];
    context cuCtxGetStreamPriorityRange(leastPriority: *mut c_int, greatestPriority: *mut c_int) [cudaDeviceGetStreamPriorityRange Legacy];
    context cuCtxResetPersistingL2Cache() [cudaCtxResetPersistingL2Cache Legacy];
    context cuMemGetInfo_v2(free: *mut usize, total: *mut usize) [cudaMemGetInfo Legacy];
    context cuMemHostAlloc(pp: *mut *mut c_void, bytesize: usize, Flags: c_uint) [cudaHostAlloc Legacy];
    context cuMemHostRegister_v2(p: *mut c_void, bytesize: usize, Flags: c_uint) [cudaHostRegister Legacy];
    context cuMemHostUnregister(p: *mut c_void) [cudaHostUnregister Legacy];
    context cuMemHostGetDevicePointer_v2(pdptr: *mut CUdeviceptr, p: *mut c_void, Flags: c_uint) [cudaHostGetDevicePointer Legacy];
    context cuMemHostGetFlags(pFlags: *mut c_uint, p: *mut c_void) [cudaHostGetFlags Legacy];
    context cuMemRangeGetAttribute(data: *mut c_void, dataSize: usize, attribute: CUmem_range_attribute, devPtr: CUdeviceptr, count: usize) [cudaMemRangeGetAttribute Legacy];
    context cuMemRangeGetAttributes(data: *mut *mut c_void, dataSizes: *mut usize, attributes: *mut CUmem_range_attribute, numAttributes: usize, devPtr: CUdeviceptr, count: usize) [cudaMemRangeGetAttributes Legacy];
    context cuMemPoolCreate(pool: *mut CUmemoryPool, poolProps: *const CUmemPoolProps) [cudaMemPoolCreate Legacy];
    context cuMemPoolDestroy(pool: CUmemoryPool) [cudaMemPoolDestroy Legacy];
    context cuMemPoolGetAttribute(pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void) [cudaMemPoolGetAttribute Legacy];
    context cuMemPoolSetAttribute(pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void) [cudaMemPoolSetAttribute Legacy];
    context cuMemPoolGetAccess(flags: *mut CUmemAccess_flags, memPool: CUmemoryPool, location: *mut CUmemLocation) [cudaMemPoolGetAccess Legacy];
    context cuMemPoolSetAccess(pool: CUmemoryPool, map: *const CUmemAccessDesc, count: usize) [cudaMemPoolSetAccess Legacy];
    context cuMemPoolTrimTo(pool: CUmemoryPool, minBytesToKeep: usize) [cudaMemPoolTrimTo Legacy];
    context cuMemPoolExportPointer(shareData_out: *mut CUmemPoolPtrExportData, ptr: CUdeviceptr) [cudaMemPoolExportPointer Legacy];
    context cuMemPoolImportPointer(ptr_out: *mut CUdeviceptr, pool: CUmemoryPool, shareData: *mut CUmemPoolPtrExportData) [cudaMemPoolImportPointer Legacy];
    context cuIpcGetMemHandle(pHandle: *mut CUipcMemHandle, dptr: CUdeviceptr) [cudaIpcGetMemHandle Legacy];
    context cuIpcOpenMemHandle_v2(pdptr: *mut CUdeviceptr, handle: CUipcMemHandle, Flags: c_uint) [cudaIpcOpenMemHandle Legacy];
    context cuIpcCloseMemHandle(dptr: CUdeviceptr) [cudaIpcCloseMemHandle Legacy];
    context cuIpcGetEventHandle(pHandle: *mut CUipcEventHandle, event: CUevent) [cudaIpcGetEventHandle Legacy];
    context cuIpcOpenEventHandle(phEvent: *mut CUevent, handle: CUipcEventHandle) [cudaIpcOpenEventHandle Legacy];
    context cuStreamCreateWithPriority(phStream: *mut CUstream, flags: c_uint, priority: c_int) [cudaStreamCreateWithPriority Legacy];
    context cuStreamDestroy_v2(hStream: CUstream) [cudaStreamDestroy Legacy];
    context cuStreamSynchronize(hStream: CUstream) [cudaStreamSynchronize Legacy, cudaStreamSynchronize_ptsz PerThread];
    context cuStreamQuery(hStream: CUstream) [cudaStreamQuery Legacy, cudaStreamQuery_ptsz PerThread];
    context cuStreamGetPriority(hStream: CUstream, priority: *mut c_int) [cudaStreamGetPriority Legacy, cudaStreamGetPriority_ptsz PerThread];
    context cuStreamGetFlags(hStream: CUstream, flags: *mut c_uint) [cudaStreamGetFlags Legacy, cudaStreamGetFlags_ptsz PerThread];
    context cuStreamGetId(hStream: CUstream, streamId: *mut c_ulonglong) [cudaStreamGetId Legacy, cudaStreamGetId_ptsz PerThread];
    context cuStreamGetDevice(hStream: CUstream, device: *mut CUdevice) [cudaStreamGetDevice Legacy, cudaStreamGetDevice_ptsz PerThread];
    context cuStreamWaitEvent(hStream: CUstream, hEvent: CUevent, Flags: c_uint) [cudaStreamWaitEvent Legacy, cudaStreamWaitEvent_ptsz PerThread];
    context cuStreamAddCallback(hStream: CUstream, callback: CUstreamCallback, userData: *mut c_void, flags: c_uint) [cudaStreamAddCallback Legacy, cudaStreamAddCallback_ptsz PerThread];
    context cuStreamAttachMemAsync(hStream: CUstream, dptr: CUdeviceptr, length: usize, flags: c_uint) [cudaStreamAttachMemAsync Legacy, cudaStreamAttachMemAsync_ptsz PerThread];
    context cuStreamCopyAttributes(dst: CUstream, src: CUstream) [cudaStreamCopyAttributes Legacy, cudaStreamCopyAttributes_ptsz PerThread];
    context cuStreamGetAttribute(hStream: CUstream, attr: CUstreamAttrID, value_out: *mut CUstreamAttrValue) [cudaStreamGetAttribute Legacy, cudaStreamGetAttribute_ptsz PerThread];
    context cuStreamSetAttribute(hStream: CUstream, attr: CUstreamAttrID, value: *const CUstreamAttrValue) [cudaStreamSetAttribute Legacy, cudaStreamSetAttribute_ptsz PerThread];
    context cuStreamIsCapturing(hStream: CUstream, captureStatus: *mut CUstreamCaptureStatus) [cudaStreamIsCapturing Legacy, cudaStreamIsCapturing_ptsz PerThread];
    context cuStreamBeginCapture_v2(hStream: CUstream, mode: CUstreamCaptureMode) [cudaStreamBeginCapture Legacy, cudaStreamBeginCapture_ptsz PerThread];
    context cuStreamEndCapture(hStream: CUstream, phGraph: *mut CUgraph) [cudaStreamEndCapture Legacy, cudaStreamEndCapture_ptsz PerThread];
    context cuThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode) [cudaThreadExchangeStreamCaptureMode Legacy];
    context cuLaunchHostFunc(hStream: CUstream, function: CUhostFn, userData: *mut c_void) [cudaLaunchHostFunc Legacy, cudaLaunchHostFunc_ptsz PerThread];
    context cuLaunchHostFunc_v2(hStream: CUstream, function: CUhostFn, userData: *mut c_void, syncMode: c_uint) [cudaLaunchHostFunc_v2 Legacy, cudaLaunchHostFunc_v2_ptsz PerThread];
    context cuEventDestroy_v2(hEvent: CUevent) [cudaEventDestroy Legacy];
    context cuEventRecord(hEvent: CUevent, hStream: CUstream) [cudaEventRecord Legacy, cudaEventRecord_ptsz PerThread];
    context cuEventRecordWithFlags(hEvent: CUevent, hStream: CUstream, flags: c_uint) [cudaEventRecordWithFlags Legacy, cudaEventRecordWithFlags_ptsz PerThread];
    context cuEventQuery(hEvent: CUevent) [cudaEventQuery Legacy];
    context cuEventSynchronize(hEvent: CUevent) [cudaEventSynchronize Legacy];
    context cuEventElapsedTime(pMilliseconds: *mut f32, hStart: CUevent, hEnd: CUevent) [cudaEventElapsedTime Legacy];
    context cuEventElapsedTime_v2(pMilliseconds: *mut f32, hStart: CUevent, hEnd: CUevent) [cudaEventElapsedTime_v2 Legacy];
    context cuLibraryLoadData(library: *mut CUlibrary, code: *const c_void, jitOptions: *mut CUjit_option, jitOptionsValues: *mut *mut c_void, numJitOptions: c_uint, libraryOptions: *mut CUlibraryOption, libraryOptionValues: *mut *mut c_void, numLibraryOptions: c_uint) [cudaLibraryLoadData Legacy];
    context cuLibraryLoadFromFile(library: *mut CUlibrary, fileName: *const c_char, jitOptions: *mut CUjit_option, jitOptionsValues: *mut *mut c_void, numJitOptions: c_uint, libraryOptions: *mut CUlibraryOption, libraryOptionValues: *mut *mut c_void, numLibraryOptions: c_uint) [cudaLibraryLoadFromFile Legacy];
    context cuLibraryUnload(library: CUlibrary) [cudaLibraryUnload Legacy];
    context cuLibraryGetKernel(pKernel: *mut CUkernel, library: CUlibrary, name: *const c_char) [cudaLibraryGetKernel Legacy];
    context cuLibraryGetKernelCount(count: *mut c_uint, lib: CUlibrary) [cudaLibraryGetKernelCount Legacy];
    context cuLibraryEnumerateKernels(kernels: *mut CUkernel, numKernels: c_uint, lib: CUlibrary) [cudaLibraryEnumerateKernels Legacy];
    context cuLibraryGetGlobal(dptr: *mut CUdeviceptr, bytes: *mut usize, library: CUlibrary, name: *const c_char) [cudaLibraryGetGlobal Legacy];
    context cuLibraryGetManaged(dptr: *mut CUdeviceptr, bytes: *mut usize, library: CUlibrary, name: *const c_char) [cudaLibraryGetManaged Legacy];
    context cuLibraryGetUnifiedFunction(fptr: *mut *mut c_void, library: CUlibrary, symbol: *const c_char) [cudaLibraryGetUnifiedFunction Legacy];
    context cuStreamGetCaptureInfo_v2(hStream: CUstream, captureStatus_out: *mut CUstreamCaptureStatus, id_out: *mut cuuint64_t, graph_out: *mut CUgraph, dependencies_out: *mut *const CUgraphNode, numDependencies_out: *mut usize) [cudaStreamGetCaptureInfo_v2 Legacy, cudaStreamGetCaptureInfo_v2_ptsz PerThread];
    context cuStreamGetCaptureInfo_v3(hStream: CUstream, captureStatus_out: *mut CUstreamCaptureStatus, id_out: *mut cuuint64_t, graph_out: *mut CUgraph, dependencies_out: *mut *const CUgraphNode, edgeData_out: *mut *const CUgraphEdgeData, numDependencies_out: *mut usize) [cudaStreamGetCaptureInfo_v3 Legacy, cudaStreamGetCaptureInfo_v3_ptsz PerThread];
    context cuGraphCreate(phGraph: *mut CUgraph, flags: c_uint) [cudaGraphCreate Legacy];
    context cuGraphDestroy(hGraph: CUgraph) [cudaGraphDestroy Legacy];
    context cuGraphLaunch(hGraphExec: CUgraphExec, hStream: CUstream) [cudaGraphLaunch Legacy, cudaGraphLaunch_ptsz PerThread];
    context cuGraphInstantiateWithFlags(phGraphExec: *mut CUgraphExec, hGraph: CUgraph, flags: c_ulonglong) [cudaGraphInstantiateWithFlags Legacy];
    context cuGraphExecDestroy(hGraphExec: CUgraphExec) [cudaGraphExecDestroy Legacy];
    context cuGraphGetNodes(hGraph: CUgraph, nodes: *mut CUgraphNode, numNodes: *mut usize) [cudaGraphGetNodes Legacy];
    context cuGraphUpload(hGraphExec: CUgraphExec, hStream: CUstream) [cudaGraphUpload Legacy, cudaGraphUpload_ptsz PerThread];
}
