//! What the daemon tells systemd, and keeps with it (sd_notify(3), systemd.service(5)). Where systemd did not start us, nothing
//! here does anything.

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use sd_notify::NotifyState;

/// Variables that concern this process alone, and are no child's.
pub const OWN_VARIABLES: [&str; 7] = [
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
    "FDSTORE",
];

/// What the unit asks for, `FileDescriptorStoreMax=`.
const STORED: usize = 16384;

/// How many descriptors systemd keeps for us; more it lets go without a word. Since its version 254 it says how many, an
/// earlier one is taken to go by our unit. `None`: none.
pub fn stores_descriptors() -> Option<usize> {
    std::env::var_os("NOTIFY_SOCKET")?;
    let most = std::env::var("FDSTORE").map_or(Some(STORED), |most| most.trim().parse().ok());
    most.filter(|most| *most > 0)
}

/// The descriptors systemd kept for us, with their names. Works once.
#[allow(unsafe_code)]
pub fn stored_descriptors() -> io::Result<Vec<(String, OwnedFd)>> {
    if std::env::var("LISTEN_FDS").is_ok_and(|count| count.trim() == "0") {
        return Ok(Vec::new()); // without names there is no list of them
    }
    let stored = sd_notify::listen_fds_with_names()?;
    // SAFETY: systemd opened these numbers for this process before it began (LISTEN_PID is checked), nothing else here
    // takes descriptors by number, and `Store::open` asks once per process.
    let owned = |(fd, name)| (name, unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(stored.map(owned).collect())
}

/// Gives systemd a copy of `fd` to keep under `name`.
pub fn store(name: &str, fd: BorrowedFd<'_>) -> io::Result<()> {
    let say = [
        NotifyState::FdStore,
        NotifyState::FdName(name),
        NotifyState::Custom("FDPOLL=0"),
    ];
    sd_notify::notify_with_fds(&say, &[fd])
}

/// Has systemd let go of what it keeps under `name`.
pub fn unstore(name: &str) -> io::Result<()> {
    sd_notify::notify(&[NotifyState::FdStoreRemove, NotifyState::FdName(name)])
}

/// Tells systemd how the daemon is: one per daemon.
#[derive(Debug)]
pub struct Notifier {
    enabled: bool,
    /// Half of the time systemd waits for a sign of life.
    interval: Option<Duration>,
    next: Instant,
    status: String,
}

impl Notifier {
    /// `enabled`: this process is the one that systemd started. An embedded node never speaks for its program.
    pub fn new(enabled: bool) -> Notifier {
        let interval = if enabled {
            sd_notify::watchdog_enabled()
        } else {
            None
        };
        Notifier {
            enabled,
            interval: interval.map(|whole| whole / 2),
            next: Instant::now(),
            status: String::new(),
        }
    }

    /// Clients are admitted, by the rules in force.
    pub fn ready(&mut self, status: String) {
        self.say(&[NotifyState::Ready, NotifyState::Status(&status)]);
        self.status = status;
    }

    /// The quota file is being read again; [`Notifier::ready`] says when that is over.
    pub fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.say(&[NotifyState::Reloading, now]),
            Err(_) => self.say(&[NotifyState::Reloading]),
        }
    }

    /// The daemon is about to end because it was told to.
    pub fn stopping(&self) {
        self.say(&[NotifyState::Stopping]);
    }

    /// A sign of life, when one is due, and what `systemctl status` shows, when that has changed. Called by the event loop
    /// alone: a loop that hangs gives none.
    pub fn alive(&mut self, now: Instant, status: impl FnOnce() -> String) {
        if !self.enabled {
            return;
        }
        if let Some(interval) = self.interval
            && now >= self.next
        {
            self.say(&[NotifyState::Watchdog]);
            self.next = now + interval;
        }
        let status = status();
        if status != self.status {
            self.say(&[NotifyState::Status(&status)]);
            self.status = status;
        }
    }

    /// Longest time until [`Notifier::alive`] is to be called again.
    pub fn patience(&self) -> Option<Duration> {
        self.interval
    }

    fn say(&self, states: &[NotifyState<'_>]) {
        if self.enabled
            && let Err(error) = sd_notify::notify(states)
        {
            tracing::warn!(%error, "systemd cannot be told");
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_unit_asks_for_as_many_descriptors_as_are_counted_on() {
        let unit = include_str!("../../packaging/systemd/stintd.service");
        assert!(unit.contains(&format!("\nFileDescriptorStoreMax={}\n", super::STORED)));
    }
}
