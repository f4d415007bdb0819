//! What ends: clients whose process ended or executed another program, and heads of launches.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::{Timespec, epoll};

use super::core::{Core, Seat};
use super::peers::billed_to;
use super::record::Key;
use super::sources::FIRST_CONNECTION;
use super::step::step;
use crate::admission::process::{self, Identity};
use crate::state::{ClientId, Event};

impl Core {
    /// Watches for the end of a process. Does nothing if it is watched already.
    pub fn watch(&mut self, identity: Identity, pidfd: OwnedFd) -> rustix::io::Result<()> {
        if self.watched.values().any(|(watched, _)| *watched == identity) {
            return Ok(());
        }
        let token = self.next_token;
        self.next_token += 1;
        epoll::add(
            &self.lives,
            &pidfd,
            epoll::EventData::new_u64(token),
            epoll::EventFlags::IN,
        )?;
        self.watched.insert(token, (identity, pidfd));
        Ok(())
    }

    /// Takes in every end that has happened by now. Called before anything else in a round, and before every admission.
    pub fn reap(&mut self) {
        let mut ended = Vec::with_capacity(256);
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        loop {
            ended.clear();
            let found = epoll::wait(
                &self.lives,
                rustix::buffer::spare_capacity(&mut ended),
                Some(&now),
            );
            if !matches!(found, Ok(found) if found > 0) {
                break;
            }
            for event in &ended {
                // Dropping the descriptor takes it out of `lives`.
                let token = { event.data }.u64();
                debug_assert!(token >= FIRST_CONNECTION);
                if let Some((identity, _pidfd)) = self.watched.remove(&token) {
                    self.ended(identity);
                }
            }
        }
        self.vacate_going();
    }

    fn ended(&mut self, identity: Identity) {
        for seat in self.seats.values_mut().filter(|seat| seat.identity() == identity) {
            seat.going = Some("ended");
        }
        if let Some(account) = self.observers.remove(&identity) {
            self.settle(&account);
        }
        if let Some(place) = self.launches.remove(identity) {
            self.record.remove(Key::Launch(identity));
            self.count_launches(&place.account);
            self.settle(&place.account);
        }
    }

    /// Gives back what those on their way out held. One whose account is being disturbed stays for the next round.
    fn vacate_going(&mut self) {
        if self.sabotage.reclaim {
            return;
        }
        let going: Vec<_> = self
            .seats
            .iter()
            .filter_map(|(id, seat)| Some((*id, seat.clone(), seat.going?)))
            .collect();
        for (id, seat, why) in going {
            let mut posted = Vec::new();
            step("reclaim: vacate");
            let vacated = self.ledgers.vacate(&seat.account, seat.slot, &mut posted);
            self.take_posted(&seat.account, &mut posted);
            match vacated {
                Ok(vacated) => {
                    // Last counts of the slot, before it is forgotten.
                    self.apply(Event::Left {
                        id,
                        why,
                        released: vacated.released,
                        corrupt: vacated.corrupt,
                    });
                    self.seats.remove(&id);
                    if let Some(number) = self.ledgers.number(&seat.account) {
                        self.record.remove(Key::Client(number, seat.slot));
                    }
                    self.settle(&seat.account);
                }
                Err(error) => tracing::debug!(%error, "recovery is tried again"),
            }
        }
    }

    /// Clients whose process executed another program without attaching again. Their image has changed, and they map the
    /// account no more.
    pub fn look_for_executed(&mut self) {
        let changed = |seat: &Seat| {
            let stat = process::stat(seat.owner.pid)?;
            (stat.identity == seat.identity() && stat.image != seat.image).then_some(stat.identity)
        };
        let changed: BTreeSet<Identity> = self.seats.values().filter_map(changed).collect();
        for process in changed {
            self.leave_if_executed(process);
        }
        self.vacate_going();
    }

    /// Marks those clients of a process as going whose account it maps no more. A process that still does has not executed
    /// anything, whatever it says. It is looked at once for all of them, and not
    /// now where its user had too much looked at lately (`looks.rs`).
    pub fn leave_if_executed(&mut self, process: Identity) {
        let of_process: Vec<(ClientId, Inodes)> = self
            .seats
            .iter()
            .filter(|(_, seat)| seat.identity() == process)
            .map(|(id, seat)| (*id, self.ledgers.inodes(&seat.account)))
            .collect();
        if of_process.is_empty() {
            return;
        }
        let all: Inodes = of_process
            .iter()
            .flat_map(|(_, inodes)| inodes)
            .copied()
            .collect();
        let now = Instant::now();
        let Some(user) = billed_to(process.pid).filter(|user| self.looks.may(*user, now)) else {
            return;
        };
        let mapped = process::mapped(process.pid, &all).map(|(mapped, bytes)| {
            self.looks.took(user, bytes, now);
            mapped
        });
        for (id, inodes) in of_process {
            let Some(seat) = self.seats.get_mut(&id) else {
                continue;
            };
            let gone = if inodes.is_empty() {
                // Its objects are lost: all there is to go by is what the process looks like.
                process::stat(process.pid).is_some_and(|stat| stat.image != seat.image)
            } else {
                mapped
                    .as_ref()
                    .is_some_and(|mapped| !inodes.iter().any(|inode| mapped.contains(inode)))
            };
            if gone {
                seat.going = Some("executed another program");
            }
        }
    }
}

/// Device and inode of each object of an account.
type Inodes = Vec<(u64, u64)>;
