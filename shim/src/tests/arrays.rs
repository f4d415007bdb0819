//! What the hooks promise about arrays and the tiles of sparse ones.

use core::ptr::null_mut;

use driver::CudaError;
use driver::abi::*;
use driver::table::SymbolId;

use super::world::CONTEXT;
use super::*;
use crate::hooks::{array, vmm};

/// An array of four-byte elements, this wide and 1024 high.
fn make(stage: &Stage, width: usize) -> Result<CUarray, CudaError> {
    make_form(stage, width, 0)
}

fn make_form(stage: &Stage, width: usize, flags: u32) -> Result<CUarray, CudaError> {
    let form = CUDA_ARRAY3D_DESCRIPTOR {
        Width: width,
        Height: 1024,
        Depth: 0,
        Format: 0x20,
        NumChannels: 1,
        Flags: flags,
    };
    let mut handle = null_mut();
    call!(stage, cuArray3DCreate_v2 => array::create_3d, &raw mut handle, &raw const form).map(|()| handle)
}

#[test]
fn where_arrays_cannot_be_mapped_later_one_beyond_the_cap_is_out_of_memory() {
    let stage = Stage::new(20 * MIB, CONTEXT);
    {
        let mut state = stage.state.lock().unwrap();
        (state.maps_later, state.no_twins) = (0, true);
    }
    assert_eq!(make(&stage, 4096), Err(CudaError::OUT_OF_MEMORY));
    assert_eq!(make(&stage, 4096), Err(CudaError::OUT_OF_MEMORY), "remembered");
    assert_eq!(stage.calls("cuArray3DCreate_v2"), 0, "no twin, no array");
    make(&stage, 2048).unwrap();
    stage.assert_exact();
}

#[test]
fn a_driver_that_cannot_be_asked_makes_no_twins() {
    let stage = Stage::new(20 * MIB, CONTEXT);
    stage.state.lock().unwrap().no_twins = true;
    // SAFETY: the driver lacks the function from here on.
    unsafe {
        stage
            .driver
            .set_address(SymbolId::cuArrayGetMemoryRequirements, null_mut());
    }
    assert_eq!(make(&stage, 4096), Err(CudaError::OUT_OF_MEMORY));
    assert_eq!(stage.calls("cuArray3DCreate_v2"), 0);
}

#[test]
fn a_form_there_can_be_none_of_is_invalid_also_at_the_cap() {
    let stage = Stage::new(20 * MIB, CONTEXT);
    stage.state.lock().unwrap().no_twins = true;
    for _ in 0..2 {
        assert_eq!(make(&stage, 4096), Err(CudaError::INVALID_VALUE));
    }
    assert_eq!(stage.calls("cuArray3DCreate_v2"), 1, "the answer lasts");
}

#[test]
fn a_form_is_asked_for_again_after_a_failure_that_may_pass() {
    let stage = Stage::new(100 * MIB, CONTEXT);
    let asked = || stage.calls("cuArrayGetMemoryRequirements");
    stage.fail_next("cuArray3DCreate_v2", CudaError::OUT_OF_MEMORY.code());
    make(&stage, 1024).unwrap();
    assert_eq!(asked(), 0, "the twin failed");
    make(&stage, 1024).unwrap();
    make(&stage, 1024).unwrap();
    assert_eq!(asked(), 1, "the failure was not remembered, the answer is");
    stage.assert_exact();
    stage.fail_next("cuArray3DCreate_v2", CudaError::NOT_SUPPORTED.code());
    make(&stage, 2048).unwrap();
    make(&stage, 2048).unwrap();
    assert_eq!(asked(), 1, "nor would it say otherwise the next time");
}

fn memory(stage: &Stage, bytes: u64) -> u64 {
    let mut handle = 0;
    let mut properties: CUmemAllocationProp = zeroed();
    properties.location.kind = CU_MEM_LOCATION_TYPE_DEVICE;
    call!(stage, cuMemCreate => vmm::create, &raw mut handle, bytes as usize, &raw const properties, 0)
        .unwrap();
    handle
}

/// Maps `handle` where `info` says and lets go of it, so that the tile alone holds the memory.
fn map(stage: &Stage, info: &CUarrayMapInfo, handle: u64) {
    let mut info = *info;
    info.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
    info.memHandle = handle;
    call!(stage, cuMemMapArrayAsync => array::map, &raw mut info, 1, null_mut()).unwrap();
    call!(stage, cuMemRelease => vmm::release, handle).unwrap();
}

fn unmap(stage: &Stage, info: &CUarrayMapInfo) {
    let mut info = *info;
    info.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
    call!(stage, cuMemMapArrayAsync => array::map, &raw mut info, 1, null_mut()).unwrap();
    wait(stage, 0).unwrap();
}

#[test]
fn the_padding_of_a_tail_is_no_part_of_its_place() {
    let stage = Stage::new(100 * MIB, CONTEXT);
    let mut info: CUarrayMapInfo = zeroed();
    info.resource = make_form(&stage, 1024, CUDA_ARRAY3D_SPARSE).unwrap().cast();
    info.subresourceType = 1;
    for padding in [1, 6, 7] {
        info.subresource.words[padding] = 7;
        map(&stage, &info, memory(&stage, 4 * MIB));
        info.subresource.words[padding] = 8;
        unmap(&stage, &info);
        assert_eq!(stage.used(), CONTEXT, "word {padding}");
        stage.assert_exact();
    }
    // All words of a level's range count.
    info.subresourceType = 0;
    map(&stage, &info, memory(&stage, 4 * MIB));
    info.subresource.words[6] = 9;
    unmap(&stage, &info);
    assert_eq!(stage.used(), CONTEXT + 4 * MIB);
    stage.assert_exact();
}

#[test]
fn a_tile_mapped_on_two_devices_holds_both_memories() {
    let stage = Stage::new(100 * MIB, CONTEXT);
    let mut info: CUarrayMapInfo = zeroed();
    info.resource = make_form(&stage, 1024, CUDA_ARRAY3D_SPARSE).unwrap().cast();
    for devices in [1, 2] {
        info.deviceBitMask = devices;
        map(&stage, &info, memory(&stage, 4 * MIB));
    }
    wait(&stage, 0).unwrap();
    assert_eq!(stage.used(), CONTEXT + 8 * MIB, "the second replaced nothing");
    stage.assert_exact();
    unmap(&stage, &info);
    assert_eq!(stage.used(), CONTEXT + 4 * MIB);
    stage.assert_exact();
}
