//! The functions that are written here, as C functions.
//!
//! A row reads `module::function(argument: Type, …) [symbol, …];`. In the second table each symbol says which
//! default stream it means, and the function gets that first.

use super::structs::*;
use super::{
    copy, device, entered, entry_point, function, last_error, launch, managed, memory, pointer, properties,
    region, set, stream, symbol,
};
use driver::prelude::*;

/// The runtime's names are looked up by what a test reads here.
macro_rules! plain {
    ($($module:ident::$function:ident $arguments:tt [$($symbol:ident),+];)*) => {
        $($(plain_export! { $module $function $arguments $symbol })+)*
        #[cfg(test)]
        pub(super) const PLAIN: &[&str] = &[$($(stringify!($symbol)),+),*];
    };
}

macro_rules! plain_export {
    ($module:ident $function:ident ($($argument:ident: $kind:ty),*) $symbol:ident) => {
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $symbol($($argument: $kind),*) -> CuResult {
            // SAFETY: the caller's arguments, for which it vouches as cuda_runtime_api.h demands.
            entered(|| unsafe { $module::$function($($argument),*) })
        }
    };
}

macro_rules! streamed {
    ($($module:ident::$function:ident $arguments:tt [$($symbol:ident $api:ident),+];)*) => {
        $($(streamed_export! { $module $function $arguments $symbol $api })+)*
        #[cfg(test)]
        pub(super) const STREAMED: &[&str] = &[$($(stringify!($symbol)),+),*];
    };
}

macro_rules! streamed_export {
    ($module:ident $function:ident ($($argument:ident: $kind:ty),*) $symbol:ident $api:ident) => {
        #[allow(non_snake_case, clippy::too_many_arguments)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $symbol($($argument: $kind),*) -> CuResult {
            // SAFETY: the caller's arguments, for which it vouches as cuda_runtime_api.h demands.
            entered(|| unsafe { $module::$function(StreamApi::$api, $($argument),*) })
        }
    };
}

plain! {
    device::runtime_version(version: *mut c_int) [cudaRuntimeGetVersion];
    device::driver_version(version: *mut c_int) [cudaDriverGetVersion];
    device::count(count: *mut c_int) [cudaGetDeviceCount];
    device::chosen(device: *mut c_int) [cudaGetDevice];
    device::choose(device: c_int) [cudaSetDevice];
    device::initialise(device: c_int, device_flags: c_uint, flags: c_uint) [cudaInitDevice];
    device::reset() [cudaDeviceReset, cudaThreadExit];
    device::set_flags(flags: c_uint) [cudaSetDeviceFlags];
    device::flags(flags: *mut c_uint) [cudaGetDeviceFlags];
    device::enable_peer(peer: c_int, flags: c_uint) [cudaDeviceEnablePeerAccess];
    device::disable_peer(peer: c_int) [cudaDeviceDisablePeerAccess];
    device::profile() [cudaProfilerStart, cudaProfilerStop];
    properties::current(to: *mut u8, device: c_int) [cudaGetDeviceProperties];
    properties::second(to: *mut u8, device: c_int) [cudaGetDeviceProperties_v2];
    memory::allocate(to: *mut *mut c_void, bytes: usize) [cudaMalloc];
    memory::allocate_managed(to: *mut *mut c_void, bytes: usize, flags: c_uint) [cudaMallocManaged];
    memory::allocate_pitched(to: *mut *mut c_void, pitch: *mut usize, width: usize, height: usize) [cudaMallocPitch];
    memory::allocate_volume(to: *mut PitchedPointer, extent: Extent) [cudaMalloc3D];
    memory::allocate_array(to: *mut CUarray, format: *const ChannelFormat, width: usize, height: usize, flags: c_uint) [cudaMallocArray];
    memory::allocate_array_volume(to: *mut CUarray, format: *const ChannelFormat, extent: Extent, flags: c_uint) [cudaMalloc3DArray];
    memory::allocate_pinned(to: *mut *mut c_void, bytes: usize) [cudaMallocHost];
    memory::free(pointer: CUdeviceptr) [cudaFree];
    memory::free_host(pointer: *mut c_void) [cudaFreeHost];
    memory::free_array(array: CUarray) [cudaFreeArray];
    memory::export_pool(to: *mut c_void, pool: CUmemoryPool, kind: c_uint, flags: c_uint) [cudaMemPoolExportToShareableHandle];
    memory::import_pool(to: *mut CUmemoryPool, from: *mut c_void, kind: c_uint, flags: c_uint) [cudaMemPoolImportFromShareableHandle];
    managed::advise(pointer: CUdeviceptr, bytes: usize, advice: c_uint, place: u64) [cudaMemAdvise];
    managed::advise_location(pointer: CUdeviceptr, bytes: usize, advice: c_uint, to: CUmemLocation) [cudaMemAdvise_v2];
    copy::between_devices(to: CUdeviceptr, to_device: c_int, from: CUdeviceptr, from_device: c_int, bytes: usize) [cudaMemcpyPeer];
    copy::between_devices_ordered(to: CUdeviceptr, to_device: c_int, from: CUdeviceptr, from_device: c_int, bytes: usize, stream: CUstream) [cudaMemcpyPeerAsync];
    pointer::attributes(to: *mut PointerAttributes, pointer: *mut c_void) [cudaPointerGetAttributes];
    symbol::address(to: *mut CUdeviceptr, symbol: *const c_void) [cudaGetSymbolAddress];
    symbol::size(to: *mut usize, symbol: *const c_void) [cudaGetSymbolSize];
    stream::create(to: *mut CUstream) [cudaStreamCreate];
    stream::create_flagged(to: *mut CUstream, flags: c_uint) [cudaStreamCreateWithFlags];
    stream::event(to: *mut CUevent) [cudaEventCreate];
    stream::event_flagged(to: *mut CUevent, flags: c_uint) [cudaEventCreateWithFlags];
    function::attributes(to: *mut FunctionAttributes, host: *const c_void) [cudaFuncGetAttributes];
    function::set_attribute(host: *const c_void, attribute: c_uint, value: c_int) [cudaFuncSetAttribute];
    function::set_cache(host: *const c_void, preference: c_uint) [cudaFuncSetCacheConfig];
    function::set_shared(host: *const c_void, config: c_uint) [cudaFuncSetSharedMemConfig];
    function::name(to: *mut *const c_char, host: *const c_void) [cudaFuncGetName];
    function::parameter(host: *const c_void, index: usize, offset: *mut usize, bytes: *mut usize) [cudaFuncGetParamInfo];
    function::parameters(host: *const c_void, count: *mut usize) [cudaFuncGetParamCount];
    function::blocks(to: *mut c_int, host: *const c_void, threads: c_int, shared_bytes: usize) [cudaOccupancyMaxActiveBlocksPerMultiprocessor];
    function::blocks_flagged(to: *mut c_int, host: *const c_void, threads: c_int, shared_bytes: usize, flags: c_uint) [cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags];
    function::dynamic_shared(to: *mut usize, host: *const c_void, blocks: c_int, threads: c_int) [cudaOccupancyAvailableDynamicSMemPerBlock];
    function::cluster_size(to: *mut c_int, host: *const c_void, config: *const LaunchConfig) [cudaOccupancyMaxPotentialClusterSize];
    function::clusters(to: *mut c_int, host: *const c_void, config: *const LaunchConfig) [cudaOccupancyMaxActiveClusters];
    function::set_kernel_attribute(kernel: CUkernel, attribute: c_uint, value: c_int, device: c_int) [cudaKernelSetAttributeForDevice];
    launch::kernel_of(to: *mut CUkernel, host: *const c_void) [cudaGetKernel, __cudaGetKernel];
    launch::function_of(to: *mut CUfunction, host: *const c_void) [cudaGetFuncBySymbol];
    launch::popped(grid: *mut Dim3, block: *mut Dim3, shared_bytes: *mut usize, stream: *mut CUstream) [__cudaPopCallConfiguration];
}

streamed! {
    memory::allocate_ordered(to: *mut *mut c_void, bytes: usize, stream: CUstream) [cudaMallocAsync Legacy, cudaMallocAsync_ptsz PerThread];
    memory::allocate_from_pool(to: *mut *mut c_void, bytes: usize, pool: CUmemoryPool, stream: CUstream) [cudaMallocFromPoolAsync Legacy, cudaMallocFromPoolAsync_ptsz PerThread];
    memory::free_ordered(pointer: CUdeviceptr, stream: CUstream) [cudaFreeAsync Legacy, cudaFreeAsync_ptsz PerThread];
    managed::prefetch(pointer: CUdeviceptr, bytes: usize, place: u64, fourth: usize, fifth: CUstream) [cudaMemPrefetchAsync Legacy, cudaMemPrefetchAsync_ptsz PerThread];
    managed::prefetch_location(pointer: CUdeviceptr, bytes: usize, to: CUmemLocation, flags: c_uint, stream: CUstream) [cudaMemPrefetchAsync_v2 Legacy, cudaMemPrefetchAsync_v2_ptsz PerThread];
    copy::linear(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, kind: c_uint) [cudaMemcpy Legacy, cudaMemcpy_ptds PerThread];
    copy::linear_ordered(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, kind: c_uint, stream: CUstream) [cudaMemcpyAsync Legacy, cudaMemcpyAsync_ptsz PerThread];
    region::rows(to: CUdeviceptr, to_pitch: usize, from: CUdeviceptr, from_pitch: usize, width: usize, height: usize, kind: c_uint) [cudaMemcpy2D Legacy, cudaMemcpy2D_ptds PerThread];
    region::rows_ordered(to: CUdeviceptr, to_pitch: usize, from: CUdeviceptr, from_pitch: usize, width: usize, height: usize, kind: c_uint, stream: CUstream) [cudaMemcpy2DAsync Legacy, cudaMemcpy2DAsync_ptsz PerThread];
    region::boxes(copy: *const Copy3D) [cudaMemcpy3D Legacy, cudaMemcpy3D_ptds PerThread];
    region::boxes_ordered(copy: *const Copy3D, stream: CUstream) [cudaMemcpy3DAsync Legacy, cudaMemcpy3DAsync_ptsz PerThread];
    set::linear(to: CUdeviceptr, value: c_int, count: usize) [cudaMemset Legacy, cudaMemset_ptds PerThread];
    set::linear_ordered(to: CUdeviceptr, value: c_int, count: usize, stream: CUstream) [cudaMemsetAsync Legacy, cudaMemsetAsync_ptsz PerThread];
    set::rectangle(to: CUdeviceptr, pitch: usize, value: c_int, width: usize, height: usize) [cudaMemset2D Legacy, cudaMemset2D_ptds PerThread];
    set::rectangle_ordered(to: CUdeviceptr, pitch: usize, value: c_int, width: usize, height: usize, stream: CUstream) [cudaMemset2DAsync Legacy, cudaMemset2DAsync_ptsz PerThread];
    set::volume(to: PitchedPointer, value: c_int, extent: Extent) [cudaMemset3D Legacy, cudaMemset3D_ptds PerThread];
    set::volume_ordered(to: PitchedPointer, value: c_int, extent: Extent, stream: CUstream) [cudaMemset3DAsync Legacy, cudaMemset3DAsync_ptsz PerThread];
    symbol::write(symbol: *const c_void, from: CUdeviceptr, bytes: usize, offset: usize, kind: c_uint) [cudaMemcpyToSymbol Legacy, cudaMemcpyToSymbol_ptds PerThread];
    symbol::write_ordered(symbol: *const c_void, from: CUdeviceptr, bytes: usize, offset: usize, kind: c_uint, stream: CUstream) [cudaMemcpyToSymbolAsync Legacy, cudaMemcpyToSymbolAsync_ptsz PerThread];
    symbol::read(to: CUdeviceptr, symbol: *const c_void, bytes: usize, offset: usize, kind: c_uint) [cudaMemcpyFromSymbol Legacy, cudaMemcpyFromSymbol_ptds PerThread];
    symbol::read_ordered(to: CUdeviceptr, symbol: *const c_void, bytes: usize, offset: usize, kind: c_uint, stream: CUstream) [cudaMemcpyFromSymbolAsync Legacy, cudaMemcpyFromSymbolAsync_ptsz PerThread];
    stream::capture_info(stream: CUstream, status: *mut c_uint, id: *mut cuuint64_t, graph: *mut CUgraph, dependencies: *mut *const CUgraphNode, edges: *mut *const CUgraphEdgeData, count: *mut usize) [cudaStreamGetCaptureInfo Legacy, cudaStreamGetCaptureInfo_ptsz PerThread];
    entry_point::newest(name: *const c_char, to: *mut *mut c_void, flags: c_ulonglong, status: *mut c_uint) [cudaGetDriverEntryPoint Legacy, cudaGetDriverEntryPoint_ptsz PerThread];
    entry_point::of_version(name: *const c_char, to: *mut *mut c_void, version: c_uint, flags: c_ulonglong, status: *mut c_uint) [cudaGetDriverEntryPointByVersion Legacy, cudaGetDriverEntryPointByVersion_ptsz PerThread];
    launch::kernel_launch(host: *const c_void, grid: Dim3, block: Dim3, arguments: *mut *mut c_void, shared_bytes: usize, stream: CUstream) [cudaLaunchKernel Legacy, cudaLaunchKernel_ptsz PerThread, __cudaLaunchKernel Legacy, __cudaLaunchKernel_ptsz PerThread];
    launch::extended(config: *const LaunchConfig, host: *const c_void, arguments: *mut *mut c_void) [cudaLaunchKernelExC Legacy, cudaLaunchKernelExC_ptsz PerThread];
    launch::cooperative(host: *const c_void, grid: Dim3, block: Dim3, arguments: *mut *mut c_void, shared_bytes: usize, stream: CUstream) [cudaLaunchCooperativeKernel Legacy, cudaLaunchCooperativeKernel_ptsz PerThread];
}

/// The thread's last error, which is forgotten.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
extern "C" fn cudaGetLastError() -> CuResult {
    last_error::take()
}

/// The thread's last error.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
extern "C" fn cudaPeekAtLastError() -> CuResult {
    last_error::peek()
}

#[allow(non_snake_case)]
#[unsafe(no_mangle)]
extern "C" fn cudaCreateChannelDesc(x: c_int, y: c_int, z: c_int, w: c_int, kind: c_uint) -> ChannelFormat {
    ChannelFormat { x, y, z, w, kind }
}
