//! The quota file again, while the node runs: asked for by SIGHUP or `stint reload`, or because `watch.rs` noticed a change.
//! A file with a mistake changes nothing. A good one comes into force at once, for open accounts too (`regrant.rs`).

use std::collections::BTreeSet;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::SystemTime;

use rustix::event::epoll;

use super::core::Core;
use super::quota_files::{QuotaFiles, checked};
use super::sources::{HANGUP, QUOTA};
use super::step::step;
use super::watch::Watch;
use crate::admission::admin::Admin;
use crate::config::units::Bytes;
use crate::config::{Config, Mode, NotInForce, Problem, Problems, Source};
use crate::exit::Failure;
use crate::protocol::reload::{Reloaded, SCHEMA};
use crate::state::Event;

/// The quota files of a node that has some.
#[derive(Debug, Clone, Default)]
pub struct Quota {
    pub files: QuotaFiles,
    /// The texts whose rules are in force.
    pub sources: Vec<Source>,
    /// The command line says that nothing is refused, whatever the file says.
    pub observe: bool,
}

impl Quota {
    /// Reads `files`.
    ///
    /// # Errors
    /// Every file that cannot be read.
    pub fn read(files: QuotaFiles, observe: bool) -> Result<Quota, Problems> {
        let sources = files.read()?;
        Ok(Quota {
            files,
            sources,
            observe,
        })
    }

    /// The rules in what was read.
    ///
    /// # Errors
    /// Every mistake found.
    pub fn config(&self) -> Result<Config, Problems> {
        let mut config = checked(&self.sources)?;
        if self.observe {
            config.node.mode = Mode::Observe;
        }
        Ok(config)
    }
}

/// How a running daemon minds its quota files.
#[derive(Debug, Default)]
pub(super) struct Minding {
    quota: Option<Quota>,
    /// What was found wrong last, not to be told again of the same texts.
    wrong: Option<(Vec<Source>, Problems)>,
    watch: Option<Watch>,
    /// Something happened where they lie.
    stirred: bool,
    /// Told by SIGHUP.
    hangups: Option<UnixStream>,
    /// Tenants in force at the last look.
    in_force: BTreeSet<String>,
}

impl Minding {
    pub fn new(quota: Option<Quota>) -> Minding {
        Minding {
            quota,
            // A change between reading and watching would be missed.
            stirred: true,
            ..Minding::default()
        }
    }
}

impl Core {
    /// Begins to watch the files, and to listen for what SIGHUP writes into the other end of `hangups`.
    pub fn mind_quota_files(&mut self, hangups: UnixStream) -> rustix::io::Result<()> {
        listen(&self.epoll, &hangups, HANGUP)?;
        self.minding.hangups = Some(hangups);
        self.minding.in_force = self.names_in_force(SystemTime::now());
        self.say_what_is_odd();
        if self.minding.quota.is_some() {
            match Watch::start() {
                Ok(watch) => {
                    listen(&self.epoll, watch.descriptor(), QUOTA)?;
                    self.minding.watch = Some(watch);
                    self.look_at_quota_files();
                }
                Err(error) => self.cannot_watch(error),
            }
        }
        Ok(())
    }

    /// SIGHUP came.
    pub fn hear_hangup(&mut self) {
        let mut bytes = [0; 64];
        if let Some(hangups) = &mut self.minding.hangups {
            while hangups.read(&mut bytes).is_ok_and(|read| read == bytes.len()) {}
        }
        // What is wrong is in the log.
        let _ = self.reload("SIGHUP");
    }

    /// Something happened in a watched directory. It is looked at with the next tick, when whoever writes several files may
    /// be done.
    pub fn hear_of_quota_files(&mut self) {
        self.minding.stirred |= self.minding.watch.as_ref().is_some_and(Watch::happened);
    }

    /// Reads the files again where something happened to them, and minds stanzas that begin and end by the clock.
    pub fn mind_rules(&mut self, now: SystemTime) {
        if std::mem::take(&mut self.minding.stirred) {
            self.look_at_quota_files();
            if self.is_changed() {
                // What is wrong is in the log.
                let _ = self.reload("a file changed");
            }
        }
        let in_force = self.names_in_force(now);
        let before = std::mem::replace(&mut self.minding.in_force, in_force.clone());
        for name in in_force.symmetric_difference(&before) {
            let what = if in_force.contains(name) {
                "is in force now"
            } else {
                "is not in force any more"
            };
            self.apply(Event::ConfigNote {
                message: format!("[tenants.{name}] {what}"),
            });
        }
        if in_force != before {
            self.regrant();
        }
    }

    /// Answers `stint reload`. Exit 77: the caller may not; 78: the file has mistakes, which are all in the message.
    pub fn reload_for(&mut self, admin: &Admin) -> Result<Reloaded, Failure> {
        let acting = self.caller(admin)?.acting;
        if !self.authority.over(&acting) {
            return Err(Failure::not_permitted(
                "only root, the daemon's user and group stint may reload the quota file",
            ));
        }
        self.reload(&format!("pid {} of {}", acting.identity.pid, acting.user))
    }

    /// Reads and checks the files, and puts what they say into force: all of it, or with a mistake nothing.
    pub fn reload(&mut self, cause: &str) -> Result<Reloaded, Failure> {
        self.notifier.reloading();
        let done = self.reread(cause);
        self.notifier.ready(self.in_a_line());
        done
    }

    fn reread(&mut self, cause: &str) -> Result<Reloaded, Failure> {
        if self.minding.quota.is_none() {
            return Err(Failure::failed(
                "this node has no quota file: it was started for one command",
            ));
        }
        let (sources, config) = match self.read_rules() {
            Ok(read) => read,
            Err((sources, problems)) => {
                self.apply(Event::NotReloaded {
                    cause: cause.into(),
                    problems: problems.clone(),
                });
                let message =
                    format!("the quota file is not reloaded, the rules stay as they were:\n{problems}");
                self.minding.wrong = Some((sources, problems));
                return Err(Failure::bad_config(message));
            }
        };
        self.run_dir
            .write_policy(config.node.absent)
            .map_err(Failure::failed)?;
        self.minding.wrong = None;
        if let Some(quota) = &mut self.minding.quota {
            quota.sources = sources;
        }
        let changed = self.config.changes(&config);
        let old = std::mem::replace(&mut self.config, config);
        self.users.forget_groups();
        let total = |device: &crate::device::Device| self.config.node.reserve_on(Bytes(device.total_bytes)).0;
        self.apply(Event::Reloaded {
            cause: cause.into(),
            changed: changed.clone(),
            mode: self.config.node.mode,
            overcommit: self.config.node.overcommit,
            reserved: self.inventory.devices.iter().map(total).collect(),
        });
        self.minding.in_force = self.names_in_force(SystemTime::now());
        step("reload: regrant");
        let accounts = self.regrant();
        step("reload: done");
        if old.node.mode != self.config.node.mode {
            self.change_mode();
        }
        for (place, guaranteed, usable) in self.state.overcommitted() {
            let index = self.inventory.devices[place].index;
            let message = format!(
                "{guaranteed} bytes of device {index} are guaranteed to those at work, of which {usable} can be: nobody who is \
                 guaranteed some is admitted until they end or have less"
            );
            self.apply(Event::ConfigNote { message });
        }
        let told = |key: &NotInForce| {
            old.not_in_force
                .iter()
                .any(|known| (known.key, &known.stanza) == (key.key, &key.stanza))
        };
        let later: Vec<NotInForce> = self
            .config
            .not_in_force
            .iter()
            .filter(|key| !told(key))
            .cloned()
            .collect();
        for key in later {
            self.apply(Event::ConfigNote {
                message: key.to_string(),
            });
        }
        self.say_what_is_odd();
        self.look_at_quota_files();
        Ok(Reloaded {
            schema: SCHEMA.into(),
            changed,
            accounts,
        })
    }

    /// What the files say now; else all that is wrong, and the texts it was found in.
    fn read_rules(&self) -> Result<(Vec<Source>, Config), (Vec<Source>, Problems)> {
        let Some(quota) = &self.minding.quota else {
            return Ok((Vec::new(), self.config.clone()));
        };
        let read =
            Quota::read(quota.files.clone(), quota.observe).map_err(|problems| (Vec::new(), problems))?;
        let gone = quota.sources.iter().filter(|source| {
            let named = quota.files.paths().contains(&source.path);
            named && !read.sources.iter().any(|other| other.path == source.path)
        });
        let gone: Vec<Problem> = gone
            .map(|source| {
                let message = "is gone: an empty file there lifts its rules, a reload does not";
                Problem::of_file(&source.path, message)
            })
            .collect();
        if !gone.is_empty() {
            return Err((read.sources, Problems(gone)));
        }
        let config = match read.config() {
            Ok(config) => config,
            Err(problems) => return Err((read.sources, problems)),
        };
        let beyond = config.beyond(&self.inventory.capacities(), SystemTime::now());
        if beyond.is_empty() {
            Ok((read.sources, config))
        } else {
            Err((read.sources, Problems(beyond)))
        }
    }

    /// Whether the files differ from those in force, and from those found wrong last.
    fn is_changed(&self) -> bool {
        let Some(quota) = &self.minding.quota else {
            return false;
        };
        match (quota.files.read(), &self.minding.wrong) {
            (Ok(sources), None) => sources != quota.sources,
            (Ok(sources), Some((wrong, _))) => sources != *wrong,
            (Err(problems), Some((_, told))) => problems != *told,
            (Err(_), None) => true,
        }
    }

    /// Caps are written again, each with the new mode beside it.
    fn change_mode(&mut self) {
        self.ledgers.observe(self.config.node.mode == Mode::Observe);
        for (account, granted) in self.grants.clone() {
            if self.ledgers.contains(&account) {
                self.put_into_force(&account, granted);
            }
        }
    }

    fn names_in_force(&self, now: SystemTime) -> BTreeSet<String> {
        self.config
            .in_force(now)
            .map(|(name, _)| name.to_string())
            .collect()
    }

    /// What is no mistake of the file and should be known.
    fn say_what_is_odd(&mut self) {
        let mut messages = self.config.named_in_vain(&self.inventory.capacities());
        let files = self.minding.quota.as_ref().map(|quota| &quota.files);
        for path in files.map(QuotaFiles::open_to_others).unwrap_or_default() {
            let path = path.display();
            messages.push(format!(
                "{path}: others than root and the daemon's user may write it, and so change every cap"
            ));
        }
        for message in messages {
            self.apply(Event::ConfigNote { message });
        }
    }

    /// Watches where the files lie now.
    fn look_at_quota_files(&mut self) {
        let Some(quota) = &self.minding.quota else { return };
        let paths: Vec<PathBuf> = quota.files.paths().to_vec();
        let looked = self.minding.watch.as_mut().map(|watch| watch.look_at(&paths));
        if let Some(Err(error)) = looked {
            self.cannot_watch(error);
        }
    }

    fn cannot_watch(&mut self, error: rustix::io::Errno) {
        self.apply(Event::Fault {
            what: format!(
                "changes of the quota file are not noticed ({error}): `stint reload` still reads it"
            ),
        });
    }
}

fn listen(epoll: &OwnedFd, source: impl AsFd, token: u64) -> rustix::io::Result<()> {
    epoll::add(
        epoll,
        source,
        epoll::EventData::new_u64(token),
        epoll::EventFlags::IN,
    )
}
