//! The keys of `[defaults]` and of every tenant: each by itself, then those that say something together.
//! `check/tenant.rs` is next.

use std::ops::Range;

use toml::Spanned;

use super::node::set;
use super::raw::{self, Scalar, parts};
use crate::config::reader::{File, told};
use crate::config::units::{self, Memory};
use crate::config::{
    At, MemoryRule, OnFull, OnIdle, Per, Pool, PoolContents, Priority, Rules, share_above_limit,
};

const STEPS: [&str; 6] = [
    "trim",
    "wait:5s",
    "spill:managed",
    "spill:pinned",
    "swap:idle",
    "oom",
];

impl File<'_> {
    /// Puts what `raw` says into `into`, and keeps the rest of it.
    pub(super) fn rules(&mut self, raw: &mut raw::Rules, into: &mut Rules) {
        let pers = [
            ("tenant", Per::Tenant),
            ("user", Per::User),
            ("job", Per::Job),
            ("container", Per::Container),
        ];
        set(&mut into.per, self.word(raw.per.take(), &pers));
        if let Some(memory) = raw.memory.take() {
            self.memory(memory, &mut into.memory);
        }
        self.compute(raw, into);
        let place = span(&raw.host_memory);
        let host_memory = self.parsed::<Memory>(raw.host_memory.take());
        self.later_if(place, "host_memory", host_memory.is_some());
        set(&mut into.host_memory, host_memory);
        set(&mut into.pool, self.word(raw.pool.take(), &Pool::WORDS));
        let contents = [
            ("keep", PoolContents::Keep),
            ("zero", PoolContents::Zero),
            ("poison", PoolContents::Poison),
        ];
        set(
            &mut into.pool_contents,
            self.word(raw.pool_contents.take(), &contents),
        );
        let place = span(&raw.idle_after);
        let idle_after = self.duration(raw.idle_after.take());
        self.later_if(place, "idle_after", idle_after.is_some());
        into.idle_after = idle_after.or(into.idle_after);
        let place = span(&raw.on_idle);
        let on_idles = [
            ("event", OnIdle::Event),
            ("pause", OnIdle::Pause),
            ("swap", OnIdle::Swap),
        ];
        let on_idle = self.word(raw.on_idle.take(), &on_idles);
        self.later_if(place, "on_idle", on_idle.is_some());
        set(&mut into.on_idle, on_idle);
        if let Some(steps) = raw.on_full.take() {
            self.on_full(steps, &mut into.on_full);
        }
    }

    /// `memory`: one value, or what is guaranteed and the cap.
    fn memory(&mut self, memory: raw::Memory, into: &mut MemoryRule) {
        match memory {
            raw::Memory::One(one) => set(into, self.parsed(Some(one)).map(MemoryRule::one)),
            raw::Memory::Two(two) => {
                let place = two.guaranteed.span();
                let guaranteed = self.parsed::<Memory>(Some(two.guaranteed));
                let burst = self.parsed::<Memory>(Some(two.burst));
                if let (Some(guaranteed), Some(burst)) = (guaranteed, burst) {
                    if guaranteed.surely_exceeds(burst) {
                        let message = format!(
                            "`guaranteed` ({guaranteed}) is more than `burst` ({burst}): write at most as much"
                        );
                        self.problem(place, message);
                    }
                    *into = MemoryRule {
                        guaranteed: Some(guaranteed),
                        cap: burst,
                    };
                }
            }
        }
    }

    /// `share`, `limit`, `priority`, `latency_guard`, `starve`.
    fn compute(&mut self, raw: &mut raw::Rules, into: &mut Rules) {
        let (share_at, limit_at) = (span(&raw.share), span(&raw.limit));
        let (share, limit) = (self.parsed(raw.share.take()), self.parsed(raw.limit.take()));
        self.later_if(share_at.clone(), "share", share.is_some());
        self.later_if(limit_at.clone(), "limit", limit.is_some());
        into.share = share.or(into.share);
        into.limit = limit.or(into.limit);
        if let Err(message) = share_above_limit(into.share, into.limit)
            && let Some(place) = share_at.or(limit_at)
        {
            self.problem(place, message);
        }
        let place = span(&raw.priority);
        let priorities = [
            ("low", Priority::Low),
            ("normal", Priority::Normal),
            ("high", Priority::High),
        ];
        let priority = self.word(raw.priority.take(), &priorities);
        self.later_if(place, "priority", priority.is_some());
        set(&mut into.priority, priority);
        let place = span(&raw.latency_guard);
        let guard = self.duration(raw.latency_guard.take());
        self.later_if(place, "latency_guard", guard.is_some());
        into.latency_guard = guard.or(into.latency_guard);
        if let Some(starve) = raw.starve.take() {
            self.later(starve.span(), "starve");
            into.starve = starve.into_inner();
        }
    }

    /// `on_full`: what happens at the cap, in order. Only `oom` does anything yet.
    fn on_full(&mut self, steps: Spanned<Vec<Scalar>>, into: &mut Vec<OnFull>) {
        let whole = steps.span();
        let mut read: Vec<OnFull> = Vec::new();
        for step in steps.into_inner() {
            let (place, text) = parts(&step);
            let step = match text {
                "trim" => OnFull::Trim,
                "spill:managed" => OnFull::SpillManaged,
                "spill:pinned" => OnFull::SpillPinned,
                "swap:idle" => OnFull::SwapIdle,
                "oom" => OnFull::Oom,
                _ => match text.strip_prefix("wait:").map(units::duration) {
                    Some(Ok(time)) => OnFull::Wait(time),
                    Some(Err(error)) => {
                        self.problem(place, error.to_string());
                        continue;
                    }
                    None => {
                        let problem = self.at(place, format!("`{text}` is not allowed here"));
                        self.push(problem.allow(text, &STEPS));
                        continue;
                    }
                },
            };
            if read.contains(&OnFull::Oom) {
                self.problem(place, format!("`{text}` is never reached: nothing follows `oom`"));
            } else if read
                .iter()
                .any(|known| std::mem::discriminant(known) == std::mem::discriminant(&step))
            {
                self.problem(place, format!("`{text}` stands in the list twice: write it once"));
            } else {
                read.push(step);
            }
        }
        if read.is_empty() && self.told_inside(whole.clone()) {
            return;
        }
        if read.is_empty() {
            let nothing = self.at(whole, "no step: write at least \"oom\"");
            return self.push(nothing.allow("", &STEPS));
        }
        self.later_if(Some(whole), "on_full", read != [OnFull::Oom]);
        *into = read;
    }

    fn duration(&mut self, scalar: Option<Scalar>) -> Option<std::time::Duration> {
        self.value(scalar, |text| units::duration(text).map_err(told))
    }

    /// Where the stanza says how much memory.
    pub(super) fn memory_at(&self, rules: &raw::Rules) -> Option<At> {
        let scalar = match rules.memory.as_ref()? {
            raw::Memory::One(one) => one,
            raw::Memory::Two(two) => &two.burst,
        };
        Some(self.place(scalar.span()))
    }
}

/// Where a value stands, if it was written.
pub(super) fn span<T>(value: &Option<Spanned<T>>) -> Option<Range<usize>> {
    value.as_ref().map(Spanned::span)
}
