//! Code: what is in an image, and launching it.

use crate::harness::begin;
use crate::harness::{cu, on_a_node};
use driver::CudaError;
use driver::abi::*;
use std::ffi::{CStr, CString};
use std::ptr::{null, null_mut};

pub fn load(text: &str) -> Result<CUmodule, CudaError> {
    let text = CString::new(text).expect("text");
    let mut module = null_mut();
    cu!(cuModuleLoadData(&mut module, text.as_ptr().cast())).map(|()| module)
}

pub fn function(module: CUmodule, name: &str) -> Result<CUfunction, CudaError> {
    let name = CString::new(name).expect("text");
    let mut function = null_mut();
    cu!(cuModuleGetFunction(&mut function, module, name.as_ptr())).map(|()| function)
}

/// A kernel of this name without parameters.
pub fn kernel(name: &str) -> CUfunction {
    let module = load(&format!(
        ".version 8.0\n.target sm_75\n.visible .entry {name}() {{ ret; }}"
    ));
    function(module.expect("PTX"), name).expect("kernel")
}

const TWO: &str = ".version 8.6 .target sm_75
    .visible .global .align 4 .b8 state[12];
    .visible .entry plain(.param .u64 a, .param .u32 b) { ret; }
    .visible .entry wide() .maxntid 256, 1, 1 { ret; }";

on_a_node!(names_that_are_not_in_the_image_are_not_found, [], || {
    begin();
    let module = load(TWO).expect("PTX");
    let plain = function(module, "plain").expect("there");
    assert_eq!(function(module, "plain"), Ok(plain), "always the same");
    assert_eq!(function(module, "other"), Err(CudaError::NOT_FOUND));
    let mut name = null();
    cu!(cuFuncGetName(&mut name, plain)).expect("name");
    // SAFETY: a C string that lives with the driver.
    assert_eq!(unsafe { CStr::from_ptr(name) }, c"plain");
    let (mut offset, mut size) = (0, 0);
    cu!(cuFuncGetParamInfo(plain, 1, &mut offset, &mut size)).expect("parameter");
    assert_eq!((offset, size), (8, 4));
    assert_eq!(
        cu!(cuFuncGetParamInfo(plain, 2, &mut offset, &mut size)),
        Err(CudaError::INVALID_VALUE)
    );
    let (mut address, mut bytes) = (0, 0);
    cu!(cuModuleGetGlobal_v2(
        &mut address,
        &mut bytes,
        module,
        c"state".as_ptr()
    ))
    .expect("variable");
    assert_eq!(bytes, 12);
    cu!(cuMemsetD8_v2(address, 1, 12)).expect("usable");
    let missing = cu!(cuModuleGetGlobal_v2(
        &mut address,
        &mut bytes,
        module,
        c"gone".as_ptr()
    ));
    assert_eq!(missing, Err(CudaError::NOT_FOUND));
    cu!(cuModuleUnload(module)).expect("unload");
    assert_eq!(cu!(cuModuleUnload(module)), Err(CudaError::INVALID_HANDLE));
    assert_eq!(
        cu!(cuFuncGetName(&mut name, plain)),
        Err(CudaError::INVALID_HANDLE)
    );
    assert_eq!(cu!(cuMemFree_v2(address)), Err(CudaError::INVALID_VALUE));
});

on_a_node!(garbage_is_no_image, [], || {
    begin();
    assert_eq!(load("hello"), Err(CudaError::INVALID_IMAGE));
    assert_eq!(load(""), Err(CudaError::INVALID_IMAGE));
    let mut module = null_mut();
    assert_eq!(
        cu!(cuModuleLoadData(&mut module, null())),
        Err(CudaError::INVALID_VALUE)
    );
    let missing = cu!(cuModuleLoad(&mut module, c"/nowhere/at.all".as_ptr()));
    assert_eq!(missing, Err(CudaError::FILE_NOT_FOUND));
    let mut elf = [0u8; 128];
    elf[..4].copy_from_slice(b"\x7fELF");
    assert_eq!(
        cu!(cuModuleLoadData(&mut module, elf.as_ptr().cast())),
        Err(CudaError::INVALID_IMAGE)
    );
});

on_a_node!(libraries_give_kernels_to_every_context, [], || {
    begin();
    let text = CString::new(TWO).expect("text");
    let mut library = null_mut();
    let none = null_mut::<c_void>();
    let code = text.as_ptr().cast();
    cu!(cuLibraryLoadData(
        &mut library,
        code,
        none.cast(),
        none.cast(),
        0,
        none.cast(),
        none.cast(),
        0
    ))
    .expect("library");
    let mut kernel = null_mut();
    cu!(cuLibraryGetKernel(&mut kernel, library, c"wide".as_ptr())).expect("kernel");
    let mut count = 0;
    cu!(cuLibraryGetKernelCount(&mut count, library)).expect("count");
    assert_eq!(count, 2);
    let (mut here, mut there) = (null_mut(), null_mut());
    cu!(cuKernelGetFunction(&mut here, kernel)).expect("function");
    let mut second = null_mut();
    cu!(cuCtxCreate_v2(&mut second, 0, 0)).expect("create");
    cu!(cuKernelGetFunction(&mut there, kernel)).expect("function");
    assert_ne!(here, there);
    let run = |f| {
        cu!(cuLaunchKernel(
            f,
            1,
            1,
            1,
            32,
            1,
            1,
            0,
            null_mut(),
            null_mut(),
            null_mut()
        ))
    };
    assert_eq!(run(there), Ok(()));
    assert_eq!(run(here), Err(CudaError::INVALID_HANDLE), "of the other context");
    assert_eq!(run(kernel), Ok(()), "a kernel runs where it is launched");
    let mut most = 0;
    cu!(cuKernelGetAttribute(&mut most, 0, kernel, 0)).expect("attribute");
    assert_eq!(most, 256);
    cu!(cuLibraryUnload(library)).expect("unload");
    assert_eq!(run(kernel), Err(CudaError::INVALID_HANDLE));
});

on_a_node!(impossible_launches_are_refused, [], || {
    begin();
    let module = load(TWO).expect("PTX");
    let (plain, wide) = (
        function(module, "plain").expect("there"),
        function(module, "wide").expect("there"),
    );
    let mut words = [null_mut::<c_void>(); 2];
    let parameters = words.as_mut_ptr();
    let run = |f, grid, block, shared, parameters| {
        cu!(cuLaunchKernel(
            f,
            grid,
            1,
            1,
            block,
            1,
            1,
            shared,
            null_mut(),
            parameters,
            null_mut()
        ))
    };
    let invalid = Err(CudaError::INVALID_VALUE);
    assert_eq!(run(plain, 1, 1024, 0, parameters), Ok(()));
    assert_eq!(
        run(plain, 1, 1024, 0, null_mut()),
        invalid,
        "parameters are missing"
    );
    assert_eq!(run(wide, 0, 32, 0, null_mut()), invalid);
    assert_eq!(run(wide, 1, 0, 0, null_mut()), invalid);
    assert_eq!(run(wide, 1, 1025, 0, null_mut()), invalid);
    assert_eq!(
        run(wide, 1, 512, 0, null_mut()),
        Err(CudaError::LAUNCH_OUT_OF_RESOURCES)
    );
    assert_eq!(
        run(wide, 1, 256, 100 << 10, null_mut()),
        invalid,
        "more shared memory than asked for"
    );
    cu!(cuFuncSetAttribute(wide, 8, 100 << 10)).expect("more, please");
    assert_eq!(run(wide, 1, 256, 100 << 10, null_mut()), Ok(()));
    assert_eq!(
        run(null_mut(), 1, 1, 0, null_mut()),
        Err(CudaError::INVALID_HANDLE)
    );
    assert_eq!(
        run(module, 1, 1, 0, null_mut()),
        Err(CudaError::INVALID_HANDLE),
        "not a function"
    );
    let together = |grid| {
        cu!(cuLaunchCooperativeKernel(
            wide,
            grid,
            1,
            1,
            256,
            1,
            1,
            0,
            null_mut(),
            null_mut()
        ))
    };
    let mut blocks = 0;
    cu!(cuOccupancyMaxActiveBlocksPerMultiprocessor(
        &mut blocks,
        wide,
        256,
        0
    ))
    .expect("occupancy");
    assert_eq!(blocks, 8);
    assert_eq!(together(8 * 132), Ok(()));
    assert_eq!(
        together(8 * 132 + 1),
        Err(CudaError::COOPERATIVE_LAUNCH_TOO_LARGE)
    );
});
