//! What work still uses a block: for the question whether somebody was handed memory that is in use.
//!
//! The stand-in knows which blocks a piece of work names: ranges that are copied or set, and every kernel argument that is an
//! address in a live block. Where a node was started with `--check-uses on`, each piece is noted at its blocks, and a piece
//! that begins in another stream while an earlier one is pending is counted as an overlap in the process's truth. Programs may
//! do that, for what they order by events is ordered; one that uses each block in a single stream between allocating and
//! freeing it cannot overlap, unless it was handed a block too early. Next file of the walk: `client/uses.rs`.

use super::block;
use super::function::Function;
use super::node::Node;
use super::stream::Stream;
use driver::prelude::*;

/// The stream's next piece of work names these addresses; those of nobody's memory are not looked at.
pub fn note(node: &Node, stream: &'static Stream, addresses: &[u64]) {
    if !node.client.checks_uses() {
        return;
    }
    for &address in addresses {
        if let Some(block) = block::find(address).filter(|block| !block.is_host()) {
            node.client.note_use(stream.on_node(), &block.uses);
        }
    }
}

/// The stream's next piece of work is a kernel with these arguments.
pub fn note_kernel(
    node: &Node,
    stream: &'static Stream,
    function: &'static Function,
    parameters: *mut *mut c_void,
) {
    if !node.client.checks_uses() || parameters.is_null() {
        return;
    }
    let known = function.kernel().info.parameters.as_deref().unwrap_or_default();
    for (index, (_, bytes)) in known.iter().enumerate() {
        if *bytes == 8 {
            // SAFETY: a kernel's arguments are so many pointers to so many bytes, as the launch demands.
            let address = unsafe { (*parameters.add(index)).cast::<u64>().read_unaligned() };
            note(node, stream, &[address]);
        }
    }
}
