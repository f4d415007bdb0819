//! `cuGetProcAddress`, versions and export tables: how programs find the rest.
//!
//! The answer is the newest variant of a name that is not newer than asked and that this library shows.
//! Export tables are refused, all of them: what lies behind them is either an authenticity check, which
//! is not ours to answer, or undocumented, and a wrong answer corrupts compilers.

use super::edge::{needed, put, put_optional, text};
use super::export::address;
use super::profile::PROFILE;
use super::{Sim, node};
use driver::prelude::*;
use driver::table::{ALL_SYMBOLS, SymbolId};
use std::collections::HashMap;
use std::ptr::null_mut;
use std::sync::LazyLock;

const LEGACY_STREAM: u64 = 1;
const PER_THREAD_STREAM: u64 = 2;

const FOUND: u32 = 0;
const UNKNOWN: u32 = 1;
const TOO_NEW: u32 = 2;

/// The symbols shown, by the name programs ask for.
static BY_BASE: LazyLock<HashMap<&'static str, Vec<SymbolId>>> = LazyLock::new(|| {
    let mut names: HashMap<&'static str, Vec<SymbolId>> = HashMap::new();
    for &id in ALL_SYMBOLS.iter().filter(|&&id| PROFILE.shows(id)) {
        names.entry(id.symbol().row.row().base).or_default().push(id);
    }
    names
});

fn newest(variants: &[SymbolId], version: i32, api: StreamApi) -> Option<SymbolId> {
    let fitting = variants
        .iter()
        .filter(|id| id.symbol().stream_api == api && id.symbol().version <= version);
    fitting.max_by_key(|id| id.symbol().version).copied()
}

/// The address, or which of the two ways it is missing.
fn find(name: &str, version: i32, api: StreamApi) -> Result<*mut c_void, u32> {
    let variants = BY_BASE.get(name).ok_or(UNKNOWN)?;
    let own = match api {
        StreamApi::PerThread => newest(variants, version, api),
        StreamApi::Legacy => None,
    };
    let symbol = own
        .or_else(|| newest(variants, version, StreamApi::Legacy))
        .ok_or(TOO_NEW)?;
    Ok(address(symbol))
}

impl Sim {
    pub(super) fn cuDriverGetVersion(_: StreamApi, version: *mut c_int) -> CuResult {
        put(version, PROFILE.version)
    }

    pub(super) fn cuGetProcAddress(
        api: StreamApi,
        symbol: *const c_char,
        pfn: *mut *mut c_void,
        version: c_int,
        flags: cuuint64_t,
    ) -> CuResult {
        Sim::cuGetProcAddress_v2(api, symbol, pfn, version, flags, null_mut())
    }

    pub(super) fn cuGetProcAddress_v2(
        api: StreamApi,
        symbol: *const c_char,
        pfn: *mut *mut c_void,
        version: c_int,
        flags: cuuint64_t,
        status: *mut CUdriverProcAddressQueryResult,
    ) -> CuResult {
        needed(pfn)?;
        let name = text(symbol)?;
        let api = match flags {
            0 => api,
            LEGACY_STREAM => StreamApi::Legacy,
            PER_THREAD_STREAM => StreamApi::PerThread,
            _ => return Err(CudaError::INVALID_VALUE),
        };
        match find(name, version, api) {
            Ok(address) => {
                put_optional(status, FOUND);
                put(pfn, address)
            }
            Err(missing) => {
                put_optional(status, missing);
                put(pfn, null_mut())?;
                Err(CudaError::NOT_FOUND)
            }
        }
    }

    pub(super) fn cuGetExportTable(_: StreamApi, table: *mut *const c_void, id: *const CUuuid) -> CuResult {
        needed(id)?;
        put(table, std::ptr::null())?;
        Err(CudaError::INVALID_VALUE)
    }

    pub(super) fn cuProfilerStart(_: StreamApi) -> CuResult {
        super::current::current().map(|_| ())
    }

    pub(super) fn cuProfilerStop(_: StreamApi) -> CuResult {
        super::current::current().map(|_| ())
    }

    pub(super) fn cuInit(_: StreamApi, flags: c_uint) -> CuResult {
        if flags != 0 {
            return Err(CudaError::INVALID_VALUE);
        }
        node::initialise()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_base_name_resolves_to_its_newest_variant() {
        for &id in ALL_SYMBOLS {
            let base = id.symbol().row.row().base;
            let expected = driver::table::resolve(base, i32::MAX, id.symbol().stream_api).map(address);
            assert_eq!(
                find(base, i32::MAX, id.symbol().stream_api).ok(),
                expected,
                "{base}"
            );
        }
    }

    #[test]
    fn a_name_nobody_knows_and_one_that_came_later() {
        assert_eq!(find("cuNeverHeardOf", 13050, StreamApi::Legacy), Err(UNKNOWN));
        assert_eq!(find("cuMemAlloc_v2", 13050, StreamApi::Legacy), Err(UNKNOWN));
        assert_eq!(find("cuMemAllocAsync", 11010, StreamApi::Legacy), Err(TOO_NEW));
    }
}
