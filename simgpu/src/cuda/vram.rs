//! A device's memory as this process uses it: ranges of one sparse file, charged before they exist.
//!
//! The file is a memfd of which only touched pages are real, so gigabytes cost nothing until somebody
//! writes them, and any range can be shown at several addresses and in several processes. Ranges are
//! never used twice. Whoever holds memory of another process (an exported descriptor, an imported
//! handle) holds a file lock on its range, which dies with him; a range given back while somebody else
//! holds it stays charged until he lets go. Next file of the walk: `client/memory.rs`.

use super::space::{GRANULE, granules};
use crate::client::Client;
use driver::{CuResult, CudaError};
use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Where the labels of exported ranges begin; memory lies below.
const LABELS: u64 = 1 << 58;
const FILE_BYTES: i64 = 1 << 59;
const LABEL_MAGIC: u64 = 0x5354_494e_544d_454d;

/// A range of a device's file, whole granules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    pub offset: u64,
    pub bytes: u64,
}

/// What an exported range says of itself to its importer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Label {
    pub bytes: u64,
    /// All zero for host memory.
    pub uuid: [u8; 16],
}

pub struct Vram {
    /// `None` for host memory, which nobody charges.
    client: Option<&'static Client>,
    device: usize,
    file: OnceLock<File>,
    next: AtomicU64,
    /// Ranges somebody else may hold.
    shared: Mutex<BTreeSet<u64>>,
    /// Given back, but still held by somebody else.
    lingering: Mutex<Vec<Extent>>,
    share_id: Mutex<Option<u64>>,
}

/// Host memory that is created through the device's interfaces.
pub static HOST: Vram = Vram::empty(None, 0);

impl Vram {
    const fn empty(client: Option<&'static Client>, device: usize) -> Vram {
        Vram {
            client,
            device,
            file: OnceLock::new(),
            next: AtomicU64::new(0),
            shared: Mutex::new(BTreeSet::new()),
            lingering: Mutex::new(Vec::new()),
            share_id: Mutex::new(None),
        }
    }

    pub fn new(client: &'static Client, device: usize) -> Vram {
        Vram::empty(Some(client), device)
    }

    pub fn file(&self) -> Result<BorrowedFd<'_>, CudaError> {
        if let Some(file) = self.file.get() {
            return Ok(file.as_fd());
        }
        let made = sparse_file().ok_or(CudaError::OPERATING_SYSTEM)?;
        Ok(self.file.get_or_init(|| made).as_fd())
    }

    /// Charges bytes of the device.
    pub fn charge(&self, bytes: u64) -> CuResult {
        let Some(client) = self.client else { return Ok(()) };
        match client.charge(self.device, bytes) {
            Err(CudaError::OUT_OF_MEMORY) if self.collect() => client.charge(self.device, bytes),
            other => other,
        }
    }

    pub fn discharge(&self, bytes: u64) {
        if let Some(client) = self.client {
            // Fails only when the server is gone, and the charge with it.
            let _ = client.discharge(self.device, bytes);
        }
    }

    /// A fresh range of at least `bytes`, charged.
    pub fn take(&self, bytes: u64) -> Result<Extent, CudaError> {
        let bytes = granules(bytes)
            .filter(|&b| b < LABELS / 4)
            .ok_or(CudaError::OUT_OF_MEMORY)?;
        self.file()?;
        self.charge(bytes)?;
        let offset = self.next.fetch_add(bytes, Ordering::Relaxed);
        if offset + bytes > LABELS {
            self.discharge(bytes);
            return Err(CudaError::OUT_OF_MEMORY);
        }
        Ok(Extent { offset, bytes })
    }

    /// Gives a range back: its pages at once, its charge too unless somebody else holds the range.
    pub fn give(&self, extent: Extent) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.contains(&extent.offset) {
            if self.is_held(extent) {
                self.lingering
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(extent);
                return;
            }
            shared.remove(&extent.offset);
        }
        drop(shared);
        self.drop_pages(extent.offset, extent.bytes);
        self.discharge(extent.bytes);
    }

    /// Ends what is held no more; true if that freed anything.
    fn collect(&self) -> bool {
        let mut lingering = self.lingering.lock().unwrap_or_else(PoisonError::into_inner);
        let before = lingering.len();
        lingering.retain(|&extent| {
            let held = self.is_held(extent);
            if !held {
                self.drop_pages(extent.offset, extent.bytes);
                self.discharge(extent.bytes);
            }
            held
        });
        lingering.len() < before
    }

    /// Makes a range read as zeros and cost nothing.
    fn drop_pages(&self, offset: u64, bytes: u64) {
        if let Some(file) = self.file.get() {
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            // SAFETY: a system call on our own file; it only changes pages of a range that is ours.
            unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as i64, bytes as i64) };
        }
    }

    fn is_held(&self, extent: Extent) -> bool {
        self.file.get().is_some_and(|file| {
            let mut lock = lock_of(extent, libc::F_WRLCK);
            // SAFETY: our own descriptor and a complete flock.
            let asked = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &mut lock) };
            asked == 0 && lock.l_type != libc::F_UNLCK as libc::c_short
        })
    }

    /// A descriptor that stands for the range: it holds it, whoever has a copy of it.
    pub fn export(&self, extent: Extent, label: Label) -> Result<OwnedFd, CudaError> {
        let mut words = [0u8; 32];
        words[..8].copy_from_slice(&LABEL_MAGIC.to_le_bytes());
        words[8..16].copy_from_slice(&label.bytes.to_le_bytes());
        words[16..].copy_from_slice(&label.uuid);
        let file = self.file()?;
        let labelled = self
            .file
            .get()
            .map(|file| file.write_all_at(&words, label_at(extent.offset)));
        labelled.and_then(Result::ok).ok_or(CudaError::OPERATING_SYSTEM)?;
        self.mark_shared(extent);
        let copy = hold(file, extent)?;
        // SAFETY: our own fresh descriptor.
        let moved = unsafe { libc::lseek(copy.as_raw_fd(), extent.offset as i64, libc::SEEK_SET) };
        if moved < 0 {
            Err(CudaError::OPERATING_SYSTEM)
        } else {
            Ok(copy)
        }
    }

    /// Others may hold the range from now on.
    pub fn mark_shared(&self, extent: Extent) {
        self.shared
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(extent.offset);
    }

    /// The node-wide id under which other processes fetch the file.
    pub fn share(&self) -> Result<u64, CudaError> {
        let client = self.client.ok_or(CudaError::INVALID_VALUE)?;
        let mut id = self.share_id.lock().unwrap_or_else(PoisonError::into_inner);
        match *id {
            Some(id) => Ok(id),
            None => Ok(*id.insert(client.share(self.file()?)?)),
        }
    }
}

fn label_at(offset: u64) -> u64 {
    LABELS + offset / GRANULE * 32
}

fn lock_of(extent: Extent, kind: i32) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: extent.offset as i64,
        l_len: extent.bytes as i64,
        l_pid: 0,
    }
}

/// An own opening of the file, holding the range.
pub fn hold(file: BorrowedFd<'_>, extent: Extent) -> Result<OwnedFd, CudaError> {
    let failed = CudaError::OPERATING_SYSTEM;
    let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).map_err(|_| failed)?;
    // SAFETY: a C string; the result is checked and owned by nobody else.
    let copy = unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        if fd < 0 {
            return Err(failed);
        }
        OwnedFd::from_raw_fd(fd)
    };
    let lock = lock_of(extent, libc::F_RDLCK);
    // SAFETY: our own descriptor and a complete flock.
    match unsafe { libc::fcntl(copy.as_raw_fd(), libc::F_OFD_SETLK, &lock) } {
        0 => Ok(copy),
        _ => Err(failed),
    }
}

/// The range an exported descriptor stands for; `INVALID_VALUE` for any other descriptor.
pub fn exported(fd: i32) -> Result<(OwnedFd, u64, Label), CudaError> {
    let invalid = CudaError::INVALID_VALUE;
    // SAFETY: system calls on a number that may or may not be a descriptor; results are checked.
    let (copy, offset) = unsafe {
        let copy = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3);
        if copy < 0 {
            return Err(invalid);
        }
        let copy = OwnedFd::from_raw_fd(copy);
        let offset = libc::lseek(copy.as_raw_fd(), 0, libc::SEEK_CUR);
        (copy, u64::try_from(offset).map_err(|_| invalid)?)
    };
    if !offset.is_multiple_of(GRANULE) || offset >= LABELS {
        return Err(invalid);
    }
    let file = File::from(copy);
    let mut words = [0u8; 32];
    file.read_exact_at(&mut words, label_at(offset))
        .map_err(|_| invalid)?;
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| words[at + i]));
    if word(0) != LABEL_MAGIC {
        return Err(invalid);
    }
    let label = Label {
        bytes: word(8),
        uuid: std::array::from_fn(|i| words[16 + i]),
    };
    Ok((file.into(), offset, label))
}

fn sparse_file() -> Option<File> {
    // SAFETY: system calls without memory of ours but a constant name; results are checked.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        // Beyond this limit the kernel would kill the program.
        if libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) != 0 || limit.rlim_cur < FILE_BYTES as u64 {
            return None;
        }
        let fd = libc::memfd_create(c"stint-sim-memory".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return None;
        }
        let file = File::from_raw_fd(fd);
        (libc::ftruncate(fd, FILE_BYTES) == 0).then_some(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_held_while_a_descriptor_of_it_lives() {
        let vram = Vram::empty(None, 0);
        let extent = vram.take(1).expect("room");
        assert_eq!(extent.bytes, GRANULE);
        let label = Label {
            bytes: extent.bytes,
            uuid: [7; 16],
        };
        let descriptor = vram.export(extent, label).expect("export");
        assert!(vram.is_held(extent));
        let (import, offset, said) = exported(descriptor.as_raw_fd()).expect("import");
        assert_eq!((offset, said), (extent.offset, label));
        drop(descriptor);
        vram.give(extent);
        assert!(!vram.collect(), "the import still holds it");
        drop(import);
        assert!(vram.collect());
    }

    #[test]
    fn a_foreign_descriptor_is_no_memory() {
        let file = File::open("/dev/null").expect("null");
        assert_eq!(exported(file.as_raw_fd()).err(), Some(CudaError::INVALID_VALUE));
        assert_eq!(exported(-1).err(), Some(CudaError::INVALID_VALUE));
    }
}
