//! `[devices.N]`: how one device is shared.

use serde::Serialize;

/// How a device is given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceMode {
    #[default]
    Share,
    /// One account at a time, no shim, still visible.
    Exclusive,
    Mps,
    Mig,
}

/// Whose work goes next among equals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    #[default]
    Fair,
    Fifo,
}

/// `[devices.N]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct DeviceRules {
    pub mode: DeviceMode,
    pub policy: Policy,
    /// Profiles of the MIG instances, for example `3g.71gb`; `None`: left as they are.
    pub mig_layout: Option<Vec<String>>,
}

/// Reads the index of a device: digits without needless zeros, at most three.
pub(super) fn index(text: &str) -> Option<u32> {
    let digits = (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let needless = text.len() > 1 && text.starts_with('0');
    (digits && !needless).then(|| text.parse().ok()).flatten()
}
