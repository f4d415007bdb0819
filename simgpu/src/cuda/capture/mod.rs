//! Stream capture: what is submitted to a capturing stream becomes nodes of a graph.
//!
//! A sequence begins on one stream, spreads to others that wait for an event recorded in it, and ends where it began. While
//! there is none in the process, everything here costs one load. What a program must not do meanwhile invalidates the
//! sequences that forbid it. Next files of the walk: `api.rs`, `events.rs`, `rules.rs`.

mod api;
mod events;
mod rules;

pub use events::{note_record, note_wait, unobservable};
pub use rules::{context_is_waited_for, refuse, refuse_all, stream_is_waited_for, unsafe_call};

use super::graph::work::Work;
use super::graph::{Edge, Graphs, Home, graphs};
use super::node::next_id;
use super::stream::{LEGACY, NON_BLOCKING, Stream};
use driver::prelude::*;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A stream that takes part.
struct Member {
    stream: &'static Stream,
    /// What its next node comes after.
    next: Vec<Edge>,
    /// The same as the program last asked for it.
    shown: Vec<usize>,
    shown_data: Vec<CUgraphEdgeData>,
}

struct Sequence {
    id: u64,
    graph: u64,
    /// The graph is the program's, who captures into it.
    lent: bool,
    origin: &'static Stream,
    /// The thread that began it.
    thread: u64,
    mode: CUstreamCaptureMode,
    valid: bool,
    members: Vec<Member>,
    /// What streams that took part did last before they were destroyed.
    left: Vec<Edge>,
    /// Nodes the program took out of a dependency set itself: they need not be joined.
    excused: HashSet<u64>,
    /// What events recorded here stand for, by their handles.
    events: HashMap<usize, Vec<Edge>>,
}

static ACTIVE: AtomicUsize = AtomicUsize::new(0);
static SEQUENCES: Mutex<Vec<Sequence>> = Mutex::new(Vec::new());

/// Taken before the list of graphs, never after.
fn sequences() -> MutexGuard<'static, Vec<Sequence>> {
    SEQUENCES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[inline(always)]
fn none() -> bool {
    ACTIVE.load(Ordering::Acquire) == 0
}

thread_local! {
    static ME: u64 = next_id();
}

/// The calling thread; one that is ending is nobody.
fn me() -> u64 {
    ME.try_with(|me| *me).unwrap_or(0)
}

impl Sequence {
    fn member(&mut self, stream: &'static Stream) -> Option<&mut Member> {
        self.members
            .iter_mut()
            .find(|member| std::ptr::eq(member.stream, stream))
    }

    fn join(&mut self, stream: &'static Stream, next: Vec<Edge>) {
        stream.capture.store(self.id, Ordering::Release);
        self.members.push(Member {
            stream,
            next,
            shown: Vec::new(),
            shown_data: Vec::new(),
        });
    }

    /// A new node, after what the stream did last.
    fn add(
        &mut self,
        stream: &'static Stream,
        make: impl FnOnce(&mut Graphs, u64, Vec<Edge>) -> Result<u64, CudaError>,
    ) -> Result<u64, CudaError> {
        let graph = self.graph;
        let member = self.member(stream).ok_or(CudaError::STREAM_CAPTURE_INVALIDATED)?;
        let made = make(&mut graphs(), graph, member.next.clone())?;
        member.next = vec![Edge::plain(made)];
        Ok(made)
    }

    /// Whether a stream took part whose last node nobody waited for on the first stream's behalf.
    fn is_unjoined(&self) -> bool {
        let of = |stream: &Stream| {
            self.members
                .iter()
                .find(|member| std::ptr::eq(member.stream, stream))
        };
        let joined = of(self.origin).map_or_else(HashSet::new, |origin| graphs().ancestors(&origin.next));
        let last = self.members.iter().flat_map(|member| &member.next);
        last.chain(&self.left)
            .any(|edge| !joined.contains(&edge.from) && !self.excused.contains(&edge.from))
    }
}

/// A stream that is capturing.
pub struct Capturing {
    stream: &'static Stream,
    sequence: u64,
}

/// Whether what is submitted to the stream now is captured: by its sequence, or not at all.
///
/// # Errors
/// `STREAM_CAPTURE_INVALIDATED` for a stream of an invalid sequence; `STREAM_CAPTURE_IMPLICIT` for the legacy stream while
/// one that it is in order with is capturing, which invalidates that.
#[inline(always)]
pub fn of(stream: &'static Stream) -> Result<Option<Capturing>, CudaError> {
    if none() { Ok(None) } else { look(stream) }
}

#[cold]
fn look(stream: &'static Stream) -> Result<Option<Capturing>, CudaError> {
    let mut sequences = sequences();
    let id = stream.capture.load(Ordering::Acquire);
    if id != 0 {
        return match sequences.iter().find(|sequence| sequence.id == id) {
            Some(sequence) if sequence.valid => Ok(Some(Capturing { stream, sequence: id })),
            _ => Err(CudaError::STREAM_CAPTURE_INVALIDATED),
        };
    }
    let mut implicit = false;
    for sequence in sequences.iter_mut() {
        if is_implied(sequence, stream) {
            sequence.valid = false;
            implicit = true;
        }
    }
    if implicit {
        Err(CudaError::STREAM_CAPTURE_IMPLICIT)
    } else {
        Ok(None)
    }
}

/// Whether the legacy stream, if this is one, comes after what the sequence captures.
fn is_implied(sequence: &Sequence, stream: &Stream) -> bool {
    stream.flags() & LEGACY != 0
        && sequence.members.iter().any(|member| {
            member.stream.flags() & NON_BLOCKING == 0
                && std::ptr::eq(member.stream.context(), stream.context())
        })
}

impl Capturing {
    fn with<T>(self, act: impl FnOnce(&mut Sequence) -> Result<T, CudaError>) -> Result<T, CudaError> {
        let mut sequences = sequences();
        let sequence = sequences.iter_mut().find(|sequence| sequence.id == self.sequence);
        act(sequence.ok_or(CudaError::STREAM_CAPTURE_INVALIDATED)?)
    }

    /// The call becomes a node.
    pub fn add(self, work: Work) -> CuResult {
        let stream = self.stream;
        self.with(|sequence| sequence.add(stream, |graphs, graph, after| graphs.add(graph, after, work)))
            .map(drop)
    }

    /// The launch of an executable graph becomes a child graph.
    pub fn add_graph(self, ops: &[super::graph::Op], objects: &[(u64, u32)]) -> CuResult {
        let stream = self.stream;
        self.with(|sequence| {
            sequence.add(stream, |graphs, graph, after| {
                graphs.add_ops(graph, after, ops, objects)
            })
        })
        .map(drop)
    }

    /// An allocation becomes a node; returns its address.
    pub fn add_allocation(self, params: &CUDA_MEM_ALLOC_NODE_PARAMS) -> Result<u64, CudaError> {
        let stream = self.stream;
        let mut address = 0;
        self.with(|sequence| {
            sequence.add(stream, |graphs, graph, after| {
                let (made, at) = graphs.add_allocation(graph, after, params)?;
                address = at;
                Ok(made)
            })
        })?;
        Ok(address)
    }

    /// Freeing becomes a node.
    pub fn add_free(self, pointer: u64) -> CuResult {
        let stream = self.stream;
        self.with(|sequence| {
            sequence.add(stream, |graphs, graph, after| {
                graphs.add_free(graph, after, pointer)
            })
        })
        .map(drop)
    }
}

/// Begins a sequence on a stream.
fn begin(stream: &'static Stream, mode: CUstreamCaptureMode, into: Option<(u64, Vec<Edge>)>) -> CuResult {
    let mut sequences = sequences();
    if stream.capture.load(Ordering::Acquire) != 0 {
        return Err(CudaError::ILLEGAL_STATE);
    }
    let lent = into.is_some();
    let id = next_id();
    let (graph, next) = match into {
        Some((graph, next)) => {
            graphs().check_edges(graph, &next)?;
            (graph, next)
        }
        None => (graphs().create(Home::Capture(id)), Vec::new()),
    };
    let mut sequence = Sequence {
        id,
        graph,
        lent,
        origin: stream,
        thread: me(),
        mode,
        valid: true,
        members: Vec::new(),
        left: Vec::new(),
        excused: HashSet::new(),
        events: HashMap::new(),
    };
    sequence.join(stream, next);
    sequences.push(sequence);
    ACTIVE.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

/// Takes a sequence out: its streams are free again.
fn close(sequences: &mut Vec<Sequence>, id: u64) -> Option<Sequence> {
    let at = sequences.iter().position(|sequence| sequence.id == id)?;
    let sequence = sequences.remove(at);
    for member in &sequence.members {
        member.stream.capture.store(0, Ordering::Release);
    }
    ACTIVE.fetch_sub(1, Ordering::AcqRel);
    Some(sequence)
}

/// Ends the sequence that began on this stream.
///
/// # Errors
/// As `cuStreamEndCapture`; the sequence is over but for `ILLEGAL_STATE`, `…_UNMATCHED` and `…_WRONG_THREAD`.
fn end(stream: &'static Stream) -> Result<u64, CudaError> {
    let mut sequences = sequences();
    let id = stream.capture.load(Ordering::Acquire);
    let sequence = sequences.iter_mut().find(|sequence| sequence.id == id);
    let sequence = sequence.ok_or(CudaError::ILLEGAL_STATE)?;
    if !std::ptr::eq(sequence.origin, stream) {
        sequence.valid = false;
        return Err(CudaError::STREAM_CAPTURE_UNMATCHED);
    }
    if sequence.mode != CU_STREAM_CAPTURE_MODE_RELAXED && sequence.thread != me() {
        return Err(CudaError::STREAM_CAPTURE_WRONG_THREAD);
    }
    let ended = close(&mut sequences, id).ok_or(CudaError::ILLEGAL_STATE)?;
    drop(sequences);
    let failed = if !ended.valid {
        Some(CudaError::STREAM_CAPTURE_INVALIDATED)
    } else if ended.is_unjoined() {
        Some(CudaError::STREAM_CAPTURE_UNJOINED)
    } else {
        None
    };
    match failed {
        Some(error) => {
            if !ended.lent {
                graphs().end(ended.graph);
            }
            Err(error)
        }
        None => {
            if !ended.lent {
                graphs().get_mut(ended.graph)?.home = Home::Program;
            }
            Ok(ended.graph)
        }
    }
}

/// A stream is going away: the sequence it began ends with it; one it only took part in goes on, and must be joined as before.
pub fn forget(stream: &'static Stream) {
    let id = stream.capture.load(Ordering::Acquire);
    if id == 0 {
        return;
    }
    let mut sequences = sequences();
    let Some(sequence) = sequences.iter_mut().find(|sequence| sequence.id == id) else {
        return;
    };
    if !std::ptr::eq(sequence.origin, stream) {
        if let Some(at) = sequence
            .members
            .iter()
            .position(|member| std::ptr::eq(member.stream, stream))
        {
            let gone = sequence.members.remove(at);
            sequence.left.extend(gone.next);
        }
        stream.capture.store(0, Ordering::Release);
        return;
    }
    let ended = close(&mut sequences, id);
    drop(sequences);
    if let Some(ended) = ended.filter(|ended| !ended.lent) {
        graphs().end(ended.graph);
    }
}
