//! Other ways to share a device, from what is known of them, as policies of the model. Read next: `tests/scheduling/model/truth.rs`.

use super::client::{Client, Held};
use super::engine::MS;
use super::node::Node;

/// A way to share that is not ours: who may hand work over.
pub trait Peer {
    fn may(&mut self, client: &Client, demand: bool, now: u64) -> Result<(), Held>;

    /// Once a millisecond; returns clients that may look at their gate again.
    fn tick(&mut self, _node: &Node) -> Vec<usize> {
        Vec::new()
    }
}

/// Launches that fit into the driver's queue before a launch blocks.
const QUEUE: u64 = 1024;

/// The driver alone: whoever has work shares in its own slices, or together under MPS.
pub struct Native;

impl Peer for Native {
    fn may(&mut self, client: &Client, _demand: bool, _now: u64) -> Result<(), Held> {
        if client.pieces < QUEUE {
            Ok(())
        } else {
            Err(Held::Window)
        }
    }
}

/// So many launches in flight, and again when a batch of them is done; lower priorities stop while a higher one has work.
pub struct Count {
    most: u64,
    batch: u64,
    full: Vec<bool>,
}

impl Count {
    pub fn new(most: u64, batch: u64) -> Count {
        Count {
            most,
            batch,
            full: Vec::new(),
        }
    }
}

impl Peer for Count {
    fn may(&mut self, client: &Client, demand: bool, _now: u64) -> Result<(), Held> {
        if demand {
            return Err(Held::Gate);
        }
        self.full.resize(self.full.len().max(client.account + 1), false);
        let full = &mut self.full[client.account];
        let most = if *full { self.most - self.batch } else { self.most };
        *full = client.pieces > most || client.pieces == self.most;
        if *full { Err(Held::Window) } else { Ok(()) }
    }
}

/// A bucket of launches per client, filled at a rate that follows the device's own utilisation figure every 120 ms; a launch
/// costs the same whatever its length, and one that finds the bucket empty sleeps.
pub struct Feedback {
    /// Part of the device each account is to have.
    targets: Vec<f64>,
    rate: Vec<f64>,
    left: Vec<f64>,
    seen: Vec<u64>,
    at: u64,
}

impl Feedback {
    pub fn new(targets: Vec<f64>) -> Feedback {
        let count = targets.len();
        Feedback {
            targets,
            rate: vec![100.0; count],
            left: vec![100.0; count],
            seen: vec![0; count],
            at: 0,
        }
    }
}

impl Peer for Feedback {
    fn may(&mut self, client: &Client, _demand: bool, _now: u64) -> Result<(), Held> {
        if client.pieces >= QUEUE {
            return Err(Held::Window);
        }
        let left = &mut self.left[client.account];
        if *left < 1.0 {
            return Err(Held::Gate);
        }
        *left -= 1.0;
        Ok(())
    }

    fn tick(&mut self, node: &Node) -> Vec<usize> {
        if node.now < self.at + 120 * MS {
            return Vec::new();
        }
        let passed = (node.now - self.at) as f64;
        self.at = node.now;
        for client in &node.clients {
            let account = client.account;
            let busy = node.engines[client.device].contexts[client.context].busy_ns;
            let part = (busy - self.seen[account]) as f64 / passed;
            self.seen[account] = busy;
            let target = self.targets[account];
            let step = (self.rate[account] * (target - part).abs() / target).max(1.0) / 2.0;
            self.rate[account] = (self.rate[account] + if part < target { step } else { -step }).max(1.0);
            self.left[account] = (self.left[account] + self.rate[account]).min(self.rate[account]);
        }
        Vec::new()
    }
}

/// One client has the device for its turn; the next one in order of asking gets it then, or when the holder was idle for so long.
pub struct Turns {
    length: u64,
    idle: u64,
    holder: Option<(usize, u64)>,
    queue: Vec<usize>,
}

impl Turns {
    pub fn new(length: u64, idle: u64) -> Turns {
        Turns {
            length,
            idle,
            holder: None,
            queue: Vec::new(),
        }
    }
}

impl Peer for Turns {
    fn may(&mut self, client: &Client, _demand: bool, now: u64) -> Result<(), Held> {
        let (holder, _) = *self.holder.get_or_insert((client.account, now));
        if holder == client.account {
            return if client.pieces < QUEUE {
                Ok(())
            } else {
                Err(Held::Window)
            };
        }
        if !self.queue.contains(&client.account) {
            self.queue.push(client.account);
        }
        Err(Held::Gate)
    }

    fn tick(&mut self, node: &Node) -> Vec<usize> {
        let Some((holder, since)) = self.holder else {
            return Vec::new();
        };
        let mut own = node.clients.iter().filter(|client| client.account == holder);
        let idle = own.all(|client| client.pieces == 0 && node.now > client.moved_at + self.idle);
        if self.queue.is_empty() || node.now < since + self.length && !idle {
            return Vec::new();
        }
        self.holder = Some((self.queue.remove(0), node.now));
        (0..node.clients.len()).collect()
    }
}
