//! Other ways to share a device, as policies of the model. Read next: `tests/scheduling/truth.rs`.

use super::client::{Client, Held};
use super::node::Node;

/// A way to share that is not ours: who may hand work over.
pub trait Peer {
    fn may(&mut self, client: &mut Client, predicted_ns: u64, demand: bool, now: u64) -> Result<(), Held>;

    /// Once a millisecond; returns clients that may look at their gate again.
    fn tick(&mut self, node: &mut Node) -> Vec<usize>;
}
