//! One device as the driver runs it: a queue per context, time slices between contexts with work, the cost of a switch,
//! copies beside, collectives that spin until all their ranks have begun. It keeps the true times; nothing here knows of a
//! scheduler. Read next: `tests/scheduling/model/client.rs`.

use std::collections::VecDeque;

/// Microseconds and milliseconds in nanoseconds.
pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000 * MS;

/// A collective: communicator and number.
pub type Collective = (u32, u64);

/// Work of one client, in its order.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    pub left_ns: u64,
    pub length_ns: u64,
    pub predicted_ns: u64,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Kernel,
    /// Runs beside kernels.
    Copy,
    Collective(Collective),
}

/// How a device shares between contexts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sharing {
    Slices,
    /// All at once; each of `n` slowed by `interference` for every other.
    Together {
        interference: f64,
    },
}

#[derive(Debug, Clone, Copy)]
pub struct Costs {
    pub slice_ns: u64,
    pub switch_ns: u64,
    pub drained_switch_ns: u64,
}

impl Default for Costs {
    fn default() -> Costs {
        Costs {
            slice_ns: 1024 * US,
            switch_ns: 100 * US,
            drained_switch_ns: 50 * US,
        }
    }
}

/// The context of one client on the device.
#[derive(Debug, Default)]
pub struct Context {
    pub queue: VecDeque<Work>,
    /// True time its kernels ran.
    pub busy_ns: u64,
    /// The collective at its head has begun.
    begun: bool,
    /// When the copy at its head ends.
    copy_until: Option<u64>,
}

/// See the module.
pub struct Engine {
    sharing: Sharing,
    costs: Costs,
    pub contexts: Vec<Context>,
    current: usize,
    running: bool,
    /// Until when the running part is accounted for.
    at_ns: u64,
    slice_end: u64,
    switching: Option<(usize, u64)>,
    pub busy_ns: u64,
    pub switch_ns: u64,
    pub idle_ns: u64,
    /// Collectives of which every rank has begun.
    ready: Vec<Collective>,
    /// Collectives that began here since last asked.
    pub began: Vec<(usize, Collective)>,
    /// Work that ended since last asked: context and work.
    pub ended: Vec<(usize, Work)>,
}

impl Engine {
    pub fn new(sharing: Sharing, costs: Costs) -> Engine {
        Engine {
            sharing,
            costs,
            contexts: Vec::new(),
            current: 0,
            running: false,
            at_ns: 0,
            slice_end: 0,
            switching: None,
            busy_ns: 0,
            switch_ns: 0,
            idle_ns: 0,
            ready: Vec::new(),
            began: Vec::new(),
            ended: Vec::new(),
        }
    }

    pub fn add(&mut self) -> usize {
        self.contexts.push(Context::default());
        self.contexts.len() - 1
    }

    /// Whether any kernel is queued or running.
    pub fn at_work(&self) -> bool {
        self.contexts.iter().any(|context| !context.queue.is_empty())
    }

    pub fn submit(&mut self, context: usize, work: Work, now: u64) {
        self.run_to(now);
        self.contexts[context].queue.push_back(work);
        self.settle(now);
    }

    /// The process died: what it had queued is gone.
    pub fn kill(&mut self, context: usize, now: u64) {
        self.run_to(now);
        let dead = &mut self.contexts[context];
        dead.queue.clear();
        dead.begun = false;
        dead.copy_until = None;
        if self.current == context {
            self.running = false;
        }
        self.settle(now);
    }

    /// Every rank has begun it.
    pub fn make_ready(&mut self, collective: Collective, now: u64) {
        self.run_to(now);
        self.ready.push(collective);
        self.settle(now);
    }

    /// When something changes here by itself.
    pub fn next(&self) -> Option<u64> {
        let copies = self
            .contexts
            .iter()
            .filter_map(|context| context.copy_until)
            .min();
        let compute = match (self.switching, self.sharing) {
            (Some((_, until)), _) => Some(until),
            (None, Sharing::Together { .. }) => {
                let (rate, heads) = self.rate();
                let left = heads.filter_map(|context| self.left(context)).min();
                left.map(|left| self.at_ns + (left as f64 / rate).ceil().max(1.0) as u64)
            }
            (None, Sharing::Slices) if self.running => {
                let end = self.left(self.current).map(|left| self.at_ns + left);
                let slice = self.others().then_some(self.slice_end.max(self.at_ns + 1));
                end.into_iter().chain(slice).min()
            }
            _ => None,
        };
        copies.into_iter().chain(compute).min()
    }

    /// Time passes.
    pub fn advance(&mut self, now: u64) {
        self.run_to(now);
        self.settle(now);
    }

    /// A kernel at the head of its queue.
    fn runnable(&self, context: usize) -> bool {
        let head = self.contexts[context].queue.front();
        head.is_some_and(|work| work.kind != Kind::Copy)
    }

    /// What is left of the kernel at the head; `None` while a collective spins.
    fn left(&self, context: usize) -> Option<u64> {
        let head = self.contexts[context].queue.front()?;
        match head.kind {
            Kind::Kernel => Some(head.left_ns),
            Kind::Collective(collective) => self.ready.contains(&collective).then_some(head.left_ns),
            Kind::Copy => None,
        }
    }

    fn others(&self) -> bool {
        (0..self.contexts.len()).any(|context| context != self.current && self.runnable(context))
    }

    fn rate(&self) -> (f64, impl Iterator<Item = usize>) {
        let heads: Vec<usize> = (0..self.contexts.len())
            .filter(|context| self.runnable(*context))
            .collect();
        let slowed = match self.sharing {
            Sharing::Together { interference } => 1.0 + interference * (heads.len().max(1) - 1) as f64,
            Sharing::Slices => 1.0,
        };
        (1.0 / heads.len().max(1) as f64 / slowed, heads.into_iter())
    }

    fn run_to(&mut self, now: u64) {
        let passed = now - self.at_ns;
        if passed == 0 {
            return;
        }
        if self.switching.is_some() {
            self.switch_ns += passed;
        } else if let Sharing::Together { .. } = self.sharing {
            let (rate, heads) = self.rate();
            let heads: Vec<usize> = heads.collect();
            let each = passed as f64 / heads.len().max(1) as f64;
            for context in &heads {
                self.contexts[*context].busy_ns += each as u64;
                self.progress(*context, (passed as f64 * rate).round() as u64);
            }
            *if heads.is_empty() {
                &mut self.idle_ns
            } else {
                &mut self.busy_ns
            } += passed;
        } else if self.running {
            self.busy_ns += passed;
            self.contexts[self.current].busy_ns += passed;
            self.progress(self.current, passed);
        } else {
            self.idle_ns += passed;
        }
        self.at_ns = now;
    }

    fn progress(&mut self, context: usize, by: u64) {
        if self.left(context).is_some()
            && let Some(head) = self.contexts[context].queue.front_mut()
        {
            head.left_ns = head.left_ns.saturating_sub(by);
        }
    }

    /// Ends what has ended, begins what can begin.
    fn settle(&mut self, now: u64) {
        loop {
            self.copies(now);
            if let Some((context, until)) = self.switching {
                if until > now {
                    return;
                }
                self.switching = None;
                self.enter(context, now);
            }
            if let Sharing::Together { .. } = self.sharing {
                for context in 0..self.contexts.len() {
                    self.begin(context);
                    if self.left(context).is_some_and(|left| left == 0) {
                        self.end_head(context);
                    }
                }
                if !(0..self.contexts.len())
                    .any(|context| self.left(context) == Some(0) || self.unbegun(context))
                {
                    return;
                }
                continue;
            }
            if self.running {
                self.begin(self.current);
                if self.left(self.current) == Some(0) {
                    self.end_head(self.current);
                    self.copies(now);
                    self.running = self.runnable(self.current) && !(now >= self.slice_end && self.others());
                    if self.running {
                        continue;
                    }
                } else if now >= self.slice_end && self.others() {
                    if let Some(next) = self.following() {
                        self.switch(next, self.costs.switch_ns, now);
                    }
                    return;
                } else {
                    return;
                }
            }
            match self.following() {
                Some(next) if next == self.current => self.enter(next, now),
                Some(next) => return self.switch(next, self.costs.drained_switch_ns, now),
                None => return,
            }
        }
    }

    fn copies(&mut self, now: u64) {
        for index in 0..self.contexts.len() {
            while let Some(head) = self.contexts[index]
                .queue
                .front()
                .filter(|head| head.kind == Kind::Copy)
            {
                let until = self.contexts[index].copy_until.unwrap_or(now + head.left_ns);
                if until > now {
                    self.contexts[index].copy_until = Some(until);
                    break;
                }
                self.contexts[index].copy_until = None;
                self.end_head(index);
            }
        }
    }

    fn unbegun(&self, context: usize) -> bool {
        let head = self.contexts[context].queue.front();
        !self.contexts[context].begun && head.is_some_and(|head| matches!(head.kind, Kind::Collective(_)))
    }

    fn begin(&mut self, context: usize) {
        if self.unbegun(context)
            && let Some(Kind::Collective(collective)) =
                self.contexts[context].queue.front().map(|head| head.kind)
        {
            self.contexts[context].begun = true;
            self.began.push((context, collective));
        }
    }

    fn end_head(&mut self, context: usize) {
        if let Some(work) = self.contexts[context].queue.pop_front() {
            self.contexts[context].begun = false;
            if let Kind::Collective(collective) = work.kind {
                self.ready.retain(|ready| *ready != collective);
            }
            self.ended.push((context, work));
        }
    }

    /// The next context with a kernel, in turn; the current one last.
    fn following(&self) -> Option<usize> {
        let count = self.contexts.len();
        (1..=count)
            .map(|step| (self.current + step) % count)
            .find(|context| self.runnable(*context))
    }

    fn enter(&mut self, context: usize, now: u64) {
        self.current = context;
        self.running = self.runnable(context);
        self.slice_end = now + self.costs.slice_ns;
    }

    fn switch(&mut self, to: usize, cost: u64, now: u64) {
        self.running = false;
        self.switching = Some((to, now + cost));
    }
}
