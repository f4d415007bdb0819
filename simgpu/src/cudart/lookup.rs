//! The driver's entry points, asked for by name, version and flags at the first call of the process.

use super::code;
use super::release::Release;
use crate::own_library;
use driver::prelude::*;
use driver::table::resolve;
use std::ffi::CString;
use std::sync::OnceLock;

/// What the driver gave; entries it lacks are null and answer `NOT_FOUND`.
pub static DRIVER: driver::Driver = driver::Driver::empty();

/// `cuGetProcAddress_v2`.
type ProcAddress = unsafe extern "C" fn(
    *const c_char,
    *mut *mut c_void,
    c_int,
    cuuint64_t,
    *mut CUdriverProcAddressQueryResult,
) -> CuResult;

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`.
const PER_THREAD: &str = "2";

/// How the first call ended: every later one starts from here.
static READY: OnceLock<CuResult> = OnceLock::new();

/// The driver is loaded, asked and initialised; else why not. For ever the same answer, except that a
/// driver which had no device is not asked again either, as with the real runtime.
pub fn ready() -> CuResult {
    *READY.get_or_init(|| {
        load()?;
        // SAFETY: no precondition.
        unsafe { DRIVER.cuInit(StreamApi::Legacy, 0) }
    })
}

/// The driver is loaded and asked, without `cuInit`: for `cudaDriverGetVersion`.
pub fn load() -> CuResult {
    static LOADED: OnceLock<CuResult> = OnceLock::new();
    *LOADED.get_or_init(|| {
        own_library::silence_panics();
        let release = Release::own();
        // SAFETY: a C string; libcuda is a library whose initialisers may run at any time.
        let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
        if library.is_null() {
            return Err(code::INSUFFICIENT_DRIVER);
        }
        // SAFETY: a handle and a C string.
        let address = unsafe { libc::dlsym(library, c"cuGetProcAddress_v2".as_ptr()) };
        if address.is_null() {
            return Err(code::INSUFFICIENT_DRIVER);
        }
        // SAFETY: the function that cuda.h declares under this name.
        let ask = unsafe { std::mem::transmute::<*mut c_void, ProcAddress>(address) };
        for line in release.lookups().lines().filter(|line| !line.starts_with('#')) {
            look_up(ask, line);
        }
        let mut version = 0;
        // SAFETY: a local to write to.
        unsafe { DRIVER.cuDriverGetVersion(StreamApi::Legacy, &mut version) }?;
        if version < release.least_driver() {
            return Err(code::INSUFFICIENT_DRIVER);
        }
        Ok(())
    })
}

/// Asks for one line of the list. What the driver does not know stays null.
fn look_up(ask: ProcAddress, line: &str) {
    let mut words = line.split(' ');
    let (Some(name), Some(version), Some(flags)) = (words.next(), words.next(), words.next()) else {
        return;
    };
    let api = if flags == PER_THREAD {
        StreamApi::PerThread
    } else {
        StreamApi::Legacy
    };
    let (Ok(version), Ok(flags), Ok(text)) = (version.parse(), flags.parse(), CString::new(name)) else {
        return;
    };
    let (mut address, mut status) = (std::ptr::null_mut(), 0);
    // SAFETY: a C string and locals to write to.
    let answer = unsafe { ask(text.as_ptr(), &mut address, version, flags, &mut status) };
    if answer.is_ok()
        && !address.is_null()
        && let Some(symbol) = resolve(name, version, api)
    {
        // SAFETY: the driver's answer for this name and version, which is what the table says it is.
        unsafe { DRIVER.set_address(symbol, address) };
    }
}
