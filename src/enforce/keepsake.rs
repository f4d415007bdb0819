//! The name under which an object is kept while no daemon runs (`daemon/store.rs`): whose it is can be told by it alone, when
//! the record is lost and its layout unknown.

use std::fmt;
use std::str::FromStr;

use super::Uuid;

/// Longest name systemd takes.
const LONGEST: usize = 255;

/// Which of the two objects of an account on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Policy,
    Account,
}

/// What an object is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Keepsake {
    /// Number of the account.
    pub number: u32,
    pub device: Uuid,
    pub part: Part,
    /// Name of the account; cut where it is too long.
    pub account: String,
}

/// Written `p.NUMBER.DEVICE.ACCOUNT` or `a.…`: letters, digits and `._-/#@+`, other bytes as `%XX`.
impl fmt::Display for Keepsake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = match self.part {
            Part::Policy => 'p',
            Part::Account => 'a',
        };
        let mut name = format!("{part}.{}.", self.number);
        for byte in self.device {
            name += &format!("{byte:02x}");
        }
        name.push('.');
        for byte in self.account.bytes() {
            let plain = byte.is_ascii_alphanumeric() || b"._-/#@+".contains(&byte);
            let next = if plain {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            };
            if name.len() + next.len() > LONGEST {
                break;
            }
            name += &next;
        }
        f.write_str(&name)
    }
}

/// The text is no name of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoKeepsake;

impl FromStr for Keepsake {
    type Err = NoKeepsake;

    fn from_str(text: &str) -> Result<Keepsake, NoKeepsake> {
        parse(text).ok_or(NoKeepsake)
    }
}

fn parse(text: &str) -> Option<Keepsake> {
    let mut words = text.splitn(4, '.');
    let part = match words.next()? {
        "p" => Part::Policy,
        "a" => Part::Account,
        _ => return None,
    };
    let number = words.next()?.parse().ok()?;
    let digits = words.next()?;
    let mut device = [0; 16];
    if digits.len() != 2 * device.len() {
        return None;
    }
    for (at, byte) in device.iter_mut().enumerate() {
        *byte = hex(digits, 2 * at)?;
    }
    let escaped = words.next()?;
    let mut account = Vec::new();
    let mut at = 0;
    while let Some(&byte) = escaped.as_bytes().get(at) {
        if byte == b'%' {
            account.push(hex(escaped, at + 1)?);
            at += 3;
        } else {
            account.push(byte);
            at += 1;
        }
    }
    Some(Keepsake {
        number,
        device,
        part,
        account: String::from_utf8_lossy(&account).into_owned(),
    })
}

fn hex(text: &str, at: usize) -> Option<u8> {
    u8::from_str_radix(text.get(at..at + 2)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_everything_in_what_systemd_takes() {
        for account in ["lab/alice", "default/müller x:%", "a#77", ""] {
            let keepsake = Keepsake {
                number: 7,
                device: *b"0123456789abcdef",
                part: Part::Policy,
                account: account.into(),
            };
            let name = keepsake.to_string();
            assert!(
                name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':'),
                "{name}"
            );
            assert_eq!(name.parse(), Ok(keepsake));
        }
        let long = Keepsake {
            number: u32::MAX,
            device: [255; 16],
            part: Part::Account,
            account: "ü".repeat(200),
        };
        let name = long.to_string();
        assert!(name.len() <= LONGEST);
        assert_eq!(name.parse::<Keepsake>().unwrap().number, u32::MAX);
        for wrong in [
            "",
            "p",
            "x.1.00.a",
            "p.1.0.a",
            "stored",
            "p.1.zz",
            "a.-1.00000000000000000000000000000000.x",
        ] {
            assert_eq!(wrong.parse::<Keepsake>(), Err(NoKeepsake), "{wrong}");
        }
    }
}
