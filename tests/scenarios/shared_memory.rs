//! Memory that processes share: charged once, to whom it was made by, however it is handed over.

use super::*;
use crate::harness::node::Setup;

/// Bytes that the daemon says the one account uses.
fn charged(node: &Node) -> u64 {
    node.status()["tenants"][0]["devices"][0]["memory"]["used_bytes"]
        .as_u64()
        .expect("used_bytes")
}

#[test]
fn imports_inside_an_account_cost_nothing() {
    for kind in ["vmm", "pool", "ipc"] {
        let bytes = 192 * MIB;
        // Less than twice the memory fits.
        let node = Node::start(Setup::cap("448MiB"));
        let mut command = node.capped_command(program("sharing", Link::Cuda));
        let mut session = Session::start(command.args([kind, &bytes.to_string()]));
        assert_eq!(session.ask("share"), "0 0", "{kind}");
        let both = bytes + 2 * CONTEXT;
        assert_eq!((node.used(0), charged(&node)), (both, both), "{kind}");
        assert_eq!(session.ask("end"), "0 0", "{kind}");
        assert_eq!(
            (node.used(0), charged(&node)),
            (2 * CONTEXT, 2 * CONTEXT),
            "{kind}"
        );
        assert_eq!(session.close(), 0);
    }
}
