//! How a library is linked that is loaded into every program: under the SONAME it stands in for, never unloaded, and with as
//! little for the dynamic loader to do as there can be. Both build scripts include this file.
//!
//! Next: `src/lib.rs`.

use std::path::PathBuf;
use std::process::Command;

/// The linker's arguments for the library of this package; `sources` are the files of its build script.
pub fn preloaded(soname: &str, sources: [&str; 2]) {
    for source in sources {
        println!("cargo::rerun-if-changed={source}");
    }
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    argument(&format!("-Wl,-soname,{soname}"));
    // Code of other libraries may run in its functions at any time.
    argument("-Wl,-z,nodelete");
    // Its own functions are meant where it names them: no lookup, and no other library's of that name. It exports nothing but
    // functions, and the linker that builds for an older glibc knows no `-Bsymbolic-functions`.
    argument("-Wl,-Bsymbolic");
    // The unwinder comes along: as a library of its own it would be one more to load into every program.
    if let Some(unwinder) = unwinder() {
        argument("-Wl,--whole-archive");
        argument(&unwinder.display().to_string());
        argument("-Wl,--no-whole-archive");
    }
}

fn argument(text: &str) {
    println!("cargo::rustc-cdylib-link-arg={text}");
}

/// The C compiler's archive of the unwinder. `None` where it has none, or where another linker was asked for, which brings
/// its own.
fn unwinder() -> Option<PathBuf> {
    if std::env::var_os("RUSTC_LINKER").is_some() {
        return None;
    }
    let asked = Command::new("cc")
        .arg("-print-file-name=libgcc_eh.a")
        .output()
        .ok()?;
    let path = PathBuf::from(String::from_utf8(asked.stdout).ok()?.trim());
    // A name without a directory means that it was not found.
    (path.is_absolute() && path.exists()).then_some(path)
}
