//! The kernel of `stint load`: one that keeps the device busy for a stated time and does nothing else.
//!
//! On a GPU it watches the device's nanosecond clock. The stand-in runs no code; it takes the duration from the end of
//! the name, which is why the name says it. Read next: `cuda.rs`.

use std::ffi::CString;
use std::time::Duration;

use crate::exit::Failure;

/// First part of the name where the user gives none.
pub const NAME: &str = "stint_load";

/// A kernel as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spin {
    /// Name of the entry.
    pub entry: CString,
    pub ptx: CString,
    /// Nanoseconds; the kernel's one argument.
    pub nanoseconds: u64,
}

/// A kernel of `length`, a whole number of microseconds, whose entry begins with `name`, a C identifier.
pub fn spin(name: &str, length: Duration) -> Result<Spin, Failure> {
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !first || name.len() > 200 || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(Failure::usage(format!(
            "--name `{name}`: write letters, digits and `_`, not beginning with a digit, at most 200 of them"
        )));
    }
    let nanoseconds = length.as_nanos();
    let Ok(nanoseconds @ 1_000..=3_600_000_000_000) = u64::try_from(nanoseconds) else {
        return Err(Failure::usage(format!("--kernel {length:?}: write 1us to 1h")));
    };
    if nanoseconds % 1_000 != 0 {
        return Err(Failure::usage(format!(
            "--kernel {length:?}: write whole microseconds, for example {}us",
            nanoseconds.div_ceil(1_000)
        )));
    }
    let entry = format!("{name}_sim_spin_us_{}", nanoseconds / 1_000);
    let ptx = format!(
        "\
.version 6.3
.target sm_70
.address_size 64
.visible .entry {entry}(.param .u64 nanoseconds)
{{
    .reg .u64 %now, %end, %length;
    .reg .pred %early;
    ld.param.u64 %length, [nanoseconds];
    mov.u64 %now, %globaltimer;
    add.u64 %end, %now, %length;
again:
    mov.u64 %now, %globaltimer;
    setp.lt.u64 %early, %now, %end;
    @%early bra again;
    ret;
}}
"
    );
    let text = |text: String| CString::new(text).map_err(Failure::failed);
    Ok(Spin {
        entry: text(entry)?,
        ptx: text(ptx)?,
        nanoseconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_says_the_duration() {
        let spin = spin(NAME, Duration::from_micros(500)).unwrap();
        assert_eq!(spin.entry.to_str(), Ok("stint_load_sim_spin_us_500"));
        assert_eq!(spin.nanoseconds, 500_000);
        assert!(
            spin.ptx
                .to_str()
                .unwrap()
                .contains(".entry stint_load_sim_spin_us_500(")
        );
    }

    #[test]
    fn what_the_name_cannot_say_is_refused() {
        for length in [
            Duration::from_nanos(999),
            Duration::from_nanos(1_500),
            Duration::from_secs(3_601),
        ] {
            assert_eq!(
                spin(NAME, length).unwrap_err().exit,
                crate::exit::Exit::USAGE,
                "{length:?}"
            );
        }
        for name in ["", "1a", "a b", "a;", "ä"] {
            assert!(spin(name, Duration::from_millis(1)).is_err(), "{name}");
        }
    }
}
