//! `[devices.N]`: how one device is shared. The last of a file; back to `config/mod.rs`.

use toml::Spanned;

use super::node::set;
use super::raw::{self, Scalar, parts};
use super::rules::span;
use crate::config::reader::File;
use crate::config::{DeviceMode, DeviceRules, Policy};

/// Slices of compute a device is cut into.
const SLICES: u32 = 7;

impl File<'_> {
    pub(super) fn device(&mut self, raw: raw::Device) -> DeviceRules {
        let mut device = DeviceRules::default();
        let place = span(&raw.mode);
        let modes = [
            ("share", DeviceMode::Share),
            ("exclusive", DeviceMode::Exclusive),
            ("mps", DeviceMode::Mps),
            ("mig", DeviceMode::Mig),
        ];
        let mode = self.word(raw.mode, &modes);
        self.later_if(
            place.clone(),
            "mode",
            mode.is_some_and(|mode| mode != DeviceMode::Share),
        );
        set(&mut device.mode, mode);
        let at = span(&raw.policy);
        let policy = self.word(raw.policy, &[("fair", Policy::Fair), ("fifo", Policy::Fifo)]);
        self.later_if(at, "policy", policy.is_some());
        set(&mut device.policy, policy);
        if let Some(mig) = raw.mig {
            self.later(mig.span(), "mig");
            if let (Some(place), Some(mode)) = (place, mode)
                && mode != DeviceMode::Mig
            {
                self.problem(
                    place,
                    "a device with a MIG layout has the mode \"mig\": write that, or leave the layout out",
                );
            }
            device.mode = DeviceMode::Mig;
            device.mig_layout = Some(self.layout(mig.into_inner().layout));
        }
        device
    }

    fn layout(&mut self, layout: Spanned<Vec<Scalar>>) -> Vec<String> {
        let whole = layout.span();
        let mut slices = 0;
        let mut read = Vec::new();
        for profile in layout.into_inner() {
            let (place, text) = parts(&profile);
            match slices_of(text) {
                Some(of_compute) => {
                    slices += of_compute;
                    read.push(text.to_string());
                }
                None => {
                    self.problem(
                        place,
                        format!("`{text}` is not a MIG profile: write for example `3g.71gb`"),
                    );
                }
            }
        }
        if slices > SLICES {
            self.problem(
                whole,
                format!("{slices} slices of compute: a device has {SLICES}"),
            );
        } else if read.is_empty() && !self.told_inside(whole.clone()) {
            self.problem(
                whole,
                "no instance: write at least one profile, or leave the layout out",
            );
        }
        read
    }
}

/// Slices of compute of a profile such as `3g.71gb`, `1g.18gb+me`; of a part of one such as `1c.3g.71gb`, those of the whole.
fn slices_of(profile: &str) -> Option<u32> {
    let (profile, attribute) = profile.split_once('+').unwrap_or((profile, "me"));
    let mut parts = profile.split('.').collect::<Vec<_>>();
    let number = |text: &str, unit: &str| {
        text.strip_suffix(unit)?
            .parse::<u32>()
            .ok()
            .filter(|number| *number > 0)
    };
    let _memory = number(parts.pop()?, "gb")?;
    let slices = number(parts.pop()?, "g").filter(|slices| *slices <= SLICES)?;
    let part = parts.pop().map_or(Some(1), |part| number(part, "c"))?;
    let good = part <= slices && parts.is_empty() && !attribute.is_empty();
    (good && attribute.chars().all(|c| c.is_ascii_alphanumeric() || c == '.')).then_some(slices)
}
