//! The real library behind us: found as the loader would have found it, opened on first need, one address per name.
//!
//! Next: `loaded.rs`, which reads its symbols.

use core::ffi::{CStr, c_char, c_uint, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::panic::catch_unwind;

use driver::load;
use driver::nvml::NvmlError;
use driver::nvml_table::{self, ERROR_STRING as ERROR_STRING_NAME, ROWS};

use crate::loaded;

macro_rules! names {
    ($($handler:tt $name:ident $arguments:tt;)*) => {
        /// A row's number in the table.
        #[allow(non_camel_case_types, dead_code, clippy::enum_variant_names)]
        #[derive(Clone, Copy)]
        #[repr(usize)]
        pub enum Name { $($name),* }
    };
}
driver::nvml_functions!(names);

/// The place of `nvmlErrorString`, after all rows.
pub const ERROR_STRING: usize = ROWS.len();
const COUNT: usize = ERROR_STRING + 1;

/// What the stubs jump through; null until the first call of any, and where the library lacks the name.
pub static ADDRESSES: [AtomicPtr<c_void>; COUNT] = [const { AtomicPtr::new(null_mut()) }; COUNT];

static PHASE: AtomicU8 = AtomicU8::new(UNKNOWN);

const UNKNOWN: u8 = 0;
const LOADED: u8 = 1;
const ABSENT: u8 = 2;

/// The body of a stub: jumps to the real function, which is looked up on the first call of any.
macro_rules! forward {
    ($index:expr) => {
        core::arch::naked_asm!(
            "mov r11, qword ptr [rip + {addresses} + {offset}]",
            "test r11, r11",
            "jz 2f",
            "jmp r11",
            "2:",
            "mov r11d, {index}",
            "jmp {resolve}",
            addresses = sym $crate::real::ADDRESSES,
            offset = const 8 * ($index),
            index = const $index,
            resolve = sym $crate::real::resolve,
        )
    };
}
pub(crate) use forward;

/// Saves what may hold arguments (no NVML function takes floating-point ones), finds the function whose index is in
/// `r11`, and jumps to it.
#[unsafe(naked)]
pub unsafe extern "C" fn resolve() {
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "sub rsp, 8",
        "mov edi, r11d",
        "call {address}",
        "mov r11, rax",
        "add rsp, 8",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp r11",
        address = sym address,
    )
}

/// The function at `index`; one that returns an error where there is none.
pub extern "C" fn address(index: usize) -> *const c_void {
    silence();
    let phase = match PHASE.load(Acquire) {
        UNKNOWN => catch_unwind(load).unwrap_or(ABSENT),
        known => known,
    };
    let known = ADDRESSES[index].load(Relaxed);
    match (phase, index) {
        _ if !known.is_null() => known,
        (_, ERROR_STRING) => text as *const c_void,
        (LOADED, _) => missing as *const c_void,
        _ => absent as *const c_void,
    }
}

/// In place of a function the library lacks.
extern "C" fn missing() -> u32 {
    NvmlError::FUNCTION_NOT_FOUND.code()
}

/// In place of every function where there is no library.
extern "C" fn absent() -> u32 {
    NvmlError::LIBRARY_NOT_FOUND.code()
}

/// In place of `nvmlErrorString` where there is no library: the codes above.
extern "C" fn text(code: c_uint) -> *const c_char {
    let text: &CStr = match code {
        12 => c"NVML Shared Library Not Found",
        13 => c"Function Not Found",
        _ => c"Unknown Error",
    };
    text.as_ptr()
}

/// Two threads may both load: they open the same file and store the same addresses, so neither waits for the other.
#[cold]
fn load() -> u8 {
    let phase = match open() {
        Some(library) => {
            // SAFETY: a handle that is never closed.
            for (name, address) in unsafe { loaded::functions(library) } {
                let index = match name == ERROR_STRING_NAME.as_bytes() {
                    true => Some(ERROR_STRING),
                    false => core::str::from_utf8(name).ok().and_then(nvml_table::by_name),
                };
                if let Some(index) = index {
                    ADDRESSES[index].store(address, Relaxed);
                }
            }
            LOADED
        }
        None => ABSENT,
    };
    PHASE.store(phase, Release);
    phase
}

/// Opens the first library of NVML's SONAME that is not one of ours, by its path. The reference is kept for ever.
fn open() -> Option<*mut c_void> {
    let path = load::find("libnvidia-ml.so.1", load::library_path().as_deref())?;
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: opening a library of the system runs its constructors, as it would have without us.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
    (!handle.is_null()).then_some(handle)
}

/// Panics print by default. The hook replaced is that of the standard library inside this object, not the program's.
pub fn silence() {
    static SILENCED: AtomicBool = AtomicBool::new(false);
    if !cfg!(test) && !SILENCED.load(Relaxed) && !SILENCED.swap(true, Relaxed) {
        std::panic::set_hook(Box::new(|_| {}));
    }
}
