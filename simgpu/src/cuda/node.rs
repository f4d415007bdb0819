//! This process's place on the node: the connection made by `cuInit`, and the devices it may see.
//!
//! Made once and kept for ever. A child forked from an initialised process is told `NOT_INITIALIZED` for
//! ever, a process whose server died `UNKNOWN`; both are one load in [`node`].
//! Next file of the walk: `current.rs`.

use super::context::Context;
use super::graph::memory::GraphMemory;
use super::pool::Pool;
use super::vram::Vram;
use crate::client::Client;
use crate::facts::{DeviceFacts, Timing};
use crate::own_library;
use driver::environment::variable;
use driver::{CuResult, CudaError};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

pub struct Node {
    pub client: &'static Client,
    /// Those that `CUDA_VISIBLE_DEVICES` names, in its order: indexed by `CUdevice`.
    pub devices: Vec<Device>,
    /// True in `null` timing, where no work takes time and order means nothing.
    pub null: bool,
    /// Host functions submitted and not yet run.
    pub host_functions: AtomicUsize,
}

pub struct Device {
    /// The `CUdevice`.
    pub ordinal: i32,
    /// The device's number on the node.
    pub index: usize,
    pub facts: &'static DeviceFacts,
    pub client: &'static Client,
    pub vram: Vram,
    pub primary: OnceLock<&'static Context>,
    pub default_pool: OnceLock<Arc<Pool>>,
    pub current_pool: Mutex<Option<Arc<Pool>>>,
    pub graph_memory: Mutex<GraphMemory>,
    /// Context numbers on the timeline that are in use; 0 is the primary context's.
    pub numbers: Mutex<Vec<bool>>,
}

static NODE: AtomicPtr<Node> = AtomicPtr::new(null_mut());
static INITIALISING: Mutex<()> = Mutex::new(());
/// Ids of contexts, streams, buffers and pools: unique in the process, never used again.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

pub fn next_id() -> u64 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

/// The node, if `cuInit` succeeded in this process or the one it was forked from.
#[inline(always)]
pub fn connected() -> Option<&'static Node> {
    let node = NODE.load(Ordering::Acquire);
    // SAFETY: null or a leaked Node, published after it was complete.
    unsafe { node.as_ref() }
}

/// The node, while it may be used.
#[inline(always)]
pub fn node() -> Result<&'static Node, CudaError> {
    let node = connected().ok_or(CudaError::NOT_INITIALIZED)?;
    node.client.alive()?;
    Ok(node)
}

/// `cuInit`.
pub fn initialise() -> CuResult {
    if let Some(node) = connected() {
        return node.client.alive();
    }
    let _one = INITIALISING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(node) = connected() {
        return node.client.alive();
    }
    own_library::silence_panics();
    // A driver without its device: what a machine without a GPU answers.
    let client = Client::connect_with(&own_library::place(), sm_share());
    let client = client.map_err(|_| CudaError::NO_DEVICE)?;
    let client: &'static Client = Box::leak(Box::new(client));
    if let Some(error) = client.fault("cuInit") {
        return Err(error);
    }
    let named = variable(c"CUDA_VISIBLE_DEVICES");
    let named = named.as_ref().map(|text| text.to_string_lossy());
    let visible = visible(named.as_deref(), client.devices());
    if visible.is_empty() {
        return Err(CudaError::NO_DEVICE);
    }
    let device = |(ordinal, &index): (usize, &usize)| Device {
        ordinal: ordinal as i32,
        index,
        facts: &client.devices()[index],
        client,
        vram: Vram::new(client, index),
        primary: OnceLock::new(),
        default_pool: OnceLock::new(),
        current_pool: Mutex::new(None),
        graph_memory: Mutex::default(),
        numbers: Mutex::new(vec![true]),
    };
    let devices = visible.iter().enumerate().map(device).collect();
    let null = client.node().timing() == Timing::Null;
    let node = Node {
        client,
        devices,
        null,
        host_functions: AtomicUsize::new(0),
    };
    NODE.store(Box::into_raw(Box::new(node)), Ordering::Release);
    Ok(())
}

/// The part of the SMs, in percent, that MPS would let this process use.
fn sm_share() -> u32 {
    let asked = variable(c"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    let percent = asked.and_then(|text| text.to_str()?.trim().parse::<f64>().ok());
    // Rounded up: a process that may run at all has a part.
    percent
        .filter(|p| *p > 0.0 && *p <= 100.0)
        .map_or(100, |p| p.ceil() as u32)
}

/// The node's numbers of the devices that `CUDA_VISIBLE_DEVICES` lets a program see: everything if it is
/// unset, else the list up to the first entry that names no device or one already named.
fn visible(named: Option<&str>, devices: &[DeviceFacts]) -> Vec<usize> {
    let Some(named) = named else {
        return (0..devices.len()).collect();
    };
    let mut list: Vec<usize> = Vec::new();
    for entry in named.split(',') {
        let entry = entry.trim();
        let found = if entry.starts_with("GPU-") {
            let mut matching = (0..devices.len()).filter(|&i| devices[i].uuid_text().starts_with(entry));
            // An abbreviation must be unambiguous.
            matching.next().filter(|_| matching.next().is_none())
        } else {
            entry.parse::<usize>().ok().filter(|&i| i < devices.len())
        };
        match found {
            Some(index) if !list.contains(&index) => list.push(index),
            _ => break,
        }
    }
    list
}

impl Node {
    /// `INVALID_DEVICE` for an ordinal without a device.
    pub fn device(&'static self, ordinal: i32) -> Result<&'static Device, CudaError> {
        let device = usize::try_from(ordinal).ok().and_then(|i| self.devices.get(i));
        let device = device.ok_or(CudaError::INVALID_DEVICE)?;
        if self.client.device_lost(device.index) {
            return Err(CudaError::DEVICE_UNAVAILABLE);
        }
        Ok(device)
    }
}

impl Device {
    /// A context number for the timeline, free until [`Device::return_number`].
    pub fn take_number(&self) -> Result<u16, CudaError> {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let number = numbers.iter().position(|used| !used).unwrap_or(numbers.len());
        let number16 = u16::try_from(number).map_err(|_| CudaError::OUT_OF_MEMORY)?;
        if number == numbers.len() {
            numbers.push(true);
        }
        numbers[number] = true;
        Ok(number16)
    }

    pub fn return_number(&self, number: u16) {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        // What is said of a broken context must not be said of another.
        let kept = number == 0 || self.client.is_doomed(self.index, number);
        if let Some(used) = numbers.get_mut(number as usize).filter(|_| !kept) {
            *used = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{CONTEXT_BYTES, Product};
    use crate::facts::NodeFacts;

    #[test]
    fn visible_devices_are_a_list_up_to_the_first_mistake() {
        let facts = NodeFacts::of(&[Product::H200; 4], 1, CONTEXT_BYTES);
        let devices = facts.devices();
        let of = |text: &str| visible(Some(text), devices);
        assert_eq!(visible(None, devices), [0, 1, 2, 3]);
        assert_eq!(of("2,0,3"), [2, 0, 3]);
        assert_eq!(of(" 1 , 0"), [1, 0]);
        assert_eq!(of("1,7,0"), [1]);
        assert_eq!(of("1,1,0"), [1]);
        assert_eq!(of("-1"), []);
        assert_eq!(of(""), []);
        let uuid = devices[2].uuid_text();
        assert_eq!(of(&format!("{uuid},0")), [2, 0]);
        assert_eq!(of(&uuid[..12]), [2]);
        assert_eq!(of("GPU-"), [], "an ambiguous abbreviation names nothing");
        assert_eq!(of("MIG-0"), []);
    }
}
