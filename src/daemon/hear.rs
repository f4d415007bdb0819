//! What others have to say to the daemon without asking anything: clients by their doorbells, the device child by its line.

use std::collections::BTreeMap;
use std::time::{Instant, SystemTime};

use ledger::ring::{Kind as PostedKind, Reason};

use super::core::Core;
use crate::admission::process;
use crate::device::Look;
use crate::device::child::{Said, Supervisor};
use crate::enforce::{Posted, What};
use crate::state::{Event, Holder, Refusal};

impl Core {
    pub fn answer_bells(&mut self) {
        self.bell.clear();
        let mut posted = Vec::new();
        for account in self.ledgers.rung() {
            self.ledgers.drain(&account, &mut posted);
            self.take_posted(&account, &mut posted);
        }
    }

    /// What clients posted, into state and log.
    pub fn take_posted(&mut self, account: &str, posted: &mut Vec<Posted>) {
        for Posted { device, slot, what } in posted.drain(..) {
            let account = account.to_string();
            let event = match what {
                What::Lost(count) => Event::Lost {
                    account,
                    device,
                    count,
                },
                What::Event(event) => match event.kind {
                    PostedKind::Refused(reason) => {
                        if self.sabotage.isolation {
                            self.close_all_but(&account);
                        }
                        // What others keep idle may be what is missing.
                        let full = reason == Reason::Device;
                        self.ledgers.press(&account, device, full, Instant::now());
                        let refusal = Refusal {
                            at: SystemTime::now(),
                            pid: 0,
                            device: 0,
                            asked_bytes: event.asked,
                            used_bytes: event.used,
                            cap_bytes: event.cap,
                            reason: reason_word(reason),
                            function: driver::table::ROWS
                                .get(event.function as usize)
                                .map(|row| row.name),
                        };
                        self.chronicle_refusal(&account, device, &refusal);
                        Event::Refused {
                            account,
                            slot,
                            device,
                            refusal,
                        }
                    }
                    PostedKind::Fault => {
                        let what = "the shim failed inside a call and passed it through";
                        Event::ClientFault {
                            account,
                            slot,
                            device,
                            what,
                            detail: event.detail,
                        }
                    }
                    PostedKind::Corrupt => {
                        let what = "the account holds values no client of ours writes";
                        Event::ClientFault {
                            account,
                            slot,
                            device,
                            what,
                            detail: event.detail,
                        }
                    }
                },
            };
            self.apply(event);
        }
    }

    /// Sabotage: from now on nobody else gets anything, either.
    fn close_all_but(&mut self, refused: &str) {
        let others = self.places.keys().filter(|account| *account != refused);
        for account in others {
            for device in 0..self.inventory.devices.len() {
                let _ = self.ledgers.set_cap(account, device, 0); // the word is stored even where it is contended
            }
        }
    }

    pub fn hear_device(&mut self) {
        let Some(device) = &mut self.device else { return };
        let said = device.read();
        self.take_in(said);
    }

    pub fn take_in(&mut self, said: Vec<Said>) {
        for said in said {
            match said {
                Said::Looks(looks) => self.take_looks(looks),
                Said::Fault(what) => self.apply(Event::Fault { what }),
                Said::Works => self.apply(Event::State {
                    what: "the device child answers again".into(),
                }),
            }
        }
    }

    fn take_looks(&mut self, looks: Vec<Look>) {
        let strangers: Vec<u32> = self.state.strangers_in(&looks).collect();
        let mut holders = BTreeMap::new();
        for pid in strangers {
            if let (Some(stat), Some((uid, _))) = (process::stat(pid), process::credentials(pid)) {
                let holder = Holder {
                    start_time: stat.identity.start_time,
                    user: self.users.name(uid),
                    command: process::command(pid),
                };
                holders.insert(pid, holder);
            }
        }
        let own = self.device.as_ref().map(Supervisor::pids).unwrap_or_default();
        self.apply(Event::Looked { looks, holders, own });
    }
}

fn reason_word(reason: Reason) -> &'static str {
    match reason {
        Reason::Cap => "cap",
        Reason::Device => "device",
        Reason::Reserve => "reserve",
        Reason::Guarantee => "guarantee",
        Reason::Budget => "budget",
        Reason::Paused => "paused",
    }
}
