//! The library a front end was loaded as: where it lies says which server belongs to it.
//!
//! Next file of the walk: `client/connect.rs`.

use crate::client::Place;
use driver::run_dir;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The node of this process, and the server to start if none runs.
pub fn place() -> Place {
    Place {
        socket: run_dir::of_sim().join(run_dir::SIM_SOCKET),
        server: own_file().and_then(|library| server_of(&library)),
    }
}

/// The file this code was loaded from, if it is a library of the stand-in and not a test.
fn own_file() -> Option<PathBuf> {
    let code = own_file as *const c_void as u64;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let path = maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let range = u64::from_str_radix(from, 16).ok()?..u64::from_str_radix(to, 16).ok()?;
        range
            .contains(&code)
            .then(|| rest.find('/').map(|at| PathBuf::from(&rest[at..])))?
    })?;
    let name = path.file_name()?.to_string_lossy();
    name.contains(".so").then_some(path)
}

/// The stand-in's server beside the library: `lib/libcuda.so.1` of a profile, two levels above `bin/`.
fn server_of(library: &Path) -> Option<PathBuf> {
    let server = library.parent()?.parent()?.parent()?.join("bin/stint-sim");
    server.exists().then_some(server)
}

/// A panic is answered with an error code; inside somebody's program it must not print. Tests of our own
/// keep their messages.
pub fn silence_panics() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if own_file().is_some() && !DONE.swap(true, Ordering::Relaxed) {
        std::panic::set_hook(Box::new(|_| {}));
    }
}
