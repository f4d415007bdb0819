//! Initialisation, lookups, devices, and what a driver must survive.

use crate::harness::{begin, part};
use crate::harness::{cu, on_a_node};
use driver::abi::*;
use driver::table::SYMBOLS;
use driver::{CuResult, CudaError};
use std::ffi::{CStr, CString};
use std::ptr::{null, null_mut};

/// Any function, called with nothing but zeros: more words than any of them takes.
fn call_with_zeros(address: *mut c_void) -> u32 {
    type Any = unsafe extern "C" fn(
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
    ) -> u32;
    // SAFETY: on this ABI a caller may pass more arguments than a function takes.
    let function = unsafe { std::mem::transmute::<*mut c_void, Any>(address) };
    // SAFETY: zeros are null pointers, handles and counts.
    unsafe { function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) }
}

/// The address of a symbol, by the base name and version that lead to it.
fn lookup(base: &str, version: i32, per_thread: bool) -> Result<*mut c_void, (CudaError, u32)> {
    let base = CString::new(base).expect("a name");
    let (mut address, mut status) = (null_mut(), 77);
    let flags = if per_thread { 2 } else { 0 };
    match cu!(cuGetProcAddress_v2(
        base.as_ptr(),
        &mut address,
        version,
        flags,
        &mut status
    )) {
        Ok(()) => {
            assert_eq!(status, 0);
            Ok(address)
        }
        Err(error) => {
            assert!(address.is_null());
            Err((error, status))
        }
    }
}

/// Every exported function but those that end the test's own state.
fn every_function(mut prepare: impl FnMut()) {
    for symbol in SYMBOLS {
        let base = symbol.row.row().base;
        let per_thread = symbol.stream_api == driver::StreamApi::PerThread;
        let address = lookup(base, symbol.version, per_thread).expect("shown");
        prepare();
        call_with_zeros(address);
    }
}

on_a_node!(null_arguments_never_crash, [], || {
    every_function(|| ());
    every_function(|| {
        begin();
    });
    every_function(|| cu!(cuCtxSetCurrent(null_mut())).expect("unbind"));
    begin();
    cu!(cuCtxSynchronize()).expect("still working");
});

on_a_node!(everything_but_lookups_wants_initialisation, [], || {
    let mut version = 0;
    assert_eq!(cu!(cuDriverGetVersion(&mut version)), Ok(()));
    assert_eq!(version, 13050);
    let mut count = 0;
    assert_eq!(cu!(cuDeviceGetCount(&mut count)), Err(CudaError::NOT_INITIALIZED));
    let mut pointer = 0;
    assert_eq!(
        cu!(cuMemAlloc_v2(&mut pointer, 1)),
        Err(CudaError::NOT_INITIALIZED)
    );
    assert_eq!(cu!(cuInit(1)), Err(CudaError::INVALID_VALUE));
    assert_eq!(cu!(cuInit(0)), Ok(()));
    assert_eq!(cu!(cuInit(0)), Ok(()));
    assert_eq!(cu!(cuDeviceGetCount(&mut count)), Ok(()));
    assert_eq!(count, 1);
    assert_eq!(
        cu!(cuMemAlloc_v2(&mut pointer, 1)),
        Err(CudaError::INVALID_CONTEXT)
    );
});

on_a_node!(names_resolve_by_version_and_flags, [], || {
    let same = |base, version, per_thread, symbol: *const c_void| {
        assert_eq!(
            lookup(base, version, per_thread),
            Ok(symbol.cast_mut()),
            "{base} {version}"
        );
    };
    same(
        "cuMemAlloc",
        3020,
        false,
        simgpu::cuda::cuMemAlloc_v2 as *const c_void,
    );
    same(
        "cuMemAlloc",
        13050,
        false,
        simgpu::cuda::cuMemAlloc_v2 as *const c_void,
    );
    same(
        "cuMemAlloc",
        2000,
        false,
        simgpu::cuda::cuMemAlloc as *const c_void,
    );
    same(
        "cuLaunchKernel",
        13050,
        true,
        simgpu::cuda::cuLaunchKernel_ptsz as *const c_void,
    );
    same(
        "cuLaunchKernel",
        4000,
        true,
        simgpu::cuda::cuLaunchKernel as *const c_void,
    );
    same(
        "cuGetProcAddress",
        11030,
        false,
        simgpu::cuda::cuGetProcAddress as *const c_void,
    );
    let missing = |base, version| lookup(base, version, false).expect_err("missing");
    assert_eq!(missing("cuMemAllocAsync", 11010), (CudaError::NOT_FOUND, 2));
    assert_eq!(missing("cuSubgridCreate", 13050), (CudaError::NOT_FOUND, 1));
    let mut address = null_mut();
    let name = c"cuInit".as_ptr();
    let none = null_mut();
    assert_eq!(
        cu!(cuGetProcAddress_v2(name, &mut address, 13050, 4, none)),
        Err(CudaError::INVALID_VALUE)
    );
    assert_eq!(
        cu!(cuGetProcAddress_v2(null(), &mut address, 13050, 0, none)),
        Err(CudaError::INVALID_VALUE)
    );
    assert_eq!(
        cu!(cuGetProcAddress_v2(name, null_mut(), 13050, 0, none)),
        Err(CudaError::INVALID_VALUE)
    );
});

on_a_node!(export_tables_are_refused, [], || {
    for first in [0xd4, 0x6b, 0xa0, 0xda, 0x00] {
        let id = CUuuid { bytes: [first; 16] };
        let mut table = (&raw const id).cast::<c_void>();
        assert_eq!(
            cu!(cuGetExportTable(&mut table, &id)),
            Err(CudaError::INVALID_VALUE)
        );
        assert!(table.is_null());
    }
});

on_a_node!(codes_have_names_and_texts, [], || {
    let ask = |code| {
        let (mut name, mut words) = (null(), null());
        let found = cu!(cuGetErrorName(code, &mut name)).and(cu!(cuGetErrorString(code, &mut words)));
        // SAFETY: both are C strings that live as long as the driver.
        found.map(|()| unsafe { (CStr::from_ptr(name), CStr::from_ptr(words)) })
    };
    assert_eq!(ask(0), Ok((c"CUDA_SUCCESS", c"no error")));
    assert_eq!(ask(2), Ok((c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory")));
    assert_eq!(ask(600), Ok((c"CUDA_ERROR_NOT_READY", c"device not ready")));
    assert_eq!(ask(54321), Err(CudaError::INVALID_VALUE));
});

on_a_node!(
    devices_are_what_the_node_has,
    ["--devices", "h100:1,t4:1"],
    || {
        cu!(cuInit(0)).expect("init");
        let mut count = 0;
        cu!(cuDeviceGetCount(&mut count)).expect("count");
        assert_eq!(count, 2);
        let of = |device, attribute| {
            let mut value = -1;
            cu!(cuDeviceGetAttribute(&mut value, attribute, device)).expect("attribute");
            value
        };
        assert_eq!((of(0, 75), of(0, 76), of(0, 16)), (9, 0, 132));
        assert_eq!((of(1, 75), of(1, 76), of(1, 16)), (7, 5, 40));
        let mut value = 0;
        assert_eq!(
            cu!(cuDeviceGetAttribute(&mut value, 16, 2)),
            Err(CudaError::INVALID_DEVICE)
        );
        assert_eq!(
            cu!(cuDeviceGetAttribute(&mut value, 9999, 0)),
            Err(CudaError::INVALID_VALUE)
        );
        let mut device = -1;
        assert_eq!(cu!(cuDeviceGet(&mut device, -1)), Err(CudaError::INVALID_DEVICE));
        let mut bus = [0 as c_char; 32];
        cu!(cuDeviceGetPCIBusId(bus.as_mut_ptr(), 32, 1)).expect("bus id");
        cu!(cuDeviceGetByPCIBusId(&mut device, bus.as_ptr())).expect("the same device");
        assert_eq!(device, 1);
        let mut uuids = [CUuuid::default(); 2];
        for (i, uuid) in uuids.iter_mut().enumerate() {
            cu!(cuDeviceGetUuid_v2(uuid, i as i32)).expect("uuid");
        }
        assert_ne!(uuids[0], uuids[1]);
        let mut name = [1 as c_char; 4];
        cu!(cuDeviceGetName(name.as_mut_ptr(), 4, 0)).expect("name");
        assert_eq!(name[3], 0, "a cut name ends with zero");
    }
);

on_a_node!(a_forked_child_is_not_initialised_for_ever, [], || {
    begin();
    // SAFETY: the child calls functions of the driver, which take no lock that the fork could have caught
    // taken, and leaves by _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let answers: [CuResult; 4] = [
            cu!(cuInit(0)),
            cu!(cuCtxSynchronize()),
            cu!(cuMemAlloc_v2(&mut 0, 1)),
            cu!(cuDeviceGetCount(&mut 0)),
        ];
        let right = answers == [Err(CudaError::NOT_INITIALIZED); 4];
        // SAFETY: ends the child without running anybody's handlers.
        unsafe { libc::_exit(if right { 0 } else { 1 }) };
    }
    let mut status = -1;
    // SAFETY: our own child.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0, "the child was answered otherwise");
    cu!(cuCtxSynchronize()).expect("the parent goes on");
});

on_a_node!(
    a_child_forked_before_initialisation_is_a_process_like_any_other,
    [],
    || {
        // SAFETY: this process has made no thread but the watchdog's, which holds no lock.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let right = cu!(cuInit(0)).is_ok() && cu!(cuDeviceGetCount(&mut 0)).is_ok();
            // SAFETY: as above.
            unsafe { libc::_exit(if right { 0 } else { 1 }) };
        }
        let mut status = -1;
        // SAFETY: our own child.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!(status, 0);
        cu!(cuInit(0)).expect("the parent too");
    }
);

on_a_node!(
    visible_devices_are_permuted_named_or_absent,
    ["--devices", "h100:4"],
    || {
        const NAME: &str = "entry::visible_devices_are_permuted_named_or_absent";
        if part() != "first" {
            if let Err(error) = cu!(cuInit(0)) {
                println!("= error {}", error.code());
                return;
            }
            let mut count = 0;
            cu!(cuDeviceGetCount(&mut count)).expect("count");
            for device in 0..count {
                let mut uuid = CUuuid::default();
                cu!(cuDeviceGetUuid_v2(&mut uuid, device)).expect("uuid");
                println!("= {:02x?}", uuid.bytes);
            }
            return;
        }
        let seen = |visible: Option<&str>| -> Vec<String> {
            let mut child = crate::harness::another(NAME, "look");
            match visible {
                Some(list) => child.env("CUDA_VISIBLE_DEVICES", list),
                None => child.env_remove("CUDA_VISIBLE_DEVICES"),
            };
            let printed = crate::harness::finished(child.spawn().expect("starts"));
            printed
                .lines()
                .filter_map(|line| Some(line.split_once("= ")?.1.to_owned()))
                .collect()
        };
        let all = seen(None);
        assert_eq!(all.len(), 4);
        assert_eq!(seen(Some("3,1")), [all[3].clone(), all[1].clone()]);
        assert_eq!(seen(Some("")), ["error 100"]);
        assert_eq!(seen(Some("-1")), ["error 100"]);
        assert_eq!(seen(Some("0,9,1")), [all[0].clone()]);
    }
);

on_a_node!(
    configured_faults_hit_the_named_call,
    ["--faults", faults()],
    || {
        begin();
        let mut pointer = 0;
        assert_eq!(cu!(cuMemAlloc_v2(&mut pointer, 1)), Ok(()));
        assert_eq!(cu!(cuMemAlloc_v2(&mut pointer, 1)), Err(CudaError::OUT_OF_MEMORY));
        assert_eq!(cu!(cuMemAlloc_v2(&mut pointer, 1)), Ok(()));
        assert_eq!(cu!(cuCtxSynchronize()), Err(CudaError::ILLEGAL_ADDRESS));
        assert_eq!(
            cu!(cuMemAlloc_v2(&mut pointer, 1)),
            Err(CudaError::ILLEGAL_ADDRESS),
            "sticky"
        );
    }
);

/// A file of faults for the test above, written once and left to the test's own directory.
fn faults() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cuda/faults.toml")
}
