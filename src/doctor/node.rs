//! What the daemon says of itself and of its node. The next file of the walk is `doctor/proof.rs`.

use super::check::Check;
use crate::config::Mode;
use crate::protocol::node::Node;

/// `version` is this command's own.
pub fn checks(node: &Node, version: &str) -> Vec<Check> {
    let mut checks = vec![daemon(node, version), driver(node), mode(node)];
    checks.extend(shims(node));
    checks.push(unattached(node));
    checks.extend(node.not_in_force.iter().map(|key| {
        Check::warn(
            "not in force",
            key.clone(),
            "nothing to mend: this version knows the key and does nothing with it yet",
        )
    }));
    checks
}

fn daemon(node: &Node, version: &str) -> Check {
    if node.version != version {
        return Check::warn(
            "daemon",
            format!("the daemon is version {}, this command {version}", node.version),
            "restart the daemon: `systemctl restart stintd`; clients go on",
        );
    }
    Check::ok(
        "daemon",
        format!("version {version}, up {} s", node.uptime_seconds),
    )
}

fn driver(node: &Node) -> Check {
    let driver = &node.driver;
    let sick: Vec<String> = node
        .devices
        .iter()
        .filter(|device| device.health != "ok")
        .map(|device| format!("device {}: {}", device.index, device.health))
        .collect();
    if node.devices.is_empty() {
        return Check::fail(
            "driver",
            "there is no device",
            "see whether `nvidia-smi` lists one, then restart the daemon",
        );
    }
    if !sick.is_empty() {
        return Check::fail(
            "driver",
            sick.join("; "),
            "look into the kernel's log for Xid lines; a lost device needs a reset",
        );
    }
    let unknown = || "unknown".to_string();
    Check::ok(
        "driver",
        format!(
            "{} {}, CUDA {}, {} devices",
            driver.kind.as_str(),
            driver.version.clone().unwrap_or_else(unknown),
            driver.cuda.clone().unwrap_or_else(unknown),
            node.devices.len()
        ),
    )
}

fn mode(node: &Node) -> Check {
    match node.mode {
        Mode::Enforce => Check::ok("mode", "caps are enforced"),
        Mode::Observe => Check::warn(
            "mode",
            "the node only observes: nothing is refused",
            "[node] mode = \"enforce\" and `stint reload`, or start the daemon without --observe",
        ),
    }
}

/// Clients whose shim is of another version than the daemon.
fn shims(node: &Node) -> Option<Check> {
    let clients = node.tenants.iter().flat_map(|tenant| &tenant.clients);
    let other: Vec<String> = clients
        .filter_map(|client| {
            let shim = client.shim.as_ref().filter(|shim| **shim != node.version)?;
            Some(format!("pid {} ({}) has {shim}", client.pid, client.command))
        })
        .collect();
    (!other.is_empty()).then(|| {
        Check::warn(
            "shims",
            format!(
                "clients with the shim of another version than the daemon's {}: {}",
                node.version,
                other.join(", ")
            ),
            "they are capped all the same; the new shim comes with their next start",
        )
    })
}

fn unattached(node: &Node) -> Check {
    if node.unattached.is_empty() {
        return Check::ok("unattached", "every process on a device is a client");
    }
    let named: Vec<String> = node
        .unattached
        .iter()
        .map(|process| {
            format!(
                "pid {} ({}, user {}) on device {}",
                process.pid,
                process.command.as_deref().unwrap_or("-"),
                process.user.as_deref().unwrap_or("-"),
                process.device
            )
        })
        .collect();
    Check::warn(
        "unattached",
        format!("no cap binds {}", named.join("; ")),
        "start them with `stint run`, or put the shim in front for the whole host: `stint host enable`; `stint why PID` says more",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::Verdict;

    fn verdict(node: &Node, name: &str) -> Verdict {
        let checks = checks(node, "0.1.0");
        checks
            .iter()
            .find(|check| check.name == name)
            .map_or(Verdict::Ok, |check| check.verdict)
    }

    #[test]
    fn each_fault_of_a_node_is_found() {
        let mut node = crate::status::view::tests::node();
        node.unattached.clear();
        for name in ["daemon", "driver", "mode", "shims", "unattached", "not in force"] {
            assert_eq!(verdict(&node, name), Verdict::Ok, "{name}");
        }
        let broken = |name: &str, expected: Verdict, breaks: fn(&mut Node)| {
            let mut node = node.clone();
            breaks(&mut node);
            assert_eq!(verdict(&node, name), expected, "{name}");
        };
        broken("daemon", Verdict::Warn, |node| node.version = "0.0.9".into());
        broken("driver", Verdict::Fail, |node| node.devices.clear());
        broken("driver", Verdict::Fail, |node| {
            node.devices[0].health = "GPU is lost".into()
        });
        broken("mode", Verdict::Warn, |node| node.mode = Mode::Observe);
        broken("shims", Verdict::Warn, |node| {
            node.tenants[0].clients[0].shim = Some("0.0.9".into())
        });
        broken("not in force", Verdict::Warn, |node| {
            node.not_in_force.push("x".into())
        });
        broken("unattached", Verdict::Warn, |node| {
            node.unattached = crate::status::view::tests::node().unattached;
        });
    }
}
