//! Who may touch mapped memory.

use super::block::{self, Block, Kind, Location};
use super::edge::{element, get as read};
use super::{physical, space};
use driver::prelude::*;
use std::sync::{Arc, PoisonError};

const READ: u32 = 1;
const READ_WRITE: u32 = 3;

fn who(location: CUmemLocation) -> Result<Location, CudaError> {
    match physical::place(location)? {
        Some(device) => Ok(Location::Device(device.ordinal)),
        None => Ok(Location::Host),
    }
}

/// The mappings that make up the range exactly up to its end, from its beginning, without a gap.
fn mappings(address: u64, bytes: u64) -> Result<Vec<Arc<Block>>, CudaError> {
    let end = address.checked_add(bytes).ok_or(CudaError::INVALID_VALUE)?;
    let blocks = block::read();
    let mut list = Vec::new();
    let mut at = address;
    while at < end {
        let block = blocks.get(&at).ok_or(CudaError::INVALID_VALUE)?;
        if !matches!(block.kind, Kind::Mapping { .. }) || block.end() > end {
            return Err(CudaError::INVALID_VALUE);
        }
        at = block.end();
        list.push(block.clone());
    }
    Ok(list)
}

/// `cuMemSetAccess`.
pub fn set(address: u64, bytes: u64, wishes: *const CUmemAccessDesc, count: usize) -> CuResult {
    if bytes == 0 || count == 0 {
        return Err(CudaError::INVALID_VALUE);
    }
    let mut changes = Vec::new();
    for i in 0..count {
        let wish = element(wishes, i)?;
        if !matches!(wish.flags, 0 | READ | READ_WRITE) {
            return Err(CudaError::INVALID_VALUE);
        }
        changes.push((who(wish.location)?, wish.flags));
    }
    for block in mappings(address, bytes)? {
        let Kind::Mapping { access, .. } = &block.kind else {
            continue;
        };
        let mut access = access.lock().unwrap_or_else(PoisonError::into_inner);
        for &(location, flags) in &changes {
            access.retain(|(of, _)| *of != location);
            access.push((location, flags));
        }
        let all = access.iter().fold(0, |all, (_, flags)| all | flags);
        // The program's own view stands for every device's.
        if !space::protect(block.base, block.size, all & READ != 0, all == READ_WRITE) {
            return Err(CudaError::OUT_OF_MEMORY);
        }
    }
    Ok(())
}

/// `cuMemGetAccess`.
pub fn get(location: *const CUmemLocation, address: u64) -> Result<u64, CudaError> {
    let location = who(read(location)?)?;
    let block = block::find(address).ok_or(CudaError::INVALID_VALUE)?;
    match &block.kind {
        Kind::Mapping { access, .. } => {
            let access = access.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(access
                .iter()
                .find(|(of, _)| *of == location)
                .map_or(0, |(_, flags)| *flags as u64))
        }
        _ => Err(CudaError::INVALID_VALUE),
    }
}
