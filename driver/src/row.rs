//! What a row of `table.rs` says about a function, and its C text for the header oracle.

use crate::table::RowId;

/// What a function is, for the shim's policy and for the tests that nothing was forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Takes device or pinned memory, or makes memory reachable in another way.
    Alloc,
    /// Gives it back.
    Free,
    /// Puts work on a device.
    Work,
    /// Waits for work.
    Sync,
    /// Only answers.
    Query,
    /// Begins or ends stream capture.
    Capture,
    /// None of these.
    Other,
}

/// Which default stream the NULL handle means for a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamApi {
    /// The context's legacy default stream.
    Legacy,
    /// The calling thread's own default stream (`_ptsz`, `_ptds`).
    PerThread,
}

/// One function.
#[derive(Debug)]
pub struct Row {
    /// Its first symbol; unique.
    pub name: &'static str,
    /// The name without suffix that `cuGetProcAddress` is asked for.
    pub base: &'static str,
    pub class: Class,
    /// The shim's hook as `module::function`, or `forward`.
    pub handler: &'static str,
    /// (argument, Rust type).
    pub arguments: &'static [(&'static str, &'static str)],
}

/// One exported symbol.
#[derive(Debug)]
pub struct Symbol {
    pub name: &'static str,
    /// The first driver version that has it, as `cuDriverGetVersion` counts (12090 = 12.9).
    pub version: i32,
    pub stream_api: StreamApi,
    pub row: RowId,
}

impl Row {
    /// The argument list in C, made from the Rust types: `CUdeviceptr *, size_t`.
    pub fn c_arguments(&self) -> String {
        if self.arguments.is_empty() {
            return "void".into();
        }
        self.arguments
            .iter()
            .map(|(_, kind)| c_type(kind))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// `* mut CUdeviceptr` as `CUdeviceptr *`.
fn c_type(rust: &str) -> String {
    let rust = rust.trim();
    let Some(pointer) = rust.strip_prefix('*') else {
        return match rust {
            "c_char" => "char",
            "c_uchar" => "unsigned char",
            "c_ushort" => "unsigned short",
            "c_int" => "int",
            "c_uint" => "unsigned int",
            "c_ulonglong" => "unsigned long long",
            "c_void" => "void",
            "usize" => "size_t",
            "f32" => "float",
            other => other,
        }
        .into();
    };
    let pointer = pointer.trim_start();
    let (constant, target) = match (pointer.strip_prefix("const "), pointer.strip_prefix("mut ")) {
        (Some(target), _) => (true, target),
        (_, Some(target)) => (false, target),
        _ => (false, pointer),
    };
    let target = c_type(target);
    match (constant, target.ends_with('*')) {
        (false, _) => format!("{target} *"),
        (true, false) => format!("const {target} *"),
        (true, true) => format!("{target} const *"),
    }
}
