//! The list of clients in the run directory: a daemon that starts tells by it whether clients of its predecessor live, whose
//! charges it does not know. One fixed line per client, written in place before the client gets its reply.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::admission::process::{Identity, stat};

/// Bytes of one line: pid in 10, start time in 20 digits, a blank and an end of line.
const LINE: usize = 32;

/// The list, and which line each client has. Line 0 names the boot, since start times count from it.
#[derive(Debug)]
pub struct ClientList {
    file: File,
    lines: BTreeMap<Identity, u64>,
    free: BTreeSet<u64>,
    next: u64,
}

impl ClientList {
    /// Takes over the list a predecessor left: empties it and returns those of its entries that still live, which stay
    /// listed.
    pub fn take_over(file: File) -> io::Result<(ClientList, Vec<Identity>)> {
        let boot = line(
            &std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?
                .trim()
                .replace('-', ""),
        );
        let left = read(&file, &boot)?;
        let living: Vec<Identity> = left
            .into_iter()
            .filter(|client| stat(client.pid).is_some_and(|now| now.identity == *client))
            .collect();
        file.set_len(0)?;
        file.write_all_at(&boot, 0)?;
        let mut list = ClientList {
            file,
            lines: BTreeMap::new(),
            free: BTreeSet::new(),
            next: 1,
        };
        for client in &living {
            list.add(*client)?;
        }
        Ok((list, living))
    }

    /// Lists a client.
    pub fn add(&mut self, client: Identity) -> io::Result<()> {
        if self.lines.contains_key(&client) {
            return Ok(());
        }
        let at = self.free.pop_first().unwrap_or(self.next);
        let text = line(&format!("{:>10} {:>20}", client.pid, client.start_time));
        self.file.write_all_at(&text, at * LINE as u64)?;
        self.next = self.next.max(at + 1);
        self.lines.insert(client, at);
        Ok(())
    }

    /// Takes a client off the list.
    pub fn remove(&mut self, client: Identity) -> io::Result<()> {
        let Some(at) = self.lines.remove(&client) else {
            return Ok(());
        };
        self.free.insert(at);
        self.file.write_all_at(&line(""), at * LINE as u64)
    }
}

/// `text`, cut or filled with blanks to the length of a line.
fn line(text: &str) -> [u8; LINE] {
    let mut line = [b' '; LINE];
    for (byte, from) in line[..LINE - 1].iter_mut().zip(text.bytes()) {
        *byte = from;
    }
    line[LINE - 1] = b'\n';
    line
}

/// The entries of a list of this boot; what makes no sense is skipped.
fn read(file: &File, boot: &[u8; LINE]) -> io::Result<Vec<Identity>> {
    let mut bytes = vec![0; file.metadata()?.len() as usize];
    file.read_exact_at(&mut bytes, 0)?;
    let mut lines = bytes.chunks_exact(LINE);
    if lines.next() != Some(boot) {
        return Ok(Vec::new());
    }
    let entry = |line: &[u8]| {
        let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
        Some(Identity {
            pid: words.next()?.parse().ok()?,
            start_time: words.next()?.parse().ok()?,
        })
    };
    Ok(lines.filter_map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn me() -> Identity {
        stat(std::process::id()).unwrap().identity
    }

    #[test]
    fn the_living_are_found_and_the_dead_and_the_reborn_are_not() {
        let file = tempfile::tempfile().unwrap();
        let (mut list, living) = ClientList::take_over(file.try_clone().unwrap()).unwrap();
        assert!(living.is_empty());
        let reborn = Identity {
            start_time: me().start_time + 1,
            ..me()
        };
        let dead = Identity {
            pid: u32::MAX >> 1,
            start_time: 3,
        };
        for client in [dead, me(), reborn] {
            list.add(client).unwrap();
        }
        drop(list);
        let (mut list, living) = ClientList::take_over(file.try_clone().unwrap()).unwrap();
        assert_eq!(living, [me()]);
        list.remove(me()).unwrap();
        let (_, living) = ClientList::take_over(file).unwrap();
        assert!(living.is_empty());
    }

    #[test]
    fn a_list_does_not_grow_with_clients_that_came_and_went() {
        let file = tempfile::tempfile().unwrap();
        let (mut list, _) = ClientList::take_over(file.try_clone().unwrap()).unwrap();
        for pid in 1..5000 {
            let client = Identity { pid, start_time: 1 };
            list.add(client).unwrap();
            list.remove(client).unwrap();
        }
        assert_eq!(file.metadata().unwrap().len(), 2 * LINE as u64);
    }

    #[test]
    fn a_list_of_another_boot_names_nobody() {
        let file = tempfile::tempfile().unwrap();
        let (mut list, _) = ClientList::take_over(file.try_clone().unwrap()).unwrap();
        list.add(me()).unwrap();
        file.write_all_at(b"0123", 0).unwrap();
        assert!(ClientList::take_over(file).unwrap().1.is_empty());
    }
}
