//! Interprocess events: a page that says how often the event was recorded and how often that was reached.
//!
//! Recording puts a host function behind the work, which writes the page; who waits for the event,
//! in whatever process, waits here and not on the timeline.

use super::Sim;
use super::current::current;
use super::edge::{needed, put};
use super::event::{self, INTERPROCESS};
use super::host_function::enqueue;
use super::node::Node;
use super::stream::Stream;
use crate::client::Client;
use driver::prelude::*;
use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

const MAGIC: u32 = 0x4556_4e54;
const PAGE: usize = 4096;
/// A waiter looks after its node this often.
const LOOK: libc::timespec = libc::timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// In a page of its own that processes share; counts wrap.
#[repr(C)]
pub struct Shared {
    recorded: AtomicU32,
    reached: AtomicU32,
}

/// The files behind the pages, by address.
static FILES: LazyLock<Mutex<HashMap<usize, File>>> = LazyLock::new(Default::default);

#[derive(Clone, Copy)]
#[repr(C)]
struct Words {
    magic: u32,
    pid: u32,
    share: u64,
    rest: [u64; 6],
}

const _: () = assert!(size_of::<Words>() == size_of::<CUipcEventHandle>());

impl Shared {
    pub fn new() -> Result<&'static Shared, CudaError> {
        // SAFETY: system calls with a constant name; the results are checked.
        let file = unsafe {
            let fd = libc::memfd_create(c"stint-sim-event".as_ptr(), libc::MFD_CLOEXEC);
            if fd < 0 || libc::ftruncate(fd, PAGE as i64) != 0 {
                return Err(CudaError::OPERATING_SYSTEM);
            }
            File::from_raw_fd(fd)
        };
        Shared::of(file)
    }

    fn of(file: File) -> Result<&'static Shared, CudaError> {
        // SAFETY: a fresh shared mapping of a page of the file, never unmapped. Another process may cut
        // the file only by being the stand-in and doing so on purpose.
        let shared = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let page = libc::mmap(
                null_mut(),
                PAGE,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            );
            if page == libc::MAP_FAILED {
                return Err(CudaError::OUT_OF_MEMORY);
            }
            &*page.cast::<Shared>()
        };
        let address = (&raw const *shared) as usize;
        FILES
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(address, file);
        Ok(shared)
    }

    /// Behind the work of the stream, the event is reached once more.
    pub fn record(&'static self, node: &'static Node, stream: &'static Stream) -> CuResult {
        let count = self.recorded.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
        enqueue(node, stream, move || {
            self.reached.store(count, Ordering::Release);
            futex(&self.reached, libc::FUTEX_WAKE, i32::MAX as u32, None);
        })
    }

    pub fn is_done(&self) -> bool {
        !behind(
            self.reached.load(Ordering::Acquire),
            self.recorded.load(Ordering::Acquire),
        )
    }

    /// Waits for the latest record at the time of the call.
    pub fn wait(&self, client: &Client) -> CuResult {
        let target = self.recorded.load(Ordering::Acquire);
        loop {
            let reached = self.reached.load(Ordering::Acquire);
            if !behind(reached, target) {
                return Ok(());
            }
            client.alive()?;
            futex(&self.reached, libc::FUTEX_WAIT, reached, Some(&LOOK));
        }
    }
}

fn behind(reached: u32, target: u32) -> bool {
    (target.wrapping_sub(reached) as i32) > 0
}

fn futex(word: &AtomicU32, operation: i32, value: u32, timeout: Option<&libc::timespec>) {
    let timeout = timeout.map_or(std::ptr::null(), |timeout| &raw const *timeout);
    // SAFETY: an aligned word that stays mapped, and a timeout that outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, timeout) };
}

impl Sim {
    pub(super) fn cuIpcGetEventHandle(
        _: StreamApi,
        handle: *mut CUipcEventHandle,
        hEvent: CUevent,
    ) -> CuResult {
        let node = super::node::node()?;
        needed(handle)?;
        let shared = event::get(hEvent)?.shared().ok_or(CudaError::INVALID_VALUE)?;
        let files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        let file = files
            .get(&((&raw const *shared) as usize))
            .ok_or(CudaError::INVALID_HANDLE)?;
        let share = node.client.share(file.as_fd())?;
        let words = Words {
            magic: MAGIC,
            pid: std::process::id(),
            share,
            rest: [0; 6],
        };
        put(handle.cast::<Words>(), words)
    }

    pub(super) fn cuIpcOpenEventHandle(
        _: StreamApi,
        phEvent: *mut CUevent,
        handle: CUipcEventHandle,
    ) -> CuResult {
        let (node, context) = current()?;
        needed(phEvent)?;
        // SAFETY: 64 bytes of integers, of which every pattern is a value.
        let words = unsafe { std::mem::transmute_copy::<CUipcEventHandle, Words>(&handle) };
        if words.magic != MAGIC {
            return Err(CudaError::INVALID_VALUE);
        }
        if words.pid == std::process::id() {
            return Err(CudaError::INVALID_CONTEXT);
        }
        let file: OwnedFd = node.client.fetch(words.share)?;
        let shared = Shared::of(File::from(file))?;
        const DISABLE_TIMING: u32 = 2;
        let event = event::create(context, INTERPROCESS | DISABLE_TIMING, Some(shared))?;
        put(phEvent, event.handle())
    }
}
