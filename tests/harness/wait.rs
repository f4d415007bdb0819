//! Waiting for what nothing announces: asks again until it holds, the watchdog fails the test.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::outcome::WATCHDOG;

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Asks `condition` until it answers with something; `what` names it when the watchdog gives up.
#[track_caller]
pub fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = condition() {
            return answer;
        }
        assert!(start.elapsed() < WATCHDOG, "never came true: {what}");
        thread::sleep(PAUSE);
    }
}
