//! Quantities as people write them: memory, ratios, durations (contract, "Quantities"). Used by the quota file
//! (`config/mod.rs`) and the command line (`cli.rs`).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A part of a whole, above 0 and at most 1, in millionths: exact for every percentage with four decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ratio(u32);

/// A memory limit as written: bytes, a part of the device, or everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    Bytes(Bytes),
    Part(Ratio),
    All,
}

/// Why a quantity was not understood. The text is one line: what was found, what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    #[error("the value is empty: write for example {example}")]
    Empty { example: &'static str },
    #[error("`{found}` has no unit: write a unit, for example {}", with_units(.found))]
    NoUnit { found: String },
    #[error("`{found}` is zero, which never means unlimited: write a value above 0")]
    Zero { found: String },
    #[error("`{found}` is negative: write a value above 0")]
    Negative { found: String },
    #[error("`{found}` is larger than any device: the most that can be written is 2^63 bytes")]
    Overflow { found: String },
    #[error("`{found}` is more than the whole: write at most 100%")]
    AboveWhole { found: String },
    #[error("`{found}` has a space inside: write `{joined}`")]
    Space { found: String, joined: String },
    #[error("`{found}` is not {what}: write for example {example}")]
    Form {
        found: String,
        what: &'static str,
        example: &'static str,
    },
}

/// A bare number with the units that were most likely meant.
fn with_units(number: &str) -> String {
    if number.len() > 6 {
        format!("`{number}B`")
    } else {
        format!("`{number}GiB` or `{number}MiB`")
    }
}

const MEMORY_EXAMPLE: &str = "`8GiB`, `512MiB`, `8GB`, `50%` or `all`";
const RATIO_EXAMPLE: &str = "`30%` or `0.3`";
const DURATION_EXAMPLE: &str = "`250us`, `5ms`, `30s` or `2h`";

/// A decimal number without sign or exponent: `digits`, and how many of them stand after the point.
struct Decimal {
    digits: u128,
    scale: u32,
}

/// Splits `text` into a leading decimal number and what follows it. `None`: no number, or beyond 30 digits.
fn decimal(text: &str) -> Option<(Decimal, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || (number.contains('.') && fraction.is_empty()) {
        return None;
    }
    if whole.len() + fraction.len() > 30 {
        return None;
    }
    let digits = format!("{whole}{fraction}").parse().ok()?;
    Some((
        Decimal {
            digits,
            scale: fraction.len() as u32,
        },
        rest,
    ))
}

/// Refuses what no quantity may be: empty, with blanks inside, negative. Returns the text without outer blanks.
fn checked<'a>(text: &'a str, example: &'static str) -> Result<&'a str, QuantityError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(QuantityError::Empty { example });
    }
    if text.contains(char::is_whitespace) {
        let joined = text.split_whitespace().collect();
        return Err(QuantityError::Space {
            found: text.into(),
            joined,
        });
    }
    if text.starts_with('-') {
        return Err(QuantityError::Negative { found: text.into() });
    }
    Ok(text)
}

impl Bytes {
    pub const MAX: Bytes = Bytes(1 << 63);
}

impl FromStr for Bytes {
    type Err = QuantityError;

    /// A size with a unit; no ratio, no `all`.
    fn from_str(text: &str) -> Result<Bytes, QuantityError> {
        match text.parse()? {
            Memory::Bytes(bytes) => Ok(bytes),
            _ => Err(QuantityError::Form {
                found: text.trim().into(),
                what: "a size in bytes",
                example: "`8GiB`, `512MiB` or `8GB`",
            }),
        }
    }
}

impl FromStr for Memory {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Memory, QuantityError> {
        let text = checked(text, MEMORY_EXAMPLE)?;
        if text.eq_ignore_ascii_case("all") {
            return Ok(Memory::All);
        }
        let found = || text.to_string();
        let form = || QuantityError::Form {
            found: found(),
            what: "an amount of memory",
            example: MEMORY_EXAMPLE,
        };
        let (number, unit) = decimal(text).ok_or_else(form)?;
        if unit == "%" || (unit.is_empty() && number.scale > 0) {
            return text.parse().map(Memory::Part);
        }
        if number.digits == 0 {
            return Err(QuantityError::Zero { found: found() });
        }
        let factor: u128 = match unit.to_ascii_lowercase().as_str() {
            "" => return Err(QuantityError::NoUnit { found: found() }),
            "b" => 1,
            "k" | "ki" | "kib" => 1 << 10,
            "m" | "mi" | "mib" => 1 << 20,
            "g" | "gi" | "gib" => 1 << 30,
            "t" | "ti" | "tib" => 1 << 40,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            _ => return Err(form()),
        };
        let overflow = || QuantityError::Overflow { found: found() };
        let bytes = number.digits.checked_mul(factor).ok_or_else(overflow)? / 10u128.pow(number.scale);
        match u64::try_from(bytes) {
            Ok(0) => Err(QuantityError::Zero { found: found() }),
            Ok(bytes) if bytes <= Bytes::MAX.0 => Ok(Memory::Bytes(Bytes(bytes))),
            _ => Err(overflow()),
        }
    }
}

impl Memory {
    /// Exact bytes on a device of `total` bytes, rounded down; `None` where more was asked than the device has.
    pub fn on_device(self, total: Bytes) -> Option<Bytes> {
        match self {
            Memory::All => Some(total),
            Memory::Part(ratio) => Some(ratio.of(total)),
            Memory::Bytes(bytes) => (bytes <= total).then_some(bytes),
        }
    }

    /// Whether this is more than `other` on every device. Where only the device can tell, it is not.
    pub fn surely_exceeds(self, other: Memory) -> bool {
        match (self, other) {
            (Memory::Bytes(a), Memory::Bytes(b)) => a > b,
            (Memory::Part(a), Memory::Part(b)) => a > b,
            (Memory::All, Memory::Bytes(_) | Memory::Part(_)) => true,
            _ => false,
        }
    }
}

impl Ratio {
    /// Everything.
    pub const WHOLE: Ratio = Ratio(1_000_000);

    /// From millionths; `None` outside 1 ..= 1 000 000.
    pub fn from_millionths(millionths: u32) -> Option<Ratio> {
        (1..=1_000_000).contains(&millionths).then_some(Ratio(millionths))
    }

    /// Millionths, 1 ..= 1 000 000.
    pub fn millionths(self) -> u32 {
        self.0
    }

    /// As a number above 0 and at most 1.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 1e6
    }

    /// This part of `total`, rounded down.
    pub fn of(self, total: Bytes) -> Bytes {
        Bytes((u128::from(total.0) * u128::from(self.0) / 1_000_000) as u64)
    }
}

impl FromStr for Ratio {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Ratio, QuantityError> {
        let text = checked(text, RATIO_EXAMPLE)?;
        let found = || text.to_string();
        let form = || QuantityError::Form {
            found: found(),
            what: "a part of the whole",
            example: RATIO_EXAMPLE,
        };
        let (number, unit) = decimal(text).ok_or_else(form)?;
        let millionths = match unit {
            "%" => 10_000u128,
            "" if number.scale == 0 && number.digits > 0 => {
                return Err(QuantityError::Form {
                    found: found(),
                    what: "a part of the whole",
                    example: RATIO_EXAMPLE,
                });
            }
            "" => 1_000_000,
            _ => return Err(form()),
        };
        let overflow = || QuantityError::AboveWhole { found: found() };
        let value = number.digits.checked_mul(millionths).ok_or_else(overflow)? / 10u128.pow(number.scale);
        match u32::try_from(value) {
            Ok(0) => Err(QuantityError::Zero { found: found() }),
            Ok(value) => Ratio::from_millionths(value).ok_or_else(overflow),
            Err(_) => Err(overflow()),
        }
    }
}

/// Reads a duration such as `250us`, `5ms`, `30s`, `5m`, `2h`, `1d`: a number and a unit, above 0.
pub fn duration(text: &str) -> Result<Duration, QuantityError> {
    let text = checked(text, DURATION_EXAMPLE)?;
    let found = || text.to_string();
    let form = || QuantityError::Form {
        found: found(),
        what: "a duration",
        example: DURATION_EXAMPLE,
    };
    let (number, unit) = decimal(text).ok_or_else(form)?;
    let nanoseconds: u128 = match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return Err(form()),
    };
    let overflow = || QuantityError::Overflow { found: found() };
    let value = number.digits.checked_mul(nanoseconds).ok_or_else(overflow)? / 10u128.pow(number.scale);
    match u64::try_from(value) {
        Ok(0) => Err(QuantityError::Zero { found: found() }),
        Ok(value) => Ok(Duration::from_nanos(value)),
        Err(_) => Err(form()),
    }
}

impl fmt::Display for Memory {
    /// As it may be written, exactly: `8GiB`, `1000000001B`, `50%`, `all`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = match self {
            Memory::All => return f.write_str("all"),
            Memory::Part(part) => return part.fmt(f),
            Memory::Bytes(bytes) => bytes.0,
        };
        for (unit, shift) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)] {
            if bytes > 0 && bytes.trailing_zeros() >= shift {
                return write!(f, "{}{unit}", bytes >> shift);
            }
        }
        write!(f, "{bytes}B")
    }
}

/// Memory and ratios are text in JSON, as they are in the quota file.
macro_rules! as_text {
    ($($of:ty),*) => {$(
        impl serde::Serialize for $of {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $of {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$of, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}
as_text!(Memory, Ratio);

impl fmt::Display for Bytes {
    /// Binary units with at most two decimals, for people: `6.00 GiB`. Exact bytes are printed as the plain number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
        let mut unit = 0;
        while unit + 1 < UNITS.len() && self.0 >> (10 * (unit + 1)) > 0 {
            unit += 1;
        }
        if unit == 0 {
            return write!(f, "{} B", self.0);
        }
        let value = self.0 as f64 / (1u64 << (10 * unit)) as f64;
        if self.0.trailing_zeros() >= 10 * unit as u32 {
            write!(f, "{value:.0} {}", UNITS[unit])
        } else {
            write!(f, "{value:.2} {}", UNITS[unit])
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", f64::from(self.0) / 1e4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> u64 {
        text.parse::<Bytes>().unwrap_or_else(|e| panic!("{text}: {e}")).0
    }

    #[test]
    fn memory_is_read_as_the_contract_lists_it() {
        assert_eq!(bytes("512MiB"), 512 << 20);
        for text in ["8GiB", "8Gi", "8G", "8g"] {
            assert_eq!(bytes(text), 8 << 30, "{text}");
        }
        assert_eq!(bytes("8GB"), 8_000_000_000);
        assert_eq!(bytes("1.5GiB"), 3 << 29);
        let half = Memory::Part(Ratio(500_000));
        assert_eq!("50%".parse::<Memory>(), Ok(half));
        assert_eq!("0.5".parse::<Memory>(), Ok(half));
        assert_eq!("all".parse::<Memory>(), Ok(Memory::All));
        assert_eq!(half.on_device(Bytes(101)), Some(Bytes(50)));
        assert_eq!(Memory::Bytes(Bytes(102)).on_device(Bytes(101)), None);
    }

    #[test]
    fn each_wrong_amount_has_one_clear_error() {
        for (text, part) in [
            ("", "is empty"),
            ("0", "is zero"),
            ("8", "write a unit"),
            ("0m", "is zero"),
            ("0GiB", "is zero"),
            ("0%", "is zero"),
            ("0.0", "is zero"),
            ("-1", "is negative"),
            ("-8GiB", "is negative"),
            ("1e9", "not an amount of memory"),
            ("12 GiB", "write `12GiB`"),
            ("9999999999999GiB", "larger than any device"),
            ("99999999999999999999999999999999GiB", "not an amount of memory"),
            ("101%", "more than the whole"),
            ("1.5", "more than the whole"),
            ("8XB", "not an amount of memory"),
            (".5", "not an amount of memory"),
            ("0.1B", "is zero"),
            ("GiB", "not an amount of memory"),
        ] {
            let error = text.parse::<Memory>().expect_err(text).to_string();
            assert!(error.contains(part), "{text:?}: {error}");
            assert!(!error.contains('\n'));
        }
        assert!("50%".parse::<Bytes>().is_err());
    }

    #[test]
    fn ratios_and_durations() {
        assert_eq!("30%".parse::<Ratio>().map(Ratio::millionths), Ok(300_000));
        assert_eq!("0.3".parse::<Ratio>().map(Ratio::millionths), Ok(300_000));
        assert_eq!("1.0".parse::<Ratio>(), Ok(Ratio::WHOLE));
        assert!("30".parse::<Ratio>().is_err());
        assert!("1".parse::<Ratio>().is_err());
        assert_eq!(duration("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(duration("1.5ms"), Ok(Duration::from_micros(1500)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        for text in ["", "5", "0s", "-1s", "5 s", "5x"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_for_people_never_hide_a_byte_behind_a_round_number() {
        assert_eq!(Bytes(6 << 30).to_string(), "6 GiB");
        assert_eq!(Bytes((6 << 30) + 1).to_string(), "6.00 GiB");
        assert_eq!(Bytes(1023).to_string(), "1023 B");
        assert_eq!(Ratio(125_000).to_string(), "12.5%");
    }

    #[test]
    fn what_is_told_can_be_written_again() {
        for text in [
            "8GiB",
            "3TiB",
            "1KiB",
            "1000000001B",
            "50%",
            "12.5%",
            "0.0001%",
            "all",
        ] {
            let memory: Memory = text.parse().unwrap();
            assert_eq!(memory.to_string(), text);
            let json = serde_json::to_string(&memory).unwrap();
            assert_eq!(serde_json::from_str::<Memory>(&json).unwrap(), memory);
        }
    }
}
