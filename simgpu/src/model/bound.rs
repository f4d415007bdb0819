//! Lower bounds of completion times: what the server sleeps by.
//!
//! Too early costs an extra wake-up, too late would be a bug. No step of a bound costs more than the
//! number of kernels running on one device. Next file of the walk: `server/sleep.rs`.

use super::device::{Device, Form};
use super::{Head, Lane, Model, NEVER, Ns};

impl Model {
    /// A lower bound of the time at which operation `seq` of the stream completes; `NEVER` if nothing
    /// is pending or only the client's own report can go on.
    pub fn bound(&self, lane: Lane, seq: u64) -> Ns {
        let Some(stream) = self.stream(lane) else {
            return NEVER;
        };
        let (Some(front), Some(back)) = (stream.queue.front(), stream.queue.back()) else {
            return NEVER;
        };
        if self.breaking > 0 {
            // The whole queue may end with somebody else's kernel.
            return self.next();
        }
        let device = &self.devices[stream.home.device];
        let head_done = match stream.head {
            Head::Host => return NEVER,
            // Something else must happen first, anywhere.
            Head::Awaiting | Head::Stalled => return self.next(),
            Head::Idle => 0,
            Head::Running => {
                let run = device.run(lane);
                if run.is_some_and(|r| matches!(r.form, Form::Party(_))) {
                    // What happens elsewhere sets it going.
                    let left = run.map_or(0, |r| if r.rate > 0 { r.left_ns() } else { 0 });
                    return self.next().max(device.now + left.min(front.op.kind.work()));
                }
                run.map_or(0, |r| front.op.kind.work().saturating_sub(r.left_ns()))
            }
            Head::Copying => {
                let busy = device.engines.iter().filter_map(|e| e.busy.as_ref());
                let busy = busy.into_iter().find(|busy| busy.lane == lane);
                busy.map_or(0, |busy| front.op.kind.work().saturating_sub(busy.left_ns()))
            }
        };
        if seq < front.op.seq {
            return device.now;
        }
        // Sequence numbers have no gaps: the target is found by its place.
        let target = stream.queue.get((seq - front.op.seq) as usize).unwrap_or(back);
        let left = target.work - stream.work_out;
        let from = if stream.head == Head::Running {
            self.turn(lane.client, device)
        } else {
            device.now
        };
        // A party that waits is set going from elsewhere, and what is behind it with it.
        let first = match self.groups.iter().any(Option::is_some) {
            true => self.next(),
            false => device.next,
        };
        from.saturating_add(left.saturating_sub(head_done)).max(first)
    }

    /// True when operation `seq` of the stream has been submitted and is complete.
    pub fn is_complete(&self, lane: Lane, seq: u64) -> bool {
        let Some(stream) = self.stream(lane) else {
            return false;
        };
        seq <= stream.newest && stream.queue.front().is_none_or(|front| seq < front.op.seq)
    }

    /// When a context of the client can hold the device at the earliest.
    fn turn(&self, client: usize, device: &Device) -> Ns {
        let Some(resident) = device.resident.filter(|r| r.client != client) else {
            return device.now;
        };
        // It may run dry before its slice ends, but not before all its running streams do.
        let left = device.runs.iter().filter(|r| r.owner == resident).map(|r| {
            let Some(stream) = self.stream(r.lane) else {
                return 0;
            };
            let head = stream.queue.front().map_or(0, |f| f.op.kind.work());
            (stream.work_in - stream.work_out).saturating_sub(head.saturating_sub(r.left_ns()))
        });
        device.turn_bound(left.max().unwrap_or(0))
    }
}
