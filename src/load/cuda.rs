//! The CUDA driver as `stint load` calls it: through `libcuda.so.1`, whoever stands behind that name.
//!
//! Handles and constants are cudarc's. The calls are not: cudarc declares every function as returning its `CUresult`
//! enum, and a code that enum does not know (any newer driver has some) is undefined behaviour the moment it is returned.
//! So each function is looked up here and returns a plain number. Nor is cudarc's own loading used, which panics without a
//! driver. Read next: `work.rs`.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::rc::Rc;

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUevent_flags_enum, CUfunction, CUmodule, CUresult, CUstream,
    CUstream_flags_enum,
};
use libloading::Library;

/// Why the driver did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CudaFailure {
    #[error(
        "libcuda.so.1 cannot be loaded ({0}): is there a driver? `stint run --driver sim` puts the stand-in in place"
    )]
    NoDriver(String),
    #[error("libcuda.so.1 has no {0}")]
    NoFunction(&'static str),
    #[error("{function}: {name} ({code})")]
    Call {
        function: &'static str,
        code: u32,
        name: String,
    },
}

impl CudaFailure {
    /// Whether memory was refused.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, CudaFailure::Call { code, .. } if *code == CUresult::CUDA_ERROR_OUT_OF_MEMORY as u32)
    }
}

macro_rules! functions {
    ($($name:ident($($argument:ty),*);)*) => {
        /// One address per function.
        #[allow(non_snake_case)]
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) -> c_uint,)*
            /// Keeps the addresses valid.
            _library: Library,
        }

        impl Functions {
            fn load() -> Result<Functions, CudaFailure> {
                // SAFETY: the driver's initialisers are those every CUDA program runs.
                let library = unsafe { Library::new("libcuda.so.1") }
                    .map_err(|error| CudaFailure::NoDriver(error.to_string()))?;
                Ok(Functions {
                    $($name: {
                        let name = concat!(stringify!($name), "\0");
                        // SAFETY: the type is the function's C prototype, its enums as numbers.
                        *unsafe { library.get(name.as_bytes()) }
                            .map_err(|_| CudaFailure::NoFunction(stringify!($name)))?
                    },)*
                    _library: library,
                })
            }
        }
    };
}

functions! {
    cuInit(c_uint);
    cuGetErrorName(c_uint, *mut *const c_char);
    cuDeviceGet(*mut CUdevice, c_int);
    cuDevicePrimaryCtxRetain(*mut CUcontext, CUdevice);
    cuDevicePrimaryCtxRelease_v2(CUdevice);
    cuCtxSetCurrent(CUcontext);
    cuMemGetInfo_v2(*mut usize, *mut usize);
    cuMemAlloc_v2(*mut CUdeviceptr, usize);
    cuMemFree_v2(CUdeviceptr);
    cuMemAllocHost_v2(*mut *mut c_void, usize);
    cuMemFreeHost(*mut c_void);
    cuMemcpyHtoDAsync_v2(CUdeviceptr, *const c_void, usize, CUstream);
    cuStreamCreate(*mut CUstream, c_uint);
    cuStreamSynchronize(CUstream);
    cuStreamDestroy_v2(CUstream);
    cuEventCreate(*mut CUevent, c_uint);
    cuEventRecord(CUevent, CUstream);
    cuEventSynchronize(CUevent);
    cuEventElapsedTime(*mut f32, CUevent, CUevent);
    cuEventDestroy_v2(CUevent);
    cuModuleLoadData(*mut CUmodule, *const c_void);
    cuModuleGetFunction(*mut CUfunction, CUmodule, *const c_char);
    cuModuleUnload(CUmodule);
    cuLaunchKernel(CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void, *mut *mut c_void);
}

/// Calls `$self.$name(…)` and turns its code into a result.
macro_rules! call {
    ($functions:expr, $name:ident($($argument:expr),*)) => {{
        let functions: &Functions = $functions;
        // SAFETY: every pointer passed is to a live value of the prototype's type; handles are of live objects, which
        // the wrapping types here guarantee.
        let code = unsafe { (functions.$name)($($argument),*) };
        functions.check(stringify!($name), code)
    }};
}

impl Functions {
    fn check(&self, function: &'static str, code: u32) -> Result<(), CudaFailure> {
        if code == CUresult::CUDA_SUCCESS as u32 {
            return Ok(());
        }
        let mut name: *const c_char = std::ptr::null();
        // SAFETY: the driver stores a pointer to a constant string, or null for a code it does not know.
        let known = unsafe { (self.cuGetErrorName)(code, &mut name) } == 0 && !name.is_null();
        let name = if known {
            // SAFETY: not null, and constant for the life of the driver.
            unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
        } else {
            "an error without a name".to_owned()
        };
        Err(CudaFailure::Call { function, code, name })
    }
}

/// The primary context of one device, current on the thread that made it. Everything made from it keeps it alive.
#[derive(Clone)]
pub struct Context(Rc<Inner>);

struct Inner {
    functions: Functions,
    device: CUdevice,
}

impl Drop for Inner {
    fn drop(&mut self) {
        let _ = call!(&self.functions, cuDevicePrimaryCtxRelease_v2(self.device)); // the process ends next
    }
}

impl Context {
    /// Loads the driver, initialises it and retains the primary context of device `ordinal`.
    pub fn open(ordinal: i32) -> Result<Context, CudaFailure> {
        let functions = Functions::load()?;
        call!(&functions, cuInit(0))?;
        let mut device = 0;
        call!(&functions, cuDeviceGet(&mut device, ordinal))?;
        let mut context = null_mut();
        call!(&functions, cuDevicePrimaryCtxRetain(&mut context, device))?;
        let inner = Inner { functions, device };
        call!(&inner.functions, cuCtxSetCurrent(context))?;
        Ok(Context(Rc::new(inner)))
    }

    fn functions(&self) -> &Functions {
        &self.0.functions
    }

    /// Free and total bytes as this process is shown them.
    pub fn memory(&self) -> Result<(u64, u64), CudaFailure> {
        let (mut free, mut total) = (0, 0);
        call!(self.functions(), cuMemGetInfo_v2(&mut free, &mut total))?;
        Ok((free as u64, total as u64))
    }

    /// `bytes` of device memory.
    pub fn allocate(&self, bytes: u64) -> Result<Buffer, CudaFailure> {
        let mut pointer = 0;
        call!(self.functions(), cuMemAlloc_v2(&mut pointer, bytes as usize))?;
        Ok(Buffer {
            context: self.clone(),
            pointer,
        })
    }

    /// `bytes` of page-locked host memory.
    pub fn allocate_host(&self, bytes: u64) -> Result<HostBuffer, CudaFailure> {
        let mut pointer = null_mut();
        call!(self.functions(), cuMemAllocHost_v2(&mut pointer, bytes as usize))?;
        Ok(HostBuffer {
            context: self.clone(),
            pointer,
            bytes: bytes as usize,
        })
    }

    /// A stream that does not wait for the default one.
    pub fn stream(&self) -> Result<Stream, CudaFailure> {
        let mut stream = null_mut();
        let flags = CUstream_flags_enum::CU_STREAM_NON_BLOCKING as c_uint;
        call!(self.functions(), cuStreamCreate(&mut stream, flags))?;
        Ok(Stream {
            context: self.clone(),
            stream,
        })
    }

    /// An event that keeps the device's time.
    pub fn event(&self) -> Result<Event, CudaFailure> {
        let mut event = null_mut();
        let flags = CUevent_flags_enum::CU_EVENT_BLOCKING_SYNC as c_uint;
        call!(self.functions(), cuEventCreate(&mut event, flags))?;
        Ok(Event {
            context: self.clone(),
            event,
        })
    }

    /// The kernel `entry` of the module `ptx`, which takes one 64-bit number.
    pub fn kernel(&self, ptx: &CStr, entry: &CString) -> Result<Kernel, CudaFailure> {
        let mut module = null_mut();
        call!(
            self.functions(),
            cuModuleLoadData(&mut module, ptx.as_ptr().cast())
        )?;
        let mut kernel = Kernel {
            context: self.clone(),
            module,
            function: null_mut(),
        };
        call!(
            self.functions(),
            cuModuleGetFunction(&mut kernel.function, module, entry.as_ptr())
        )?;
        Ok(kernel)
    }
}

/// Device memory, freed when dropped.
pub struct Buffer {
    context: Context,
    pointer: CUdeviceptr,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let _ = call!(self.context.functions(), cuMemFree_v2(self.pointer)); // a lost device: nothing to be done
    }
}

/// Page-locked host memory, freed when dropped.
pub struct HostBuffer {
    context: Context,
    pointer: *mut c_void,
    bytes: usize,
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        let _ = call!(self.context.functions(), cuMemFreeHost(self.pointer)); // as above
    }
}

/// A stream of work.
pub struct Stream {
    context: Context,
    stream: CUstream,
}

impl Stream {
    /// Waits until all that was submitted is done.
    pub fn synchronize(&self) -> Result<(), CudaFailure> {
        call!(self.context.functions(), cuStreamSynchronize(self.stream))
    }

    /// Submits a copy of all of `from` to the beginning of `to`. Both live until the stream was waited for: dropping
    /// either waits for the device.
    pub fn copy(&self, to: &Buffer, from: &HostBuffer) -> Result<(), CudaFailure> {
        call!(
            self.context.functions(),
            cuMemcpyHtoDAsync_v2(to.pointer, from.pointer, from.bytes, self.stream)
        )
    }

    /// Submits `kernel` with `grid` blocks and the one argument.
    pub fn launch(&self, kernel: &Kernel, grid: u32, argument: u64) -> Result<(), CudaFailure> {
        let mut argument = argument;
        let mut arguments = [(&raw mut argument).cast::<c_void>()];
        call!(
            self.context.functions(),
            cuLaunchKernel(
                kernel.function,
                grid,
                1,
                1,
                1,
                1,
                1,
                0,
                self.stream,
                arguments.as_mut_ptr(),
                null_mut()
            )
        )
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = call!(self.context.functions(), cuStreamDestroy_v2(self.stream)); // as above
    }
}

/// A point in a stream.
pub struct Event {
    context: Context,
    event: CUevent,
}

impl Event {
    /// Marks all that `stream` has so far.
    pub fn record(&self, stream: &Stream) -> Result<(), CudaFailure> {
        call!(self.context.functions(), cuEventRecord(self.event, stream.stream))
    }

    /// Waits until what was marked is done.
    pub fn synchronize(&self) -> Result<(), CudaFailure> {
        call!(self.context.functions(), cuEventSynchronize(self.event))
    }

    /// Seconds of device time from `start` to here; both are done.
    pub fn since(&self, start: &Event) -> Result<f64, CudaFailure> {
        let mut milliseconds = 0.0;
        call!(
            self.context.functions(),
            cuEventElapsedTime(&mut milliseconds, start.event, self.event)
        )?;
        Ok(f64::from(milliseconds) / 1e3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let _ = call!(self.context.functions(), cuEventDestroy_v2(self.event)); // as above
    }
}

/// A loaded kernel.
pub struct Kernel {
    context: Context,
    module: CUmodule,
    function: CUfunction,
}

impl Drop for Kernel {
    fn drop(&mut self) {
        let _ = call!(self.context.functions(), cuModuleUnload(self.module)); // as above
    }
}
