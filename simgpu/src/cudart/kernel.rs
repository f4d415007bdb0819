//! What nvcc's start-up code registers: images, and which host function stands for which kernel in them.
//!
//! Registration runs before `main` and touches no driver. An image is loaded at the first use of anything in
//! it. Next file of the walk: `launch.rs`.

use super::code;
use super::context;
use super::entered;
use super::lookup::DRIVER;
use driver::prelude::*;
use std::collections::HashMap;
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// A registered image and what was made of it.
struct Image {
    /// `__fatBinC_Wrapper_t`.
    wrapper: usize,
    /// `CUlibrary`; 0 until the first use.
    library: usize,
}

/// A kernel or a variable of an image, by its name there.
#[derive(Clone)]
struct Named {
    image: usize,
    name: Box<CStr>,
    /// `CUkernel`; 0 until the first use, and for variables.
    kernel: usize,
    managed: bool,
}

#[derive(Default)]
struct Registry {
    /// By the handle given to the caller, which is never used again.
    images: HashMap<usize, Image>,
    next: usize,
    kernels: HashMap<usize, Named>,
    variables: HashMap<usize, Named>,
}

static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The handle of an image: opaque to the caller.
type Handle = *mut *mut c_void;

impl Registry {
    /// The library of an image, loading it. A context must be current.
    fn library(&mut self, image: usize) -> Result<CUlibrary, CudaError> {
        let image = self.images.get_mut(&image).ok_or(code::INVALID_DEVICE_FUNCTION)?;
        if image.library == 0 {
            let mut library: CUlibrary = null_mut();
            // SAFETY: a local, the program's image, and no options.
            unsafe {
                DRIVER.cuLibraryLoadData(
                    StreamApi::Legacy,
                    &mut library,
                    image.wrapper as *const c_void,
                    null_mut(),
                    null_mut(),
                    0,
                    null_mut(),
                    null_mut(),
                    0,
                )
            }?;
            image.library = library as usize;
        }
        Ok(image.library as CUlibrary)
    }
}

/// The kernel a host function stands for. What is not registered is taken for a kernel itself, since the
/// runtime's launches accept both; the driver refuses what it does not know.
pub fn kernel(host: *const c_void) -> Result<CUkernel, CudaError> {
    let mut registry = registry();
    let Some(named) = registry.kernels.get(&(host as usize)) else {
        return Ok(host as CUkernel);
    };
    if named.kernel != 0 {
        return Ok(named.kernel as CUkernel);
    }
    let (image, name) = (named.image, named.name.clone());
    let library = registry.library(image)?;
    let mut kernel: CUkernel = null_mut();
    // SAFETY: a local, a library of the driver's and a C string.
    unsafe { DRIVER.cuLibraryGetKernel(StreamApi::Legacy, &mut kernel, library, name.as_ptr()) }.map_err(
        |error| match error {
            CudaError::NOT_FOUND => code::INVALID_DEVICE_FUNCTION,
            other => other,
        },
    )?;
    if let Some(named) = registry.kernels.get_mut(&(host as usize)) {
        named.kernel = kernel as usize;
    }
    Ok(kernel)
}

/// The function to launch in the current context.
pub fn function(host: *const c_void) -> Result<CUfunction, CudaError> {
    if host.is_null() {
        return Err(code::INVALID_DEVICE_FUNCTION);
    }
    let kernel = kernel(host)?;
    let mut function: CUfunction = null_mut();
    // SAFETY: a local; the driver checks the handle.
    unsafe { DRIVER.cuKernelGetFunction(StreamApi::Legacy, &mut function, kernel) }.map_err(|error| {
        match error {
            CudaError::INVALID_HANDLE => code::INVALID_DEVICE_FUNCTION,
            other => other,
        }
    })?;
    Ok(function)
}

/// Address and bytes of a registered variable; `cudaErrorInvalidSymbol` for another.
pub fn variable(host: *const c_void) -> Result<(CUdeviceptr, usize), CudaError> {
    let mut registry = registry();
    let named = registry
        .variables
        .get(&(host as usize))
        .cloned()
        .ok_or(code::INVALID_SYMBOL)?;
    let library = registry.library(named.image)?;
    let (mut address, mut bytes) = (0, 0);
    let (api, name) = (StreamApi::Legacy, named.name.as_ptr());
    // SAFETY: locals, a library of the driver's and a C string.
    unsafe {
        match named.managed {
            false => DRIVER.cuLibraryGetGlobal(api, &mut address, &mut bytes, library, name),
            true => DRIVER.cuLibraryGetManaged(api, &mut address, &mut bytes, library, name),
        }
    }
    .map_err(|error| {
        if error == CudaError::NOT_FOUND {
            code::INVALID_SYMBOL
        } else {
            error
        }
    })?;
    Ok((address, bytes))
}

/// # Safety
/// `name` is null or a C string.
unsafe fn named(image: Handle, name: *const c_char, managed: bool) -> Option<Named> {
    if name.is_null() {
        return None;
    }
    // SAFETY: not null, else as the caller says.
    let name = unsafe { CStr::from_ptr(name) }.into();
    Some(Named {
        image: image as usize,
        name,
        kernel: 0,
        managed,
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterFatBinary(wrapper: *mut c_void) -> Handle {
    let mut registry = registry();
    registry.next += size_of::<usize>();
    let handle = registry.next;
    registry.images.insert(
        handle,
        Image {
            wrapper: wrapper as usize,
            library: 0,
        },
    );
    handle as Handle
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterFatBinaryEnd(_image: Handle) {}

/// Everything of the image goes: a plugin is being unloaded, or the program ends.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaUnregisterFatBinary(handle: Handle) {
    let mut registry = registry();
    let handle = handle as usize;
    registry.kernels.retain(|_, named| named.image != handle);
    registry.variables.retain(|_, named| named.image != handle);
    let image = registry.images.remove(&handle);
    drop(registry);
    if let Some(image) = image.filter(|image| image.library != 0) {
        // SAFETY: a library of the driver's that nobody can reach any more.
        let _ = unsafe { DRIVER.cuLibraryUnload(StreamApi::Legacy, image.library as CUlibrary) };
    }
}

/// Called before the first use of a managed variable of the image: gives the program their addresses. 0: failed.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaInitModule(image: Handle) -> c_char {
    entered(|| place_managed(image as usize)).is_ok() as c_char
}

fn place_managed(image: usize) -> CuResult {
    let places: Vec<usize> = {
        let registry = registry();
        let of_it = registry
            .variables
            .iter()
            .filter(|(_, named)| named.image == image && named.managed);
        of_it.map(|(host, _)| *host).collect()
    };
    if !places.is_empty() {
        context::current()?;
    }
    for host in places {
        let (address, _) = variable(host as *const c_void)?;
        // SAFETY: where the program keeps the variable's address, as it said when it registered it.
        unsafe { (host as *mut CUdeviceptr).write(address) };
    }
    Ok(())
}

#[allow(clippy::too_many_arguments)]
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterFunction(
    image: Handle,
    host: *const c_void,
    _device: *mut c_char,
    name: *const c_char,
    _thread_limit: c_int,
    _thread: *mut c_void,
    _block: *mut c_void,
    _block_size: *mut c_void,
    _grid_size: *mut c_void,
    _warp_size: *mut c_int,
) {
    // SAFETY: nvcc's C string.
    if let Some(named) = unsafe { named(image, name, false) } {
        registry().kernels.insert(host as usize, named);
    }
}

#[allow(clippy::too_many_arguments)]
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterVar(
    image: Handle,
    host: *mut c_void,
    _device: *mut c_char,
    name: *const c_char,
    _external: c_int,
    _bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
    // SAFETY: nvcc's C string.
    if let Some(named) = unsafe { named(image, name, false) } {
        registry().variables.insert(host as usize, named);
    }
}

/// `host` is where the program keeps the variable's address.
#[allow(clippy::too_many_arguments)]
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterManagedVar(
    image: Handle,
    host: *mut *mut c_void,
    _device: *mut c_char,
    name: *const c_char,
    _external: c_int,
    _bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
    // SAFETY: nvcc's C string.
    if let Some(named) = unsafe { named(image, name, true) } {
        registry().variables.insert(host as usize, named);
    }
}

/// A variable that lies in host memory: the program's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterHostVar(
    _image: Handle,
    _name: *const c_char,
    _host: *mut c_void,
    _bytes: usize,
) {
}
