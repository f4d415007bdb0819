//! `dlsym` and `dlvsym`: how clients that open the driver by another name than its SONAME (`libcuda.so`, an absolute path)
//! still get our functions.
//!
//! Everything that is not a CUDA or NVML name must reach libc as if we were not there. glibc looks at the return address to
//! tell who asks (`RTLD_NEXT`, namespaces), so both exports end in a tail jump: the caller libc sees is the caller.
//!
//! Next: `lookup.rs`, which decides about CUDA and NVML names.

use core::ffi::{CStr, c_char, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::{lookup, scope};

/// libc's own functions (or the next interposer's).
type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
type Dlvsym = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;

/// What a lookup is answered with: in `rax` and `rdx`, where the assembly finds it.
#[repr(C)]
pub struct Answer {
    pub address: *mut c_void,
    /// 0: libc answers, in the caller's own scope.
    pub decided: usize,
}

impl Answer {
    pub const PASS: Answer = Answer {
        address: null_mut(),
        decided: 0,
    };

    pub fn is(address: *mut c_void) -> Answer {
        Answer { address, decided: 1 }
    }
}

/// Saves the three arguments, asks for an answer, and returns it or jumps on to libc with the arguments as they came.
macro_rules! tail_jump {
    ($answer:path, $next:path) => {
        core::arch::naked_asm!(
            "push rdi",
            "push rsi",
            "push rdx",
            "call {answer}",
            "test rdx, rdx",
            "jnz 2f",
            "call {next}",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            "jmp rax",
            "2:",
            "add rsp, 24",
            "ret",
            answer = sym $answer,
            next = sym $next,
        )
    };
}

/// As `<dlfcn.h>` says, for every caller.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlsym(_handle: *mut c_void, _name: *const c_char) -> *mut c_void {
    tail_jump!(answer_dlsym, next_dlsym)
}

/// As `<dlfcn.h>` says, for every caller.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlvsym(
    _handle: *mut c_void,
    _name: *const c_char,
    _version: *const c_char,
) -> *mut c_void {
    tail_jump!(answer_dlvsym, next_dlvsym)
}

unsafe extern "C" fn answer_dlsym(handle: *mut c_void, name: *const c_char) -> Answer {
    // SAFETY: the caller passed a C string or null, as dlsym demands.
    unsafe { lookup::answer(handle, name, &|handle, name| find(handle, name)) }
}

unsafe extern "C" fn answer_dlvsym(
    handle: *mut c_void,
    name: *const c_char,
    version: *const c_char,
) -> Answer {
    // SAFETY: the caller passed C strings or null, as dlvsym demands.
    unsafe {
        lookup::answer(handle, name, &|handle, name| {
            let next = core::mem::transmute::<usize, Dlvsym>(next_dlvsym());
            next(handle, name.as_ptr(), version)
        })
    }
}

/// libc's `dlsym` for a handle: never our own functions unless the handle is ours.
///
/// # Safety
/// `handle` is one of `dlopen`'s.
pub unsafe fn find(handle: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: the address is that of a function of this type; the caller vouches for the handle.
    unsafe { core::mem::transmute::<usize, Dlsym>(next_dlsym())(handle, name.as_ptr()) }
}

/// Whether libc itself answers behind us: nobody else's `dlsym` has a say in what a library's handle yields.
pub fn next_is_libc() -> bool {
    scope::next_definition(c"dlsym").is_some_and(|(object, _)| object.is_libc())
}

static DLSYM: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static DLVSYM: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

extern "C" fn next_dlsym() -> usize {
    cached(&DLSYM, c"dlsym")
}

extern "C" fn next_dlvsym() -> usize {
    cached(&DLVSYM, c"dlvsym")
}

/// Two threads may both search: they find the same.
fn cached(cell: &AtomicPtr<c_void>, name: &CStr) -> usize {
    let mut known = cell.load(Relaxed);
    if known.is_null() {
        known = scope::next_definition(name).map_or(nothing as *mut c_void, |(_, found)| found);
        cell.store(known, Relaxed);
    }
    known as usize
}

/// Where there is no libc that we understand: nothing is found.
extern "C" fn nothing() -> *mut c_void {
    null_mut()
}
