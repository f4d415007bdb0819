//! One CUDA release as a judge: which functions its headers declare, and which rows they contradict.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use driver::table::{SYMBOLS, StreamApi, Symbol};

use crate::harness::{outcome::run, root, wheels};

/// The headers of one release.
pub struct Release {
    /// The pinned wheel.
    pub requirement: &'static str,
    /// Where its headers are in the wheel.
    pub include: &'static str,
}

/// What one release says.
pub struct Seen {
    /// Functions (`cuMemAlloc_v2`) that it declares.
    pub functions: BTreeSet<String>,
    /// Symbols of the table whose prototype it states: as a function, or as a typedef of the symbol's version.
    pub declared: BTreeSet<String>,
    /// Its typedefs `PFN_cuMemAlloc_v3020`.
    pub typedefs: BTreeSet<String>,
    /// Assertions that failed.
    pub wrong: Vec<String>,
}

const HEADERS: &str = "#include <cuda.h>\n#include <cudaGL.h>\n#include <cudaEGL.h>\n#include <vdpau/vdpau.h>\n#include <cudaVDPAU.h>\n\
    #include <cudaTypedefs.h>\n#include <cudaGLTypedefs.h>\n#include <cudaEGLTypedefs.h>\n#include <cudaVDPAUTypedefs.h>\n#include <cudaProfilerTypedefs.h>\n";

/// The plain names and, in a second reading, those with the per-thread default stream.
const READINGS: [&[&str]; 2] = [
    &["-D__CUDA_API_VERSION_INTERNAL"],
    &[
        "-D__CUDA_API_VERSION_INTERNAL",
        "-DCUDA_API_PER_THREAD_DEFAULT_STREAM",
    ],
];

/// The typedefs that state the prototype of `symbol` at its version.
pub fn typedefs_of(symbol: &Symbol) -> impl Iterator<Item = String> {
    let stem = format!("PFN_{}_v{}", symbol.row.row().base, symbol.version);
    let suffixes: &[&str] = match symbol.stream_api {
        StreamApi::Legacy => &[""],
        StreamApi::PerThread => &["_ptsz", "_ptds"],
    };
    suffixes.iter().map(move |suffix| format!("{stem}{suffix}"))
}

impl Release {
    /// Judges the whole table. The error says why the headers or the compiler are not to be had.
    pub fn judge(&self) -> Result<Seen, String> {
        let include = self.headers()?;
        let mut seen = Seen {
            functions: BTreeSet::new(),
            declared: BTreeSet::new(),
            typedefs: BTreeSet::new(),
            wrong: Vec::new(),
        };
        for reading in READINGS {
            let (functions, typedefs) = self.declarations(&include, reading)?;
            let mut assertions = String::new();
            for symbol in SYMBOLS {
                let arguments = symbol.row.row().c_arguments();
                if functions.contains(symbol.name) {
                    assertions.push_str(&assertion(
                        &format!("__typeof__(&{})", symbol.name),
                        symbol.name,
                        &arguments,
                    ));
                    seen.declared.insert(symbol.name.to_owned());
                }
                for typedef in typedefs_of(symbol).filter(|name| typedefs.contains(name)) {
                    assertions.push_str(&assertion(&typedef, &typedef, &arguments));
                    seen.declared.insert(symbol.name.to_owned());
                }
            }
            seen.wrong.extend(self.compile(&include, reading, &assertions)?);
            seen.functions.extend(functions);
            seen.typedefs.extend(typedefs);
        }
        Ok(seen)
    }

    /// What the headers say against one function having `arguments`.
    pub fn verdict_on(&self, function: &str, arguments: &str) -> Result<Vec<String>, String> {
        let include = self.headers()?;
        self.compile(
            &include,
            READINGS[0],
            &assertion(&format!("__typeof__(&{function})"), function, arguments),
        )
    }

    fn headers(&self) -> Result<PathBuf, String> {
        Ok(wheels::unpacked(self.requirement)?.join(self.include))
    }

    /// The functions and the typedefs that the preprocessed headers contain.
    fn declarations(
        &self,
        include: &Path,
        reading: &[&str],
    ) -> Result<(BTreeSet<String>, BTreeSet<String>), String> {
        let text = self.compiler(include, reading, &["-E", "-P"], HEADERS)?;
        let spaced: String = text
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || c == '_' {
                    c.to_string()
                } else {
                    format!(" {c} ")
                }
            })
            .collect();
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let is_function = |word: &str| {
            word.strip_prefix("cu")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
        };
        let functions = words
            .windows(3)
            .filter(|three| three[0] == "CUresult" && is_function(three[1]) && three[2] == "(")
            .map(|three| three[1].to_owned())
            .collect();
        let typedefs = words
            .iter()
            .filter(|word| word.starts_with("PFN_cu") && word.contains("_v"))
            .map(|word| (*word).to_owned())
            .collect();
        Ok((functions, typedefs))
    }

    /// Compiles the assertions; each failed one is a line with the release and the name.
    fn compile(&self, include: &Path, reading: &[&str], assertions: &str) -> Result<Vec<String>, String> {
        let errors = match self.compiler(
            include,
            reading,
            &["-fsyntax-only", "-fmax-errors=0"],
            &format!("{HEADERS}{assertions}"),
        ) {
            Ok(_) => return Ok(Vec::new()),
            Err(errors) => errors,
        };
        Ok(errors
            .lines()
            .filter(|line| line.contains("error"))
            .map(|line| format!("{}: {line}", self.requirement))
            .collect())
    }

    /// gcc over `source`; its stdout, or what it complained about.
    fn compiler(
        &self,
        include: &Path,
        reading: &[&str],
        mode: &[&str],
        source: &str,
    ) -> Result<String, String> {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!(
            "oracle-{:?}-{}.c",
            std::thread::current().id(),
            std::process::id()
        ));
        fs::write(&file, source).map_err(|error| error.to_string())?;
        let mut command = Command::new("gcc");
        command
            .args(mode)
            .args(reading)
            .arg("-I")
            .arg(include)
            .arg("-I")
            .arg(root().join("tests/oracle/stubs"))
            .arg(&file);
        let outcome = run(&mut command);
        fs::remove_file(&file).map_err(|error| error.to_string())?;
        if outcome.code == 0 {
            Ok(outcome.stdout)
        } else {
            Err(outcome.stderr)
        }
    }
}

/// A static assertion that `pointer` is the type of a function with `arguments`; its message is `name`.
fn assertion(pointer: &str, name: &str, arguments: &str) -> String {
    format!(
        "_Static_assert(__builtin_types_compatible_p({pointer}, CUresult (*)({arguments})), \"{name} is not ({arguments})\");\n"
    )
}
