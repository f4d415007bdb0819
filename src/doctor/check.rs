//! One line of `stint doctor`. The next file of the walk is `doctor/host.rs`.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Ok,
    /// Works, and is less than it could be.
    Warn,
    /// Something promised does not hold.
    Fail,
}

/// What was looked at, what was found, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub name: String,
    pub verdict: Verdict,
    pub found: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
}

impl Check {
    pub fn ok(name: &str, found: impl Into<String>) -> Check {
        Check {
            name: name.into(),
            verdict: Verdict::Ok,
            found: found.into(),
            mend: None,
        }
    }

    pub fn warn(name: &str, found: impl Into<String>, mend: impl Into<String>) -> Check {
        Check {
            verdict: Verdict::Warn,
            mend: Some(mend.into()),
            ..Check::ok(name, found)
        }
    }

    pub fn fail(name: &str, found: impl Into<String>, mend: impl Into<String>) -> Check {
        Check {
            verdict: Verdict::Fail,
            ..Check::warn(name, found, mend)
        }
    }

    /// `ok    daemon       version 0.1.0, driver sim`, and how to mend it below.
    pub fn text(&self) -> String {
        let verdict = match self.verdict {
            Verdict::Ok => "ok",
            Verdict::Warn => "warn",
            Verdict::Fail => "FAIL",
        };
        let line = format!("{verdict:<5} {:<12} {}", self.name, self.found);
        match &self.mend {
            Some(mend) => format!("{line}\n{:<18} -> {mend}", ""),
            None => line,
        }
    }
}
