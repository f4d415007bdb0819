//! Process ids: the ledger has those of the daemon's namespace, a program is told those of its own.
//!
//! The kernel shows a process of another namespace only from above, so a program below cannot be told by number which of
//! its neighbours a ledger entry is. Start times are the same in all pid namespaces, and tell; a time namespace shifts all
//! of them alike.

use ledger::slot::Owner;

/// The processes this namespace shows of one account's.
pub struct Neighbours {
    /// Inode of the account object.
    account: u64,
    /// (id here, start time), read when first needed.
    visible: Option<Vec<(u32, u64)>>,
    /// What this time namespace adds to a start time.
    shift: i64,
}

impl Neighbours {
    /// Of the account whose object has this inode.
    pub fn of(account: u64) -> Neighbours {
        Neighbours {
            account,
            visible: None,
            shift: shift(),
        }
    }

    /// The owner's id here; `None` if it is in no namespace below or at this one.
    pub fn id_of(&mut self, owner: &Owner) -> Option<u32> {
        let expected = owner.start_time.checked_add_signed(self.shift)?;
        // The usual case: one namespace for all.
        if start_time(owner.pid) == Some(expected) {
            return Some(owner.pid);
        }
        let visible = self.visible.get_or_insert_with(visible);
        // Others may have started in the same hundredth of a second; a client has the account mapped.
        let is_it = |(pid, started): &(u32, u64)| *started == expected && maps(*pid, self.account);
        let at = visible.iter().position(is_it)?;
        // Two clients of one instant are both found, each once; which has which figure is not to be told from in here.
        Some(visible.swap_remove(at).0)
    }
}

/// Whether the process has the object of this inode mapped as a client. What may not be looked at is somebody else's.
fn maps(pid: u32, inode: u64) -> bool {
    let maps = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let maps = String::from_utf8_lossy(&maps);
    maps.lines().any(|line| has_inode(line, inode))
}

/// A line of `/proc/PID/maps`: range, rights, offset, device, inode, path.
fn has_inode(line: &str, inode: u64) -> bool {
    let mut fields = line.split_ascii_whitespace().skip(1);
    // An observer has it too, but only for reading.
    fields.next().is_some_and(|rights| rights.starts_with("rw"))
        && fields.nth(2).and_then(|field| field.parse().ok()) == Some(inode)
        && fields.next().is_some_and(|path| path.starts_with("/memfd:"))
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

/// What this process's time namespace adds to times since boot, in clock ticks; 0 in the first one, or where there are none.
fn shift() -> i64 {
    let text = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    // SAFETY: no preconditions; a negative answer means nobody knows, and then nothing is shifted.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(0);
    text.lines()
        .find_map(|line| parse_shift(line, ticks))
        .unwrap_or(0)
}

/// The line `boottime SECONDS NANOSECONDS`.
fn parse_shift(line: &str, ticks: i64) -> Option<i64> {
    let mut fields = line.split_ascii_whitespace();
    if fields.next() != Some("boottime") {
        return None;
    }
    fields.next()?.parse::<i64>().ok()?.checked_mul(ticks)
}

/// In clock ticks since boot; `None` where there is no such process.
fn start_time(pid: u32) -> Option<u64> {
    // A process may give itself a name of any bytes.
    let bytes = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(&String::from_utf8_lossy(&bytes))
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
    fn a_time_namespace_says_what_it_adds() {
        assert_eq!(
            parse_shift("boottime    1000000         0", 100),
            Some(100_000_000)
        );
        assert_eq!(parse_shift("boottime -20 500000000", 100), Some(-2000));
        assert_eq!(parse_shift("monotonic 7 0", 100), None);
        assert_eq!(parse_shift("", 100), None);
    }

    #[test]
    fn a_process_is_found_by_its_number_or_by_its_start_and_what_it_maps() {
        let fd = rustix::fs::memfd_create("neighbours", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&fd, 4096).unwrap();
        let inode = rustix::fs::fstat(&fd).unwrap().st_ino;
        let me = std::process::id();
        let owner = |pid, start_time| Owner {
            pid,
            start_time,
            nonce: 1,
        };
        let started = start_time(me).unwrap();
        assert_eq!(Neighbours::of(inode).id_of(&owner(me, started)), Some(me));
        assert_eq!(Neighbours::of(inode).id_of(&owner(me, u64::MAX)), None);
        // Another namespace's number for us: we are known by the mapping.
        let elsewhere = owner(u32::MAX, started);
        assert_eq!(Neighbours::of(inode).id_of(&elsewhere), None);
        let (both, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let raw = rustix::fd::AsRawFd::as_raw_fd(&fd);
        // SAFETY: a fresh mapping of a page nobody touches.
        let page = unsafe { libc::mmap(core::ptr::null_mut(), 4096, both, shared, raw, 0) };
        assert_ne!(page, libc::MAP_FAILED);
        let mut neighbours = Neighbours::of(inode);
        assert_eq!(
            (neighbours.id_of(&elsewhere), neighbours.id_of(&elsewhere)),
            (Some(me), None)
        );
        // SAFETY: the mapping made above.
        unsafe { libc::munmap(page, 4096) };
    }

    #[test]
    fn a_mapping_is_known_by_its_inode() {
        let line = "7f00-7f01 rw-s 00000000 00:01 1234                       /memfd:stint-account (deleted)";
        assert!(has_inode(line, 1234));
        assert!(!has_inode(line, 123));
        assert!(!has_inode(&line.replace("rw-s", "r--s"), 1234));
        assert!(!has_inode(
            "7f00-7f01 r--p 00000000 fe:00 1234 /usr/lib/libc.so.6",
            1234
        ));
        assert!(!has_inode("7f00-7f01 rw-p 00000000 00:00 0", 0));
    }
}
