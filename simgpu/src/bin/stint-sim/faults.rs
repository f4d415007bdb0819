//! The file of `--faults`: what goes wrong on the node, and what things cost there. All of it is
//! optional; an unknown key is an error.
//!
//! ```toml
//! [[fault]]                     # a function misbehaves, in each process on its own
//! function = "cuMemAlloc"       # name as cuGetProcAddress knows it (no _v2), or an NVML name
//! call = 3                      # the first call that is hit, from 1 (default 1)
//! count = 2                     # how many calls are hit (default 1), or "all"
//! error = 2                     # CUresult or nvmlReturn_t to return; absent: the call is only delayed
//! delay = "5ms"                 # host time to wait first
//! process = "victim"            # only in processes of this name (comm, 15 characters); absent: in all
//! sticky = true                 # from then on every call of the process returns the error
//!
//! [[lost]]                      # a device falls off the bus
//! device = 1
//! after = "2s"                  # device time since the node started (default: at once)
//!
//! [[break]]                     # a kernel breaks its context: every later call on it returns the error
//! kernel = "decode"             # part of the kernel's name
//! launch = 2                    # the launch that is hit, from 1 for each kernel of each process (default 1)
//! error = 700                   # 214, 220, 700, 702, 710 or 714 to 719
//! after = "2s"                  # device time that it runs first (default: as long as ever)
//! process = "victim"            # as above
//!
//! [costs]                       # device time that the driver's own calls take
//! launch = "2us"
//! record = "1500ns"
//! query = "1us"
//! alloc = "60us"
//! alloc_per_mib = "500ns"
//! free = "40us"
//! context = "5us"
//!
//! [kernels]                     # durations of kernels whose name contains the key, first match counts
//! default = "10us"              # of kernels nothing is known about
//! gemm = "120us"
//! ```

use crate::units::duration;
use serde::{Deserialize, Deserializer};
use simgpu::facts::{
    BREAKING, BreakRow, FaultRow, KernelRow, MAX_BREAKS, MAX_FAULTS, MAX_KERNELS, NodeFacts, Text,
};
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    fault: Vec<Fault>,
    #[serde(default)]
    lost: Vec<Lost>,
    #[serde(default, rename = "break")]
    breaks: Vec<Break>,
    #[serde(default)]
    costs: Costs,
    #[serde(default)]
    kernels: toml::map::Map<String, toml::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fault {
    function: String,
    #[serde(default = "one")]
    call: u64,
    #[serde(default)]
    count: Count,
    #[serde(default)]
    error: u32,
    #[serde(default)]
    delay: Span,
    #[serde(default)]
    process: String,
    #[serde(default)]
    sticky: bool,
}

fn one() -> u64 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lost {
    device: usize,
    #[serde(default)]
    after: Span,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Break {
    kernel: String,
    #[serde(default = "one")]
    launch: u64,
    error: u32,
    after: Option<Span>,
    #[serde(default)]
    process: String,
}

impl Break {
    fn row(&self) -> Result<BreakRow, String> {
        if self.launch == 0 || self.kernel.is_empty() {
            return Err(format!(
                "break of `{}`: a kernel needs a name, and launches are counted from 1",
                self.kernel
            ));
        }
        if !BREAKING.contains(&self.error) {
            return Err(format!(
                "break of {}: error {} breaks no context; there are {BREAKING:?}",
                self.kernel, self.error
            ));
        }
        Ok(BreakRow {
            kernel: fits("kernel", &self.kernel)?,
            process: fits("process", &self.process)?,
            launch: self.launch,
            code: self.error,
            lasts: self.after.is_some() as u32,
            after_ns: self.after.map_or(0, |span| span.0),
        })
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Costs {
    launch: Option<Span>,
    record: Option<Span>,
    query: Option<Span>,
    alloc: Option<Span>,
    alloc_per_mib: Option<Span>,
    free: Option<Span>,
    context: Option<Span>,
}

/// Nanoseconds, written as a duration.
#[derive(Clone, Copy, Default)]
struct Span(u64);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Span, D::Error> {
        duration(&String::deserialize(from)?)
            .map(Span)
            .map_err(serde::de::Error::custom)
    }
}

struct Count(u64);

impl Default for Count {
    fn default() -> Count {
        Count(1)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Count, D::Error> {
        match toml::Value::deserialize(from)? {
            toml::Value::Integer(n) if n > 0 => Ok(Count(n as u64)),
            toml::Value::String(all) if all == "all" => Ok(Count(u64::MAX)),
            other => {
                let text = format!("`{other}` is no count; write a number from 1 or \"all\"");
                Err(serde::de::Error::custom(text))
            }
        }
    }
}

/// Puts the file into `facts`; gives the devices to lose. The error names file, line and what is allowed.
pub fn read(path: &Path, facts: &mut NodeFacts) -> Result<Vec<(usize, u64)>, String> {
    let wrong = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let text = std::fs::read_to_string(path).map_err(|e| wrong(&e))?;
    apply(&text, facts).map_err(|e| wrong(&e))
}

fn apply(text: &str, facts: &mut NodeFacts) -> Result<Vec<(usize, u64)>, String> {
    let file: File = toml::from_str(text).map_err(|e| e.to_string())?;
    if file.fault.len() > MAX_FAULTS {
        return Err(format!(
            "{} tables [[fault]]; at most {MAX_FAULTS} are possible",
            file.fault.len()
        ));
    }
    for (i, fault) in file.fault.iter().enumerate() {
        if fault.call == 0 {
            return Err(format!(
                "fault of {}: call = 0; calls are counted from 1",
                fault.function
            ));
        }
        if fault.error == 0 && (fault.delay.0 == 0 || fault.sticky) {
            return Err(format!(
                "fault of {}: neither an `error` nor only a `delay`",
                fault.function
            ));
        }
        facts.faults[i] = FaultRow {
            function: fits("function", &fault.function)?,
            process: fits("process", &fault.process)?,
            call: fault.call,
            count: fault.count.0,
            code: fault.error,
            sticky: fault.sticky as u32,
            delay_ns: fault.delay.0,
        };
    }
    facts.fault_count = file.fault.len() as u32;
    let breaks = file
        .breaks
        .iter()
        .map(Break::row)
        .collect::<Result<Vec<_>, _>>()?;
    if breaks.len() > MAX_BREAKS {
        return Err(format!(
            "{} tables [[break]]; at most {MAX_BREAKS} are possible",
            breaks.len()
        ));
    }
    facts.breaks[..breaks.len()].copy_from_slice(&breaks);
    facts.break_count = breaks.len() as u32;
    let mut kernels = 0;
    for (name, value) in &file.kernels {
        let text = value
            .as_str()
            .ok_or_else(|| format!("kernel {name}: `{value}` is no duration"))?;
        let ns = duration(text).map_err(|e| format!("kernel {name}: {e}"))?;
        if name == "default" {
            facts.kernel_ns = ns;
            continue;
        }
        let row = facts.kernels.get_mut(kernels);
        let row = row.ok_or_else(|| format!("more than {MAX_KERNELS} kernels"))?;
        *row = KernelRow {
            name: fits("kernel", name)?,
            ns,
        };
        kernels += 1;
    }
    facts.kernel_count = kernels as u32;
    let costs = &mut facts.costs;
    for (cost, given) in [
        (&mut costs.launch, file.costs.launch),
        (&mut costs.record, file.costs.record),
        (&mut costs.query, file.costs.query),
        (&mut costs.alloc, file.costs.alloc),
        (&mut costs.alloc_per_mib, file.costs.alloc_per_mib),
        (&mut costs.free, file.costs.free),
        (&mut costs.context, file.costs.context),
    ] {
        *cost = given.map_or(*cost, |span| span.0);
    }
    let devices = facts.device_count as usize;
    match file.lost.iter().find(|lost| lost.device >= devices) {
        Some(lost) => Err(format!(
            "lost device {}; the node has 0 to {}",
            lost.device,
            devices - 1
        )),
        None => Ok(file.lost.iter().map(|lost| (lost.device, lost.after.0)).collect()),
    }
}

/// The text, if it fits.
fn fits<const N: usize>(what: &str, text: &str) -> Result<Text<N>, String> {
    let fit = Text::new(text);
    match fit.as_str() == text {
        true => Ok(fit),
        false => Err(format!("{what} `{text}` is longer than {} bytes", N - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simgpu::catalogue::{CONTEXT_BYTES, Product};

    fn facts() -> Box<NodeFacts> {
        NodeFacts::of(&[Product::T4; 2], 1, CONTEXT_BYTES)
    }

    #[test]
    fn the_documented_example_is_valid() {
        let head = include_str!("faults.rs")
            .lines()
            .map_while(|line| line.strip_prefix("//!"));
        let lines = head.skip_while(|line| !line.contains("```toml")).skip(1);
        let text: Vec<_> = lines.take_while(|line| !line.contains("```")).collect();
        let mut facts = facts();
        let losses = apply(&text.join("\n"), &mut facts).expect("the example");
        assert_eq!(losses, [(1, 2_000_000_000)]);
        let fault = facts.faults()[0];
        assert_eq!(
            (fault.function.as_str(), fault.call, fault.count, fault.code),
            ("cuMemAlloc", 3, 2, 2)
        );
        assert_eq!(
            (fault.delay_ns, fault.sticky, fault.process.as_str()),
            (5_000_000, 1, "victim")
        );
        assert_eq!(
            (facts.kernels()[0].name.as_str(), facts.kernels()[0].ns),
            ("gemm", 120_000)
        );
        let row = facts.breaks()[0];
        assert_eq!(
            (row.kernel.as_str(), row.launch, row.code, row.lasts, row.after_ns),
            ("decode", 2, 700, 1, 2_000_000_000)
        );
        assert_eq!(facts.costs, simgpu::facts::Costs::DEFAULT);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("[[fault]]\nfunction = \"cuInit\"\nerorr = 2", "erorr"),
            ("[[fault]]\nfunction = \"cuInit\"", "cuInit"),
            ("[[fault]]\nfunction = \"cuInit\"\nerror = 2\ncall = 0", "from 1"),
            (
                "[[fault]]\nfunction = \"cuInit\"\nerror = 2\ncount = 0",
                "no count",
            ),
            ("[[lost]]\ndevice = 2", "0 to 1"),
            ("[[break]]\nkernel = \"a\"\nerror = 2", "breaks no context"),
            ("[[break]]\nkernel = \"a\"\nerror = 700\nlaunch = 0", "from 1"),
            ("[[break]]\nkernel = \"\"\nerror = 700", "a name"),
            ("[costs]\nlaunch = 2", "line 2"),
            ("[kernels]\ngemm = \"fast\"", "gemm"),
        ] {
            let error = apply(text, &mut facts()).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
