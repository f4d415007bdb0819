//! Launches are counted and nothing else: one addition to a counter in the client's slot, from which the daemon tells who
//! works and who is idle. Seven instructions on top of the call, no branch that is taken, no clock, no lock.
//!
//! Before the process attached, and in a forked child of one that had, the counter is a private dummy: the offset to the real
//! one lies in the page that the kernel wipes in children (`process.rs`). A process that works on several devices counts all
//! its launches in the account of the first on which it made a context.

/// The body of a stub: counts, then forwards as `forward.rs` does.
macro_rules! count {
    ($symbol:ident) => {
        core::arch::naked_asm!(
            "lea r11, [rip + {uncounted}]",
            "add r11, qword ptr [rip + {offset_to_counter}]",
            "lock inc qword ptr [r11]",
            "mov r11, qword ptr [rip + {driver} + {offset}]",
            "test r11, r11",
            "jz 2f",
            "jmp r11",
            "2:",
            "mov r11d, {index}",
            "jmp {resolve}",
            uncounted = sym $crate::process::UNCOUNTED,
            offset_to_counter = sym $crate::process::PROCESS,
            driver = sym $crate::real::DRIVER,
            offset = const 8 * driver::table::SymbolId::$symbol as usize,
            index = const driver::table::SymbolId::$symbol as usize,
            resolve = sym $crate::forward::resolve,
        )
    };
}
pub(crate) use count;
