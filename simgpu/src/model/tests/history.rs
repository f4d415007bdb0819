//! Random histories: what comes out does not depend on when anybody looks, and bounds hold.

use super::*;

/// Completions of a history, sorted, and the truth of each (process, device).
type History = (Vec<(Lane, u64, Ns)>, Vec<Truth>);

/// Random work of three processes on two devices; how often anybody looks differs with `looks`.
fn history(seed: u64, sharing: Sharing, looks: impl Fn(Ns, Ns) -> Vec<Ns>) -> History {
    let config = DeviceConfig {
        sharing,
        ..DeviceConfig::default()
    };
    let mut b = Bench::new(&[config.clone(), config], 0);
    for client in 0..3 {
        b.model.add_client(40 + 20 * client);
    }
    let mut generations = [[0u64; 4]; 3];
    let mut x = seed | 1;
    let mut random = |n: u64| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x % n
    };
    let mut at = 0;
    for _ in 0..3000 {
        let before = at;
        at += random(30_000);
        let (client, stream) = (random(3) as usize, random(4) as usize);
        let event = random(4) as u32;
        let generation = &mut generations[client][event as usize];
        let kind = match random(8) {
            0 => Kind::Copy {
                engine: random(2) as u32,
                ns: random(50_000),
            },
            1 => {
                *generation += 1;
                Kind::Record {
                    event,
                    generation: *generation,
                }
            }
            2 => Kind::Await {
                event,
                generation: *generation,
            },
            _ => Kind::Kernel {
                ns: random(90_000),
                sms: 1 + random(132) as u32,
            },
        };
        for look in looks(before, at) {
            let next = b.model.next();
            let lane = Lane { client, stream };
            assert!(b.model.bound(lane, u64::MAX) >= next.min(b.model.bound(lane, 0)));
            b.model.advance(look, &mut b.log);
            b.model.truth(0, 0, look);
        }
        b.model.advance(at, &mut b.log);
        let home = Home {
            device: stream % 2,
            context: (stream / 2) as u16,
            priority: (stream / 2) as i8,
        };
        b.submit(client, stream, home, at, kind);
    }
    b.run();
    for (lane, seq) in &b.seqs {
        let mine: Vec<_> = b.log.done.iter().filter(|d| d.0 == *lane).collect();
        assert_eq!(mine.len() as u64, *seq);
        assert!(mine.windows(2).all(|w| w[0].1 + 1 == w[1].1 && w[0].2 <= w[1].2));
    }
    let mut order = b.log.done;
    order.sort();
    (
        order,
        (0..6).map(|i| b.model.truth(i / 2, i % 2, FOREVER)).collect(),
    )
}

#[test]
fn history_does_not_depend_on_lateness() {
    let sliced = Sharing::Sliced {
        slice: 1_024_000,
        switch: 50_000,
    };
    for sharing in [sliced, Sharing::Together { interference: 250 }] {
        for seed in 1..20 {
            let late = history(seed * 77, sharing, |_, _| Vec::new());
            let prompt = history(seed * 77, sharing, |a, b| (a..b).step_by(1700).collect());
            assert!(late == prompt, "seed {seed}, {sharing:?}");
        }
    }
}

#[test]
fn bounds_are_never_too_late() {
    // The bound of every pending operation, taken at every step, against what happens.
    let mut b = Bench::new(&[DeviceConfig::default()], 3);
    for client in 0..3 {
        for stream in 0..2 {
            for i in 0..20 {
                b.kernel(
                    client,
                    stream,
                    i * 1000,
                    37 * (1 + i % 3) + 300 * client as u64,
                    100,
                );
            }
        }
    }
    let mut claims = Vec::new();
    while b.model.next() != NEVER {
        for (&lane, &seq) in &b.seqs {
            for target in [1, seq / 2, seq] {
                if !b.log.done.iter().any(|d| d.0 == lane && d.1 == target) {
                    claims.push((lane, target, b.model.bound(lane, target)));
                }
            }
        }
        b.model.advance(b.model.next(), &mut b.log);
    }
    assert!(claims.len() > 1000);
    for (lane, seq, bound) in claims {
        let at = b
            .log
            .done
            .iter()
            .find(|d| d.0 == lane && d.1 == seq)
            .expect("completes")
            .2;
        assert!(bound <= at, "{lane:?} {seq}: {bound} > {at}");
    }
}
