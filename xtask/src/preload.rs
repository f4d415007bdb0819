//! Directories to preload from, one per value of the loader's `$LIB`, so that each program gets what it can load: a 64-bit
//! glibc program the libraries, a 32-bit one an empty library of the same name. musl's loader knows no `$LIB` and finds
//! nothing, which it does not mind; with a plain path it would refuse to start the program.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use crate::{inner, layout::beside, link, steps::Steps};

/// `$LIB` of 64-bit programs, by distribution, and how many directories that is.
const WIDE: [(&str, usize); 3] = [("lib/x86_64-linux-gnu", 2), ("lib64", 1), ("lib", 1)];
/// The same of 32-bit programs; where it is `lib` too, the loader names the file it cannot take.
const NARROW: [&str; 2] = ["lib/i386-linux-gnu", "lib32"];

/// Lays out `root/preload` for the libraries `names` of `root/lib`.
pub fn lay_out(steps: &mut Steps, root: &Path, names: &[&str]) -> Result<()> {
    let directory = root.join("preload");
    for (lib, depth) in WIDE {
        for name in names {
            let target = format!("{}lib/{name}", "../".repeat(depth + 1));
            link::alias(&make(&directory.join(lib))?.join(name), &target)?;
        }
    }
    for lib in NARROW {
        for name in names {
            if let Err(error) = empty(&make(&directory.join(lib))?.join(name)) {
                steps.skip("silence of the loader in 32-bit programs", &format!("{error:#}"));
                return Ok(());
            }
        }
    }
    Ok(())
}

fn make(directory: &Path) -> Result<&Path> {
    fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    Ok(directory)
}

/// Links a 32-bit library with nothing in it.
fn empty(to: &Path) -> Result<()> {
    let temporary = beside(to);
    inner::quiet(
        inner::command("cc")
            .args(["-m32", "-shared", "-nostdlib", "-Wl,-soname,libstint-nothing.so"])
            .args(["-Wl,--build-id=none", "-x", "c", "/dev/null", "-o"])
            .arg(&temporary),
    )?;
    fs::rename(&temporary, to).with_context(|| format!("cannot put {} in place", to.display()))
}
