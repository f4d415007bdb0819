//! Where a gang can be stopped: every collective that one rank has begun, all ranks of its communicator must begin, and no other.

use std::collections::BTreeMap;

use super::AccountId;

/// A communicator as the client numbers them.
pub type Communicator = u32;

/// How far a rank goes on after its gate was closed ([`super::Gate::RunOn`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cut {
    pub account: AccountId,
    pub device: usize,
    pub communicator: Communicator,
    /// So many collectives it begins, counted from its first.
    pub begun: u64,
}

/// Collectives begun, per communicator and device.
pub(super) type Begun = BTreeMap<Communicator, BTreeMap<usize, u64>>;

/// What each of these `devices`' ranks still has to begin. A rank on its way to one communicator's goal may begin
/// collectives of another, so this is asked again after every move until nobody is behind: ranks of one program begin them in
/// one order, and none has to pass the one that was farthest.
pub(super) fn behind(begun: &Begun, devices: &[usize]) -> Vec<Vec<(Communicator, u64)>> {
    let mut behind = vec![Vec::new(); devices.len()];
    for (communicator, counts) in begun {
        let count = |device: &usize| counts.get(device).copied();
        let Some(farthest) = devices.iter().filter_map(count).max() else {
            continue;
        };
        for (goals, device) in behind.iter_mut().zip(devices) {
            if count(device).is_some_and(|count| count < farthest) {
                goals.push((*communicator, farthest));
            }
        }
    }
    behind
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(of: &[(Communicator, &[(usize, u64)])]) -> Begun {
        let counts = |counts: &[(usize, u64)]| counts.iter().copied().collect();
        of.iter()
            .map(|(communicator, ranks)| (*communicator, counts(ranks)))
            .collect()
    }

    #[test]
    fn ranks_that_are_level_have_nowhere_to_go() {
        let begun = begun(&[(1, &[(0, 4), (1, 4)]), (2, &[(1, 9), (2, 9)])]);
        assert!(behind(&begun, &[0, 1, 2]).iter().all(Vec::is_empty));
    }

    #[test]
    fn only_ranks_of_the_same_communicator_are_compared() {
        let begun = begun(&[(1, &[(0, 5), (1, 4)]), (2, &[(1, 9), (2, 9)])]);
        assert_eq!(behind(&begun, &[0, 1, 2]), [vec![], vec![(1, 5)], vec![]]);
    }

    #[test]
    fn a_rank_that_left_holds_nobody_back() {
        let begun = begun(&[(1, &[(0, 5), (1, 4)])]);
        assert!(behind(&begun, &[0]).iter().all(Vec::is_empty));
    }
}
