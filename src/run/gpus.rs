//! `--gpus`: which devices of the node the command sees. Checked here, since CUDA itself takes a device it does not know for
//! the end of the list and says nothing. The next file of the walk is `run/environment.rs`.

use crate::config::Gpu;
use crate::exit::Failure;
use crate::protocol::LaunchedDevice;

/// The value of `CUDA_VISIBLE_DEVICES` for `list`: UUIDs, whatever was written, since CUDA counts the fastest device first and
/// the node as NVML does. An error names the devices there are.
pub fn visible(list: &str, devices: &[LaunchedDevice]) -> Result<String, Failure> {
    let mut chosen: Vec<&LaunchedDevice> = Vec::new();
    for word in list.split(',').map(str::trim) {
        let device = device(word, devices).map_err(|why| {
            let there: Vec<String> = devices
                .iter()
                .map(|device| format!("{} ({})", device.index, device.uuid))
                .collect();
            Failure::usage(format!(
                "--gpus: {why}; this node has {}: write their indices or UUIDs, for example `{}`",
                there.join(", "),
                devices.first().map_or(0, |device| device.index)
            ))
        })?;
        if chosen.iter().any(|other| other.index == device.index) {
            return Err(Failure::usage(format!(
                "--gpus: device {} ({}) stands in `{list}` twice: write it once",
                device.index, device.uuid
            )));
        }
        chosen.push(device);
    }
    let uuids: Vec<&str> = chosen.iter().map(|device| device.uuid.as_str()).collect();
    Ok(uuids.join(","))
}

/// The device that `word` names: by index, UUID, or the beginning of one UUID.
fn device<'a>(word: &str, devices: &'a [LaunchedDevice]) -> Result<&'a LaunchedDevice, String> {
    let gpu = match word.parse::<u32>() {
        Ok(index) => Gpu::Index(index),
        Err(_) if word.starts_with("GPU-") || word.starts_with("MIG-") => Gpu::Uuid(word.into()),
        Err(_) if word.is_empty() => return Err("a device is missing".into()),
        Err(_) => return Err(format!("`{word}` names no device")),
    };
    let mut named = devices.iter().filter(|device| gpu.is(device.index, &device.uuid));
    match (named.next(), named.next()) {
        (Some(device), None) => Ok(device),
        (Some(_), Some(_)) => Err(format!(
            "`{word}` is the beginning of more than one device's UUID"
        )),
        (None, _) => Err(format!("there is no device `{word}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    fn devices() -> Vec<LaunchedDevice> {
        let device = |(index, uuid): (u32, &str)| LaunchedDevice {
            index,
            uuid: uuid.into(),
            cap_bytes: 1,
        };
        [(0, "GPU-1111-aa"), (1, "GPU-1122-bb")]
            .into_iter()
            .map(device)
            .collect()
    }

    #[test]
    fn devices_are_named_by_index_uuid_or_the_beginning_of_one() {
        for (list, expected) in [
            ("1,0", "GPU-1122-bb,GPU-1111-aa"),
            (" 1 , 0 ", "GPU-1122-bb,GPU-1111-aa"),
            ("GPU-1122-bb", "GPU-1122-bb"),
            ("GPU-1111,1", "GPU-1111-aa,GPU-1122-bb"),
        ] {
            assert_eq!(visible(list, &devices()).unwrap(), expected, "{list}");
        }
    }

    #[test]
    fn a_device_that_is_not_there_or_twice_is_told_with_those_there_are() {
        for (list, part) in [
            (
                "7",
                "there is no device `7`; this node has 0 (GPU-1111-aa), 1 (GPU-1122-bb)",
            ),
            ("0,GPU-99", "there is no device `GPU-99`; this node has 0"),
            ("GPU-11", "more than one"),
            ("0,0", "device 0 (GPU-1111-aa) stands in `0,0` twice"),
            ("0,GPU-1111", "twice"),
            ("", "a device is missing; this node has"),
            ("0,", "a device is missing"),
            ("all", "`all` names no device"),
            ("-1", "`-1` names no device"),
            ("0;1", "`0;1` names no device"),
        ] {
            let failure = visible(list, &devices()).unwrap_err();
            assert_eq!(failure.exit, Exit::USAGE, "{list}");
            assert!(failure.message.contains(part), "{list}: {failure}");
        }
    }
}
