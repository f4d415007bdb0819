//! `[node]`: each key's words and amounts. `check/rules.rs` is next.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::raw;
use crate::config::reader::{File, told};
use crate::config::units::{Memory, QuantityError, Ratio};
use crate::config::{Absent, Context, Drift, Mode, NodeRules, Overcommit, Unknown};

impl File<'_> {
    /// Puts what `node` says into `into`, and keeps the rest of it.
    pub(super) fn node(&mut self, node: raw::Node, into: &mut NodeRules) {
        let span = |scalar: &Option<raw::Scalar>| scalar.as_ref().map(|scalar| scalar.span());
        let modes = [("enforce", Mode::Enforce), ("observe", Mode::Observe)];
        set(&mut into.mode, self.word(node.mode, &modes));
        let absents = [("refuse", Absent::Refuse), ("run", Absent::Run)];
        set(&mut into.absent, self.word(node.absent, &absents));
        let overcommits = [("refuse", Overcommit::Refuse), ("allow", Overcommit::Allow)];
        set(&mut into.overcommit, self.word(node.overcommit, &overcommits));
        let unknowns = [
            ("default", Unknown::Default),
            ("report", Unknown::Report),
            ("refuse", Unknown::Refuse),
        ];
        set(&mut into.unknown, self.word(node.unknown, &unknowns));
        let reserve = self.value(node.reserve, |text| match text {
            "off" => Ok(None),
            _ => match text.parse().map_err(|error| match error {
                QuantityError::Zero { .. } => format!("`{text}` is zero: write \"off\" to keep nothing back"),
                error => told(error),
            })? {
                Memory::All | Memory::Part(Ratio::WHOLE) => Err(format!(
                    "`{text}` would keep back every device whole: write for example \"2%\""
                )),
                reserve => Ok(Some(reserve)),
            },
        });
        set(&mut into.reserve, reserve);
        let place = span(&node.drift);
        let drifts = [
            ("report", Drift::Report),
            ("throttle", Drift::Throttle),
            ("freeze", Drift::Freeze),
            ("refuse", Drift::Refuse),
        ];
        let drift = self.word(node.drift, &drifts);
        self.later_if(place, "drift", drift.is_some_and(|drift| drift != Drift::Report));
        set(&mut into.drift, drift);
        let place = span(&node.context);
        let contexts = [("inside", Context::Inside), ("outside", Context::Outside)];
        let context = self.word(node.context, &contexts);
        self.later_if(place, "context", context == Some(Context::Outside));
        set(&mut into.context, context);
        let place = span(&node.http);
        let http = self.value(node.http, |text| match text {
            "off" => Ok(None),
            _ => text.parse::<SocketAddr>().map(Some).map_err(|_| {
                format!("`{text}` is not an address: write for example \"127.0.0.1:9477\", or \"off\"")
            }),
        });
        self.later_if(place, "http", matches!(http, Some(Some(_))));
        set(&mut into.http, http);
        let place = span(&node.token_file);
        let file = self.value(node.token_file, |text| {
            let path = PathBuf::from(text);
            let whole = path.is_absolute() && !text.contains('\0');
            whole.then_some(path).ok_or_else(|| {
                format!("`{text}` is not the path of a file: write for example \"/etc/stint/token\"")
            })
        });
        self.later_if(place, "token_file", file.is_some());
        if file.is_some() {
            into.token_file = file;
        }
    }
}

/// Keeps `into` where nothing, or nothing right, was written.
pub(super) fn set<T>(into: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *into = value;
    }
}
