//! A sealed memfd and its mapping.
//!
//! Sealed against resizing, or a client could truncate it under the server (SIGBUS); read-only objects
//! are also sealed against writable mappings, since a descriptor of a memfd is otherwise as good as the
//! memory. Writable mappings are not inherited by forked children.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Types that may live in shared memory: any bit pattern is valid, and whatever another process may
/// change is atomic or in a cell that is only copied out of.
///
/// # Safety
/// The implementor is `repr(C)`, valid for all-zero and any other bytes, and `Sync` in that sense.
pub(crate) unsafe trait Shareable {}

/// Linux 5.1; not in every libc crate.
const F_SEAL_FUTURE_WRITE: libc::c_int = 0x0010;

/// A mapping of a whole memfd as a `T`.
pub(crate) struct Map<T: Shareable> {
    address: *mut T,
    fd: OwnedFd,
}

// SAFETY: `Shareable` promises that shared references to `T` may be used from any thread, and the
// mapping belongs to nobody else.
unsafe impl<T: Shareable> Send for Map<T> {}
// SAFETY: as above.
unsafe impl<T: Shareable> Sync for Map<T> {}

impl<T: Shareable> Map<T> {
    /// A zeroed object that both sides may write.
    pub fn create(name: &CStr) -> io::Result<Map<T>> {
        let fd = memfd(name, size_of::<T>())?;
        let map = Map::<T>::open(fd, true)?;
        seal(map.fd(), 0)?;
        Ok(map)
    }

    /// A zeroed object that only this process may write: others get the descriptor and cannot map it
    /// writable.
    pub fn create_read_only(name: &CStr) -> io::Result<Map<T>> {
        let fd = memfd(name, size_of::<T>())?;
        let map = Map::<T>::open(fd, true)?;
        seal(map.fd(), F_SEAL_FUTURE_WRITE)?;
        Ok(map)
    }

    /// Maps a descriptor received from the other side.
    pub fn open(fd: OwnedFd, write: bool) -> io::Result<Map<T>> {
        let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
        // SAFETY: `stat` has room for the answer.
        let size = match unsafe { libc::fstat(fd.as_raw_fd(), stat.as_mut_ptr()) } {
            // SAFETY: fstat succeeded and filled it.
            0 => unsafe { stat.assume_init() }.st_size,
            _ => return Err(io::Error::last_os_error()),
        };
        if (size as usize) < size_of::<T>() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "shared object too small",
            ));
        }
        let protection = if write {
            libc::PROT_READ | libc::PROT_WRITE
        } else {
            libc::PROT_READ
        };
        // SAFETY: a new mapping of a valid descriptor at an address of the kernel's choice.
        let address = unsafe {
            let none = std::ptr::null_mut();
            libc::mmap(
                none,
                size_of::<T>(),
                protection,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        if write {
            // SAFETY: exactly the mapping made above. Failure costs only what a child could do to it.
            unsafe { libc::madvise(address, size_of::<T>(), libc::MADV_DONTFORK) };
        }
        Ok(Map {
            address: address.cast(),
            fd,
        })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// For the one writer of a read-only object, before it is shared.
    pub fn as_ptr(&self) -> *mut T {
        self.address
    }
}

impl<T: Shareable> std::ops::Deref for Map<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: mapped with at least the size of T until drop, page-aligned; any bytes are a valid T,
        // and what others change meanwhile is atomic (`Shareable`).
        unsafe { &*self.address }
    }
}

impl<T: Shareable> Drop for Map<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping made by `open`; no reference outlives `self`.
        unsafe { libc::munmap(self.address.cast(), size_of::<T>()) };
    }
}

/// A zeroed memfd of `size` bytes.
pub(crate) fn memfd(name: &CStr, size: usize) -> io::Result<OwnedFd> {
    // SAFETY: `name` is a C string; the result is checked.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nobody else owns.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: a plain system call on our descriptor.
    match unsafe { libc::ftruncate(fd.as_raw_fd(), size as libc::off_t) } {
        0 => Ok(fd),
        _ => Err(io::Error::last_os_error()),
    }
}

fn seal(fd: BorrowedFd<'_>, more: libc::c_int) -> io::Result<()> {
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | more | libc::F_SEAL_SEAL;
    // SAFETY: a plain system call on a borrowed descriptor.
    match unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
