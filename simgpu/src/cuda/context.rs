//! Contexts: creation, destruction, state.
//!
//! A `Context` object is never freed, so that a stale handle or a thread's stack can always be looked
//! at; a destroyed one is only marked. Its memory, streams and charge go at once.
//! Next file of the walk: `stream.rs`.

use super::array_memory::SmallArrays;
use super::current::{current, named_or_current, pop_if, push};
use super::edge::{needed, put};
use super::heap::Heap;
use super::node::{Device, next_id, node};
use super::stream::{self, Stream};
use super::{Sim, array, block, limit::Limits, peer::Peers};
use crate::client::{Client, Cost, Wait};
use driver::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

pub const SCHED_MASK: u32 = 7;
pub const MAP_HOST: u32 = 8;
pub const FLAGS_MASK: u32 = 0xff;

pub struct Context {
    pub device: &'static Device,
    pub primary: bool,
    alive: AtomicBool,
    /// Another one each time a primary context comes to life.
    id: AtomicU64,
    /// The number of the context on the timeline.
    number: AtomicU16,
    pub flags: AtomicU32,
    /// Retains of a primary context.
    pub retained: Mutex<u32>,
    legacy: AtomicPtr<Stream>,
    /// Submissions to the legacy stream so far (`order.rs`).
    pub legacy_count: AtomicU64,
    /// Streams with work that the legacy stream has not followed yet.
    pub unfollowed: Mutex<Vec<&'static Stream>>,
    pub any_unfollowed: AtomicBool,
    /// Small device blocks.
    pub heap: Mutex<Heap>,
    pub small_arrays: SmallArrays,
    pub limits: Limits,
    pub peers: Peers,
    api_version: AtomicU32,
}

/// All contexts that ever were. Few, so a list.
static CONTEXTS: RwLock<Vec<&'static Context>> = RwLock::new(Vec::new());

/// The context behind a handle: `INVALID_CONTEXT` for none or garbage, `CONTEXT_IS_DESTROYED` for one
/// that is gone.
pub fn context(handle: CUcontext) -> Result<&'static Context, CudaError> {
    let known = CONTEXTS.read().unwrap_or_else(PoisonError::into_inner);
    let found = known.iter().find(|context| context.handle() == handle).copied();
    let context = found.ok_or(CudaError::INVALID_CONTEXT)?;
    context.usable()?;
    Ok(context)
}

impl Context {
    /// A context that is not alive yet.
    pub fn new(device: &'static Device, primary: bool) -> &'static Context {
        let context = Context {
            device,
            primary,
            alive: AtomicBool::new(false),
            id: AtomicU64::new(0),
            number: AtomicU16::new(0),
            flags: AtomicU32::new(0),
            retained: Mutex::new(0),
            legacy: AtomicPtr::new(std::ptr::null_mut()),
            legacy_count: AtomicU64::new(0),
            unfollowed: Mutex::new(Vec::new()),
            any_unfollowed: AtomicBool::new(false),
            heap: Mutex::new(Heap::default()),
            small_arrays: SmallArrays::default(),
            limits: Limits::default(),
            peers: Peers::default(),
            api_version: AtomicU32::new(3020),
        };
        let context: &'static Context = Box::leak(Box::new(context));
        CONTEXTS
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(context);
        context
    }

    pub fn handle(&self) -> CUcontext {
        (&raw const *self).cast_mut().cast()
    }

    #[inline(always)]
    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    #[inline(always)]
    pub fn usable(&self) -> CuResult {
        if !self.is_alive() {
            return Err(CudaError::CONTEXT_IS_DESTROYED);
        }
        if self.client().device_lost(self.device.index) {
            return Err(CudaError::DEVICE_UNAVAILABLE);
        }
        Ok(())
    }

    /// The error of the kernel that broke the context, if one did.
    #[inline(always)]
    pub fn intact(&self) -> CuResult {
        self.client().intact(self.device.index, self.number())
    }

    #[inline(always)]
    pub fn client(&self) -> &'static Client {
        self.device.client
    }

    pub fn id(&self) -> u64 {
        self.id.load(Ordering::Relaxed)
    }

    pub fn number(&self) -> u16 {
        self.number.load(Ordering::Relaxed)
    }

    /// The legacy default stream; `CONTEXT_IS_DESTROYED` once there is none.
    #[inline(always)]
    pub fn legacy(&self) -> Result<&'static Stream, CudaError> {
        let stream = self.legacy.load(Ordering::Acquire);
        // SAFETY: null or a slot of the stream arena, which is never unmapped.
        unsafe { stream.as_ref() }.ok_or(CudaError::CONTEXT_IS_DESTROYED)
    }

    /// How the context's waits wait.
    pub fn wait(&self) -> Wait {
        match self.flags.load(Ordering::Relaxed) & SCHED_MASK {
            1 => Wait::Spin,
            2 => Wait::Yield,
            4 => Wait::Block,
            _ => Wait::Auto,
        }
    }

    /// Brings the context to life: charges what a context costs, makes its default stream.
    pub fn activate(&'static self) -> CuResult {
        let client = self.client();
        let _cost = client.spend(Cost::Context);
        self.device.vram.charge(self.device.facts.context_bytes)?;
        let started = (|| {
            if !self.primary {
                self.number.store(self.device.take_number()?, Ordering::Relaxed);
            }
            self.id.store(next_id(), Ordering::Relaxed);
            stream::create(self, stream::LEGACY, 0)
        })();
        match started {
            Ok(legacy) => {
                self.legacy
                    .store((&raw const *legacy).cast_mut(), Ordering::Release);
                self.alive.store(true, Ordering::Release);
                Ok(())
            }
            Err(error) => {
                self.device.return_number(self.number());
                self.device.vram.discharge(self.device.facts.context_bytes);
                Err(error)
            }
        }
    }

    /// Ends the context: waits for its work, frees what lives in it, gives back its charge.
    pub fn destroy(&'static self) -> CuResult {
        let waited = self
            .client()
            .synchronize_context(self.device.index, self.number(), self.wait());
        if !self.alive.swap(false, Ordering::AcqRel) {
            return Err(CudaError::CONTEXT_IS_DESTROYED);
        }
        stream::drop_all_of(self);
        self.legacy.store(std::ptr::null_mut(), Ordering::Release);
        super::event::drop_all_of(self);
        super::module::drop_all_of(self);
        array::drop_all_of(self);
        block::drop_all_of(self);
        self.unfollowed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        self.any_unfollowed.store(false, Ordering::Relaxed);
        self.limits.reset();
        self.peers.clear();
        self.device.vram.discharge(self.device.facts.context_bytes);
        self.device.return_number(self.number());
        waited
    }
}

/// Flags a context may be created with: one way to wait, and what is kept or ignored.
pub fn check_flags(flags: u32) -> CuResult {
    let one_way = matches!(flags & SCHED_MASK, 0 | 1 | 2 | 4);
    if flags & !FLAGS_MASK != 0 || !one_way {
        Err(CudaError::INVALID_VALUE)
    } else {
        Ok(())
    }
}

fn create(pctx: *mut CUcontext, flags: u32, dev: CUdevice, api_version: u32) -> CuResult {
    let node = node()?;
    needed(pctx)?;
    check_flags(flags)?;
    let context = Context::new(node.device(dev)?, false);
    context.flags.store(flags | MAP_HOST, Ordering::Relaxed);
    context.api_version.store(api_version, Ordering::Relaxed);
    context.activate()?;
    push(context);
    put(pctx, context.handle())
}

impl Sim {
    pub(super) fn cuCtxCreate(_: StreamApi, pctx: *mut CUcontext, flags: c_uint, dev: CUdevice) -> CuResult {
        create(pctx, flags, dev, 3010)
    }

    pub(super) fn cuCtxCreate_v2(
        _: StreamApi,
        pctx: *mut CUcontext,
        flags: c_uint,
        dev: CUdevice,
    ) -> CuResult {
        create(pctx, flags, dev, 3020)
    }

    pub(super) fn cuCtxCreate_v3(
        _: StreamApi,
        pctx: *mut CUcontext,
        _affinity: *mut CUexecAffinityParam,
        count: c_int,
        flags: c_uint,
        dev: CUdevice,
    ) -> CuResult {
        if count != 0 {
            return Err(CudaError::UNSUPPORTED_EXEC_AFFINITY);
        }
        create(pctx, flags, dev, 3030)
    }

    pub(super) fn cuCtxCreate_v4(
        _: StreamApi,
        pctx: *mut CUcontext,
        params: *mut CUctxCreateParams,
        flags: c_uint,
        dev: CUdevice,
    ) -> CuResult {
        if !params.is_null() {
            let params = super::edge::get(params)?;
            if params.numExecAffinityParams != 0 {
                return Err(CudaError::UNSUPPORTED_EXEC_AFFINITY);
            }
            if !params.cigParams.is_null() {
                return Err(CudaError::NOT_SUPPORTED);
            }
        }
        create(pctx, flags, dev, 3040)
    }

    pub(super) fn cuCtxDestroy(api: StreamApi, ctx: CUcontext) -> CuResult {
        Sim::cuCtxDestroy_v2(api, ctx)
    }

    pub(super) fn cuCtxDestroy_v2(_: StreamApi, ctx: CUcontext) -> CuResult {
        node()?;
        let context = context(ctx)?;
        if context.primary {
            return Err(CudaError::INVALID_CONTEXT);
        }
        pop_if(context);
        context.destroy()
    }

    pub(super) fn cuCtxGetFlags(_: StreamApi, flags: *mut c_uint) -> CuResult {
        needed(flags)?;
        put(flags, current()?.1.flags.load(Ordering::Relaxed))
    }

    pub(super) fn cuCtxSetFlags(_: StreamApi, flags: c_uint) -> CuResult {
        let context = current()?.1;
        check_flags(flags)?;
        context.flags.store(flags | MAP_HOST, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn cuCtxGetId(_: StreamApi, ctx: CUcontext, id: *mut c_ulonglong) -> CuResult {
        needed(id)?;
        put(id, named_or_current(ctx)?.id())
    }

    pub(super) fn cuCtxGetApiVersion(_: StreamApi, ctx: CUcontext, version: *mut c_uint) -> CuResult {
        needed(version)?;
        put(
            version,
            named_or_current(ctx)?.api_version.load(Ordering::Relaxed),
        )
    }

    pub(super) fn cuCtxSynchronize(_: StreamApi) -> CuResult {
        synchronize(current()?.1)
    }

    pub(super) fn cuCtxSynchronize_v2(_: StreamApi, ctx: CUcontext) -> CuResult {
        synchronize(named_or_current(ctx)?)
    }
}

fn synchronize(context: &'static Context) -> CuResult {
    super::capture::context_is_waited_for(context)?;
    let client = context.client();
    client.synchronize_context(context.device.index, context.number(), context.wait())?;
    super::free::observed(context);
    Ok(())
}
