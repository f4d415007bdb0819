//! Adoption: what an earlier daemon left, its clients above all, becomes this one's, before anybody is admitted. Accounts come
//! from the kept descriptors (`store.rs`), who is in their slots from the record (`record.rs`), and where that is silent from
//! the account's words, checked with the kernel. What cannot be known stays charged until the process in question has ended.

use std::collections::{BTreeMap, BTreeSet};

use ledger::{Owner, SlotIndex};

use super::core::{Core, Seat};
use super::inheritance::{Inheritance, pairs};
use super::peers::billed_to;
use super::record::{Condition, Key};
use super::remember::ClientEntry;
use super::step::step;
use super::store::Left;
use crate::admission::identity::Place;
use crate::admission::process::{self, Identity};
use crate::config::units::{Bytes, Memory};
use crate::config::{DEFAULT_TENANT, MemoryRule};
use crate::enforce::keepsake::Part;
use crate::enforce::{Closed, Grant, Uuid, inode};
use crate::state::{Client, ClientId, Event, Granted};

impl Core {
    /// Takes over accounts, clients and launches. To be called once, before the first round of the loop.
    pub fn adopt(&mut self, condition: &Condition, left: Vec<Left>) {
        match condition {
            Condition::Fresh | Condition::Whole => {}
            Condition::Damaged(lines) => self.fault(format!(
                "the former daemon's record is damaged ({lines} lines): what it does not tell is found out from the clients themselves"
            )),
            Condition::Newer(version) => self.fault(format!(
                "the former daemon's record is of version {version}, which this one cannot read: what it tells is found out \
                 from the clients themselves"
            )),
        }
        let (overrides, drains) = self.settings_before();
        self.overrides = self.record.one(Key::Overrides).unwrap_or(overrides);
        self.state.drains = self.record.one(Key::Drains).unwrap_or(drains);
        let mut launches = self.record.all(|key| match key {
            Key::Launch(head) => Some(head),
            _ => None,
        });
        // A launch inside another names an account that was carved from the other's.
        launches.sort_by_key(|(head, _): &(Identity, Place)| head.start_time);
        for (number, inheritance) in self.inherited(left) {
            step("adopt: account");
            self.adopt_account(number, inheritance);
        }
        for (head, place) in launches {
            self.adopt_launch(head, place);
        }
        self.fit_parts();
        step("adopt: regrant");
        self.regrant();
        // Also where nothing changes: the former daemon may have ended between a word and its taking effect.
        for (account, granted) in self.grants.clone() {
            self.put_into_force(&account, granted);
        }
        self.reap();
        for account in self.places.keys().cloned().collect::<Vec<_>>() {
            self.settle(&account);
        }
        self.update_bells();
        if !self.seats.is_empty() {
            let accounts: BTreeSet<&String> = self.seats.values().map(|seat| &seat.account).collect();
            let what = format!(
                "adopted {} clients in {} accounts",
                self.seats.len(),
                accounts.len()
            );
            self.apply(Event::State { what });
        }
        step("adopt: record");
        if let Err(error) = self.record.rewrite() {
            self.fault(error.to_string());
        }
        step("adopt: done");
    }

    /// A part whose whole is not there is an account like others.
    fn fit_parts(&mut self) {
        let names: BTreeSet<String> = self.places.keys().cloned().collect();
        for place in self.places.values_mut() {
            place.carved_from = place.carved_from.take().filter(|whole| names.contains(whole));
        }
    }

    fn adopt_account(&mut self, number: u32, one: Inheritance) {
        let missing = one.missing(&self.uuids);
        let Inheritance {
            mut name,
            entry,
            kept,
            clients,
        } = one;
        if name.is_empty() || self.ledgers.contains(&name) {
            // By nothing that a daemon writes; who is in there is watched for as long as it lives.
            name = format!("{name}(number {number})");
        }
        let inodes: Vec<_> = kept
            .values()
            .filter_map(|both| inode(both[Part::Account as usize].as_ref()?))
            .collect();
        let place = entry.map(|entry| Place {
            account: name.clone(),
            ..entry.place
        });
        let granted = self.grants_of(place.as_ref().unwrap_or(&self.place_by_name(&name, None)));
        let opened = match missing {
            Some(_) if kept.is_empty() => Err("its descriptors are lost".into()),
            Some(uuid) => Err(format!("its descriptors for device {} are lost", self.told(uuid))),
            None => {
                let grants = self.ledger_grants(&granted);
                let adopted = self.ledgers.adopt(&name, number, &grants, pairs(kept));
                adopted.map_err(|error| error.to_string())
            }
        };
        if let Err(why) = opened {
            let why = format!(
                "{why}, so what its clients hold cannot be told; it is made anew when they have ended"
            );
            self.ledgers.open_closed(&name, number, Closed { why, inodes });
        }
        let words: Vec<u64> = self
            .ledgers
            .read(&name)
            .iter()
            .map(|reading| reading.cap_bytes)
            .collect();
        let place = place.unwrap_or_else(|| self.place_by_name(&name, words.iter().min().copied()));
        // What is in force now; what is to be follows when all accounts are there.
        let in_force = |(at, granted): (usize, &Granted)| Granted {
            cap_bytes: words.get(at).copied().unwrap_or(granted.cap_bytes),
            ..*granted
        };
        let granted: Vec<Granted> = granted.iter().enumerate().map(in_force).collect();
        self.places.insert(name.clone(), place.clone());
        self.grants.insert(name.clone(), granted.clone());
        self.apply(Event::Opened {
            place: place.clone(),
            granted,
        });
        self.adopt_slots(number, &name, clients);
        if let Some(why) = self.ledgers.why_closed(&name).map(str::to_string)
            && self.seats.values().any(|seat| seat.account == name)
        {
            self.fault(format!("account {name} admits nobody: {why}"));
        }
        self.keep(&name);
        if let Err(failure) = self.record_account(&place) {
            self.fault(failure.message);
        }
    }

    /// Where an account belongs of which only the name is known. What a launch was granted is what its words say.
    fn place_by_name(&self, name: &str, cap: Option<u64>) -> Place {
        let tenant = name.split(['/', '#', '(']).next().unwrap_or(name);
        let carved_from = name.rsplit_once('#').map(|(whole, _)| whole.to_string());
        let is_standing = tenant == DEFAULT_TENANT || self.config.tenants.contains_key(tenant);
        Place {
            tenant: tenant.into(),
            account: name.into(),
            memory: cap.map_or(MemoryRule::ALL, |cap| MemoryRule::one(Memory::Bytes(Bytes(cap)))),
            asked: cap.is_some() && (carved_from.is_some() || !is_standing),
            // Whether its control group is still there cannot be told either.
            passing: carved_from.is_some() || !is_standing || name.contains(':'),
            lives_in: None,
            carved_from,
        }
    }

    fn told(&self, uuid: Uuid) -> String {
        let known = self.uuids.iter().position(|one| *one == uuid);
        known.map_or("that is gone".into(), |place| {
            self.inventory.devices[place].index.to_string()
        })
    }

    /// Seats the clients of an account: those of the record, and those only its words tell of.
    fn adopt_slots(&mut self, number: u32, account: &str, mut recorded: BTreeMap<SlotIndex, ClientEntry>) {
        let in_words = self.ledgers.in_words(account);
        let mut nameless = Vec::new();
        for (slot, owner) in in_words {
            step("adopt: slot");
            match (recorded.remove(&slot), owner) {
                (Some(entry), Some(owner)) if entry.owner() == owner => {
                    self.adopt_client(account, slot, entry)
                }
                (Some(entry), _) if self.maps(account, entry.pid) => {
                    self.fault(format!("pid {}: its slot names another owner", entry.pid));
                    self.adopt_client(account, slot, entry);
                }
                // It was recorded, and its daemon ended before it was told.
                (Some(_), None) => self.forget_slot(number, account, slot),
                (_, Some(owner)) if self.is_in(account, &owner) => {
                    self.fault(format!(
                        "pid {}: found by its slot, the record does not name it",
                        owner.pid
                    ));
                    let entry = self.entry_of(owner);
                    self.adopt_client(account, slot, entry);
                }
                (_, owner) => nameless.push((slot, owner)),
            }
        }
        for (slot, entry) in recorded {
            // Its slot was never claimed, unless the words lie, or cannot be read.
            if self.maps(account, entry.pid) || self.ledgers.why_closed(account).is_some() {
                self.adopt_client(account, slot, entry);
            } else {
                self.record.remove(Key::Client(number, slot));
            }
        }
        self.adopt_nameless(number, account, nameless);
    }

    /// Slots whose words name nobody who lives: they belong to processes that map the account and have none, if any.
    fn adopt_nameless(&mut self, number: u32, account: &str, slots: Vec<(SlotIndex, Option<Owner>)>) {
        let is_closed = self.ledgers.why_closed(account).is_some();
        if slots.is_empty() && !is_closed {
            return;
        }
        // The daemon maps what it has adopted, too.
        let own = std::process::id();
        let seated: BTreeSet<u32> = self
            .seats
            .values()
            .map(|seat| seat.owner.pid)
            .chain([own])
            .collect();
        let strays: Vec<u32> = process::all()
            .filter(|pid| !seated.contains(pid) && self.maps(account, *pid))
            .collect();
        for (at, (slot, _)) in slots.into_iter().enumerate() {
            let stray = strays
                .get(at % strays.len().max(1))
                .and_then(|pid| process::stat(*pid));
            match stray {
                Some(stat) => {
                    let pid = stat.identity.pid;
                    self.fault(format!(
                        "pid {pid}: it uses the account of slot {}, which names nobody",
                        slot.get()
                    ));
                    self.adopt_unnamed(account, slot, stat.identity);
                }
                None => self.forget_slot(number, account, slot),
            }
        }
        if is_closed {
            for pid in strays {
                self.adopt_stray(account, pid);
            }
        }
    }

    /// A process that uses an account whose words cannot be read: it has some slot or other.
    fn adopt_stray(&mut self, account: &str, pid: u32) {
        let taken: BTreeSet<SlotIndex> = self
            .seats
            .values()
            .filter(|seat| seat.account == account)
            .map(|seat| seat.slot)
            .collect();
        let slot = (1..)
            .map_while(SlotIndex::client)
            .find(|slot| !taken.contains(slot));
        if let (Some(slot), Some(stat)) = (slot, process::stat(pid)) {
            self.adopt_unnamed(account, slot, stat.identity);
        }
    }

    /// Seats a process of which nothing is known but that it uses the account: the nonce of its program is not.
    fn adopt_unnamed(&mut self, account: &str, slot: SlotIndex, process: Identity) {
        let owner = Owner {
            pid: process.pid,
            start_time: process.start_time,
            nonce: 0,
        };
        let entry = self.entry_of(owner);
        self.adopt_client(account, slot, entry);
    }

    /// Empties a slot whose owner does not live, or was never told of it.
    fn forget_slot(&mut self, number: u32, account: &str, slot: SlotIndex) {
        if let Err(error) = self.ledgers.vacate(account, slot, &mut Vec::new()) {
            tracing::warn!(%error, "a slot is emptied when it is used again");
        }
        self.record.remove(Key::Client(number, slot));
    }

    /// Seats a client as it was. One that has ended meanwhile leaves in the ordinary way.
    fn adopt_client(&mut self, account: &str, slot: SlotIndex, entry: ClientEntry) {
        let owner = entry.owner();
        let identity = identity(&owner);
        if let Err(error) = self.ledgers.take_over(account, slot, &owner) {
            self.fault(format!("pid {}: {error}", owner.pid));
        }
        let id = ClientId(self.next_client);
        self.next_client += 1;
        let pidfd = process::open(identity);
        // Whose launch a part was made for is whose clients are in it.
        if self
            .places
            .get(account)
            .is_some_and(|place| place.asked && place.passing)
            && let Some(user) = billed_to(owner.pid)
        {
            self.made_by.insert(account.into(), user);
        }
        let seat = Seat {
            owner,
            account: account.into(),
            slot,
            image: entry.image,
            going: pidfd.is_none().then_some("ended"),
        };
        self.seats.insert(id, seat);
        let launches = self
            .ledgers
            .read(account)
            .iter()
            .filter_map(|reading| reading.slots.get(&slot))
            .map(|(_, launches)| *launches)
            .sum();
        let client = Client::new(
            identity,
            account,
            slot,
            process::command(owner.pid),
            entry.user.clone(),
        );
        self.apply(Event::Adopted {
            id,
            client: client.since(entry.since, launches),
        });
        if let Some(pidfd) = pidfd
            && let Err(error) = self.watch(identity, pidfd)
        {
            self.fault(format!("pid {}: its end cannot be watched: {error}", owner.pid));
        }
        if let Some(number) = self.ledgers.number(account)
            && let Err(error) = self.record.put(Key::Client(number, slot), &entry)
        {
            tracing::warn!(%error);
        }
    }

    fn adopt_launch(&mut self, head: Identity, place: Place) {
        step("adopt: launch");
        let account = place.account.clone();
        let user = billed_to(head.pid);
        let taken_over = match process::open(head) {
            None => Err("it has ended".to_string()),
            Some(pidfd) => self.watch(head, pidfd).map_err(|error| error.to_string()),
        };
        if let Err(why) = taken_over {
            tracing::debug!(pid = head.pid, why, "a launch is over");
            self.record.remove(Key::Launch(head));
            return;
        }
        if let Err(failure) = self.ensure_open(&place) {
            self.fault(format!("the launch of pid {}: {failure}", head.pid));
        }
        // It lived a moment ago: at worst nobody is told to have it.
        self.launches.add(head, user.unwrap_or(0), place);
        if let Some(user) = user.filter(|_| {
            self.places
                .get(&account)
                .is_some_and(|place| place.asked && place.passing)
        }) {
            self.made_by.insert(account.clone(), user);
        }
        self.count_launches(&account);
    }

    /// Whether the words name a process that lives and uses the account.
    fn is_in(&self, account: &str, owner: &Owner) -> bool {
        process::open(identity(owner)).is_some() && self.maps(account, owner.pid)
    }

    fn maps(&self, account: &str, pid: u32) -> bool {
        process::maps_any(pid, &self.ledgers.inodes(account)) == Some(true)
    }

    /// What the record would say of a client that it does not name.
    fn entry_of(&mut self, owner: Owner) -> ClientEntry {
        let user = process::credentials(owner.pid).map(|(uid, _)| self.users.name(uid).to_string());
        let image = process::stat(owner.pid).map_or([0; 3], |stat| stat.image);
        ClientEntry::new(&owner, image, &user.unwrap_or_default())
    }

    fn fault(&mut self, what: String) {
        self.apply(Event::Fault { what });
    }

    /// The words of an account's objects, on each device.
    pub fn ledger_grants(&self, granted: &[Granted]) -> Vec<Grant> {
        let grant = |(device, granted): (usize, &Granted)| Grant {
            uuid: self.uuids[device],
            cap_bytes: if self.sabotage.caps {
                self.state.usable(device)
            } else {
                granted.cap_bytes
            },
            context_bytes: self.contexts[device],
        };
        granted.iter().enumerate().map(grant).collect()
    }
}

fn identity(owner: &Owner) -> Identity {
    Identity {
        pid: owner.pid,
        start_time: owner.start_time,
    }
}
