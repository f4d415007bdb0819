//! Whether the connection may be used: alive, lost with its server, or inherited by a fork.
//!
//! The word lies in a page that the kernel wipes in forked children, so a child knows itself by one
//! load, whatever way it was forked.

use driver::{CuResult, CudaError};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

const FORKED: u32 = 0;
const ALIVE: u32 = 1;
const LOST: u32 = 2;

const PAGE: usize = 4096;

pub(super) struct State {
    word: *const AtomicU32,
}

// SAFETY: a pointer to an atomic in a mapping that lives as long as the State.
unsafe impl Send for State {}
// SAFETY: as above.
unsafe impl Sync for State {}

impl State {
    pub fn new() -> io::Result<State> {
        // SAFETY: a fresh private page, zeroed, aligned for any atomic.
        let word = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let page = libc::mmap(std::ptr::null_mut(), PAGE, protection, flags, -1, 0);
            if page == libc::MAP_FAILED || libc::madvise(page, PAGE, libc::MADV_WIPEONFORK) != 0 {
                return Err(io::Error::last_os_error());
            }
            page.cast::<AtomicU32>().cast_const()
        };
        let state = State { word };
        state.word().store(ALIVE, Ordering::Relaxed);
        Ok(state)
    }

    #[inline]
    fn word(&self) -> &AtomicU32 {
        // SAFETY: mapped until drop.
        unsafe { &*self.word }
    }

    #[inline]
    pub fn check(&self) -> CuResult {
        match self.word().load(Ordering::Relaxed) {
            ALIVE => Ok(()),
            FORKED => Err(CudaError::NOT_INITIALIZED),
            _ => Err(CudaError::UNKNOWN),
        }
    }

    #[inline]
    pub fn is_forked(&self) -> bool {
        self.word().load(Ordering::Relaxed) == FORKED
    }

    /// The server is gone: for ever. The error to return.
    pub fn lose(&self) -> CudaError {
        let _ = self
            .word()
            .compare_exchange(ALIVE, LOST, Ordering::Relaxed, Ordering::Relaxed);
        self.check().err().unwrap_or(CudaError::UNKNOWN)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // SAFETY: the page mapped by `new`; nobody can use it after `self`.
        unsafe { libc::munmap(self.word.cast_mut().cast(), PAGE) };
    }
}
