//! Handles that can be checked in a few instructions: slots at fixed addresses that are never unmapped.
//!
//! A handle is the address of a slot. Garbage is told by its address, a stale handle by the slot's
//! `live` word, and a slot that is reused meanwhile holds a valid object all the same, because objects
//! are made of atomics only and start as zeros. So a program that uses a handle it has destroyed gets an
//! error or somebody else's object, as with the real driver, but never breaks the process.

use super::space;
use driver::CudaError;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// # Safety
/// A value of all zero bytes is valid, and shared references are all anybody needs.
pub unsafe trait Plain: Sync + 'static {}

#[repr(C, align(64))]
struct Slot<T> {
    live: AtomicU32,
    value: T,
}

pub struct Arena<T> {
    /// Address of the first slot; 0 until the first claim.
    base: AtomicUsize,
    /// Slots that were ever used.
    high: AtomicUsize,
    capacity: usize,
    free: Mutex<Vec<usize>>,
    of: PhantomData<fn() -> T>,
}

impl<T: Plain> Arena<T> {
    pub const fn new(capacity: usize) -> Arena<T> {
        Arena {
            base: AtomicUsize::new(0),
            high: AtomicUsize::new(0),
            capacity,
            free: Mutex::new(Vec::new()),
            of: PhantomData,
        }
    }

    fn slot(&self, index: usize) -> &'static Slot<T> {
        let base = self.base.load(Ordering::Acquire);
        // SAFETY: `index` is below `high`, so inside the mapping, which stays; zeros are a valid slot.
        unsafe { &*(base as *const Slot<T>).add(index) }
    }

    /// Fills a slot and gives it out.
    pub fn claim(&self, fill: impl FnOnce(&'static T)) -> Result<&'static T, CudaError> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let index = match free.pop() {
            Some(index) => index,
            None => {
                let index = self.high.load(Ordering::Relaxed);
                if index == self.capacity {
                    return Err(CudaError::OUT_OF_MEMORY);
                }
                if index == 0 {
                    let bytes = (self.capacity * size_of::<Slot<T>>()) as u64;
                    let base = space::zeroed(bytes).ok_or(CudaError::OUT_OF_MEMORY)?;
                    self.base.store(base as usize, Ordering::Release);
                }
                self.high.store(index + 1, Ordering::Release);
                index
            }
        };
        let slot = self.slot(index);
        fill(&slot.value);
        slot.live.store(1, Ordering::Release);
        Ok(&slot.value)
    }

    /// The handle of an object of this arena.
    pub fn handle(&self, value: &'static T) -> *mut c_void {
        let offset = std::mem::offset_of!(Slot<T>, value);
        (&raw const *value)
            .cast::<u8>()
            .wrapping_sub(offset)
            .cast_mut()
            .cast()
    }

    fn index(&self, handle: *mut c_void) -> Option<usize> {
        let offset = (handle as usize).wrapping_sub(self.base.load(Ordering::Acquire));
        let index = offset / size_of::<Slot<T>>();
        (offset.is_multiple_of(size_of::<Slot<T>>()) && index < self.high.load(Ordering::Acquire))
            .then_some(index)
    }

    /// The live object behind a handle.
    #[inline(always)]
    pub fn get(&self, handle: *mut c_void) -> Option<&'static T> {
        let slot = self.slot(self.index(handle)?);
        (slot.live.load(Ordering::Acquire) != 0).then_some(&slot.value)
    }

    /// Ends the object's life; true for the caller who did it. The slot may be used again after
    /// [`Arena::recycle`].
    pub fn end(&self, handle: *mut c_void) -> bool {
        self.index(handle)
            .is_some_and(|index| self.slot(index).live.swap(0, Ordering::AcqRel) != 0)
    }

    /// Lets the slot of an ended object be used again.
    pub fn recycle(&self, handle: *mut c_void) {
        if let Some(index) = self.index(handle) {
            self.free
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(index);
        }
    }

    /// All live objects, with their handles.
    pub fn all(&self) -> impl Iterator<Item = (*mut c_void, &'static T)> + '_ {
        (0..self.high.load(Ordering::Acquire)).filter_map(|index| {
            let slot = self.slot(index);
            let live = slot.live.load(Ordering::Acquire) != 0;
            live.then(|| ((&raw const *slot).cast_mut().cast(), &slot.value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Number(AtomicU32);
    // SAFETY: an atomic word; zero is a value of it.
    unsafe impl Plain for Number {}

    #[test]
    fn garbage_and_stale_handles_are_told_from_live_ones() {
        static ARENA: Arena<Number> = Arena::new(4);
        assert!(ARENA.get(64 as *mut c_void).is_none(), "before the first claim");
        let first = ARENA.claim(|n| n.0.store(7, Ordering::Relaxed)).expect("room");
        let handle = ARENA.handle(first);
        assert_eq!(ARENA.get(handle).expect("live").0.load(Ordering::Relaxed), 7);
        for garbage in [
            0usize,
            1,
            2,
            8,
            usize::MAX,
            handle as usize + 1,
            handle as usize + 64,
        ] {
            assert!(ARENA.get(garbage as *mut c_void).is_none(), "{garbage:#x}");
        }
        assert!(ARENA.end(handle));
        assert!(!ARENA.end(handle), "only once");
        assert!(ARENA.get(handle).is_none());
        ARENA.recycle(handle);
        let again = ARENA.claim(|_| {}).expect("room");
        assert_eq!(ARENA.handle(again), handle, "the slot is used again");
        for _ in 0..3 {
            assert!(ARENA.claim(|_| {}).is_ok());
        }
        assert!(ARENA.claim(|_| {}).is_err(), "full");
    }
}
