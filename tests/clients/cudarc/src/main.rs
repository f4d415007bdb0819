//! The clients' protocol over cudarc's safe layer, which opens `libcuda.so` and allocates with `cuMemAllocAsync`.

use std::error::Error;

use cudarc::driver::{CudaContext, CudaSlice, DriverError, LaunchConfig, PushKernelArg, sys::CUresult};

const KERNEL: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a){ret;}";

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["below"] => {
            println!("{}", context.name()?);
            let numbers = stream.clone_htod(&vec![1f32, 2., 3.])?;
            let zeros = stream.alloc_zeros::<f32>(1 << 20)?;
            println!("{:?} {}", stream.clone_dtoh(&numbers)?, zeros.len());
            let function = context
                .load_module(cudarc::nvrtc::Ptx::from_src(KERNEL))?
                .load_function("k")?;
            let mut launch = stream.launch_builder(&function);
            launch.arg(&numbers);
            // SAFETY: the kernel takes one pointer and does not touch it.
            unsafe { launch.launch(LaunchConfig::for_num_elems(100))? };
            stream.synchronize()?;
            println!("launched");
        }
        ["grow", step, count] => {
            let (step, count): (usize, usize) = (step.parse()?, count.parse()?);
            let (free, total) = context.mem_get_info()?;
            let mut kept: Vec<CudaSlice<u8>> = Vec::new();
            let mut error = 0;
            while kept.len() < count && error == 0 {
                // SAFETY: the bytes are never read.
                match unsafe { stream.alloc::<u8>(step << 20) } {
                    Ok(slice) => kept.push(slice),
                    Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => error = 2,
                    Err(other) => return Err(other.into()),
                }
            }
            println!(
                "free={free}\ntotal={total}\ngranted={}\nerror={error}",
                kept.len()
            );
        }
        _ => return Err("below | grow STEP_MIB COUNT".into()),
    }
    Ok(())
}
