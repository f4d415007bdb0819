//! systemd's units by the paths it chooses.

use crate::components;

/// The service a path lies in: of the host's manager, or of a user's own inside `user@UID.service`. A scope (a login, a
/// container) is none.
pub fn service(path: &str) -> Option<&str> {
    let own_manager = |part: &&str| !(part.starts_with("user@") && part.ends_with(".service"));
    components(path)
        .map(|part| part.strip_prefix('_').unwrap_or(part))
        .filter(|part| part.ends_with(".service"))
        .find(own_manager)
}

/// A name as it was before systemd wrote other bytes as `\xHH`.
pub(crate) fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = rest
            .strip_prefix(b"\\x")
            .and_then(|digits| digits.get(..2))
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(code) => {
                bytes.push(code);
                rest = &rest[4..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_of_a_path() {
        let rows = [
            ("/system.slice/api-1.service", Some("api-1.service")),
            ("/system.slice/api-1.service/worker", Some("api-1.service")),
            (
                "/system.slice/system-getty.slice/getty@tty1.service",
                Some("getty@tty1.service"),
            ),
            ("/system.slice/_cpu.service", Some("cpu.service")),
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service",
                Some("jupyter.service"),
            ),
            ("/user.slice/user-1000.slice/user@1000.service/init.scope", None),
            ("/user.slice/user-1000.slice/session-3.scope", None),
            ("/init.scope", None),
            ("/", None),
        ];
        for (path, expected) in rows {
            assert_eq!(service(path), expected, "{path}");
        }
    }

    #[test]
    fn escapes_of_systemd_are_undone() {
        assert_eq!(unescaped("build\\x2dbox"), "build-box");
        assert_eq!(unescaped("a\\x2"), "a\\x2");
        assert_eq!(unescaped("\\xzz"), "\\xzz");
    }

    proptest::proptest! {
        #[test]
        fn any_name_is_taken_apart(text in "(?s).{0,60}") {
            let _ = unescaped(&text);
            let _ = service(&text);
        }
    }
}
