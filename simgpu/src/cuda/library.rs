//! Libraries: images without a context, and their modules in each context that uses them.

use super::Sim;
use super::context::Context;
use super::current::current;
use super::edge::{needed, put, put_optional, text};
use super::function::{self, Function};
use super::image::{self, Image};
use super::module::{self, Module};
use super::node::{Node, node};
use driver::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};

pub struct Library {
    image: Arc<Image>,
    kernels: Mutex<HashMap<String, &'static Function>>,
    /// By the context's id.
    modules: Mutex<HashMap<u64, Arc<Module>>>,
}

static LIBRARIES: LazyLock<RwLock<HashMap<usize, Arc<Library>>>> = LazyLock::new(Default::default);

pub fn get(handle: CUlibrary) -> Result<Arc<Library>, CudaError> {
    let libraries = LIBRARIES.read().unwrap_or_else(PoisonError::into_inner);
    libraries
        .get(&(handle as usize))
        .cloned()
        .ok_or(CudaError::INVALID_HANDLE)
}

/// The context is ending: no library has a module in it any more.
pub fn forget(context: &'static Context) {
    for library in LIBRARIES.read().unwrap_or_else(PoisonError::into_inner).values() {
        library
            .modules
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&context.id());
    }
}

impl Library {
    fn handle(&self) -> CUlibrary {
        (&raw const *self).cast_mut().cast()
    }

    /// The library in a context, loaded there at first use.
    pub fn module(&self, context: &'static Context) -> Result<Arc<Module>, CudaError> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || module::create(context, self.image.clone());
        Ok(modules.entry(context.id()).or_insert_with(made).clone())
    }

    fn kernel(&self, node: &Node, name: &str) -> Result<&'static Function, CudaError> {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&known) = kernels.get(name) {
            return Ok(known);
        }
        let info = self.image.kernel(name).ok_or(CudaError::NOT_FOUND)?;
        let made = function::create(node, info, None, self.handle() as u64)?;
        kernels.insert(name.to_owned(), made);
        Ok(made)
    }
}

fn create(to: *mut CUlibrary, image: Image) -> CuResult {
    let (kernels, modules) = Default::default();
    let library = Arc::new(Library {
        image: Arc::new(image),
        kernels,
        modules,
    });
    let handle = library.handle();
    LIBRARIES
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(handle as usize, library);
    put(to, handle)
}

/// Lists of options come with their values.
fn check_options(count: u32, options: *const u32, values: *const *mut c_void) -> CuResult {
    if count == 0 {
        return Ok(());
    }
    needed(options)?;
    needed(values)
}

fn variable(
    dptr: *mut CUdeviceptr,
    bytes: *mut usize,
    library: CUlibrary,
    name: *const c_char,
    managed: bool,
) -> CuResult {
    let context = current()?.1;
    let module = get(library)?.module(context)?;
    let (address, size) = module.variable(text(name)?, managed)?;
    put_optional(dptr, address);
    put_optional(bytes, size as usize);
    Ok(())
}

impl Sim {
    pub(super) fn cuLibraryLoadData(
        _: StreamApi,
        library: *mut CUlibrary,
        code: *const c_void,
        jit_options: *mut CUjit_option,
        jit_values: *mut *mut c_void,
        jit_count: c_uint,
        options: *mut CUlibraryOption,
        values: *mut *mut c_void,
        count: c_uint,
    ) -> CuResult {
        let node = node()?;
        needed(library)?;
        check_options(jit_count, jit_options, jit_values.cast_const())?;
        check_options(count, options, values.cast_const())?;
        create(
            library,
            image::load(code, module::architecture(&node.devices[0]))?,
        )
    }

    pub(super) fn cuLibraryLoadFromFile(
        _: StreamApi,
        library: *mut CUlibrary,
        file: *const c_char,
        jit_options: *mut CUjit_option,
        jit_values: *mut *mut c_void,
        jit_count: c_uint,
        options: *mut CUlibraryOption,
        values: *mut *mut c_void,
        count: c_uint,
    ) -> CuResult {
        let node = node()?;
        needed(library)?;
        check_options(jit_count, jit_options, jit_values.cast_const())?;
        check_options(count, options, values.cast_const())?;
        create(
            library,
            module::read(file, module::architecture(&node.devices[0]))?,
        )
    }

    pub(super) fn cuLibraryUnload(_: StreamApi, library: CUlibrary) -> CuResult {
        node()?;
        let mut libraries = LIBRARIES.write().unwrap_or_else(PoisonError::into_inner);
        let library = libraries
            .remove(&(library as usize))
            .ok_or(CudaError::INVALID_HANDLE)?;
        drop(libraries);
        for (_, module) in library
            .modules
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain()
        {
            module.unload();
        }
        for (_, kernel) in library
            .kernels
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain()
        {
            function::end(kernel);
        }
        Ok(())
    }

    pub(super) fn cuLibraryGetKernel(
        _: StreamApi,
        kernel: *mut CUkernel,
        library: CUlibrary,
        name: *const c_char,
    ) -> CuResult {
        let node = node()?;
        needed(kernel)?;
        let name = text(name)?;
        put(kernel, get(library)?.kernel(node, name)?.handle())
    }

    pub(super) fn cuLibraryGetKernelCount(_: StreamApi, count: *mut c_uint, library: CUlibrary) -> CuResult {
        node()?;
        needed(count)?;
        put(
            count,
            get(library)?.image.kernels.as_ref().map_or(0, Vec::len) as c_uint,
        )
    }

    pub(super) fn cuLibraryEnumerateKernels(
        _: StreamApi,
        kernels: *mut CUkernel,
        count: c_uint,
        library: CUlibrary,
    ) -> CuResult {
        let node = node()?;
        needed(kernels)?;
        let library = get(library)?;
        let all = library.image.kernels.iter().flatten().take(count as usize);
        for (i, kernel) in all.enumerate() {
            put(
                kernels.wrapping_add(i),
                library.kernel(node, &kernel.name)?.handle(),
            )?;
        }
        Ok(())
    }

    pub(super) fn cuLibraryGetModule(_: StreamApi, module: *mut CUmodule, library: CUlibrary) -> CuResult {
        let context = current()?.1;
        needed(module)?;
        put(module, get(library)?.module(context)?.handle())
    }

    pub(super) fn cuLibraryGetGlobal(
        _: StreamApi,
        dptr: *mut CUdeviceptr,
        bytes: *mut usize,
        library: CUlibrary,
        name: *const c_char,
    ) -> CuResult {
        variable(dptr, bytes, library, name, false)
    }

    pub(super) fn cuLibraryGetManaged(
        _: StreamApi,
        dptr: *mut CUdeviceptr,
        bytes: *mut usize,
        library: CUlibrary,
        name: *const c_char,
    ) -> CuResult {
        variable(dptr, bytes, library, name, true)
    }

    pub(super) fn cuLibraryGetUnifiedFunction(
        _: StreamApi,
        fptr: *mut *mut c_void,
        library: CUlibrary,
        symbol: *const c_char,
    ) -> CuResult {
        node()?;
        needed(fptr)?;
        get(library)?;
        text(symbol)?;
        Err(CudaError::NOT_FOUND)
    }
}
