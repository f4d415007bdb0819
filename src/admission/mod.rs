//! Who is this process, and which tenant does it belong to? `attach.rs` and `admin.rs` hold the conversations, `process.rs`,
//! `namespace.rs`, `container.rs` and `users.rs` ask kernel and host, `matching.rs` and `identity.rs` decide,
//! the latter with `launches.rs`; `orphan.rs` tells who is left over.

pub mod admin;
pub mod attach;
pub mod container;
pub mod identity;
pub mod launches;
pub mod matching;
pub mod namespace;
pub mod orphan;
pub mod process;
pub mod users;
