//! What this process is to the node, in one page that the kernel wipes in a child made by `fork`, however it was made.
//!
//! A child therefore begins as if it had never attached, with no handler registered and no process id compared: its locks,
//! its books and its launch counter are the parent's and simply no longer named. A child of `vfork` shares the page with its
//! waiting parent and only executes another program.
//!
//! Next: `attach.rs`, which fills the page.

use core::mem::size_of;
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use rustix::mm::{Advice, madvise};

use crate::books::Books;

/// The wiped page. All zeroes means: nothing happened yet.
#[repr(C, align(4096))]
pub struct Process {
    /// What [`crate::hooks::launch`] adds to the address of [`UNCOUNTED`] to find the counter; must stay first.
    launches: AtomicUsize,
    /// One of the constants below; a futex while [`ATTACHING`].
    pub phase: AtomicU32,
    books: AtomicPtr<Books>,
    nonce: AtomicU64,
}

const _: () = assert!(size_of::<Process>() == 4096);

/// Nothing was decided yet.
pub const UNDECIDED: u32 = 0;
/// A thread is talking to the node; the others wait for it.
pub const ATTACHING: u32 = 1;
/// The books are there.
pub const ATTACHED: u32 = 2;
/// There is no node, or it does not manage this process.
pub const FREE: u32 = 3;
/// The node refused this process, or does not answer and wants such processes refused.
pub const REFUSED: u32 = 4;

pub static PROCESS: Process = Process {
    launches: AtomicUsize::new(0),
    phase: AtomicU32::new(UNDECIDED),
    books: AtomicPtr::new(null_mut()),
    nonce: AtomicU64::new(0),
};

/// Counts launches of processes that are not attached; nobody reads it.
pub static UNCOUNTED: AtomicU64 = AtomicU64::new(0);

/// Whether this process or one it was forked from has attached: survives a fork, unlike the page.
static EVER: AtomicBool = AtomicBool::new(false);

impl Process {
    /// Makes the kernel wipe the page in children.
    ///
    /// # Errors
    /// On kernels before Linux 4.14, which cannot.
    pub fn wipe_on_fork(&self) -> rustix::io::Result<()> {
        // SAFETY: the page is ours alone, anonymous (it lies in .bss) and exactly as long.
        unsafe {
            madvise(
                core::ptr::from_ref(self).cast_mut().cast(),
                size_of::<Process>(),
                Advice::LinuxWipeOnFork,
            )
        }
    }

    /// The books, once attached.
    pub fn books(&self) -> Option<&'static Books> {
        // SAFETY: null, or from `Box::leak` in `open_books`.
        unsafe { self.books.load(Acquire).as_ref() }
    }

    /// Puts the books in place, for the rest of the process's life.
    pub fn open_books(&self, books: Books) {
        self.books.store(Box::leak(Box::new(books)), Release);
        EVER.store(true, Relaxed);
    }

    /// Whether an ancestor was attached that never executed another program.
    pub fn is_forked(&self) -> bool {
        EVER.load(Relaxed)
    }

    /// A number drawn once per program and process.
    pub fn nonce(&self) -> u64 {
        let known = self.nonce.load(Relaxed);
        if known != 0 {
            return known;
        }
        let mut drawn = [0u8; 8];
        // SAFETY: the buffer is as long as said. Should the kernel refuse, the clock below still tells programs apart.
        unsafe { libc::getrandom(drawn.as_mut_ptr().cast(), drawn.len(), libc::GRND_NONBLOCK) };
        let drawn = (u64::from_ne_bytes(drawn) ^ crate::charge::monotonic_nanoseconds()) | 1;
        self.nonce.store(drawn, Relaxed);
        drawn
    }

    /// Counts a launch, as the stubs of `hooks/launch.rs` do.
    pub fn count_launch(&self) {
        let counter = (&raw const UNCOUNTED).wrapping_byte_add(self.launches.load(Relaxed));
        // SAFETY: the counter itself, or the one of the client's slot, which stays mapped as long as the page names it.
        unsafe { &*counter }.fetch_add(1, Relaxed);
    }

    /// Lets launches be counted in `counter`, unless they are already.
    pub fn count_launches_in(&self, counter: &'static AtomicU64) {
        let offset =
            (core::ptr::from_ref(counter) as usize).wrapping_sub(core::ptr::from_ref(&UNCOUNTED) as usize);
        let _ = self.launches.compare_exchange(0, offset, Relaxed, Relaxed);
    }
}
