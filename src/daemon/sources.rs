//! What wakes the event loop (`core.rs`): each source has a number, by which it is told from the others.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll;

use super::core::Core;
use crate::admission::admin::Admin;
use crate::device::child::Supervisor;

/// What a round of the loop can be woken by; connections have numbers from [`FIRST_CONNECTION`].
pub const ATTACH: u64 = 0;
pub const ADMIN: u64 = 1;
pub const BELL: u64 = 2;
pub const LIVES: u64 = 3;
pub const DEVICE: u64 = 4;
pub const STOP: u64 = 5;
pub const KEEPER: u64 = 6;
pub const NAMES: u64 = 8;
pub const GROUPS: u64 = 9;
pub const QUOTA: u64 = 7;
pub const HANGUP: u64 = 10;
pub const FIRST_CONNECTION: u64 = 16;

impl Core {
    /// Listens to everything that is there from the beginning.
    pub fn listen(&self) -> rustix::io::Result<()> {
        let readable = epoll::EventFlags::IN;
        let add = |source: &dyn AsFd, token| {
            epoll::add(
                &self.epoll,
                source.as_fd(),
                epoll::EventData::new_u64(token),
                readable,
            )
        };
        add(&self.attach_listener, ATTACH)?;
        add(&self.admin_listener, ADMIN)?;
        add(&self.bell.ready(), BELL)?;
        add(&self.lives, LIVES)?;
        add(&self.stop, STOP)?;
        add(&self.users.ready(), NAMES)?;
        add(&self.groups.ready(), GROUPS)?;
        self.listen_to_device();
        self.listen_to_keeper();
        Ok(())
    }

    /// Listens for the end of the keeper.
    pub fn listen_to_keeper(&self) {
        let Some(socket) = self.store.socket() else { return };
        let data = epoll::EventData::new_u64(KEEPER);
        if let Err(error) = epoll::add(&self.epoll, socket, data, epoll::EventFlags::IN) {
            tracing::error!(%error, "the keeper cannot be listened to");
        }
    }

    pub fn listen_to_device(&self) {
        let Some(socket) = self.device.as_ref().and_then(Supervisor::socket) else {
            return;
        };
        let data = epoll::EventData::new_u64(DEVICE);
        if let Err(error) = epoll::add(&self.epoll, socket, data, epoll::EventFlags::IN) {
            tracing::error!(%error, "the device child cannot be listened to");
        }
    }

    /// Puts a connection's socket into the loop and returns its number.
    pub fn enroll(&mut self, socket: impl AsFd) -> rustix::io::Result<u64> {
        let token = self.next_token;
        self.next_token += 1;
        epoll::add(
            &self.epoll,
            socket,
            epoll::EventData::new_u64(token),
            epoll::EventFlags::IN,
        )?;
        Ok(token)
    }
}

/// Asks to be woken when a caller reads as long as something is kept for it, else when it asks something.
pub fn mind_unsent(loop_epoll: &OwnedFd, token: u64, admin: &Admin) {
    let flags = match admin.has_unsent() {
        true => epoll::EventFlags::OUT,
        false => epoll::EventFlags::IN,
    };
    if let Err(error) = epoll::modify(
        loop_epoll,
        admin.socket(),
        epoll::EventData::new_u64(token),
        flags,
    ) {
        tracing::warn!(%error, "a caller cannot be listened to");
    }
}
