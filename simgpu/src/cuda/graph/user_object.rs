//! Objects of the program that graphs keep alive: counted, and destroyed by the program's own function.

use super::exec::Run;
use super::work::Given;
use super::{INVALID, graphs};
use crate::cuda::Sim;
use crate::cuda::edge::{needed, put};
use crate::cuda::node::{next_id, node};
use driver::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

type Destroy = unsafe extern "C" fn(object: *mut c_void);

struct Object {
    references: u64,
    object: Given<*mut c_void>,
    destroy: Given<CUhostFn>,
}

static OBJECTS: LazyLock<Mutex<HashMap<u64, Object>>> = LazyLock::new(Default::default);

fn objects() -> MutexGuard<'static, HashMap<u64, Object>> {
    OBJECTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn retain(handle: u64, count: u32) -> CuResult {
    let mut objects = objects();
    objects.get_mut(&handle).ok_or(INVALID)?.references += u64::from(count);
    Ok(())
}

/// Gives references back; after the last one the program's function runs, on a thread of its own as it must not call CUDA.
fn release(handle: u64, count: u32) -> CuResult {
    let mut objects = objects();
    let object = objects.get_mut(&handle).ok_or(INVALID)?;
    object.references = object.references.checked_sub(u64::from(count)).ok_or(INVALID)?;
    if object.references != 0 {
        return Ok(());
    }
    let Some(gone) = objects.remove(&handle) else {
        return Ok(());
    };
    drop(objects);
    let run = move || {
        let gone = gone;
        // SAFETY: the program says this is a function of this type.
        let destroy = unsafe { std::mem::transmute::<*mut c_void, Destroy>(gone.destroy.0) };
        // SAFETY: called once, with what came with it.
        unsafe { destroy(gone.object.0) };
    };
    std::thread::Builder::new()
        .spawn(run)
        .map(drop)
        .map_err(|_| CudaError::OUT_OF_MEMORY)
}

/// One more graph has these references.
pub fn retain_all(held: &[(u64, u32)]) {
    for &(handle, count) in held {
        let _ = retain(handle, count);
    }
}

/// A graph with these references is gone.
pub fn release_all(held: Vec<(u64, u32)>) {
    for (handle, count) in held {
        let _ = release(handle, count);
    }
}

/// As above, once what was launched with them is complete.
pub fn release_after(run: Arc<Run>, held: Vec<(u64, u32)>) {
    if held.is_empty() || run.is_done() {
        return release_all(held);
    }
    let waiting = held.clone();
    let wait = move || {
        run.wait();
        release_all(waiting);
    };
    if std::thread::Builder::new().spawn(wait).is_err() {
        release_all(held);
    }
}

impl Sim {
    pub(in crate::cuda) fn cuUserObjectCreate(
        _: StreamApi,
        object_out: *mut CUuserObject,
        ptr: *mut c_void,
        destroy: CUhostFn,
        initialRefcount: c_uint,
        flags: c_uint,
    ) -> CuResult {
        node()?;
        needed(object_out)?;
        needed(destroy)?;
        // Destruction must be declared to be unordered.
        if flags != 1 || initialRefcount == 0 || initialRefcount > i32::MAX as u32 {
            return Err(INVALID);
        }
        let handle = next_id() << 6;
        let object = Object {
            references: u64::from(initialRefcount),
            object: Given(ptr),
            destroy: Given(destroy),
        };
        objects().insert(handle, object);
        put(object_out, handle as CUuserObject)
    }

    pub(in crate::cuda) fn cuUserObjectRetain(_: StreamApi, object: CUuserObject, count: c_uint) -> CuResult {
        node()?;
        retain(object as u64, count)
    }

    pub(in crate::cuda) fn cuUserObjectRelease(
        _: StreamApi,
        object: CUuserObject,
        count: c_uint,
    ) -> CuResult {
        node()?;
        release(object as u64, count)
    }

    pub(in crate::cuda) fn cuGraphRetainUserObject(
        _: StreamApi,
        graph: CUgraph,
        object: CUuserObject,
        count: c_uint,
        flags: c_uint,
    ) -> CuResult {
        const MOVE: u32 = 1;
        node()?;
        if flags > MOVE || count == 0 {
            return Err(INVALID);
        }
        let mut graphs = graphs();
        let graph = graphs.get_mut(graph as u64)?;
        if flags != MOVE {
            retain(object as u64, count)?;
        } else if !objects().contains_key(&(object as u64)) {
            return Err(INVALID);
        }
        match graph.objects.iter_mut().find(|held| held.0 == object as u64) {
            Some(held) => held.1 += count,
            None => graph.objects.push((object as u64, count)),
        }
        Ok(())
    }

    pub(in crate::cuda) fn cuGraphReleaseUserObject(
        _: StreamApi,
        graph: CUgraph,
        object: CUuserObject,
        count: c_uint,
    ) -> CuResult {
        node()?;
        let mut graphs = graphs();
        let graph = graphs.get_mut(graph as u64)?;
        let held = graph.objects.iter_mut().find(|held| held.0 == object as u64);
        let held = held.filter(|held| held.1 >= count).ok_or(INVALID)?;
        held.1 -= count;
        graph.objects.retain(|held| held.1 != 0);
        release(object as u64, count)
    }
}
