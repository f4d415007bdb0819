//! Giving memory back, and what a program's waiting lets the driver give back.

use super::block::{self, Block, Kind};
use super::context::Context;
use super::current::current;
use super::graph::memory;
use super::stream::{Stream, entry};
use super::{Sim, capture, pool};
use crate::client::Cost;
use driver::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Plain blocks freed in stream order: they go when the program has waited for the stream.
static DEFERRED: Mutex<Vec<(Arc<Block>, &'static Stream)>> = Mutex::new(Vec::new());
static ANY_DEFERRED: AtomicBool = AtomicBool::new(false);

/// The program has waited for work of the context: frees what that work was the last to use.
pub fn observed(context: &'static Context) {
    if ANY_DEFERRED.load(Ordering::Acquire) {
        let mut deferred = DEFERRED.lock().unwrap_or_else(PoisonError::into_inner);
        deferred.retain(|(block, stream)| {
            let pending = context.client().query(stream.on_node()) == Ok(false);
            if !pending {
                block::release(block);
            }
            pending
        });
        ANY_DEFERRED.store(!deferred.is_empty(), Ordering::Release);
    }
    pool::observed(context.device);
}

/// The context ends, and with it what it had put off.
pub fn drop_deferred_of(context: &'static Context) {
    let mut deferred = DEFERRED.lock().unwrap_or_else(PoisonError::into_inner);
    deferred.retain(|(block, _)| {
        let own = block.context.is_some_and(|of| std::ptr::eq(of, context));
        if own {
            block::release(block);
        }
        !own
    });
}

fn is_freeable(block: &Block) -> bool {
    matches!(
        block.kind,
        Kind::Device { .. } | Kind::Managed { .. } | Kind::Async(_) | Kind::Borrowed { .. }
    )
}

impl Sim {
    pub(super) fn cuMemFree_v2(_: StreamApi, dptr: CUdeviceptr) -> CuResult {
        let (node, _) = current()?;
        if dptr == 0 {
            return Ok(());
        }
        capture::unsafe_call()?;
        let _cost = node.client.spend(Cost::Free);
        if memory::is_graph(dptr) {
            return memory::free(dptr, false);
        }
        let block = block::remove(dptr, is_freeable)?;
        if let Kind::Async(pool) = &block.kind {
            pool.give(&block, None);
            return Ok(());
        }
        let waited = match block.context.filter(|context| context.is_alive()) {
            Some(context) => {
                let (device, number) = (context.device.index, context.number());
                node.client.synchronize_context(device, number, context.wait())
            }
            None => Ok(()),
        };
        block::release(&block);
        waited
    }

    pub(super) fn cuMemFreeAsync(api: StreamApi, dptr: CUdeviceptr, hStream: CUstream) -> CuResult {
        let (node, stream) = entry(api, hStream)?;
        if dptr == 0 {
            return Err(CudaError::INVALID_VALUE);
        }
        if let Some(capturing) = capture::of(stream)? {
            return capturing.add_free(dptr);
        }
        let _cost = node.client.spend(Cost::Free);
        if memory::is_graph(dptr) {
            return memory::free(dptr, false);
        }
        let block = block::remove(dptr, is_freeable)?;
        match &block.kind {
            Kind::Async(pool) => pool.give(&block, Some(stream)),
            _ => {
                let mut deferred = DEFERRED.lock().unwrap_or_else(PoisonError::into_inner);
                deferred.push((block.clone(), stream));
                ANY_DEFERRED.store(true, Ordering::Release);
            }
        }
        Ok(())
    }
}
