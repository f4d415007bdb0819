//! The products a stand-in device can be, with the values their makers and drivers publish.

use crate::facts::{
    BreakRow, Costs, DeviceFacts, FaultRow, KernelRow, MAX_BREAKS, MAX_DEVICES, MAX_FAULTS, MAX_KERNELS,
    NodeFacts, Text,
};

const MIB: u64 = 1 << 20;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Product {
    H200,
    H100,
    A100,
    L4,
    T4,
}

impl Product {
    /// As `--devices` names them.
    pub const NAMES: &[(&str, Product)] = &[
        ("h200", Product::H200),
        ("h100", Product::H100),
        ("a100", Product::A100),
        ("l4", Product::L4),
        ("t4", Product::T4),
    ];

    /// The devices of a list like `h200:2,a100:1` (`a100` alone is one), in order. The error says what
    /// was found and what is allowed.
    pub fn parse_list(text: &str) -> Result<Vec<Product>, String> {
        let mut products = Vec::new();
        for part in text.split(',') {
            let (name, count) = part.split_once(':').unwrap_or((part, "1"));
            let known = Product::NAMES
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name.trim()));
            let (_, product) = known.ok_or_else(|| {
                let names: Vec<_> = Product::NAMES.iter().map(|(name, _)| *name).collect();
                format!(
                    "no device model `{}`; there are {}",
                    name.trim(),
                    names.join(", ")
                )
            })?;
            let count: usize = match count.trim().parse() {
                Ok(count) if (1..=MAX_DEVICES).contains(&count) => count,
                _ => {
                    return Err(format!(
                        "`{count}` is no number of devices; 1 to {MAX_DEVICES} are possible"
                    ));
                }
            };
            products.extend(std::iter::repeat_n(*product, count));
        }
        match products.len() {
            1..=MAX_DEVICES => Ok(products),
            n => Err(format!("{n} devices; a node has 1 to {MAX_DEVICES}")),
        }
    }

    /// The list that `parse_list` reads as these devices.
    pub fn list_of(devices: &[DeviceFacts]) -> String {
        let short = |device: &DeviceFacts| {
            let named =
                |(_, product): &&(&str, Product)| product.facts().name.as_str() == device.name.as_str();
            let known = Product::NAMES.iter().find(named);
            known.map_or_else(|| device.name.as_str().to_string(), |(short, _)| (*short).into())
        };
        let names: Vec<String> = devices.iter().map(short).collect();
        let groups = names.chunk_by(|a, b| a == b);
        let counted: Vec<String> = groups
            .map(|group| format!("{}:{}", group[0], group.len()))
            .collect();
        counted.join(",")
    }

    /// The product's own values; what depends on its place in the node is zero.
    fn facts(self) -> DeviceFacts {
        let base = DeviceFacts {
            registers_per_sm: 65536,
            ..NOTHING
        };
        match self {
            Product::H200 => DeviceFacts {
                name: Text::new("NVIDIA H200"),
                memory_bytes: 150_109_880_320,
                framebuffer_bytes: 143_771 * MIB,
                context_bytes: 524 * MIB,
                host_bandwidth: 55_000_000_000,
                memory_bandwidth: 4_800_000_000_000,
                nvlink_bandwidth: 450_000_000_000,
                l2_bytes: 60 << 20,
                sm_count: 132,
                compute_major: 9,
                compute_minor: 0,
                clock_khz: 1_980_000,
                memory_clock_khz: 3_201_000,
                bus_width_bits: 6144,
                threads_per_sm: 2048,
                blocks_per_sm: 32,
                shared_per_sm: 233_472,
                shared_per_block_optin: 232_448,
                copy_engines: 3,
                power_limit_mw: 700_000,
                pci_device_id: 0x2335_10de,
                pci_subsystem_id: 0x18be_10de,
                ..base
            },
            Product::H100 => DeviceFacts {
                name: Text::new("NVIDIA H100 80GB HBM3"),
                memory_bytes: 81_079 * MIB,
                framebuffer_bytes: 81_559 * MIB,
                context_bytes: 522 * MIB,
                memory_bandwidth: 3_350_000_000_000,
                l2_bytes: 50 << 20,
                memory_clock_khz: 2_619_000,
                bus_width_bits: 5120,
                pci_device_id: 0x2330_10de,
                pci_subsystem_id: 0x16c1_10de,
                ..Product::H200.facts()
            },
            Product::A100 => DeviceFacts {
                name: Text::new("NVIDIA A100-SXM4-80GB"),
                memory_bytes: 81_050 * MIB,
                framebuffer_bytes: 81_920 * MIB,
                context_bytes: 414 * MIB,
                host_bandwidth: 25_000_000_000,
                memory_bandwidth: 2_039_000_000_000,
                nvlink_bandwidth: 300_000_000_000,
                l2_bytes: 40 << 20,
                sm_count: 108,
                compute_major: 8,
                compute_minor: 0,
                clock_khz: 1_410_000,
                memory_clock_khz: 1_593_000,
                bus_width_bits: 5120,
                threads_per_sm: 2048,
                blocks_per_sm: 32,
                shared_per_sm: 167_936,
                shared_per_block_optin: 166_912,
                copy_engines: 3,
                power_limit_mw: 400_000,
                pci_device_id: 0x20b2_10de,
                pci_subsystem_id: 0x1463_10de,
                ..base
            },
            Product::L4 => DeviceFacts {
                name: Text::new("NVIDIA L4"),
                memory_bytes: 22_478 * MIB,
                framebuffer_bytes: 23_034 * MIB,
                context_bytes: 212 * MIB,
                host_bandwidth: 25_000_000_000,
                memory_bandwidth: 300_000_000_000,
                l2_bytes: 48 << 20,
                sm_count: 58,
                compute_major: 8,
                compute_minor: 9,
                clock_khz: 2_040_000,
                memory_clock_khz: 6_251_000,
                bus_width_bits: 192,
                threads_per_sm: 1536,
                blocks_per_sm: 24,
                shared_per_sm: 102_400,
                shared_per_block_optin: 101_376,
                copy_engines: 2,
                power_limit_mw: 72_000,
                pci_device_id: 0x27b8_10de,
                pci_subsystem_id: 0x16ca_10de,
                ..base
            },
            Product::T4 => DeviceFacts {
                name: Text::new("Tesla T4"),
                memory_bytes: 15_843_721_216,
                framebuffer_bytes: 15_360 * MIB,
                context_bytes: 104 * MIB,
                host_bandwidth: 12_000_000_000,
                memory_bandwidth: 320_000_000_000,
                l2_bytes: 4 << 20,
                sm_count: 40,
                compute_major: 7,
                compute_minor: 5,
                clock_khz: 1_590_000,
                memory_clock_khz: 5_001_000,
                bus_width_bits: 256,
                threads_per_sm: 1024,
                blocks_per_sm: 16,
                shared_per_sm: 65_536,
                shared_per_block_optin: 65_536,
                copy_engines: 3,
                power_limit_mw: 70_000,
                pci_device_id: 0x1eb8_10de,
                pci_subsystem_id: 0x12a2_10de,
                ..base
            },
        }
    }
}

/// Memory a process's context takes unless the node says otherwise.
pub const CONTEXT_BYTES: u64 = 64 * MIB;

impl NodeFacts {
    /// A node of these products with everything else as it is by default: model timing, time scale 1,
    /// noise 15 %, default costs, no faults, CUDA 13.5. Buses, NUMA nodes and UUIDs follow from the
    /// place in the list and `seed`. A process's context takes `context_bytes`, or `None`: what it takes on
    /// that product. At most [`MAX_DEVICES`] are taken.
    pub fn of(products: &[Product], seed: u64, context_bytes: impl Into<Option<u64>>) -> Box<NodeFacts> {
        let count = products.len().min(MAX_DEVICES);
        let context_bytes = context_bytes.into();
        let mut devices = [NOTHING; MAX_DEVICES];
        let linked = products
            .iter()
            .filter(|p| p.facts().nvlink_bandwidth != 0)
            .count()
            > 1;
        for (i, product) in products.iter().take(count).enumerate() {
            let facts = product.facts();
            devices[i] = DeviceFacts {
                uuid: uuid(seed, i),
                context_bytes: context_bytes.unwrap_or(facts.context_bytes),
                clock_ppb: clock_ppb(seed, i),
                nvlink_bandwidth: if linked { facts.nvlink_bandwidth } else { 0 },
                pci_bus: 0x0f + 8 * i as u32,
                // Half the devices on each of two sockets, as in the usual eight-way server.
                numa_node: (count > 1 && i >= count.div_ceil(2)) as i32,
                ..facts
            };
        }
        Box::new(NodeFacts {
            device_count: count as u32,
            fault_count: 0,
            kernel_count: 0,
            break_count: 0,
            check_uses: 0,
            timing: 0,
            time_scale: 1,
            driver_version: 13_050,
            seed,
            noise_permille: 150,
            cold_ns: 30_000,
            contention_permille: 300,
            kernel_ns: 10_000,
            started_at: 0,
            costs: Costs::DEFAULT,
            devices,
            faults: [FaultRow::NONE; MAX_FAULTS],
            kernels: [KernelRow {
                name: Text::EMPTY,
                ns: 0,
            }; MAX_KERNELS],
            breaks: [BreakRow::NONE; MAX_BREAKS],
        })
    }

    /// Without noise, cold starts and clock drift: every duration as asked for.
    pub fn without_noise(mut self: Box<Self>) -> Box<Self> {
        (self.noise_permille, self.cold_ns, self.contention_permille) = (0, 0, 0);
        for device in &mut self.devices {
            device.clock_ppb = 0;
        }
        self
    }
}

const NOTHING: DeviceFacts = DeviceFacts {
    name: Text::EMPTY,
    uuid: [0; 16],
    memory_bytes: 0,
    framebuffer_bytes: 0,
    context_bytes: 0,
    host_bandwidth: 0,
    memory_bandwidth: 0,
    nvlink_bandwidth: 0,
    l2_bytes: 0,
    sm_count: 0,
    compute_major: 0,
    compute_minor: 0,
    clock_khz: 0,
    memory_clock_khz: 0,
    bus_width_bits: 0,
    threads_per_sm: 0,
    blocks_per_sm: 0,
    registers_per_sm: 0,
    shared_per_sm: 0,
    shared_per_block_optin: 0,
    copy_engines: 0,
    power_limit_mw: 0,
    pci_domain: 0,
    pci_bus: 0,
    pci_device: 0,
    pci_device_id: 0,
    pci_subsystem_id: 0,
    numa_node: 0,
    clock_ppb: 0,
};

/// Widest difference between a device's clock and the host's, in 10⁻⁹.
const DRIFT_PPB: u64 = 40_000;

/// The drift of a device's clock: always the same for the same seed and place.
fn clock_ppb(seed: u64, index: usize) -> i32 {
    let bytes = uuid(!seed, index);
    let word = u64::from_be_bytes([
        bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[10], bytes[11],
    ]);
    (word % (2 * DRIFT_PPB + 1)) as i32 - DRIFT_PPB as i32
}

/// A version 4 UUID that is always the same for the same seed and place.
fn uuid(seed: u64, index: usize) -> [u8; 16] {
    let mut state = seed ^ (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut word = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    };
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&word().to_be_bytes());
    bytes[8..].copy_from_slice(&word().to_be_bytes());
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_devices_is_counted_and_ordered() {
        let list = Product::parse_list("h200:2,a100").expect("valid");
        assert_eq!(list, [Product::H200, Product::H200, Product::A100]);
        for (bad, part) in [
            ("h300", "h300"),
            ("h200:0", "`0`"),
            ("h200:17", "17"),
            ("t4:9,l4:9", "18"),
        ] {
            assert!(
                Product::parse_list(bad).expect_err("invalid").contains(part),
                "{bad}"
            );
        }
    }

    #[test]
    fn uuids_are_stable_and_distinct() {
        let node = |seed| NodeFacts::of(&[Product::H200; 16], seed, CONTEXT_BYTES);
        let (a, b, c) = (node(1), node(1), node(2));
        for (x, y) in a.devices().iter().zip(b.devices()) {
            assert_eq!(x.uuid, y.uuid);
        }
        let mut all: Vec<_> = a
            .devices()
            .iter()
            .chain(c.devices())
            .map(|d| d.uuid_text())
            .collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 32);
        let mut buses: Vec<_> = a.devices().iter().map(|d| d.pci_bus_id()).collect();
        buses.dedup();
        assert_eq!((buses.len(), buses[0].as_str()), (16, "00000000:0F:00.0"));
    }

    #[test]
    fn clocks_drift_each_in_its_own_way_and_not_without_noise() {
        let node = NodeFacts::of(&[Product::H200; 16], 1, None);
        let mut drifts: Vec<_> = node.devices().iter().map(|d| d.clock_ppb).collect();
        assert!(drifts.iter().all(|d| d.unsigned_abs() as u64 <= DRIFT_PPB));
        assert!(drifts.iter().any(|&d| d > 0) && drifts.iter().any(|&d| d < 0));
        drifts.sort();
        drifts.dedup();
        assert!(drifts.len() > 12);
        let fast = DeviceFacts {
            clock_ppb: 20_000,
            ..NOTHING
        };
        assert_eq!(
            fast.stamp(2_000_000_000) - fast.stamp(1_000_000_000),
            1_000_020_000
        );
        assert!(
            node.without_noise()
                .devices()
                .iter()
                .all(|d| d.stamp(12_345) == 12_345)
        );
    }

    #[test]
    fn a_context_costs_what_the_node_says_or_the_product() {
        let own = |context| {
            NodeFacts::of(&[Product::A100, Product::T4], 1, context)
                .devices()
                .iter()
                .map(|d| d.context_bytes / MIB)
                .collect::<Vec<_>>()
        };
        assert_eq!(own(Some(CONTEXT_BYTES)), [64, 64]);
        assert_eq!(own(None), [414, 104]);
    }

    #[test]
    fn every_product_is_complete() {
        for (name, product) in Product::NAMES {
            let d = product.facts();
            assert!(d.memory_bytes < d.framebuffer_bytes, "{name}");
            assert!(
                d.memory_bytes > 0 && d.sm_count > 0 && d.copy_engines > 0 && !d.name.is_empty(),
                "{name}"
            );
        }
    }
}
