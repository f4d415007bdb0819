//! Where the accounts' descriptors are while no daemon runs: in systemd's descriptor store, or with a `stint keeper`
//! (`keeper.rs`). What they are is in their names (`enforce/keepsake.rs`); `adopt.rs` takes them back.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use super::notify;
use super::step::step;
use crate::enforce::keepsake::Keepsake;
use crate::keeper::{Found, Kept};

/// Where descriptors are to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// With systemd where it started us, else with a keeper.
    Outside,
    /// With a keeper, which is started where none is.
    Keeper,
    /// With a keeper that is there.
    #[cfg(test)]
    Found,
    /// They end with the daemon, as its clients do.
    Nowhere,
}

#[derive(Debug)]
enum Place {
    /// It keeps so many.
    Systemd {
        most: usize,
    },
    Keeper(Kept),
    Nowhere,
}

/// The store, and what is in it.
#[derive(Debug)]
pub struct Store {
    keeping: Keeping,
    run_dir: PathBuf,
    place: Place,
    /// By number of account.
    names: BTreeMap<u32, Vec<String>>,
}

/// A descriptor that an earlier daemon left.
pub type Left = (Keepsake, OwnedFd);
/// The same by its name.
type Named = Vec<(String, OwnedFd)>;

/// Why descriptors are not kept.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("systemd keeps {most} for this service, as many as it may (`FileDescriptorStoreMax=`)")]
    Full { most: usize },
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Store {
    /// Opens the store and takes what an earlier daemon left there. The messages say what is wrong with it.
    pub fn open(keeping: Keeping, run_dir: &Path) -> (Store, Vec<Left>, Vec<String>) {
        let mut store = Store {
            keeping,
            run_dir: run_dir.into(),
            place: Place::Nowhere,
            names: BTreeMap::new(),
        };
        let mut wrong = Vec::new();
        let opened = match (keeping, notify::stores_descriptors()) {
            (Keeping::Nowhere, _) => Ok(Vec::new()),
            (Keeping::Outside, Some(most)) => {
                store.place = Place::Systemd { most };
                let left = notify::stored_descriptors().unwrap_or_else(|error| {
                    wrong.push(format!("what systemd kept cannot be taken over: {error}"));
                    Vec::new()
                });
                Ok(store.with_those_of_a_keeper(left, most, &mut wrong))
            }
            _ => Kept::find(run_dir).and_then(|found| match found {
                Some(found) => Ok(store.found(found, &mut wrong)),
                None => store.replace().map(|()| Vec::new()),
            }),
        };
        let left = opened.unwrap_or_else(|error| {
            wrong.push(format!(
                "descriptors of clients cannot be kept over a restart: {error}"
            ));
            Vec::new()
        });
        let mut known = Vec::new();
        for (name, fd) in left {
            match name.parse::<Keepsake>() {
                Ok(keepsake) => {
                    store.names.entry(keepsake.number).or_default().push(name);
                    known.push((keepsake, fd));
                }
                Err(_) => {
                    wrong.push(format!(
                        "a kept descriptor `{name}` is none of ours and was let go"
                    ));
                    store.remove(&name);
                }
            }
        }
        (store, known, wrong)
    }

    /// A keeper that is there is ours from now on.
    fn found(&mut self, found: Found, wrong: &mut Vec<String>) -> Named {
        self.place = Place::Keeper(found.kept);
        self.tell_missing(found.missing, wrong);
        found.held
    }

    /// The keeper has them, and they are nobody's to use: a later daemon may get them.
    fn tell_missing(&mut self, missing: Vec<String>, wrong: &mut Vec<String>) {
        if let Some(one) = missing.first() {
            wrong.push(format!(
                "{} descriptors that the keeper holds did not arrive, `{one}` among them: raise the limit of open files",
                missing.len()
            ));
        }
        for name in missing {
            if let Ok(keepsake) = name.parse::<Keepsake>() {
                self.names.entry(keepsake.number).or_default().push(name);
            }
        }
    }

    /// What systemd kept, and what a keeper does: a daemon that systemd did not start left it there. It is with systemd
    /// from now on, and the keeper leaves once it has everything.
    fn with_those_of_a_keeper(&mut self, mut left: Named, most: usize, wrong: &mut Vec<String>) -> Named {
        let Found { kept, held, missing } = match Kept::find(&self.run_dir) {
            Ok(Some(found)) => found,
            Ok(None) => return left,
            Err(error) => {
                wrong.push(format!("a keeper is there and hands nothing over: {error}"));
                return left;
            }
        };
        let mut is_whole = missing.is_empty();
        for (name, fd) in held {
            if left.iter().any(|(known, _)| *known == name) {
                continue;
            }
            let stored = if left.len() < most {
                notify::store(&name, fd.as_fd()).map_err(StoreError::from)
            } else {
                Err(StoreError::Full { most })
            };
            if let Err(error) = stored {
                is_whole = false;
                wrong.push(format!("`{name}` stays with a keeper: {error}"));
            }
            left.push((name, fd));
        }
        self.tell_missing(missing, wrong);
        if is_whole {
            kept.end();
        }
        left
    }

    /// Readable when the keeper has gone; to be asked for again after [`Store::replace`].
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.place {
            Place::Keeper(kept) => Some(kept.socket()),
            Place::Systemd { .. } | Place::Nowhere => None,
        }
    }

    /// Whether there is no keeper where there ought to be one.
    pub fn is_lost(&self) -> bool {
        matches!(self.place, Place::Nowhere) && self.keeping != Keeping::Nowhere
    }

    /// Starts a keeper in place of one that has gone. It holds nothing yet.
    pub fn replace(&mut self) -> io::Result<()> {
        self.place = Place::Nowhere;
        self.names.clear();
        #[cfg(test)]
        if self.keeping == Keeping::Found {
            let found = Kept::find(&self.run_dir)?.ok_or(io::ErrorKind::NotFound)?;
            self.place = Place::Keeper(found.kept);
            return Ok(());
        }
        self.place = Place::Keeper(Kept::start(&self.run_dir)?);
        Ok(())
    }

    /// Gives the keeper up: it does not take what it is given. The next tick starts another.
    pub fn give_up_keeper(&mut self) {
        if let Place::Keeper(kept) = std::mem::replace(&mut self.place, Place::Nowhere) {
            kept.discard();
        }
    }

    /// Whether a new keeper may mend what is wrong.
    pub fn is_a_keepers(&self) -> bool {
        !matches!(self.place, Place::Systemd { .. })
    }

    /// Gives copies of an account's descriptors into keeping: all that are not there yet, or none where that would be too many.
    pub fn put(&mut self, keepsakes: &[(Keepsake, BorrowedFd<'_>)]) -> Result<(), StoreError> {
        let is_kept = |keepsake: &Keepsake, name: &String| {
            let names = self.names.get(&keepsake.number);
            names.is_some_and(|names| names.contains(name))
        };
        let fresh: Vec<_> = keepsakes
            .iter()
            .map(|(keepsake, fd)| (keepsake, keepsake.to_string(), fd))
            .filter(|(keepsake, name, _)| !is_kept(keepsake, name))
            .collect();
        let kept: usize = self.names.values().map(Vec::len).sum();
        if let Place::Systemd { most } = self.place
            && kept + fresh.len() > most
        {
            return Err(StoreError::Full { most });
        }
        for (keepsake, name, fd) in fresh {
            step("store: put");
            match &mut self.place {
                Place::Systemd { .. } => notify::store(&name, fd.as_fd())?,
                Place::Keeper(kept) => kept.put(&name, fd.as_fd())?,
                Place::Nowhere if self.keeping == Keeping::Nowhere => {}
                Place::Nowhere => return Err(io::Error::from(io::ErrorKind::NotConnected).into()),
            }
            step("store: put done");
            self.names.entry(keepsake.number).or_default().push(name);
        }
        Ok(())
    }

    /// Lets go of what belongs to an account.
    pub fn forget(&mut self, number: u32) {
        for name in self.names.remove(&number).unwrap_or_default() {
            step("store: forget");
            self.remove(&name);
        }
    }

    fn remove(&mut self, name: &str) {
        let removed = match &mut self.place {
            Place::Systemd { .. } => notify::unstore(name),
            Place::Keeper(kept) => kept.remove(name),
            Place::Nowhere => Ok(()),
        };
        if let Err(error) = removed {
            // It stays until the next daemon finds that nobody needs it.
            tracing::debug!(%error, name, "a kept descriptor cannot be let go");
            if self.is_a_keepers() {
                // Waited for once: it is replaced at the next tick.
                self.place = Place::Nowhere;
            }
        }
    }

    /// The node ends for good: nothing is kept any more.
    pub fn end(&mut self) {
        if let Place::Keeper(kept) = std::mem::replace(&mut self.place, Place::Nowhere) {
            kept.end();
        }
    }
}

#[cfg(test)]
mod tests;
