//! What a node is made of, as every client sees it: devices, costs, configured faults, kernel times.
//!
//! One read-only object per node, written once by the server before the first client and mapped by all
//! of them; therefore plain `repr(C)` data without pointers. Where the devices' values come from:
//! `catalogue.rs`. How a client gets it: `client/connect.rs`.

/// Most devices a node can have.
pub const MAX_DEVICES: usize = 16;
/// Most `[[fault]]` tables of a faults file.
pub const MAX_FAULTS: usize = 64;
/// Most rows of the `[kernels]` table of a faults file.
pub const MAX_KERNELS: usize = 64;
/// Most `[[break]]` tables of a faults file.
pub const MAX_BREAKS: usize = 16;

/// Text of bounded length, padded with zeros.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<const N: usize>([u8; N]);

impl<const N: usize> Text<N> {
    pub const EMPTY: Text<N> = Text([0; N]);

    /// `text`, cut at the last character boundary that leaves room for a final zero.
    pub fn new(text: &str) -> Text<N> {
        let mut end = text.len().min(N - 1);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut bytes = [0; N];
        bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
        Text(bytes)
    }

    pub fn as_str(&self) -> &str {
        let end = self.0.iter().position(|&b| b == 0).unwrap_or(N);
        // Cut at a boundary when made; a foreign writer gets the empty text.
        std::str::from_utf8(&self.0[..end]).unwrap_or("")
    }

    pub fn is_empty(&self) -> bool {
        self.0[0] == 0
    }
}

impl<const N: usize> std::fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// How time passes on the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timing {
    /// Work takes its time on the timeline of `model`.
    Model,
    /// Everything is complete at once and costs nothing: for measuring what lies above the driver.
    Null,
}

/// One device. Attribute values are those of the named product.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceFacts {
    pub name: Text<96>,
    /// As in `GPU-…`; stable for (seed, index).
    pub uuid: [u8; 16],
    /// What `cuDeviceTotalMem` answers: the capacity that all processes share.
    pub memory_bytes: u64,
    /// What NVML calls `total`; the difference to `memory_bytes` is NVML's `reserved`.
    pub framebuffer_bytes: u64,
    /// Memory that the front end charges for a process's context.
    pub context_bytes: u64,
    /// Bytes per second between host and device, one direction.
    pub host_bandwidth: u64,
    /// Bytes per second of the device's own memory.
    pub memory_bandwidth: u64,
    /// Bytes per second to each other device over NVLink, one direction; 0: PCIe only.
    pub nvlink_bandwidth: u64,
    pub l2_bytes: u32,
    pub sm_count: u32,
    pub compute_major: u32,
    pub compute_minor: u32,
    pub clock_khz: u32,
    pub memory_clock_khz: u32,
    pub bus_width_bits: u32,
    pub threads_per_sm: u32,
    pub blocks_per_sm: u32,
    pub registers_per_sm: u32,
    pub shared_per_sm: u32,
    pub shared_per_block_optin: u32,
    /// Engines that copy beside kernels: `CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT`.
    pub copy_engines: u32,
    pub power_limit_mw: u32,
    pub pci_domain: u32,
    pub pci_bus: u32,
    pub pci_device: u32,
    /// Device id in the upper, vendor id (0x10de) in the lower half, as NVML prints it.
    pub pci_device_id: u32,
    pub pci_subsystem_id: u32,
    pub numa_node: i32,
    /// How much faster the device's own clock, which stamps events, runs than the host's, in 10⁻⁹; 0 without noise.
    pub clock_ppb: i32,
}

impl DeviceFacts {
    /// `00000000:01:00.0`, as NVML writes it.
    pub fn pci_bus_id(&self) -> String {
        format!(
            "{:08X}:{:02X}:{:02X}.0",
            self.pci_domain, self.pci_bus, self.pci_device
        )
    }

    /// `GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`.
    pub fn uuid_text(&self) -> String {
        let mut text = String::from("GPU-");
        for (i, byte) in self.uuid.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            text.push_str(&format!("{byte:02x}"));
        }
        text
    }

    /// What the device's own clock shows at a device time: events are stamped by it.
    pub fn stamp(&self, at: u64) -> u64 {
        let drift = at as i128 * self.clock_ppb as i128 / 1_000_000_000;
        (at as i128 + drift).clamp(0, u64::MAX as i128) as u64
    }

    /// What a copy along `path` takes of the memory's bandwidth while it runs, in 1/1000.
    pub fn traffic(&self, path: CopyPath) -> u32 {
        let rate = match path {
            CopyPath::Device | CopyPath::Set => return 1000,
            CopyPath::Peer if self.nvlink_bandwidth != 0 => self.nvlink_bandwidth,
            CopyPath::Host | CopyPath::Peer => self.host_bandwidth,
        };
        (rate as u128 * 1000 / self.memory_bandwidth.max(1) as u128).min(1000) as u32
    }

    /// Device time for a copy of `bytes` along `path`, at least 1 ns.
    pub fn copy_ns(&self, path: CopyPath, bytes: u64) -> u64 {
        let rate = match path {
            CopyPath::Host => self.host_bandwidth,
            // Read and written again.
            CopyPath::Device => self.memory_bandwidth / 2,
            CopyPath::Set => self.memory_bandwidth,
            CopyPath::Peer if self.nvlink_bandwidth != 0 => self.nvlink_bandwidth,
            CopyPath::Peer => self.host_bandwidth,
        };
        (bytes as u128 * 1_000_000_000 / rate.max(1) as u128).clamp(1, u64::MAX as u128) as u64
    }
}

/// What a copy crosses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyPath {
    /// Between host and device, either way.
    Host,
    /// Within one device.
    Device,
    /// A memset.
    Set,
    /// Between two devices.
    Peer,
}

/// What the driver's own calls cost, in nanoseconds of device time. Guesses until measured on a GPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    pub launch: u64,
    pub record: u64,
    pub query: u64,
    pub alloc: u64,
    pub alloc_per_mib: u64,
    pub free: u64,
    pub context: u64,
}

impl Costs {
    pub const DEFAULT: Costs = Costs {
        launch: 2_000,
        record: 1_500,
        query: 1_000,
        alloc: 60_000,
        alloc_per_mib: 500,
        free: 40_000,
        context: 5_000,
    };
    pub const OFF: Costs = Costs {
        launch: 0,
        record: 0,
        query: 0,
        alloc: 0,
        alloc_per_mib: 0,
        free: 0,
        context: 0,
    };
}

/// One configured fault of a function.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FaultRow {
    /// Base name as `cuGetProcAddress` knows it, or the NVML or runtime name.
    pub function: Text<64>,
    /// Only in processes with this `comm`; empty: in all.
    pub process: Text<16>,
    /// The first call that is hit, counted from 1 in each process.
    pub call: u64,
    /// How many calls are hit from there on; `u64::MAX`: all.
    pub count: u64,
    /// The code they return; 0: they are only delayed.
    pub code: u32,
    /// 1: every later call of any function in the process returns `code` too.
    pub sticky: u32,
    /// Host time by which the call is delayed first, in nanoseconds.
    pub delay_ns: u64,
}

impl FaultRow {
    /// No fault.
    pub const NONE: FaultRow = FaultRow {
        function: Text::EMPTY,
        process: Text::EMPTY,
        call: 0,
        count: 0,
        code: 0,
        sticky: 0,
        delay_ns: 0,
    };
}

/// Kernels that break their context.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BreakRow {
    /// Part of the kernel's name.
    pub kernel: Text<64>,
    /// Only in processes with this `comm`; empty: in all.
    pub process: Text<16>,
    /// The launch of such a kernel that is hit, counted from 1 for each kernel of each process.
    pub launch: u64,
    /// One of [`BREAKING`].
    pub code: u32,
    /// 1: the kernel runs for `after_ns` of device time instead of its own duration.
    pub lasts: u32,
    pub after_ns: u64,
}

impl BreakRow {
    /// No such kernel.
    pub const NONE: BreakRow = BreakRow {
        kernel: Text::EMPTY,
        process: Text::EMPTY,
        launch: 0,
        code: 0,
        lasts: 0,
        after_ns: 0,
    };
}

/// The errors by which a driver says that a context is broken for good: ECC (214), NVLink (220), illegal
/// address (700), launch timeout (702), assert (710), hardware stack (714), illegal instruction (715),
/// misaligned address (716), address space (717), program counter (718), launch failure (719).
pub const BREAKING: [u32; 11] = [214, 220, 700, 702, 710, 714, 715, 716, 717, 718, 719];

/// The duration of kernels whose name contains `name`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelRow {
    pub name: Text<64>,
    pub ns: u64,
}

/// The whole node.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NodeFacts {
    pub device_count: u32,
    pub fault_count: u32,
    pub kernel_count: u32,
    pub break_count: u32,
    /// 0 model, 1 null.
    pub timing: u32,
    /// Host nanoseconds per nanosecond of device time, at least 1.
    pub time_scale: u32,
    /// What `cuDriverGetVersion` answers: 12090 or 13050.
    pub driver_version: u32,
    pub seed: u64,
    /// Standard deviation of kernel durations in 1/1000; 0: no noise at all.
    pub noise_permille: u32,
    /// Device time by which the first launch of a kernel in a process is longer; 0 without noise.
    pub cold_ns: u32,
    /// What neighbours' copies do to kernels and copies by taking memory bandwidth, in 1/1000: see
    /// `DeviceConfig::contention` of `model/op.rs`; 0 without noise.
    pub contention_permille: u32,
    /// Duration of a kernel that nothing says anything about.
    pub kernel_ns: u64,
    /// Device time when the node started.
    pub started_at: u64,
    pub costs: Costs,
    /// 1: clients look after which work names which memory (`cuda/uses.rs`).
    pub check_uses: u32,
    pub devices: [DeviceFacts; MAX_DEVICES],
    pub faults: [FaultRow; MAX_FAULTS],
    pub kernels: [KernelRow; MAX_KERNELS],
    pub breaks: [BreakRow; MAX_BREAKS],
}

impl NodeFacts {
    pub fn devices(&self) -> &[DeviceFacts] {
        &self.devices[..(self.device_count as usize).min(MAX_DEVICES)]
    }

    pub fn faults(&self) -> &[FaultRow] {
        &self.faults[..(self.fault_count as usize).min(MAX_FAULTS)]
    }

    pub fn kernels(&self) -> &[KernelRow] {
        &self.kernels[..(self.kernel_count as usize).min(MAX_KERNELS)]
    }

    pub fn breaks(&self) -> &[BreakRow] {
        &self.breaks[..(self.break_count as usize).min(MAX_BREAKS)]
    }

    pub fn timing(&self) -> Timing {
        if self.timing == 0 {
            Timing::Model
        } else {
            Timing::Null
        }
    }
}
