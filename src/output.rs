//! What a verb says on stdout.

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

/// Writes `document` as one line of JSON.
pub fn json(document: &impl serde::Serialize) -> Result<bool, Failure> {
    line(&serde_json::to_string(document).map_err(Failure::failed)?)
}
