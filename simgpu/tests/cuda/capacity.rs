//! Plain memory: what is charged, what is refused, what is given back.

use crate::harness::{GRANULE, MIB, alloc, another, begin, finished, free_bytes, part};
use crate::harness::{cu, on_a_node};
use driver::CudaError;
use driver::abi::*;
use std::io::{BufRead, BufReader, Write};
use std::ptr::null_mut;

const INVALID: Result<(), CudaError> = Err(CudaError::INVALID_VALUE);

on_a_node!(small_blocks_share_granules, [], || {
    begin();
    let before = free_bytes();
    let blocks: Vec<CUdeviceptr> = (0..4096).map(|_| alloc(512)).collect();
    assert_eq!(before - free_bytes(), GRANULE, "4096 times 512 is one granule");
    let one_more = alloc(1);
    assert_eq!(before - free_bytes(), 2 * GRANULE);
    let mut sorted = blocks.clone();
    sorted.sort_unstable();
    assert!(
        sorted.windows(2).all(|pair| pair[1] - pair[0] >= 512),
        "no two overlap"
    );
    assert!(sorted.iter().all(|pointer| pointer.is_multiple_of(512)));
    for pointer in blocks {
        cu!(cuMemFree_v2(pointer)).expect("free");
    }
    assert_eq!(before - free_bytes(), GRANULE);
    cu!(cuMemFree_v2(one_more)).expect("free");
    assert_eq!(free_bytes(), before);
});

on_a_node!(large_blocks_are_rounded_up_to_granules, [], || {
    begin();
    for (bytes, charged) in [
        (MIB, GRANULE),
        (GRANULE, GRANULE),
        (GRANULE + 1, 2 * GRANULE),
        (7 * MIB, 8 * MIB),
    ] {
        let before = free_bytes();
        let pointer = alloc(bytes);
        assert!(pointer.is_multiple_of(GRANULE as u64));
        assert_eq!(before - free_bytes(), charged, "{bytes}");
        let (mut base, mut size) = (0, 0);
        cu!(cuMemGetAddressRange_v2(
            &mut base,
            &mut size,
            pointer + bytes as u64 - 1
        ))
        .expect("range");
        assert_eq!((base, size), (pointer, bytes));
        cu!(cuMemFree_v2(pointer)).expect("free");
        assert_eq!(free_bytes(), before);
        assert_eq!(cu!(cuMemFree_v2(pointer)), INVALID, "freed twice");
    }
    assert_eq!(cu!(cuMemFree_v2(0)), Ok(()));
    assert_eq!(cu!(cuMemFree_v2(0x1234)), INVALID);
    assert_eq!(cu!(cuMemAlloc_v2(&mut 0, 0)), INVALID);
});

on_a_node!(
    what_does_not_fit_is_refused_and_charges_nothing,
    ["--devices", "t4:1"],
    || {
        begin();
        let before = free_bytes();
        let mut pointer = 0;
        for bytes in [before + 1, usize::MAX, usize::MAX - GRANULE, 1 << 50] {
            assert_eq!(
                cu!(cuMemAlloc_v2(&mut pointer, bytes)),
                Err(CudaError::OUT_OF_MEMORY)
            );
            assert_eq!(
                cu!(cuMemAllocManaged(&mut pointer, bytes, 1)),
                Err(CudaError::OUT_OF_MEMORY)
            );
            assert_eq!(free_bytes(), before);
        }
        let whole = before / GRANULE * GRANULE;
        let pointer = alloc(whole);
        assert_eq!(before - free_bytes(), whole);
        assert_eq!(cu!(cuMemAlloc_v2(&mut 0, GRANULE)), Err(CudaError::OUT_OF_MEMORY));
        cu!(cuMemFree_v2(pointer)).expect("free");
        assert_eq!(free_bytes(), before);
    }
);

on_a_node!(pitched_memory_has_whole_rows, [], || {
    begin();
    let before = free_bytes();
    let (mut pointer, mut pitch) = (0, 0);
    cu!(cuMemAllocPitch_v2(&mut pointer, &mut pitch, 1000, 4096, 4)).expect("alloc");
    assert_eq!(pitch, 1024);
    assert_eq!(before - free_bytes(), 4 * MIB);
    cu!(cuMemFree_v2(pointer)).expect("free");
    assert_eq!(free_bytes(), before);
    assert_eq!(
        cu!(cuMemAllocPitch_v2(&mut pointer, &mut pitch, 1000, 4096, 3)),
        INVALID
    );
    assert_eq!(
        cu!(cuMemAllocPitch_v2(&mut pointer, &mut pitch, usize::MAX, 2, 4)),
        INVALID
    );
});

on_a_node!(
    processes_share_the_capacity_and_the_dead_give_theirs_back,
    [],
    || {
        const NAME: &str = "capacity::processes_share_the_capacity_and_the_dead_give_theirs_back";
        begin();
        if part() == "neighbour" {
            alloc(64 * MIB);
            println!("= holds");
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).expect("waits");
            return;
        }
        let before = free_bytes();
        let mut child = another(NAME, "neighbour").spawn().expect("starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        assert!(lines.any(|line| line.expect("text").contains("= holds")));
        // Its context costs 64 MiB too.
        assert_eq!(before - free_bytes(), 128 * MIB);
        child.kill().expect("kill");
        child.wait().expect("wait");
        while free_bytes() != before {
            std::thread::yield_now();
        }
        let mut last = another(NAME, "neighbour").spawn().expect("starts");
        last.stdin.take().expect("piped").write_all(b"\n").expect("write");
        finished(last);
    }
);

on_a_node!(
    a_context_costs_its_price_and_takes_its_memory_along,
    ["--context", "128MiB"],
    || {
        begin();
        let before = free_bytes();
        let mut context = null_mut();
        cu!(cuCtxCreate_v2(&mut context, 0, 0)).expect("create");
        assert_eq!(before - free_bytes(), 128 * MIB);
        let (plain, small) = (alloc(8 * MIB), alloc(100));
        let (mut managed, mut host) = (0, null_mut());
        cu!(cuMemAllocManaged(&mut managed, 4 * MIB, 1)).expect("managed");
        cu!(cuMemHostAlloc(&mut host, 4 * MIB, 0)).expect("host");
        let mut pooled = 0;
        cu!(cuMemAllocAsync(&mut pooled, 64 * MIB, null_mut())).expect("pool");
        assert_eq!(before - free_bytes(), (128 + 8 + 2 + 4 + 64) * MIB);
        cu!(cuCtxDestroy_v2(context)).expect("destroy");
        assert_eq!(before - free_bytes(), 64 * MIB, "what a pool gave lives on");
        for gone in [plain, small, managed, host as u64] {
            assert_eq!(cu!(cuMemFree_v2(gone)), INVALID);
        }
        cu!(cuMemFree_v2(pooled)).expect("still there");
        cu!(cuCtxSynchronize()).expect("waits");
        assert_eq!(free_bytes(), before);
    }
);

on_a_node!(host_memory_costs_the_device_nothing, [], || {
    begin();
    let before = free_bytes();
    let mut pinned = null_mut();
    cu!(cuMemHostAlloc(&mut pinned, MIB, 2)).expect("alloc");
    let mut flags = 0;
    cu!(cuMemHostGetFlags(&mut flags, pinned)).expect("flags");
    assert_eq!(flags & 2, 2);
    let mut device = 0;
    cu!(cuMemHostGetDevicePointer_v2(&mut device, pinned, 0)).expect("mapped");
    assert_eq!(device, pinned as u64);
    let mut own = vec![0u8; 8192];
    let pointer = own.as_mut_ptr().cast();
    cu!(cuMemHostRegister_v2(pointer, 8192, 0)).expect("register");
    let twice = cu!(cuMemHostRegister_v2(pointer, 4096, 0));
    assert_eq!(twice, Err(CudaError::HOST_MEMORY_ALREADY_REGISTERED));
    cu!(cuMemHostUnregister(pointer)).expect("unregister");
    assert_eq!(
        cu!(cuMemHostUnregister(pointer)),
        Err(CudaError::HOST_MEMORY_NOT_REGISTERED)
    );
    assert_eq!(cu!(cuMemFreeHost(pointer)), INVALID);
    cu!(cuMemFreeHost(pinned)).expect("free");
    assert_eq!(cu!(cuMemFreeHost(pinned)), INVALID);
    assert_eq!(free_bytes(), before);
});

on_a_node!(pointers_tell_what_they_are, [], || {
    let context = begin();
    let plain = alloc(8 * MIB);
    let word = |attribute, pointer| {
        let mut value = [0u8; 8];
        cu!(cuPointerGetAttribute(
            value.as_mut_ptr().cast(),
            attribute,
            pointer
        ))
        .map(|()| u64::from_le_bytes(value))
    };
    assert_eq!(word(1, plain), Ok(context as u64));
    assert_eq!(word(2, plain), Ok(2), "device memory");
    assert_eq!(word(11, plain + 5), Ok(plain));
    assert_eq!(word(12, plain + 5), Ok(8 * MIB as u64));
    let first = word(7, plain).expect("an id");
    cu!(cuMemFree_v2(plain)).expect("free");
    let again = alloc(8 * MIB);
    assert_ne!(word(7, again), Ok(first), "ids are not used again");
    let mut managed = 0;
    cu!(cuMemAllocManaged(&mut managed, MIB, 1)).expect("managed");
    assert_eq!(word(8, managed), Ok(1));
    let own = [0u8; 16];
    let unknown = own.as_ptr() as u64;
    assert_eq!(word(2, unknown), Err(CudaError::INVALID_VALUE));
    let (mut kind, mut device) = (77u32, 77i32);
    let mut attributes = [2, 9];
    let mut places: [*mut c_void; 2] = [(&raw mut kind).cast(), (&raw mut device).cast()];
    cu!(cuPointerGetAttributes(
        2,
        attributes.as_mut_ptr(),
        places.as_mut_ptr(),
        unknown
    ))
    .expect("plural");
    assert_eq!((kind, device), (0, -2), "the plural form knows unknown memory");
    cu!(cuPointerGetAttributes(
        2,
        attributes.as_mut_ptr(),
        places.as_mut_ptr(),
        again
    ))
    .expect("plural");
    assert_eq!((kind, device), (2, 0));
});

on_a_node!(threads_may_do_everything_at_once, ["--timing", "null"], || {
    const THREADS: u64 = 8;
    let context = begin() as usize;
    let before = free_bytes();
    let work = move |mut seed: u64| {
        cu!(cuCtxSetCurrent(context as CUcontext)).expect("set");
        let (mut stream, mut event) = (null_mut(), null_mut());
        let mut held: Vec<CUdeviceptr> = Vec::new();
        for _ in 0..2000 {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let bytes = 1 << ((seed >> 33) % 23);
            match (seed >> 60) % 8 {
                0..=2 => held.push(alloc(bytes)),
                3 => {
                    let mut pointer = 0;
                    cu!(cuMemAllocAsync(&mut pointer, bytes, 2 as CUstream)).expect("alloc");
                    held.push(pointer);
                }
                4 | 5 => {
                    if let Some(pointer) = held.pop() {
                        cu!(cuMemFree_v2(pointer)).expect("free");
                        assert_eq!(cu!(cuMemFree_v2(pointer | 1)), INVALID);
                    }
                }
                6 => {
                    cu!(cuStreamCreate(&mut stream, 0)).expect("stream");
                    cu!(cuEventCreate(&mut event, 0)).expect("event");
                    cu!(cuEventRecord(event, stream)).expect("record");
                    cu!(cuStreamWaitEvent(null_mut(), event, 0)).expect("wait");
                    cu!(cuEventDestroy_v2(event)).expect("destroy");
                    cu!(cuStreamDestroy_v2(stream)).expect("destroy");
                }
                _ => {
                    if let Some(&pointer) = held.last() {
                        // Nobody else writes where this thread does.
                        cu!(cuMemsetD8_v2(pointer, seed as u8, 1)).expect("set");
                        let mut seen = 0u8;
                        cu!(cuMemcpyDtoH_v2((&raw mut seen).cast(), pointer, 1)).expect("read");
                        assert_eq!(seen, seed as u8);
                    }
                }
            }
        }
        for pointer in held {
            cu!(cuMemFree_v2(pointer)).expect("free");
        }
    };
    let threads: Vec<_> = (0..THREADS)
        .map(|seed| std::thread::spawn(move || work(seed)))
        .collect();
    for thread in threads {
        thread.join().expect("no thread failed");
    }
    cu!(cuCtxSynchronize()).expect("wait");
    assert_eq!(
        before - free_bytes(),
        GRANULE,
        "the one slab that null timing keeps"
    );
});
