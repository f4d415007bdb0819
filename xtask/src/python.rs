//! Tools from the Python package index, in a virtual environment under the target directory.

use std::path::PathBuf;

use crate::{inner, layout::Layout, steps::Steps, system};

/// The program `name` of the pinned `requirement`, installed once; the error says why it is not to be had.
pub fn tool(steps: &mut Steps, layout: &Layout, name: &str, requirement: &str) -> Result<PathBuf, String> {
    tools(steps, layout, name, &[requirement])
}

/// The same for a program that needs further pinned requirements beside it.
pub fn tools(
    steps: &mut Steps,
    layout: &Layout,
    name: &str,
    requirements: &[&str],
) -> Result<PathBuf, String> {
    let requirement = requirements.join(" ");
    let home = layout
        .cache()
        .join(requirement.replace("==", "-").replace(' ', "_"));
    let program = home.join("bin").join(name);
    if program.is_file() {
        return Ok(program);
    }
    system::provide(steps, "python3", "python3")?;
    if inner::quiet(inner::command("python3").args(["-c", "import ensurepip"])).is_err() {
        system::install(steps, "python3-venv")?;
    }
    let made = inner::quiet(inner::command("python3").args(["-m", "venv"]).arg(&home)).and_then(|_| {
        inner::quiet(
            inner::command(home.join("bin/pip"))
                .args(["--disable-pip-version-check", "install", "--quiet", "--no-deps"])
                .args(requirements),
        )
    });
    match made {
        Ok(_) if program.is_file() => Ok(program),
        Ok(_) => Err(format!("{requirement} brought no {name}")),
        Err(error) => Err(format!("{requirement} could not be installed: {error:#}").replace('\n', " | ")),
    }
}
