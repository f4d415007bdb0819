//! Where the accounts' descriptors are while no daemon runs: in systemd's descriptor store, or with a `stint keeper`
//! (`keeper.rs`). What they are is in their names (`enforce/keepsake.rs`); `adopt.rs` takes them back.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use super::notify;
use super::step::step;
use crate::enforce::keepsake::Keepsake;
use crate::keeper::Kept;

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
    Systemd,
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

impl Store {
    /// Opens the store and takes what an earlier daemon left there. The message says what is wrong with it.
    pub fn open(keeping: Keeping, run_dir: &Path) -> (Store, Vec<Left>, Option<String>) {
        let mut store = Store {
            keeping,
            run_dir: run_dir.into(),
            place: Place::Nowhere,
            names: BTreeMap::new(),
        };
        let opened = match keeping {
            Keeping::Nowhere => Ok(Vec::new()),
            Keeping::Outside if notify::stores_descriptors() => {
                store.place = Place::Systemd;
                notify::stored_descriptors()
            }
            _ => Kept::find(run_dir).and_then(|found| match found {
                Some((kept, left)) => {
                    store.place = Place::Keeper(kept);
                    Ok(left)
                }
                None => store.replace().map(|()| Vec::new()),
            }),
        };
        let (left, mut wrong) = match opened {
            Ok(left) => (left, None),
            Err(error) => (
                Vec::new(),
                Some(format!(
                    "descriptors of clients cannot be kept over a restart: {error}"
                )),
            ),
        };
        let mut known = Vec::new();
        for (name, fd) in left {
            match name.parse::<Keepsake>() {
                Ok(keepsake) => {
                    store.names.entry(keepsake.number).or_default().push(name);
                    known.push((keepsake, fd));
                }
                Err(_) => {
                    wrong.get_or_insert(format!(
                        "a kept descriptor `{name}` is none of ours and was let go"
                    ));
                    store.remove(&name);
                }
            }
        }
        (store, known, wrong)
    }

    /// Readable when the keeper has gone; to be asked for again after [`Store::replace`].
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.place {
            Place::Keeper(kept) => Some(kept.socket()),
            Place::Systemd | Place::Nowhere => None,
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
            let (kept, _) = Kept::find(&self.run_dir)?.ok_or(io::ErrorKind::NotFound)?;
            self.place = Place::Keeper(kept);
            return Ok(());
        }
        self.place = Place::Keeper(Kept::start(&self.run_dir)?);
        Ok(())
    }

    /// Gives copies of an account's descriptors into keeping.
    pub fn put(&mut self, keepsakes: &[(Keepsake, BorrowedFd<'_>)]) -> io::Result<()> {
        for (keepsake, fd) in keepsakes {
            let name = keepsake.to_string();
            let names = self.names.entry(keepsake.number).or_default();
            if names.contains(&name) {
                continue;
            }
            step("store: put");
            match &mut self.place {
                Place::Systemd => notify::store(&name, fd.as_fd())?,
                Place::Keeper(kept) => kept.put(&name, fd.as_fd())?,
                Place::Nowhere if self.keeping == Keeping::Nowhere => {}
                Place::Nowhere => return Err(io::ErrorKind::NotConnected.into()),
            }
            step("store: put done");
            names.push(name);
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
            Place::Systemd => notify::unstore(name),
            Place::Keeper(kept) => kept.remove(name),
            Place::Nowhere => Ok(()),
        };
        if let Err(error) = removed {
            // It stays until the next daemon finds that nobody needs it.
            tracing::debug!(%error, name, "a kept descriptor cannot be let go");
        }
    }

    /// The node ends for good: nothing is kept any more.
    pub fn end(&mut self) {
        if let Place::Keeper(kept) = std::mem::replace(&mut self.place, Place::Nowhere) {
            kept.end();
        }
    }
}
