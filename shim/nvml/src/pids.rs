//! Process ids: the ledger has those of the daemon's namespace, a program is told those of its own.
//!
//! The kernel shows a process of another namespace only from above, so a program below cannot be told by number which of
//! its neighbours a ledger entry is. Start times are the same in all namespaces, and tell.

use ledger::slot::Owner;

/// The ids in this namespace of owners that it can see, by owner.
pub struct Neighbours {
    /// (id here, start time), read when first needed.
    visible: Option<Vec<(u32, u64)>>,
}

impl Neighbours {
    pub fn new() -> Neighbours {
        Neighbours { visible: None }
    }

    /// The owner's id here; `None` if it is in no namespace below or at this one.
    pub fn id_of(&mut self, owner: &Owner) -> Option<u32> {
        // The usual case: one namespace for all.
        if start_time(owner.pid) == Some(owner.start_time) {
            return Some(owner.pid);
        }
        let visible = self.visible.get_or_insert_with(visible);
        let at = visible
            .iter()
            .position(|(_, started)| *started == owner.start_time)?;
        // Two that started in the same hundredth of a second are both found, each once.
        Some(visible.swap_remove(at).0)
    }
}

/// Every process this namespace shows.
fn visible() -> Vec<(u32, u64)> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|pid| Some((pid, start_time(pid)?)))
        .collect()
}

/// In clock ticks since boot; `None` where there is no such process.
fn start_time(pid: u32) -> Option<u64> {
    parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The 22nd field of `/proc/PID/stat`; the second is a name that may hold anything, up to the last parenthesis.
fn parse(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_time_is_read_past_any_name() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 100 5";
        assert_eq!(parse(stat), Some(4242));
        assert_eq!(parse(""), None);
    }

    #[test]
    fn a_process_is_found_by_its_number_or_by_its_start() {
        let me = std::process::id();
        let started = start_time(me).unwrap();
        let owner = |pid, start_time| Owner {
            pid,
            start_time,
            nonce: 1,
        };
        assert_eq!(Neighbours::new().id_of(&owner(me, started)), Some(me));
        // Another namespace's number for us; nothing else is known to have started just then.
        let elsewhere = Neighbours::new().id_of(&owner(u32::MAX, started));
        assert!(elsewhere.is_some_and(|pid| start_time(pid) == Some(started)));
        assert_eq!(Neighbours::new().id_of(&owner(me, u64::MAX)), None);
    }
}
