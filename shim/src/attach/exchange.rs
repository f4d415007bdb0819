//! The conversation with the daemon, which the twin has too: `ledger/src/attach.rs`.
//!
//! Next: `attach/objects.rs`, which maps what the descriptors hold.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use driver::run_dir::ATTACH_SOCKET;
use ledger::attach;
use ledger::wire::{Status, flags};

use crate::attach::objects::{self, Admitted};

/// Asks the node of `run_dir` to admit this process. `None` when no daemon answered in time; accounts come only with
/// [`Status::Admitted`].
pub fn ask(run_dir: &Path, nonce: u64, forked: bool) -> Option<(Status, Vec<Admitted>)> {
    let path = run_dir.join(ATTACH_SOCKET);
    let hello = attach::hello(nonce, if forked { flags::FORKED } else { 0 });
    let mut objects = Vec::new();
    let status = attach::ask(path.as_os_str().as_bytes(), &hello, |entry, descriptor| {
        objects.push((entry, descriptor));
        true
    })?;
    if status != Status::Admitted {
        return Some((status, Vec::new()));
    }
    // Objects we cannot map are a refusal: to go on without them would be to go on uncapped.
    Some(match objects::map(objects) {
        Some(accounts) => (Status::Admitted, accounts),
        None => (Status::Failed, Vec::new()),
    })
}
