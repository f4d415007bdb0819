//! What one context costs on each device: makes one through CUDA, reads in NVML what this process then holds, releases it.
//! Run in a child that ends afterwards, so that no handle of a driver stays open.

use std::ffi::{c_int, c_uint, c_void};
use std::path::Path;

use driver::abi::{CUcontext, CUdevice, CUuuid};
use driver::{CuResult, CudaError};
use libloading::{Library, Symbol};
use nvml_wrapper::Nvml;

use super::child::Context;
use super::worker::processes;

/// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT`.
const MULTIPROCESSORS: c_int = 16;

struct Cuda {
    library: Library,
}

impl Cuda {
    fn open(path: &Path) -> Result<Cuda, String> {
        // SAFETY: loading a CUDA driver runs its constructors, which are written to be run by any program.
        let library = unsafe { Library::new(path) }.map_err(|error| error.to_string())?;
        Ok(Cuda { library })
    }

    /// The function `name` of type `F`.
    ///
    /// # Safety
    /// `F` must be the type that cuda.h gives the function `name`.
    unsafe fn function<F>(&self, name: &str) -> Result<Symbol<'_, F>, String> {
        // SAFETY: the caller vouches for the type.
        unsafe { self.library.get(name) }.map_err(|error| error.to_string())
    }

    fn init(&self) -> Result<(), String> {
        // SAFETY: the type is that of cuda.h.
        let init = unsafe { self.function::<extern "C" fn(c_uint) -> CuResult>("cuInit") }?;
        init(0).map_err(told("cuInit"))
    }

    fn count(&self) -> Result<c_int, String> {
        let mut count = 0;
        // SAFETY: as above.
        let get = unsafe { self.function::<extern "C" fn(*mut c_int) -> CuResult>("cuDeviceGetCount") }?;
        get(&mut count).map_err(told("cuDeviceGetCount"))?;
        Ok(count)
    }

    fn device(&self, ordinal: c_int) -> Result<CUdevice, String> {
        let mut device = 0;
        // SAFETY: as above.
        let get = unsafe { self.function::<extern "C" fn(*mut CUdevice, c_int) -> CuResult>("cuDeviceGet") }?;
        get(&mut device, ordinal).map_err(told("cuDeviceGet"))?;
        Ok(device)
    }

    fn uuid(&self, device: CUdevice) -> Result<[u8; 16], String> {
        let mut uuid = [0u8; 16];
        // SAFETY: as above; a CUuuid is 16 bytes.
        let get =
            unsafe { self.function::<extern "C" fn(*mut CUuuid, CUdevice) -> CuResult>("cuDeviceGetUuid") }?;
        get((&raw mut uuid).cast(), device).map_err(told("cuDeviceGetUuid"))?;
        Ok(uuid)
    }

    fn multiprocessors(&self, device: CUdevice) -> Result<u32, String> {
        let mut count = 0;
        type Get = extern "C" fn(*mut c_int, c_int, CUdevice) -> CuResult;
        // SAFETY: as above.
        let get = unsafe { self.function::<Get>("cuDeviceGetAttribute") }?;
        get(&mut count, MULTIPROCESSORS, device).map_err(told("cuDeviceGetAttribute"))?;
        u32::try_from(count).map_err(|error| error.to_string())
    }

    /// Runs `look` while the device's primary context exists.
    fn with_context<T>(&self, device: CUdevice, look: impl FnOnce() -> T) -> Result<T, String> {
        let mut context: CUcontext = std::ptr::null_mut::<c_void>().cast();
        type Retain = extern "C" fn(*mut CUcontext, CUdevice) -> CuResult;
        // SAFETY: as above.
        let retain = unsafe { self.function::<Retain>("cuDevicePrimaryCtxRetain") }?;
        // SAFETY: as above.
        let release =
            unsafe { self.function::<extern "C" fn(CUdevice) -> CuResult>("cuDevicePrimaryCtxRelease_v2") }?;
        retain(&mut context, device).map_err(told("cuDevicePrimaryCtxRetain"))?;
        let seen = look();
        release(device).map_err(told("cuDevicePrimaryCtxRelease"))?;
        Ok(seen)
    }
}

fn told(function: &'static str) -> impl Fn(CudaError) -> String {
    move |error| format!("{function}: {error:?}")
}

/// Measures every device CUDA shows. One that fails is listed without a cost.
pub fn measure(cuda: &Path, nvml: &Nvml) -> Result<Vec<Context>, String> {
    let cuda = Cuda::open(cuda)?;
    cuda.init()?;
    (0..cuda.count()?)
        .map(|ordinal| {
            let device = cuda.device(ordinal)?;
            let uuid = cuda.uuid(device)?;
            let sm_count = cuda.multiprocessors(device).ok();
            let bytes = cuda.with_context(device, || held(nvml, uuid)).ok().flatten();
            Ok(Context {
                uuid,
                bytes,
                sm_count,
            })
        })
        .collect()
}

/// Bytes this process holds of the device with `uuid`, as NVML has it; `None`: it does not say.
fn held(nvml: &Nvml, uuid: [u8; 16]) -> Option<u64> {
    let all = (0..nvml.device_count().ok()?).filter_map(|index| nvml.device_by_index(index).ok());
    let mut ours = all.filter(|device| {
        device
            .uuid()
            .is_ok_and(|text| super::uuid_bytes(&text) == Some(uuid))
    });
    let listed = processes(&ours.next()?)?;
    listed
        .into_iter()
        .find(|process| process.pid == std::process::id())?
        .used_bytes
}
