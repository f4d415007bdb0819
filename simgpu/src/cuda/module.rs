//! Modules: an image in a context, with its functions and variables.

use super::Sim;
use super::allocate::device_block;
use super::block;
use super::context::Context;
use super::current::current;
use super::edge::{needed, put, put_optional, text};
use super::function::{self, Function};
use super::image::{self, Image};
use super::node::{Device, Node, node};
use driver::prelude::*;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};

/// Loading happens at first use.
const LAZY: CUmoduleLoadingMode = 2;

pub struct Module {
    pub context: &'static Context,
    pub image: Arc<Image>,
    functions: Mutex<HashMap<String, &'static Function>>,
    /// Address and size of the variables looked up so far.
    variables: Mutex<HashMap<String, (u64, u64)>>,
}

static MODULES: LazyLock<RwLock<HashMap<usize, Arc<Module>>>> = LazyLock::new(Default::default);

pub fn get(handle: CUmodule) -> Result<Arc<Module>, CudaError> {
    let modules = MODULES.read().unwrap_or_else(PoisonError::into_inner);
    modules
        .get(&(handle as usize))
        .cloned()
        .ok_or(CudaError::INVALID_HANDLE)
}

pub fn create(context: &'static Context, image: Arc<Image>) -> Arc<Module> {
    let (functions, variables) = Default::default();
    let module = Arc::new(Module {
        context,
        image,
        functions,
        variables,
    });
    let mut modules = MODULES.write().unwrap_or_else(PoisonError::into_inner);
    modules.insert(module.handle() as usize, module.clone());
    module
}

impl Module {
    pub fn handle(&self) -> CUmodule {
        (&raw const *self).cast_mut().cast()
    }

    /// Ends the module with its functions and variables.
    pub fn unload(&self) {
        MODULES
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&(self.handle() as usize));
        for (_, function) in self
            .functions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain()
        {
            function::end(function);
        }
        for (_, (address, _)) in self
            .variables
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain()
        {
            if let Ok(block) = block::remove(address, |_| true) {
                block::release(&block);
            }
        }
    }

    /// Address and size of a variable: its memory is taken when it is first asked for.
    pub fn variable(&self, name: &str, managed: bool) -> Result<(u64, u64), CudaError> {
        let mut variables = self.variables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&known) = variables.get(name) {
            return Ok(known);
        }
        let variable = self.image.variables.iter().find(|variable| variable.name == name);
        let variable = variable.filter(|v| v.bytes != 0 && (!managed || v.managed));
        let variable = variable.ok_or(CudaError::NOT_FOUND)?;
        let block = device_block(self.context, variable.bytes)?;
        let content = &variable.content;
        // SAFETY: a fresh block of at least that size.
        unsafe { std::ptr::copy_nonoverlapping(content.as_ptr(), block.base as *mut u8, content.len()) };
        let place = (block.base, variable.bytes);
        variables.insert(name.to_owned(), place);
        Ok(place)
    }
}

/// The module's function of this name, always the same one.
pub fn function(node: &Node, module: &Arc<Module>, name: &str) -> Result<&'static Function, CudaError> {
    let mut functions = module.functions.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&known) = functions.get(name) {
        return Ok(known);
    }
    let info = module.image.kernel(name).ok_or(CudaError::NOT_FOUND)?;
    let made = function::create(node, info, Some(module.context), module.handle() as u64)?;
    functions.insert(name.to_owned(), made);
    Ok(made)
}

/// The modules of a context go with it.
pub fn drop_all_of(context: &'static Context) {
    super::library::forget(context);
    let modules = MODULES.read().unwrap_or_else(PoisonError::into_inner);
    let own = modules
        .values()
        .filter(|module| std::ptr::eq(module.context, context));
    let own: Vec<Arc<Module>> = own.cloned().collect();
    drop(modules);
    for module in own {
        module.unload();
    }
}

/// 90 for compute capability 9.0.
pub fn architecture(device: &Device) -> u32 {
    device.facts.compute_major * 10 + device.facts.compute_minor
}

/// An image in a file.
pub fn read(name: *const c_char, architecture: u32) -> Result<Image, CudaError> {
    let path = OsStr::from_bytes(text(name)?.as_bytes());
    let mut content = std::fs::read(path).map_err(|_| CudaError::FILE_NOT_FOUND)?;
    // PTX ends like a string; binaries know their length, and padding keeps a cut one harmless.
    content.resize(content.len() + 64, 0);
    image::load(content.as_ptr().cast(), architecture)
}

fn load(module: *mut CUmodule, image: *const c_void) -> CuResult {
    let context = current()?.1;
    needed(module)?;
    let image = image::load(image, architecture(context.device))?;
    put(module, create(context, Arc::new(image)).handle())
}

impl Sim {
    pub(super) fn cuModuleLoad(_: StreamApi, module: *mut CUmodule, fname: *const c_char) -> CuResult {
        let context = current()?.1;
        needed(module)?;
        let image = read(fname, architecture(context.device))?;
        put(module, create(context, Arc::new(image)).handle())
    }

    pub(super) fn cuModuleLoadData(_: StreamApi, module: *mut CUmodule, image: *const c_void) -> CuResult {
        load(module, image)
    }

    pub(super) fn cuModuleLoadDataEx(
        _: StreamApi,
        module: *mut CUmodule,
        image: *const c_void,
        count: c_uint,
        options: *mut CUjit_option,
        values: *mut *mut c_void,
    ) -> CuResult {
        if count != 0 {
            needed(options)?;
            needed(values)?;
        }
        load(module, image)
    }

    pub(super) fn cuModuleLoadFatBinary(
        _: StreamApi,
        module: *mut CUmodule,
        image: *const c_void,
    ) -> CuResult {
        load(module, image)
    }

    pub(super) fn cuModuleUnload(_: StreamApi, hmod: CUmodule) -> CuResult {
        current()?;
        get(hmod)?.unload();
        Ok(())
    }

    pub(super) fn cuModuleGetLoadingMode(_: StreamApi, mode: *mut CUmoduleLoadingMode) -> CuResult {
        put(mode, LAZY)
    }

    pub(super) fn cuModuleGetFunction(
        _: StreamApi,
        hfunc: *mut CUfunction,
        hmod: CUmodule,
        name: *const c_char,
    ) -> CuResult {
        let node = current()?.0;
        needed(hfunc)?;
        let name = text(name)?;
        put(hfunc, function(node, &get(hmod)?, name)?.handle())
    }

    pub(super) fn cuModuleGetFunctionCount(_: StreamApi, count: *mut c_uint, module: CUmodule) -> CuResult {
        node()?;
        needed(count)?;
        put(
            count,
            get(module)?.image.kernels.as_ref().map_or(0, Vec::len) as c_uint,
        )
    }

    pub(super) fn cuModuleEnumerateFunctions(
        _: StreamApi,
        functions: *mut CUfunction,
        count: c_uint,
        module: CUmodule,
    ) -> CuResult {
        let node = node()?;
        needed(functions)?;
        let module = get(module)?;
        let kernels = module.image.kernels.iter().flatten().take(count as usize);
        for (i, kernel) in kernels.enumerate() {
            put(
                functions.wrapping_add(i),
                function(node, &module, &kernel.name)?.handle(),
            )?;
        }
        Ok(())
    }

    pub(super) fn cuModuleGetGlobal_v2(
        _: StreamApi,
        dptr: *mut CUdeviceptr,
        bytes: *mut usize,
        hmod: CUmodule,
        name: *const c_char,
    ) -> CuResult {
        current()?;
        let (address, size) = get(hmod)?.variable(text(name)?, false)?;
        put_optional(dptr, address);
        put_optional(bytes, size as usize);
        Ok(())
    }
}
