//! Clients that are source here: C over the driver, C and CUDA C++ over the runtime, Rust over cudarc.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};

use super::{Client, source, venv::CUDA_13};
use crate::harness::{
    artefacts::{self, Profile},
    outcome::run,
    root, wheels,
};

/// One compilation at a time.
static COMPILING: Mutex<()> = Mutex::new(());

/// Runs a compiler; what it said is the error.
fn compile(command: &mut Command, out: PathBuf) -> Result<Client, String> {
    let _one_at_a_time = COMPILING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let outcome = run(command);
    if outcome.code == 0 {
        Ok(Client::program(out))
    } else {
        panic!("{command:?}\n{}", outcome.stderr)
    }
}

fn out(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients");
    fs::create_dir_all(&directory).expect("a directory for clients can be made");
    directory.join(name)
}

/// C linked with `-lcuda`.
pub fn linked() -> Result<Client, String> {
    let out = out("linked");
    let mut command = Command::new("gcc");
    command
        .arg("-o")
        .arg(&out)
        .arg(source("grow.c"))
        .arg("-L")
        .arg(artefacts::stand_in(Profile::V13))
        .arg("-lcuda");
    compile(&mut command, out)
}

/// C that opens `libcuda.so`.
pub fn opened() -> Result<Client, String> {
    let out = out("opened");
    let mut command = Command::new("gcc");
    compile(
        command
            .arg("-DOPENED")
            .arg("-o")
            .arg(&out)
            .arg(source("grow.c"))
            .arg("-ldl"),
        out,
    )
}

/// C against the 12.9 runtime's headers, linked to `libcudart.so.12`.
pub fn runtime_12() -> Result<Client, String> {
    let include = wheels::unpacked("nvidia-cuda-runtime-cu12==12.9.79")?.join("nvidia/cuda_runtime/include");
    // The runtime's headers include some of the compiler's, which are published apart.
    let compiler = wheels::unpacked("nvidia-cuda-crt==13.5.37")?.join("nvidia/cu13/include");
    let out = out("runtime12");
    let mut command = Command::new("gcc");
    command
        .arg("-isystem")
        .arg(include)
        .arg("-isystem")
        .arg(compiler)
        .arg("-o")
        .arg(&out)
        .arg(source("runtime.c"));
    compile(command.arg(artefacts::runtimes().join("libcudart.so.12")), out)
}

/// CUDA C++ by nvcc with a shared runtime, `libcudart.so.13`.
pub fn nvcc() -> Result<Client, String> {
    let toolkit = CUDA_13.packages()?.join("nvidia/cu13");
    let out = out("kernels");
    {
        // The wheel comes without the link that -lcudart looks for and without permission to run its tools.
        let _one_at_a_time = COMPILING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let link = toolkit.join("lib/libcudart.so");
        if !link.exists() {
            symlink("libcudart.so.13", &link).map_err(|error| error.to_string())?;
        }
        for directory in ["bin", "nvvm/bin"] {
            for tool in fs::read_dir(toolkit.join(directory))
                .into_iter()
                .flatten()
                .flatten()
            {
                fs::set_permissions(tool.path(), fs::Permissions::from_mode(0o755))
                    .map_err(|error| error.to_string())?;
            }
        }
    }
    let mut command = Command::new(toolkit.join("bin/nvcc"));
    command
        .args(["-cudart", "shared", "-arch", "sm_90", "-o"])
        .arg(&out)
        .arg(source("kernels.cu"));
    compile(&mut command, out)
}

/// Rust over cudarc, a workspace of its own.
pub fn cudarc() -> Result<Client, String> {
    let target = wheels::cache().join("cudarc");
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["build", "--quiet", "--manifest-path"])
        .arg(root().join("tests/clients/cudarc/Cargo.toml"));
    command
        .arg("--target-dir")
        .arg(&target)
        .env_remove("CUDARC_CUDA_VERSION")
        .env_remove("RUSTFLAGS");
    let _one_at_a_time = COMPILING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let outcome = run(&mut command);
    match outcome.code {
        0 => Ok(Client::program(target.join("debug/stint-client-cudarc"))),
        _ if outcome.stderr.contains("error[") || outcome.stderr.contains("could not compile") => {
            panic!("{}", outcome.stderr)
        }
        _ => Err(format!(
            "its crates are not to be had: {}",
            outcome.stderr.lines().last().unwrap_or_default()
        )),
    }
}
