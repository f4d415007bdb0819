//! Names of users and groups. Looked up once each: the lookup may ask a directory service.

use std::collections::HashMap;

use nix::unistd::{Gid, Group, Uid, User};

/// The group whose members may name any tenant and value.
const TRUSTED_GROUP: &str = "stint";

/// Names by number.
#[derive(Debug, Default)]
pub struct Users(HashMap<u32, String>);

impl Users {
    /// Name of the user `uid`, or its number where it has none.
    pub fn name(&mut self, uid: u32) -> &str {
        self.0
            .entry(uid)
            .or_insert_with(|| match User::from_uid(Uid::from_raw(uid)) {
                Ok(Some(user)) => user.name,
                _ => uid.to_string(),
            })
    }
}

/// Number of the group `stint`, where the host has one.
pub fn trusted_group() -> Option<u32> {
    Group::from_name(TRUSTED_GROUP)
        .ok()
        .flatten()
        .map(|group| Gid::as_raw(group.gid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_without_a_name_is_a_number() {
        let mut users = Users::default();
        assert_eq!(users.name(0), "root");
        assert_eq!(users.name(4_000_000_001), "4000000001");
    }
}
