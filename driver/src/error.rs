//! Status codes of the driver API.
//!
//! Rust enums over foreign codes are undefined behaviour for a code a newer driver adds, so a code is a
//! number here and the names are constants.

use core::fmt;
use core::num::NonZeroU32;

/// What a driver function returns. `Ok(())` is bit for bit `CUDA_SUCCESS` (0), so `?` works across the
/// C boundary.
pub type CuResult = Result<(), CudaError>;

/// A `CUresult` other than `CUDA_SUCCESS`. Any code is representable, also those nobody knew when this
/// was compiled.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CudaError(NonZeroU32);

const _: () = assert!(size_of::<CuResult>() == 4);

impl CudaError {
    /// The error with this code; `None` for 0, which is success.
    pub const fn new(code: u32) -> Option<CudaError> {
        match NonZeroU32::new(code) {
            Some(code) => Some(CudaError(code)),
            None => None,
        }
    }

    /// A raw `CUresult` as a [`CuResult`].
    pub const fn check(code: u32) -> CuResult {
        match CudaError::new(code) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// The code as the driver numbers it.
    pub const fn code(self) -> u32 {
        self.0.get()
    }

    /// Whether a context that showed this error shows it at every later call: its memory and work are in an unknown state.
    pub fn stays(self) -> bool {
        matches!(
            self,
            CudaError::ECC_UNCORRECTABLE
                | CudaError::NVLINK_UNCORRECTABLE
                | CudaError::CONTAINED
                | CudaError::ILLEGAL_ADDRESS
                | CudaError::LAUNCH_TIMEOUT
                | CudaError::ASSERT
                | CudaError::HARDWARE_STACK_ERROR
                | CudaError::ILLEGAL_INSTRUCTION
                | CudaError::MISALIGNED_ADDRESS
                | CudaError::INVALID_ADDRESS_SPACE
                | CudaError::INVALID_PC
                | CudaError::LAUNCH_FAILED
                | CudaError::EXTERNAL_DEVICE
                | CudaError::MPS_CLIENT_TERMINATED
                | CudaError::UNKNOWN
        )
    }

    /// `CUDA_ERROR_OUT_OF_MEMORY` and so on; `None` for a code this build does not know.
    pub fn name(self) -> Option<&'static str> {
        NAMES
            .iter()
            .find(|(code, _)| *code == self.code())
            .map(|(_, name)| *name)
    }
}

impl fmt::Debug for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.code()),
            None => write!(f, "CUresult {}", self.code()),
        }
    }
}

impl fmt::Display for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl std::error::Error for CudaError {}

macro_rules! codes {
    ($($name:ident = $code:literal, $c:literal;)*) => {
        impl CudaError {
            $(#[doc = concat!("`", $c, "` (", $code, ")")] pub const $name: CudaError = CudaError(NonZeroU32::new($code).expect("not zero"));)*
        }
        /// Every code of cuda.h 13.5 with its C name.
        pub const NAMES: &[(u32, &str)] = &[$(($code, $c),)*];
    };
}

codes! {
    INVALID_VALUE = 1, "CUDA_ERROR_INVALID_VALUE";
    OUT_OF_MEMORY = 2, "CUDA_ERROR_OUT_OF_MEMORY";
    NOT_INITIALIZED = 3, "CUDA_ERROR_NOT_INITIALIZED";
    DEINITIALIZED = 4, "CUDA_ERROR_DEINITIALIZED";
    PROFILER_DISABLED = 5, "CUDA_ERROR_PROFILER_DISABLED";
    PROFILER_NOT_INITIALIZED = 6, "CUDA_ERROR_PROFILER_NOT_INITIALIZED";
    PROFILER_ALREADY_STARTED = 7, "CUDA_ERROR_PROFILER_ALREADY_STARTED";
    PROFILER_ALREADY_STOPPED = 8, "CUDA_ERROR_PROFILER_ALREADY_STOPPED";
    STUB_LIBRARY = 34, "CUDA_ERROR_STUB_LIBRARY";
    CALL_REQUIRES_NEWER_DRIVER = 36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER";
    DEVICE_UNAVAILABLE = 46, "CUDA_ERROR_DEVICE_UNAVAILABLE";
    MULTICAST_RESOURCE_FULL = 47, "CUDA_ERROR_MULTICAST_RESOURCE_FULL";
    NO_DEVICE = 100, "CUDA_ERROR_NO_DEVICE";
    INVALID_DEVICE = 101, "CUDA_ERROR_INVALID_DEVICE";
    DEVICE_NOT_LICENSED = 102, "CUDA_ERROR_DEVICE_NOT_LICENSED";
    INVALID_IMAGE = 200, "CUDA_ERROR_INVALID_IMAGE";
    INVALID_CONTEXT = 201, "CUDA_ERROR_INVALID_CONTEXT";
    CONTEXT_ALREADY_CURRENT = 202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT";
    MAP_FAILED = 205, "CUDA_ERROR_MAP_FAILED";
    UNMAP_FAILED = 206, "CUDA_ERROR_UNMAP_FAILED";
    ARRAY_IS_MAPPED = 207, "CUDA_ERROR_ARRAY_IS_MAPPED";
    ALREADY_MAPPED = 208, "CUDA_ERROR_ALREADY_MAPPED";
    NO_BINARY_FOR_GPU = 209, "CUDA_ERROR_NO_BINARY_FOR_GPU";
    ALREADY_ACQUIRED = 210, "CUDA_ERROR_ALREADY_ACQUIRED";
    NOT_MAPPED = 211, "CUDA_ERROR_NOT_MAPPED";
    NOT_MAPPED_AS_ARRAY = 212, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY";
    NOT_MAPPED_AS_POINTER = 213, "CUDA_ERROR_NOT_MAPPED_AS_POINTER";
    ECC_UNCORRECTABLE = 214, "CUDA_ERROR_ECC_UNCORRECTABLE";
    UNSUPPORTED_LIMIT = 215, "CUDA_ERROR_UNSUPPORTED_LIMIT";
    CONTEXT_ALREADY_IN_USE = 216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE";
    PEER_ACCESS_UNSUPPORTED = 217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED";
    INVALID_PTX = 218, "CUDA_ERROR_INVALID_PTX";
    INVALID_GRAPHICS_CONTEXT = 219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT";
    NVLINK_UNCORRECTABLE = 220, "CUDA_ERROR_NVLINK_UNCORRECTABLE";
    JIT_COMPILER_NOT_FOUND = 221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND";
    UNSUPPORTED_PTX_VERSION = 222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION";
    JIT_COMPILATION_DISABLED = 223, "CUDA_ERROR_JIT_COMPILATION_DISABLED";
    UNSUPPORTED_EXEC_AFFINITY = 224, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY";
    UNSUPPORTED_DEVSIDE_SYNC = 225, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC";
    CONTAINED = 226, "CUDA_ERROR_CONTAINED";
    INSUFFICIENT_LOADER_VERSION = 227, "CUDA_ERROR_INSUFFICIENT_LOADER_VERSION";
    INVALID_SOURCE = 300, "CUDA_ERROR_INVALID_SOURCE";
    FILE_NOT_FOUND = 301, "CUDA_ERROR_FILE_NOT_FOUND";
    SHARED_OBJECT_SYMBOL_NOT_FOUND = 302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND";
    SHARED_OBJECT_INIT_FAILED = 303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED";
    OPERATING_SYSTEM = 304, "CUDA_ERROR_OPERATING_SYSTEM";
    INVALID_HANDLE = 400, "CUDA_ERROR_INVALID_HANDLE";
    ILLEGAL_STATE = 401, "CUDA_ERROR_ILLEGAL_STATE";
    LOSSY_QUERY = 402, "CUDA_ERROR_LOSSY_QUERY";
    NOT_FOUND = 500, "CUDA_ERROR_NOT_FOUND";
    NOT_READY = 600, "CUDA_ERROR_NOT_READY";
    ILLEGAL_ADDRESS = 700, "CUDA_ERROR_ILLEGAL_ADDRESS";
    LAUNCH_OUT_OF_RESOURCES = 701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES";
    LAUNCH_TIMEOUT = 702, "CUDA_ERROR_LAUNCH_TIMEOUT";
    LAUNCH_INCOMPATIBLE_TEXTURING = 703, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING";
    PEER_ACCESS_ALREADY_ENABLED = 704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED";
    PEER_ACCESS_NOT_ENABLED = 705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED";
    PRIMARY_CONTEXT_ACTIVE = 708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE";
    CONTEXT_IS_DESTROYED = 709, "CUDA_ERROR_CONTEXT_IS_DESTROYED";
    ASSERT = 710, "CUDA_ERROR_ASSERT";
    TOO_MANY_PEERS = 711, "CUDA_ERROR_TOO_MANY_PEERS";
    HOST_MEMORY_ALREADY_REGISTERED = 712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED";
    HOST_MEMORY_NOT_REGISTERED = 713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED";
    HARDWARE_STACK_ERROR = 714, "CUDA_ERROR_HARDWARE_STACK_ERROR";
    ILLEGAL_INSTRUCTION = 715, "CUDA_ERROR_ILLEGAL_INSTRUCTION";
    MISALIGNED_ADDRESS = 716, "CUDA_ERROR_MISALIGNED_ADDRESS";
    INVALID_ADDRESS_SPACE = 717, "CUDA_ERROR_INVALID_ADDRESS_SPACE";
    INVALID_PC = 718, "CUDA_ERROR_INVALID_PC";
    LAUNCH_FAILED = 719, "CUDA_ERROR_LAUNCH_FAILED";
    COOPERATIVE_LAUNCH_TOO_LARGE = 720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE";
    TENSOR_MEMORY_LEAK = 721, "CUDA_ERROR_TENSOR_MEMORY_LEAK";
    NOT_PERMITTED = 800, "CUDA_ERROR_NOT_PERMITTED";
    NOT_SUPPORTED = 801, "CUDA_ERROR_NOT_SUPPORTED";
    SYSTEM_NOT_READY = 802, "CUDA_ERROR_SYSTEM_NOT_READY";
    SYSTEM_DRIVER_MISMATCH = 803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH";
    COMPAT_NOT_SUPPORTED_ON_DEVICE = 804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE";
    MPS_CONNECTION_FAILED = 805, "CUDA_ERROR_MPS_CONNECTION_FAILED";
    MPS_RPC_FAILURE = 806, "CUDA_ERROR_MPS_RPC_FAILURE";
    MPS_SERVER_NOT_READY = 807, "CUDA_ERROR_MPS_SERVER_NOT_READY";
    MPS_MAX_CLIENTS_REACHED = 808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED";
    MPS_MAX_CONNECTIONS_REACHED = 809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED";
    MPS_CLIENT_TERMINATED = 810, "CUDA_ERROR_MPS_CLIENT_TERMINATED";
    CDP_NOT_SUPPORTED = 811, "CUDA_ERROR_CDP_NOT_SUPPORTED";
    CDP_VERSION_MISMATCH = 812, "CUDA_ERROR_CDP_VERSION_MISMATCH";
    STREAM_CAPTURE_UNSUPPORTED = 900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
    STREAM_CAPTURE_INVALIDATED = 901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED";
    STREAM_CAPTURE_MERGE = 902, "CUDA_ERROR_STREAM_CAPTURE_MERGE";
    STREAM_CAPTURE_UNMATCHED = 903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED";
    STREAM_CAPTURE_UNJOINED = 904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED";
    STREAM_CAPTURE_ISOLATION = 905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION";
    STREAM_CAPTURE_IMPLICIT = 906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT";
    CAPTURED_EVENT = 907, "CUDA_ERROR_CAPTURED_EVENT";
    STREAM_CAPTURE_WRONG_THREAD = 908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD";
    TIMEOUT = 909, "CUDA_ERROR_TIMEOUT";
    GRAPH_EXEC_UPDATE_FAILURE = 910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE";
    EXTERNAL_DEVICE = 911, "CUDA_ERROR_EXTERNAL_DEVICE";
    INVALID_CLUSTER_SIZE = 912, "CUDA_ERROR_INVALID_CLUSTER_SIZE";
    FUNCTION_NOT_LOADED = 913, "CUDA_ERROR_FUNCTION_NOT_LOADED";
    INVALID_RESOURCE_TYPE = 914, "CUDA_ERROR_INVALID_RESOURCE_TYPE";
    INVALID_RESOURCE_CONFIGURATION = 915, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION";
    KEY_ROTATION = 916, "CUDA_ERROR_KEY_ROTATION";
    STREAM_DETACHED = 917, "CUDA_ERROR_STREAM_DETACHED";
    GRAPH_RECAPTURE_FAILURE = 918, "CUDA_ERROR_GRAPH_RECAPTURE_FAILURE";
    FABRIC_NOT_READY = 919, "CUDA_ERROR_FABRIC_NOT_READY";
    UNKNOWN = 999, "CUDA_ERROR_UNKNOWN";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn success_is_zero_across_the_boundary() {
        // SAFETY: `CuResult` has the size of a u32, and every u32 is a valid value of it.
        let code = |result: CuResult| unsafe { core::mem::transmute::<CuResult, u32>(result) };
        assert_eq!(code(Ok(())), 0);
        assert_eq!(code(Err(CudaError::OUT_OF_MEMORY)), 2);
    }

    #[test]
    fn an_unknown_code_prints_its_number() {
        let error = CudaError::new(54321).expect("not zero");
        assert_eq!(format!("{error}"), "CUresult 54321");
        assert_eq!(
            format!("{}", CudaError::OUT_OF_MEMORY),
            "CUDA_ERROR_OUT_OF_MEMORY (2)"
        );
    }
}
