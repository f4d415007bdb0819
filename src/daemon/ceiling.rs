//! The most that may be asked for: what was set for an account binds every launch in it, and a guaranteed share of compute
//! lies below its limit. `daemon/answer.rs` asks for launches, `daemon/set.rs` for what is set, `daemon/regrant.rs` always.

use std::time::SystemTime;

use super::core::Core;
use crate::admission::identity::{Peer, Place, place_of};
use crate::config::share_above_limit;
use crate::config::units::{Bytes, Memory, Ratio};
use crate::exit::Failure;
use crate::protocol::Launch;
use crate::state::{Key, Overrides, Setting};

impl Core {
    /// The cap that was set for the account in which the launch of `place` lies, or for its tenant, and for which of them it
    /// was set. No launch there has more, whoever asked.
    pub fn set_over(&self, place: &Place) -> Option<(String, &Setting)> {
        if !place.asked {
            return None;
        }
        // A part is named after what it is a part of.
        let mut around = place.account.as_str();
        let mut targets = Vec::new();
        while let Some((whole, _)) = around.rsplit_once('#') {
            targets.push(whole);
            around = whole;
        }
        if targets.is_empty() {
            targets.push(around);
        }
        targets.push(&place.tenant);
        let set = |target: &str| Some((target.to_string(), self.overrides.cap(target)?));
        targets.into_iter().find_map(set)
    }

    /// A launch may not ask for more than was set; else exit 64.
    pub fn check_set_over(&self, place: &Place) -> Result<(), Failure> {
        let Some((target, setting)) = self.set_over(place) else {
            return Ok(());
        };
        let most: Memory = setting.text.parse().map_err(Failure::failed)?;
        for device in &self.inventory.devices {
            let total = Bytes(device.total_bytes);
            let bytes = |memory: Memory| memory.on_device(total).unwrap_or(total).0;
            let (asked, most) = (bytes(place.memory.cap), bytes(most));
            if asked > most {
                return Err(Failure::usage(format!(
                    "{asked} bytes were asked, and the cap of {target} on device {} is {most} bytes, set by {}: ask for at \
                     most that, or raise it, `stint set {target} memory=…`",
                    device.index, setting.by
                )));
            }
        }
        Ok(())
    }

    /// What was set for an account is for all of it: a launch in it takes its part from there, also one by somebody who
    /// could ask for anything. Not where `peer` is in no account: there is no whole then.
    pub fn carve_from_what_is_set(&self, place: &mut Place, peer: &Peer, now: SystemTime) {
        let Some((around, _)) = place.account.rsplit_once('#') else {
            return;
        };
        if self.set_over(place).is_none() {
            return;
        }
        let whole = place_of(&self.config, &self.launches, peer, now).place();
        if whole.is_some_and(|whole| whole.account == around) {
            place.carved_from = Some(around.into());
        }
    }

    /// A share above its limit, as the two would be for a launch that places its clients at `place`; exit 64.
    pub fn check_compute_of_launch(&self, place: &Place, asked: &Launch) -> Result<(), Failure> {
        if asked.share.is_none() && asked.limit.is_none() {
            return Ok(());
        }
        let ratio = |text: &String| text.parse::<Ratio>().map_err(Failure::usage);
        let share = asked.share.as_ref().map(ratio).transpose()?;
        let limit = asked.limit.as_ref().map(ratio).transpose()?;
        let (of_share, of_limit) = self.compute_of(&self.overrides, place);
        share_above_limit(share.or(of_share), limit.or(of_limit)).map_err(Failure::usage)
    }

    /// The same for an account after `next` is in force.
    pub fn check_compute_of(&self, next: &Overrides, place: &Place) -> Result<(), Failure> {
        let (share, limit) = self.compute_of(next, place);
        let told = |why| format!("{}: {why}", place.account);
        share_above_limit(share, limit).map_err(|why| Failure::usage(told(why)))
    }

    /// `share` and `limit` of an account: what is set for it, else for its tenant, else the quota file's.
    fn compute_of(&self, overrides: &Overrides, place: &Place) -> (Option<Ratio>, Option<Ratio>) {
        let rules = self.config.rules_of(&place.tenant, SystemTime::now());
        let set = |key: Key| -> Option<Ratio> {
            let of = |target: &str| overrides.get(target, key)?.text.parse().ok();
            of(&place.account).or_else(|| of(&place.tenant))
        };
        (set(Key::Share).or(rules.share), set(Key::Limit).or(rules.limit))
    }
}
