//! Links the stand-in's libraries: `cc -shared` over the one archive, each with its own SONAME and version script.
//!
//! A version script beside rustc's own one is refused or silently ignored by the linkers, so the libraries are not
//! cdylibs; and one archive gives any number of symbol profiles without a second build.

use std::{
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{
    inner,
    layout::{Layout, beside},
    symbols,
};

/// One library to link.
pub struct Library<'a> {
    /// Its `DT_SONAME`, and the name of its file unless the caller says otherwise.
    pub soname: &'a str,
    /// The version node of every symbol, as NVIDIA's runtime has one; `None` for unversioned symbols.
    pub node: Option<&'a str>,
    /// The names it exports; a glob is allowed.
    pub names: Vec<String>,
    /// One more object or C file to link, whose names the archive lacks.
    pub beside: Option<PathBuf>,
}

/// Links `library` to `out`, which appears complete or not at all.
pub fn link(layout: &Layout, library: &Library<'_>, out: &Path) -> Result<()> {
    let directory = out.parent().context("a library needs a directory")?;
    std::fs::create_dir_all(directory)?;
    let temporary = beside(out);
    let script = temporary.with_added_extension("map"); // not `with_extension`: the last part keeps the name ours
    std::fs::write(
        &script,
        symbols::script(library.node, library.names.iter().map(String::as_str)),
    )?;
    let linked = inner::quiet(
        inner::command("cc")
            .arg("-shared")
            .arg("-o")
            .arg(&temporary)
            .arg(format!("-Wl,-soname,{}", library.soname))
            .arg(format!("-Wl,--version-script={}", script.display()))
            .args([
                "-Wl,--gc-sections",
                "-Wl,-z,now",
                "-Wl,-z,relro",
                "-Wl,-z,nodelete",
                "-Wl,-Bsymbolic",
                "-Wl,--strip-debug",
                "-Wl,--whole-archive",
            ])
            .arg(layout.archive())
            .args(&library.beside)
            .args([
                "-Wl,--no-whole-archive",
                "-static-libgcc", // as the driver does not need libgcc_s.so.1, either
                "-lc",
                "-lm",
                "-lpthread",
                "-ldl",
            ]),
    );
    std::fs::remove_file(&script)?;
    linked?;
    std::fs::rename(&temporary, out).with_context(|| format!("cannot put {} in place", out.display()))
}

/// Makes `name` a symbolic link to `to` in the same directory, replacing what was there.
pub fn alias(name: &Path, to: &str) -> Result<()> {
    let temporary = beside(name);
    symlink(to, &temporary)?;
    Ok(std::fs::rename(&temporary, name)?)
}

/// `cargo xtask link`: how tests make symbol profiles of their own.
pub fn command(layout: &Layout, arguments: &[String]) -> Result<()> {
    let (mut soname, mut names, mut out, mut node, mut beside) = (None, None, None, None, None);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let value = words.next().with_context(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--soname" => soname = Some(value.as_str()),
            "--names" => names = Some(PathBuf::from(value)),
            "--out" => out = Some(PathBuf::from(value)),
            "--node" => node = Some(value.as_str()),
            "--beside" => beside = Some(PathBuf::from(value)),
            other => bail!("unknown option {other}"),
        }
    }
    let names = symbols::read(&names.context("--names FILE is missing")?)?
        .into_iter()
        .collect();
    let library = Library {
        soname: soname.context("--soname NAME is missing")?,
        node,
        names,
        beside,
    };
    link(layout, &library, &out.context("--out FILE is missing")?)
}
