//! What looking at mappings may cost. Whether a process executed another program is seen by what it maps, and a process may
//! map tens of thousands of files and say so as often as it likes: a user has so many bytes of `/proc/PID/maps` a second
//! looked at, and what is beyond waits for a later tick.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Bytes of a user in [`SECOND`]. A program of PyTorch has about 400 KB, one that has just begun a tenth of that.
const MOST: usize = 16 << 20;
const SECOND: Duration = Duration::from_secs(1);

/// What was looked at lately, by user.
#[derive(Debug, Default)]
pub struct Looks(BTreeMap<u32, (Instant, usize)>);

impl Looks {
    /// Whether one more look at a process of `user` is due.
    pub fn may(&mut self, user: u32, now: Instant) -> bool {
        self.0.retain(|_, (since, _)| now.duration_since(*since) < SECOND);
        self.0.get(&user).is_none_or(|(_, bytes)| *bytes < MOST)
    }

    /// It took so many bytes.
    pub fn took(&mut self, user: u32, bytes: usize, now: Instant) {
        let (_, so_far) = self.0.entry(user).or_insert((now, 0));
        *so_far = so_far.saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_so_much_looked_at_a_second_and_others_as_much() {
        let (mut looks, now) = (Looks::default(), Instant::now());
        for _ in 0..4 {
            assert!(looks.may(1, now));
            looks.took(1, MOST / 4, now);
        }
        assert!(!looks.may(1, now) && !looks.may(1, now + SECOND / 2));
        assert!(looks.may(2, now), "another user");
        assert!(looks.may(1, now + SECOND), "later");
    }
}
