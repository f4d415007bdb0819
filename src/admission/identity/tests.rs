//! Whose a process is, by every way the quota file can mean it.

use super::*;
use crate::admission::launches::Launches;
use crate::config::Source;

const AUTHORITY: Authority = Authority {
    daemon: 500,
    group: Some(77),
};

fn config(text: &str) -> Config {
    Config::parse(&[Source {
        path: "stint.toml".into(),
        text: text.into(),
    }])
    .unwrap()
}

fn peer(uid: u32, user: &str) -> Peer {
    let chain: Vec<Identity> = [900, 800, 700].map(|pid| Identity { pid, start_time: 5 }).into();
    Peer {
        identity: chain[0],
        uid,
        user: user.into(),
        groups: vec![uid],
        in_groups: Vec::new(),
        chain,
        cgroup: None,
        container: None,
        job: None,
    }
}

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH
}

fn decided(config: &Config, launches: &Launches, peer: &Peer) -> Belongs {
    place_of(config, launches, peer, now()).belongs
}

#[track_caller]
fn placed(config: &Config, launches: &Launches, peer: &Peer) -> Place {
    match decided(config, launches, peer) {
        Belongs::To(place) => place,
        other => panic!("{other:?}"),
    }
}

/// The same process in a container with this id, known as `facts` say.
fn in_container(peer: Peer, id: &str) -> Peer {
    let container = cgroup::Container {
        kind: cgroup::Kind::Docker,
        id: id.into(),
        pod: None,
    };
    let container = InContainer {
        name: id.chars().take(12).collect(),
        facts: Facts::of(&container).into(),
        directory: Some(format!("/sys/fs/cgroup/docker/{id}").into()),
    };
    Peer {
        container: Some(container),
        ..peer
    }
}

fn in_job(peer: Peer, id: u64) -> Peer {
    let directory = Some("/sys/fs/cgroup/job".into());
    Peer {
        job: Some(InJob { id, directory }),
        ..peer
    }
}

fn in_cgroup(peer: Peer, path: &str) -> Peer {
    Peer {
        cgroup: Some(path.into()),
        ..peer
    }
}

fn in_group(peer: Peer, group: &str) -> Peer {
    Peer {
        in_groups: vec![group.into()],
        ..peer
    }
}

fn ask(tenant: Option<&str>, memory: Option<&str>) -> Launch {
    Launch {
        tenant: tenant.map(Into::into),
        memory: memory.map(Into::into),
        ..Launch::default()
    }
}

const FILE: &str = "[defaults]\nmemory=\"6GiB\"\n[tenants.lab]\nper=\"tenant\"\nmatch=[{user=\"alice\"},{user=\"1002\"}]\n\
                    memory=\"8GiB\"\n";

#[test]
fn users_are_matched_by_name_or_number_and_others_have_an_account_each() {
    let config = config(FILE);
    let at = |uid, user| placed(&config, &Launches::default(), &peer(uid, user));
    assert_eq!(at(1001, "alice").account, "lab");
    assert_eq!(at(1002, "bob").account, "lab");
    assert_eq!(at(1003, "carol").account, "default/carol");
    assert_eq!(at(1003, "carol").memory, MemoryRule::one("6GiB".parse().unwrap()));
}

#[test]
fn a_node_that_refuses_the_unknown_takes_only_those_it_names() {
    let config = config(&format!("[node]\nunknown=\"refuse\"\n{FILE}"));
    let belongs = |uid, user| decided(&config, &Launches::default(), &peer(uid, user));
    assert_eq!(belongs(1003, "carol"), Belongs::Nowhere);
    assert!(matches!(belongs(1001, "alice"), Belongs::To(_)));
}

#[test]
fn a_node_that_reports_the_unknown_lets_them_run_and_take_a_cap() {
    let config = config(&format!("[node]\nunknown=\"report\"\n{FILE}"));
    let (none, carol) = (Launches::default(), peer(1003, "carol"));
    assert_eq!(decided(&config, &none, &carol), Belongs::Unmanaged);
    let launch =
        |memory| place_of_launch(&config, &none, AUTHORITY, &carol, &ask(None, memory), now()).unwrap();
    let own = launch(Some("50GiB"));
    assert_eq!(
        (own.account.as_str(), own.carved_from),
        ("default/carol#900", None)
    );
    assert_eq!(launch(None).account, "default/carol");
}

const KINDS: &str = "[tenants.g]\nmatch=[{group=\"phd\"}]\n[tenants.u]\nmatch=[{user=\"alice\"}]\n\
                     [tenants.c]\nmatch=[{cgroup=\"/system.slice/api-*.service\"}]\n\
                     [tenants.j]\nper=\"job\"\nmatch=[{slurm_job=\"*\"}]\n\
                     [tenants.k]\nper=\"container\"\nmatch=[{container={id=\"ab*\"}}]\n";

#[test]
fn container_before_job_before_cgroup_before_user_before_group() {
    let config = config(KINDS);
    let none = Launches::default();
    let tenant = |peer: &Peer| placed(&config, &none, peer).tenant;
    let mut who = peer(1003, "bob");
    assert_eq!(tenant(&who), "default");
    who = in_group(who, "phd");
    assert_eq!(tenant(&who), "g");
    who.user = "alice".into();
    assert_eq!(tenant(&who), "u");
    who = in_cgroup(who, "/system.slice/api-1.service");
    assert_eq!(tenant(&who), "c");
    who = in_job(who, 7);
    assert_eq!(tenant(&who), "j");
    who = in_container(who, "abc");
    assert_eq!(tenant(&who), "k");
    who = in_container(who, "cba");
    assert_eq!(tenant(&who), "j", "another container");
}

#[test]
fn all_keys_of_an_alternative_must_hold_and_more_keys_weigh_more() {
    let config = config(
        "[tenants.a]\nmatch=[{cgroup=\"/x\", user=\"alice\"}]\n[tenants.b]\nmatch=[{cgroup=\"/x\"},{group=\"500\"}]\n",
    );
    let tenant = |peer: &Peer| placed(&config, &Launches::default(), peer).tenant;
    assert_eq!(tenant(&in_cgroup(peer(1, "alice"), "/x")), "a");
    assert_eq!(tenant(&in_cgroup(peer(2, "bob"), "/x")), "b");
    assert_eq!(tenant(&peer(1, "alice")), "default");
    let mut by_number = peer(2, "bob");
    by_number.groups.push(500);
    assert_eq!(tenant(&by_number), "b");
}

#[test]
fn a_cgroup_matches_with_all_below_it_and_a_star_stays_within_one_component() {
    let config = config(
        "[tenants.api]\nmatch=[{cgroup=\"/system.slice/api-*.service\"}]\n[tenants.any]\nmatch=[{cgroup=\"/user.slice/**\"}]\n",
    );
    let tenant = |path| placed(&config, &Launches::default(), &in_cgroup(peer(1, "x"), path)).tenant;
    for (path, expected) in [
        ("/system.slice/api-1.service", "api"),
        ("/system.slice/api-1.service/worker/0", "api"),
        ("/system.slice/api-1.services", "default"),
        ("/system.slice/api-1/x.service", "default"),
        ("/user.slice/user-1.slice/system.slice/api-1.service", "any"),
        ("/", "default"),
    ] {
        assert_eq!(tenant(path), expected, "{path}");
    }
}

#[test]
fn jobs_and_containers_have_an_account_each_that_lives_as_long_as_they() {
    let config = config(KINDS);
    let place = |peer: &Peer| placed(&config, &Launches::default(), peer);
    let job = place(&in_job(peer(1, "alice"), 4711));
    assert_eq!((job.account.as_str(), job.passing), ("j/job:4711", false));
    assert_eq!(job.lives_in, Some("/sys/fs/cgroup/job".into()));
    let id = format!("ab{}", "0".repeat(62));
    let container = place(&in_container(peer(1, "alice"), &id));
    assert_eq!(container.account, "k/container:ab0000000000");
    let mut unseen = in_job(peer(1, "alice"), 7);
    unseen.job = Some(InJob {
        id: 7,
        directory: None,
    });
    assert!(place(&unseen).passing, "nobody could tell when the job is over");
}

#[test]
fn who_is_in_no_job_has_the_account_of_its_user_there() {
    let config = config("[defaults]\nper=\"job\"\n");
    let place = placed(&config, &Launches::default(), &peer(1, "alice"));
    assert_eq!(
        (place.account.as_str(), place.lives_in, place.passing),
        ("default/alice", None, false)
    );
}

#[test]
fn between_equals_the_lower_cap_counts_and_somebody_is_told() {
    let config = config(
        "[tenants.a]\nmemory=\"8GiB\"\nmatch=[{group=\"phd\"}]\n[tenants.b]\nmemory=\"2GiB\"\nmatch=[{group=\"lab\"}]\n\
         [tenants.c]\nmemory=\"50%\"\nmatch=[{group=\"old\"}]\n",
    );
    let mut both = in_group(peer(1, "alice"), "phd");
    both.in_groups.push("lab".into());
    let verdict = place_of(&config, &Launches::default(), &both, now());
    assert!(
        matches!(&verdict.belongs, Belongs::To(place) if place.tenant == "b"),
        "{verdict:?}"
    );
    assert_eq!(
        verdict.notes,
        ["tenants b and a match pid 900 (user alice) with the same weight: the lower cap counts, that of b"]
    );
    both.in_groups.reverse();
    assert_eq!(placed(&config, &Launches::default(), &both).tenant, "b");
}

#[test]
fn a_container_whose_label_cannot_be_known_does_not_match_and_somebody_is_told() {
    let config = config("[tenants.api]\nmatch=[{container={label=\"stint.tenant=api\"}}]\n");
    let mut who = in_container(peer(1, "alice"), "abc");
    let verdict = |who: &Peer| place_of(&config, &Launches::default(), who, now());
    let other = verdict(&who);
    assert!(other.notes.is_empty(), "it has no such label: {other:?}");
    if let Some(container) = &mut who.container {
        Arc::make_mut(&mut container.facts).unread = Some("permission denied".into());
    }
    let unknown = verdict(&who);
    assert!(matches!(&unknown.belongs, Belongs::To(place) if place.tenant == "default"));
    assert_eq!(
        unknown.notes,
        [
            "tenant api matches containers by label, which is not known of container abc: permission denied; the match does not hold"
        ]
    );
}

#[test]
fn a_stanza_past_its_time_matches_nobody() {
    let config = config("[tenants.a]\nuntil=\"2026-01-01\"\nmatch=[{user=\"alice\"}]\n");
    let at = |seconds| {
        let now = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        place_of(&config, &Launches::default(), &peer(1, "alice"), now).belongs
    };
    let tenant = |belongs| matches!(belongs, Belongs::To(Place { tenant, .. }) if tenant == "a");
    assert!(tenant(at(0)));
    assert!(!tenant(at(4_000_000_000)));
}

#[test]
fn a_launch_claims_its_descendants_and_no_later_process_of_the_same_number() {
    let config = config(FILE);
    let mut launches = Launches::default();
    let granted = place_of_launch(
        &config,
        &launches,
        AUTHORITY,
        &peer(0, "root"),
        &ask(Some("x"), None),
        now(),
    )
    .unwrap();
    assert_eq!((granted.account.as_str(), granted.passing), ("x", true));
    launches.add(
        Identity {
            pid: 700,
            start_time: 5,
        },
        0,
        granted.clone(),
    );
    assert_eq!(placed(&config, &launches, &peer(1003, "carol")), granted);
    launches.remove(Identity {
        pid: 700,
        start_time: 5,
    });
    launches.add(
        Identity {
            pid: 700,
            start_time: 6,
        },
        0,
        granted,
    );
    assert_eq!(placed(&config, &launches, &peer(1003, "carol")).tenant, "default");
}

#[test]
fn only_those_with_authority_name_tenants_and_others_take_a_part_of_what_they_have() {
    let config = config(FILE);
    let launches = Launches::default();
    let try_it =
        |peer: &Peer, launch: &Launch| place_of_launch(&config, &launches, AUTHORITY, peer, launch, now());
    let mut trusted = peer(1003, "carol");
    trusted.groups.push(77);
    for peer in [peer(0, "root"), peer(500, "stintd"), trusted] {
        let place = try_it(&peer, &ask(Some("lab"), Some("50GiB"))).unwrap();
        assert_eq!(
            (place.account.as_str(), place.memory.cap),
            ("lab", "50GiB".parse().unwrap())
        );
    }
    let carol = peer(1003, "carol");
    let refused = try_it(&carol, &ask(Some("lab"), None)).unwrap_err();
    assert_eq!(refused.exit, Exit::NOT_PERMITTED);
    let lowered = try_it(&carol, &ask(None, Some("2GiB"))).unwrap();
    assert_eq!(lowered.carved_from.as_deref(), Some("default/carol"));
    assert_eq!(lowered.account, "default/carol#900");
    assert_eq!(
        try_it(&carol, &ask(Some("default"), None)).unwrap().account,
        "default/carol"
    );
    assert_eq!(
        try_it(&carol, &ask(None, Some("0"))).unwrap_err().exit,
        Exit::USAGE
    );
}

#[test]
fn launches_inside_launches_end_somewhere() {
    let config = config("[defaults]\nmemory = \"8GiB\"\n");
    let mut launches = Launches::default();
    let carol = peer(1003, "carol");
    let asked = ask(None, Some("1MiB"));
    let mut depth = 0;
    let refused = loop {
        match place_of_launch(
            &config,
            &launches,
            AUTHORITY,
            &carol,
            &asked,
            SystemTime::UNIX_EPOCH,
        ) {
            Ok(place) => launches.add(carol.chain[0], carol.uid, place),
            Err(failure) => break failure,
        }
        depth += 1;
        assert!(depth < 1000, "they never do");
    };
    assert_eq!((depth, refused.exit), (16, Exit::FAILED));
}
