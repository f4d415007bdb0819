//! Launches.
//!
//! The path of a plain launch takes no lock of ours and makes no system call: the handle is checked, the
//! stream found, and one entry written into the ring. Next file of the walk: `client/ring.rs`.

use super::arguments::Given;
pub use super::arguments::Kernel;
use super::context::Context;
use super::current::current;
use super::edge::{element, get as read, needed};
use super::function::{self, Function};
use super::graph::work::Work;
use super::node::Node;
use super::occupancy::blocks_per_sm;
use super::order::submit;
use super::stream::{Stream, entry};
use super::{Sim, capture, event, uses};
use crate::client::{Cost, Manner};
use driver::prelude::*;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;

const ATTRIBUTE_COOPERATIVE: u32 = 2;
const ATTRIBUTE_PROGRAMMATIC_EVENT: u32 = 7;
const ATTRIBUTE_COMPLETION_EVENT: u32 = 12;

/// One launch.
#[derive(Clone, Copy)]
pub struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub cooperative: bool,
}

/// `CUlaunchAttribute`: an id, and a value of 64 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
struct Attribute {
    id: u32,
    _pad: u32,
    value: [u64; 8],
}

#[inline(always)]
fn launch(
    node: &'static Node,
    stream: &'static Stream,
    f: CUfunction,
    shape: &Shape,
    given: Given,
) -> CuResult {
    let _cost = node.client.spend(Cost::Launch);
    let function = function::get(f)?;
    let context = stream.context();
    check(context, function, shape, given.is_some())?;
    if let Some(capturing) = capture::of(stream)? {
        fits(node, context, function, shape)?;
        let kernel = Kernel::new(context, f, function, *shape, given)?;
        return capturing.add(Work::Kernel(kernel));
    }
    start(node, stream, function, shape, given.list())
}

/// What can be told of a launch without the device.
#[inline(always)]
pub fn check(
    context: &'static Context,
    function: &'static Function,
    shape: &Shape,
    has_parameters: bool,
) -> CuResult {
    let [x, y, z] = shape.block;
    let threads = u64::from(x) * u64::from(y) * u64::from(z);
    let grid = shape.grid;
    let dimensions = (1..=1024).contains(&x) && (1..=1024).contains(&y) && (1..=64).contains(&z);
    let in_grid = (1..=i32::MAX as u32).contains(&grid[0])
        && (1..65536).contains(&grid[1])
        && (1..65536).contains(&grid[2]);
    if !dimensions || !in_grid || threads > 1024 || shape.shared > function.max_shared() {
        return Err(CudaError::INVALID_VALUE);
    }
    if threads > u64::from(function.max_threads()) {
        return Err(CudaError::LAUNCH_OUT_OF_RESOURCES);
    }
    let kernel = function.kernel();
    if !has_parameters && kernel.info.parameters.as_ref().is_some_and(|all| !all.is_empty()) {
        return Err(CudaError::INVALID_VALUE);
    }
    if function.context().is_some_and(|own| !std::ptr::eq(own, context)) {
        return Err(CudaError::INVALID_HANDLE);
    }
    Ok(())
}

/// How many SMs the launch keeps busy; an error where the device cannot take it.
#[inline(always)]
fn fits(
    node: &'static Node,
    context: &'static Context,
    function: &'static Function,
    shape: &Shape,
) -> Result<u32, CudaError> {
    if node.null && !shape.cooperative {
        return Ok(1);
    }
    let facts = context.device.facts;
    let threads: u32 = shape.block.iter().product();
    let fitting = blocks_per_sm(facts, function, threads, shape.shared as u64);
    if fitting == 0 {
        return Err(CudaError::LAUNCH_OUT_OF_RESOURCES);
    }
    let [x, y, z] = shape.grid.map(u64::from);
    let blocks = x * y * z;
    if shape.cooperative && blocks > u64::from(fitting) * u64::from(facts.sm_count) {
        return Err(CudaError::COOPERATIVE_LAUNCH_TOO_LARGE);
    }
    Ok(blocks.div_ceil(u64::from(fitting)).min(u64::from(facts.sm_count)) as u32)
}

/// Puts a checked launch on the timeline.
#[inline(always)]
fn start(
    node: &'static Node,
    stream: &'static Stream,
    function: &'static Function,
    shape: &Shape,
    arguments: *mut *mut c_void,
) -> CuResult {
    let sms = fits(node, stream.context(), function, shape)?;
    let timing = &function.kernel().timing;
    if node.null && !shape.cooperative {
        return node
            .client
            .launch_kernel(stream.on_node(), timing, 1, Manner::Plain);
    }
    let manner = match timing.meets() {
        true => meeting(function, arguments)?,
        false if shape.cooperative => Manner::Cooperative,
        false => Manner::Plain,
    };
    uses::note_kernel(node, stream, function, arguments);
    submit(node, stream, |on_node| {
        node.client.launch_kernel(on_node, timing, sms, manner)
    })
}

/// Whom a kernel that meets others meets: its arguments are a key of 64 bits and how many meet, 32 bits.
#[cold]
fn meeting(function: &'static Function, arguments: *mut *mut c_void) -> Result<Manner, CudaError> {
    let sizes = [function.parameter(0)?.1, function.parameter(1)?.1];
    if arguments.is_null() || sizes != [8, 4] {
        return Err(CudaError::INVALID_VALUE);
    }
    let key = read(element(arguments, 0)?.cast::<u64>().cast_const())?;
    let parties = read(element(arguments, 1)?.cast::<u32>().cast_const())?;
    Ok(Manner::Party { key, parties })
}

/// What a kernel node does. Its function may be gone by then.
pub fn perform(node: &'static Node, stream: &'static Stream, kernel: &Kernel) -> CuResult {
    let function = function::get(kernel.function as CUfunction)?;
    start(
        node,
        stream,
        function,
        &kernel.shape,
        kernel.arguments.pointers().0,
    )
}

/// What an old-style function was told beforehand.
fn launch_old(api: StreamApi, f: CUfunction, width: c_int, height: c_int, hStream: CUstream) -> CuResult {
    let (node, stream) = entry(api, hStream)?;
    let function = function::get(f)?;
    let grid = |side: c_int| u32::try_from(side).map_err(|_| CudaError::INVALID_VALUE);
    let packed = function.threads.load(Ordering::Relaxed);
    let shape = Shape {
        grid: [grid(width)?, grid(height)?, 1],
        block: [packed & 0x7ff, packed >> 11 & 0x7ff, packed >> 22 & 0x7f],
        shared: function.shared.load(Ordering::Relaxed),
        cooperative: false,
    };
    let shape = Shape {
        block: shape.block.map(|side| side.max(1)),
        ..shape
    };
    launch(node, stream, f, &shape, Given::Beforehand)
}

impl Sim {
    #[inline(always)]
    pub(super) fn cuLaunchKernel(
        api: StreamApi,
        f: CUfunction,
        gx: c_uint,
        gy: c_uint,
        gz: c_uint,
        bx: c_uint,
        by: c_uint,
        bz: c_uint,
        shared: c_uint,
        hStream: CUstream,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> CuResult {
        let (node, stream) = entry(api, hStream)?;
        if !params.is_null() && !extra.is_null() {
            return Err(CudaError::INVALID_VALUE);
        }
        let shape = Shape {
            grid: [gx, gy, gz],
            block: [bx, by, bz],
            shared,
            cooperative: false,
        };
        launch(node, stream, f, &shape, Given::now(params, extra))
    }

    pub(super) fn cuLaunchKernelEx(
        api: StreamApi,
        config: *const CUlaunchConfig,
        f: CUfunction,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> CuResult {
        super::node::node()?;
        let c = read(config)?;
        let (node, stream) = entry(api, c.hStream)?;
        if !params.is_null() && !extra.is_null() {
            return Err(CudaError::INVALID_VALUE);
        }
        let mut shape = Shape {
            grid: [c.gridDimX, c.gridDimY, c.gridDimZ],
            block: [c.blockDimX, c.blockDimY, c.blockDimZ],
            shared: c.sharedMemBytes,
            cooperative: false,
        };
        let mut completion = null_mut();
        for i in 0..c.numAttrs as usize {
            let attribute = element(c.attrs.cast::<Attribute>().cast_const(), i)?;
            match attribute.id {
                ATTRIBUTE_COOPERATIVE => shape.cooperative = attribute.value[0] as u32 != 0,
                ATTRIBUTE_PROGRAMMATIC_EVENT | ATTRIBUTE_COMPLETION_EVENT => {
                    completion = attribute.value[0] as CUevent;
                    event::get(completion)?;
                }
                // The rest are hints about how a real device would place the work.
                _ => {}
            }
        }
        launch(node, stream, f, &shape, Given::now(params, extra))?;
        if completion.is_null() {
            Ok(())
        } else {
            Sim::cuEventRecord(api, completion, c.hStream)
        }
    }

    pub(super) fn cuLaunchCooperativeKernel(
        api: StreamApi,
        f: CUfunction,
        gx: c_uint,
        gy: c_uint,
        gz: c_uint,
        bx: c_uint,
        by: c_uint,
        bz: c_uint,
        shared: c_uint,
        hStream: CUstream,
        params: *mut *mut c_void,
    ) -> CuResult {
        let (node, stream) = entry(api, hStream)?;
        let shape = Shape {
            grid: [gx, gy, gz],
            block: [bx, by, bz],
            shared,
            cooperative: true,
        };
        launch(node, stream, f, &shape, Given::now(params, null_mut()))
    }

    pub(super) fn cuLaunchCooperativeKernelMultiDevice(
        api: StreamApi,
        list: *mut CUDA_LAUNCH_PARAMS,
        count: c_uint,
        flags: c_uint,
    ) -> CuResult {
        super::node::node()?;
        needed(list)?;
        if count == 0 || flags > 3 {
            return Err(CudaError::INVALID_VALUE);
        }
        for i in 0..count as usize {
            let one = element(list, i)?;
            // Every part names its own stream: default ones mean nothing across devices.
            if (one.hStream as usize) <= 2 {
                return Err(CudaError::INVALID_VALUE);
            }
            Sim::cuLaunchCooperativeKernel(
                api,
                one.function,
                one.gridDimX,
                one.gridDimY,
                one.gridDimZ,
                one.blockDimX,
                one.blockDimY,
                one.blockDimZ,
                one.sharedMemBytes,
                one.hStream,
                one.kernelParams,
            )?;
        }
        Ok(())
    }

    pub(super) fn cuLaunch(api: StreamApi, f: CUfunction) -> CuResult {
        launch_old(api, f, 1, 1, null_mut())
    }

    pub(super) fn cuLaunchGrid(api: StreamApi, f: CUfunction, width: c_int, height: c_int) -> CuResult {
        launch_old(api, f, width, height, null_mut())
    }

    pub(super) fn cuLaunchGridAsync(
        api: StreamApi,
        f: CUfunction,
        width: c_int,
        height: c_int,
        hStream: CUstream,
    ) -> CuResult {
        launch_old(api, f, width, height, hStream)
    }

    pub(super) fn cuFuncSetBlockShape(_: StreamApi, f: CUfunction, x: c_int, y: c_int, z: c_int) -> CuResult {
        current()?;
        let function = function::get(f)?;
        let fits = (1..=1024).contains(&x) && (1..=1024).contains(&y) && (1..=64).contains(&z);
        if !fits {
            return Err(CudaError::INVALID_VALUE);
        }
        function
            .threads
            .store(x as u32 | (y as u32) << 11 | (z as u32) << 22, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn cuFuncSetSharedSize(_: StreamApi, f: CUfunction, bytes: c_uint) -> CuResult {
        current()?;
        function::get(f)?.shared.store(bytes, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn cuParamSetSize(_: StreamApi, f: CUfunction, _bytes: c_uint) -> CuResult {
        current()?;
        function::get(f).map(|_| ())
    }

    pub(super) fn cuParamSeti(_: StreamApi, f: CUfunction, _offset: c_int, _value: c_uint) -> CuResult {
        current()?;
        function::get(f).map(|_| ())
    }

    pub(super) fn cuParamSetf(_: StreamApi, f: CUfunction, _offset: c_int, _value: f32) -> CuResult {
        current()?;
        function::get(f).map(|_| ())
    }

    pub(super) fn cuParamSetv(
        _: StreamApi,
        f: CUfunction,
        _offset: c_int,
        ptr: *mut c_void,
        bytes: c_uint,
    ) -> CuResult {
        current()?;
        if bytes != 0 {
            needed(ptr)?;
        }
        function::get(f).map(|_| ())
    }
}
