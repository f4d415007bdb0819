//! The blocks that are kept: first open, until a batch is closed and its certificate asked for; then closed, until that has
//! come; then idle. A value: it asks no driver and no clock.
//!
//! Next: `certificate.rs`.

use std::collections::{BTreeMap, VecDeque};

use driver::abi::{CUevent, CUstream};

use crate::live::{AccountIndex, Allocation, Charged};

/// A block that the program freed and the driver did not.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub pointer: u64,
    /// As it stood in the books; `plain` is its exact size.
    pub allocation: Allocation,
    /// Its place in the order of frees.
    pub turn: u64,
    /// When it was freed, in nanoseconds.
    pub since: u64,
}

impl Block {
    /// Bytes charged for it.
    pub fn charge(&self) -> u64 {
        match self.allocation.charged {
            Charged::Alone(bytes) => bytes,
            _ => 0,
        }
    }

    /// Whose it is and how large.
    pub fn key(&self) -> Key {
        (self.allocation.context, self.allocation.plain.unwrap_or(0))
    }
}

/// Context, as a number, and exact size in bytes.
pub type Key = (usize, u64);

/// An event recorded in a context.
#[derive(Clone, Copy, Debug)]
pub struct Ticket {
    pub context: usize,
    pub event: CUevent,
}

// SAFETY: an event's handle is a name; every thread of the process may use it.
unsafe impl Send for Ticket {}

/// A stream's handle.
#[derive(Clone, Copy, Debug)]
struct Filler(CUstream);

// SAFETY: as for `Ticket`.
unsafe impl Send for Filler {}

/// Blocks that one certificate covers.
#[derive(Debug)]
struct Batch {
    number: u64,
    tickets: Vec<Ticket>,
    /// Somebody waits for the events, who gives them back.
    awaited: bool,
    blocks: Vec<Block>,
}

/// All of them.
#[derive(Default)]
pub struct Blocks {
    open: Vec<Block>,
    closed: VecDeque<Batch>,
    idle: BTreeMap<Key, Vec<Block>>,
    /// Events to record again.
    spare: Vec<Ticket>,
    /// Streams in which blocks are filled, by context.
    fillers: Vec<(usize, Filler)>,
    batches: u64,
    /// Contexts that ended.
    ended: u64,
    /// Bytes kept for each account.
    held: Vec<u64>,
    count: usize,
    turn: u64,
    /// Contexts whose certificate failed or that showed an error that stays.
    given_up: Vec<usize>,
}

impl Blocks {
    pub const fn new() -> Blocks {
        Blocks {
            open: Vec::new(),
            closed: VecDeque::new(),
            idle: BTreeMap::new(),
            spare: Vec::new(),
            fillers: Vec::new(),
            batches: 0,
            ended: 0,
            held: Vec::new(),
            count: 0,
            turn: 0,
            given_up: Vec::new(),
        }
    }

    /// How many are kept.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes kept for an account.
    pub fn held(&self, account: AccountIndex) -> u64 {
        self.held.get(account).copied().unwrap_or(0)
    }

    /// The latest free's place in the order.
    pub fn turn(&self) -> u64 {
        self.turn
    }

    /// Keeps a block.
    pub fn keep(&mut self, mut block: Block) {
        self.turn += 1;
        block.turn = self.turn;
        self.count += 1;
        let account = block.allocation.account;
        if self.held.len() <= account {
            self.held.resize(account + 1, 0);
        }
        self.held[account] += block.charge();
        self.open.push(block);
    }

    fn make_idle(&mut self, block: Block) {
        self.idle.entry(block.key()).or_default().push(block);
    }

    pub fn open_len(&self) -> usize {
        self.open.len()
    }

    /// Whether so many wait for a certificate, and so few do not, that one ought to be asked for before it is wanted.
    pub fn runs_low(&self) -> bool {
        self.closed.is_empty() && self.open.len() >= 16 && self.count - self.open.len() <= self.open.len() / 2
    }

    /// Whether an open one has this key.
    pub fn has_open(&self, key: Key) -> bool {
        self.open.iter().any(|block| block.key() == key)
    }

    /// Closes what was freed up to `turn`, after which `tickets` were recorded in every context; `awaited`: they are given back
    /// by [`Blocks::add_spares_of`].
    pub fn close(&mut self, turn: u64, tickets: Vec<Ticket>, awaited: bool) {
        let covered = |block: &mut Block| block.turn <= turn;
        let blocks: Vec<Block> = self.open.extract_if(.., covered).collect();
        if blocks.is_empty() {
            return self.end(tickets, awaited);
        }
        self.batches += 1;
        self.closed.push_back(Batch {
            number: self.batches,
            tickets,
            awaited,
            blocks,
        });
    }

    /// This batch's certificate cannot be had: its blocks wait for another.
    pub fn reopen(&mut self, number: u64) {
        if let Some(at) = self.closed.iter().position(|batch| batch.number == number)
            && let Some(batch) = self.closed.remove(at)
        {
            self.open.extend(batch.blocks);
        }
    }

    /// The oldest closed batch: its number, and the events it waits for.
    pub fn oldest_closed(&self) -> Option<(u64, Vec<Ticket>)> {
        self.closed
            .front()
            .map(|batch| (batch.number, batch.tickets.clone()))
    }

    /// The certificate of this batch has come, which covers all that was freed earlier, too.
    pub fn promote(&mut self, number: u64) {
        while self.closed.front().is_some_and(|batch| batch.number <= number) {
            let Some(batch) = self.closed.pop_front() else {
                return;
            };
            self.end(batch.tickets, batch.awaited);
            for block in batch.blocks {
                self.make_idle(block);
            }
        }
    }

    /// Ends batches whose blocks are all gone.
    fn prune(&mut self) {
        let empty: Vec<Batch> = (self.closed.iter().any(|batch| batch.blocks.is_empty()))
            .then(|| core::mem::take(&mut self.closed))
            .into_iter()
            .flatten()
            .filter_map(|batch| match batch.blocks.is_empty() {
                true => Some(batch),
                false => {
                    self.closed.push_back(batch);
                    None
                }
            })
            .collect();
        for batch in empty {
            self.end(batch.tickets, batch.awaited);
        }
    }

    fn end(&mut self, tickets: Vec<Ticket>, awaited: bool) {
        if !awaited {
            self.spare.extend(tickets);
        }
    }

    /// Everything in every context up to `turn` is complete.
    pub fn promote_until(&mut self, turn: u64) {
        let quiet = |block: &mut Block| block.turn <= turn;
        let mut ripe: Vec<Block> = self.open.extract_if(.., quiet).collect();
        for batch in &mut self.closed {
            ripe.extend(batch.blocks.extract_if(.., quiet));
        }
        self.prune();
        for block in ripe {
            self.make_idle(block);
        }
    }

    /// An idle block: the one kept last.
    pub fn take_idle(&mut self, key: Key) -> Option<Block> {
        let blocks = self.idle.get_mut(&key)?;
        let block = blocks.pop();
        if blocks.is_empty() {
            self.idle.remove(&key);
        }
        block.inspect(|block| self.left(block))
    }

    /// A block of `account`: an idle one where there is one, which was kept longest, else one that waits for its certificate,
    /// which was freed first. The driver waits for its work.
    pub fn take_oldest(&mut self, account: AccountIndex) -> Option<Block> {
        self.take_where(|block| block.allocation.account == account)
    }

    /// A block of `account` and `context` that was freed before `before`, in the same order.
    pub fn take_older(&mut self, account: AccountIndex, context: usize, before: u64) -> Option<Block> {
        self.take_where(|block| {
            let of = block.allocation;
            of.account == account && of.context == context && block.since < before
        })
    }

    fn take_where(&mut self, wanted: impl Fn(&Block) -> bool) -> Option<Block> {
        let oldest = |blocks: &mut dyn Iterator<Item = &Block>| {
            let wanted = blocks.filter(|block| wanted(block));
            wanted.min_by_key(|block| block.since).map(|block| block.pointer)
        };
        let waiting = self.closed.iter().flat_map(|batch| &batch.blocks);
        let found =
            oldest(&mut self.idle.values().flatten()).or_else(|| oldest(&mut waiting.chain(&self.open)))?;
        self.take_at(found)
    }

    /// Takes everything of `context` that was allocated up to the instant `until`: the driver ended it.
    pub fn take_context(&mut self, context: usize, until: u64) -> Vec<Block> {
        self.ended += 1;
        let own = |block: &mut Block| block.allocation.context == context && block.allocation.serial <= until;
        let mut gone: Vec<Block> = self.open.extract_if(.., own).collect();
        for batch in &mut self.closed {
            gone.extend(batch.blocks.extract_if(.., own));
            // What ran there has ended with it.
            batch.tickets.retain(|ticket| ticket.context != context);
        }
        for blocks in self.idle.values_mut() {
            gone.extend(blocks.extract_if(.., own));
        }
        self.idle.retain(|_, blocks| !blocks.is_empty());
        self.spare.retain(|ticket| ticket.context != context);
        self.fillers.retain(|(of, _)| *of != context);
        self.given_up.retain(|of| *of != context);
        self.prune();
        for block in &gone {
            self.left(block);
        }
        gone
    }

    /// Takes the block at exactly this address.
    pub fn take_at(&mut self, pointer: u64) -> Option<Block> {
        let at = |block: &mut Block| block.pointer == pointer;
        let mut gone: Vec<Block> = self.open.extract_if(.., at).collect();
        for batch in &mut self.closed {
            gone.extend(batch.blocks.extract_if(.., at));
        }
        for blocks in self.idle.values_mut() {
            gone.extend(blocks.extract_if(.., at));
        }
        self.idle.retain(|_, blocks| !blocks.is_empty());
        self.prune();
        gone.pop().inspect(|block| self.left(block))
    }

    /// Whether the address lies in a block that is kept.
    pub fn covers(&self, address: u64) -> bool {
        let within = |block: &Block| {
            address >= block.pointer && address - block.pointer < block.allocation.plain.unwrap_or(0)
        };
        self.open.iter().any(within)
            || self.closed.iter().flat_map(|batch| &batch.blocks).any(within)
            || self.idle.values().flatten().any(within)
    }

    /// An event of `context` to record again.
    pub fn spare(&mut self, context: usize) -> Option<Ticket> {
        let at = self.spare.iter().position(|ticket| ticket.context == context)?;
        Some(self.spare.swap_remove(at))
    }

    pub fn add_spares(&mut self, tickets: Vec<Ticket>) {
        self.spare.extend(tickets);
    }

    /// An instant: rises when contexts end.
    pub fn ended(&self) -> u64 {
        self.ended
    }

    /// Events to record again, as far as no context has ended since the instant `ended`: theirs may have.
    pub fn add_spares_of(&mut self, ended: u64, tickets: Vec<Ticket>) {
        if self.ended == ended {
            self.spare.extend(tickets);
        }
    }

    /// The stream in which blocks of `context` are filled.
    pub fn filler(&self, context: usize) -> Option<CUstream> {
        let of = self.fillers.iter().find(|(of, _)| *of == context);
        of.map(|(_, filler)| filler.0)
    }

    pub fn add_filler(&mut self, context: usize, stream: CUstream) {
        self.fillers.push((context, Filler(stream)));
    }

    /// From now on nothing is recycled until `context` is gone.
    pub fn give_up(&mut self, context: usize) {
        if !self.given_up.contains(&context) {
            self.given_up.push(context);
        }
    }

    pub fn has_given_up(&self) -> bool {
        !self.given_up.is_empty()
    }

    fn left(&mut self, block: &Block) {
        self.count -= 1;
        if let Some(held) = self.held.get_mut(block.allocation.account) {
            *held -= block.charge();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_covers_nothing_is_no_batch() {
        let mut blocks = Blocks::new();
        let event = 0x5 as CUevent;
        for _ in 0..3 {
            blocks.close(0, vec![Ticket { context: 1, event }], false);
        }
        assert!(blocks.oldest_closed().is_none());
        assert_eq!(blocks.spare.len(), 3);
    }
}
