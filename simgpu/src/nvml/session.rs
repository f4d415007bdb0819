//! Between `nvmlInit` and `nvmlShutdown`: the connection to the node, shared by all threads.

use super::Nvml;
use crate::client::{Observer, Place};
use driver::nvml::*;
use driver::run_dir;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

struct Session {
    /// `nvmlInit`s that no `nvmlShutdown` has answered yet.
    users: u32,
    observer: Option<Arc<Observer>>,
}

static SESSION: Mutex<Session> = Mutex::new(Session {
    users: 0,
    observer: None,
});

/// `NVML_INIT_FLAG_NO_GPUS` and `NVML_INIT_FLAG_NO_ATTACH`: nothing is different with them here.
const KNOWN_FLAGS: c_uint = 3;

#[allow(non_snake_case)]
impl Nvml {
    pub unsafe fn nvmlInit() -> NvmlResult {
        begin(&place())
    }

    pub unsafe fn nvmlInit_v2() -> NvmlResult {
        begin(&place())
    }

    pub unsafe fn nvmlInitWithFlags(flags: c_uint) -> NvmlResult {
        if flags & !KNOWN_FLAGS != 0 {
            return Err(NvmlError::INVALID_ARGUMENT);
        }
        begin(&place())
    }

    pub unsafe fn nvmlShutdown() -> NvmlResult {
        end()
    }
}

/// Counts one more user; the first connects.
pub(super) fn begin(place: &Place) -> NvmlResult {
    let mut session = SESSION.lock().unwrap_or_else(PoisonError::into_inner);
    if session.users == 0 {
        session.observer = Some(connect(place)?);
    }
    session.users += 1;
    Ok(())
}

/// Counts one user less; the last disconnects, and the node may end.
pub(super) fn end() -> NvmlResult {
    let mut session = SESSION.lock().unwrap_or_else(PoisonError::into_inner);
    session.users = session.users.checked_sub(1).ok_or(NvmlError::UNINITIALIZED)?;
    if session.users == 0 {
        session.observer = None;
    }
    Ok(())
}

/// The connection; `UNINITIALIZED` without one. A forked child gets its own.
pub(super) fn current() -> Result<Arc<Observer>, NvmlError> {
    let mut session = SESSION.lock().unwrap_or_else(PoisonError::into_inner);
    let observer = session.observer.clone().ok_or(NvmlError::UNINITIALIZED)?;
    if !observer.forked() {
        return Ok(observer);
    }
    let own = connect(&place())?;
    session.observer = Some(own.clone());
    Ok(own)
}

/// The code that a configured fault has this call return. None before there is a connection.
pub(super) fn fault(function: &str) -> Option<u32> {
    let session = SESSION.lock().unwrap_or_else(PoisonError::into_inner);
    let observer = session.observer.clone()?;
    drop(session);
    observer.fault(function)
}

fn connect(place: &Place) -> Result<Arc<Observer>, NvmlError> {
    silence_panics();
    Observer::connect(place)
        .map(Arc::new)
        .map_err(|_| NvmlError::DRIVER_NOT_LOADED)
}

/// Where the node is, and the server to start if none runs: the one installed with this library.
pub(crate) fn place() -> Place {
    let socket = run_dir::of_sim().join(run_dir::SIM_SOCKET);
    Place {
        socket,
        server: own_file().and_then(|file| server_beside(&file)),
    }
}

/// `DIR/../../bin/stint-sim` for a library in `DIR`, as artefacts and packages lay it out.
fn server_beside(library: &Path) -> Option<PathBuf> {
    let file = library.canonicalize().ok()?;
    let server = file.parent()?.parent()?.parent()?.join("bin/stint-sim");
    server.exists().then_some(server)
}

/// A panic becomes `UNKNOWN`; inside somebody's program it must not print. Our own tests keep their messages.
fn silence_panics() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if own_file().is_some() && !DONE.swap(true, Ordering::Relaxed) {
        std::panic::set_hook(Box::new(|_| {}));
    }
}

/// The library this code was loaded from; `None` in a program that holds it itself.
fn own_file() -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    let here = own_file as *const libc::c_void;
    // SAFETY: `info` is writable, and its fields are only read when the call says it filled them.
    let name = unsafe {
        if libc::dladdr(here, info.as_mut_ptr()) == 0 {
            return None;
        }
        info.assume_init().dli_fname
    };
    if name.is_null() {
        return None;
    }
    // SAFETY: a C string that lives as long as this object is loaded.
    let name = unsafe { CStr::from_ptr(name) };
    let path = PathBuf::from(OsStr::from_bytes(name.to_bytes()));
    let is_library = path.file_name()?.to_string_lossy().contains(".so");
    is_library.then_some(path)
}
