//! Quantities on the command line and in a faults file: durations, sizes, shares.

/// Nanoseconds of `250us`, `5ms`, `30s`, `2h` (also `ns`, `m`).
pub fn duration(text: &str) -> Result<u64, String> {
    let units = [
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    scaled(text, &units, "a duration, like 250us, 5ms or 30s")
}

/// Bytes of `64MiB`, `1GiB`, `0B` (also `Mi`, `M`: binary; `MB`: decimal).
pub fn size(text: &str) -> Result<u64, String> {
    let units = [
        ("B", 1),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("M", 1 << 20),
        ("G", 1 << 30),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
    ];
    scaled(text, &units, "a size with its unit, like 64MiB or 1GiB")
}

/// Bytes of a context, `None`: as the device's model has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Context(pub Option<u64>);

impl std::fmt::Display for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(bytes) => write!(f, "{bytes}B"),
            None => f.write_str("model"),
        }
    }
}

pub fn context(text: &str) -> Result<Context, String> {
    match text {
        "model" => Ok(Context(None)),
        text => size(text).map(|bytes| Context(Some(bytes))),
    }
}

/// 1/1000 of `15%` or `off`; at most 100 %.
pub fn noise(text: &str) -> Result<u32, String> {
    if text == "off" {
        return Ok(0);
    }
    let percent = text.strip_suffix('%').and_then(|n| n.trim().parse::<f64>().ok());
    match percent.filter(|p| (0.0..=100.0).contains(p)) {
        Some(percent) => Ok((percent * 10.0).round() as u32),
        None => Err(format!(
            "`{text}` is no noise; write a percentage up to 100%, like 15%, or off"
        )),
    }
}

fn scaled(text: &str, units: &[(&str, u64)], what: &str) -> Result<u64, String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: Option<u64> = text[..end].parse().ok();
    let unit = units.iter().find(|(name, _)| *name == text[end..].trim());
    let value = number
        .zip(unit)
        .and_then(|(number, (_, unit))| number.checked_mul(*unit));
    value.ok_or_else(|| format!("`{text}` is not {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_need_their_unit() {
        assert_eq!(duration("250us"), Ok(250_000));
        assert_eq!(duration("2 h"), Ok(7_200_000_000_000));
        assert_eq!(size("64MiB"), Ok(64 << 20));
        assert_eq!(size("8G"), Ok(8 << 30));
        assert_eq!(size("8GB"), Ok(8_000_000_000));
        assert_eq!(noise("15%"), Ok(150));
        assert_eq!(noise("off"), Ok(0));
        for bad in [
            "",
            "5",
            "ms",
            "-1s",
            "1.5s",
            "99999999999999999999s",
            "9999999999h",
        ] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert!(size("64").is_err());
        assert!(noise("0.15").is_err());
        assert!(noise("101%").is_err());
    }
}
