//! Physical memory, address ranges and who may touch what.

use crate::harness::{GRANULE, begin, free_bytes};
use crate::harness::{cu, on_a_node};
use driver::CudaError;
use driver::abi::*;

const INVALID: Result<(), CudaError> = Err(CudaError::INVALID_VALUE);

pub fn properties(kind: u32, id: i32) -> CUmemAllocationProp {
    // SAFETY: plain integers and pointers, for which zeros are values.
    let mut properties: CUmemAllocationProp = unsafe { std::mem::zeroed() };
    properties.kind = 1;
    properties.location = CUmemLocation { kind, id };
    properties
}

pub fn create(bytes: usize, properties: &CUmemAllocationProp) -> Result<u64, CudaError> {
    let mut handle = 0;
    cu!(cuMemCreate(&mut handle, bytes, properties, 0)).map(|()| handle)
}

pub fn reserve(bytes: usize) -> CUdeviceptr {
    let mut address = 0;
    cu!(cuMemAddressReserve(&mut address, bytes, 0, 0, 0)).expect("reserve");
    address
}

pub fn open(address: CUdeviceptr, bytes: usize) -> Result<(), CudaError> {
    let location = CUmemLocation {
        kind: CU_MEM_LOCATION_TYPE_DEVICE,
        id: 0,
    };
    cu!(cuMemSetAccess(
        address,
        bytes,
        &CUmemAccessDesc { location, flags: 3 },
        1
    ))
}

on_a_node!(memory_lives_while_a_handle_or_a_mapping_does, [], || {
    begin();
    let (before, device) = (free_bytes(), properties(CU_MEM_LOCATION_TYPE_DEVICE, 0));
    let used = || (before - free_bytes()) / GRANULE;
    let handle = create(2 * GRANULE, &device).expect("create");
    assert_eq!(used(), 2);
    let range = reserve(8 * GRANULE);
    assert_eq!(used(), 2, "addresses are free");
    let (first, second) = (range, range + 4 * GRANULE as u64);
    for at in [first, second] {
        cu!(cuMemMap(at, 2 * GRANULE, 0, handle, 0)).expect("map");
    }
    assert_eq!(cu!(cuMemMap(first, 2 * GRANULE, 0, handle, 0)), INVALID, "taken");
    assert_eq!(cu!(cuMemsetD8_v2(first, 1, 4)), INVALID, "nobody has access yet");
    open(first, 2 * GRANULE).expect("access");
    open(second, 2 * GRANULE).expect("access");
    cu!(cuMemsetD8_v2(first, 5, 4)).expect("set");
    let mut seen = [0u8; 4];
    cu!(cuMemcpyDtoH_v2(seen.as_mut_ptr().cast(), second, 4)).expect("read");
    assert_eq!(seen, [5; 4], "both show the same memory");
    let mut again = 0;
    cu!(cuMemRetainAllocationHandle(&mut again, second as *mut c_void)).expect("retain");
    assert_eq!(again, handle);
    cu!(cuMemRelease(handle)).expect("release");
    cu!(cuMemRelease(handle)).expect("release");
    assert_eq!(cu!(cuMemRelease(handle)), INVALID);
    assert_eq!(used(), 2, "mapped still");
    assert_eq!(cu!(cuMemUnmap(first, GRANULE)), INVALID, "only whole mappings");
    cu!(cuMemUnmap(first, 2 * GRANULE)).expect("unmap");
    assert_eq!(used(), 2);
    assert_eq!(
        cu!(cuMemAddressFree(range, 8 * GRANULE)),
        INVALID,
        "something is mapped"
    );
    cu!(cuMemUnmap(second, 2 * GRANULE)).expect("unmap");
    assert_eq!(used(), 0);
    assert_eq!(cu!(cuMemAddressFree(range, GRANULE)), INVALID, "not all of it");
    cu!(cuMemAddressFree(range, 8 * GRANULE)).expect("free");
});

on_a_node!(neighbouring_mappings_are_copied_as_one, [], || {
    begin();
    let device = properties(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    let range = reserve(4 * GRANULE);
    for i in 0..3 {
        let handle = create(GRANULE, &device).expect("create");
        cu!(cuMemMap(range + (i * GRANULE) as u64, GRANULE, 0, handle, 0)).expect("map");
        cu!(cuMemRelease(handle)).expect("release");
    }
    open(range, 3 * GRANULE).expect("access");
    assert_eq!(open(range, 4 * GRANULE), INVALID, "a part is not mapped");
    let bytes: Vec<u8> = (0..3 * GRANULE).map(|i| (i % 251) as u8).collect();
    cu!(cuMemcpyHtoD_v2(range, bytes.as_ptr().cast(), bytes.len())).expect("across all three");
    let mut back = vec![0; bytes.len()];
    cu!(cuMemcpyDtoH_v2(back.as_mut_ptr().cast(), range, back.len())).expect("back");
    assert!(back == bytes);
    assert_eq!(
        cu!(cuMemcpyDtoH_v2(back.as_mut_ptr().cast(), range + 1, back.len())),
        INVALID
    );
    let (mut base, mut size) = (0, 0);
    cu!(cuMemGetAddressRange_v2(
        &mut base,
        &mut size,
        range + GRANULE as u64 + 7
    ))
    .expect("range");
    assert_eq!((base, size), (range + GRANULE as u64, GRANULE));
    let mut flags = 7;
    let location = CUmemLocation {
        kind: CU_MEM_LOCATION_TYPE_DEVICE,
        id: 0,
    };
    cu!(cuMemGetAccess(&mut flags, &location, range)).expect("access");
    assert_eq!(flags, 3);
});

on_a_node!(only_memory_on_the_device_is_charged, [], || {
    begin();
    let before = free_bytes();
    let mut handles = Vec::new();
    let places = [
        CU_MEM_LOCATION_TYPE_HOST,
        CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT,
        CU_MEM_LOCATION_TYPE_HOST_NUMA,
    ];
    for kind in places {
        let mut host = properties(
            kind,
            if kind == CU_MEM_LOCATION_TYPE_HOST_NUMA {
                0
            } else {
                0x7fff_ffff
            },
        );
        // Fields that mean nothing here may hold anything.
        host.win32HandleMetaData = 0x1234 as *mut c_void;
        host.reserved = [0xff; 4];
        host.compressionType = 77;
        handles.push(create(GRANULE, &host).expect("host memory"));
    }
    assert_eq!(free_bytes(), before);
    let mut device = properties(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    device.reserved = [0xff; 4];
    handles.push(create(GRANULE, &device).expect("device memory"));
    assert_eq!(before - free_bytes(), GRANULE);
    for handle in handles {
        cu!(cuMemRelease(handle)).expect("release");
    }
    assert_eq!(free_bytes(), before);
});

on_a_node!(malformed_requests_are_refused, [], || {
    begin();
    let before = free_bytes();
    let device = properties(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    let refused = |bytes, properties: &CUmemAllocationProp| create(bytes, properties).expect_err("refused");
    assert_eq!(refused(0, &device), CudaError::INVALID_VALUE);
    assert_eq!(refused(GRANULE + 1, &device), CudaError::INVALID_VALUE);
    assert_eq!(
        refused(GRANULE, &properties(CU_MEM_LOCATION_TYPE_DEVICE, 9)),
        CudaError::INVALID_DEVICE
    );
    assert_eq!(refused(GRANULE, &properties(77, 0)), CudaError::INVALID_VALUE);
    let mut wrong = device;
    wrong.kind = 0;
    assert_eq!(refused(GRANULE, &wrong), CudaError::INVALID_VALUE);
    assert_eq!(
        refused(usize::MAX / GRANULE * GRANULE, &device),
        CudaError::OUT_OF_MEMORY
    );
    assert_eq!(free_bytes(), before);
    let mut address = 0;
    assert_eq!(cu!(cuMemAddressReserve(&mut address, 1, 0, 0, 0)), INVALID);
    assert_eq!(cu!(cuMemAddressReserve(&mut address, GRANULE, 3, 0, 0)), INVALID);
    assert_eq!(cu!(cuMemMap(0x20_0000, GRANULE, 0, 7, 0)), INVALID);
    assert_eq!(cu!(cuMemUnmap(0x20_0000, GRANULE)), INVALID);
});
