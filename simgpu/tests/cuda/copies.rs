//! Bytes that go out come back.

use crate::harness::{MIB, alloc, begin, free_bytes};
use crate::harness::{cu, on_a_node};
use driver::CudaError;
use driver::abi::*;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

const INVALID: Result<(), CudaError> = Err(CudaError::INVALID_VALUE);

fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 31 + seed * 7 + i / 256) as u8).collect()
}

fn read(pointer: CUdeviceptr, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    cu!(cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), pointer, length)).expect("read");
    bytes
}

on_a_node!(every_linear_copy_round_trips, [], || {
    let context = begin();
    let bytes = pattern(3 * MIB + 17, 1);
    let (a, b) = (alloc(bytes.len()), alloc(bytes.len()));
    let from = bytes.as_ptr().cast();
    let n = bytes.len();
    let mut stream = null_mut();
    cu!(cuStreamCreate(&mut stream, 0)).expect("stream");
    cu!(cuMemcpyHtoD_v2(a, from, n)).expect("in");
    assert_eq!(read(a, n), bytes);
    cu!(cuMemcpyDtoD_v2(b, a, n)).expect("within");
    assert_eq!(read(b, n), bytes);
    cu!(cuMemsetD8_v2(b, 0, n)).expect("set");
    cu!(cuMemcpyPeer(b, context, a, context, n)).expect("peer");
    assert_eq!(read(b, n), bytes);
    let bytes = pattern(n, 2);
    cu!(cuMemcpyAsync(a, bytes.as_ptr() as u64, n, stream)).expect("any");
    cu!(cuMemcpyDtoDAsync_v2(b, a, n, stream)).expect("within");
    let mut out = vec![0; n];
    cu!(cuMemcpyDtoHAsync_v2(out.as_mut_ptr().cast(), b, n, stream)).expect("out");
    cu!(cuStreamSynchronize(stream)).expect("wait");
    assert_eq!(out, bytes);
    // Into the middle of a block, and over its own end.
    cu!(cuMemcpyHtoD_v2(a + 5, from, 10)).expect("in");
    assert_eq!(read(a + 5, 10), pattern(10, 1));
    assert_eq!(cu!(cuMemcpyHtoD_v2(a + 5, from, n)), INVALID);
    assert_eq!(cu!(cuMemcpyHtoD_v2(a, std::ptr::null(), 1)), INVALID);
    assert_eq!(cu!(cuMemcpyHtoD_v2(0x1000, from, 1)), INVALID);
    assert_eq!(cu!(cuMemcpyHtoD_v2(a, from, 0)), Ok(()));
    assert_eq!(cu!(cuMemcpyHtoD_v2(a, from, usize::MAX)), INVALID);
});

on_a_node!(sets_fill_with_values_of_each_size, [], || {
    begin();
    let a = alloc(MIB);
    cu!(cuMemsetD8_v2(a, 0xab, 1000)).expect("set");
    assert_eq!(read(a, 1000), [0xab; 1000]);
    cu!(cuMemsetD16_v2(a, 0x1234, 10)).expect("set");
    assert_eq!(
        read(a, 22)[..22],
        [&[0x34, 0x12].repeat(10)[..], &[0xab; 2]].concat()
    );
    cu!(cuMemsetD32Async(a, 0x0102_0304, 3, null_mut())).expect("set");
    assert_eq!(read(a, 12), [4, 3, 2, 1].repeat(3));
    cu!(cuMemsetD2D8_v2(a, 16, 0, 2, 3)).expect("set");
    let bytes = read(a, 40);
    assert_eq!(
        (&bytes[..2], &bytes[16..18], &bytes[32..34]),
        (&[0; 2][..], &[0; 2][..], &[0; 2][..])
    );
    assert_ne!(bytes[2], 0, "what lies between rows stays");
    assert_eq!(cu!(cuMemsetD16_v2(a + 1, 0, 1)), INVALID, "misaligned");
    assert_eq!(cu!(cuMemsetD32_v2(a, 0, usize::MAX)), INVALID);
    assert_eq!(cu!(cuMemsetD8_v2(a, 0, MIB + 1)), INVALID);
});

on_a_node!(clearing_all_of_a_device_costs_no_memory_here, [], || {
    begin();
    let bytes = free_bytes() / (64 * MIB) * (64 * MIB);
    let plain = alloc(bytes);
    let mut pooled = 0;
    let check = |a: CUdeviceptr| {
        cu!(cuMemsetD8_v2(a, 7, 4096)).expect("set");
        cu!(cuMemsetD8_v2(a + bytes as u64 - 4096, 7, 4096)).expect("set");
        cu!(cuMemsetD8_v2(a + 1, 0, bytes - 2)).expect("clear");
        assert_eq!(read(a, 4096), [&[7][..], &[0; 4095]].concat());
        assert_eq!(
            read(a + bytes as u64 - 4096, 4096),
            [&[0; 4095][..], &[7]].concat()
        );
    };
    check(plain);
    cu!(cuMemFree_v2(plain)).expect("free");
    cu!(cuMemAllocAsync(&mut pooled, bytes, null_mut())).expect("pool");
    check(pooled);
});

on_a_node!(rectangles_and_boxes_keep_their_shape, [], || {
    begin();
    let bytes = pattern(64 * 64, 3);
    let (mut image, mut pitch) = (0, 0);
    cu!(cuMemAllocPitch_v2(&mut image, &mut pitch, 64, 64, 4)).expect("alloc");
    // SAFETY: plain integers and pointers, for which zeros are values.
    let mut copy: CUDA_MEMCPY2D = unsafe { std::mem::zeroed() };
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = bytes.as_ptr().cast();
    copy.srcPitch = 64;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = image;
    copy.dstPitch = pitch;
    copy.WidthInBytes = 64;
    copy.Height = 64;
    cu!(cuMemcpy2D_v2(&copy)).expect("in");
    assert_eq!(read(image + 9 * pitch as u64, 64), bytes[9 * 64..10 * 64]);
    // A window of it, out again.
    let mut window = vec![0u8; 8 * 5];
    let mut out = copy;
    (out.srcMemoryType, out.srcDevice, out.srcPitch) = (CU_MEMORYTYPE_DEVICE, image, pitch);
    (out.srcXInBytes, out.srcY) = (10, 20);
    (out.dstMemoryType, out.dstHost, out.dstPitch) = (CU_MEMORYTYPE_HOST, window.as_mut_ptr().cast(), 8);
    (out.WidthInBytes, out.Height) = (8, 5);
    cu!(cuMemcpy2DUnaligned_v2(&out)).expect("out");
    for y in 0..5 {
        let start = (20 + y) * 64 + 10;
        assert_eq!(window[y * 8..y * 8 + 8], bytes[start..start + 8]);
    }
    out.dstPitch = 7;
    assert_eq!(cu!(cuMemcpy2D_v2(&out)), INVALID, "rows would overlap");
    // SAFETY: as above.
    let mut solid: CUDA_MEMCPY3D = unsafe { std::mem::zeroed() };
    (
        solid.srcMemoryType,
        solid.srcHost,
        solid.srcPitch,
        solid.srcHeight,
    ) = (CU_MEMORYTYPE_HOST, bytes.as_ptr().cast(), 16, 16);
    (
        solid.dstMemoryType,
        solid.dstDevice,
        solid.dstPitch,
        solid.dstHeight,
    ) = (CU_MEMORYTYPE_DEVICE, image, 16, 16);
    (solid.WidthInBytes, solid.Height, solid.Depth) = (16, 16, 16);
    cu!(cuMemcpy3D_v2(&solid)).expect("box");
    assert_eq!(read(image, 4096), bytes);
    solid.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    let no_array = cu!(cuMemcpy3D_v2(&solid));
    assert_eq!(no_array, Err(CudaError::INVALID_HANDLE));
});

on_a_node!(a_copy_waits_for_the_host_function_before_it, [], || {
    static GO: AtomicBool = AtomicBool::new(false);
    extern "C" fn produce(buffer: *mut c_void) {
        while !GO.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        // SAFETY: the test's pinned buffer of 16 bytes.
        unsafe { buffer.cast::<[u8; 16]>().write([9; 16]) };
    }
    begin();
    let mut pinned = null_mut();
    cu!(cuMemHostAlloc(&mut pinned, 16, 0)).expect("host");
    let a = alloc(16);
    let mut stream = null_mut();
    cu!(cuStreamCreate(&mut stream, 1)).expect("stream");
    cu!(cuLaunchHostFunc(stream, produce as *mut c_void, pinned)).expect("host function");
    cu!(cuMemcpyHtoDAsync_v2(a, pinned, 16, stream)).expect("copy");
    assert_eq!(cu!(cuStreamQuery(stream)), Err(CudaError::NOT_READY));
    GO.store(true, Ordering::Release);
    cu!(cuStreamSynchronize(stream)).expect("wait");
    assert_eq!(read(a, 16), [9; 16]);
});
