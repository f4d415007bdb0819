//! Devices whose accounts work at the same moment: under MPS nobody waits for a lease, but one that is ahead waits for the
//! others. Read next: `src/scheduler/why.rs`.

use super::device::Device;
use super::seat::Seat;
use super::timer::Timer;
use super::{FOREVER, Gate, Settings};

impl Device {
    /// All gates open, but for those that used more than their share or are outranked.
    pub fn open_together(&mut self, settings: &Settings, now: u64, timer: &mut Timer) {
        let at_work = || {
            let seats = self.seats().map(|(_, seat)| seat);
            seats.filter(|seat| seat.active)
        };
        // Beside one that misses of its share, all wait that have more than theirs.
        let missed = at_work().any(|seat| seat.rank == 0);
        let rank = at_work().map(|seat| seat.rank).filter(|rank| *rank > 0).min();
        // One that its own host work holds back is behind for no fault of the others.
        let presses = |seat: &Seat| {
            let seen = &seat.seen;
            seen.waiting_since_ns.is_some() || 4 * seen.in_flight_ns() >= settings.window_ns
        };
        let first = at_work().filter(|seat| Some(seat.rank) == rank && presses(seat));
        let least = first.map(|seat| seat.virtual_ns).fold(f64::INFINITY, f64::min);
        // Nobody rings before an open gate.
        match (at_work().count(), self.seats().count()) {
            (2.., _) => timer.after(settings.look_ns, now),
            (_, 2..) => timer.after(settings.silent_ns, now),
            _ => {}
        }
        for seat in self.seats.iter_mut().flatten() {
            let ahead = (seat.virtual_ns - least) * seat.share;
            let open = seat.word.gate == Gate::Open;
            let bound = settings.preempt_ns as f64 * if open { 1.0 } else { 0.8 };
            let sated = missed && seat.missing_ns <= 0.0;
            let outranked =
                seat.rank > 0 && (sated || seat.wants && rank.is_some_and(|rank| rank < seat.rank));
            let ahead = seat.rank > 0 && least.is_finite() && ahead > bound;
            if seat.throttled() || seat.paused || outranked || ahead {
                seat.close();
            } else if open && seat.word.yields == (seat.rank > 0) {
                seat.extend(FOREVER, settings);
            } else {
                seat.open(FOREVER, seat.rank > 0);
            }
        }
    }

    /// One account at a time: who has work keeps the device until it has left it.
    pub fn open_one(&mut self, settings: &Settings, now: u64) {
        let open = self
            .seats()
            .find(|(_, seat)| seat.word.gate == Gate::Open)
            .map(|(place, _)| place);
        let longest = self.best(settings, now, |_, _| true);
        let Some(place) = open.or(longest) else {
            return;
        };
        if let Some(seat) = self.seat_mut(place) {
            if open.is_none() {
                seat.open(FOREVER, false);
            } else {
                seat.extend(FOREVER, settings);
            }
        }
    }
}
