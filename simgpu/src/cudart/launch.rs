//! Launches. `<<<…>>>` pushes its configuration, and the stub that nvcc made of the kernel pops it.

use super::code;
use super::context;
use super::device::put;
use super::kernel;
use super::lookup::DRIVER;
use super::structs::{Dim3, LaunchConfig, shared};
use driver::prelude::*;
use std::cell::RefCell;

/// What a `<<<…>>>` said.
#[derive(Clone, Copy)]
struct Configuration {
    grid: Dim3,
    block: Dim3,
    shared_bytes: usize,
    stream: CUstream,
}

/// Configurations pushed and not popped: one, unless a kernel's argument launches a kernel.
const DEEPEST: usize = 16;

struct Pushed {
    count: usize,
    stack: [Option<Configuration>; DEEPEST],
}

thread_local! {
    static PUSHED: RefCell<Pushed> = const { RefCell::new(Pushed { count: 0, stack: [None; DEEPEST] }) };
}

pub unsafe fn kernel_launch(
    api: StreamApi,
    host: *const c_void,
    grid: Dim3,
    block: Dim3,
    arguments: *mut *mut c_void,
    shared_bytes: usize,
    stream: CUstream,
) -> CuResult {
    context::current()?;
    let (function, shared) = (kernel::function(host)?, shared(shared_bytes)?);
    // SAFETY: a function of the driver's; the caller vouches for the arguments.
    unsafe {
        DRIVER.cuLaunchKernel(
            api,
            function,
            grid.x,
            grid.y,
            grid.z,
            block.x,
            block.y,
            block.z,
            shared,
            stream,
            arguments,
            std::ptr::null_mut(),
        )
    }
}

pub unsafe fn cooperative(
    api: StreamApi,
    host: *const c_void,
    grid: Dim3,
    block: Dim3,
    arguments: *mut *mut c_void,
    shared_bytes: usize,
    stream: CUstream,
) -> CuResult {
    context::current()?;
    let (function, shared) = (kernel::function(host)?, shared(shared_bytes)?);
    // SAFETY: a function of the driver's; the caller vouches for the arguments.
    unsafe {
        DRIVER.cuLaunchCooperativeKernel(
            api, function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream, arguments,
        )
    }
}

pub unsafe fn extended(
    api: StreamApi,
    config: *const LaunchConfig,
    host: *const c_void,
    arguments: *mut *mut c_void,
) -> CuResult {
    context::current()?;
    // SAFETY: null or the caller's struct.
    let config = unsafe { config.as_ref() }
        .ok_or(CudaError::INVALID_VALUE)?
        .for_driver()?;
    let function = kernel::function(host)?;
    // SAFETY: a function of the driver's and a local; the caller vouches for the arguments.
    unsafe { DRIVER.cuLaunchKernelEx(api, &config, function, arguments, std::ptr::null_mut()) }
}

/// `cudaGetKernel`, `__cudaGetKernel`.
pub unsafe fn kernel_of(to: *mut CUkernel, host: *const c_void) -> CuResult {
    context::current()?;
    // SAFETY: the caller's pointer.
    unsafe { put(to, kernel::kernel(host)?) }
}

pub unsafe fn function_of(to: *mut CUfunction, host: *const c_void) -> CuResult {
    context::current()?;
    // SAFETY: the caller's pointer.
    unsafe { put(to, kernel::function(host)?) }
}

/// Anything but 0 makes the program skip the launch.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaPushCallConfiguration(
    grid: Dim3,
    block: Dim3,
    shared_bytes: usize,
    stream: CUstream,
) -> c_uint {
    PUSHED.with_borrow_mut(|pushed| match pushed.stack.get_mut(pushed.count) {
        Some(place) => {
            *place = Some(Configuration {
                grid,
                block,
                shared_bytes,
                stream,
            });
            pushed.count += 1;
            0
        }
        None => 1,
    })
}

pub unsafe fn popped(
    grid: *mut Dim3,
    block: *mut Dim3,
    shared_bytes: *mut usize,
    stream: *mut CUstream,
) -> CuResult {
    let popped = PUSHED.with_borrow_mut(|pushed| {
        pushed.count = pushed.count.checked_sub(1)?;
        pushed.stack[pushed.count].take()
    });
    let last = popped.ok_or(code::MISSING_CONFIGURATION)?;
    // SAFETY: the caller's pointers.
    unsafe {
        put(grid, last.grid)?;
        put(block, last.block)?;
        put(shared_bytes, last.shared_bytes)?;
        put(stream, last.stream)
    }
}
