//! Which function a driver meant when it answered `cuGetProcAddress`: programs ask for `cuMemAlloc` and mean `cuMemAlloc_v2`.
//!
//! A driver older or newer than our table may choose another variant than the table would. Its answer is recognised by its
//! address; only where that is unknown does the table decide, among the variants this driver has.
//!
//! Next: `exports.rs`.

use core::ffi::c_void;

use driver::table::{self, ALL_SYMBOLS, ROWS, SYMBOL_COUNT, SYMBOLS, SymbolId};
use driver::{Driver, StreamApi};

/// The function behind `found`, the driver's answer to `base` asked at `version`; `None` where there is no such name.
pub fn answered(
    driver: &Driver,
    base: &str,
    version: i32,
    stream_api: StreamApi,
    found: *mut c_void,
) -> Option<SymbolId> {
    if found.is_null() {
        return None;
    }
    let variants = variants(base);
    if variants.is_empty() {
        // A driver that knows symbols by their full names, too.
        return table::by_name(base);
    }
    let expected = expected(driver, variants, version, stream_api);
    if expected.is_some_and(|symbol| driver.address(symbol) == found) {
        return expected;
    }
    let recognised = variants
        .iter()
        .copied()
        .find(|symbol| driver.address(*symbol) == found);
    recognised.or(expected)
}

/// The newest variant the driver has that is not newer than asked; a per-thread one before a legacy one, if wanted.
fn expected(driver: &Driver, variants: &[SymbolId], version: i32, wanted: StreamApi) -> Option<SymbolId> {
    let newest = |api| {
        let usable = variants.iter().copied().filter(|symbol| {
            let about = symbol.symbol();
            about.stream_api == api && about.version <= version && !driver.address(*symbol).is_null()
        });
        usable.max_by_key(|symbol| symbol.symbol().version)
    };
    match wanted {
        StreamApi::Legacy => newest(StreamApi::Legacy),
        StreamApi::PerThread => newest(StreamApi::PerThread).or_else(|| newest(StreamApi::Legacy)),
    }
}

/// All symbols of a base name.
fn variants(base: &str) -> &'static [SymbolId] {
    let rest = &BY_BASE[BY_BASE.partition_point(|symbol| base_of(*symbol) < base)..];
    let differs = |symbol: &SymbolId| base_of(*symbol) != base;
    &rest[..rest.iter().position(differs).unwrap_or(rest.len())]
}

fn base_of(symbol: SymbolId) -> &'static str {
    symbol.symbol().row.row().base
}

/// The symbols by base name, sorted when this was compiled: programs look hundreds of names up when they start.
static BY_BASE: [SymbolId; SYMBOL_COUNT] = sorted();

const fn sorted() -> [SymbolId; SYMBOL_COUNT] {
    let mut from = [ALL_SYMBOLS[0]; SYMBOL_COUNT];
    let mut at = 0;
    while at < SYMBOL_COUNT {
        from[at] = ALL_SYMBOLS[at];
        at += 1;
    }
    // A merge sort from the bottom up: what needs few steps is quick to compile.
    let mut width = 1;
    while width < SYMBOL_COUNT {
        let mut into = from;
        let mut start = 0;
        while start < SYMBOL_COUNT {
            let middle = least(start + width, SYMBOL_COUNT);
            let end = least(start + 2 * width, SYMBOL_COUNT);
            let (mut left, mut right, mut at) = (start, middle, start);
            while at < end {
                if left < middle && (right >= end || !is_less(from[right], from[left])) {
                    into[at] = from[left];
                    left += 1;
                } else {
                    into[at] = from[right];
                    right += 1;
                }
                at += 1;
            }
            start = end;
        }
        from = into;
        width *= 2;
    }
    from
}

const fn least(one: usize, other: usize) -> usize {
    if one < other { one } else { other }
}

const fn is_less(one: SymbolId, other: SymbolId) -> bool {
    let one = ROWS[SYMBOLS[one as usize].row as usize].base.as_bytes();
    let other = ROWS[SYMBOLS[other as usize].row as usize].base.as_bytes();
    let mut at = 0;
    while at < one.len() && at < other.len() {
        if one[at] != other[at] {
            return one[at] < other[at];
        }
        at += 1;
    }
    one.len() < other.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: &str) -> SymbolId {
        table::by_name(name).unwrap()
    }

    /// A driver that has exactly these names, each at an address of its own.
    fn having(names: &[&str]) -> Driver {
        let driver = Driver::empty();
        for name in names {
            // SAFETY: nobody calls it.
            unsafe { driver.set_address(symbol(name), (0x1000 + symbol(name) as usize) as *mut c_void) };
        }
        driver
    }

    #[test]
    fn every_symbol_is_among_the_variants_of_its_base() {
        for &id in ALL_SYMBOLS {
            assert!(variants(base_of(id)).contains(&id), "{}", id.symbol().name);
        }
        assert!(variants("cuNeverHeardOf").is_empty());
    }

    #[test]
    fn an_answer_is_recognised_by_its_address() {
        let driver = having(&["cuCtxCreate", "cuCtxCreate_v2", "cuCtxCreate_v3"]);
        let answer = |name: &str| driver.address(symbol(name));
        let at = |version, found| answered(&driver, "cuCtxCreate", version, StreamApi::Legacy, found);
        assert_eq!(at(3020, answer("cuCtxCreate_v2")), Some(symbol("cuCtxCreate_v2")));
        // The table has a fourth variant by then; this driver does not.
        assert_eq!(
            at(13000, answer("cuCtxCreate_v3")),
            Some(symbol("cuCtxCreate_v3"))
        );
        // A driver that decides otherwise than the table.
        assert_eq!(
            at(13000, answer("cuCtxCreate_v2")),
            Some(symbol("cuCtxCreate_v2"))
        );
    }

    #[test]
    fn an_unknown_address_is_judged_by_the_table_within_what_the_driver_has() {
        let driver = having(&["cuMemAllocAsync", "cuMemAllocAsync_ptsz", "cuCtxCreate_v3"]);
        let elsewhere = 0x7777 as *mut c_void;
        let at = |base, api| answered(&driver, base, 13000, api, elsewhere).map(|id| id.symbol().name);
        assert_eq!(at("cuMemAllocAsync", StreamApi::Legacy), Some("cuMemAllocAsync"));
        assert_eq!(
            at("cuMemAllocAsync", StreamApi::PerThread),
            Some("cuMemAllocAsync_ptsz")
        );
        assert_eq!(at("cuCtxCreate", StreamApi::PerThread), Some("cuCtxCreate_v3"));
        assert_eq!(at("cuMemFree", StreamApi::Legacy), None);
        assert_eq!(at("cuMemFree_v2", StreamApi::Legacy), Some("cuMemFree_v2"));
        assert_eq!(
            answered(
                &driver,
                "cuMemAllocAsync",
                13000,
                StreamApi::Legacy,
                core::ptr::null_mut()
            ),
            None
        );
    }
}
