//! Events inside a capture: recorded there, they stand for nodes; waited for, they spread the capture to another stream.

use super::{Edge, Sequence, is_implied, none, of, sequences};
use crate::cuda::event::Event;
use crate::cuda::graph::work::{Given, Work};
use crate::cuda::stream::Stream;
use driver::prelude::*;
use std::sync::atomic::Ordering;

/// `CU_EVENT_RECORD_EXTERNAL` and `CU_EVENT_WAIT_EXTERNAL`: the event is for others, and becomes a node.
const EXTERNAL: u32 = 1;

fn key(event: &'static Event) -> usize {
    event.handle() as usize
}

/// A record: true where a capture took it.
pub fn note_record(event: &'static Event, stream: &'static Stream, flags: u32) -> Result<bool, CudaError> {
    let Some(capturing) = of(stream)? else {
        return Ok(false);
    };
    if event.shared().is_some() {
        return Err(super::refuse(stream));
    }
    if flags == EXTERNAL {
        capturing.add(Work::Record(Given(event.handle())))?;
        return Ok(true);
    }
    capturing.with(|sequence| {
        let id = sequence.id;
        let next = sequence.member(stream).map(|member| member.next.clone());
        sequence.events.insert(key(event), next.unwrap_or_default());
        event.captured.store(id, Ordering::Release);
        Ok(true)
    })
}

/// A wait: true where a capture took it.
pub fn note_wait(stream: &'static Stream, event: &'static Event, flags: u32) -> Result<bool, CudaError> {
    let recorded = event.captured.load(Ordering::Acquire);
    if recorded == 0 && none() {
        return Ok(false);
    }
    let own = stream.capture.load(Ordering::Acquire);
    match of(stream)? {
        Some(capturing) if flags == EXTERNAL => {
            capturing.add(Work::Wait(Given(event.handle())))?;
            Ok(true)
        }
        None if recorded == 0 => Ok(false),
        _ => spread(stream, event, own, recorded).map(|()| true),
    }
}

fn spread(stream: &'static Stream, event: &'static Event, own: u64, recorded: u64) -> CuResult {
    let mut sequences = sequences();
    let place = |id: u64| sequences.iter().position(|sequence| id != 0 && sequence.id == id);
    match (place(own), place(recorded)) {
        // An event of a capture that is over stands for nothing outside of it.
        (None, None) => Err(CudaError::CAPTURED_EVENT),
        (Some(own), None) => fail(&mut sequences[own], CudaError::STREAM_CAPTURE_ISOLATION),
        (Some(own), Some(other)) if own != other => {
            sequences[own].valid = false;
            fail(&mut sequences[other], CudaError::STREAM_CAPTURE_MERGE)
        }
        (None, Some(into)) if is_implied(&sequences[into], stream) => {
            fail(&mut sequences[into], CudaError::STREAM_CAPTURE_IMPLICIT)
        }
        (_, Some(into)) => {
            let sequence = &mut sequences[into];
            if !sequence.valid {
                return Err(CudaError::STREAM_CAPTURE_INVALIDATED);
            }
            if stream.is_legacy() {
                return fail(sequence, CudaError::STREAM_CAPTURE_UNSUPPORTED);
            }
            let after = sequence.events.get(&key(event)).cloned().unwrap_or_default();
            match sequence.member(stream) {
                Some(member) => merge(&mut member.next, after),
                None => sequence.join(stream, after),
            }
            Ok(())
        }
    }
}

fn fail(sequence: &mut Sequence, error: CudaError) -> CuResult {
    sequence.valid = false;
    Err(error)
}

/// Adds dependencies that are not there yet.
pub(super) fn merge(next: &mut Vec<Edge>, more: Vec<Edge>) {
    for edge in more {
        if !next.iter().any(|known| known.from == edge.from) {
            next.push(edge);
        }
    }
}

/// The program asks whether an event has come, or when.
///
/// # Errors
/// `CAPTURED_EVENT` for one that was last recorded in a capture, which that invalidates; as [`super::unsafe_call`].
pub fn unobservable(event: &'static Event) -> CuResult {
    let recorded = event.captured.load(Ordering::Acquire);
    if recorded != 0 {
        for sequence in sequences().iter_mut().filter(|sequence| sequence.id == recorded) {
            sequence.valid = false;
        }
        return Err(CudaError::CAPTURED_EVENT);
    }
    super::unsafe_call()
}
