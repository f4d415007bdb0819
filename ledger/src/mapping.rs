//! Memfds and their mappings: how an object comes into the address spaces of those who share it.
//!
//! Read next: `sync.rs`, the atomics all access goes through.
//!
//! An object is a memfd of exactly its size, sealed so that nobody can change that: a mapping never faults. The policy is
//! handed to clients by [`reopen_read_only`]; a duplicate opened read-only of a writable memfd could be reopened for writing.

use crate::layout::{HeaderError, Object};
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Why an object could not be made or mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapError {
    /// The kernel said no.
    System(Errno),
    /// It is not an object of the expected kind, version and size.
    Header(HeaderError),
    /// It can still be resized by somebody, so that touching it could fault.
    Unsealed,
}

impl From<Errno> for MapError {
    fn from(error: Errno) -> Self {
        MapError::System(error)
    }
}

/// Makes a new, zeroed, sealed object and maps it. `name` shows in `/proc/PID/maps`; mode 0600, close-on-exec.
///
/// # Errors
/// [`MapError::System`] when memory or descriptors are short.
pub fn create<T: Object>(name: &core::ffi::CStr) -> Result<(OwnedFd, Mapping<T>), MapError> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = match rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        // Linux before 6.3 does not know the flag.
        Err(Errno::INVAL) => rustix::fs::memfd_create(name, flags)?,
        other => other?,
    };
    rustix::fs::fchmod(&fd, Mode::RUSR | Mode::WUSR)?;
    rustix::fs::ftruncate(&fd, size_of::<T>() as u64)?;
    rustix::fs::fcntl_add_seals(&fd, SEALS)?;
    let mapping: Mapping<T> = Mapping(Area::map(fd.as_fd(), ProtFlags::READ | ProtFlags::WRITE)?);
    mapping.header().write::<T>();
    Ok((fd, mapping))
}

/// A new description of the same object that can only read. For the daemon, which owns the file: needs `/proc`.
///
/// # Errors
/// The error of `open`.
pub fn reopen_read_only(fd: impl AsFd) -> Result<OwnedFd, Errno> {
    let mut path = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
    let mut digits = [0; 10];
    let mut left = fd.as_fd().as_raw_fd().unsigned_abs();
    let mut count = 0;
    loop {
        digits[count] = b'0' + (left % 10) as u8;
        left /= 10;
        count += 1;
        if left == 0 {
            break;
        }
    }
    for (place, digit) in path[14..].iter_mut().zip(digits[..count].iter().rev()) {
        *place = *digit;
    }
    let path = core::ffi::CStr::from_bytes_until_nul(&path).map_err(|_| Errno::INVAL)?;
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

struct Area<T: Object> {
    start: NonNull<T>,
    object: PhantomData<T>,
}

// SAFETY: the area is plain memory valid for as long as the value lives, on every thread, and `T: Shareable` is `Sync`.
unsafe impl<T: Object> Send for Area<T> {}
// SAFETY: as above; shared access reaches it through atomics only.
unsafe impl<T: Object> Sync for Area<T> {}

impl<T: Object> Area<T> {
    fn map(fd: BorrowedFd<'_>, access: ProtFlags) -> Result<Self, MapError> {
        let size = rustix::fs::fstat(fd)?.st_size as u64;
        if size != size_of::<T>() as u64 {
            return Err(MapError::Header(HeaderError::Size(size)));
        }
        if !rustix::fs::fcntl_get_seals(fd)?.contains(SEALS) {
            return Err(MapError::Unsealed);
        }
        // SAFETY: a fresh mapping at an address of the kernel's choosing overlaps nothing of ours.
        let start = unsafe {
            rustix::mm::mmap(
                core::ptr::null_mut(),
                size_of::<T>(),
                access,
                MapFlags::SHARED,
                fd,
                0,
            )?
        };
        let start = NonNull::new(start.cast::<T>()).ok_or(MapError::System(Errno::INVAL))?;
        Ok(Area {
            start,
            object: PhantomData,
        })
    }

    fn get(&self) -> &T {
        // SAFETY: the mapping is page-aligned, `T` at most so; it is as long as `T`, sealed against shrinking, and lives
        // until `drop`; `T: Shareable` makes every bit pattern valid and every access atomic.
        unsafe { self.start.as_ref() }
    }
}

impl<T: Object> Drop for Area<T> {
    fn drop(&mut self) {
        // SAFETY: `map` made this mapping, and every reference into it borrowed from `self`.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), size_of::<T>()) };
    }
}

/// An object mapped for reading and writing.
pub struct Mapping<T: Object>(Area<T>);

impl<T: Object> Mapping<T> {
    /// Maps the object behind `fd`, which must be open for both.
    ///
    /// # Errors
    /// See [`MapError`].
    pub fn open(fd: impl AsFd) -> Result<Self, MapError> {
        let area = Area::<T>::map(fd.as_fd(), ProtFlags::READ | ProtFlags::WRITE)?;
        area.get().header().check::<T>().map_err(MapError::Header)?;
        Ok(Mapping(area))
    }
}

impl<T: Object> Deref for Mapping<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.get()
    }
}

/// An object mapped for reading only. What is public on an object only reads; whoever writes asks for a [`Mapping`].
pub struct View<T: Object>(Area<T>);

impl<T: Object> View<T> {
    /// Maps the object behind `fd`, which must be open for reading.
    ///
    /// # Errors
    /// See [`MapError`].
    pub fn open(fd: impl AsFd) -> Result<Self, MapError> {
        let area = Area::<T>::map(fd.as_fd(), ProtFlags::READ)?;
        area.get().header().check::<T>().map_err(MapError::Header)?;
        Ok(View(area))
    }
}

impl<T: Object> Deref for View<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.get()
    }
}
