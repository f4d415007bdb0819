//! Which function a driver meant when it answered `cuGetProcAddress`: programs ask for `cuMemAlloc` and mean `cuMemAlloc_v2`.
//!
//! A driver older or newer than our table may choose another variant than the table would. Its answer is recognised by its
//! address; only where that is unknown does the table decide, among the variants this driver has.
//!
//! Next: `exports.rs`.

use core::ffi::c_void;

use driver::table::{self, SymbolId, variants};
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
    if variants.clone().next().is_none() {
        // A driver that knows symbols by their full names, too.
        return table::by_name(base);
    }
    let expected = expected(driver, variants.clone(), version, stream_api);
    if expected.is_some_and(|symbol| driver.address(symbol) == found) {
        return expected;
    }
    let recognised = variants
        .into_iter()
        .find(|symbol| driver.address(*symbol) == found);
    recognised.or(expected)
}

/// The newest variant the driver has that is not newer than asked; a per-thread one before a legacy one, if wanted.
fn expected(
    driver: &Driver,
    variants: impl Iterator<Item = SymbolId> + Clone,
    version: i32,
    wanted: StreamApi,
) -> Option<SymbolId> {
    let newest = |api| {
        let usable = variants.clone().filter(|symbol| {
            symbol.stream_api() == api && symbol.version() <= version && !driver.address(*symbol).is_null()
        });
        usable.max_by_key(|symbol| symbol.version())
    };
    match wanted {
        StreamApi::Legacy => newest(StreamApi::Legacy),
        StreamApi::PerThread => newest(StreamApi::PerThread).or_else(|| newest(StreamApi::Legacy)),
    }
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
        let at = |base, api| answered(&driver, base, 13000, api, elsewhere).map(|id| id.name());
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
