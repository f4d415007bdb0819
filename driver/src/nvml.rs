//! The types of NVML under their C names, as far as the twin or the stand-in looks at them.
//!
//! Enums are plain integers: a value of a newer library must pass through unharmed. Some structs carry a
//! version word, which says how long the caller's struct is: read it before anything else.
//! The functions: `nvml_table.rs`.

#![allow(non_camel_case_types, non_snake_case, missing_docs)]

pub use core::ffi::{c_char, c_int, c_longlong, c_uint, c_ulonglong, c_void};

/// A device, opaque to the caller.
pub type nvmlDevice_t = *mut c_void;

macro_rules! enums {
    ($($name:ident)*) => { $(pub type $name = c_uint;)* };
}
enums! {
    nvmlBrandType_t nvmlBusType_t nvmlClockId_t nvmlClockType_t nvmlComputeMode_t nvmlDeviceArchitecture_t
    nvmlEnableState_t nvmlGpuP2PCapsIndex_t nvmlGpuP2PStatus_t nvmlGpuTopologyLevel_t
    nvmlGpuVirtualizationMode_t nvmlNvLinkCapability_t nvmlPcieUtilCounter_t nvmlPstates_t
    nvmlTemperatureSensors_t nvmlTemperatureThresholds_t
}

/// What an NVML function returns. `Ok(())` is bit for bit `NVML_SUCCESS` (0).
pub type NvmlResult = Result<(), NvmlError>;

/// An `nvmlReturn_t` other than `NVML_SUCCESS`; any code is representable.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NvmlError(core::num::NonZeroU32);

const _: () = assert!(size_of::<NvmlResult>() == 4);

macro_rules! codes {
    ($($name:ident = $code:literal;)*) => {
        impl NvmlError {
            $(#[doc = concat!("`NVML_ERROR_", stringify!($name), "` (", $code, ")")]
            pub const $name: NvmlError = NvmlError(core::num::NonZeroU32::new($code).expect("not zero"));)*
        }
    };
}
codes! {
    UNINITIALIZED = 1;
    INVALID_ARGUMENT = 2;
    NOT_SUPPORTED = 3;
    NO_PERMISSION = 4;
    NOT_FOUND = 6;
    INSUFFICIENT_SIZE = 7;
    DRIVER_NOT_LOADED = 9;
    LIBRARY_NOT_FOUND = 12;
    FUNCTION_NOT_FOUND = 13;
    GPU_IS_LOST = 15;
    ARGUMENT_VERSION_MISMATCH = 25;
    UNKNOWN = 999;
}

impl NvmlError {
    /// The code as NVML numbers it.
    pub const fn code(self) -> u32 {
        self.0.get()
    }

    /// A raw `nvmlReturn_t` as an [`NvmlResult`].
    pub const fn check(code: u32) -> NvmlResult {
        match core::num::NonZeroU32::new(code) {
            Some(code) => Err(NvmlError(code)),
            None => Ok(()),
        }
    }
}

/// The version word of version `version` of struct `T`.
pub const fn struct_version<T>(version: u32) -> u32 {
    size_of::<T>() as u32 | version << 24
}

macro_rules! structs {
    ($($(#[$about:meta])* $name:ident $size:literal { $($field:ident: $kind:ty,)* })*) => { $(
        $(#[$about])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name { $(pub $field: $kind,)* }
        const _: () = assert!(size_of::<$name>() == $size);
    )* };
}
// Sizes as sizeof says with nvml.h 13.4.
structs! {
    nvmlPciInfo_t 68 {
        busIdLegacy: [c_char; 16],
        domain: c_uint,
        bus: c_uint,
        device: c_uint,
        pciDeviceId: c_uint,
        pciSubSystemId: c_uint,
        busId: [c_char; 32],
    }
    nvmlPciInfoExt_t 64 {
        version: c_uint,
        domain: c_uint,
        bus: c_uint,
        device: c_uint,
        pciDeviceId: c_uint,
        pciSubSystemId: c_uint,
        baseClass: c_uint,
        subClass: c_uint,
        busId: [c_char; 32],
    }
    nvmlMemory_t 24 { total: c_ulonglong, free: c_ulonglong, used: c_ulonglong, }
    nvmlMemory_v2_t 40 {
        version: c_uint,
        total: c_ulonglong,
        reserved: c_ulonglong,
        free: c_ulonglong,
        used: c_ulonglong,
    }
    nvmlBAR1Memory_t 24 { bar1Total: c_ulonglong, bar1Free: c_ulonglong, bar1Used: c_ulonglong, }
    nvmlUtilization_t 8 { gpu: c_uint, memory: c_uint, }
    nvmlProcessInfo_v1_t 16 { pid: c_uint, usedGpuMemory: c_ulonglong, }
    /// Versions 2 and 3.
    nvmlProcessInfo_t 24 {
        pid: c_uint,
        usedGpuMemory: c_ulonglong,
        gpuInstanceId: c_uint,
        computeInstanceId: c_uint,
    }
    nvmlProcessDetail_v1_t 32 {
        pid: c_uint,
        usedGpuMemory: c_ulonglong,
        gpuInstanceId: c_uint,
        computeInstanceId: c_uint,
        usedGpuCcProtectedMemory: c_ulonglong,
    }
    nvmlProcessDetailList_t 24 {
        version: c_uint,
        mode: c_uint,
        numProcArrayEntries: c_uint,
        procArray: *mut nvmlProcessDetail_v1_t,
    }
    nvmlProcessUtilizationSample_t 32 {
        pid: c_uint,
        timeStamp: c_ulonglong,
        smUtil: c_uint,
        memUtil: c_uint,
        encUtil: c_uint,
        decUtil: c_uint,
    }
    nvmlProcessUtilizationInfo_v1_t 40 {
        timeStamp: c_ulonglong,
        pid: c_uint,
        smUtil: c_uint,
        memUtil: c_uint,
        encUtil: c_uint,
        decUtil: c_uint,
        jpgUtil: c_uint,
        ofaUtil: c_uint,
    }
    nvmlProcessesUtilizationInfo_t 24 {
        version: c_uint,
        processSamplesCount: c_uint,
        lastSeenTimeStamp: c_ulonglong,
        procUtilArray: *mut nvmlProcessUtilizationInfo_v1_t,
    }
    nvmlTemperature_t 12 { version: c_uint, sensorType: nvmlTemperatureSensors_t, temperature: c_int, }
    nvmlAccountingStats_t 56 {
        gpuUtilization: c_uint,
        memoryUtilization: c_uint,
        maxMemoryUsage: c_ulonglong,
        time: c_ulonglong,
        startTime: c_ulonglong,
        isRunning: c_uint,
        reserved: [c_uint; 5],
    }
    /// Its first two words: the twin looks at no more.
    nvmlAccountingStats_v2_t 8 { pid: c_uint, isRunning: c_uint, }
    /// `value` is a union of numbers of up to eight bytes.
    nvmlFieldValue_t 40 {
        fieldId: c_uint,
        scopeId: c_uint,
        timestamp: c_longlong,
        latencyUsec: c_longlong,
        valueType: c_uint,
        nvmlReturn: c_uint,
        value: u64,
    }
}
pub type nvmlProcessInfo_v2_t = nvmlProcessInfo_t;
