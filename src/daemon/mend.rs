//! The run directory can be emptied behind our back (`rm -r`, a tmpfiles rule). Clients do not notice; newcomers would find
//! nobody and the next daemon nothing. So it is made anew, with everything that was in it.

use rustix::event::epoll;

use super::core::Core;
use super::sockets;
use super::sources::{ADMIN, ATTACH};
use crate::exit::Failure;
use crate::state::Event;

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
            Err(failure) => {
                let what = format!("the run directory was emptied: {failure}");
                // Tried once a second, told once.
                if self.unmended.replace(what.clone()).as_ref() != Some(&what) {
                    self.apply(Event::Fault { what });
                }
            }
        }
    }

    fn remake_run_dir(&mut self) -> Result<(), Failure> {
        let run_dir = self.run_dir.again().map_err(Failure::failed)?;
        run_dir
            .write_policy(self.config.node.absent)
            .map_err(Failure::failed)?;
        self.run_dir = run_dir;
        self.record.rewrite().map_err(Failure::failed)?;
        let attach = sockets::attach(&self.run_dir.attach_socket()).map_err(Failure::failed)?;
        let admin = sockets::admin(&self.run_dir.admin_socket()).map_err(Failure::failed)?;
        let readable = epoll::EventFlags::IN;
        epoll::add(&self.epoll, &attach, epoll::EventData::new_u64(ATTACH), readable)
            .map_err(Failure::failed)?;
        epoll::add(&self.epoll, &admin, epoll::EventData::new_u64(ADMIN), readable)
            .map_err(Failure::failed)?;
        // The former ones leave the loop as they are dropped.
        self.attach_listener = attach;
        self.admin_listener = admin;
        Ok(())
    }
}
