//! The functions of the driver in `world`: what each does to its state.

use core::ffi::{c_int, c_uint, c_void};
use std::sync::MutexGuard;

use driver::abi::*;
use driver::table::{SymbolId, by_name};
use driver::{CuResult, CudaError, Driver};

use super::*;

/// Runs the body of one driver function on the thread's world: counts it, fails it if so told.
pub(super) fn act(name: &'static str, body: impl FnOnce(&mut State) -> CuResult) -> CuResult {
    crate::lock::none_held();
    let world = WORLD
        .with_borrow(|world| world.clone())
        .expect("a thread enters a world first");
    let before = world.lock().unwrap().before.remove(name);
    if let Some(meanwhile) = before {
        meanwhile();
    }
    let mut state: MutexGuard<'_, State> = world.lock().unwrap();
    *state.calls.entry(name).or_default() += 1;
    if let Some((faulty, code)) = state.fault
        && faulty == name
    {
        state.fault = None;
        return CudaError::check(code);
    }
    // Where a pop fails the stack stays one too high, whatever anybody does: see its own test.
    if let Some((left, code)) = state.fail_call
        && name != "cuCtxPopCurrent_v2"
    {
        state.fail_call = (left > 1).then_some((left - 1, code));
        if left == 1 {
            return CudaError::check(code);
        }
    }
    let result = body(&mut state);
    state.note();
    let after = state.after.remove(name);
    drop(state);
    if let Some(meanwhile) = after {
        meanwhile();
    }
    result
}

macro_rules! functions {
    ($(fn $name:ident($state:ident, $($argument:ident: $kind:ty),*) $body:block)*) => {
        $(
            #[allow(non_snake_case, unused_unsafe, reason = "some bodies touch no pointer")]
            unsafe extern "C" fn $name($($argument: $kind),*) -> CuResult {
                // SAFETY: the tests pass pointers to their own variables.
                unsafe { act(stringify!($name), |$state| { let _ = &$state; $body }) }
            }
        )*
        /// A driver of these functions and no others.
        pub fn driver() -> Driver {
            let driver = Driver::empty();
            // SAFETY: each function has the prototype of its name.
            unsafe { $(driver.set_address(id(stringify!($name)), $name as *mut c_void);)* }
            driver
        }
    };
}

pub(super) fn id(name: &str) -> SymbolId {
    by_name(name).unwrap()
}

pub(super) unsafe fn put<T>(to: *mut T, value: T) -> CuResult {
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: not null, and the caller's own variable.
    unsafe { to.write(value) };
    Ok(())
}

/// Rows of 64 bytes, in 64 KiB.
fn tiled(d: &CUDA_ARRAY3D_DESCRIPTOR) -> u64 {
    let row = (d.Width as u64 * 4).next_multiple_of(64);
    (row * (d.Height as u64).max(1) * (d.Depth as u64).max(1)).next_multiple_of(64 << 10)
}

functions! {
    fn cuDeviceGetCount(state, count: *mut c_int) { put(count, 1) }
    fn cuDeviceGet(state, device: *mut CUdevice, ordinal: c_int) { put(device, ordinal) }
    fn cuDeviceGetAttribute(state, value: *mut c_int, attribute: CUdevice_attribute, _device: CUdevice) {
        if attribute == 121 { put(value, state.maps_later) } else { Err(CudaError::INVALID_VALUE) }
    }
    fn cuDeviceGetUuid(state, uuid: *mut CUuuid, _device: CUdevice) { put(uuid, CUuuid { bytes: UUID }) }
    fn cuCtxGetCurrent(state, context: *mut CUcontext) { put(context, state.current() as CUcontext) }
    fn cuCtxGetDevice(state, device: *mut CUdevice) {
        if state.current == 0 { Err(CudaError::INVALID_CONTEXT) } else { put(device, 0) }
    }
    fn cuMemGetInfo_v2(state, free: *mut usize, total: *mut usize) {
        put(free, (64 << 30) - state.physical() as usize)?;
        put(total, 64 << 30)
    }
    fn cuDeviceTotalMem_v2(state, bytes: *mut usize, _device: CUdevice) { put(bytes, 64 << 30) }
    fn cuMemAlloc_v2(state, pointer: *mut CUdeviceptr, bytes: usize) {
        if pointer.is_null() || bytes == 0 { return Err(CudaError::INVALID_VALUE) }
        let at = state.plain(bytes as u64);
        put(pointer, at)
    }
    fn cuMemAllocManaged(state, pointer: *mut CUdeviceptr, bytes: usize, _flags: c_uint) {
        if pointer.is_null() || bytes == 0 { return Err(CudaError::INVALID_VALUE) }
        let at = state.plain(bytes as u64);
        put(pointer, at)
    }
    fn cuMemAllocPitch_v2(state, pointer: *mut CUdeviceptr, pitch: *mut usize, width: usize, height: usize, _element: c_uint) {
        if pointer.is_null() || pitch.is_null() || width * height == 0 { return Err(CudaError::INVALID_VALUE) }
        let row = (width as u64).next_multiple_of(state.pitch);
        let at = state.plain(row * height as u64);
        put(pitch, row as usize)?;
        put(pointer, at)
    }
    fn cuMemFree_v2(state, pointer: CUdeviceptr) {
        let block = state.blocks.remove(&pointer).ok_or(CudaError::INVALID_VALUE)?;
        if let Block::Plain { context, .. } = block {
            state.complete_all_of(context, u64::MAX);
        }
        state.drop_block(pointer, block);
        Ok(())
    }
    fn cuMemFreeAsync(state, pointer: CUdeviceptr, stream: CUstream) {
        let block = state.blocks.remove(&pointer).ok_or(CudaError::INVALID_VALUE)?;
        match block {
            Block::Pooled { .. } => state.drop_block(pointer, block),
            Block::Plain { .. } => state.zombies.push((named(stream as usize), pointer, block)),
        }
        Ok(())
    }
    fn cuDeviceGetMemPool(state, pool: *mut CUmemoryPool, _device: CUdevice) { put(pool, DEFAULT_POOL as CUmemoryPool) }
    fn cuMemAllocAsync(state, pointer: *mut CUdeviceptr, bytes: usize, _stream: CUstream) {
        if pointer.is_null() || bytes == 0 { return Err(CudaError::INVALID_VALUE) }
        let at = state.pooled(DEFAULT_POOL, bytes as u64)?;
        put(pointer, at)
    }
    fn cuMemAllocFromPoolAsync(state, pointer: *mut CUdeviceptr, bytes: usize, pool: CUmemoryPool, _stream: CUstream) {
        if pointer.is_null() || bytes == 0 { return Err(CudaError::INVALID_VALUE) }
        let at = state.pooled(pool as usize, bytes as u64)?;
        put(pointer, at)
    }
    fn cuMemPoolCreate(state, pool: *mut CUmemoryPool, properties: *const CUmemPoolProps) {
        let handle = state.fresh(0) as usize;
        let host = (*properties).location.kind != CU_MEM_LOCATION_TYPE_DEVICE;
        state.pools.insert(handle, Pool { host, ..Pool::default() });
        put(pool, handle as CUmemoryPool)
    }
    fn cuMemPoolDestroy(state, pool: CUmemoryPool) {
        let entry = state.pools.get_mut(&(pool as usize)).filter(|pool| !pool.destroyed).ok_or(CudaError::INVALID_VALUE)?;
        entry.destroyed = true;
        if entry.used == 0 { state.pools.remove(&(pool as usize)); }
        Ok(())
    }
    fn cuMemPoolTrimTo(state, pool: CUmemoryPool, keep: usize) {
        state.graphs.note_unsafe("cuMemPoolTrimTo");
        let entry = state.pools.get_mut(&(pool as usize)).ok_or(CudaError::INVALID_VALUE)?;
        State::shrink(entry, keep as u64);
        Ok(())
    }
    fn cuMemPoolGetAttribute(state, pool: CUmemoryPool, attribute: CUmemPool_attribute, value: *mut c_void) {
        let entry = state.pools.get(&(pool as usize)).filter(|pool| !pool.destroyed).ok_or(CudaError::INVALID_VALUE)?;
        match attribute {
            4 => put(value.cast(), entry.threshold),
            5 => put(value.cast(), entry.reserved),
            7 => put(value.cast(), entry.used),
            _ => Err(CudaError::INVALID_VALUE),
        }
    }
    fn cuMemPoolSetAttribute(state, pool: CUmemoryPool, attribute: CUmemPool_attribute, value: *mut c_void) {
        let entry = state.pools.get_mut(&(pool as usize)).ok_or(CudaError::INVALID_VALUE)?;
        if attribute == 4 { entry.threshold = *value.cast() }
        Ok(())
    }
    fn cuStreamSynchronize(state, stream: CUstream) { state.synchronised(Some(stream as usize)); Ok(()) }
    fn cuCtxSynchronize(state,) {
        state.synchronised(None);
        let context = state.current();
        state.complete_all_of(context, u64::MAX);
        Ok(())
    }
    fn cuCtxPushCurrent_v2(state, context: CUcontext) {
        PUSHED.with_borrow_mut(|pushed| pushed.push(context as usize));
        Ok(())
    }
    fn cuCtxSetCurrent(state, context: CUcontext) {
        PUSHED.with_borrow_mut(|pushed| match pushed.last_mut() {
            Some(last) => *last = context as usize,
            None => state.current = context as usize,
        });
        Ok(())
    }
    fn cuCtxPopCurrent_v2(state, context: *mut CUcontext) {
        let popped = PUSHED.with_borrow_mut(|pushed| pushed.pop()).ok_or(CudaError::INVALID_CONTEXT)?;
        put(context, popped as CUcontext)
    }
    fn cuEventCreate(state, event: *mut CUevent, _flags: c_uint) {
        let (handle, context) = (state.fresh(0) as usize, state.current());
        state.events.insert(handle, (context, 0));
        put(event, handle as CUevent)
    }
    fn cuCtxRecordEvent(state, context: CUcontext, event: CUevent) {
        if state.captures.values().any(|of| *of == context as usize) {
            state.spoilt += 1;
            return Err(CudaError::STREAM_CAPTURE_UNSUPPORTED);
        }
        let submitted = state.submitted;
        let known = state.events.get_mut(&(event as usize)).filter(|(of, _)| *of == context as usize);
        known.ok_or(CudaError::INVALID_HANDLE)?.1 = submitted;
        Ok(())
    }
    fn cuEventQuery(state, event: CUevent) {
        let (context, until) = *state.events.get(&(event as usize)).ok_or(CudaError::INVALID_HANDLE)?;
        if state.is_complete(context, until) { Ok(()) } else { Err(CudaError::NOT_READY) }
    }
    fn cuEventSynchronize(state, event: CUevent) {
        let (context, until) = *state.events.get(&(event as usize)).ok_or(CudaError::INVALID_HANDLE)?;
        state.complete_all_of(context, until);
        Ok(())
    }
    fn cuStreamBeginCapture_v2(state, stream: CUstream, _mode: CUstreamCaptureMode) {
        let context = state.streams.get(&(stream as usize)).copied().unwrap_or(state.current());
        if state.captures.contains_key(&(stream as usize)) { return Err(CudaError::ILLEGAL_STATE) }
        state.captures.insert(stream as usize, context);
        Ok(())
    }
    fn cuStreamEndCapture(state, stream: CUstream, _graph: *mut CUgraph) {
        state.captures.remove(&(stream as usize)).map(drop).ok_or(CudaError::STREAM_CAPTURE_UNMATCHED)
    }
    fn cuStreamIsCapturing(state, stream: CUstream, status: *mut CUstreamCaptureStatus) {
        put(status, u32::from(state.captures.contains_key(&(stream as usize))))
    }
    fn cuStreamGetCtx(state, stream: CUstream, context: *mut CUcontext) {
        let of = state.streams.get(&(stream as usize)).copied().unwrap_or(state.current());
        put(context, of as CUcontext)
    }
    fn cuMemGetAddressRange_v2(state, base: *mut CUdeviceptr, _bytes: *mut usize, pointer: CUdeviceptr) {
        if state.blocks.contains_key(&pointer) { put(base, pointer) } else { Err(CudaError::NOT_FOUND) }
    }
    fn cuPointerGetAttributes(state, _count: c_uint, _list: *mut CUpointer_attribute, data: *mut *mut c_void, pointer: CUdeviceptr) {
        put((*data).cast::<u64>(), if state.blocks.contains_key(&pointer) { pointer } else { 0 })
    }
    fn cuIpcGetMemHandle(state, _handle: *mut CUipcMemHandle, pointer: CUdeviceptr) {
        if state.blocks.contains_key(&pointer) { Ok(()) } else { Err(CudaError::INVALID_VALUE) }
    }
    fn cuPointerGetAttribute(state, data: *mut c_void, _attribute: CUpointer_attribute, pointer: CUdeviceptr) {
        if !state.blocks.contains_key(&pointer) { return Err(CudaError::INVALID_VALUE) }
        put(data.cast::<u64>(), pointer)
    }
    fn cuStreamCreate(state, stream: *mut CUstream, _flags: c_uint) {
        let handle = state.fresh(0);
        put(stream, handle as CUstream)
    }
    fn cuMemsetD8Async(state, pointer: CUdeviceptr, value: c_uchar, _bytes: usize, _stream: CUstream) {
        state.filled.insert(pointer, value);
        Ok(())
    }
    fn cuStreamDestroy_v2(state, _stream: CUstream) { Ok(()) }
    fn cuMemCreate(state, handle: *mut CUmemGenericAllocationHandle, bytes: usize, _properties: *const CUmemAllocationProp, _flags: c_ulonglong) {
        let fresh = state.fresh(0);
        state.memory.insert(fresh, (bytes as u64, 1, 0));
        put(handle, fresh)
    }
    fn cuMemRelease(state, handle: CUmemGenericAllocationHandle) {
        let memory = state.memory.get_mut(&handle).filter(|memory| memory.1 > 0).ok_or(CudaError::INVALID_VALUE)?;
        memory.1 -= 1;
        state.forget_memory(handle);
        Ok(())
    }
    fn cuMemMap(state, address: CUdeviceptr, bytes: usize, _offset: usize, handle: CUmemGenericAllocationHandle, _flags: c_ulonglong) {
        if state.mappings.contains_key(&address) { return Err(CudaError::INVALID_VALUE) }
        let memory = state.memory.get_mut(&handle).filter(|memory| memory.1 > 0).ok_or(CudaError::INVALID_VALUE)?;
        memory.2 += 1;
        state.mappings.insert(address, (bytes as u64, handle));
        Ok(())
    }
    fn cuMemUnmap(state, address: CUdeviceptr, _bytes: usize) {
        let (_, handle) = state.mappings.remove(&address).ok_or(CudaError::INVALID_VALUE)?;
        state.memory.get_mut(&handle).ok_or(CudaError::UNKNOWN)?.2 -= 1;
        state.forget_memory(handle);
        Ok(())
    }
    fn cuMemRetainAllocationHandle(state, handle: *mut CUmemGenericAllocationHandle, address: *mut c_void) {
        let (_, found) = *state.mappings.get(&(address as u64)).ok_or(CudaError::INVALID_VALUE)?;
        state.memory.get_mut(&found).ok_or(CudaError::UNKNOWN)?.1 += 1;
        put(handle, found)
    }
    fn cuDevicePrimaryCtxRetain(state, context: *mut CUcontext, _device: CUdevice) {
        state.primary += 1;
        put(context, PRIMARY as CUcontext)
    }
    fn cuDevicePrimaryCtxRelease_v2(state, _device: CUdevice) {
        if state.primary == 0 { return Err(CudaError::INVALID_CONTEXT) }
        state.primary -= 1;
        if state.primary == 0 { state.end_context(PRIMARY) }
        Ok(())
    }
    fn cuDevicePrimaryCtxReset_v2(state, _device: CUdevice) {
        state.primary = 0;
        state.end_context(PRIMARY);
        Ok(())
    }
    fn cuDevicePrimaryCtxGetState(state, _device: CUdevice, flags: *mut c_uint, active: *mut c_int) {
        put(flags, 0)?;
        put(active, c_int::from(state.primary > 0))
    }
    fn cuCtxCreate_v2(state, context: *mut CUcontext, _flags: c_uint, _device: CUdevice) {
        let handle = state.fresh(0) as usize;
        state.contexts.insert(handle);
        state.current = handle;
        put(context, handle as CUcontext)
    }
    fn cuCtxDestroy_v2(state, context: CUcontext) {
        if !state.contexts.remove(&(context as usize)) { return Err(CudaError::INVALID_CONTEXT) }
        state.end_context(context as usize);
        if state.current == context as usize { state.current = PRIMARY }
        Ok(())
    }
    fn cuArray3DCreate_v2(state, array: *mut CUarray, descriptor: *const CUDA_ARRAY3D_DESCRIPTOR) {
        if array.is_null() || descriptor.is_null() { return Err(CudaError::INVALID_VALUE) }
        let d = descriptor.read();
        if state.no_twins && d.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING != 0 { return Err(CudaError::INVALID_VALUE) }
        state.graphs.note_unsafe("cuArray3DCreate_v2");
        let handle = state.fresh(0);
        let later = d.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING) != 0;
        state.needs.insert(handle, tiled(&d));
        state.arrays.insert(handle, (state.current, if later { 0 } else { tiled(&d) }));
        put(array, handle as CUarray)
    }
    fn cuArrayGetMemoryRequirements(state, needs: *mut CUDA_ARRAY_MEMORY_REQUIREMENTS, array: CUarray, _device: CUdevice) {
        let size = *state.needs.get(&(array as u64)).ok_or(CudaError::INVALID_HANDLE)? as usize;
        put(needs, CUDA_ARRAY_MEMORY_REQUIREMENTS { size, alignment: 64 << 10, reserved: [0; 4] })
    }
    fn cuArrayDestroy(state, array: CUarray) {
        if !state.arrays.contains_key(&(array as u64)) { return Err(CudaError::INVALID_HANDLE) }
        state.end_array(array as u64);
        Ok(())
    }
    fn cuMemMapArrayAsync(state, list: *mut CUarrayMapInfo, count: c_uint, _stream: CUstream) {
        for index in 0..count as usize {
            let info = list.add(index).read();
            let mut place = info.subresource;
            if info.subresourceType == 1 { (place.words[1], place.words[6], place.words[7]) = (0, 0, 0) }
            let tile = (info.resource as u64, info.subresourceType, info.deviceBitMask, place);
            if !matches!(state.arrays.get(&tile.0), Some((_, 0))) { return Err(CudaError::INVALID_VALUE) }
            if info.memOperationType == CU_MEM_OPERATION_TYPE_MAP {
                state.memory.get_mut(&info.memHandle).filter(|memory| memory.1 > 0).ok_or(CudaError::INVALID_VALUE)?.2 += 1;
                state.unmap_tile(tile);
                state.tiles.insert(tile, info.memHandle);
            } else {
                state.unmap_tile(tile);
            }
        }
        Ok(())
    }
    fn cuMemHostAlloc(state, pointer: *mut *mut c_void, bytes: usize, _flags: c_uint) {
        let at = state.fresh(bytes as u64);
        put(pointer, at as *mut c_void)
    }
    fn cuMemFreeHost(state, _pointer: *mut c_void) { Ok(()) }
}
