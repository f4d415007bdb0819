//! Callers of the admin socket: everybody may connect, the kernel says who each is and `admission/identity.rs` what that
//! allows. What they ask is in `answer.rs`; why the socket is open to all in docs/decisions/0006.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::sys::socket::{getsockopt, sockopt};

use super::answer::refused;
use super::core::Core;
use super::peers::Unidentified;
use crate::admission::admin::{Admin, Over, in_our_namespaces};
use crate::admission::identity::Peer;
use crate::admission::process::{self, Credentials};
use crate::exit::Failure;

/// Connections taken in one round.
const AT_ONCE: usize = 16;
/// Connections one user may have open. Root and the daemon's user have no bound.
const MOST_OF_A_USER: usize = 32;

/// Who asks.
pub struct Caller {
    /// Whom its clients are billed to.
    pub billed: Peer,
    /// The same, with the user it acted as when it connected: what it may do goes by that one.
    pub acting: Peer,
    pub pidfd: OwnedFd,
}

impl Core {
    pub fn accept_admins(&mut self) {
        if !self.may_accept() {
            return;
        }
        for _ in 0..AT_ONCE {
            let stream = match self.admin_listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(error) => return self.deafen(&error),
            };
            if let Err(error) = self.accept_admin(stream) {
                tracing::debug!(%error, "a caller was hung up on");
            }
        }
    }

    fn accept_admin(&mut self, stream: UnixStream) -> Result<(), Over> {
        let mut admin = Admin::new(stream)?;
        let Some(Credentials { pid, uid }) = admin.peer().filter(|peer| in_our_namespaces(peer.pid)) else {
            let why = "you are in another user or pid namespace than the node: ask from the host";
            return admin.send(&refused(Failure::not_permitted(why)));
        };
        // A look by number is about the caller only if it lives still.
        if descriptor_of(&admin, pid).is_none() {
            return Err(Over::HungUp);
        }
        let bounded = uid != 0 && uid != self.authority.daemon;
        let open = self
            .admins
            .values()
            .filter(|other| other.peer().is_some_and(|peer| peer.uid == uid));
        if bounded && open.count() >= MOST_OF_A_USER {
            return admin.send(&refused(Failure::failed(format!(
                "user {uid} has {MOST_OF_A_USER} connections to the daemon open, as many as it may have: close some"
            ))));
        }
        let token = self.enroll(admin.socket()).map_err(std::io::Error::from)?;
        self.admins.insert(token, admin);
        Ok(())
    }

    /// The process behind a connection, as the kernel tells it now.
    pub fn caller(&mut self, admin: &Admin) -> Result<Caller, Unidentified> {
        let Credentials { pid, uid } = admin.peer().ok_or(Unidentified::Ended)?;
        let pidfd = descriptor_of(admin, pid).ok_or(Unidentified::Ended)?;
        let (billed, _) = self.identify(pid, &pidfd)?;
        let acting = Peer {
            uid,
            ..billed.clone()
        };
        Ok(Caller {
            billed,
            acting,
            pidfd,
        })
    }
}

/// A descriptor for the process that connected, `pid`. Before Linux 6.5 it is opened by number: a caller that ended since
/// leaves a launch to whoever has its number now, with what the caller's user may ask for and no more.
fn descriptor_of(admin: &Admin, pid: u32) -> Option<OwnedFd> {
    match getsockopt(&admin.socket(), sockopt::PeerPidfd) {
        Ok(pidfd) => (!process::ended(pidfd.as_fd())).then_some(pidfd),
        Err(nix::errno::Errno::ENOPROTOOPT) => process::open(process::stat(pid)?.identity),
        Err(_) => None,
    }
}
