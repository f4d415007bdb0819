//! Hellos: a process asks to become a client. What it is comes from the kernel, where it belongs from `identity.rs`; it gets
//! a slot and the objects of its account.

use std::os::fd::OwnedFd;
use std::time::{Instant, SystemTime};

use ledger::Owner;
use ledger::wire::{Hello, Status, flags};

use super::core::{Core, Seat};
use super::peers::{Unidentified, billed_to};
use super::sockets;
use super::step::step;
use crate::admission::attach::{Attach, Greeted, Step};
use crate::admission::identity::{Belongs, Place, Verdict, place_of};
use crate::admission::process::{self, Identity};
use crate::enforce::EnforceError;
use crate::state::{Client, ClientId, Event};

/// Connections taken in one round, so that deaths are looked at in between.
const AT_ONCE: usize = 64;
/// Slots one process may have. One that executes another program leaves the slot of the former; more than one at a time has
/// only who says so without having done it.
const MOST_OF_A_PROCESS: usize = 8;
/// Silent connections one user may have; a fresh one beyond is hung up on.
const MOST_SILENT: usize = 64;

/// Why a process was turned away: what its shim is told, and what the log says.
struct Denied {
    status: Status,
    reason: &'static str,
    message: String,
}

impl Core {
    pub fn accept_attaches(&mut self) {
        if !self.may_accept() {
            return;
        }
        for _ in 0..AT_ONCE {
            let socket = match sockets::accept_attach(&self.attach_listener) {
                Ok(Some(socket)) => socket,
                Ok(None) => return,
                Err(error) => return self.deafen(&error),
            };
            let mut attach = Attach::new(socket, Instant::now());
            // A shim says hello at once: most connections never enter the loop.
            match attach.step(self.peer_identity) {
                Step::Wait => {
                    // By the number it has on the socket a user could be many, in a user namespace.
                    attach.user = attach.peer().and_then(|peer| billed_to(peer.pid));
                    self.make_room_for(&attach);
                    match self.enroll(attach.socket()) {
                        Ok(token) => drop(self.attaches.insert(token, attach)),
                        Err(error) => tracing::warn!(%error, "a client cannot be listened to"),
                    }
                }
                step => self.answer_attach(attach, step),
            }
        }
    }

    /// Ends the oldest silent connection of the user behind `attach` where there are as many as there may be: a
    /// newcomer may be a shim whose hello is on its way.
    fn make_room_for(&mut self, attach: &Attach) {
        let of_user = |(_, other): &(&u64, &Attach)| other.user == attach.user;
        let mut silent = self.attaches.iter().filter(of_user).map(|(&token, _)| token);
        // Tokens only rise.
        if let (Some(oldest), MOST_SILENT..) = (silent.next(), 1 + silent.count()) {
            // It may have said something meanwhile.
            self.step_attach(oldest);
            self.attaches.remove(&oldest);
        }
    }

    pub fn step_attach(&mut self, token: u64) {
        let Some(mut attach) = self.attaches.remove(&token) else {
            return;
        };
        match attach.step(self.peer_identity) {
            Step::Wait => drop(self.attaches.insert(token, attach)),
            step => self.answer_attach(attach, step),
        }
    }

    fn answer_attach(&mut self, attach: Attach, step: Step) {
        match step {
            Step::Wait | Step::Close => {}
            Step::Refuse(protocol, status) => {
                let _ = attach.reply(protocol, status, &[], &[]); // whoever does not listen is not told
            }
            Step::Greeted(greeted) => self.admit(attach, greeted),
        }
    }

    /// Answers a hello. One whose user's name is not known yet is parked.
    pub fn admit(&mut self, attach: Attach, greeted: Greeted) {
        // What the dead held is back before anybody is admitted.
        self.reap();
        let (hello, pid) = (greeted.hello, greeted.pid);
        let (peer, image) = match self.identify(pid, &greeted.pidfd) {
            Ok(found) => found,
            Err(Unidentified::Ended) => return,
            Err(Unidentified::Asked) => return self.park(attach, greeted),
            Err(Unidentified::Failed(error)) => {
                let message = format!("this host's list of users: {error}");
                return self.turn_away(&attach, &greeted, message);
            }
        };
        let user = peer.user.clone();
        let Verdict { belongs, notes } = place_of(&self.config, &self.launches, &peer, SystemTime::now());
        self.note(notes);
        let place = match belongs {
            Belongs::To(place) => Ok(place),
            Belongs::Unmanaged => {
                // Seen among those that are nobody's clients once it holds a device.
                let _ = attach.reply(hello.protocol, Status::Unmanaged, &[], &[]); // it has gone, or asks again
                return;
            }
            Belongs::Nowhere => Err(Denied {
                status: Status::Denied,
                reason: "unknown",
                message: format!("user {user} matches no tenant, and [node] unknown = \"refuse\""),
            }),
        };
        if let Some(head) = self.launches.head_of(&peer) {
            self.heads.insert(peer.identity, head);
        }
        let observes = hello.flags & flags::OBSERVER != 0;
        let place = place.and_then(
            |place| match self.closed_to(&peer, Some(image)).filter(|_| !observes) {
                None => Ok(place),
                Some(message) => Err(Denied {
                    status: Status::Denied,
                    reason: "drained",
                    message,
                }),
            },
        );
        let asked = place.as_ref().ok().map(|place| place.account.clone());
        let seated = place.and_then(|place| {
            let owner = Owner {
                pid,
                start_time: peer.identity.start_time,
                nonce: hello.nonce,
            };
            self.seat(&hello, owner, image, place, &user, greeted.pidfd)
        });
        step("admit: reply");
        let sent = match seated {
            Ok((account, slot)) => match self.ledgers.objects(&account, slot) {
                Some((entries, fds)) => attach.reply(hello.protocol, Status::Admitted, &entries, &fds),
                None => attach.reply(hello.protocol, Status::Failed, &[], &[]),
            },
            Err(Denied {
                status,
                reason,
                message,
            }) => {
                self.apply(Event::Denied {
                    pid,
                    user,
                    reason,
                    message,
                });
                // It may have been made for this one.
                asked.into_iter().for_each(|account| self.settle(&account));
                attach.reply(hello.protocol, status, &[], &[])
            }
        };
        if let Err(error) = sent {
            // It has gone, or will try again; its end is seen by its descriptor.
            tracing::debug!(pid, %error, "no reply could be sent");
        }
        step("admit: replied");
    }

    /// Refuses a process whose user cannot be told.
    pub fn turn_away(&mut self, attach: &Attach, greeted: &Greeted, message: String) {
        self.apply(Event::Denied {
            pid: greeted.pid,
            user: greeted.uid.to_string(),
            reason: "identity",
            message,
        });
        let _ = attach.reply(greeted.hello.protocol, Status::Identity, &[], &[]); // it has gone
    }

    /// Finds the slot of a client, or makes one. An observer has none.
    fn seat(
        &mut self,
        hello: &Hello,
        owner: Owner,
        image: [u64; 3],
        place: Place,
        user: &str,
        pidfd: OwnedFd,
    ) -> Result<(String, Option<ledger::SlotIndex>), Denied> {
        let process = Identity {
            pid: owner.pid,
            start_time: owner.start_time,
        };
        if let Some(seat) = self
            .seats_of(process)
            .map(|(_, seat)| seat)
            .find(|seat| seat.owner.nonce == owner.nonce)
        {
            // The same program again: its reply was lost, or it has the shim twice.
            let slot = (hello.flags & flags::OBSERVER == 0).then_some(seat.slot);
            return Ok((seat.account.clone(), slot));
        }
        self.leave_if_executed(process);
        self.reap();
        if self.seats_of(process).count() >= MOST_OF_A_PROCESS {
            return Err(Denied {
                status: Status::NoSlot,
                reason: "slot",
                message: format!("the process has {MOST_OF_A_PROCESS} slots, as many as one may have"),
            });
        }
        let closed = self.ledgers.why_closed(&place.account).is_some();
        self.ensure_open(&place).map_err(|failure| Denied {
            status: if closed {
                Status::Predecessor
            } else {
                Status::Denied
            },
            reason: if closed { "predecessor" } else { "guarantee" },
            message: failure.message,
        })?;
        let failed = |reason, message| Denied {
            status: Status::Failed,
            reason,
            message,
        };
        let account = place.account;
        if hello.flags & flags::OBSERVER != 0 {
            let unwatched = |error| failed("watch", format!("its end cannot be watched: {error}"));
            self.observe(process, &account, pidfd).map_err(unwatched)?;
            return Ok((account, None));
        }
        let no_slot = |error: EnforceError| Denied {
            status: if matches!(error, EnforceError::NoSlot { .. }) {
                Status::NoSlot
            } else {
                Status::Failed
            },
            reason: "slot",
            message: error.to_string(),
        };
        let slot = self.ledgers.free_slot(&account).map_err(no_slot)?;
        // Recorded before the slot is its own: from the reply on it may hold memory.
        let key = self
            .record_client(&account, slot, &owner, image, user)
            .map_err(|error| failed("record", error))?;
        if let Err(error) = self.ledgers.claim(&account, slot, &owner) {
            self.record.remove(key);
            return Err(no_slot(error));
        }
        step("admit: claimed");
        let seat = Seat {
            owner,
            account: account.clone(),
            slot,
            image,
            going: None,
        };
        let identity = seat.identity();
        let id = ClientId(self.next_client);
        self.next_client += 1;
        let command = process::command(owner.pid);
        let mut client = Client::new(identity, &account, slot, command, user.into());
        client.shim = version_in(&hello.build);
        self.seats.insert(id, seat);
        self.apply(Event::Admitted { id, client });
        if let Err(error) = self.watch(identity, pidfd) {
            self.unseat(id);
            return Err(failed("watch", format!("its end cannot be watched: {error}")));
        }
        Ok((account, Some(slot)))
    }

    /// Remembers who looks at an account that would go with its last client.
    fn observe(&mut self, process: Identity, account: &str, pidfd: OwnedFd) -> rustix::io::Result<()> {
        if self.places.get(account).is_some_and(|place| place.passing) {
            self.watch(process, pidfd)?;
            self.observers.insert(process, account.into());
        }
        Ok(())
    }

    /// The seats of a process: more than one only as long as it is not clear whether it executed another program.
    fn seats_of(&self, process: Identity) -> impl Iterator<Item = (&ClientId, &Seat)> {
        self.seats
            .iter()
            .filter(move |(_, seat)| seat.identity() == process)
    }

    /// Takes back a seat its process was never told of.
    fn unseat(&mut self, id: ClientId) {
        if let Some(seat) = self.seats.get_mut(&id) {
            seat.going = Some("not admitted after all");
        }
    }
}

/// The version a shim said it is, as far as it is text.
fn version_in(build: &[u8]) -> Option<String> {
    let end = build.iter().position(|byte| *byte == 0).unwrap_or(build.len());
    let text = std::str::from_utf8(&build[..end]).ok()?;
    let printable = !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
    printable.then(|| text.to_string())
}
