//! What `stint host status` says: what is there, what should be there, and what to do about the difference.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::boot::{self, Absent};
use super::site;
use super::wanted::Wanted;
use super::{HostError, SCHEMA};

/// How this host stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Programs find the driver.
    Off,
    /// Programs find our copies, which fit the driver.
    On,
    /// Something is missing or does not fit any more: `stint host enable` mends it.
    Stale,
}

/// One library that programs ask for.
#[derive(Debug, Serialize)]
pub struct Shown {
    name: String,
    /// What programs get.
    path: Option<PathBuf>,
    /// The driver's own.
    driver: PathBuf,
    /// Names of ours that the driver lacks, which were taken out of the copy.
    hidden: usize,
}

/// The document of `--json`.
#[derive(Debug, Serialize)]
pub struct Report {
    schema: &'static str,
    pub state: State,
    libraries: Vec<Shown>,
    /// What a program does that starts before the daemon.
    at_boot: Option<Absent>,
    problems: Vec<String>,
}

impl Report {
    /// Compares what is on this system with what is wanted.
    pub fn of(wanted: Result<&Wanted, &HostError>) -> Report {
        let directory = site::directory_in_force();
        let mut report = Report {
            schema: SCHEMA,
            state: State::Off,
            libraries: Vec::new(),
            at_boot: boot::at_boot(),
            problems: Vec::new(),
        };
        if !site::is_anything_there() {
            report.libraries = wanted.map(shown).unwrap_or_default();
            return report;
        }
        let mut wrong = |what: String| report.problems.push(what);
        match wanted {
            Err(error) => wrong(error.to_string()),
            Ok(wanted) => {
                let should = Path::new(site::LIBRARIES).join(wanted.generation());
                match &directory {
                    None => wrong(format!("{} is missing", site::CONF)),
                    Some(found) if *found != should => {
                        wrong(
                            "the driver or Stint's libraries have changed since the copies were made".into(),
                        );
                    }
                    Some(_) if !site::is_whole(&should, wanted) => {
                        wrong(format!("{} is damaged", should.display()))
                    }
                    Some(_) => {}
                }
                for library in &wanted.libraries {
                    for name in [library.name, library.alias] {
                        match site::first_in_cache(name) {
                            Some(first) if first.starts_with(site::LIBRARIES) => {}
                            Some(other) => wrong(format!("programs get {} for {name}", other.display())),
                            None => wrong(format!("programs find no {name}")),
                        }
                    }
                }
                report.libraries = shown(wanted);
            }
        }
        match (report.at_boot, boot::now()) {
            (None, _) => wrong(boot::NOTHING.into()),
            (Some(Absent::Run), Some(Absent::Refuse)) => {
                wrong(
                    "programs that start before the daemon are not capped, later ones are refused without it"
                        .into(),
                );
            }
            _ => {}
        }
        report.state = if report.problems.is_empty() {
            State::On
        } else {
            State::Stale
        };
        report
    }

    /// For a person.
    pub fn text(&self) -> String {
        let mut lines = vec![match self.state {
            State::Off => "host mode is off: programs find the driver itself".to_owned(),
            State::On => "host mode is on: programs find Stint in front of the driver".to_owned(),
            State::Stale => {
                "host mode is not as it should be: `stint host enable` mends it, `stint host disable` ends it"
                    .to_owned()
            }
        }];
        lines.extend(
            self.problems
                .iter()
                .map(|problem| format!("  problem  {problem}")),
        );
        for library in &self.libraries {
            let path = library
                .path
                .as_ref()
                .map_or("nothing".into(), |path| path.display().to_string());
            lines.push(format!("  {}  {path}", library.name));
            if path != library.driver.display().to_string() {
                lines.push(format!(
                    "    in front of {}, {} names hidden that it lacks",
                    library.driver.display(),
                    library.hidden
                ));
            }
        }
        if let (State::On, Some(absent)) = (self.state, self.at_boot) {
            lines.push(match absent {
                Absent::Refuse => "  a program that starts before the daemon is refused".to_owned(),
                Absent::Run => "  a program that starts before the daemon runs without a cap".to_owned(),
            });
        }
        lines.join("\n")
    }
}

fn shown(wanted: &Wanted) -> Vec<Shown> {
    let each = wanted.libraries.iter().map(|library| Shown {
        name: library.name.to_owned(),
        path: site::first_in_cache(library.name),
        driver: library.real.clone(),
        hidden: library.hidden,
    });
    each.collect()
}
