//! Kernels of every kind, and what neighbours do to one another.

use super::*;

fn node(devices: usize, sharing: Option<Sharing>) -> Vec<DeviceConfig> {
    let config = DeviceConfig::default();
    let sharing = sharing.unwrap_or(config.sharing);
    vec![DeviceConfig { sharing, ..config }; devices]
}

fn on(device: usize) -> Home {
    Home { device, ..HOME }
}

fn meet(us: u64, sms: u32) -> Kind {
    Kind::Rendezvous {
        key: 7,
        parties: 2,
        ns: us * US,
        sms,
    }
}

#[test]
fn a_cooperative_kernel_begins_with_all_its_sms_or_not_at_all() {
    let mut b = Bench::new(&node(1, None), 1);
    b.kernel(0, 0, 0, 100, 40);
    let (ns, sms) = (100 * US, 132);
    b.submit(0, 1, HOME, 0, Kind::Cooperative { ns, sms });
    b.kernel(0, 2, 0, 50, 10);
    b.run();
    // It waits for the first, those behind it wait for it.
    assert_eq!(
        b.log.done(),
        [(0, 0, 1, 100_000), (0, 1, 1, 200_000), (0, 2, 1, 250_000)]
    );
}

#[test]
fn a_cooperative_kernel_that_has_begun_keeps_its_sms_from_urgent_ones() {
    let mut b = Bench::new(&node(1, None), 1);
    let (ns, sms) = (100 * US, 132);
    b.submit(0, 0, HOME, 0, Kind::Cooperative { ns, sms });
    let urgent = Home { priority: -5, ..HOME };
    b.submit(0, 1, urgent, 10 * US, Kind::Kernel { ns: 10 * US, sms });
    b.run();
    assert_eq!(b.log.done(), [(0, 0, 1, 100_000), (0, 1, 1, 110_000)]);
}

#[test]
fn parties_that_are_never_resident_together_wait_for_ever() {
    let mut b = Bench::new(&node(1, None), 2);
    b.submit(0, 0, on(0), 0, meet(100, 132));
    b.submit(1, 0, on(0), 0, meet(1, 1));
    b.model.advance(20_000_000, &mut b.log);
    assert_eq!(b.log.done(), []);
    assert!(b.model.device_truth(0, 20_000_000).0 > 18_000_000, "spinning");
    b.model.remove_client(1, 20_000_000, &mut b.log);
    assert_eq!(b.model.census().in_flight, 1, "the partner stays");
    b.run();
    assert_eq!(b.log.done(), []);
}

#[test]
fn a_party_waits_busily_and_the_slower_one_sets_the_pace() {
    let mut b = Bench::new(&node(2, None), 2);
    b.submit(0, 0, on(0), 0, meet(100, 132));
    b.kernel(1, 1, 0, 0, 1);
    let home = on(1);
    b.submit(
        1,
        2,
        home,
        0,
        Kind::Kernel {
            ns: 1000 * US,
            sms: 66,
        },
    );
    b.submit(1, 3, home, 200 * US, meet(60, 132));
    b.run();
    // Present from 200 us; half of device 1 is taken, so 100 us of work take 200.
    let done = b.log.done();
    assert!(
        done.contains(&(0, 0, 1, 400_000)) && done.contains(&(1, 3, 1, 400_000)),
        "{done:?}"
    );
    assert_eq!(b.model.truth(0, 0, FOREVER).busy_ns, 400_000);
    assert_eq!(b.model.truth(0, 0, FOREVER).kernels, 1);
}

#[test]
fn parties_make_progress_only_while_all_are_resident() {
    let mut b = Bench::new(&node(2, None), 3);
    b.submit(0, 0, on(0), 0, meet(2000, 132));
    b.submit(1, 0, on(1), 0, meet(2000, 132));
    b.submit(
        2,
        0,
        on(1),
        0,
        Kind::Kernel {
            ns: 1024 * US,
            sms: 132,
        },
    );
    b.run();
    // Device 1: party 0..1024, switch, neighbour 1074..2098, switch, party again 2148..: 976 us to go.
    let done = b.log.done();
    let at = (2148 + 976) * US;
    assert!(
        done.contains(&(0, 0, 1, at)) && done.contains(&(1, 0, 1, at)),
        "{done:?}"
    );
    assert_eq!(b.model.truth(0, 0, FOREVER).busy_ns, at, "spinning is busy");
    assert_eq!(b.model.truth(1, 1, FOREVER).busy_ns, 2_000_000);
    assert_eq!(b.model.truth(1, 1, FOREVER).switch_ns, 50_000);
}

#[test]
fn bounds_of_a_party_are_never_too_late() {
    let mut b = Bench::new(&node(2, None), 3);
    b.submit(0, 0, on(0), 0, meet(2000, 132));
    b.kernel(0, 0, 0, 100, 132);
    b.submit(1, 0, on(1), 0, meet(2000, 132));
    b.submit(
        2,
        0,
        on(1),
        0,
        Kind::Kernel {
            ns: 1024 * US,
            sms: 132,
        },
    );
    let lane = Lane { client: 0, stream: 0 };
    let mut claims = Vec::new();
    while b.model.next() != NEVER {
        claims.push(b.model.bound(lane, 2));
        b.model.advance(b.model.next(), &mut b.log);
    }
    let end = b
        .log
        .done
        .iter()
        .find(|d| d.0 == lane && d.1 == 2)
        .expect("ends")
        .2;
    assert!(claims.iter().all(|&claim| claim <= end), "{claims:?} {end}");
    assert!(claims[0] < NEVER);
}

#[test]
fn a_kernel_that_breaks_its_context_ends_all_its_work_and_no_other() {
    let mut b = Bench::new(&node(1, None), 2);
    let free = Sharing::Together { interference: 0 };
    let mut c = Bench::new(&node(1, Some(free)), 2);
    for b in [&mut b, &mut c] {
        let (ns, sms) = (100 * US, 10);
        b.submit(0, 0, HOME, 0, Kind::Fault { ns, sms });
        let (engine, traffic) = (0, 0);
        for stream in [0, 1] {
            b.kernel(0, stream, 0, 5000, 10);
        }
        b.submit(
            0,
            2,
            HOME,
            0,
            Kind::Copy {
                engine,
                ns: 9 * ns,
                traffic,
            },
        );
        let (event, generation) = (3, 1);
        b.submit(0, 3, HOME, 0, Kind::Await { event, generation });
        b.submit(0, 3, HOME, 0, Kind::Record { event: 4, generation });
        let other = Home { context: 1, ..HOME };
        b.submit(0, 4, other, 0, Kind::Kernel { ns: 300 * US, sms });
        b.kernel(1, 0, 0, 300, 10);
        assert!(b.model.bound(Lane { client: 0, stream: 1 }, 1) <= 100_000);
        b.run();
        let done = b.log.done();
        for (stream, seq) in [(0, 1), (0, 2), (1, 1), (2, 1), (3, 2)] {
            assert!(
                done.contains(&(0, stream, seq, 100_000)),
                "{stream} {seq}: {done:?}"
            );
        }
        assert_eq!(b.log.events, [(4, 1, 100_000)]);
        let survivors = done.iter().filter(|d| (d.0, d.1) == (0, 4) || d.0 == 1);
        assert!(
            survivors.clone().count() == 2 && survivors.clone().all(|d| d.3 >= 300_000),
            "{done:?}"
        );
        b.kernel(0, 1, 2_000_000, 5000, 10);
        assert_eq!(
            b.log.done().last(),
            Some(&(0, 1, 2, 2_000_000)),
            "later work takes no time"
        );
        assert_eq!(b.model.census().in_flight, 0);
    }
    // Alone in the first 100 us of the first model, side by side in the second.
    assert_eq!(c.log.done().last().map(|d| d.0), Some(0));
}

#[test]
fn neighbours_copies_cost_bandwidth_and_ones_own_do_not() {
    let config = DeviceConfig {
        contention: 500,
        ..DeviceConfig::default()
    };
    let copy = |ns, traffic| Kind::Copy {
        engine: 0,
        ns,
        traffic,
    };
    let mut b = Bench::new(&[config], 2);
    b.submit(0, 1, HOME, 0, copy(1000 * US, 1000));
    b.kernel(0, 0, 0, 100, 132);
    b.run();
    assert_eq!(b.log.done(), [(0, 0, 1, 100_000), (0, 1, 1, 1_000_000)]);
    b.submit(1, 1, HOME, 2_000_000, copy(1000 * US, 500));
    b.kernel(0, 0, 2_000_000, 300, 132);
    b.run();
    // The kernel at 3/4 speed for 400 us, the copy too, then at full speed.
    assert_eq!(b.log.done()[2..], [(0, 0, 2, 2_400_000), (1, 1, 1, 3_100_000)]);
    assert_eq!(b.model.truth(1, 0, FOREVER).copy_ns, 1_100_000);
}

#[test]
fn a_context_may_have_a_slice_of_its_own() {
    let mut b = Bench::new(&node(1, None), 2);
    b.model.set_slice(1, Some(200 * US), 0, &mut b.log);
    b.kernel(0, 0, 0, 2000, 132);
    b.kernel(1, 0, 0, 300, 132);
    b.run();
    // 0..1024, switch, 1074..1274, switch, 1324..2300, switch, 2350..2450.
    assert_eq!(b.log.done(), [(0, 0, 1, 2_300_000), (1, 0, 1, 2_450_000)]);
    let switched = |client| b.model.truth(client, 0, FOREVER).switch_ns;
    assert_eq!((switched(0), switched(1)), (50_000, 100_000), "who comes pays");
}

#[test]
fn a_sampler_shows_the_last_whole_sixth_of_a_second() {
    let mut b = Bench::new(&node(1, None), 1);
    const SIXTH: Ns = 166_666_667;
    b.kernel(0, 0, SIXTH, SIXTH / 2000, 132);
    b.run();
    assert_eq!(
        b.model.device_sampled(0, SIXTH + SIXTH / 2),
        (0, SIXTH),
        "not yet"
    );
    assert_eq!(b.model.device_sampled(0, 2 * SIXTH), (500, 2 * SIXTH));
    assert_eq!(
        b.model.truth(0, 0, 3 * SIXTH - 1).window.sampled(3 * SIXTH - 1),
        (500, 2 * SIXTH)
    );
    assert_eq!(b.model.device_sampled(0, 3 * SIXTH), (0, 3 * SIXTH));
    assert_eq!(b.model.device_sampled(0, 5), (0, 0));
}

#[test]
fn sixteen_devices_of_any_size_meet() {
    let sizes = (0..16).map(|i| 20 + i * 380 / 15);
    let devices: Vec<_> = sizes
        .map(|sms| DeviceConfig {
            sms,
            ..DeviceConfig::default()
        })
        .collect();
    let mut b = Bench::new(&devices, 16);
    for (client, device) in devices.iter().enumerate() {
        let at = client as u64 * 10 * US;
        let kind = Kind::Rendezvous {
            key: 1,
            parties: 16,
            ns: 500 * US,
            sms: 400,
        };
        b.submit(client, 0, on(client), at, kind);
        let spread = Kind::Kernel {
            ns: 40 * US,
            sms: 2 * device.sms,
        };
        b.submit(client, 0, on(client), at, spread);
    }
    b.run();
    let done = b.log.done();
    assert!(
        done.iter().filter(|d| d.2 == 1).all(|d| d.3 == 650_000),
        "{done:?}"
    );
    assert!(
        done.iter().filter(|d| d.2 == 2).all(|d| d.3 == 690_000),
        "{done:?}"
    );
    for (client, device) in devices.iter().enumerate() {
        let truth = b.model.truth(client, client, FOREVER);
        assert_eq!(truth.sm_ns, truth.busy_ns * device.sms as u64);
        assert_eq!(truth.busy_ns, 690_000 - client as u64 * 10_000);
    }
}

#[test]
fn what_waits_behind_a_party_is_not_forgotten_while_its_partner_is_away() {
    let mut b = Bench::new(&node(2, None), 2);
    b.submit(0, 0, on(0), 0, meet(100, 132));
    b.kernel(0, 1, 0, 10, 132);
    b.submit(
        1,
        0,
        on(1),
        0,
        Kind::Kernel {
            ns: 5000 * US,
            sms: 132,
        },
    );
    b.submit(1, 0, on(1), 0, meet(100, 132));
    let mut claims = Vec::new();
    let lanes = [(0, 0, 1), (0, 1, 1), (1, 0, 2)].map(|(client, stream, seq)| (Lane { client, stream }, seq));
    while b.model.next() != NEVER {
        for (lane, seq) in lanes
            .into_iter()
            .filter(|(lane, seq)| !b.model.is_complete(*lane, *seq))
        {
            claims.push((lane, seq, b.model.bound(lane, seq)));
        }
        b.model.advance(b.model.next(), &mut b.log);
    }
    assert!(claims.len() >= 5);
    for (lane, seq, claim) in claims {
        let end = b
            .log
            .done
            .iter()
            .find(|d| (d.0, d.1) == (lane, seq))
            .expect("ends")
            .2;
        assert!(claim <= end, "{lane:?}: {claim} > {end}");
    }
}

#[test]
fn room_that_a_broken_context_leaves_is_for_the_other_contexts() {
    let mut b = Bench::new(&node(1, None), 1);
    b.submit(0, 0, HOME, 0, Kind::Fault { ns: 100 * US, sms: 1 });
    for stream in 1..=op::RESIDENT_KERNELS {
        b.kernel(0, stream, 0, 5000, 1);
    }
    let (other, beyond) = (Home { context: 1, ..HOME }, op::RESIDENT_KERNELS + 1);
    for stream in beyond..beyond + 3 {
        b.submit(0, stream, other, 0, Kind::Kernel { ns: 100 * US, sms: 1 });
    }
    b.run();
    let ends: Vec<_> = b
        .log
        .done
        .iter()
        .filter(|d| d.0.stream >= beyond)
        .map(|d| d.2)
        .collect();
    assert_eq!(ends, [250_000; 3], "side by side, after the fault and a switch");
}
