//! The real driver behind us: found as the loader would have found it, opened on first need, one address per symbol.
//!
//! Next: `forward.rs`, which jumps through those addresses.

use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

use driver::{Driver, load};

use crate::{dl, scope};

/// What the forwarding stubs jump through; null until `driver` was called, and where the driver lacks the name.
pub static DRIVER: Driver = Driver::empty();

static HANDLE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static PHASE: AtomicU8 = AtomicU8::new(UNKNOWN);

const UNKNOWN: u8 = 0;
const LOADED: u8 = 1;
const ABSENT: u8 = 2;

/// The driver, loaded if need be; `None` on a machine without one.
pub fn driver() -> Option<&'static Driver> {
    match PHASE.load(Acquire) {
        LOADED => Some(&DRIVER),
        ABSENT => None,
        _ => load(),
    }
}

/// The driver's handle; null before `driver` found one.
pub fn handle() -> *mut c_void {
    HANDLE.load(Relaxed)
}

/// Opens the first library of this SONAME that is not one of ours, by its path. The reference is kept for ever.
pub fn open(soname: &str) -> Option<*mut c_void> {
    let path = load::find(soname, load::library_path().as_deref())?;
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: opening a library of the system runs its constructors, as it would have without us.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
    (!handle.is_null()).then_some(handle)
}

/// A handle in which no CUDA name is found, for the error libc makes of it.
pub fn libc_handle() -> *mut c_void {
    // SAFETY: RTLD_NOLOAD only asks. The reference it takes keeps libc loaded, which it is anyway.
    unsafe { libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) }
}

/// As libc's `dlsym` on the driver's handle. Of hundreds of names nearly all are the driver's own, and its hash table answers
/// in a fraction of the time; `dlsym` itself is asked where somebody else could have an answer.
///
/// # Safety
/// The handle is one of `dlopen`'s and stays open.
unsafe fn lookup_in(handle: *mut c_void) -> impl Fn(&CStr) -> *mut c_void {
    // SAFETY: the caller's promise.
    let object = unsafe { scope::of(handle) };
    let own = object.definitions().filter(|_| dl::next_is_libc());
    let ask_anyway = own.is_none() || object.leans_on_others();
    move |name| match own.as_ref().and_then(|own| own.find(name)) {
        Some(found) => found,
        // SAFETY: the caller's promise.
        None if ask_anyway => unsafe { dl::find(handle, name) },
        None => null_mut(),
    }
}

/// Two threads may both load: they open the same file and store the same addresses, so neither waits for the other.
#[cold]
fn load() -> Option<&'static Driver> {
    let opened = open("libcuda.so.1");
    if let Some(handle) = opened {
        // SAFETY: the handle is the driver's, whose functions have the types of cuda.h; it is never closed.
        unsafe { DRIVER.load(lookup_in(handle)) };
        HANDLE.store(handle, Relaxed);
    }
    // Names the driver lacks left an error that the program would take for one of its own.
    // SAFETY: reading the error is what clears it.
    unsafe { libc::dlerror() };
    PHASE.store(if opened.is_some() { LOADED } else { ABSENT }, Release);
    opened.map(|_| &DRIVER)
}
