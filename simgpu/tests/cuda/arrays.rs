//! Arrays cost what their tiles take, hold what is copied into them, and end with their context.

use crate::harness::{GRANULE, MIB, begin, free_bytes};
use crate::harness::{cu, on_a_node};
use driver::CudaError;
use driver::abi::*;
use std::ptr::null_mut;

const FLOAT: c_uint = 0x20;

fn descriptor(width: usize, height: usize, depth: usize, flags: c_uint) -> CUDA_ARRAY3D_DESCRIPTOR {
    CUDA_ARRAY3D_DESCRIPTOR {
        Width: width,
        Height: height,
        Depth: depth,
        Format: FLOAT,
        NumChannels: 1,
        Flags: flags,
    }
}

fn create(descriptor: &CUDA_ARRAY3D_DESCRIPTOR) -> Result<CUarray, CudaError> {
    let mut array = null_mut();
    cu!(cuArray3DCreate_v2(&mut array, descriptor)).map(|()| array)
}

on_a_node!(
    an_array_costs_its_tiles_and_gives_them_back,
    ["--context", "64MiB"],
    || {
        begin();
        let before = free_bytes();
        // 1000 rows are padded to 1024.
        let large = create(&descriptor(4096, 1000, 0, 0)).expect("room");
        assert_eq!(before - free_bytes(), 16 * MIB);
        let deep = create(&descriptor(256, 256, 33, 0)).expect("room");
        assert_eq!(
            before - free_bytes(),
            16 * MIB + 16 * MIB,
            "a depth of 33 takes 64"
        );
        // Small ones share: 33 of 64 KiB take two granules.
        let small: Vec<CUarray> = (0..33)
            .map(|_| create(&descriptor(128, 128, 0, 0)).expect("room"))
            .collect();
        assert_eq!(before - free_bytes(), 32 * MIB + 2 * GRANULE);
        for array in [large, deep].into_iter().chain(small) {
            assert_eq!(cu!(cuArrayDestroy(array)), Ok(()));
        }
        assert_eq!(free_bytes(), before);
        assert_eq!(cu!(cuArrayDestroy(large)), Err(CudaError::INVALID_HANDLE));
        assert_eq!(cu!(cuArrayDestroy(null_mut())), Err(CudaError::INVALID_HANDLE));
    }
);

on_a_node!(a_full_device_refuses_an_array, [], || {
    begin();
    let layers = descriptor(32_768, 32_768, 2_048, CUDA_ARRAY3D_LAYERED);
    let before = free_bytes();
    assert_eq!(create(&layers).err(), Some(CudaError::OUT_OF_MEMORY));
    assert_eq!(free_bytes(), before);
});

on_a_node!(mapped_later_costs_nothing_and_says_what_it_needs, [], || {
    begin();
    let before = free_bytes();
    let plain = descriptor(4096, 1000, 0, 0);
    let deferred = descriptor(4096, 1000, 0, CUDA_ARRAY3D_DEFERRED_MAPPING);
    let array = create(&deferred).expect("free");
    assert_eq!(free_bytes(), before);
    // SAFETY: plain integers.
    let mut needs: CUDA_ARRAY_MEMORY_REQUIREMENTS = unsafe { std::mem::zeroed() };
    cu!(cuArrayGetMemoryRequirements(&mut needs, array, 0)).expect("told");
    assert_eq!(needs.size, 16 * MIB);
    let own = create(&plain).expect("room");
    let asked = cu!(cuArrayGetMemoryRequirements(&mut needs, own, 0));
    assert_eq!(asked, Err(CudaError::INVALID_VALUE), "it has its own");
    let mut levels = null_mut();
    cu!(cuMipmappedArrayCreate(&mut levels, &deferred, 3)).expect("free");
    cu!(cuMipmappedArrayGetMemoryRequirements(&mut needs, levels, 0)).expect("told");
    assert_eq!(needs.size, 16 * MIB + 4 * MIB + MIB);
    for (levels, expected) in [
        (13, Ok(())),
        (14, Err(CudaError::INVALID_VALUE)),
        (0, Err(CudaError::INVALID_VALUE)),
    ] {
        let mut made = null_mut();
        assert_eq!(
            cu!(cuMipmappedArrayCreate(&mut made, &plain, levels)),
            expected,
            "{levels}"
        );
    }
});

on_a_node!(a_sparse_arrays_tiles_hold_physical_memory, [], || {
    begin();
    let sparse = create(&descriptor(1024, 1024, 0, CUDA_ARRAY3D_SPARSE)).expect("free");
    // SAFETY: plain integers.
    let mut tiles: CUDA_ARRAY_SPARSE_PROPERTIES = unsafe { std::mem::zeroed() };
    cu!(cuArrayGetSparseProperties(&mut tiles, sparse)).expect("told");
    assert_eq!(tiles.tileExtent, [128, 128, 1]);
    let before = free_bytes();
    // SAFETY: plain integers.
    let mut properties: CUmemAllocationProp = unsafe { std::mem::zeroed() };
    properties.kind = 1;
    properties.location.kind = CU_MEM_LOCATION_TYPE_DEVICE;
    let mut handle = 0;
    cu!(cuMemCreate(&mut handle, GRANULE, &properties, 0)).expect("room");
    let mut change = CUarrayMapInfo {
        resourceType: CU_RESOURCE_TYPE_ARRAY,
        resource: sparse,
        subresourceType: 0,
        subresource: CUarrayMapInfo_subresource {
            words: [0, 0, 0, 0, 0, 128, 128, 1],
        },
        memOperationType: CU_MEM_OPERATION_TYPE_MAP,
        memHandleType: 0,
        memHandle: handle,
        offset: 0,
        deviceBitMask: 1,
        flags: 0,
        reserved: [0; 2],
    };
    cu!(cuMemMapArrayAsync(&mut change, 1, null_mut())).expect("map");
    cu!(cuMemRelease(handle)).expect("release");
    assert_eq!(before - free_bytes(), GRANULE, "the tile holds it");
    change.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
    cu!(cuMemMapArrayAsync(&mut change, 1, null_mut())).expect("unmap");
    assert_eq!(free_bytes(), before);
});

on_a_node!(what_is_copied_into_an_array_comes_back, [], || {
    begin();
    let bytes: Vec<u8> = (0..64 * 4 * 32).map(|i| (i * 7 + i / 256) as u8).collect();
    let array = create(&descriptor(64, 32, 0, 0)).expect("room");
    let into = CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: CU_MEMORYTYPE_HOST,
        srcHost: bytes.as_ptr().cast(),
        srcDevice: 0,
        srcArray: null_mut(),
        srcPitch: 256,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: CU_MEMORYTYPE_ARRAY,
        dstHost: null_mut(),
        dstDevice: 0,
        dstArray: array,
        dstPitch: 0,
        WidthInBytes: 256,
        Height: 32,
    };
    cu!(cuMemcpy2D_v2(&into)).expect("in");
    let mut out = vec![0u8; 256];
    cu!(cuMemcpyAtoH_v2(out.as_mut_ptr().cast(), array, 256 * 5, 256)).expect("a row out");
    assert_eq!(out, bytes[256 * 5..256 * 6]);
    let beyond = CUDA_MEMCPY2D { dstY: 1, ..into };
    assert_eq!(cu!(cuMemcpy2D_v2(&beyond)), Err(CudaError::INVALID_VALUE));
    let far = cu!(cuMemcpyAtoH_v2(out.as_mut_ptr().cast(), array, 256 * 31 + 1, 256));
    assert_eq!(far, Err(CudaError::INVALID_VALUE));
    let other = create(&descriptor(64, 32, 0, 0)).expect("room");
    cu!(cuMemcpyAtoA_v2(other, 0, array, 0, bytes.len())).expect("across");
    let mut all = vec![0u8; bytes.len()];
    cu!(cuMemcpyAtoH_v2(all.as_mut_ptr().cast(), other, 0, all.len())).expect("out");
    assert_eq!(all, bytes);
});

on_a_node!(arrays_end_with_their_context, ["--context", "64MiB"], || {
    begin();
    let before = free_bytes();
    let mut own = null_mut();
    cu!(cuCtxCreate_v2(&mut own, 0, 0)).expect("context");
    let array = create(&descriptor(1024, 1024, 0, 0)).expect("room");
    let mut levels = null_mut();
    cu!(cuMipmappedArrayCreate(&mut levels, &descriptor(64, 64, 0, 0), 7)).expect("room");
    let mut level = null_mut();
    cu!(cuMipmappedArrayGetLevel(&mut level, levels, 2)).expect("there");
    // SAFETY: plain integers.
    let mut told: CUDA_ARRAY3D_DESCRIPTOR = unsafe { std::mem::zeroed() };
    cu!(cuArray3DGetDescriptor_v2(&mut told, level)).expect("told");
    assert_eq!((told.Width, told.Height), (16, 16));
    assert_eq!(
        cu!(cuArrayDestroy(level)),
        Err(CudaError::INVALID_HANDLE),
        "a level is not its own"
    );
    cu!(cuCtxDestroy_v2(own)).expect("destroy");
    assert_eq!(free_bytes(), before);
    assert_eq!(cu!(cuArrayDestroy(array)), Err(CudaError::INVALID_HANDLE));
});
