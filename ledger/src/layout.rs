//! What may lie in shared memory, and how an object there says what it is.
//!
//! Read next: `policy.rs` and `account.rs`, the two objects.

use crate::sync::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The unit of every charge, in bytes. Requests round up to it, caps round down.
pub const GRANULE: u64 = 512;

/// The largest amount one account can hold on one device, in granules: 33 bits, 4 TiB less one granule.
pub const MAX_GRANULES: u64 = (1 << 33) - 1;

/// Granules needed to cover `bytes`; above [`MAX_GRANULES`] when no account could hold them. Never overflows.
#[must_use]
pub const fn granules_covering(bytes: u64) -> u64 {
    bytes.div_ceil(GRANULE)
}

/// Whole granules inside `bytes`, at most [`MAX_GRANULES`].
#[must_use]
pub const fn granules_within(bytes: u64) -> u64 {
    let granules = bytes / GRANULE;
    if granules > MAX_GRANULES {
        MAX_GRANULES
    } else {
        granules
    }
}

/// Bytes of `granules`, saturating at `u64::MAX`.
#[must_use]
pub const fn bytes_of(granules: u64) -> u64 {
    granules.saturating_mul(GRANULE)
}

/// May lie in memory that another process writes at any moment.
///
/// # Safety
/// Every bit pattern, all zeroes included, must be a valid value; every field must be reached through atomics only; the
/// layout must not depend on the build (`repr(C)`, no pointer, no `usize`, no padding that is read).
pub unsafe trait Shareable: Sync {}

// SAFETY: any 32 bits are a valid AtomicU32, and it is an atomic of fixed size.
unsafe impl Shareable for AtomicU32 {}
// SAFETY: as for AtomicU32, with 64 bits.
unsafe impl Shareable for AtomicU64 {}
// SAFETY: an array adds no bytes of its own.
unsafe impl<T: Shareable, const N: usize> Shareable for [T; N] {}

/// A whole object: what one memfd holds from its first byte.
pub trait Object: Shareable + Sized {
    /// First word of the header.
    const MAGIC: u64;
    /// Grows when a field changes its meaning or place; a field added where zero meant "absent" keeps it.
    const VERSION: u32;
    /// The object's header.
    fn header(&self) -> &Header;
}

/// Declares a `#[repr(C)]` struct, checks that every field is [`Shareable`], and marks it so.
macro_rules! shareable {
    ($(#[$attribute:meta])* $visibility:vis struct $name:ident {
        $($(#[$field_attribute:meta])* $field_visibility:vis $field:ident: $type:ty,)*
    }) => {
        $(#[$attribute])*
        #[repr(C)]
        $visibility struct $name { $($(#[$field_attribute])* $field_visibility $field: $type,)* }
        const _: () = {
            const fn shareable<T: $crate::layout::Shareable>() {}
            $(shareable::<$type>();)*
        };
        // SAFETY: the struct is repr(C) and the constant above checks that each field is Shareable.
        unsafe impl $crate::layout::Shareable for $name {}
    };
}
pub(crate) use shareable;

shareable! {
    /// Begins every object: magic, version and size, so that a stranger can tell what it was handed.
    #[repr(align(64))]
    pub struct Header {
        magic: AtomicU64,
        version: AtomicU32,
        reserved: AtomicU32,
        size: AtomicU64,
    }
}

/// Why an object was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// It does not begin with the magic of the kind that was expected.
    Magic,
    /// Its version is not the one this build knows; the value found.
    Version(u32),
    /// Its header or its file says another size than this build's; the size found, in bytes.
    Size(u64),
}

impl Header {
    /// Fills in the header of a new object `T`.
    #[cfg(not(loom))]
    pub(crate) fn write<T: Object>(&self) {
        self.version.store(T::VERSION, Relaxed);
        self.size.store(size_of::<T>() as u64, Relaxed);
        self.magic.store(T::MAGIC, Relaxed);
    }

    /// Checks that this begins a `T` of this build's version and size.
    ///
    /// # Errors
    /// The first of magic, version and size that differs.
    pub fn check<T: Object>(&self) -> Result<(), HeaderError> {
        if self.magic.load(Relaxed) != T::MAGIC {
            return Err(HeaderError::Magic);
        }
        let version = self.version.load(Relaxed);
        if version != T::VERSION {
            return Err(HeaderError::Version(version));
        }
        let size = self.size.load(Relaxed);
        if size != size_of::<T>() as u64 {
            return Err(HeaderError::Size(size));
        }
        Ok(())
    }
}
