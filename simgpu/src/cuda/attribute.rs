//! Device attributes: what a program of any age may ask a device of the modelled kinds.
//!
//! Values that differ between products come from the node's facts, or follow from the compute
//! capability; the rest is the same for all of them (compute capability 7.5 to 10.0, on Linux, bare
//! metal).

use super::node::Device;
use super::profile::PROFILE;

pub const TEXTURE1D_LINEAR_WIDTH: u32 = 69;
/// The last attribute of cuda.h 12.9; later ones a 12.9 driver does not know.
const LAST_OF_12: u32 = 138;
const LAST: u32 = 161;

/// The value of attribute `id`; `None` for one this driver does not know.
pub fn value(device: &Device, id: u32) -> Option<i32> {
    let known = id != 0 && id <= if PROFILE.version < 13000 { LAST_OF_12 } else { LAST };
    if !known {
        return None;
    }
    let facts = device.facts;
    let since =
        |major: u32, minor: u32| ((facts.compute_major, facts.compute_minor) >= (major, minor)) as i32;
    let hopper = since(9, 0);
    let ampere = since(8, 0);
    // The data-centre parts of a generation: x.0.
    let large = facts.compute_minor == 0;
    Some(match id {
        1..=3 => 1024,
        4 => 64,
        5 => i32::MAX,
        6 | 7 => 65535,
        8 => 49152,
        9 => 65536,
        10 => 32,
        11 => i32::MAX,
        12 => 65536,
        13 => facts.clock_khz as i32,
        14 => 512,
        15 => 1,
        16 => facts.sm_count as i32,
        17 | 18 => 0,
        19 => 1,
        20 => 0,
        21..=23 => [131072, 131072, 65536][id as usize - 21],
        24..=26 => 16384,
        27 | 28 => 32768,
        29 => 2048,
        30 => 512,
        31 | 32 => 1,
        33 => facts.pci_bus as i32,
        34 => facts.pci_device as i32,
        35 => 0,
        36 => facts.memory_clock_khz as i32,
        37 => facts.bus_width_bits as i32,
        38 => facts.l2_bytes as i32,
        39 => facts.threads_per_sm as i32,
        40 => facts.copy_engines as i32,
        41 => 1,
        42 => 32768,
        43 => 2048,
        44 => 1,
        45 | 46 => 32768,
        47 | 48 => 8192,
        49 => 32768,
        50 => facts.pci_domain as i32,
        51 => 32,
        52 | 53 => 32768,
        54 => 2046,
        55 => 32768,
        56 => 131072,
        57 => 65536,
        58..=60 => 16384,
        61 => 32768,
        62 => 2048,
        63 | 64 => 32768,
        65 => 2048,
        66 | 67 => 32768,
        68 => 2046,
        TEXTURE1D_LINEAR_WIDTH => 268_435_456,
        70 => 131072,
        71 => 65000,
        72 => 2_097_120,
        73 | 74 => 32768,
        75 => facts.compute_major as i32,
        76 => facts.compute_minor as i32,
        77 => 32768,
        78..=80 => 1,
        81 => facts.shared_per_sm as i32,
        82 => facts.registers_per_sm as i32,
        83 => 1,
        84 => 0,
        85 => device.index as i32,
        86 => 0,
        87 => {
            if large {
                2
            } else if facts.compute_major >= 8 {
                64
            } else {
                32
            }
        }
        88 => 0,
        89..=91 => 1,
        // The first interface for memory operations of streams is off by default.
        92..=94 => 0,
        95 | 96 => 1,
        97 => facts.shared_per_block_optin as i32,
        98 => 0,
        99 => 1,
        100 | 101 => 0,
        102 | 103 => 1,
        104 | 105 => 0,
        106 => facts.blocks_per_sm as i32,
        107 => 0,
        108 => ampere * (u64::from(facts.l2_bytes) * 3 / 4).min(i32::MAX as u64) as i32,
        109 => ampere * 134_213_632,
        110 => 0,
        111 => ampere * 1024,
        112..=115 => 1,
        116 => 0,
        117 => 0,
        118 => 0,
        // What pools can be exported as: descriptors.
        119 => 1,
        120 => hopper,
        121 => 1,
        // Memory operations of streams belong to a later stage.
        122 | 123 => 0,
        124 => 0,
        125 => 1,
        126 => {
            if hopper == 1 {
                4
            } else {
                1
            }
        }
        127 => hopper,
        128 => 0,
        129 => 1,
        130 => 0,
        131 => -1,
        // Multicast objects belong to a later stage.
        132 => 0,
        133 => 0,
        134 => facts.numa_node,
        135..=138 => 0,
        139 => facts.pci_device_id as i32,
        140 => facts.pci_subsystem_id as i32,
        141 | 142 => 1,
        143 => 0,
        144 | 145 => 1,
        149 => 1,
        157 => facts.sm_count as i32,
        _ => 0,
    })
}
