//! Steps of what the daemon does, at each of which tests kill it (`daemon/tests/steps.rs`). Outside of tests there is nothing.

/// The daemon is about to do, or has just done, what `name` says.
#[cfg(not(test))]
#[inline(always)]
pub fn step(_name: &'static str) {}

#[cfg(test)]
pub use counted::step;

#[cfg(test)]
pub mod counted {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    /// Steps until this process kills itself; 0: never.
    static LEFT: AtomicU64 = AtomicU64::new(0);
    /// Steps so far.
    static DONE: AtomicU64 = AtomicU64::new(0);

    /// This process kills itself at its `at`-th step from now; 0: never.
    pub fn die_at(at: u64) {
        DONE.store(0, Relaxed);
        LEFT.store(at, Relaxed);
    }

    /// Steps since [`die_at`].
    pub fn done() -> u64 {
        DONE.load(Relaxed)
    }

    pub fn step(name: &'static str) {
        let done = DONE.fetch_add(1, Relaxed) + 1;
        if LEFT.load(Relaxed) == done {
            println!("@dies at step {done}: {name}");
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            loop {
                std::thread::park();
            }
        }
    }
}
