//! The quota file: parsed once into something that cannot be wrong.

pub mod units;
