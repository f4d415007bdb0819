//! Those whose user's name is being looked up: a directory service may take seconds, and nobody else waits for it. They are
//! served when the answer comes, or turned away when it does not.

use std::time::Instant;

use rustix::event::epoll;

use super::answer::refused;
use super::core::Core;
use super::peers::{Unidentified, billed_to};
use super::sources::mind_unsent;
use crate::admission::attach::{Attach, Greeted, PATIENCE};
use crate::exit::Failure;
use crate::protocol::{Answer, Launched};

/// Parked hellos of one user; the oldest goes first.
const MOST_OF_A_USER: usize = 64;

/// A hello that waits.
#[derive(Debug)]
pub struct Parked {
    attach: Attach,
    greeted: Greeted,
    /// Whom it is counted to.
    user: Option<u32>,
    since: Instant,
}

/// Why a launch was not made.
pub enum Turned {
    /// To be tried again when names are known.
    Later,
    Down(Failure),
}

impl From<Failure> for Turned {
    fn from(failure: Failure) -> Turned {
        Turned::Down(failure)
    }
}

impl From<Unidentified> for Turned {
    fn from(why: Unidentified) -> Turned {
        match why {
            Unidentified::Asked => Turned::Later,
            other => Turned::Down(other.into()),
        }
    }
}

impl From<Unidentified> for Failure {
    fn from(why: Unidentified) -> Failure {
        match why {
            Unidentified::Ended => Failure::failed("the caller has ended"),
            Unidentified::Asked => no_answer(),
            Unidentified::Failed(error) => Failure::failed(format!("this host's list of users: {error}")),
        }
    }
}

fn no_answer() -> Failure {
    Failure::failed("this host's list of users (nsswitch.conf) does not answer: try again, or mend it")
}

impl Core {
    /// Keeps a hello until names are known.
    pub fn park(&mut self, attach: Attach, greeted: Greeted) {
        // It may be in the loop under a number nobody knows any more.
        let _ = epoll::delete(&self.epoll, attach.socket()); // most never were
        let user = billed_to(greeted.pid);
        let of_user = |parked: &Parked| parked.user == user;
        if self.parked.iter().filter(|parked| of_user(parked)).count() >= MOST_OF_A_USER
            && let Some(oldest) = self.parked.iter().position(of_user)
        {
            self.parked.remove(oldest);
        }
        self.parked.push(Parked {
            attach,
            greeted,
            user,
            since: Instant::now(),
        });
    }

    /// Names came: everybody who waited for one tries again.
    pub fn hear_names(&mut self) {
        self.users.take_answers();
        for Parked {
            attach,
            greeted,
            since,
            ..
        } in std::mem::take(&mut self.parked)
        {
            let known = self.parked.len();
            self.admit(attach, greeted);
            if let Some(again) = self.parked.get_mut(known) {
                again.since = since; // it needs another name
            }
        }
        let waiting = self.admins.iter().filter(|(_, admin)| admin.waits.is_some());
        for token in waiting.map(|(token, _)| *token).collect::<Vec<_>>() {
            self.try_again(token);
        }
    }

    fn try_again(&mut self, token: u64) {
        let Some(mut admin) = self.admins.remove(&token) else {
            return;
        };
        let Some((launch, since)) = admin.waits.take() else {
            return;
        };
        let sent = match self.launch(&admin, &launch) {
            Ok(launched) => admin.send(&Answer::<Launched>::Ok(launched)),
            Err(Turned::Down(failure)) => admin.send(&refused(failure)),
            Err(Turned::Later) => {
                admin.waits = Some((launch, since));
                Ok(())
            }
        };
        if sent.is_ok() {
            mind_unsent(&self.epoll, token, &admin);
            self.admins.insert(token, admin);
        }
    }

    /// Turns away those who have waited for too long.
    pub fn drop_overdue(&mut self, now: Instant) {
        let overdue = |since: Instant| now.duration_since(since) > PATIENCE;
        let (late, waiting) = std::mem::take(&mut self.parked)
            .into_iter()
            .partition(|parked: &Parked| overdue(parked.since));
        self.parked = waiting;
        for Parked { attach, greeted, .. } in late {
            self.turn_away(&attach, &greeted, no_answer().message);
        }
        for (token, admin) in &mut self.admins {
            let late = admin.waits.take_if(|(_, since)| overdue(*since));
            if late.is_some() && admin.send(&refused(no_answer())).is_ok() {
                mind_unsent(&self.epoll, *token, admin);
            }
        }
    }
}
