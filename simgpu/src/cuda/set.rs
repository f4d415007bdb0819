//! Memory set to a value.
//!
//! Many zeros make the pages go away. Other values make pages real: of a fill larger than
//! [`CAREFUL`] only as much is written, from the beginning, as a quarter of the memory that the machine
//! has to spare, so that a program which clears a simulated 80 GiB does not take the machine down.

use super::block::{self, Block, Kind};
use super::copy::{Return, act};
use super::edge::needed;
use super::graph::work::Work;
use super::node::Node;
use super::order::submit;
use super::stream::{Stream, entry};
use super::{Sim, capture, space, uses};
use crate::facts::CopyPath;
use driver::prelude::*;
use std::ptr::null_mut;

/// Fills up to this are written whatever the machine has.
const CAREFUL: u64 = 256 << 20;
const PAGE: u64 = 4096;

/// A value of 1, 2 or 4 bytes.
#[derive(Clone, Copy)]
struct Value {
    bytes: [u8; 4],
    size: usize,
}

impl From<u8> for Value {
    fn from(value: u8) -> Value {
        Value {
            bytes: [value; 4],
            size: 1,
        }
    }
}

impl From<u16> for Value {
    fn from(value: u16) -> Value {
        let [a, b] = value.to_le_bytes();
        Value {
            bytes: [a, b, a, b],
            size: 2,
        }
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Value {
        Value {
            bytes: value.to_le_bytes(),
            size: 4,
        }
    }
}

/// `height` rows of `width` values, `pitch` bytes apart.
#[derive(Clone, Copy)]
struct Area {
    base: u64,
    pitch: usize,
    width: usize,
    height: usize,
}

/// Bytes of a row, from one row to the next, and from the first to the last.
fn extent(area: Area, value: Value) -> Result<(usize, usize, usize), CudaError> {
    let invalid = CudaError::INVALID_VALUE;
    let row = area.width.checked_mul(value.size).ok_or(invalid)?;
    if area.height > 1 && area.pitch < row || !area.base.is_multiple_of(value.size as u64) {
        return Err(invalid);
    }
    let pitch = if area.height == 1 { row } else { area.pitch };
    let span = pitch
        .checked_mul(area.height - 1)
        .and_then(|all| all.checked_add(row))
        .ok_or(invalid)?;
    Ok((row, pitch, span))
}

fn set(api: StreamApi, area: Area, value: Value, hStream: CUstream) -> CuResult {
    let (node, stream) = entry(api, hStream)?;
    if area.width == 0 || area.height == 0 {
        return Ok(());
    }
    let (row, pitch, span) = extent(area, value)?;
    needed(area.base as *const u8)?;
    if let Some(capturing) = capture::of(stream)? {
        return capturing.add(Work::Set(as_node(area, value), stream.context()));
    }
    fill_area(node, stream, area, value, [row, pitch, span])
}

/// As the parameters of a node.
fn as_node(area: Area, value: Value) -> CUDA_MEMSET_NODE_PARAMS {
    CUDA_MEMSET_NODE_PARAMS {
        dst: area.base,
        pitch: area.pitch,
        value: u32::from_le_bytes(value.bytes),
        elementSize: value.size as u32,
        width: area.width,
        height: area.height,
    }
}

/// What a node does.
pub fn perform(node: &'static Node, stream: &'static Stream, set: &CUDA_MEMSET_NODE_PARAMS) -> CuResult {
    let value = match set.elementSize {
        1 => Value::from(set.value as u8),
        2 => Value::from(set.value as u16),
        _ => Value::from(set.value),
    };
    let area = Area {
        base: set.dst,
        pitch: set.pitch,
        width: set.width,
        height: set.height,
    };
    let (row, pitch, span) = extent(area, value)?;
    fill_area(node, stream, area, value, [row, pitch, span])
}

fn fill_area(
    node: &'static Node,
    stream: &'static Stream,
    area: Area,
    value: Value,
    [row, pitch, span]: [usize; 3],
) -> CuResult {
    let block = block::reachable(area.base, span as u64)?;
    // A set is a kernel: it has the device's SMs while it lasts.
    let facts = stream.context().device.facts;
    let ns = if node.null {
        0
    } else {
        facts.copy_ns(CopyPath::Set, (row * area.height) as u64)
    };
    uses::note(node, stream, &[area.base]);
    submit(node, stream, |on_node| {
        node.client.launch(on_node, ns, facts.sm_count)
    })?;
    act(node, stream, Return::AtOnce, move || {
        for y in 0..area.height {
            fill(&block, area.base + (y * pitch) as u64, row as u64, value.bytes);
        }
    })
}

fn fill(block: &Block, base: u64, bytes: u64, pattern: [u8; 4]) {
    let host = matches!(block.kind, Kind::Host(_) | Kind::Registered(_));
    if bytes > CAREFUL && pattern == [0; 4] && !host {
        let (start, end) = (base.next_multiple_of(PAGE), (base + bytes) / PAGE * PAGE);
        if space::clear(start, end - start) {
            write(base, start - base, pattern);
            write(end, base + bytes - end, pattern);
            return;
        }
    }
    let bytes = if bytes > CAREFUL {
        bytes.min((spare() / 4).max(CAREFUL))
    } else {
        bytes
    };
    write(base, bytes, pattern);
}

fn write(base: u64, bytes: u64, pattern: [u8; 4]) {
    if pattern == [pattern[0]; 4] {
        // SAFETY: a range of a known block, which is mapped and writable.
        unsafe { std::ptr::write_bytes(base as *mut u8, pattern[0], bytes as usize) };
        return;
    }
    for at in 0..bytes {
        // SAFETY: as above.
        unsafe {
            (base as *mut u8)
                .add(at as usize)
                .write(pattern[(at % 4) as usize])
        };
    }
}

/// Bytes of memory the machine could give to programs; 0 where it does not say.
fn spare() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}

fn line(base: u64, width: usize) -> Area {
    Area {
        base,
        pitch: 0,
        width,
        height: 1,
    }
}

macro_rules! sets {
    ($($plain:ident $asynchronous:ident $flat:ident $flat_asynchronous:ident $value:ty;)*) => {
        impl Sim {
            $(
                pub(super) fn $plain(api: StreamApi, dst: CUdeviceptr, value: $value, n: usize) -> CuResult {
                    set(api, line(dst, n), value.into(), null_mut())
                }

                pub(super) fn $asynchronous(
                    api: StreamApi,
                    dst: CUdeviceptr,
                    value: $value,
                    n: usize,
                    hStream: CUstream,
                ) -> CuResult {
                    set(api, line(dst, n), value.into(), hStream)
                }

                pub(super) fn $flat(
                    api: StreamApi,
                    base: CUdeviceptr,
                    pitch: usize,
                    value: $value,
                    width: usize,
                    height: usize,
                ) -> CuResult {
                    set(api, Area { base, pitch, width, height }, value.into(), null_mut())
                }

                pub(super) fn $flat_asynchronous(
                    api: StreamApi,
                    base: CUdeviceptr,
                    pitch: usize,
                    value: $value,
                    width: usize,
                    height: usize,
                    hStream: CUstream,
                ) -> CuResult {
                    set(api, Area { base, pitch, width, height }, value.into(), hStream)
                }
            )*
        }
    };
}

sets! {
    cuMemsetD8_v2 cuMemsetD8Async cuMemsetD2D8_v2 cuMemsetD2D8Async c_uchar;
    cuMemsetD16_v2 cuMemsetD16Async cuMemsetD2D16_v2 cuMemsetD2D16Async c_ushort;
    cuMemsetD32_v2 cuMemsetD32Async cuMemsetD2D32_v2 cuMemsetD2D32Async c_uint;
}
