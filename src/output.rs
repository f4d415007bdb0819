//! What a verb says: on stdout what it was asked for, on stderr why it failed.

use std::io::{ErrorKind, Write};

use crate::exit::Failure;

/// Writes `text` and a line end. `false`: the reader has gone, which is no failure (`stint events | head`).
pub fn line(text: &str) -> Result<bool, Failure> {
    let mut out = std::io::stdout().lock();
    match out
        .write_all(text.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush())
    {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::failed(format!("stdout: {error}"))),
    }
}

/// Tells on stderr why a command failed, each line of it as ours: its own output may stand around it.
pub fn failure(failure: &Failure) {
    let _ = std::io::stderr().write_all(marked(&failure.message).as_bytes()); // else nobody is left to tell
}

fn marked(message: &str) -> String {
    message.lines().map(|line| format!("stint: {line}\n")).collect()
}

/// Writes `document` as one line of JSON.
pub fn json(document: &impl serde::Serialize) -> Result<bool, Failure> {
    line(&serde_json::to_string(document).map_err(Failure::failed)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_failure_is_marked() {
        assert_eq!(marked("a.toml:1:2: x\nb"), "stint: a.toml:1:2: x\nstint: b\n");
    }
}
