//! The clock, and sleeping on a shared word.

use std::sync::atomic::AtomicU32;

/// Host `CLOCK_MONOTONIC`, in nanoseconds.
#[inline]
pub(crate) fn host_now() -> u64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `t` is a valid place for the answer; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Device time of a node: host time divided by its time scale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceClock {
    scale: u64,
}

impl DeviceClock {
    pub fn new(scale: u32) -> DeviceClock {
        DeviceClock {
            scale: scale.max(1) as u64,
        }
    }

    #[inline]
    pub fn now(self) -> u64 {
        self.device(host_now())
    }

    /// Device time at a host time.
    #[inline]
    pub fn device(self, host: u64) -> u64 {
        if self.scale == 1 { host } else { host / self.scale }
    }

    /// Host nanoseconds that `device` nanoseconds take.
    #[inline]
    pub fn host_span(self, device: u64) -> u64 {
        device.saturating_mul(self.scale)
    }
}

pub(crate) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000).min(1 << 32) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    }
}

/// Sleeps while `*word == value`, at most `timeout` ns of host time; may wake early.
pub(crate) fn futex_wait(word: &AtomicU32, value: u32, timeout: u64) {
    let ts = timespec(timeout);
    // SAFETY: `word` and `ts` live across the call; a shared (not private) futex on mapped memory.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            value,
            &ts as *const _,
            0,
            0,
        )
    };
}

/// Wakes everybody who sleeps on the word.
pub(crate) fn futex_wake(word: &AtomicU32) {
    // SAFETY: `word` is mapped memory; the kernel only uses its address.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE,
            i32::MAX,
            0,
            0,
            0,
        )
    };
}

/// Sleeps for `ns` of host time.
pub(crate) fn sleep(ns: u64) {
    let mut left = timespec(ns);
    // SAFETY: both pointers name the same valid timespec, which clock_nanosleep allows.
    while unsafe { libc::nanosleep(&left, &mut left) } != 0
        && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
    {}
}
