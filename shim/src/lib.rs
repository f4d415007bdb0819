//! The preloaded shim: `libcuda.so.1` to the loader, the real driver to the program, and in between the one place where a
//! program's device memory is charged to its account before the driver hands it out.
//!
//! It is silent: no output, no signal handler, no exit handler, no variable changed, no thread, no descriptor kept, and no
//! lock held over a driver call. A name it does not know goes on to the driver untouched; a fault of its own does too.
//!
//! The walk of one allocation: `exports.rs` → `guard.rs` → `attach/` (once) → `hooks/memory.rs` → `books.rs` → `charge.rs` →
//! `ledger/src/client.rs`. How a program comes here at all: `dl.rs` and `hooks/proc_address.rs`.

mod array_cost;
mod attach;
mod books;
mod charge;
mod contexts;
mod deferred;
pub mod dl;
pub mod exports;
mod forward;
mod guard;
mod hooks;
mod live;
mod lock;
mod lookup;
mod names;
mod physical;
mod pools;
mod process;
mod real;
mod recycler;
mod relaxed;
mod scope;
mod steps;
#[cfg(test)]
mod tests;
mod twin;

driver::mark_as_ours!();
