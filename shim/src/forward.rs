//! Functions about which nothing is decided: one naked stub per symbol, four instructions on top of the call. Arguments
//! stay where they are, so no prototype is needed and none can be wrong.
//!
//! Next: `guard.rs`, through which the decided ones go.

use core::ffi::c_void;
use std::panic::catch_unwind;

use driver::CudaError;
use driver::table::ALL_SYMBOLS;

use crate::real;

/// The body of a stub: jumps to the driver's function of the symbol, which is looked up on the first call of any.
macro_rules! forward {
    ($symbol:ident) => {
        core::arch::naked_asm!(
            "mov r11, qword ptr [rip + {driver} + {offset}]",
            "test r11, r11",
            "jz 2f",
            "jmp r11",
            "2:",
            "mov r11d, {index}",
            "jmp {resolve}",
            driver = sym $crate::real::DRIVER,
            offset = const 8 * driver::table::SymbolId::$symbol as usize,
            index = const driver::table::SymbolId::$symbol as usize,
            resolve = sym $crate::forward::resolve,
        )
    };
}
pub(crate) use forward;

/// Saves what may hold arguments (none of CUDA's functions takes more than four floating-point ones), finds the function
/// whose index is in `r11`, and jumps to it.
#[unsafe(naked)]
pub unsafe extern "C" fn resolve() {
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "sub rsp, 72",
        "movups xmmword ptr [rsp], xmm0",
        "movups xmmword ptr [rsp + 16], xmm1",
        "movups xmmword ptr [rsp + 32], xmm2",
        "movups xmmword ptr [rsp + 48], xmm3",
        "mov edi, r11d",
        "call {address}",
        "mov r11, rax",
        "movups xmm0, xmmword ptr [rsp]",
        "movups xmm1, xmmword ptr [rsp + 16]",
        "movups xmm2, xmmword ptr [rsp + 32]",
        "movups xmm3, xmmword ptr [rsp + 48]",
        "add rsp, 72",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp r11",
        address = sym address,
    )
}

extern "C" fn address(index: usize) -> *const c_void {
    let found = catch_unwind(|| match real::driver() {
        Some(driver) => driver.address(ALL_SYMBOLS[index]).cast_const(),
        None => absent as *const c_void,
    });
    match found {
        Ok(found) if !found.is_null() => found,
        _ => missing as *const c_void,
    }
}

/// In place of a function the driver lacks. Only a program linked against a newer driver gets here: lookups say NULL.
extern "C" fn missing() -> u32 {
    CudaError::NOT_FOUND.code()
}

/// In place of every function where there is no driver: what the toolkit's own stub library says.
extern "C" fn absent() -> u32 {
    CudaError::STUB_LIBRARY.code()
}
