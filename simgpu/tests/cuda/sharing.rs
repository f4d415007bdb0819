//! Memory and events that processes share.

use crate::harness::{GRANULE, MIB, alloc, another, begin, finished, free_bytes, part};
use crate::harness::{cu, on_a_node};
use crate::physical::{create, open, properties, reserve};
use driver::CudaError;
use driver::abi::*;
use std::ptr::null_mut;

fn hex<const N: usize>(bytes: &[u8; N]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(name: &str) -> [u8; 64] {
    let text = std::env::var(name).expect("given");
    std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hex"))
}

fn first_bytes(pointer: CUdeviceptr) -> [u8; 4] {
    let mut bytes = [0; 4];
    cu!(cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), pointer, 4)).expect("read");
    bytes
}

on_a_node!(an_ipc_handle_shows_the_exporters_memory, [], || {
    const NAME: &str = "sharing::an_ipc_handle_shows_the_exporters_memory";
    const HANDLE: &str = "STINT_TEST_CUDA_HANDLE";
    begin();
    if part() != "first" {
        let before = free_bytes();
        let handle = CUipcMemHandle {
            reserved: unhex(HANDLE),
        };
        let (mut pointer, mut twice) = (0, 0);
        cu!(cuIpcOpenMemHandle_v2(&mut pointer, handle, 1)).expect("open");
        cu!(cuIpcOpenMemHandle_v2(&mut twice, handle, 1)).expect("open");
        assert_eq!(pointer, twice);
        assert_eq!(first_bytes(pointer), [3; 4]);
        cu!(cuMemsetD8_v2(pointer, 4, 4)).expect("write");
        assert_eq!(free_bytes(), before, "an import is not charged");
        assert_eq!(cu!(cuMemFree_v2(pointer)), Err(CudaError::INVALID_VALUE));
        cu!(cuIpcCloseMemHandle(pointer)).expect("close");
        assert_eq!(first_bytes(pointer), [4; 4], "opened twice");
        cu!(cuIpcCloseMemHandle(pointer)).expect("close");
        assert_eq!(cu!(cuIpcCloseMemHandle(pointer)), Err(CudaError::INVALID_VALUE));
        return;
    }
    for bytes in [4 * MIB, 1000] {
        // Not at the beginning of its granule.
        let _before = alloc(700);
        let pointer = alloc(bytes);
        cu!(cuMemsetD8_v2(pointer, 3, bytes)).expect("set");
        let mut handle = CUipcMemHandle { reserved: [0; 64] };
        cu!(cuIpcGetMemHandle(&mut handle, pointer)).expect("handle");
        let own = cu!(cuIpcOpenMemHandle_v2(&mut 0, handle, 1));
        assert_eq!(
            own,
            Err(CudaError::INVALID_CONTEXT),
            "not in the process it is of"
        );
        let child = another(NAME, "importer")
            .env(HANDLE, hex(&handle.reserved))
            .spawn();
        finished(child.expect("starts"));
        assert_eq!(first_bytes(pointer), [4; 4]);
    }
    let garbage = CUipcMemHandle { reserved: [0x5a; 64] };
    assert_eq!(
        cu!(cuIpcOpenMemHandle_v2(&mut 0, garbage, 1)),
        Err(CudaError::INVALID_VALUE)
    );
    let mut managed = 0;
    cu!(cuMemAllocManaged(&mut managed, MIB, 1)).expect("managed");
    let mut handle = garbage;
    assert_eq!(
        cu!(cuIpcGetMemHandle(&mut handle, managed)),
        Err(CudaError::INVALID_VALUE)
    );
});

on_a_node!(a_descriptor_of_memory_keeps_it_alive_and_charged, [], || {
    const NAME: &str = "sharing::a_descriptor_of_memory_keeps_it_alive_and_charged";
    const NUMBER: &str = "STINT_TEST_CUDA_DESCRIPTOR";
    begin();
    let map = |handle| {
        let range = reserve(GRANULE);
        cu!(cuMemMap(range, GRANULE, 0, handle, 0)).expect("map");
        open(range, GRANULE).expect("access");
        range
    };
    if part() != "first" {
        let before = free_bytes();
        let number: usize = std::env::var(NUMBER).expect("given").parse().expect("a number");
        let mut handle = 0;
        cu!(cuMemImportFromShareableHandle(
            &mut handle,
            number as *mut c_void,
            1
        ))
        .expect("import");
        let mut said = properties(0, 0);
        cu!(cuMemGetAllocationPropertiesFromHandle(&mut said, handle)).expect("properties");
        assert_eq!(
            said.location,
            CUmemLocation {
                kind: CU_MEM_LOCATION_TYPE_DEVICE,
                id: 0
            }
        );
        let range = map(handle);
        assert_eq!(first_bytes(range), [6; 4]);
        cu!(cuMemsetD8_v2(range, 7, 4)).expect("write");
        assert_eq!(free_bytes(), before, "an import is not charged");
        return;
    }
    let before = free_bytes();
    let mut exportable = properties(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    let mut number = -1i32;
    let out = (&raw mut number).cast::<c_void>();
    let plain = create(GRANULE, &exportable).expect("create");
    assert_eq!(
        cu!(cuMemExportToShareableHandle(out, plain, 1, 0)),
        Err(CudaError::INVALID_VALUE)
    );
    cu!(cuMemRelease(plain)).expect("release");
    exportable.requestedHandleTypes = 1;
    let handle = create(GRANULE, &exportable).expect("create");
    let range = map(handle);
    cu!(cuMemsetD8_v2(range, 6, GRANULE)).expect("set");
    cu!(cuMemExportToShareableHandle(out, handle, 1, 0)).expect("export");
    // SAFETY: our own descriptor, which the child shall inherit.
    unsafe { libc::fcntl(number, libc::F_SETFD, 0) };
    finished(
        another(NAME, "importer")
            .env(NUMBER, number.to_string())
            .spawn()
            .expect("starts"),
    );
    assert_eq!(first_bytes(range), [7; 4]);
    cu!(cuMemUnmap(range, GRANULE)).expect("unmap");
    cu!(cuMemRelease(handle)).expect("release");
    assert_eq!(
        before - free_bytes(),
        GRANULE,
        "the descriptor still stands for it"
    );
    let mut again = 0;
    cu!(cuMemImportFromShareableHandle(
        &mut again,
        number as usize as *mut c_void,
        1
    ))
    .expect("import");
    assert_eq!(first_bytes(map(again)), [7; 4]);
    // SAFETY: our own descriptor, used no more.
    unsafe { libc::close(number) };
    assert_eq!(
        cu!(cuMemImportFromShareableHandle(&mut again, 9999 as *mut c_void, 1)),
        Err(CudaError::INVALID_VALUE)
    );
});

on_a_node!(a_pool_and_its_pointers_are_seen_by_another_process, [], || {
    const NAME: &str = "sharing::a_pool_and_its_pointers_are_seen_by_another_process";
    const NUMBER: &str = "STINT_TEST_CUDA_DESCRIPTOR";
    const HANDLE: &str = "STINT_TEST_CUDA_HANDLE";
    begin();
    let invalid = Err(CudaError::INVALID_VALUE);
    if part() != "first" {
        let before = free_bytes();
        let number: usize = std::env::var(NUMBER).expect("given").parse().expect("a number");
        let mut pool = null_mut();
        cu!(cuMemPoolImportFromShareableHandle(
            &mut pool,
            number as *mut c_void,
            1,
            0
        ))
        .expect("import");
        let mut data = CUmemPoolPtrExportData {
            reserved: unhex(HANDLE),
        };
        let mut pointer = 0;
        cu!(cuMemPoolImportPointer(&mut pointer, pool, &mut data)).expect("import");
        assert_eq!(first_bytes(pointer), [6; 4]);
        cu!(cuMemsetD8_v2(pointer, 7, 4)).expect("write");
        assert_eq!(free_bytes(), before, "an import is not charged");
        let own = cu!(cuMemAllocFromPoolAsync(&mut 0, 4096, pool, null_mut()));
        assert_eq!(own, invalid, "it gives out nothing itself");
        assert_eq!(cu!(cuDeviceSetMemPool(0, pool)), invalid);
        cu!(cuMemFreeAsync(pointer, null_mut())).expect("free");
        cu!(cuCtxSynchronize()).expect("wait");
        assert_eq!(cu!(cuMemFree_v2(pointer)), invalid, "twice");
        data.reserved[8] ^= 1;
        assert_eq!(
            cu!(cuMemPoolImportPointer(&mut pointer, pool, &mut data)),
            invalid,
            "of another pool"
        );
        cu!(cuMemPoolDestroy(pool)).expect("destroy");
        return;
    }
    // SAFETY: a struct of integers and a pointer.
    let mut wish: CUmemPoolProps = unsafe { std::mem::zeroed() };
    (wish.allocType, wish.handleTypes) = (1, 1);
    wish.location = CUmemLocation {
        kind: CU_MEM_LOCATION_TYPE_DEVICE,
        id: 0,
    };
    let make = |wish: &CUmemPoolProps| {
        let mut pool = null_mut();
        cu!(cuMemPoolCreate(&mut pool, wish)).map(|()| pool)
    };
    let pool = make(&wish).expect("pool");
    let (mut pointer, mut number) = (0, -1i32);
    cu!(cuMemAllocFromPoolAsync(&mut pointer, MIB, pool, null_mut())).expect("alloc");
    cu!(cuMemsetD8_v2(pointer, 6, MIB)).expect("set");
    let out = (&raw mut number).cast::<c_void>();
    cu!(cuMemPoolExportToShareableHandle(out, pool, 1, 0)).expect("export");
    // SAFETY: our own descriptor, which the child shall inherit.
    unsafe { libc::fcntl(number, libc::F_SETFD, 0) };
    let mut data = CUmemPoolPtrExportData { reserved: [0; 64] };
    cu!(cuMemPoolExportPointer(&mut data, pointer)).expect("export");
    let child = another(NAME, "importer")
        .env(HANDLE, hex(&data.reserved))
        .env(NUMBER, number.to_string())
        .spawn();
    finished(child.expect("starts"));
    assert_eq!(first_bytes(pointer), [7; 4]);
    // What was not made to be shared is not.
    wish.handleTypes = 0;
    let plain = make(&wish).expect("pool");
    let mut other = 0;
    cu!(cuMemAllocFromPoolAsync(&mut other, MIB, plain, null_mut())).expect("alloc");
    assert_eq!(cu!(cuMemPoolExportToShareableHandle(out, plain, 1, 0)), invalid);
    assert_eq!(cu!(cuMemPoolExportPointer(&mut data, other)), invalid);
    assert_eq!(cu!(cuMemPoolExportPointer(&mut data, alloc(MIB))), invalid);
    wish.handleTypes = 8;
    assert_eq!(
        make(&wish).err(),
        Some(CudaError::NOT_SUPPORTED),
        "fabric handles"
    );
});

on_a_node!(
    an_interprocess_event_is_seen_by_the_other_process,
    ["--noise", "off"],
    || {
        const NAME: &str = "sharing::an_interprocess_event_is_seen_by_the_other_process";
        const HANDLE: &str = "STINT_TEST_CUDA_HANDLE";
        begin();
        if part() != "first" {
            let handle = CUipcEventHandle {
                reserved: unhex(HANDLE),
            };
            let mut event = null_mut();
            cu!(cuIpcOpenEventHandle(&mut event, handle)).expect("open");
            assert_eq!(cu!(cuEventQuery(event)), Err(CudaError::NOT_READY));
            cu!(cuStreamWaitEvent(null_mut(), event, 0)).expect("wait");
            assert_eq!(cu!(cuEventQuery(event)), Ok(()));
            cu!(cuEventDestroy_v2(event)).expect("destroy");
            return;
        }
        let mut event = null_mut();
        cu!(cuEventCreate(&mut event, 6)).expect("event");
        let mut handle = CUipcEventHandle { reserved: [0; 64] };
        cu!(cuIpcGetEventHandle(&mut handle, event)).expect("handle");
        let kernel = crate::modules::kernel("sim_spin_ms_1500");
        cu!(cuLaunchKernel(
            kernel,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            null_mut(),
            null_mut(),
            null_mut()
        ))
        .expect("launch");
        cu!(cuEventRecord(event, null_mut())).expect("record");
        finished(
            another(NAME, "waiter")
                .env(HANDLE, hex(&handle.reserved))
                .spawn()
                .expect("starts"),
        );
        assert_eq!(cu!(cuEventQuery(event)), Ok(()));
    }
);
