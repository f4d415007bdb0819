//! Who is this process, and which tenant does it belong to? `attach.rs` and `admin.rs` hold the conversations, `process.rs`
//! asks the kernel, `identity.rs` decides.

pub mod admin;
pub mod attach;
pub mod identity;
pub mod process;
pub mod users;
