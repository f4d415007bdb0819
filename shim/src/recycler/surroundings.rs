//! Whether this process may recycle at all. Somebody who pins device memory without asking the driver (a network card's or a
//! disk's kernel module) would keep a block that the driver never frees, and a debugger or checker of memory looks for exactly
//! the errors that recycling hides.
//!
//! Next: `mod.rs`.

use core::ffi::{CStr, c_int, c_void};

/// Device nodes through which memory is pinned behind the driver's back: RDMA, GPUDirect Storage, GDRCopy. What a process
/// cannot see it cannot open.
const PINNERS: [&str; 3] = ["/dev/infiniband", "/dev/nvidia-fs0", "/dev/gdrdrv"];

/// Parts of the names of what compute-sanitizer loads into a program.
const CHECKERS: [&[u8]; 3] = [
    b"libsanitizer-collection",
    b"libInterceptorInjection",
    b"libTreeLauncher",
];

/// Whether nothing speaks against it.
pub fn suit() -> bool {
    !PINNERS.iter().any(|path| std::fs::metadata(path).is_ok()) && !is_traced() && !is_checked()
}

/// Whether a debugger is attached.
fn is_traced() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let tracer = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"))
        .map(str::trim);
    tracer.is_some_and(|pid| pid != "0")
}

/// Whether a memory checker is loaded.
fn is_checked() -> bool {
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: libc::size_t, found: *mut c_void) -> c_int {
        // SAFETY: the loader hands over a valid entry whose name, if any, ends with NUL; `found` is the bool below.
        unsafe {
            let name = (*info).dlpi_name;
            if !name.is_null() {
                let name = CStr::from_ptr(name).to_bytes();
                let is_one = |part: &&[u8]| name.windows(part.len()).any(|bytes| bytes == *part);
                *found.cast::<bool>() |= CHECKERS.iter().any(is_one);
            }
        }
        0
    }
    let mut found = false;
    // SAFETY: the function has the prototype asked for and does not unwind.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_neither_traced_nor_checked() {
        assert!(!is_checked());
        // Under a debugger this is the test that says so.
        let traced = std::fs::read_to_string("/proc/self/status")
            .unwrap()
            .contains("TracerPid:\t0\n");
        assert_eq!(is_traced(), !traced);
    }
}
