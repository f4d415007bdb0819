//! A gate: many pass at once while it is open; whoever shuts it waits until nobody is inside. It keeps calls that the recycler
//! makes for itself apart from calls of the program they must not meet. The waiting is for a driver call of ours alone, and
//! the one kind of wait there is in a hook.
//!
//! Next: `captures.rs`.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst};

use rustix::thread::futex;

/// The gate.
#[derive(Default)]
pub struct Gate {
    /// How many keep it shut.
    shut: AtomicU32,
    /// How many are inside; a futex.
    inside: AtomicU32,
}

/// Being inside.
pub struct Inside<'a>(&'a Gate);

/// Keeping it shut.
pub struct Shut<'a>(&'a Gate);

impl Gate {
    pub const fn new() -> Gate {
        Gate {
            shut: AtomicU32::new(0),
            inside: AtomicU32::new(0),
        }
    }

    pub fn is_shut(&self) -> bool {
        self.shut.load(Relaxed) != 0
    }

    /// Goes in; `None` while it is shut. Never waits.
    pub fn enter(&self) -> Option<Inside<'_>> {
        // Both sides write their word before they read the other's, so that at least one sees the other.
        self.inside.fetch_add(1, SeqCst);
        let inside = Inside(self);
        (self.shut.load(SeqCst) == 0).then_some(inside)
    }

    /// Shuts it and waits for those inside.
    pub fn shut(&self) {
        self.shut.fetch_add(1, SeqCst);
        loop {
            let inside = self.inside.load(SeqCst);
            if inside == 0 {
                return;
            }
            // An error, an early return, a change meanwhile: look again.
            let _ = futex::wait(&self.inside, futex::Flags::PRIVATE, inside, None);
        }
    }

    /// Ends one [`Gate::shut`].
    pub fn open(&self) {
        self.shut.fetch_sub(1, SeqCst);
    }

    /// Keeps it shut until the answer is dropped.
    pub fn keep_shut(&self) -> Shut<'_> {
        self.shut();
        Shut(self)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let was = self.0.inside.fetch_sub(1, SeqCst);
        if was == 1 && self.0.shut.load(SeqCst) != 0 {
            let _ = futex::wake(&self.0.inside, futex::Flags::PRIVATE, u32::MAX >> 1);
        }
    }
}

impl Drop for Shut<'_> {
    fn drop(&mut self) {
        self.0.open();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_inside_while_it_is_shut() {
        let gate = Gate::new();
        let (inside, shut) = (AtomicU32::new(0), AtomicU32::new(0));
        let passed = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while passed.load(Relaxed) < 2000 {
                        if let Some(_inside) = gate.enter() {
                            inside.fetch_add(1, SeqCst);
                            std::thread::yield_now();
                            assert_eq!(shut.load(SeqCst), 0);
                            inside.fetch_sub(1, SeqCst);
                            passed.fetch_add(1, Relaxed);
                        }
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..2000 {
                    let _shut = gate.keep_shut();
                    shut.store(1, SeqCst);
                    assert_eq!(inside.load(SeqCst), 0);
                    shut.store(0, SeqCst);
                }
            });
        });
        assert!(gate.enter().is_some() && !gate.is_shut());
    }
}
