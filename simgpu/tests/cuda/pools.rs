//! The stream-ordered allocator: reserved, used, given back.

use crate::harness::{GRANULE, MIB, begin, free_bytes};
use crate::harness::{cu, on_a_node};
use driver::CudaError;
use driver::abi::*;
use std::ptr::null_mut;

const THRESHOLD: u32 = 4;
const RESERVED: u32 = 5;
const RESERVED_HIGH: u32 = 6;
const USED: u32 = 7;
const USED_HIGH: u32 = 8;

fn default_pool() -> CUmemoryPool {
    let mut pool = null_mut();
    cu!(cuDeviceGetDefaultMemPool(&mut pool, 0)).expect("pool");
    pool
}

fn value(pool: CUmemoryPool, attribute: u32) -> u64 {
    let mut value = 0u64;
    cu!(cuMemPoolGetAttribute(pool, attribute, (&raw mut value).cast())).expect("attribute");
    value
}

fn set(pool: CUmemoryPool, attribute: u32, mut value: u64) -> Result<(), CudaError> {
    cu!(cuMemPoolSetAttribute(pool, attribute, (&raw mut value).cast()))
}

fn take(bytes: usize, stream: CUstream) -> CUdeviceptr {
    let mut pointer = 0;
    cu!(cuMemAllocAsync(&mut pointer, bytes, stream)).expect("alloc");
    pointer
}

on_a_node!(
    a_pool_reserves_more_than_is_used_and_lets_go_at_a_wait,
    [],
    || {
        begin();
        let (pool, before) = (default_pool(), free_bytes());
        let pointer = take(MIB, null_mut());
        assert_eq!(value(pool, USED), MIB as u64);
        let reserved = value(pool, RESERVED);
        assert!(reserved >= MIB as u64 && reserved.is_multiple_of(GRANULE as u64));
        assert_eq!(
            (before - free_bytes()) as u64,
            reserved,
            "what is reserved is charged"
        );
        cu!(cuMemFreeAsync(pointer, null_mut())).expect("free");
        assert_eq!((value(pool, USED), value(pool, RESERVED)), (0, reserved));
        assert_eq!(
            (value(pool, USED_HIGH), value(pool, RESERVED_HIGH)),
            (MIB as u64, reserved)
        );
        cu!(cuStreamSynchronize(null_mut())).expect("wait");
        assert_eq!(value(pool, RESERVED), 0);
        assert_eq!(free_bytes(), before);
        set(pool, USED_HIGH, 0).expect("reset");
        assert_eq!(value(pool, USED_HIGH), 0);
        assert_eq!(set(pool, USED_HIGH, 5), Err(CudaError::INVALID_VALUE));
        assert_eq!(set(pool, USED, 0), Err(CudaError::INVALID_VALUE));
    }
);

on_a_node!(below_its_threshold_a_pool_keeps_what_it_has, [], || {
    begin();
    let (pool, before) = (default_pool(), free_bytes());
    set(pool, THRESHOLD, u64::MAX).expect("threshold");
    let first = take(8 * MIB, null_mut());
    cu!(cuMemFreeAsync(first, null_mut())).expect("free");
    cu!(cuCtxSynchronize()).expect("wait");
    let kept = value(pool, RESERVED);
    assert!(kept >= 8 * MIB as u64);
    assert_eq!(take(8 * MIB, null_mut()), first, "used again");
    assert_eq!(value(pool, RESERVED), kept);
    cu!(cuMemPoolTrimTo(pool, 0)).expect("trim");
    assert_eq!(value(pool, RESERVED), kept, "what is in use stays");
    cu!(cuMemFree_v2(first)).expect("freed like plain memory");
    cu!(cuMemPoolTrimTo(pool, 0)).expect("trim");
    assert_eq!(value(pool, RESERVED), 0);
    assert_eq!(free_bytes(), before);
});

on_a_node!(
    memory_freed_behind_work_is_not_let_go_before_it,
    ["--noise", "off"],
    || {
        begin();
        let pool = default_pool();
        let kernel = crate::modules::kernel("sim_spin_ms_300");
        let mut stream = null_mut();
        cu!(cuStreamCreate(&mut stream, 1)).expect("stream");
        let pointer = take(MIB, stream);
        cu!(cuLaunchKernel(
            kernel,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            stream,
            null_mut(),
            null_mut()
        ))
        .expect("launch");
        cu!(cuMemFreeAsync(pointer, stream)).expect("free");
        cu!(cuMemPoolTrimTo(pool, 0)).expect("trim");
        assert_ne!(value(pool, RESERVED), 0);
        cu!(cuStreamSynchronize(stream)).expect("wait");
        assert_eq!(value(pool, RESERVED), 0);
    }
);

on_a_node!(an_own_pool_has_a_limit_and_outlives_its_handle, [], || {
    begin();
    let before = free_bytes();
    // SAFETY: plain integers and pointers, for which zeros are values.
    let mut properties: CUmemPoolProps = unsafe { std::mem::zeroed() };
    properties.allocType = 1;
    properties.location = CUmemLocation {
        kind: CU_MEM_LOCATION_TYPE_DEVICE,
        id: 0,
    };
    properties.maxSize = 4 * MIB;
    let mut pool = null_mut();
    cu!(cuMemPoolCreate(&mut pool, &properties)).expect("create");
    let mut pointer = 0;
    let take = |pointer: &mut u64, bytes| cu!(cuMemAllocFromPoolAsync(pointer, bytes, pool, null_mut()));
    assert_eq!(take(&mut pointer, 5 * MIB), Err(CudaError::OUT_OF_MEMORY));
    assert_eq!(take(&mut pointer, 3 * MIB), Ok(()));
    let mut handle = null_mut::<c_void>();
    cu!(cuPointerGetAttribute((&raw mut handle).cast(), 17, pointer)).expect("its pool");
    assert_eq!(handle, pool);
    let mut flags = 0;
    let mut here = properties.location;
    cu!(cuMemPoolGetAccess(&mut flags, pool, &mut here)).expect("access");
    assert_eq!(flags, 3);
    cu!(cuDeviceSetMemPool(0, pool)).expect("current");
    cu!(cuMemPoolDestroy(pool)).expect("destroy");
    let mut current = null_mut();
    cu!(cuDeviceGetMemPool(&mut current, 0)).expect("current");
    assert_eq!(current, default_pool());
    assert_eq!(cu!(cuMemPoolDestroy(pool)), Err(CudaError::INVALID_VALUE));
    assert_eq!(
        cu!(cuMemPoolDestroy(default_pool())),
        Err(CudaError::INVALID_VALUE)
    );
    assert_ne!(free_bytes(), before);
    cu!(cuMemFreeAsync(pointer, null_mut())).expect("free");
    cu!(cuCtxSynchronize()).expect("wait");
    assert_eq!(free_bytes(), before, "the last block takes the pool along");
    properties.location = CUmemLocation { kind: 99, id: 0 };
    assert_eq!(
        cu!(cuMemPoolCreate(&mut pool, &properties)),
        Err(CudaError::INVALID_VALUE)
    );
});

on_a_node!(
    plain_memory_freed_in_stream_order_goes_at_the_next_wait,
    [],
    || {
        begin();
        let before = free_bytes();
        let pointer = crate::harness::alloc(4 * MIB);
        cu!(cuMemFreeAsync(pointer, null_mut())).expect("free");
        assert_eq!(
            cu!(cuMemFree_v2(pointer)),
            Err(CudaError::INVALID_VALUE),
            "freed already"
        );
        assert_eq!(before - free_bytes(), 4 * MIB);
        cu!(cuStreamSynchronize(null_mut())).expect("wait");
        assert_eq!(free_bytes(), before);
    }
);
