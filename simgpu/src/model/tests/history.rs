//! Random histories: what comes out does not depend on when anybody looks, and bounds hold.

use super::*;

/// Completions of a history, sorted, and the truth of each (process, device).
type History = (Vec<(Lane, u64, Ns)>, Vec<Truth>);

/// Kinds of work that a history is made of.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Work {
    /// All of it ends.
    Ordinary,
    /// And kernels that meet, some of them in vain, and some that break their context.
    Wild,
}

/// Random work of three processes on two devices; how often anybody looks differs with `looks`.
fn history(seed: u64, sharing: Sharing, work: Work, looks: impl Fn(Ns, Ns) -> Vec<Ns>) -> History {
    let config = DeviceConfig {
        sharing,
        contention: 400,
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
        let (ns, sms) = (random(90_000), 1 + random(132) as u32);
        let wild = work == Work::Wild;
        let kind = match random(10) {
            8 if wild && random(3) == 0 => Kind::Rendezvous {
                key: random(2),
                parties: 2,
                ns,
                sms: sms / 2 + 1,
            },
            8 if wild && random(60) == 0 => Kind::Fault { ns, sms },
            9 => Kind::Cooperative { ns, sms },
            0 => Kind::Copy {
                engine: random(2) as u32,
                ns: random(50_000),
                traffic: random(1001) as u32,
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
            _ => Kind::Kernel { ns, sms },
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
    // Those who wait for partners that do not come would take turns for ever.
    let end = at + 100_000_000;
    for look in looks(at, end) {
        b.model.advance(look, &mut b.log);
    }
    match work {
        Work::Ordinary => b.run(),
        Work::Wild => b.model.advance(end, &mut b.log),
    }
    for device in 0..2 {
        let (busy, switch, _) = b.model.device_truth(device, end);
        let all: Vec<_> = (0..3).map(|client| b.model.truth(client, device, end)).collect();
        let sum = |part: fn(&Truth) -> u64| all.iter().map(part).sum::<u64>();
        assert_eq!(sum(|t| t.switch_ns), switch);
        match sharing {
            Sharing::Sliced { .. } => assert_eq!(sum(|t| t.busy_ns), busy),
            Sharing::Together { .. } => assert!(sum(|t| t.busy_ns) >= busy),
        }
        assert!(busy + switch <= end && sum(|t| t.sm_ns) <= busy * 132);
    }
    for (lane, seq) in &b.seqs {
        let mine: Vec<_> = b.log.done.iter().filter(|d| d.0 == *lane).collect();
        assert!(mine.len() as u64 == *seq || work == Work::Wild);
        assert!(mine.windows(2).all(|w| w[0].1 + 1 == w[1].1 && w[0].2 <= w[1].2));
    }
    let mut order = b.log.done;
    order.sort();
    (order, (0..6).map(|i| b.model.truth(i / 2, i % 2, end)).collect())
}

#[test]
fn history_does_not_depend_on_lateness() {
    let sliced = Sharing::Sliced {
        slice: 1_024_000,
        switch: 50_000,
    };
    for sharing in [sliced, Sharing::Together { interference: 250 }] {
        for seed in 1..40 {
            let work = [Work::Ordinary, Work::Wild][seed as usize % 2];
            let late = history(seed * 77, sharing, work, |_, _| Vec::new());
            let prompt = history(seed * 77, sharing, work, |a, b| (a..b).step_by(1700).collect());
            assert!(late == prompt, "seed {seed}, {sharing:?}, {work:?}");
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
