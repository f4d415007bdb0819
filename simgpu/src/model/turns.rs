//! Whose turn it is on a device: contexts in slices, round robin, never idle while one has work.
//!
//! Next file of the walk: `model/hand_out.rs`.

use super::device::{Device, Owner, Terms};
use super::op::{NEVER, Ns, Sharing};

impl Device {
    /// Decides residency at the device's present. Returns the context that became resident, if one did.
    pub fn take_turns(&mut self, terms: impl Fn(usize) -> Terms) -> Option<Owner> {
        let Sharing::Sliced { switch, .. } = self.config.sharing else {
            return None;
        };
        // Contexts whose kernels are all done leave their turn; new ones line up.
        let (runs, resident) = (&self.runs, self.resident);
        self.turns
            .retain(|&owner| Some(owner) != resident && runs.iter().any(|r| r.owner == owner));
        for run in &self.runs {
            if Some(run.owner) != self.resident && !self.turns.contains(&run.owner) {
                self.turns.push_back(run.owner);
            }
        }
        if self.switching.is_some() {
            return None;
        }
        let Some(&to) = self.turns.front() else {
            self.slice_end = NEVER;
            return None;
        };
        if let Some(resident) = self.resident
            && self.runs.iter().any(|r| r.owner == resident)
        {
            if self.slice_end == NEVER {
                // Company arrived: the current slice runs out on its own grid.
                let slice = self.slice_of(terms(resident.client));
                let slices = (self.now - self.slice_start).div_ceil(slice).max(1);
                self.slice_end = self.slice_start + slices * slice;
            }
            if self.now < self.slice_end {
                return None;
            }
            self.turns.push_back(resident);
        }
        self.turns.pop_front();
        self.resident = None;
        self.slice_end = NEVER;
        if self.last.is_none() || self.last == Some(to) || switch == 0 {
            self.enter(to, terms(to.client));
            return Some(to);
        }
        self.switching = Some((to, self.now + switch));
        // Not lost if it has run dry meanwhile: it enters and gives way.
        None
    }

    fn slice_of(&self, terms: Terms) -> Ns {
        match (terms.slice, self.config.sharing) {
            (Some(own), _) => own.max(1),
            (None, Sharing::Sliced { slice, .. }) => slice.max(1),
            (None, Sharing::Together { .. }) => NEVER,
        }
    }

    /// Makes `owner` resident now.
    pub fn enter(&mut self, owner: Owner, terms: Terms) {
        self.turns.retain(|&other| other != owner);
        self.resident = Some(owner);
        self.last = Some(owner);
        self.slice_start = self.now;
        self.slice_end = match self.turns.is_empty() {
            true => NEVER,
            false => self.now.saturating_add(self.slice_of(terms)),
        };
    }

    /// A lower bound of when a context that is not resident gets its turn.
    pub fn turn_bound(&self, work_left_of_resident: Ns) -> Ns {
        let Sharing::Sliced { switch, .. } = self.config.sharing else {
            return self.now;
        };
        if self.slice_end == NEVER {
            return self.now;
        }
        self.slice_end.min(self.now.saturating_add(work_left_of_resident)) + switch
    }
}
