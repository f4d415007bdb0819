//! Who is this process, and which tenant does it belong to?

pub mod identity;
pub mod process;
