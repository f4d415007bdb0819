//! The node as tables for people: what `status` prints and `top` shows. Pure; 80 columns are enough for usual values.

use std::time::{Duration, SystemTime};

use crate::config::Mode;
use crate::config::units::Bytes;
use crate::protocol::node::{Client, Node, Refusal, Tenant};

/// A head line, tables, and notes below them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    pub head: String,
    pub tables: Vec<Table>,
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub title: &'static str,
    /// Numbers stand at the right.
    pub right: bool,
}

/// What is said where nothing is known.
pub const UNKNOWN: &str = "-";

impl View {
    /// `now` is for ages.
    pub fn of(node: &Node, now: SystemTime) -> View {
        let mut tables = vec![devices(node), tenants(node), clients(node, now)];
        if !node.unattached.is_empty() {
            tables.push(unattached(node, now));
        }
        View {
            head: head(node),
            tables,
            notes: node
                .tenants
                .iter()
                .filter_map(note)
                .chain(above_caps(node))
                .chain(node.not_in_force.clone())
                .chain(super::orphans::sentences(node, now))
                .collect(),
        }
    }

    /// All of it as aligned lines.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.head);
        for table in &self.tables {
            text += &format!("\n{}", table.text());
        }
        if !self.notes.is_empty() {
            text += &format!("\n{}\n", self.notes.join("\n"));
        }
        text
    }
}

impl Table {
    /// An empty one with these titles.
    pub fn new<const N: usize>(columns: [&'static str; N]) -> Table {
        // A title that begins with a blank is one of a column of numbers.
        let column = |title: &'static str| Column {
            title: title.trim_start(),
            right: title.starts_with(' '),
        };
        Table {
            columns: columns.map(column).to_vec(),
            rows: Vec::new(),
        }
    }

    /// Width of each column in characters.
    pub fn widths(&self) -> Vec<usize> {
        let width = |index: usize, column: &Column| {
            let cells = self.rows.iter().filter_map(|row| row.get(index));
            cells
                .map(|cell| cell.chars().count())
                .chain([column.title.len()])
                .max()
                .unwrap_or(0)
        };
        self.columns
            .iter()
            .enumerate()
            .map(|(index, column)| width(index, column))
            .collect()
    }

    /// A cell, filled up to its column.
    pub fn cell(column: &Column, text: &str, width: usize) -> String {
        if column.right {
            format!("{text:>width$}")
        } else {
            format!("{text:<width$}")
        }
    }

    /// Its lines, aligned.
    pub fn text(&self) -> String {
        let widths = self.widths();
        let line = |cells: Vec<&str>| {
            let cells = self.columns.iter().zip(cells).zip(&widths);
            let cells: Vec<String> = cells
                .map(|((column, cell), width)| Table::cell(column, cell, *width))
                .collect();
            format!("{}\n", cells.join("  ").trim_end())
        };
        let head = line(self.columns.iter().map(|column| column.title).collect());
        self.rows.iter().fold(head, |text, row| {
            text + &line(row.iter().map(String::as_str).collect())
        })
    }
}

fn head(node: &Node) -> String {
    let mut words = vec![node.node.clone(), format!("stint {}", node.version)];
    let driver = [Some(node.driver.kind.as_str()), node.driver.version.as_deref()];
    words.push(format!(
        "driver {}",
        driver.into_iter().flatten().collect::<Vec<_>>().join(" ")
    ));
    words.extend(node.driver.cuda.as_ref().map(|cuda| format!("CUDA {cuda}")));
    words.push(match node.mode {
        Mode::Enforce => "enforcing".into(),
        Mode::Observe => "observing only".into(),
    });
    words.push(format!("up {}", span(Duration::from_secs(node.uptime_seconds))));
    words.join(" · ")
}

fn devices(node: &Node) -> Table {
    let mut table = Table::new(["DEVICE", "NAME", "UUID", " USED", " TOTAL", " BUSY", "HEALTH"]);
    for device in &node.devices {
        table.rows.push(vec![
            device.index.to_string(),
            device.name.clone(),
            shortened(&device.uuid, 12),
            bytes(device.memory.used_bytes),
            bytes(Some(device.memory.total_bytes)),
            device
                .compute
                .busy_ratio
                .map_or(UNKNOWN.into(), |busy| format!("{:.0} %", busy * 100.0)),
            if device.drained {
                format!("{}, drained", device.health)
            } else {
                device.health.clone()
            },
        ]);
    }
    table
}

fn tenants(node: &Node) -> Table {
    let mut table = Table::new([
        "TENANT",
        "STATE",
        "DEVICE",
        " USED",
        " CAP",
        " PEAK",
        " REFUSED",
        " LAUNCHES",
    ]);
    for tenant in &node.tenants {
        let state = serde_json::to_value(tenant.state).ok();
        let state = state.as_ref().and_then(|state| state.as_str()).unwrap_or(UNKNOWN);
        for device in &tenant.devices {
            table.rows.push(vec![
                shortened(&tenant.account, 24),
                state.to_owned(),
                device.index.to_string(),
                bytes(Some(device.memory.used_bytes)),
                bytes(Some(device.memory.cap_bytes)),
                bytes(device.memory.peak_bytes),
                device.memory.refusals_total.to_string(),
                device.compute.launches_total.to_string(),
            ]);
        }
    }
    table
}

fn clients(node: &Node, now: SystemTime) -> Table {
    let mut table = Table::new([
        " PID",
        "USER",
        "TENANT",
        "COMMAND",
        "DEVICE",
        " USED",
        " LAST LAUNCH",
        " AGE",
    ]);
    for tenant in &node.tenants {
        for client in &tenant.clients {
            let ago = |at: &String| age(at, now).map_or(UNKNOWN.into(), |age| format!("{age} ago"));
            table.rows.push(vec![
                client.pid.to_string(),
                shortened(&client.user, 16),
                shortened(&tenant.account, 20),
                shortened(&client.command, 16),
                held_on(client),
                bytes(Some(client.used_bytes)),
                client.last_launch_at.as_ref().map_or(UNKNOWN.into(), ago),
                age(&client.started_at, now).unwrap_or(UNKNOWN.into()),
            ]);
        }
    }
    table
}

/// Indices of the devices a client holds memory of.
fn held_on(client: &Client) -> String {
    let indices: Vec<String> = client.devices.iter().map(|held| held.index.to_string()).collect();
    if indices.is_empty() {
        UNKNOWN.into()
    } else {
        shortened(&indices.join(","), 8)
    }
}

fn unattached(node: &Node, now: SystemTime) -> Table {
    let mut table = Table::new([" PID", "USER", "COMMAND", "NO CLIENT ON DEVICE", " USED", " SEEN"]);
    for process in &node.unattached {
        table.rows.push(vec![
            process.pid.to_string(),
            shortened(process.user.as_deref().unwrap_or(UNKNOWN), 16),
            shortened(process.command.as_deref().unwrap_or(UNKNOWN), 16),
            process.device.to_string(),
            bytes(process.used_bytes),
            age(&process.since, now).map_or(UNKNOWN.into(), |age| format!("{age} ago")),
        ]);
    }
    table
}

/// The tenant's last refusal in one sentence.
fn note(tenant: &Tenant) -> Option<String> {
    let Refusal {
        at,
        pid,
        device,
        asked_bytes,
        used_bytes,
        cap_bytes,
        reason,
    } = tenant.last_refusal.as_ref()?;
    Some(format!(
        "{}: at {at} pid {pid} was refused {asked_bytes} bytes on device {device} ({reason}): {used_bytes} of {cap_bytes} in use",
        tenant.account
    ))
}

/// What a node that only observes would have refused.
fn above_caps(node: &Node) -> Vec<String> {
    let mut above = Vec::new();
    for tenant in node.tenants.iter().filter(|tenant| !tenant.enforced) {
        for device in &tenant.devices {
            let (peak, cap) = (device.memory.peak_bytes.unwrap_or(0), device.memory.cap_bytes);
            if peak > cap {
                above.push(format!(
                    "{}: had {peak} bytes of device {}, above its cap of {cap}: enforced, it would have been refused",
                    tenant.account, device.index
                ));
            }
        }
    }
    above
}

/// An amount for people.
pub fn bytes(bytes: Option<u64>) -> String {
    bytes.map_or(UNKNOWN.into(), |bytes| Bytes(bytes).to_string())
}

/// At most `most` characters, the end cut.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.into();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// Time since the RFC 3339 time `at`.
pub fn age(at: &str, now: SystemTime) -> Option<String> {
    let at = humantime::parse_rfc3339(at).ok()?;
    Some(span(now.duration_since(at).unwrap_or_default()))
}

/// A duration in its largest unit: `59 s`, `59 min`, `47 h`, `3 d`.
pub fn span(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ ..3_600 => format!("{} min", seconds / 60),
        seconds @ ..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A node with a tenant at its cap, a foreign process, and values nobody could read.
    pub fn node() -> Node {
        let text = r#"{"schema":"stint.node/v1","node":"host","version":"0.1.0","mode":"enforce","uptime_seconds":61,
          "driver":{"kind":"sim","cuda":"13.5"},
          "devices":[{"index":0,"uuid":"GPU-0123456789abcdef","name":"NVIDIA H200","mode":"share","health":"ok",
             "memory":{"total_bytes":150323855360,"reserved_bytes":0,"used_bytes":1073741824}}],
          "tenants":[{"name":"a","account":"a","state":"running","enforced":true,"backend":"ledger","on_full":["oom"],
             "devices":[{"index":0,"memory":{"cap_bytes":1073741824,"used_bytes":1073741824,"refusals_total":3},
                         "compute":{"launches_total":12}}],
             "clients":[{"pid":4711,"command":"python3","user":"alice","started_at":"2026-01-01T00:00:00Z",
                         "used_bytes":1073741824,"devices":[{"index":0,"used_bytes":1073741824}],"last_launch_at":"2026-01-01T01:59:30Z"}],
             "last_refusal":{"at":"2026-01-01T01:00:00Z","pid":4711,"device":0,"asked_bytes":5,"used_bytes":6,
                             "cap_bytes":7,"reason":"cap"}}],
          "unattached":[{"pid":99,"command":"train","device":0,"since":"2026-01-01T00:00:00Z"}]}"#;
        serde_json::from_str(text).unwrap()
    }

    pub fn now() -> SystemTime {
        humantime::parse_rfc3339("2026-01-01T02:00:00Z").unwrap()
    }

    #[test]
    fn the_tables_say_who_holds_what() {
        let text = View::of(&node(), now()).text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "host · stint 0.1.0 · driver sim · CUDA 13.5 · enforcing · up 1 min"
        );
        assert!(
            lines.contains(&"DEVICE  NAME         UUID           USED    TOTAL  BUSY  HEALTH"),
            "{text}"
        );
        assert!(
            lines.contains(&"0       NVIDIA H200  GPU-0123456…  1 GiB  140 GiB     -  ok"),
            "{text}"
        );
        assert!(
            lines.contains(&"a       running  0       1 GiB  1 GiB     -        3        12"),
            "{text}"
        );
        assert!(
            lines.contains(&"4711  alice  a       python3  0       1 GiB     30 s ago  2 h"),
            "{text}"
        );
        assert!(
            text.contains("pid 4711 was refused 5 bytes on device 0 (cap): 6 of 7 in use"),
            "{text}"
        );
        let tables = text.lines().filter(|line| !line.contains("refused"));
        assert!(
            tables.map(|line| line.chars().count()).all(|width| width <= 80),
            "{text}"
        );
    }

    #[test]
    fn spans_and_long_names_are_cut() {
        assert_eq!(span(Duration::from_secs(59)), "59 s");
        assert_eq!(span(Duration::from_secs(172_800)), "2 d");
        assert_eq!(shortened("abcdef", 4), "abc…");
        assert_eq!(shortened("äbcd", 4), "äbcd");
    }
}
