//! Arrays: what a program says of them, and of the memory it maps to them.
//!
//! Next: `table.rs`.

use super::{CUmemGenericAllocationHandle, c_uint, c_ulonglong, c_void};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_ARRAY_DESCRIPTOR {
    pub Width: usize,
    pub Height: usize,
    pub Format: c_uint,
    pub NumChannels: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_ARRAY3D_DESCRIPTOR {
    pub Width: usize,
    pub Height: usize,
    pub Depth: usize,
    pub Format: c_uint,
    pub NumChannels: c_uint,
    pub Flags: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_ARRAY_MEMORY_REQUIREMENTS {
    pub size: usize,
    pub alignment: usize,
    pub reserved: [c_uint; 4],
}

/// The descriptor of the interface whose sizes had 32 bits.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_ARRAY_DESCRIPTOR_v1 {
    pub Width: c_uint,
    pub Height: c_uint,
    pub Format: c_uint,
    pub NumChannels: c_uint,
}

/// As [`CUDA_ARRAY_DESCRIPTOR_v1`], with a depth and flags.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_ARRAY3D_DESCRIPTOR_v1 {
    pub Width: c_uint,
    pub Height: c_uint,
    pub Depth: c_uint,
    pub Format: c_uint,
    pub NumChannels: c_uint,
    pub Flags: c_uint,
}

/// `CUDA_ARRAY3D_*` flags: the depth counts layers; the layers are six faces; memory is mapped by tiles; memory is mapped
/// as a whole.
pub const CUDA_ARRAY3D_LAYERED: c_uint = 0x01;
pub const CUDA_ARRAY3D_CUBEMAP: c_uint = 0x04;
pub const CUDA_ARRAY3D_SPARSE: c_uint = 0x40;
pub const CUDA_ARRAY3D_DEFERRED_MAPPING: c_uint = 0x80;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_ARRAY_SPARSE_PROPERTIES {
    /// Width, height and depth of a tile, in elements.
    pub tileExtent: [c_uint; 3],
    pub miptailFirstLevel: c_uint,
    pub miptailSize: c_ulonglong,
    pub flags: c_uint,
    pub reserved: [c_uint; 4],
}

/// One change of `cuMemMapArrayAsync`; the union of subresources as the longer of its two forms.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUarrayMapInfo {
    /// [`CU_RESOURCE_TYPE_ARRAY`] or [`CU_RESOURCE_TYPE_MIPMAPPED_ARRAY`].
    pub resourceType: c_uint,
    pub resource: *mut c_void,
    /// 0: a range of tiles of a level; 1: a part of the tail of small levels.
    pub subresourceType: c_uint,
    pub subresource: CUarrayMapInfo_subresource,
    /// [`CU_MEM_OPERATION_TYPE_MAP`] or [`CU_MEM_OPERATION_TYPE_UNMAP`].
    pub memOperationType: c_uint,
    pub memHandleType: c_uint,
    pub memHandle: CUmemGenericAllocationHandle,
    pub offset: c_ulonglong,
    pub deviceBitMask: c_uint,
    pub flags: c_uint,
    pub reserved: [c_uint; 2],
}

/// Level, layer, offset and extent of a range of tiles; of a tail, only the first word and what follows the first two
/// words are used: layer, offset, size.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CUarrayMapInfo_subresource {
    pub words: [c_uint; 8],
}

pub const CU_RESOURCE_TYPE_ARRAY: c_uint = 0;
pub const CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: c_uint = 1;
pub const CU_MEM_OPERATION_TYPE_MAP: c_uint = 1;
pub const CU_MEM_OPERATION_TYPE_UNMAP: c_uint = 2;
