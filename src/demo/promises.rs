//! The table of promises. Adding one is adding a row: its name, its words, how it is put to the test, when what was
//! measured keeps it, and what takes its mechanism out of the embedded node for `--break`.

use super::stage::{LAST_PIECE, POOLED, Stage, UNPOOLED};
use super::tenant::Tenant;
use crate::config::units::Bytes;
use crate::daemon::Sabotage;
use crate::exit::Failure;

/// A promise of Stint, and its test.
#[derive(Debug)]
pub struct Promise {
    pub name: &'static str,
    pub promise: &'static str,
    pub unit: &'static str,
    pub act: fn(&mut Stage) -> Result<Measured, Failure>,
    pub keeps: fn(f64) -> bool,
    /// What has happened where the value does not keep it, for an administrator.
    pub broken: fn(f64) -> String,
    pub sabotage: fn() -> Sabotage,
    /// What `sabotage` takes away.
    pub sabotaged: &'static str,
}

/// What an act found. From the device's own truth, never from the daemon or the shim.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    pub value: f64,
    /// Chances the promise had to be broken.
    pub samples: u64,
}

pub const PROMISES: &[Promise] = &[
    Promise {
        name: "memory-cap-exact",
        promise: "a tenant's processes together reach their cap (to 2 MiB) and never pass it",
        unit: "bytes above the cap",
        act: memory_cap_exact,
        keeps: |above| above <= 0.0 && above > -(LAST_PIECE as f64),
        broken: |above| match above > 0.0 {
            true => format!("a tenant had {} more of the device than its cap", bytes(above)),
            false => format!("a tenant was refused {} below its cap", bytes(-above)),
        },
        sabotage: || Sabotage {
            caps: true,
            ..Sabotage::default()
        },
        sabotaged: "programs were told the whole device for their cap",
    },
    Promise {
        name: "neighbours-untouched-by-oom",
        promise: "while one tenant is refused again and again, its neighbours do all of their work",
        unit: "% of the neighbours' kernels",
        act: neighbours_untouched_by_oom,
        keeps: |done| done >= 100.0,
        broken: |done| {
            format!(
                "a tenant at its cap cost its neighbours {:.0} % of their work",
                100.0 - done
            )
        },
        sabotage: || Sabotage {
            isolation: true,
            ..Sabotage::default()
        },
        sabotaged: "a refusal of one tenant closed the accounts of all others",
    },
    Promise {
        name: "killed-client-reclaimed",
        promise: "what a killed process held is there for the tenant's next one (to 2 MiB)",
        unit: "bytes lost",
        act: killed_client_reclaimed,
        keeps: |lost| lost < LAST_PIECE as f64,
        broken: |lost| {
            format!(
                "{} that a killed process had held stayed charged: its tenant's next one did not get them",
                bytes(lost)
            )
        },
        sabotage: || Sabotage {
            reclaim: true,
            ..Sabotage::default()
        },
        sabotaged: "what dead processes held was not given back",
    },
    Promise {
        name: "daemon-restart-harmless",
        promise: "a killed and restarted daemon costs no process an error or a kernel, and grants nothing twice (to 2 MiB)",
        unit: "bytes above the cap",
        act: daemon_restart_harmless,
        keeps: |above| above <= 0.0 && above > -(LAST_PIECE as f64),
        broken: |above| match above > 0.0 {
            true => format!(
                "after the restarts a tenant had {} more of the device than its cap: what its running process held was granted \
                 a second time",
                bytes(above)
            ),
            false => format!(
                "after the restarts a tenant was refused {} below its cap: what its running process holds was counted twice",
                bytes(-above)
            ),
        },
        sabotage: || Sabotage {
            adoption: true,
            ..Sabotage::default()
        },
        sabotaged: "a daemon that started again did not take over what the one before it knew",
    },
    Promise {
        name: "pool-speedup",
        promise: "of the allocations of a tenant with a pool (`pool = \"elide\"`) a quarter at most comes to the driver",
        unit: "% of the driver's allocations",
        act: pool_speedup,
        keeps: |part| part <= 25.0,
        broken: |part| {
            format!(
                "a tenant with a pool had its driver allocate {part:.0} % of what the same program has it without one"
            )
        },
        sabotage: || Sabotage {
            pool: true,
            ..Sabotage::default()
        },
        sabotaged: "the policy words of all accounts said that freed memory goes back to the driver",
    },
];

/// An amount as people read it.
fn bytes(amount: f64) -> String {
    Bytes(amount as u64).to_string()
}

const MIB: u64 = 1 << 20;

/// Two processes of one tenant: one holds its part, the other takes whatever it gets until nothing is left.
fn memory_cap_exact(stage: &mut Stage) -> Result<Measured, Failure> {
    let cap = 2048 * MIB;
    let holder = stage.tenant("exact", cap, &["--memory", "512MiB", "--seconds", "3600"])?;
    stage.wait_until_holds(&holder, 512 * MIB)?;
    let taker = stage.tenant("exact", cap, &["--fill", "96MiB", "--seconds", "1"])?;
    let report = stage.finish(&taker)?;
    let most = stage.most_used(&[&holder, &taker])?;
    Ok(Measured {
        value: most as f64 - cap as f64,
        samples: report.allocations + report.refusals,
    })
}

/// Three neighbours at work beside a tenant that wants everything.
fn neighbours_untouched_by_oom(stage: &mut Stage) -> Result<Measured, Failure> {
    const BURST: u64 = 2;
    const BURSTS_PER_SECOND: u64 = 100;
    let (seconds, every, burst) = (
        stage.seconds.to_string(),
        format!("{}ms", 1000 / BURSTS_PER_SECOND),
        BURST.to_string(),
    );
    let work = [
        ["--memory", "256MiB", "--churn", "128MiB", "--kernel", "500us"],
        ["--every", &every, "--burst", &burst, "--seconds", &seconds],
    ]
    .concat();
    let names = ["neighbour-1", "neighbour-2", "neighbour-3"];
    let neighbours: Vec<Tenant> = names
        .iter()
        .map(|name| stage.tenant(name, 1024 * MIB, &work))
        .collect::<Result<_, _>>()?;
    for neighbour in &neighbours {
        stage.wait_until_holds(neighbour, 256 * MIB)?;
    }
    let greedy = stage.tenant("greedy", 3072 * MIB, &["--fill", "512MiB", "--seconds", &seconds])?;
    let mut told = 0;
    for neighbour in &neighbours {
        told += stage.finish(neighbour)?.launches;
    }
    if stage.finish(&greedy)?.refusals == 0 {
        return Err(Failure::failed(
            "the greedy tenant was never refused: nothing was put to the test",
        ));
    }
    let planned = neighbours.len() as u64 * u64::from(stage.seconds) * BURSTS_PER_SECOND * BURST;
    let done = stage.launches(&neighbours)?.unwrap_or(told);
    Ok(Measured {
        value: done as f64 * 100.0 / planned as f64,
        samples: planned,
    })
}

/// A process that fills its tenant's cap is killed, and its successor wants all of it again. One more process of the
/// tenant lives through it, so that the account does, too.
fn killed_client_reclaimed(stage: &mut Stage) -> Result<Measured, Failure> {
    const KILLS: u64 = 3;
    let cap = 2048 * MIB;
    let survivor = stage.tenant("phoenix", cap, &["--memory", "256MiB", "--seconds", "3600"])?;
    stage.wait_until_holds(&survivor, 256 * MIB)?;
    let full = cap - LAST_PIECE + 1;
    let (fill, last) = (
        ["--fill", "64MiB", "--seconds", "3600"],
        ["--fill", "64MiB", "--seconds", "1"],
    );
    let mut victim = stage.tenant("phoenix", cap, &fill)?;
    let first = stage.used_when(&[&survivor, &victim], full)?.min(cap);
    let mut lost = 0.0_f64;
    for kill in 1..=KILLS {
        stage.kill(&victim)?;
        let words = if kill < KILLS { &fill } else { &last };
        let successor = stage.tenant("phoenix", cap, words)?;
        lost = lost.max(first as f64 - stage.used_when(&[&survivor, &successor], full)? as f64);
        if lost >= LAST_PIECE as f64 {
            return Ok(Measured {
                value: lost,
                samples: kill,
            });
        }
        victim = successor;
    }
    stage.finish(&victim)?; // the last one lives to tell
    Ok(Measured {
        value: lost,
        samples: KILLS,
    })
}

/// The daemon is killed and started again while one tenant works and another holds part of its cap. Then a newcomer takes what
/// it gets of the rest.
fn daemon_restart_harmless(stage: &mut Stage) -> Result<Measured, Failure> {
    const RESTARTS: u64 = 3;
    const BURSTS_PER_SECOND: u64 = 100;
    let cap = 2048 * MIB;
    let (seconds, every) = (
        stage.seconds.to_string(),
        format!("{}ms", 1000 / BURSTS_PER_SECOND),
    );
    let work = [
        ["--memory", "256MiB", "--churn", "128MiB", "--kernel", "500us"],
        ["--every", &every, "--burst", "1", "--seconds", &seconds],
    ]
    .concat();
    let holder = stage.tenant("steady", cap, &["--memory", "1GiB", "--seconds", "3600"])?;
    stage.wait_until_holds(&holder, 1024 * MIB)?;
    let worker = stage.tenant("worker", 1024 * MIB, &work)?;
    stage.wait_until_holds(&worker, 256 * MIB)?;
    for _ in 0..RESTARTS {
        stage.restart_daemon()?;
    }
    let taker = stage.tenant("steady", cap, &["--fill", "96MiB", "--seconds", "1"])?;
    let report = stage.finish(&taker)?;
    let most = stage.most_used(&[&holder, &taker])?;
    let planned = u64::from(stage.seconds) * BURSTS_PER_SECOND;
    let told = stage.finish(&worker)?;
    if told.refusals > 0 || told.launches < planned {
        return Err(Failure::failed(format!(
            "the tenant at work was refused {} times and did {} of {planned} kernels",
            told.refusals, told.launches
        )));
    }
    Ok(Measured {
        value: most as f64 - cap as f64,
        samples: RESTARTS + report.allocations + report.refusals,
    })
}

/// Two tenants that allocate and free the same in each burst of work, one of them with a pool. How many of the allocations come
/// to the driver, and take its time, the device tells.
fn pool_speedup(stage: &mut Stage) -> Result<Measured, Failure> {
    let seconds = stage.seconds.to_string();
    let work = [
        ["--churn", "64MiB", "--kernel", "200us"],
        ["--every", "5ms", "--burst", "2"],
        ["--seconds", &seconds, "--memory", "64MiB"],
    ]
    .concat();
    let names = [POOLED, UNPOOLED];
    let tenants: Vec<Tenant> = names
        .iter()
        .map(|name| stage.tenant(name, 4096 * MIB, &work))
        .collect::<Result<_, _>>()?;
    let (mut each, mut samples) = (Vec::new(), 0);
    for tenant in &tenants {
        let told = stage.finish(tenant)?;
        // A device that keeps no such account is judged by the clients' own clocks.
        let cost = match stage.allocations(tenant)? {
            Some(came) => came as f64 / told.allocations.max(1) as f64,
            None => told.burst_p50_seconds.unwrap_or(f64::NAN),
        };
        each.push(cost);
        samples += told.allocations;
    }
    Ok(Measured {
        value: each[0] * 100.0 / each[1],
        samples,
    })
}
