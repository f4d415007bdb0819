//! Requests on the admin socket (`protocol.rs`), and launches: a process that becomes the head of a tenant's processes.

use std::time::{Instant, SystemTime};

use serde::Serialize;

use super::callers::Caller;
use super::core::Core;
use super::parked::Turned;
use super::record::Key;
use super::sources::mind_unsent;
use crate::admission::admin::{Admin, Over};
use crate::admission::identity::{Place, not_in_force, place_of, place_of_launch};
use crate::admission::launches::MOST_OF_A_USER;
use crate::config::units::{Bytes, Memory};
use crate::exit::Failure;
use crate::protocol::{Answer, Launch, Launched, LaunchedDevice, Refused, Request};
use crate::state::Event;

impl Core {
    /// Reads what a caller sent and answers it; hangs up when it is over.
    pub fn serve(&mut self, token: u64) {
        let Some(mut admin) = self.admins.remove(&token) else {
            return;
        };
        match self.converse(&mut admin) {
            Ok(()) => {
                mind_unsent(&self.epoll, token, &admin);
                self.admins.insert(token, admin);
            }
            Err(Over::HungUp) => {}
            Err(error) => tracing::debug!(%error, "a caller was hung up on"),
        }
    }

    /// Answers one request: the next one's turn comes when everybody else had theirs, and not before the answer was read.
    fn converse(&mut self, admin: &mut Admin) -> Result<(), Over> {
        admin.flush()?;
        if admin.has_unsent() {
            return Ok(());
        }
        let Some(line) = admin.line()? else {
            return Ok(());
        };
        match serde_json::from_str::<Request>(&line) {
            Ok(request) => self.answer(admin, request),
            Err(error) => admin.send(&refused(Failure::usage(format!(
                "this is no request the daemon knows: {error}"
            )))),
        }
    }

    fn answer(&mut self, admin: &mut Admin, request: Request) -> Result<(), Over> {
        match request {
            Request::Status => {
                self.read_ledgers();
                let mut node = self.state.document(&self.about, SystemTime::now());
                node.not_in_force = self.config.not_in_force.iter().map(ToString::to_string).collect();
                admin.send(&Answer::Ok(node))
            }
            Request::Events { follow } => {
                admin.send(&Answer::Ok("events"))?;
                for event in self.log.kept() {
                    admin.send(event)?;
                }
                admin.follows = follow;
                if follow { Ok(()) } else { admin.finish() }
            }
            Request::Launch(launch) => match self.launch(admin, &launch) {
                Ok(launched) => admin.send(&Answer::Ok(launched)),
                Err(Turned::Down(failure)) => admin.send(&refused(failure)),
                Err(Turned::Later) => {
                    admin.waits = Some((launch, Instant::now()));
                    Ok(())
                }
            },
            Request::Why { subject } => match self.why(&subject) {
                Ok(why) => admin.send(&Answer::Ok(why)),
                Err(failure) => admin.send(&refused(failure)),
            },
            Request::Recommend { subject } => match self.recommend(subject.as_deref()) {
                Ok(told) => admin.send(&Answer::Ok(told)),
                Err(failure) => admin.send(&refused(failure)),
            },
            Request::Drain(drain) => match self.drain(admin, &drain) {
                Ok(drained) => admin.send(&Answer::Ok(drained)),
                Err(failure) => admin.send(&refused(failure)),
            },
            Request::Reload => match self.reload_for(admin) {
                Ok(reloaded) => admin.send(&Answer::Ok(reloaded)),
                Err(failure) => admin.send(&refused(failure)),
            },
            Request::Set(set) => match self.set(admin, &set) {
                Ok(changed) => admin.send(&Answer::Ok(changed)),
                Err(failure) => admin.send(&refused(failure)),
            },
        }
    }

    /// Makes the caller the head of a launch.
    pub fn launch(&mut self, admin: &Admin, asked: &Launch) -> Result<Launched, Turned> {
        self.reap();
        let caller = self.caller(admin)?;
        Ok(self.launch_of(caller, asked)?)
    }

    fn launch_of(&mut self, caller: Caller, asked: &Launch) -> Result<Launched, Failure> {
        let Caller {
            billed,
            acting,
            pidfd,
        } = caller;
        let now = SystemTime::now();
        if let Some(why) = self.closed_to(&billed, None) {
            return Err(Failure::failed(why));
        }
        let (head, pid) = (billed.identity, billed.identity.pid);
        if self.launches.contains(&head) {
            return Err(Failure::failed(format!("pid {pid} heads a launch already")));
        }
        let bounded = billed.uid != 0 && !self.authority.over(&acting);
        // Accounts of its launches outlive their heads as long as somebody is in them.
        let accounts = self.made_by.values().filter(|user| **user == billed.uid).count();
        if bounded && self.launches.count_of_user(billed.uid).max(accounts) >= MOST_OF_A_USER {
            return Err(Failure::failed(format!(
                "user {} has {MOST_OF_A_USER} launches (`stint run`) at once, or programs left of so many: end some, or start \
                 several under one",
                billed.user
            )));
        }
        let later = not_in_force(asked)?;
        let mut place = place_of_launch(&self.config, &self.launches, self.authority, &acting, asked, now)?;
        self.check_devices(&place.memory.cap)?;
        self.check_compute_of_launch(&place, asked)?;
        if place.asked && place.carved_from.is_none() {
            self.check_set_over(&place)?;
            self.carve_from_what_is_set(&mut place, &billed, now);
        }
        self.make_room(&place, asked)?;
        match place.carved_from.clone() {
            Some(whole) => {
                let whole = place_of(&self.config, &self.launches, &billed, now)
                    .place()
                    .filter(|place| place.account == whole)
                    .ok_or_else(|| {
                        Failure::failed(format!("account {whole} is not the caller's any more"))
                    })?;
                self.carve(&place, &whole)?;
                if let Err(failure) = self.ensure_open(&place) {
                    self.uncarve(&place);
                    return Err(failure);
                }
            }
            None => self.ensure_open(&place)?,
        }
        let watched = self
            .watch(head, pidfd)
            .map_err(|error| format!("pid {pid}: {error}"));
        let recorded = watched.and_then(|()| {
            let put = self.record.put(Key::Launch(head), &place);
            put.map_err(|error| error.to_string())
        });
        if let Err(error) = recorded {
            self.settle(&place.account);
            return Err(Failure::failed(error));
        }
        self.launches.add(head, billed.uid, place.clone());
        if place.asked && place.passing {
            self.made_by.insert(place.account.clone(), billed.uid);
        }
        self.count_launches(&place.account);
        for key in later {
            let message = format!("`{key}` of the launch by pid {pid} is understood and not in force yet");
            self.apply(Event::ConfigNote { message });
        }
        Ok(self.launched(place))
    }

    /// No device may be too small for what was asked.
    pub fn check_devices(&self, cap: &Memory) -> Result<(), Failure> {
        for device in &self.inventory.devices {
            if let Memory::Bytes(Bytes(asked)) = *cap
                && asked > device.total_bytes
            {
                return Err(Failure::usage(format!(
                    "{asked} bytes are more than device {} has ({} bytes): ask for at most that, or a percentage",
                    device.index, device.total_bytes
                )));
            }
        }
        Ok(())
    }

    /// An account in use keeps its caps; one that nobody uses is made anew with those asked for.
    fn make_room(&mut self, place: &Place, asked: &Launch) -> Result<(), Failure> {
        let Some(open) = self.places.get(&place.account) else {
            return Ok(());
        };
        if asked.memory.is_none() || open.memory == place.memory {
            return Ok(());
        }
        let has_parts = self
            .places
            .values()
            .any(|part| part.carved_from.as_ref() == Some(&place.account));
        if self.state.is_active(&place.account) || has_parts {
            return Err(Failure::failed(format!(
                "account {} is in use with another cap: leave --memory out, name another tenant, or wait for its clients to end",
                place.account
            )));
        }
        self.close(&place.account);
        Ok(())
    }

    fn launched(&self, place: Place) -> Launched {
        let granted = self.grants.get(&place.account).into_iter().flatten();
        let devices = self
            .inventory
            .devices
            .iter()
            .zip(granted)
            .map(|(device, granted)| LaunchedDevice {
                index: device.index,
                uuid: device.uuid.clone(),
                cap_bytes: granted.cap_bytes,
            });
        Launched {
            devices: devices.collect(),
            tenant: place.tenant,
            account: place.account,
            driver: self.about.driver,
        }
    }
}

/// A refusal as a line.
pub(super) fn refused(failure: Failure) -> Answer<()> {
    Answer::Error(Refused {
        exit: failure.exit.0,
        message: failure.message,
    })
}

/// Keeps `Answer::Ok` of borrowed texts serialisable beside owned ones.
const _: fn() = || {
    fn serialises<T: Serialize>() {}
    serialises::<Answer<&str>>();
};
