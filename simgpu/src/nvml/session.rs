//! Between `nvmlInit` and `nvmlShutdown`: the connection to the node, shared by all threads.

use super::Nvml;
use crate::client::{Observer, Place};
use crate::own_library;
use driver::nvml::*;
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
        begin(&own_library::place())
    }

    pub unsafe fn nvmlInit_v2() -> NvmlResult {
        begin(&own_library::place())
    }

    pub unsafe fn nvmlInitWithFlags(flags: c_uint) -> NvmlResult {
        if flags & !KNOWN_FLAGS != 0 {
            return Err(NvmlError::INVALID_ARGUMENT);
        }
        begin(&own_library::place())
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
    let own = connect(&own_library::place())?;
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
    own_library::silence_panics();
    Observer::connect(place)
        .map(Arc::new)
        .map_err(|_| NvmlError::DRIVER_NOT_LOADED)
}
