//! How a process joins its node: once, at the first call that needs the device, in at most two seconds. Afterwards no
//! descriptor is kept and the daemon is not needed.
//!
//! Next: `attach/exchange.rs`, the conversation; then `books.rs`, what came of it.

mod exchange;
mod objects;

pub use objects::Admitted;

use core::ffi::c_int;
use core::sync::atomic::Ordering::{Acquire, Release};

use driver::{CudaError, Driver, StreamApi, run_dir};
use ledger::wire::Status;
use rustix::thread::futex;

use crate::books::Books;
use crate::guard::Otherwise;
use crate::process::{ATTACHED, ATTACHING, FREE, PROCESS, REFUSED, UNDECIDED};

/// The books of this process; attaches if that was not decided yet and the driver is in use.
///
/// # Errors
/// See [`crate::guard::Call::books`].
pub fn books(driver: &Driver) -> Result<&'static Books, Otherwise> {
    let phase = match PROCESS.phase.load(Acquire) {
        UNDECIDED | ATTACHING if is_initialised(driver) => join(),
        phase => phase,
    };
    match phase {
        ATTACHED => PROCESS.books().ok_or(Otherwise::Forward),
        REFUSED => Err(Otherwise::Fail(CudaError::SYSTEM_NOT_READY)),
        _ => Err(Otherwise::Forward),
    }
}

/// The books of this process, if it is attached.
pub fn attached() -> Option<&'static Books> {
    (PROCESS.phase.load(Acquire) == ATTACHED).then(|| PROCESS.books())?
}

/// `cuInit`: joins the node before the driver is initialised, so that a refused process never touches the device.
///
/// # Errors
/// `CUDA_ERROR_SYSTEM_NOT_READY` where the node refuses; asked again at the next call.
pub fn at_init() -> Result<(), CudaError> {
    match PROCESS.phase.load(Acquire) {
        ATTACHED | FREE => Ok(()),
        _ if join() == REFUSED => Err(CudaError::SYSTEM_NOT_READY),
        _ => Ok(()),
    }
}

/// A process that does not use the driver, or a child that may not (forked after initialisation), does not attach.
fn is_initialised(driver: &Driver) -> bool {
    let mut count: c_int = 0;
    // SAFETY: the driver writes one int.
    unsafe { driver.cuDeviceGetCount(StreamApi::Legacy, &mut count) }.is_ok()
}

/// Decides for this process, or waits for the thread that does: the one place where a thread waits for another.
fn join() -> u32 {
    loop {
        let seen = PROCESS.phase.load(Acquire);
        match seen {
            ATTACHED | FREE => return seen,
            ATTACHING => {
                // An error, an early return, a change meanwhile: look again.
                let _ = futex::wait(&PROCESS.phase, futex::Flags::PRIVATE, ATTACHING, None);
                let now = PROCESS.phase.load(Acquire);
                if now != ATTACHING {
                    return now;
                }
            }
            undecided => {
                let taken = PROCESS
                    .phase
                    .compare_exchange(undecided, ATTACHING, Acquire, Acquire);
                if taken.is_ok() {
                    let mut turn = Turn(undecided);
                    turn.0 = decide();
                    return turn.0;
                }
            }
        }
    }
}

/// The right to decide: whatever happens, the phase becomes something else and the others are woken.
struct Turn(u32);

impl Drop for Turn {
    fn drop(&mut self) {
        PROCESS.phase.store(self.0, Release);
        let _ = futex::wake(&PROCESS.phase, futex::Flags::PRIVATE, u32::MAX >> 1);
    }
}

fn decide() -> u32 {
    let Some(run_dir) = run_dir::of_shim() else {
        return FREE;
    };
    let forked = PROCESS.is_forked();
    if PROCESS.wipe_on_fork().is_err() {
        return REFUSED;
    }
    match exchange::ask(&run_dir, PROCESS.nonce(), forked) {
        Some((Status::Admitted, accounts)) => {
            PROCESS.open_books(Books::new(accounts));
            ATTACHED
        }
        Some((Status::Unmanaged, _)) => FREE,
        Some(_) => REFUSED,
        None if run_dir::absent_may_run(&run_dir) => FREE,
        None => REFUSED,
    }
}
