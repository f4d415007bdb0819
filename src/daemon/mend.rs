//! The run directory can be emptied behind our back (`rm -r`, a tmpfiles rule). Clients do not notice; newcomers would find
//! nobody and the next daemon nothing. So it is made anew, with everything that was in it.

use std::io;

use rustix::event::epoll;

use super::core::Core;
use super::run_dir::RunDirError;
use super::sockets;
use super::sources::{ADMIN, ATTACH};
use crate::exit::Failure;
use crate::state::Event;

/// Why the run directory is not made anew.
#[derive(Debug, thiserror::Error)]
enum Unmendable {
    /// Its place is, for us: `ProtectSystem=strict` leaves a service the directory itself and not the one above.
    #[error("the file system is read-only")]
    ReadOnly,
    #[error("{0}")]
    Failed(String),
}

impl From<RunDirError> for Unmendable {
    fn from(error: RunDirError) -> Unmendable {
        match error {
            RunDirError::Io { error, .. } if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                Unmendable::ReadOnly
            }
            error => Unmendable::Failed(error.to_string()),
        }
    }
}

fn failed(error: impl ToString) -> Unmendable {
    Unmendable::Failed(error.to_string())
}

impl Core {
    /// Makes the run directory anew where it is gone, in whole or in part.
    pub fn mend_run_dir(&mut self) {
        if self.run_dir.is_in_place() && self.record.is_in_place() {
            return;
        }
        match self.remake_run_dir() {
            Ok(()) => {
                self.unmended = None;
                self.apply(Event::State {
                    what: "the run directory was emptied and is made anew".into(),
                });
            }
            Err(Unmendable::ReadOnly) if !self.store.is_a_keepers() => {
                self.over = Some(Failure::failed(
                    "the run directory was removed, and systemd alone can make it anew: it starts another daemon, which takes over",
                ));
            }
            Err(failure) => {
                let what = format!("the run directory was emptied: {failure}");
                // Tried once a second, told once.
                if self.unmended.replace(what.clone()).as_ref() != Some(&what) {
                    self.apply(Event::Fault { what });
                }
            }
        }
    }

    fn remake_run_dir(&mut self) -> Result<(), Unmendable> {
        let run_dir = self.run_dir.again()?;
        run_dir.write_policy(self.config.node.absent)?;
        self.run_dir = run_dir;
        self.record.rewrite().map_err(failed)?;
        let attach = sockets::attach(&self.run_dir.attach_socket()).map_err(failed)?;
        let admin = sockets::admin(&self.run_dir.admin_socket()).map_err(failed)?;
        let readable = epoll::EventFlags::IN;
        epoll::add(&self.epoll, &attach, epoll::EventData::new_u64(ATTACH), readable).map_err(failed)?;
        epoll::add(&self.epoll, &admin, epoll::EventData::new_u64(ADMIN), readable).map_err(failed)?;
        // The former ones leave the loop as they are dropped.
        self.attach_listener = attach;
        self.admin_listener = admin;
        Ok(())
    }
}
