//! Access between devices: which pairs can, and which contexts have it switched on.

use super::Sim;
use super::context::context;
use super::current::current;
use super::edge::{needed, put};
use super::node::node;
use driver::prelude::*;
use std::sync::{Mutex, PoisonError};

const PERFORMANCE_RANK: u32 = 1;
const ACCESS: u32 = 2;
const NATIVE_ATOMICS: u32 = 3;
const ARRAY_ACCESS: u32 = 4;
const PARTIAL_ATOMICS: u32 = 5;

/// Ids of the contexts whose memory a context may reach.
#[derive(Default)]
pub struct Peers(Mutex<Vec<u64>>);

impl Peers {
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Sim {
    pub(super) fn cuDeviceCanAccessPeer(
        _: StreamApi,
        can: *mut c_int,
        dev: CUdevice,
        peer: CUdevice,
    ) -> CuResult {
        let node = node()?;
        needed(can)?;
        let (a, b) = (node.device(dev)?, node.device(peer)?);
        put(can, (a.index != b.index) as c_int)
    }

    pub(super) fn cuDeviceGetP2PAttribute(
        _: StreamApi,
        value: *mut c_int,
        attribute: CUdevice_P2PAttribute,
        src: CUdevice,
        dst: CUdevice,
    ) -> CuResult {
        let node = node()?;
        needed(value)?;
        let (a, b) = (node.device(src)?, node.device(dst)?);
        if a.index == b.index {
            return Err(CudaError::INVALID_DEVICE);
        }
        let linked = a.facts.nvlink_bandwidth != 0 && b.facts.nvlink_bandwidth != 0;
        put(
            value,
            match attribute {
                // 0 is the fastest link of the machine.
                PERFORMANCE_RANK => (!linked) as c_int,
                ACCESS | ARRAY_ACCESS => 1,
                NATIVE_ATOMICS => linked as c_int,
                PARTIAL_ATOMICS => 0,
                _ => return Err(CudaError::INVALID_VALUE),
            },
        )
    }

    pub(super) fn cuCtxEnablePeerAccess(_: StreamApi, peer: CUcontext, flags: c_uint) -> CuResult {
        let own = current()?.1;
        if flags != 0 {
            return Err(CudaError::INVALID_VALUE);
        }
        let peer = context(peer)?;
        if peer.device.index == own.device.index {
            return Err(CudaError::INVALID_DEVICE);
        }
        let mut peers = own.peers.0.lock().unwrap_or_else(PoisonError::into_inner);
        if peers.contains(&peer.id()) {
            return Err(CudaError::PEER_ACCESS_ALREADY_ENABLED);
        }
        peers.push(peer.id());
        Ok(())
    }

    pub(super) fn cuCtxDisablePeerAccess(_: StreamApi, peer: CUcontext) -> CuResult {
        let own = current()?.1;
        let peer = context(peer)?;
        let mut peers = own.peers.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = peers
            .iter()
            .position(|&id| id == peer.id())
            .ok_or(CudaError::PEER_ACCESS_NOT_ENABLED)?;
        peers.swap_remove(at);
        Ok(())
    }
}
