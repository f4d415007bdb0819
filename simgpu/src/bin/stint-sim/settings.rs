//! What a node shall be like: command line into `NodeFacts`.

use crate::faults;
use crate::units;
use crate::{Failure, failure};
use clap::{Args, ValueEnum};
use simgpu::catalogue::Product;
use simgpu::facts::{Costs, NodeFacts};
use simgpu::model::Sharing;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Args)]
pub struct Settings {
    /// Devices: models h200, h100, a100, l4, t4, each with a count, 1 to 16 in all
    #[arg(long, value_name = "LIST", default_value = "h200:1")]
    devices: String,
    /// CUDA release the driver says it is
    #[arg(long, default_value = "13")]
    profile: Profile,
    /// `model`: work takes its time; `null`: every call as cheap as possible
    #[arg(long, default_value = "model")]
    timing: TimingName,
    /// Host time that one unit of device time takes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    time_scale: u32,
    /// Scatter of kernel durations; `off` also takes away cold first launches, the drift of the devices'
    /// clocks and what neighbours' copies do to bandwidth
    #[arg(long, value_name = "PERCENT|off", default_value = "15%", value_parser = units::noise)]
    noise: u32,
    /// Memory that the context of a process takes on a device; `model`: what it takes on such a device
    #[arg(long, value_name = "SIZE|model", default_value = "64MiB", value_parser = units::context)]
    context: units::Context,
    /// Streaming multiprocessors of every device, 20 to 400 [default: the model's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(20..=400))]
    sms: Option<u32>,
    /// How contexts of several processes share a device: in turns, or side by side as under MPS
    #[arg(long, default_value = "slices")]
    sharing: SharingName,
    /// Longest turn of a context while others wait, in device time
    #[arg(long, value_name = "DURATION", default_value = "1024us", value_parser = units::duration)]
    slice: u64,
    /// Device time of a switch between contexts
    #[arg(long, value_name = "DURATION", default_value = "50us", value_parser = units::duration)]
    switch: u64,
    /// Speed that a kernel side by side with others loses when these hold all other multiprocessors
    #[arg(long, value_name = "PERCENT|off", default_value = "25%", value_parser = units::noise)]
    interference: u32,
    /// TOML file of faults, costs and kernel durations (its format: head of `faults.rs`)
    #[arg(long, value_name = "FILE")]
    faults: Option<PathBuf>,
    /// Of UUIDs and noise
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Whether work that begins on memory while other is pending on it is counted; costs time
    #[arg(long, default_value = "off")]
    check_uses: Switch,
    /// Whether the driver's own calls cost time
    #[arg(long, default_value = "on")]
    costs: Switch,
}

#[derive(Clone, Copy, ValueEnum)]
enum Profile {
    #[value(name = "12.9")]
    Cuda12,
    #[value(name = "13")]
    Cuda13,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum TimingName {
    Model,
    Null,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum SharingName {
    Slices,
    Mps,
}

/// Devices to lose, and the device time after the start at which they are lost.
type Losses = Vec<(usize, u64)>;

impl Settings {
    pub fn node(&self) -> Result<(Box<NodeFacts>, Losses), Failure> {
        let products =
            Product::parse_list(&self.devices).map_err(|e| failure(64, format!("--devices: {e}")))?;
        let mut facts = NodeFacts::of(&products, self.seed, self.context.0);
        if let Some(sms) = self.sms {
            facts.devices.iter_mut().for_each(|device| device.sm_count = sms);
        }
        facts.driver_version = match self.profile {
            Profile::Cuda12 => 12_090,
            Profile::Cuda13 => 13_050,
        };
        facts.timing = (self.timing == TimingName::Null) as u32;
        facts.time_scale = self.time_scale;
        facts.noise_permille = self.noise;
        if self.noise == 0 {
            facts = facts.without_noise();
        }
        facts.check_uses = (self.check_uses == Switch::On) as u32;
        if self.costs == Switch::Off {
            facts.costs = Costs::OFF;
        }
        let losses = match &self.faults {
            Some(file) => faults::read(file, &mut facts).map_err(|e| failure(78, e))?,
            None => Vec::new(),
        };
        Ok((facts, losses))
    }

    pub fn sharing(&self) -> Sharing {
        match self.sharing {
            SharingName::Slices => Sharing::Sliced {
                slice: self.slice,
                switch: self.switch,
            },
            SharingName::Mps => Sharing::Together {
                interference: self.interference,
            },
        }
    }

    /// The same settings as arguments of `serve`.
    pub fn to_arguments(&self) -> Vec<OsString> {
        let name = |value: &dyn Fn() -> Option<clap::builder::PossibleValue>| {
            value().map(|v| v.get_name().to_owned()).unwrap_or_default()
        };
        let mut arguments: Vec<OsString> = vec![
            format!("--devices={}", self.devices).into(),
            format!("--profile={}", name(&|| self.profile.to_possible_value())).into(),
            format!("--timing={}", name(&|| self.timing.to_possible_value())).into(),
            format!("--time-scale={}", self.time_scale).into(),
            format!("--noise={}%", self.noise as f64 / 10.0).into(),
            format!("--context={}", self.context).into(),
            format!("--sharing={}", name(&|| self.sharing.to_possible_value())).into(),
            format!("--slice={}ns", self.slice).into(),
            format!("--switch={}ns", self.switch).into(),
            format!("--interference={}%", self.interference as f64 / 10.0).into(),
            format!("--seed={}", self.seed).into(),
            format!("--costs={}", name(&|| self.costs.to_possible_value())).into(),
            format!("--check-uses={}", name(&|| self.check_uses.to_possible_value())).into(),
        ];
        if let Some(sms) = self.sms {
            arguments.push(format!("--sms={sms}").into());
        }
        if let Some(file) = &self.faults {
            arguments.push("--faults".into());
            arguments.push(std::path::absolute(file).unwrap_or_else(|_| file.clone()).into());
        }
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        settings: Settings,
    }

    fn parse(arguments: &[&str]) -> Settings {
        Line::parse_from(["stint-sim"].iter().chain(arguments)).settings
    }

    #[test]
    fn multiprocessors_are_twenty_to_four_hundred() {
        let asked = |sms: &str| Line::try_parse_from(["stint-sim", "--devices=h200:16", "--sms", sms]);
        for sms in ["20", "400"] {
            let Ok((facts, _)) = asked(sms).expect("allowed").settings.node() else {
                panic!("valid settings")
            };
            assert_eq!(facts.devices().len(), 16);
            assert!(facts.devices().iter().all(|d| d.sm_count.to_string() == sms));
        }
        for sms in ["19", "401", "many"] {
            assert!(asked(sms).is_err(), "{sms}");
        }
    }

    #[test]
    fn settings_survive_the_way_to_the_server() {
        let line = "--devices=a100:2,t4 --profile=12.9 --timing=null --time-scale=7 --noise=2.5% \
                    --context=1GiB --seed=9 --costs=off --sms=64 --sharing=mps --interference=12.5% \
                    --check-uses=on";
        let first = parse(&line.split_whitespace().collect::<Vec<_>>());
        let again: Vec<_> = first
            .to_arguments()
            .into_iter()
            .map(|a| a.into_string().expect("text"))
            .collect();
        let again = parse(&again.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(first.to_arguments(), again.to_arguments());
        let Ok((facts, losses)) = again.node() else {
            panic!("valid settings")
        };
        assert_eq!(
            (facts.device_count, facts.driver_version, facts.timing),
            (3, 12_090, 1)
        );
        assert_eq!(
            (facts.time_scale, facts.noise_permille, facts.costs),
            (7, 25, Costs::OFF)
        );
        assert_eq!((facts.devices[0].context_bytes, facts.seed), (1 << 30, 9));
        assert_eq!(
            facts.devices().iter().map(|d| d.sm_count).collect::<Vec<_>>(),
            [64; 3]
        );
        assert_eq!(again.sharing(), Sharing::Together { interference: 125 });
        assert!(losses.is_empty());
        let line = "--context=model --slice=2ms --switch=100us --noise=off";
        let again: Vec<_> = parse(&line.split_whitespace().collect::<Vec<_>>()).to_arguments();
        let again = parse(&again.iter().filter_map(|a| a.to_str()).collect::<Vec<_>>());
        let Ok((facts, _)) = again.node() else {
            panic!("valid settings")
        };
        assert_eq!(
            (facts.devices[0].context_bytes, facts.devices[0].clock_ppb),
            (524 << 20, 0)
        );
        let (slice, switch) = (2_000_000, 100_000);
        assert_eq!(again.sharing(), Sharing::Sliced { slice, switch });
    }
}
