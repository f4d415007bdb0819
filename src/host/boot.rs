//! What a program does that starts before the daemon: `RUN/attach/policy` must be there from the boot on, else such a program
//! would find no node and run without a cap. systemd makes it by a line of its `tmpfiles.d`; a package brings that line, else
//! host mode does. Next: `report.rs`.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use driver::run_dir::{ATTACH_POLICY, ATTACH_SOCKET, SYSTEM};

use super::HostError;
use super::site::{remove, write_file};

/// The line of an installed package.
const PACKAGED: &str = "/usr/lib/tmpfiles.d/stint.conf";
/// The same, where there is no package; it would come before the package's.
pub const OWN: &str = "/etc/tmpfiles.d/stint.conf";
const HEAD: &str = "# Made by `stint host enable`, removed by `stint host disable`.\n";
/// Said in `OWN` when its directory was made for it.
const DIRECTORY_TOO: &str = "# Its directory was made with it.\n";

/// What `status` says where nothing was provided.
pub const NOTHING: &str = "nothing makes /run/stint/attach/policy at boot (there is no systemd-tmpfiles): programs that start before \
                           the daemon are not capped, unless a boot script copies that file";

/// What a program does that finds no daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Absent {
    Refuse,
    Run,
}

impl Absent {
    fn as_str(self) -> &'static str {
        match self {
            Absent::Refuse => "refuse",
            Absent::Run => "run",
        }
    }
}

/// Whether a daemon answers now.
pub fn daemon_answers() -> bool {
    UnixStream::connect(Path::new(SYSTEM).join(driver::run_dir::ADMIN_SOCKET)).is_ok()
}

/// What programs do now if there is no daemon; `None`: they run, since there seems to be no node.
pub fn now() -> Option<Absent> {
    let text = fs::read_to_string(Path::new(SYSTEM).join(ATTACH_POLICY)).ok()?;
    Some(policy_in(&text))
}

/// What they do after the next boot, until the daemon has started.
pub fn at_boot() -> Option<Absent> {
    let text = fs::read_to_string(OWN)
        .or_else(|_| fs::read_to_string(PACKAGED))
        .ok()?;
    let line = text
        .lines()
        .find(|line| !line.starts_with('#') && line.contains(ATTACH_POLICY))?;
    Some(policy_in(line))
}

/// Whatever does not say "run" means "refuse", as for the shim.
fn policy_in(text: &str) -> Absent {
    if text.contains("absent = \"run\"") {
        Absent::Run
    } else {
        Absent::Refuse
    }
}

/// Whether the line for the boot is ours.
pub fn is_provided() -> bool {
    fs::read_to_string(OWN).is_ok_and(|text| text.starts_with(HEAD))
}

/// Provides for the next boot, where systemd can be told, and for now.
pub fn provide(running_system: bool) -> Result<(), HostError> {
    let word = now().filter(|_| running_system).unwrap_or(Absent::Refuse);
    let somebody_elses = Path::new(PACKAGED).exists() || (Path::new(OWN).exists() && !is_provided());
    if Path::new("/usr/lib/tmpfiles.d").is_dir() && !somebody_elses {
        let path = Path::new(OWN);
        let write = || -> io::Result<()> {
            let made = !path.parent().is_some_and(Path::is_dir);
            let again = fs::read_to_string(path).is_ok_and(|text| text.contains(DIRECTORY_TOO));
            fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
            let text = format!(
                "{HEAD}{}{}",
                if made || again { DIRECTORY_TOO } else { "" },
                lines(word)
            );
            if fs::read_to_string(path).is_ok_and(|found| found == text) {
                Ok(())
            } else {
                write_file(path, &text)
            }
        };
        write().map_err(|error| HostError::io(path, error))?;
    }
    if running_system && now().is_none() {
        let path = Path::new(SYSTEM).join(ATTACH_POLICY);
        let directory = path.parent().unwrap_or(Path::new(SYSTEM));
        let write = || -> io::Result<()> {
            fs::create_dir_all(directory)?;
            for open in [Path::new(SYSTEM), directory] {
                fs::set_permissions(open, Permissions::from_mode(0o755))?;
            }
            write_file(&path, &policy(word))
        };
        write().map_err(|error| HostError::io(&path, error))?;
    }
    Ok(())
}

/// Takes back what `provide` made. The policy of a running daemon or of an installed package stays, and so does a line that
/// an administrator wrote.
pub fn withdraw(running_system: bool) -> Result<(), HostError> {
    let path = Path::new(OWN);
    if is_provided() {
        let text = fs::read_to_string(path).unwrap_or_default();
        remove(path)?;
        if text.contains(DIRECTORY_TOO) {
            let _ = fs::remove_dir(path.parent().unwrap_or(path)); // others have put something into it since
        }
    }
    if running_system && !Path::new(PACKAGED).exists() && !daemon_answers() {
        let system = Path::new(SYSTEM);
        for file in [ATTACH_POLICY, ATTACH_SOCKET] {
            remove(&system.join(file))?;
        }
        for directory in [&*system.join("attach"), system] {
            let _ = fs::remove_dir(directory); // what else is there belongs to a node
        }
    }
    Ok(())
}

fn policy(absent: Absent) -> String {
    format!("absent = \"{}\"\n", absent.as_str())
}

/// `tmpfiles.d(5)`: the run directory, the attach directory, the policy unless a daemon has written it already.
fn lines(absent: Absent) -> String {
    format!(
        "d {SYSTEM} 0755 root root -\nd {SYSTEM}/attach 0755 root root -\nf {SYSTEM}/{ATTACH_POLICY} 0644 root root - {}",
        policy(absent)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_the_shim_will_read() {
        for absent in [Absent::Refuse, Absent::Run] {
            assert_eq!(policy_in(&lines(absent)), absent);
            assert!(lines(absent).ends_with(&policy(absent)));
        }
        assert_eq!(policy_in(""), Absent::Refuse);
    }
}
