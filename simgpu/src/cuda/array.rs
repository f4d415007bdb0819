//! Arrays and mipmapped arrays by handle. An array lives while its handle does, and longer where a copy is under way.
//!
//! Next file of the walk: `array_api.rs`.

use super::array_form::Form;
use super::array_memory::ArrayMemory;
use super::context::Context;
use super::node::next_id;
use super::physical::Physical;
use driver::CudaError;
use driver::abi::{
    CUDA_ARRAY3D_DEFERRED_MAPPING, CUDA_ARRAY3D_DESCRIPTOR, CUDA_ARRAY3D_SPARSE, CUarray,
    CUarrayMapInfo_subresource, CUmipmappedArray,
};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// What of a sparse array is mapped: which tiles, to what.
pub type Tiles = BTreeMap<(u32, CUarrayMapInfo_subresource), Arc<Physical>>;

/// Where an array's elements are.
pub enum Store {
    /// At `at` bytes behind the beginning of memory that the levels of a mipmapped array share.
    Own { memory: Arc<ArrayMemory>, at: u64 },
    /// In physical memory the program maps. The stand-in keeps what is mapped, not the elements.
    Mapped(Arc<Mutex<Tiles>>),
}

pub struct Array {
    pub context: &'static Context,
    /// As the program gave it, reduced to the level it is of a mipmapped array.
    pub descriptor: CUDA_ARRAY3D_DESCRIPTOR,
    pub form: Form,
    pub store: Store,
    /// Level of a mipmapped array: its handle ends with that array's.
    level: bool,
}

pub struct Mipmapped {
    pub context: &'static Context,
    pub descriptor: CUDA_ARRAY3D_DESCRIPTOR,
    pub form: Form,
    /// Handles of the levels.
    pub levels: Vec<u64>,
    pub tiles: Option<Arc<Mutex<Tiles>>>,
}

#[derive(Default)]
struct Known {
    arrays: BTreeMap<u64, Arc<Array>>,
    mipmapped: BTreeMap<u64, Arc<Mipmapped>>,
}

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Default::default);

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Spaced, and apart from every other kind of handle.
fn fresh_handle() -> u64 {
    0x6000_0000_0000 + next_id() * 64
}

/// Whether the program maps the memory itself.
pub fn is_mapped_later(descriptor: &CUDA_ARRAY3D_DESCRIPTOR) -> bool {
    descriptor.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING) != 0
}

/// Makes an array in a context.
pub fn create(context: &'static Context, descriptor: &CUDA_ARRAY3D_DESCRIPTOR) -> Result<CUarray, CudaError> {
    let form = checked(descriptor)?;
    let store = if is_mapped_later(descriptor) {
        Store::Mapped(Arc::default())
    } else {
        let memory = ArrayMemory::take(context, form.tiled_bytes(), form.linear_bytes())?;
        Store::Own {
            memory: Arc::new(memory),
            at: 0,
        }
    };
    let array = Array {
        context,
        descriptor: *descriptor,
        form,
        store,
        level: false,
    };
    let handle = fresh_handle();
    known().arrays.insert(handle, Arc::new(array));
    Ok(handle as CUarray)
}

fn checked(descriptor: &CUDA_ARRAY3D_DESCRIPTOR) -> Result<Form, CudaError> {
    let form = Form::of(descriptor)?;
    if descriptor.Flags & CUDA_ARRAY3D_SPARSE != 0 && form.sparse_tile().is_none() {
        return Err(CudaError::INVALID_VALUE);
    }
    Ok(form)
}

/// Makes a mipmapped array of `levels` levels, at most as many as its extent has.
pub fn create_mipmapped(
    context: &'static Context,
    descriptor: &CUDA_ARRAY3D_DESCRIPTOR,
    levels: u32,
) -> Result<CUmipmappedArray, CudaError> {
    let form = checked(descriptor)?;
    if levels == 0 || levels > form.most_levels() {
        return Err(CudaError::INVALID_VALUE);
    }
    let forms: Vec<Form> = (0..levels).map(|level| form.level(level)).collect();
    let tiles: Option<Arc<Mutex<Tiles>>> = is_mapped_later(descriptor).then(Arc::default);
    let memory = match tiles {
        Some(_) => None,
        None => {
            let tiled = forms.iter().map(|level| level.tiled_bytes()).sum();
            let linear = forms.iter().map(|level| level.linear_bytes()).sum();
            Some(Arc::new(ArrayMemory::take(context, tiled, linear)?))
        }
    };
    let mut handles = Vec::new();
    let mut at = 0;
    let mut known = known();
    for (number, form) in forms.iter().enumerate() {
        let store = match (&memory, &tiles) {
            (Some(memory), _) => Store::Own {
                memory: memory.clone(),
                at,
            },
            (None, tiles) => Store::Mapped(tiles.clone().unwrap_or_default()),
        };
        at += form.linear_bytes();
        let half = |extent: usize| if extent == 0 { 0 } else { (extent >> number).max(1) };
        let layered = form.layers > 1;
        let array = Array {
            context,
            descriptor: CUDA_ARRAY3D_DESCRIPTOR {
                Width: half(descriptor.Width),
                Height: half(descriptor.Height),
                Depth: if layered {
                    descriptor.Depth
                } else {
                    half(descriptor.Depth)
                },
                ..*descriptor
            },
            form: *form,
            store,
            level: true,
        };
        let handle = fresh_handle();
        known.arrays.insert(handle, Arc::new(array));
        handles.push(handle);
    }
    let mipmapped = Mipmapped {
        context,
        descriptor: *descriptor,
        form,
        levels: handles,
        tiles,
    };
    let handle = fresh_handle();
    known.mipmapped.insert(handle, Arc::new(mipmapped));
    Ok(handle as CUmipmappedArray)
}

/// The array behind a handle; `INVALID_HANDLE` for garbage.
pub fn array(handle: CUarray) -> Result<Arc<Array>, CudaError> {
    let found = known().arrays.get(&(handle as u64)).cloned();
    found.ok_or(CudaError::INVALID_HANDLE)
}

/// The mipmapped array behind a handle; `INVALID_HANDLE` for garbage.
pub fn mipmapped(handle: CUmipmappedArray) -> Result<Arc<Mipmapped>, CudaError> {
    let found = known().mipmapped.get(&(handle as u64)).cloned();
    found.ok_or(CudaError::INVALID_HANDLE)
}

/// Ends an array's handle; `INVALID_HANDLE` for garbage and for a level, which is its mipmapped array's.
pub fn destroy(handle: CUarray) -> Result<(), CudaError> {
    let mut known = known();
    let handle = handle as u64;
    if known.arrays.get(&handle).is_none_or(|array| array.level) {
        return Err(CudaError::INVALID_HANDLE);
    }
    let gone = known.arrays.remove(&handle);
    drop(known);
    drop(gone); // its memory goes outside the lock
    Ok(())
}

/// Ends a mipmapped array and its levels.
pub fn destroy_mipmapped(handle: CUmipmappedArray) -> Result<(), CudaError> {
    let mut known = known();
    let gone = known
        .mipmapped
        .remove(&(handle as u64))
        .ok_or(CudaError::INVALID_HANDLE)?;
    let levels: Vec<_> = gone
        .levels
        .iter()
        .filter_map(|level| known.arrays.remove(level))
        .collect();
    drop(known);
    drop((gone, levels));
    Ok(())
}

/// Ends the arrays of a context.
pub fn drop_all_of(context: &'static Context) {
    let mut known = known();
    let of = |other: &'static Context| std::ptr::eq(other, context);
    let arrays: Vec<_> = known
        .arrays
        .extract_if(.., |_, array| of(array.context))
        .collect();
    let mipmapped: Vec<_> = known
        .mipmapped
        .extract_if(.., |_, array| of(array.context))
        .collect();
    drop(known);
    drop((arrays, mipmapped));
}

impl Array {
    /// Where its elements are; `NOT_SUPPORTED` for memory the program maps itself.
    pub fn base(&self) -> Result<u64, CudaError> {
        match &self.store {
            Store::Own { memory, at } => Ok(memory.base + at),
            Store::Mapped(_) => Err(CudaError::NOT_SUPPORTED),
        }
    }
}
