//! The outcome of the demo: `stint.demo/v1`, and the table promise / measured / ok for people.

use serde::Serialize;

use super::promises::{Measured, Promise};
use crate::config::units::Bytes;
use crate::exit::Failure;

/// Value of `schema`.
const SCHEMA: &str = "stint.demo/v1";

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    pub schema: &'static str,
    pub promises: Vec<Row>,
    /// What each client's `cuMemGetInfo` told it, and what became of its requests.
    pub clients: Vec<Seen>,
    /// Every promise was kept.
    pub ok: bool,
    /// What `--break` took away.
    #[serde(skip)]
    pub sabotaged: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub name: &'static str,
    pub promise: &'static str,
    /// Absent when the test came to no end; `error` says why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    pub unit: &'static str,
    pub samples: u64,
    pub ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What has happened, where what was measured breaks the promise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

/// A client that lived to tell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Seen {
    pub tenant: String,
    pub pid: u32,
    pub cap_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_total_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_free_bytes: Option<u64>,
    pub launches: u64,
    pub allocations: u64,
    pub refusals: u64,
}

impl Row {
    pub fn new(promise: &Promise, outcome: Result<Measured, Failure>) -> Row {
        let &Promise {
            name,
            promise: words,
            unit,
            keeps,
            broken,
            ..
        } = promise;
        match outcome {
            Ok(Measured { value, samples }) => {
                let ok = keeps(value);
                Row {
                    name,
                    promise: words,
                    measured: Some(value),
                    unit,
                    samples,
                    ok,
                    error: None,
                    broken: (!ok).then(|| broken(value)),
                }
            }
            Err(failure) => {
                let error = Some(failure.message);
                Row {
                    name,
                    promise: words,
                    measured: None,
                    unit,
                    samples: 0,
                    ok: false,
                    error,
                    broken: None,
                }
            }
        }
    }

    fn measured(&self) -> String {
        match self.measured {
            None => "nothing".into(),
            Some(value) if value.fract() == 0.0 => format!("{value:.0}"),
            Some(value) => format!("{value:.2}"),
        }
    }
}

impl Document {
    pub fn new(promises: Vec<Row>, clients: Vec<Seen>) -> Document {
        let ok = promises.iter().all(|row| row.ok);
        Document {
            schema: SCHEMA,
            promises,
            clients,
            ok,
            sabotaged: None,
        }
    }

    /// Two tables and a last line.
    pub fn text(&self) -> String {
        let bytes = |bytes: Option<u64>| bytes.map_or("-".into(), |bytes| Bytes(bytes).to_string());
        let mut text = format!(
            "{:<12} {:>8} {:>9} {:>14} {:>9} {:>9} {:>9}\n",
            "TENANT", "PID", "CAP", "MEMGETINFO", "FREE", "KERNELS", "REFUSED"
        );
        for seen in &self.clients {
            text += &format!(
                "{:<12} {:>8} {:>9} {:>14} {:>9} {:>9} {:>9}\n",
                seen.tenant,
                seen.pid,
                Bytes(seen.cap_bytes).to_string(),
                bytes(seen.memory_total_bytes),
                bytes(seen.memory_free_bytes),
                seen.launches,
                seen.refusals
            );
        }
        let measured = |row: &Row| format!("{} {} ({} samples)", row.measured(), row.unit, row.samples);
        let name_width = self.promises.iter().map(|row| row.name.len()).max().unwrap_or(0);
        let width = self
            .promises
            .iter()
            .map(|row| measured(row).len())
            .max()
            .unwrap_or(0)
            .max("MEASURED".len());
        text += &format!("\n{:<name_width$}  {:<width$}  OK\n", "PROMISE", "MEASURED");
        for row in &self.promises {
            let ok = if row.ok { "yes" } else { "NO" };
            text += &format!(
                "{:<name_width$}  {:<width$}  {ok}\n  {}\n",
                row.name,
                measured(row),
                row.promise
            );
            if let Some(why) = row.broken.as_ref().or(row.error.as_ref()) {
                text += &format!("  BROKEN: {why}\n");
            }
        }
        let kept = self.promises.iter().filter(|row| row.ok).count();
        text += &format!("\n{kept} of {} promises kept", self.promises.len());
        if let Some(sabotaged) = self.sabotaged {
            text += &format!("\nbroken on purpose (--break): {sabotaged}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::promises::PROMISES;
    use super::*;

    #[test]
    fn one_broken_promise_breaks_the_whole() {
        let measured = |value| Ok(Measured { value, samples: 5 });
        let kept = Row::new(&PROMISES[0], measured(0.0));
        let over = Row::new(&PROMISES[0], measured(1.0));
        let under = Row::new(&PROMISES[0], measured(-(2.0 * 1024.0 * 1024.0)));
        let failed = Row::new(&PROMISES[1], Err(Failure::failed("why")));
        assert!(kept.ok && !over.ok && !under.ok && !failed.ok);
        assert!(Document::new(vec![kept.clone()], Vec::new()).ok);
        let document = Document::new(vec![kept, failed], Vec::new());
        assert!(!document.ok);
        let text = document.text();
        assert!(
            text.contains("1 of 2 promises kept") && text.contains("  BROKEN: why\n"),
            "{text}"
        );
        assert!(!text.contains("on purpose"), "{text}");
        let json = serde_json::to_value(&document).unwrap();
        assert_eq!(json["promises"][0]["measured"], 0.0);
        assert!(json["promises"][1].get("measured").is_none());
    }

    #[test]
    fn a_broken_promise_says_what_has_happened() {
        let gibibyte = 1024.0 * 1024.0 * 1024.0;
        for promise in PROMISES {
            let values = [gibibyte, -gibibyte, 50.0].map(|value| Measured { value, samples: 1 });
            let broken = values.into_iter().map(|measured| Row::new(promise, Ok(measured)));
            for row in broken.filter(|row| !row.ok) {
                let document = Document {
                    sabotaged: Some(promise.sabotaged),
                    ..Document::new(vec![row], Vec::new())
                };
                let text = document.text();
                assert!(text.contains("\n  BROKEN: "), "{text}");
                assert!(
                    text.ends_with(&format!("\nbroken on purpose (--break): {}", promise.sabotaged)),
                    "{text}"
                );
            }
        }
        let restart = PROMISES
            .iter()
            .find(|promise| promise.name == "daemon-restart-harmless")
            .expect("a promise");
        assert_eq!(
            (restart.broken)(gibibyte),
            "after the restarts a tenant had 1 GiB more of the device than its cap: what its running process held was granted a \
             second time"
        );
    }
}
