//! The runtime's own structs, where they differ from the driver's.

use super::release::Release;
use driver::abi::*;

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim3 {
    pub x: c_uint,
    pub y: c_uint,
    pub z: c_uint,
}

/// `cudaExtent`: `width` in bytes, or in elements where an array is meant.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Extent {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// `cudaPos`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Position {
    pub x: usize,
    pub y: usize,
    pub z: usize,
}

/// `cudaPitchedPtr`: `xsize` and `ysize` are the allocation's logical width and height.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PitchedPointer {
    pub pointer: *mut c_void,
    pub pitch: usize,
    pub xsize: usize,
    pub ysize: usize,
}

/// `cudaMemcpy3DParms`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Copy3D {
    pub source_array: CUarray,
    pub source_position: Position,
    pub source: PitchedPointer,
    pub target_array: CUarray,
    pub target_position: Position,
    pub target: PitchedPointer,
    pub extent: Extent,
    pub kind: c_uint,
}

/// `cudaLaunchConfig_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LaunchConfig {
    pub grid: Dim3,
    pub block: Dim3,
    pub shared_bytes: usize,
    pub stream: CUstream,
    pub attributes: *mut c_void,
    pub attribute_count: c_uint,
}

/// `cudaChannelFormatDesc`: bits of each channel.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelFormat {
    pub x: c_int,
    pub y: c_int,
    pub z: c_int,
    pub w: c_int,
    /// 0 signed, 1 unsigned, 2 float.
    pub kind: c_uint,
}

/// `cudaPointerAttributes`; release 13 has words of reserve behind it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PointerAttributes {
    pub kind: c_uint,
    pub device: c_int,
    pub device_pointer: *mut c_void,
    pub host_pointer: *mut c_void,
}

/// `cudaFuncAttributes`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct FunctionAttributes {
    pub shared_bytes: usize,
    pub constant_bytes: usize,
    pub local_bytes: usize,
    pub most_threads: c_int,
    pub registers: c_int,
    pub ptx_version: c_int,
    pub binary_version: c_int,
    pub cache_mode: c_int,
    pub most_dynamic_shared_bytes: c_int,
    pub shared_carveout: c_int,
    pub cluster_required: c_int,
    pub cluster_width: c_int,
    pub cluster_height: c_int,
    pub cluster_depth: c_int,
    pub cluster_scheduling: c_int,
    pub cluster_non_portable: c_int,
    pub reserved: [c_int; 16],
}

// As sizeof says with the headers of 12.9 and 13.5.
const _: () = {
    assert!(size_of::<Copy3D>() == 160);
    assert!(size_of::<PitchedPointer>() == 32);
    assert!(size_of::<Extent>() == 24);
    assert!(size_of::<LaunchConfig>() == 56);
    assert!(size_of::<ChannelFormat>() == 20);
    assert!(size_of::<PointerAttributes>() == 24);
    assert!(size_of::<FunctionAttributes>() == 144);
};

impl PointerAttributes {
    /// Bytes of the caller's struct.
    pub fn size(release: Release) -> usize {
        match release {
            Release::Twelve => 24,
            Release::Thirteen => 88,
        }
    }
}

impl LaunchConfig {
    /// The driver's form; the attributes have one layout in both.
    pub fn for_driver(&self) -> Result<CUlaunchConfig, driver::CudaError> {
        Ok(CUlaunchConfig {
            gridDimX: self.grid.x,
            gridDimY: self.grid.y,
            gridDimZ: self.grid.z,
            blockDimX: self.block.x,
            blockDimY: self.block.y,
            blockDimZ: self.block.z,
            sharedMemBytes: shared(self.shared_bytes)?,
            hStream: self.stream,
            attrs: self.attributes,
            numAttrs: self.attribute_count,
        })
    }
}

/// A size of shared memory, which the driver takes in 32 bits; `INVALID_VALUE` beyond.
pub fn shared(bytes: usize) -> Result<c_uint, driver::CudaError> {
    c_uint::try_from(bytes).map_err(|_| driver::CudaError::INVALID_VALUE)
}
