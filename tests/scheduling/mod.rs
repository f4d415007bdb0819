//! The scheduler in a node of virtual time (`tests/scheduling/model/mod.rs`): `seeds` plays runs in which everything holds, `faults`
//! shows that the judge notices a broken scheduler.

mod faults;
mod model;
mod seeds;
