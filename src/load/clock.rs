//! Time and truth of `stint load`. Everything it is given and tells is device time: the host's clock divided by the
//! stand-in's time scale, which is 1 on a GPU.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::artefacts::Artefacts;
use crate::sim::Truth;

/// Device time since it was started.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started: Instant,
    scale: u32,
}

impl Clock {
    /// Starts now. `scale`: host seconds per device second, at least 1.
    pub fn start(scale: u32) -> Clock {
        Clock {
            started: Instant::now(),
            scale: scale.max(1),
        }
    }

    pub fn now(&self) -> Duration {
        self.started.elapsed() / self.scale
    }

    /// Sleeps until device time `at`; returns at once if that has passed.
    pub fn sleep_until(&self, at: Duration) {
        if let Some(left) = at.checked_sub(self.now()) {
            std::thread::sleep(left * self.scale);
        }
    }
}

/// What the stand-in knows of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Own {
    pub time_scale: u32,
    pub busy_ns: u64,
}

/// `None` on a GPU: then no stand-in node knows this process, which has a context.
pub fn own_truth() -> Option<Own> {
    if !driver::run_dir::of_sim()
        .join(driver::run_dir::SIM_SOCKET)
        .exists()
    {
        return None; // asking would be all right, but there is nobody to ask
    }
    let truth = Truth::read(&Artefacts::find().ok()?, None).ok()?;
    let me = BTreeSet::from([std::process::id()]);
    let rows: Vec<u64> = truth
        .of(&me)
        .filter(|row| !row.exited)
        .map(|row| row.busy_ns)
        .collect();
    (!rows.is_empty()).then(|| Own {
        time_scale: truth.time_scale,
        busy_ns: rows.iter().sum(),
    })
}
