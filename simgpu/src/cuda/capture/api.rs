//! The capture functions of the API.

use super::events::merge;
use super::rules::is_unusable;
use super::{Edge, Member, begin, end, sequences};
use crate::cuda::Sim;
use crate::cuda::edge::{needed, put, put_optional};
use crate::cuda::graph::{edges, graphs};
use crate::cuda::stream::{Stream, entry};
use driver::prelude::*;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;

/// What a program asks of a capture; null where it does not.
struct Asked {
    status: *mut CUstreamCaptureStatus,
    id: *mut cuuint64_t,
    graph: *mut CUgraph,
    nodes: *mut *const CUgraphNode,
    data: *mut *const CUgraphEdgeData,
    count: *mut usize,
}

fn begin_on(
    api: StreamApi,
    hStream: CUstream,
    mode: CUstreamCaptureMode,
    into: Option<(u64, Vec<Edge>)>,
) -> CuResult {
    let (_, stream) = entry(api, hStream)?;
    if mode > CU_STREAM_CAPTURE_MODE_RELAXED {
        return Err(CudaError::INVALID_VALUE);
    }
    if stream.is_legacy() {
        return Err(CudaError::STREAM_CAPTURE_UNSUPPORTED);
    }
    begin(stream, mode, into)
}

fn info(api: StreamApi, hStream: CUstream, asked: &Asked) -> CuResult {
    needed(asked.status)?;
    if !asked.data.is_null() && asked.nodes.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    let (_, stream) = entry(api, hStream)?;
    if is_unusable(stream) {
        return Err(CudaError::STREAM_CAPTURE_IMPLICIT);
    }
    let mut sequences = sequences();
    let id = stream.capture.load(Ordering::Acquire);
    let sequence = sequences.iter_mut().find(|sequence| id != 0 && sequence.id == id);
    let Some(sequence) = sequence else {
        return put(asked.status, CU_STREAM_CAPTURE_STATUS_NONE);
    };
    if !sequence.valid {
        return put(asked.status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    }
    let graph = sequence.graph;
    let member = sequence.member(stream).ok_or(CudaError::INVALID_HANDLE)?;
    show(member, asked)?;
    put_optional(asked.id, id);
    put_optional(asked.graph, graph as CUgraph);
    put(asked.status, CU_STREAM_CAPTURE_STATUS_ACTIVE)
}

/// The dependencies, in arrays that stay until the stream's next call.
fn show(member: &mut Member, asked: &Asked) -> CuResult {
    member.shown = member.next.iter().map(|edge| edge.from as usize).collect();
    member.shown_data = member.next.iter().map(|edge| edge.data).collect();
    let plain = |data: &CUgraphEdgeData| *data == CUgraphEdgeData::default();
    if !asked.nodes.is_null() && asked.data.is_null() && !member.shown_data.iter().all(plain) {
        return Err(CudaError::LOSSY_QUERY);
    }
    put_optional(asked.nodes, member.shown.as_ptr().cast());
    put_optional(asked.data, member.shown_data.as_ptr());
    put_optional(asked.count, member.next.len());
    Ok(())
}

fn update(stream: &'static Stream, fresh: Vec<Edge>, flags: u32) -> CuResult {
    const ADD: u32 = 0;
    const SET: u32 = 1;
    if flags > SET {
        return Err(CudaError::INVALID_VALUE);
    }
    let mut sequences = sequences();
    let id = stream.capture.load(Ordering::Acquire);
    let sequence = sequences.iter_mut().find(|sequence| id != 0 && sequence.id == id);
    let sequence = sequence.ok_or(CudaError::ILLEGAL_STATE)?;
    if !sequence.valid {
        return Err(CudaError::STREAM_CAPTURE_INVALIDATED);
    }
    graphs().check_edges(sequence.graph, &fresh)?;
    let member = sequence.member(stream).ok_or(CudaError::ILLEGAL_STATE)?;
    if flags == ADD {
        merge(&mut member.next, fresh);
        return Ok(());
    }
    let gone: Vec<u64> = std::mem::replace(&mut member.next, fresh)
        .iter()
        .map(|edge| edge.from)
        .collect();
    sequence.excused.extend(gone);
    Ok(())
}

impl Sim {
    pub(in crate::cuda) fn cuStreamBeginCapture(api: StreamApi, hStream: CUstream) -> CuResult {
        begin_on(api, hStream, CU_STREAM_CAPTURE_MODE_GLOBAL, None)
    }

    pub(in crate::cuda) fn cuStreamBeginCapture_v2(
        api: StreamApi,
        hStream: CUstream,
        mode: CUstreamCaptureMode,
    ) -> CuResult {
        begin_on(api, hStream, mode, None)
    }

    pub(in crate::cuda) fn cuStreamBeginCaptureToGraph(
        api: StreamApi,
        hStream: CUstream,
        hGraph: CUgraph,
        dependencies: *const CUgraphNode,
        dependencyData: *const CUgraphEdgeData,
        numDependencies: usize,
        mode: CUstreamCaptureMode,
    ) -> CuResult {
        let next = edges(dependencies, dependencyData, numDependencies)?;
        begin_on(api, hStream, mode, Some((hGraph as u64, next)))
    }

    pub(in crate::cuda) fn cuStreamEndCapture(
        api: StreamApi,
        hStream: CUstream,
        phGraph: *mut CUgraph,
    ) -> CuResult {
        needed(phGraph)?;
        let (_, stream) = entry(api, hStream)?;
        put(phGraph, null_mut())?;
        put(phGraph, end(stream)? as CUgraph)
    }

    pub(in crate::cuda) fn cuStreamIsCapturing(
        api: StreamApi,
        hStream: CUstream,
        status: *mut CUstreamCaptureStatus,
    ) -> CuResult {
        Sim::cuStreamGetCaptureInfo(api, hStream, status, null_mut())
    }

    pub(in crate::cuda) fn cuStreamGetCaptureInfo(
        api: StreamApi,
        hStream: CUstream,
        status: *mut CUstreamCaptureStatus,
        id: *mut cuuint64_t,
    ) -> CuResult {
        Sim::cuStreamGetCaptureInfo_v2(api, hStream, status, id, null_mut(), null_mut(), null_mut())
    }

    pub(in crate::cuda) fn cuStreamGetCaptureInfo_v2(
        api: StreamApi,
        hStream: CUstream,
        status: *mut CUstreamCaptureStatus,
        id: *mut cuuint64_t,
        graph: *mut CUgraph,
        nodes: *mut *const CUgraphNode,
        count: *mut usize,
    ) -> CuResult {
        let asked = Asked {
            status,
            id,
            graph,
            nodes,
            data: null_mut(),
            count,
        };
        info(api, hStream, &asked)
    }

    pub(in crate::cuda) fn cuStreamGetCaptureInfo_v3(
        api: StreamApi,
        hStream: CUstream,
        status: *mut CUstreamCaptureStatus,
        id: *mut cuuint64_t,
        graph: *mut CUgraph,
        nodes: *mut *const CUgraphNode,
        data: *mut *const CUgraphEdgeData,
        count: *mut usize,
    ) -> CuResult {
        let asked = Asked {
            status,
            id,
            graph,
            nodes,
            data,
            count,
        };
        info(api, hStream, &asked)
    }

    pub(in crate::cuda) fn cuStreamUpdateCaptureDependencies(
        api: StreamApi,
        hStream: CUstream,
        dependencies: *mut CUgraphNode,
        numDependencies: usize,
        flags: c_uint,
    ) -> CuResult {
        let stream = entry(api, hStream)?.1;
        let fresh = edges(dependencies, std::ptr::null(), numDependencies)?;
        update(stream, fresh, flags)
    }

    pub(in crate::cuda) fn cuStreamUpdateCaptureDependencies_v2(
        api: StreamApi,
        hStream: CUstream,
        dependencies: *mut CUgraphNode,
        dependencyData: *const CUgraphEdgeData,
        numDependencies: usize,
        flags: c_uint,
    ) -> CuResult {
        let stream = entry(api, hStream)?.1;
        let fresh = edges(dependencies, dependencyData, numDependencies)?;
        update(stream, fresh, flags)
    }
}
