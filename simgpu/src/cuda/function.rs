//! Kernels and functions: what can be launched.
//!
//! A `CUfunction` belongs to a module, and so to a context; a `CUkernel` belongs to a library. Both are
//! the same kind of object here, since a program may launch either.
//! Next file of the walk: `launch.rs`.

use super::Sim;
use super::arena::{Arena, Plain};
use super::context::Context;
use super::current::current;
use super::edge::{needed, put};
use super::image::KernelInfo;
use super::library;
use super::module;
use super::node::{Device, Node, node};
use crate::client;
use driver::prelude::*;
use std::collections::HashMap;
use std::ffi::CString;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

const MAX_THREADS: u32 = 0;
const SHARED_BYTES: u32 = 1;
const REGISTERS: u32 = 4;
const PTX_VERSION: u32 = 5;
const BINARY_VERSION: u32 = 6;
const DYNAMIC_SHARED: u32 = 8;
const CARVEOUT: u32 = 9;
const LAST: u32 = 17;

/// A kernel as the whole process knows it; equal ones are one. Never freed.
pub struct Kernel {
    pub info: KernelInfo,
    pub name: CString,
    /// How long a launch takes.
    pub timing: client::Kernel,
}

static KERNELS: LazyLock<Mutex<HashMap<KernelInfo, &'static Kernel>>> = LazyLock::new(Default::default);

fn intern(node: &Node, info: KernelInfo) -> &'static Kernel {
    let mut kernels = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
    kernels.entry(info.clone()).or_insert_with(|| {
        let timing = node.client.kernel(&info.name);
        let name = CString::new(info.name.as_str()).unwrap_or_default();
        Box::leak(Box::new(Kernel { info, name, timing }))
    })
}

/// Atomics only: see `arena.rs`.
pub struct Function {
    kernel: AtomicPtr<Kernel>,
    /// Null for a kernel of a library.
    context: AtomicPtr<Context>,
    /// Handle of the module or library it is of.
    pub home: AtomicU64,
    dynamic_shared: AtomicI32,
    carveout: AtomicI32,
    /// What the old launch functions are told beforehand: threads of a block, dynamic shared bytes.
    pub threads: AtomicU32,
    pub shared: AtomicU32,
}

// SAFETY: atomics, for which zero is a value.
unsafe impl Plain for Function {}

static FUNCTIONS: Arena<Function> = Arena::new(1 << 20);

/// Most dynamic shared memory without asking for more.
const SHARED_LIMIT: i32 = 48 << 10;

/// The function or kernel behind a handle.
#[inline(always)]
pub fn get(handle: CUfunction) -> Result<&'static Function, CudaError> {
    FUNCTIONS.get(handle).ok_or(CudaError::INVALID_HANDLE)
}

pub fn create(
    node: &Node,
    info: KernelInfo,
    context: Option<&'static Context>,
    home: u64,
) -> Result<&'static Function, CudaError> {
    let kernel = intern(node, info);
    FUNCTIONS.claim(|function| {
        let context = context.map_or(null_mut(), |context| (&raw const *context).cast_mut());
        function
            .kernel
            .store((&raw const *kernel).cast_mut(), Ordering::Relaxed);
        function.context.store(context, Ordering::Relaxed);
        function.home.store(home, Ordering::Relaxed);
        function.dynamic_shared.store(SHARED_LIMIT, Ordering::Relaxed);
        function.carveout.store(-1, Ordering::Relaxed);
        function.threads.store(1, Ordering::Relaxed);
        function.shared.store(0, Ordering::Relaxed);
    })
}

/// Ends a function with its module.
pub fn end(function: &'static Function) {
    let handle = function.handle();
    if FUNCTIONS.end(handle) {
        FUNCTIONS.recycle(handle);
    }
}

impl Function {
    pub fn handle(&'static self) -> CUfunction {
        FUNCTIONS.handle(self)
    }

    #[inline(always)]
    pub fn kernel(&self) -> &'static Kernel {
        // SAFETY: set when the slot was claimed, to a Kernel, which is never freed.
        unsafe { &*self.kernel.load(Ordering::Relaxed) }
    }

    #[inline(always)]
    pub fn context(&self) -> Option<&'static Context> {
        // SAFETY: null or a Context, which is never freed.
        unsafe { self.context.load(Ordering::Relaxed).as_ref() }
    }

    /// Most threads a block of it may have.
    #[inline(always)]
    pub fn max_threads(&self) -> u32 {
        match self.kernel().info.max_threads {
            0 => 1024,
            most => most,
        }
    }

    /// Most dynamic shared bytes a block may ask for.
    #[inline(always)]
    pub fn max_shared(&self) -> u32 {
        self.dynamic_shared.load(Ordering::Relaxed) as u32
    }

    fn attribute(&self, id: u32, device: &Device) -> Result<i32, CudaError> {
        let info = &self.kernel().info;
        let own = (device.facts.compute_major * 10 + device.facts.compute_minor) as i32;
        let or_own = |value: u32| if value == 0 { own } else { value as i32 };
        Ok(match id {
            MAX_THREADS => self.max_threads() as i32,
            SHARED_BYTES => info.shared_bytes as i32,
            REGISTERS => {
                if info.registers == 0 {
                    32
                } else {
                    info.registers as i32
                }
            }
            PTX_VERSION => or_own(info.architecture),
            BINARY_VERSION => own,
            DYNAMIC_SHARED => {
                self.dynamic_shared
                    .load(Ordering::Relaxed)
                    .min(SHARED_LIMIT.max(self.max_shared() as i32))
                    - if self.max_shared() as i32 == SHARED_LIMIT {
                        info.shared_bytes as i32
                    } else {
                        0
                    }
            }
            CARVEOUT => self.carveout.load(Ordering::Relaxed),
            _ if id <= LAST => 0,
            _ => return Err(CudaError::INVALID_VALUE),
        })
    }

    fn set_attribute(&self, id: u32, value: i32, device: &Device) -> CuResult {
        let most = device.facts.shared_per_block_optin as i64 - self.kernel().info.shared_bytes as i64;
        match id {
            DYNAMIC_SHARED if value >= 0 && i64::from(value) <= most => {
                self.dynamic_shared.store(value, Ordering::Relaxed);
                Ok(())
            }
            CARVEOUT if (-1..=100).contains(&value) => {
                self.carveout.store(value, Ordering::Relaxed);
                Ok(())
            }
            // Sizes and policies of clusters.
            10..=15 => Ok(()),
            _ => Err(CudaError::INVALID_VALUE),
        }
    }

    pub fn parameter(&self, index: usize) -> Result<(u32, u32), CudaError> {
        let parameters = self.kernel().info.parameters.as_ref();
        parameters
            .and_then(|all| all.get(index))
            .copied()
            .ok_or(CudaError::INVALID_VALUE)
    }
}

fn parameter_info(handle: CUfunction, index: usize, offset: *mut usize, size: *mut usize) -> CuResult {
    node()?;
    needed(offset)?;
    let (at, bytes) = get(handle)?.parameter(index)?;
    put(offset, at as usize)?;
    super::edge::put_optional(size, bytes as usize);
    Ok(())
}

fn parameter_count(handle: CUfunction, count: *mut usize) -> CuResult {
    node()?;
    needed(count)?;
    let known = get(handle)?.kernel().info.parameters.as_ref();
    put(count, known.ok_or(CudaError::NOT_FOUND)?.len())
}

fn name(to: *mut *const c_char, handle: CUfunction) -> CuResult {
    node()?;
    needed(to)?;
    put(to, get(handle)?.kernel().name.as_ptr())
}

impl Sim {
    pub(super) fn cuFuncGetAttribute(
        _: StreamApi,
        pi: *mut c_int,
        attrib: CUfunction_attribute,
        hfunc: CUfunction,
    ) -> CuResult {
        let context = current()?.1;
        needed(pi)?;
        put(pi, get(hfunc)?.attribute(attrib, context.device)?)
    }

    pub(super) fn cuFuncSetAttribute(
        _: StreamApi,
        hfunc: CUfunction,
        attrib: CUfunction_attribute,
        value: c_int,
    ) -> CuResult {
        let context = current()?.1;
        get(hfunc)?.set_attribute(attrib, value, context.device)
    }

    pub(super) fn cuKernelGetAttribute(
        _: StreamApi,
        pi: *mut c_int,
        attrib: CUfunction_attribute,
        kernel: CUkernel,
        dev: CUdevice,
    ) -> CuResult {
        let device = node()?.device(dev)?;
        needed(pi)?;
        put(pi, get(kernel)?.attribute(attrib, device)?)
    }

    pub(super) fn cuKernelSetAttribute(
        _: StreamApi,
        attrib: CUfunction_attribute,
        value: c_int,
        kernel: CUkernel,
        dev: CUdevice,
    ) -> CuResult {
        let device = node()?.device(dev)?;
        get(kernel)?.set_attribute(attrib, value, device)
    }

    pub(super) fn cuFuncSetCacheConfig(_: StreamApi, hfunc: CUfunction, config: CUfunc_cache) -> CuResult {
        current()?;
        get(hfunc)?;
        if config > 3 {
            Err(CudaError::INVALID_VALUE)
        } else {
            Ok(())
        }
    }

    pub(super) fn cuKernelSetCacheConfig(
        _: StreamApi,
        kernel: CUkernel,
        config: CUfunc_cache,
        dev: CUdevice,
    ) -> CuResult {
        node()?.device(dev)?;
        get(kernel)?;
        if config > 3 {
            Err(CudaError::INVALID_VALUE)
        } else {
            Ok(())
        }
    }

    pub(super) fn cuFuncSetSharedMemConfig(
        _: StreamApi,
        hfunc: CUfunction,
        config: CUsharedconfig,
    ) -> CuResult {
        current()?;
        get(hfunc)?;
        if config > 2 {
            Err(CudaError::INVALID_VALUE)
        } else {
            Ok(())
        }
    }

    pub(super) fn cuFuncGetName(_: StreamApi, to: *mut *const c_char, hfunc: CUfunction) -> CuResult {
        name(to, hfunc)
    }

    pub(super) fn cuKernelGetName(_: StreamApi, to: *mut *const c_char, kernel: CUkernel) -> CuResult {
        name(to, kernel)
    }

    pub(super) fn cuFuncGetModule(_: StreamApi, hmod: *mut CUmodule, hfunc: CUfunction) -> CuResult {
        node()?;
        needed(hmod)?;
        let function = get(hfunc)?;
        function.context().ok_or(CudaError::INVALID_HANDLE)?;
        put(hmod, function.home.load(Ordering::Relaxed) as CUmodule)
    }

    pub(super) fn cuKernelGetLibrary(_: StreamApi, lib: *mut CUlibrary, kernel: CUkernel) -> CuResult {
        node()?;
        needed(lib)?;
        let function = get(kernel)?;
        if function.context().is_some() {
            return Err(CudaError::INVALID_HANDLE);
        }
        put(lib, function.home.load(Ordering::Relaxed) as CUlibrary)
    }

    pub(super) fn cuKernelGetFunction(_: StreamApi, to: *mut CUfunction, kernel: CUkernel) -> CuResult {
        let (node, context) = current()?;
        needed(to)?;
        let kernel = get(kernel)?;
        if kernel.context().is_some() {
            return Err(CudaError::INVALID_HANDLE);
        }
        let library = library::get(kernel.home.load(Ordering::Relaxed) as CUlibrary)?;
        let module = library.module(context)?;
        put(
            to,
            module::function(node, &module, &kernel.kernel().info.name)?.handle(),
        )
    }

    pub(super) fn cuFuncGetParamInfo(
        _: StreamApi,
        func: CUfunction,
        index: usize,
        offset: *mut usize,
        size: *mut usize,
    ) -> CuResult {
        parameter_info(func, index, offset, size)
    }

    pub(super) fn cuKernelGetParamInfo(
        _: StreamApi,
        kernel: CUkernel,
        index: usize,
        offset: *mut usize,
        size: *mut usize,
    ) -> CuResult {
        parameter_info(kernel, index, offset, size)
    }

    pub(super) fn cuFuncGetParamCount(_: StreamApi, func: CUfunction, count: *mut usize) -> CuResult {
        parameter_count(func, count)
    }

    pub(super) fn cuKernelGetParamCount(_: StreamApi, kernel: CUkernel, count: *mut usize) -> CuResult {
        parameter_count(kernel, count)
    }

    pub(super) fn cuFuncIsLoaded(
        _: StreamApi,
        state: *mut CUfunctionLoadingState,
        function: CUfunction,
    ) -> CuResult {
        node()?;
        needed(state)?;
        get(function)?;
        put(state, 1)
    }

    pub(super) fn cuFuncLoad(_: StreamApi, function: CUfunction) -> CuResult {
        node()?;
        get(function).map(|_| ())
    }
}
