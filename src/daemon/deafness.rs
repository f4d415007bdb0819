//! Nobody can be taken in while no descriptor is left for a connection, and a connection that is not taken wakes the loop again
//! at once. So the daemon listens to nobody for a moment, again and again until there is one; who waits stays in the socket's
//! queue. Some descriptors are kept back for what it does for those it has taken in.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::process::{Resource, getrlimit};

use super::core::Core;
use super::sources::{ADMIN, ATTACH};
use super::step::step;
use crate::state::Event;

/// Time for which nobody is listened to.
pub const PAUSE: Duration = Duration::from_millis(100);
/// Without an error for so long it is over.
const CALM: Duration = Duration::from_secs(10);
/// Descriptors kept back, and at most this part of all.
const KEPT_BACK: u64 = 128;
const PART_KEPT_BACK: u64 = 4;

/// Whether the daemon listens.
#[derive(Debug, Default)]
pub struct Deafness {
    until: Option<Instant>,
    /// When it last began, until it is told to be over.
    last: Option<Instant>,
}

impl Deafness {
    /// Begins, or goes on. Whether that is news.
    fn begin(&mut self, now: Instant) -> bool {
        self.until = Some(now + PAUSE);
        self.last.replace(now).is_none()
    }

    /// Whether it is time to listen again.
    fn ends(&mut self, now: Instant) -> bool {
        self.until.take_if(|until| *until <= now).is_some()
    }

    /// Whether all is well again, told once.
    fn is_over(&mut self, now: Instant) -> bool {
        self.until.is_none()
            && self
                .last
                .take_if(|last| now.duration_since(*last) > CALM)
                .is_some()
    }

    /// Longest time until it is to be looked at again.
    pub fn patience(&self, now: Instant) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(now))
    }
}

impl Core {
    /// Whether one more connection leaves enough descriptors. Else nobody is listened to for a moment.
    pub fn may_accept(&mut self) -> bool {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let enough = match open_descriptors() {
            Ok(open) => open + KEPT_BACK.min(limit / PART_KEPT_BACK) < limit,
            Err(error) => {
                self.deafen(&error);
                return false;
            }
        };
        if !enough {
            self.deafen(&rustix::io::Errno::MFILE.into());
        }
        enough
    }

    /// A connection cannot be taken.
    pub fn deafen(&mut self, error: &io::Error) {
        step("accept: nobody");
        self.listen_to_newcomers(epoll::EventFlags::empty());
        if self.deafness.begin(Instant::now()) {
            let limit = getrlimit(Resource::Nofile)
                .current
                .map_or("no limit".into(), |limit| limit.to_string());
            let what = format!(
                "no connection can be taken: {error} (limit of open files: {limit}): newcomers wait until descriptors are closed"
            );
            self.apply(Event::Fault { what });
        }
    }

    /// Listens again where it is time for that.
    pub fn hear_again(&mut self, now: Instant) {
        if self.deafness.ends(now) {
            self.listen_to_newcomers(epoll::EventFlags::IN);
        }
        if self.deafness.is_over(now) {
            self.apply(Event::State {
                what: "connections are taken again".into(),
            });
        }
    }

    fn listen_to_newcomers(&self, flags: epoll::EventFlags) {
        let attach = epoll::EventData::new_u64(ATTACH);
        let admin = epoll::EventData::new_u64(ADMIN);
        let both = epoll::modify(&self.epoll, &self.attach_listener, attach, flags)
            .and_then(|()| epoll::modify(&self.epoll, &self.admin_listener, admin, flags));
        if let Err(error) = both {
            tracing::error!(%error, "newcomers cannot be listened to");
        }
    }
}

/// Descriptors this process has open. Since Linux 6.2 that is the length of the directory; before, they are counted.
fn open_descriptors() -> io::Result<u64> {
    let open = std::fs::metadata("/proc/self/fd")?.len();
    if open > 0 {
        return Ok(open);
    }
    Ok(std::fs::read_dir("/proc/self/fd")?.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_counted_whatever_their_numbers() {
        let before = open_descriptors().unwrap();
        // A hole below, and a number far above: other tests open some, too, and none opens hundreds.
        let many: Vec<_> = (0..900)
            .map(|_| std::fs::File::open("/dev/null").unwrap())
            .collect();
        let high = rustix::io::fcntl_dupfd_cloexec(&many[0], 900).unwrap();
        assert!(open_descriptors().unwrap() > before + 450);
        drop(many);
        assert!(open_descriptors().unwrap() < before + 450);
        drop(high);
    }

    #[test]
    fn it_is_told_once_and_over_when_all_was_well_for_a_while() {
        let (mut deafness, begin) = (Deafness::default(), Instant::now());
        assert!(deafness.begin(begin));
        assert!(
            !deafness.ends(begin) && !deafness.is_over(begin + 2 * CALM),
            "it goes on"
        );
        assert!(deafness.ends(begin + PAUSE) && !deafness.ends(begin + PAUSE));
        assert!(!deafness.begin(begin + PAUSE), "the same one");
        assert_eq!(deafness.patience(begin + PAUSE), Some(PAUSE));
        assert!(deafness.ends(begin + 2 * PAUSE));
        assert!(!deafness.is_over(begin + CALM));
        assert!(deafness.is_over(begin + 2 * CALM) && !deafness.is_over(begin + 3 * CALM));
        assert!(deafness.begin(begin + 3 * CALM), "another one");
    }
}
