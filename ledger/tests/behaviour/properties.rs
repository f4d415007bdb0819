//! Random sequences against a model a child could keep: a number per client.

use crate::setup::{Pair, slot};
use ledger::account::{Refusal, ReleaseError};
use ledger::operation::{Operation, Outcome};
use ledger::{Client, Mode};
use proptest::prelude::*;

const CLIENTS: usize = 3;

#[derive(Clone, Debug)]
enum Deed {
    Reserve {
        client: usize,
        bytes: u64,
    },
    Release {
        client: usize,
        bytes: u64,
    },
    /// The client makes that many steps of a reservation (or a release) and is never seen again.
    Die {
        client: usize,
        granules: i64,
        steps: usize,
    },
    SetCap {
        bytes: u64,
    },
}

fn deed() -> impl Strategy<Value = Deed> {
    let client = 0..CLIENTS;
    let bytes = prop_oneof![0u64..20_000, Just(512), Just(0), Just(u64::MAX)];
    prop_oneof![
        4 => (client.clone(), bytes.clone()).prop_map(|(client, bytes)| Deed::Reserve { client, bytes }),
        4 => (client.clone(), bytes.clone()).prop_map(|(client, bytes)| Deed::Release { client, bytes }),
        2 => (client, -20i64..20, 0usize..12).prop_map(|(client, granules, steps)| Deed::Die { client, granules, steps }),
        1 => (0u64..40_000).prop_map(|bytes| Deed::SetCap { bytes }),
    ]
}

fn rounded(bytes: u64) -> u128 {
    u128::from(bytes).div_ceil(512) * 512
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_account_is_the_sum_of_what_its_clients_hold(deeds in prop::collection::vec(deed(), 1..60)) {
        let mut cap = 30_000u64;
        let pair = Pair::new(cap);
        let mut held = [0u64; CLIENTS];
        for client in 0..CLIENTS {
            pair.claim(client as u32 + 1);
        }
        for deed in deeds {
            let limit = cap / 512 * 512;
            let used: u64 = held.iter().sum();
            match deed {
                Deed::Reserve { client, bytes } => {
                    let got = Client::new(&pair.policy, &pair.account, slot(client as u32 + 1)).reserve(bytes);
                    if bytes == 0 || u128::from(used) + rounded(bytes) <= u128::from(limit) {
                        prop_assert_eq!(got, Ok(()));
                        held[client] += rounded(bytes) as u64;
                    } else {
                        let asked = u64::try_from(rounded(bytes)).unwrap_or(u64::MAX);
                        prop_assert_eq!(got, Err(Refusal::Full { asked, used, limit }));
                    }
                }
                Deed::Release { client, bytes } => {
                    let got = Client::new(&pair.policy, &pair.account, slot(client as u32 + 1)).release(bytes);
                    if rounded(bytes) <= u128::from(held[client]) {
                        prop_assert_eq!(got, Ok(()));
                        held[client] -= rounded(bytes) as u64;
                    } else {
                        prop_assert_eq!(got, Err(ReleaseError::Short));
                    }
                }
                Deed::Die { client, granules, steps } => {
                    let before = pair.account.used();
                    let change = die(&pair, client as u32 + 1, granules, steps);
                    prop_assert_eq!(pair.account.used(), before.wrapping_add_signed(change));
                    let recovered = pair.daemon().recover(slot(client as u32 + 1)).expect("nobody else is here");
                    prop_assert!(!recovered.corrupt);
                    prop_assert_eq!(recovered.released, held[client].wrapping_add_signed(change));
                    held[client] = 0;
                    pair.claim(client as u32 + 1);
                }
                Deed::SetCap { bytes } => {
                    prop_assert_eq!(pair.daemon().set_cap(bytes, Mode::Enforce), Ok(used));
                    cap = bytes;
                }
            }
            prop_assert_eq!(pair.account.used(), held.iter().sum::<u64>());
            for (client, held) in held.iter().enumerate() {
                prop_assert_eq!(pair.account.slot(slot(client as u32 + 1)).charge(), *held);
            }
        }
    }
}

/// Makes `steps` steps of an operation; returns by how many bytes the account changed.
fn die(pair: &Pair, client: u32, granules: i64, steps: usize) -> i64 {
    let table = pair.daemon().table();
    let before = pair.account.used();
    let mut operation = Operation::new(slot(client), granules, 10);
    for _ in 0..steps {
        if let Some(outcome) = operation.step(&table) {
            let changed = pair.account.used().wrapping_sub(before).cast_signed();
            assert_eq!(
                changed,
                if matches!(outcome, Outcome::Applied { .. }) {
                    512 * granules
                } else {
                    0
                }
            );
            break;
        }
    }
    pair.account.used().wrapping_sub(before).cast_signed()
}
