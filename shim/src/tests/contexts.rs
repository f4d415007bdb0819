//! What the hooks promise about contexts and physical memory.

use core::ffi::c_void;
use core::ptr::null_mut;

use driver::CudaError;
use driver::abi::*;

use super::world::CONTEXT;
use super::*;
use crate::hooks::{context, vmm};

const OUT: CuResult = Err(CudaError::OUT_OF_MEMORY);

#[test]
fn physical_memory_counts_as_long_as_a_handle_or_a_mapping_holds_it() {
    let stage = Stage::new(100 * MIB, CONTEXT);
    let mut properties: CUmemAllocationProp = zeroed();
    properties.location.kind = CU_MEM_LOCATION_TYPE_DEVICE;
    let mut handle = 0;
    call!(stage, cuMemCreate => vmm::create, &raw mut handle, 8 << 20, &raw const properties, 0).unwrap();
    call!(stage, cuMemMap => vmm::map, 0x10_0000, 8 << 20, 0, handle, 0).unwrap();
    call!(stage, cuMemRelease => vmm::release, handle).unwrap();
    assert_eq!(stage.used(), CONTEXT + 8 * MIB, "the mapping holds it");
    // As NCCL looks at a user's buffer: take a handle, give it back.
    for _ in 0..3 {
        let mut again = 0;
        let address = 0x10_0000 as *mut c_void;
        call!(stage, cuMemRetainAllocationHandle => vmm::retain, &raw mut again, address).unwrap();
        assert_eq!(again, handle);
        call!(stage, cuMemRelease => vmm::release, again).unwrap();
        stage.assert_exact();
    }
    assert_eq!(
        call!(stage, cuMemRelease => vmm::release, handle),
        Err(CudaError::INVALID_VALUE)
    );
    stage.assert_exact();
    stage.fail_next("cuMemUnmap", CudaError::UNKNOWN.code());
    assert!(call!(stage, cuMemUnmap => vmm::unmap, 0x10_0000, 8 << 20).is_err());
    assert_eq!(stage.used(), CONTEXT + 8 * MIB);
    call!(stage, cuMemUnmap => vmm::unmap, 0x10_0000, 8 << 20).unwrap();
    assert_eq!((stage.used(), stage.physical()), (CONTEXT, CONTEXT));
}

#[test]
fn only_memory_located_on_the_device_is_charged_whatever_else_the_struct_holds() {
    let stage = Stage::new(100 * MIB, CONTEXT);
    for kind in [
        CU_MEM_LOCATION_TYPE_HOST,
        CU_MEM_LOCATION_TYPE_HOST_NUMA,
        CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT,
        77,
    ] {
        // SAFETY: any bytes make such a struct.
        let mut properties: CUmemAllocationProp = unsafe { core::mem::transmute([0xa5u8; 32]) };
        properties.location = CUmemLocation { kind, id: -5 };
        let mut handle = 0;
        call!(stage, cuMemCreate => vmm::create, &raw mut handle, 500 << 20, &raw const properties, 0)
            .unwrap();
        assert_eq!(stage.used(), CONTEXT);
        call!(stage, cuMemRelease => vmm::release, handle).unwrap();
    }
}

#[test]
fn a_context_counts_inside_the_cap_and_gives_back_what_it_owned() {
    let stage = Stage::new(40 * MIB, CONTEXT);
    know_steps(&stage);
    let mut contexts = Vec::new();
    for _ in 0..5 {
        let mut context = null_mut();
        call!(stage, cuCtxCreate_v2 => context::create, &raw mut context, 0, 0).unwrap();
        contexts.push(context);
    }
    stage.assert_exact();
    let mut context = null_mut();
    assert_eq!(
        call!(stage, cuCtxCreate_v2 => context::create, &raw mut context, 0, 0),
        OUT
    );
    assert_eq!(stage.calls("cuCtxCreate_v2"), 5);
    let pooled = alloc_async(&stage, 3 * MIB).unwrap();
    let mut handle = 0;
    assert!(
        alloc(&stage, 1000).is_err(),
        "4 MiB were left, and the pool has them"
    );
    free_async(&stage, pooled, 0).unwrap();
    wait(&stage, 0).unwrap();
    alloc(&stage, 1000).unwrap();
    let last = contexts.pop().unwrap();
    call!(stage, cuCtxDestroy_v2 => context::destroy, last).unwrap();
    stage.assert_exact();
    // What a context does not own outlives it.
    let mut properties: CUmemAllocationProp = zeroed();
    properties.location.kind = CU_MEM_LOCATION_TYPE_DEVICE;
    call!(stage, cuMemCreate => vmm::create, &raw mut handle, 2 << 20, &raw const properties, 0).unwrap();
    for context in contexts {
        call!(stage, cuCtxDestroy_v2 => context::destroy, context).unwrap();
    }
    stage.assert_exact();
    assert_eq!(stage.used(), CONTEXT + 2 * MIB);
}

#[test]
fn the_primary_context_is_charged_once_however_often_it_is_retained() {
    let stage = Stage::new(40 * MIB, CONTEXT);
    let mut context = null_mut();
    call!(stage, cuDevicePrimaryCtxRetain => context::retain, &raw mut context, 0).unwrap();
    stage.assert_exact();
    alloc(&stage, 4 * MIB).unwrap();
    call!(stage, cuDevicePrimaryCtxRelease_v2 => context::release, 0).unwrap();
    assert_eq!(stage.used(), CONTEXT + 4 * MIB, "retained once more");
    call!(stage, cuDevicePrimaryCtxRelease_v2 => context::release, 0).unwrap();
    assert_eq!(stage.used(), 0);
    call!(stage, cuDevicePrimaryCtxRetain => context::retain, &raw mut context, 0).unwrap();
    call!(stage, cuDevicePrimaryCtxRetain => context::retain, &raw mut context, 0).unwrap();
    alloc(&stage, 4 * MIB).unwrap();
    stage.assert_exact();
    call!(stage, cuDevicePrimaryCtxReset_v2 => context::reset, 0).unwrap();
    assert_eq!(stage.used(), 0);
}

#[test]
fn a_context_made_behind_our_back_is_charged_when_it_is_met() {
    let stage = Stage::bare(20 * MIB, CONTEXT);
    stage.state.lock().unwrap().current = 0xbeef;
    alloc(&stage, 2 * MIB).unwrap();
    assert_eq!(stage.used(), CONTEXT + 2 * MIB);
    alloc(&stage, 2 * MIB).unwrap();
    assert_eq!(stage.used(), CONTEXT + 4 * MIB, "once");
}
