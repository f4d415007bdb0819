//! What a gang asks of each of its devices: whether it comes first there, and whether somebody waits for it to leave. Read next:
//! `src/scheduler/open.rs`.

use super::Settings;
use super::device::Device;
use super::seat::Seat;

impl Device {
    /// Whether the gang's seat at `place` comes before the holder of this device and all single accounts that wait. Other
    /// gangs are no obstacle: they are asked in their own turn.
    pub fn comes_first(&self, place: usize, settings: &Settings, now: u64) -> bool {
        let Some(seat) = self.seat(place) else {
            return false;
        };
        if seat.rank > 0 && self.high_wants() > 0 {
            return false;
        }
        let holder = self.rest.holder().and_then(|holder| self.seat(holder));
        let over_holder = holder
            .is_none_or(|holder| !holder.ganged && (self.precedes_strictly(seat, holder) || !holder.wants));
        let single = self.best(settings, now, |_, other| !other.ganged && !other.stands_open());
        let over_waiting = single
            .and_then(|other| self.seat(other))
            .is_none_or(|other| self.precedes(seat, other));
        over_holder && over_waiting
    }

    /// How long the holder's work in flight goes on, as predicted.
    pub fn drain_ns(&self, now: u64) -> u64 {
        let holder = self.rest.holder().and_then(|holder| self.seat(holder));
        holder.map_or(0, |holder| {
            let running = now.saturating_sub(holder.seen.moved_at_ns);
            holder.seen.in_flight_ns().saturating_sub(running)
        })
    }

    /// Whether somebody of a better rank than the gang's seat at `place` wants this device.
    pub fn outranked(&self, place: usize, settings: &Settings, now: u64) -> bool {
        let Some(seat) = self.seat(place) else {
            return false;
        };
        let better = self.best(settings, now, |_, other| !other.ganged && other.rank < seat.rank);
        better.is_some() || seat.rank > 0 && self.high_wants() > 0
    }

    /// Waiting does not count against one that holds the device.
    fn precedes_strictly(&self, seat: &Seat, holder: &Seat) -> bool {
        seat.rank < holder.rank || seat.rank == holder.rank && seat.virtual_ns < holder.virtual_ns
    }

    /// Whether the gang's seat at `place`, which holds this device, should leave it to somebody.
    pub fn challenged(&self, place: usize, settings: &Settings, now: u64) -> bool {
        let (Some(seat), Some(lease)) = (self.seat(place), self.rest.lease.as_ref()) else {
            return false;
        };
        let used_up = lease.used_up(seat, settings);
        // Let in before others for what it missed, it goes when it had that.
        let turn_over = used_up && lease.first();
        if self.high_wants() > 0 && (seat.rank > 0 || turn_over) {
            return true;
        }
        let next = self.best(settings, now, |other, _| other != place);
        next.and_then(|next| self.seat(next)).is_some_and(|next| {
            let by_turn = used_up && next.rank == seat.rank && self.precedes(next, seat);
            next.rank < seat.rank || turn_over || by_turn
        })
    }

    /// Whether anybody but the seat at `place` waits for this device.
    pub fn anyone_else(&self, place: usize, settings: &Settings, now: u64) -> bool {
        self.best(settings, now, |other, _| other != place).is_some()
    }
}
