//! Device code as programs hand it in: what kernels and variables are in it.
//!
//! Nothing is compiled or run. Names are needed for lookups that must fail, parameters and sizes for
//! programs that ask. An image that cannot be looked into (compressed in an unknown way) takes any name.
//! Next files: `fatbin.rs`, `cubin.rs`, `ptx.rs`.

use super::edge::{bytes, needed};
use super::{cubin, fatbin, ptx};
use driver::CudaError;
use std::ffi::{CStr, c_char, c_void};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KernelInfo {
    pub name: String,
    /// (offset, size) in order; `None` where nothing is known of them.
    pub parameters: Option<Vec<(u32, u32)>>,
    pub registers: u32,
    pub shared_bytes: u32,
    /// Most threads of a block, from `.maxntid`; 0: only the device limits them.
    pub max_threads: u32,
    /// 90 for sm_90; 0: as the device.
    pub architecture: u32,
    /// 86 for PTX 8.6; 0: not known.
    pub ptx_version: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    pub bytes: u64,
    /// What it holds at first; zeros where empty.
    pub content: Vec<u8>,
    pub managed: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// `None`: names are not known, and any will do.
    pub kernels: Option<Vec<KernelInfo>>,
    pub variables: Vec<Variable>,
}

impl Image {
    /// Without anything known about it.
    pub fn opaque() -> Image {
        Image::default()
    }

    pub fn kernel(&self, name: &str) -> Option<KernelInfo> {
        match &self.kernels {
            Some(kernels) => kernels.iter().find(|kernel| kernel.name == name).cloned(),
            None => Some(KernelInfo {
                name: name.to_owned(),
                ..KernelInfo::default()
            }),
        }
    }
}

const WRAPPER: u32 = 0x4662_43b1;
const FATBIN: u32 = 0xba55_ed50;
const ELF: u32 = 0x464c_457f;

/// The wrapper that compilers put around a fatbin.
#[repr(C)]
#[derive(Clone, Copy)]
struct Wrapper {
    magic: u32,
    version: u32,
    data: *const c_void,
    rest: *const c_void,
}

/// Looks into an image of any kind; `architecture` is the device's, 90 for 9.0.
pub fn load(image: *const c_void, architecture: u32) -> Result<Image, CudaError> {
    needed(image)?;
    let first = bytes(image, 1)?[0];
    let magic = match first {
        0xb1 | 0x50 | 0x7f => u32_at(bytes(image, 4)?, 0).unwrap_or(0),
        _ => 0,
    };
    match magic {
        WRAPPER => {
            let wrapper = super::edge::get(image.cast::<Wrapper>())?;
            needed(wrapper.data)?;
            if u32_at(bytes(wrapper.data, 4)?, 0) == Some(FATBIN) {
                load_fatbin(wrapper.data, architecture)
            } else {
                Err(CudaError::INVALID_IMAGE)
            }
        }
        FATBIN => load_fatbin(image, architecture),
        ELF => {
            let length = cubin::length(bytes(image, 64)?).ok_or(CudaError::INVALID_IMAGE)?;
            let (table, end) = length;
            // The section table first, which says how long the rest is.
            let end = cubin::end(bytes(image, table)?).unwrap_or(end).max(table);
            cubin::parse(bytes(image, end)?).ok_or(CudaError::INVALID_IMAGE)
        }
        _ => {
            // SAFETY: what is no binary is PTX, which is a C string by the contract of the API.
            let text = unsafe { CStr::from_ptr(image.cast::<c_char>()) };
            load_text(text.to_bytes())
        }
    }
}

fn load_text(text: &[u8]) -> Result<Image, CudaError> {
    ptx::parse(&String::from_utf8_lossy(text)).ok_or(CudaError::INVALID_IMAGE)
}

fn load_fatbin(data: *const c_void, architecture: u32) -> Result<Image, CudaError> {
    let invalid = CudaError::INVALID_IMAGE;
    let length = fatbin::length(bytes(data, 16)?).ok_or(invalid)?;
    let entries = fatbin::entries(bytes(data, length)?).ok_or(invalid)?;
    let best = fatbin::best(&entries, architecture).ok_or(CudaError::NO_BINARY_FOR_GPU)?;
    let Some(content) = best.content() else {
        return Ok(Image::opaque());
    };
    if best.is_ptx {
        let end = content
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(content.len());
        load_text(&content[..end])
    } else {
        cubin::parse(&content).ok_or(invalid)
    }
}

/// Little-endian words of a byte string; `None` beyond its end.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes
        .get(at..at.checked_add(2)?)?
        .try_into()
        .ok()
        .map(u16::from_le_bytes)
}

pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..at.checked_add(4)?)?
        .try_into()
        .ok()
        .map(u32::from_le_bytes)
}

pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes
        .get(at..at.checked_add(8)?)?
        .try_into()
        .ok()
        .map(u64::from_le_bytes)
}
