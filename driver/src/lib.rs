//! (filled in the next commits)
