//! An explicit-state checker of the real step functions: every interleaving of {operate, help, kill, recover, kill the
//! recoverer, change the cap} over two or three clients, one shared-memory access at a time, states visited once.
//!
//! It explores sequentially consistent memory; what weaker memory may do is the business of `models.rs`. Sabotaged
//! variants show that each of the algorithm's precautions is needed, and that the checker sees it when one is missing.

mod runs;
mod world;

use crate::operation::{Operation, Outcome, Point, charge_in, pending_of, state_of, used_in, word_of};
use crate::recovery::{Ended, Recovery};
use crate::small::{Small, slot};
use crate::sync::{AtomicU64, Ordering::Relaxed};
use std::collections::HashSet;
use world::{DaemonState, Doing, Lie, Model, PATIENT, Sabotage, Verdict, World};

struct Checker {
    model: Model,
    small: Small,
    visited: HashSet<u128>,
    stack: Vec<World>,
    points: HashSet<(bool, Point)>,
}

impl Checker {
    fn explore(model: Model) -> Result<Checker, String> {
        let small = Small::new(model.clients + 1, model.cap, model.operations);
        let first = World::new(&model);
        let mut checker = Checker {
            model,
            small,
            visited: HashSet::new(),
            stack: vec![first],
            points: HashSet::new(),
        };
        while let Some(world) = checker.stack.pop() {
            if checker.visited.insert(world.fingerprint()) {
                checker.successors(&world)?;
            }
        }
        Ok(checker)
    }

    fn successors(&mut self, world: &World) -> Verdict {
        let mut moved = false;
        for index in 0..self.model.clients {
            moved |= self.client_moves(world, index)?;
        }
        moved |= self.daemon_moves(world)?;
        if moved { Ok(()) } else { finished(world) }
    }

    fn push(&mut self, world: World) {
        self.stack.push(world);
    }

    fn client_moves(&mut self, world: &World, index: usize) -> Result<bool, String> {
        let client = &world.clients[index];
        if client.doing == Doing::Dead {
            return Ok(false);
        }
        let alive = client.next < self.model.sizes.len() || client.held > 0 || client.doing != Doing::Nothing;
        if world.kills > 0 && alive {
            let mut killed = world.clone();
            killed.kills -= 1;
            killed.clients[index].doing = Doing::Dead;
            self.push(killed);
        }
        let mut next = world.clone();
        match &client.doing {
            Doing::Nothing if alive => {
                let delta = match client.held {
                    0 => self.model.sizes[client.next] as i64,
                    held => -(held as i64),
                };
                let operation = Operation::new(slot(index as u32 + 1), delta, self.model.retries);
                let was_full = delta > 0 && used_in(world.word) + delta.unsigned_abs() > world.limit;
                next.clients[index].doing = Doing::Operating {
                    operation,
                    delta,
                    was_full,
                };
            }
            Doing::Operating { operation, delta, .. } => {
                self.operate(&mut next, index, *operation, *delta)?
            }
            _ => return Ok(false),
        }
        self.push(next);
        Ok(true)
    }

    fn operate(&mut self, next: &mut World, index: usize, mut operation: Operation, delta: i64) -> Verdict {
        self.points.insert((false, operation.point()));
        let outcome = self.step(next, &mut operation);
        next.observe(&self.small, index + 1)?;
        if let Doing::Operating {
            operation: registers, ..
        } = &mut next.clients[index].doing
        {
            *registers = operation;
        }
        let Some(outcome) = outcome else { return Ok(()) };
        let Doing::Operating { was_full, .. } = next.clients[index].doing else {
            return Ok(());
        };
        let client = &mut next.clients[index];
        client.doing = Doing::Nothing;
        match outcome {
            Outcome::Applied { .. } => {
                client.held = client.held.wrapping_add_signed(delta);
                client.next += usize::from(delta < 0);
                let charge = charge_in(next.cells[index + 1][0]);
                if charge != client.held || next.truth[index + 1] != client.held as i64 {
                    return Err(format!(
                        "client {index} holds {} and is charged {charge}",
                        client.held
                    ));
                }
            }
            Outcome::Refused { .. } if was_full => client.next += 1,
            Outcome::Contended if self.model.retries < PATIENT => client.next += usize::from(delta > 0),
            other => return Err(format!("client {index} got {other:?} for {delta}")),
        }
        Ok(())
    }

    /// One step of an operation on the shared memory of `world`, with the sabotage that concerns operations.
    fn step(&self, world: &World, operation: &mut Operation) -> Option<Outcome> {
        world.write_out(&self.small);
        let decoy = Small::new(1, 0, 0);
        let patience = self.model.retries == PATIENT;
        let point = operation.point();
        let outcome = match (self.model.sabotage, point) {
            (Sabotage::NoHelp, Point::Help) => {
                // The exchange succeeds, but somewhere else.
                let named = crate::operation::slot_in(world.word);
                let cells = &decoy.slots[0];
                cells.committed.store(world.cells[named.get()][3], Relaxed);
                operation.step(&Lie {
                    small: &self.small,
                    word: None,
                    cells: Some(cells),
                    other: named,
                })
            }
            (Sabotage::HastyRefusal, Point::ConfirmFull) => {
                operation.confirm_nothing(&decoy.word);
                operation.step(&Lie {
                    small: &self.small,
                    word: Some(&decoy.word),
                    cells: None,
                    other: slot(0),
                })
            }
            _ => operation.step(&self.small),
        };
        if patience {
            // Retries are unlimited here: the count must not tell states apart.
            operation.refill(PATIENT);
        }
        outcome
    }

    fn daemon_moves(&mut self, world: &World) -> Result<bool, String> {
        if world.daemon != DaemonState::Nothing && world.recoverer_kills > 0 {
            let mut killed = world.clone();
            killed.recoverer_kills -= 1;
            // A cap change that was cut short is made again by the next daemon.
            if matches!(world.daemon, DaemonState::Settling(_) | DaemonState::Fencing(_)) {
                killed.next_cap -= 1;
            }
            killed.daemon = DaemonState::Nothing;
            self.push(killed);
        }
        let mut next = world.clone();
        match world.daemon.clone() {
            DaemonState::Nothing => return Ok(self.daemon_begins(world)),
            DaemonState::Settling(mut recovery) => {
                world.write_out(&self.small);
                let ended = recovery.step(&self.small);
                next.observe(&self.small, 0)?;
                next.daemon = match ended {
                    None => DaemonState::Settling(recovery),
                    Some(_) => DaemonState::Fencing(Operation::new(slot(0), 0, self.model.retries)),
                };
            }
            DaemonState::Fencing(mut operation) => {
                let outcome = match self.model.sabotage {
                    Sabotage::NoFence => Some(Outcome::Applied { used: 0 }),
                    _ => self.step(world, &mut operation),
                };
                if self.model.sabotage != Sabotage::NoFence {
                    next.observe(&self.small, 0)?;
                }
                next.daemon = match outcome {
                    None => DaemonState::Fencing(operation),
                    Some(Outcome::Contended) => {
                        DaemonState::Fencing(Operation::new(slot(0), 0, self.model.retries))
                    }
                    Some(_) => {
                        next.in_force = next.limit;
                        DaemonState::Nothing
                    }
                };
            }
            DaemonState::Recovering {
                client,
                recovery,
                hint,
            } => self.recover(&mut next, client, recovery, hint)?,
            DaemonState::Subtracting {
                client,
                mut operation,
                charge,
            } => {
                // The prototype kept no charge for slot 0; here it borrows the dead slot's for the check in ReadState.
                next.cells[0][0] = state_of(charge, world.cells[0][0]);
                let outcome = self.step(&next.clone(), &mut operation);
                next.observe(&self.small, client + 1)?;
                next.cells[0][0] = state_of(0, next.cells[0][0]);
                next.daemon = match outcome {
                    None => DaemonState::Subtracting {
                        client,
                        operation,
                        charge,
                    },
                    Some(_) => DaemonState::Clearing { client },
                };
            }
            DaemonState::Clearing { client } => {
                let number = next.cells[client + 1][0];
                next.cells[client + 1][0] = state_of(0, number);
                next.cells[client + 1][1] = pending_of(0, number);
                next.cells[client + 1][2] = 0;
                self.vacated(&mut next, client, false)?;
            }
        }
        self.push(next);
        Ok(true)
    }

    /// Everything an idle daemon may begin: a cap change, the recovery of any dead client.
    fn daemon_begins(&mut self, world: &World) -> bool {
        let mut began = false;
        if let Some(cap) = self.model.caps.get(world.next_cap) {
            let mut next = world.clone();
            next.next_cap += 1;
            next.limit = *cap;
            next.daemon = DaemonState::Settling(Recovery::new(slot(0), self.model.retries));
            self.push(next);
            began = true;
        }
        for (client, state) in world.clients.iter().enumerate() {
            if state.doing == Doing::Dead {
                let mut next = world.clone();
                let recovery = Recovery::new(slot(client as u32 + 1), self.model.retries);
                next.daemon = DaemonState::Recovering {
                    client,
                    recovery,
                    hint: None,
                };
                self.push(next);
                began = true;
            }
        }
        began
    }

    fn recover(
        &mut self,
        next: &mut World,
        client: usize,
        mut recovery: Recovery,
        hint: Option<bool>,
    ) -> Verdict {
        let dead = slot(client as u32 + 1);
        self.points.insert((true, recovery.point()));
        let decoy = Small::new(1, 0, 0);
        let nowhere = AtomicU64::new(word_of(0, slot(0), u64::MAX));
        decoy.slots[0].committed.store(u64::MAX / 2, Relaxed);
        next.write_out(&self.small);
        let truthful = Lie {
            small: &self.small,
            word: None,
            cells: None,
            other: dead,
        };
        let blind = Lie {
            word: Some(&nowhere),
            ..truthful
        };
        let deaf = Lie {
            cells: Some(&decoy.slots[0]),
            ..truthful
        };
        let mut hint = hint;
        let table = match (self.model.sabotage, recovery.point()) {
            (Sabotage::IgnoreWord, Point::FindWord) => &blind,
            (Sabotage::IgnoreCommitted, Point::FindCommitted) => &deaf,
            (Sabotage::CommittedFirst, Point::FindState) => {
                let [_, pending, _, committed] = next.cells[client + 1];
                hint = Some(crate::operation::number_in(committed) == crate::operation::number_in(pending));
                &truthful
            }
            (Sabotage::CommittedFirst, Point::FindCommitted) if hint == Some(false) => &deaf,
            _ => &truthful,
        };
        if self.model.sabotage == Sabotage::ThroughDaemon && recovery.point() == Point::ReadState {
            let charge = charge_in(next.cells[client + 1][0]);
            let operation = Operation::new(slot(0), -(charge as i64), self.model.retries);
            next.daemon = DaemonState::Subtracting {
                client,
                operation,
                charge,
            };
            return Ok(());
        }
        if self.model.sabotage == Sabotage::NoRelease && recovery.point() == Point::ReadState {
            next.daemon = DaemonState::Clearing { client };
            return Ok(());
        }
        let ended = recovery.step(table);
        if self.model.retries == PATIENT {
            recovery.refill(PATIENT);
        }
        next.observe(&self.small, client + 1)?;
        match ended {
            None => {
                next.daemon = DaemonState::Recovering {
                    client,
                    recovery,
                    hint,
                }
            }
            Some(Ended::Contended) if self.model.retries < PATIENT => next.daemon = DaemonState::Nothing,
            Some(Ended::Contended) => return Err("a recovery gave up".into()),
            Some(Ended::Vacant { corrupt, .. }) => self.vacated(next, client, corrupt)?,
        }
        Ok(())
    }

    /// The slot is vacant: nothing of the dead client may be left. A new client takes the slot.
    fn vacated(&mut self, next: &mut World, client: usize, corrupt: bool) -> Verdict {
        let truth = next.truth[client + 1];
        if corrupt || truth != 0 || charge_in(next.cells[client + 1][0]) != 0 {
            return Err(format!(
                "slot of client {client} vacated with {truth} left, corrupt: {corrupt}"
            ));
        }
        next.daemon = DaemonState::Nothing;
        let died = &mut next.clients[client];
        died.held = 0;
        died.doing = Doing::Nothing;
        Ok(())
    }
}

/// Nobody can move: everything that was reserved must have been given back.
fn finished(world: &World) -> Verdict {
    let used = used_in(world.word);
    if used == 0 && world.daemon == DaemonState::Nothing {
        Ok(())
    } else {
        Err(format!("{used} left at the end"))
    }
}
