//! `cargo xtask build`: everything runnable in place under `target/stint`, in the form of an installed tree.
//!
//! The shim and the stand-in are built optimised, because their cost per call is what users feel; `stint` itself with
//! the settings that tests use, so that its dependencies are compiled once.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::{
    inner,
    layout::{Layout, beside},
    link::{self, Library},
    preload,
    steps::Steps,
    symbols, system,
};

/// Builds, links and lays out all artefacts.
pub fn build(steps: &mut Steps, layout: &Layout) -> Result<()> {
    system::need(steps, "gcc", "cc", "the linker of everything")?;
    // One Cargo call per product that others load: features unify over a call, and the shim gets nobody else's.
    steps.step("build the shim", |_| {
        inner::run(inner::cargo(layout).args([
            "build",
            "--release",
            "-p",
            "stint-shim",
            "-p",
            "stint-shim-nvml",
        ]))
    })?;
    steps.step("build the stand-in", |_| {
        inner::run(inner::cargo(layout).args(["build", "--release", "-p", "simgpu"]))
    })?;
    // The whole workspace's features, so that the tests use the same dependencies.
    steps.step("build stint", |_| {
        inner::run(inner::cargo(layout).args(["build", "--workspace", "--bin", "stint"]))
    })?;
    steps.step("lay out target/stint", |steps| {
        lay_out(layout)?;
        let root = layout.artefacts();
        preload::lay_out(steps, &root, &["libstint.so", "libstint-nvml.so"])?;
        // The runtimes lie in the stand-in's own tree, which is a package of its own.
        preload::lay_out(steps, &root.join("sim"), &["libcudart.so.12", "libcudart.so.13"])
    })
}

/// Copies programs and links libraries; each file is replaced in one step, since a running program may map the old one.
fn lay_out(layout: &Layout) -> Result<()> {
    let to = layout.artefacts();
    let release = layout.target.join("release");
    copy(&layout.target.join("debug/stint"), &to.join("bin/stint"))?;
    copy(&release.join("libstint_shim.so"), &to.join("lib/libstint.so"))?;
    copy(
        &release.join("libstint_shim_nvml.so"),
        &to.join("lib/libstint-nvml.so"),
    )?;
    copy(&release.join("stint-sim"), &to.join("sim/bin/stint-sim"))?;

    let profiles = [
        ("13", symbols::of_the_table()),
        ("12.9", symbols::read(&layout.names("cuda-12.9.txt"))?),
    ];
    for (profile, names) in profiles {
        let lib = to.join("sim").join(profile).join("lib");
        let cuda = Library {
            soname: "libcuda.so.1",
            node: None,
            names: names.into_iter().collect(),
            beside: None,
        };
        link::link(layout, &cuda, &lib.join("libcuda.so.1"))?;
        link::alias(&lib.join("libcuda.so"), "libcuda.so.1")?;
        let nvml = Library {
            soname: "libnvidia-ml.so.1",
            node: None,
            names: vec!["nvml*".to_owned()],
            beside: None,
        };
        link::link(layout, &nvml, &lib.join("libnvidia-ml.so.1"))?;
    }
    for version in ["12", "13"] {
        let soname = format!("libcudart.so.{version}");
        let names = symbols::read(&layout.names(&format!("cudart-{version}.txt")))?;
        let runtime = Library {
            soname: &soname,
            node: Some(&soname),
            names: names.into_iter().collect(),
            beside: None,
        };
        link::link(layout, &runtime, &to.join("sim/lib").join(&soname))?;
    }
    describe(&to)
}

/// Man pages and completions, written by the program they describe.
fn describe(to: &Path) -> Result<()> {
    let stint = to.join("bin/stint");
    inner::run(inner::command(&stint).arg("man").arg(to.join("share/man/man1")))?;
    for (shell, file) in [
        ("bash", "bash-completion/completions/stint"),
        ("zsh", "zsh/vendor-completions/_stint"),
        ("fish", "fish/vendor_completions.d/stint.fish"),
    ] {
        let file = to.join("share").join(file);
        std::fs::create_dir_all(file.parent().context("a completion needs a directory")?)?;
        let made = inner::command(&stint).args(["completions", shell]).output()?;
        ensure!(
            made.status.success(),
            "no completions for {shell}: {}",
            String::from_utf8_lossy(&made.stderr)
        );
        std::fs::write(&file, made.stdout).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// Copies one file by write and rename.
fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to.parent().context("an artefact needs a directory")?)?;
    let temporary = beside(to);
    std::fs::copy(from, &temporary)
        .with_context(|| format!("cannot copy {} to {}", from.display(), temporary.display()))?;
    std::fs::rename(&temporary, to).with_context(|| format!("cannot put {} in place", to.display()))
}
