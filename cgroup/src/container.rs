//! Containers by the paths their runtimes choose. The outermost container of a path counts: what lies inside it was named
//! by whoever is root in there.

use crate::components;
use crate::unit::unescaped;

/// Who made a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Docker,
    Podman,
    Containerd,
    Crio,
    Lxc,
    Nspawn,
    /// One of the above: the path does not tell which.
    Oci,
}

impl Kind {
    /// For people, lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Docker => "docker",
            Kind::Podman => "podman",
            Kind::Containerd => "containerd",
            Kind::Crio => "cri-o",
            Kind::Lxc => "lxc",
            Kind::Nspawn => "systemd-nspawn",
            Kind::Oci => "container",
        }
    }
}

/// A container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Container {
    pub kind: Kind,
    /// 64 hexadecimal digits; LXC and nspawn have names instead.
    pub id: String,
    /// UID of its pod, with dashes, where Kubernetes made it.
    pub pod: Option<String>,
}

/// Names of scopes and directories: what comes before 64 hexadecimal digits.
const PREFIXES: [(&str, Kind); 6] = [
    ("docker-", Kind::Docker),
    ("libpod-payload-", Kind::Podman),
    ("libpod-", Kind::Podman),
    ("cri-containerd-", Kind::Containerd),
    ("nerdctl-", Kind::Containerd),
    ("crio-", Kind::Crio),
];

/// Directories whose children are named by 64 hexadecimal digits alone.
const PARENTS: [(&str, Kind); 4] = [
    ("docker", Kind::Docker),
    ("moby", Kind::Docker),
    ("default", Kind::Containerd),
    ("k8s.io", Kind::Containerd),
];

/// The outermost container of `path`, and how many components of the path name it.
pub fn container(path: &str) -> Option<(Container, usize)> {
    let parts: Vec<&str> = components(path).collect();
    let mut pod = None;
    for (at, part) in parts.iter().enumerate() {
        pod = pod_in(part).or(pod);
        let parent = at.checked_sub(1).map(|above| parts[above]);
        if let Some((kind, id)) = named(part, parent, &parts[..at]) {
            return Some((Container { kind, id, pod }, at + 1));
        }
    }
    None
}

/// The container that one component names.
fn named(part: &str, parent: Option<&str>, above: &[&str]) -> Option<(Kind, String)> {
    if let Some(name) = part.strip_prefix("lxc.payload.") {
        return Some((Kind::Lxc, name.into()));
    }
    if matches!(parent, Some("lxc" | "lxc.payload")) {
        return Some((Kind::Lxc, part.into()));
    }
    let base = part.strip_suffix(".scope").unwrap_or(part);
    if let Some(name) = part
        .strip_prefix("systemd-nspawn@")
        .and_then(|rest| rest.strip_suffix(".service"))
    {
        return Some((Kind::Nspawn, unescaped(name)));
    }
    if parent == Some("machine.slice")
        && let Some(name) = base.strip_prefix("machine-")
        && part.ends_with(".scope")
    {
        let name = unescaped(name);
        // libvirt registers its virtual machines there as well.
        return (!name.starts_with("qemu-")).then_some((Kind::Nspawn, name));
    }
    // containerd without systemd's help writes `SLICE:cri-containerd:ID`.
    if let [_slice, prefix, id] = base.split(':').collect::<Vec<_>>()[..]
        && is_id(id)
    {
        let prefix = format!("{prefix}-");
        let kind = PREFIXES.iter().find(|(known, _)| *known == prefix);
        return Some((kind.map_or(Kind::Oci, |(_, kind)| *kind), id.into()));
    }
    for (prefix, kind) in PREFIXES {
        if let Some(id) = base.strip_prefix(prefix).filter(|id| is_id(id)) {
            return Some((kind, id.into()));
        }
    }
    if is_id(part) {
        let kind = PARENTS.iter().find(|(known, _)| Some(*known) == parent);
        return Some((kind.map_or(Kind::Oci, |(_, kind)| *kind), part.into()));
    }
    // Amazon's Fargate: `/ecs/TASK/TASK-NUMBER`.
    let task = part.split_once('-').filter(|(task, number)| {
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        Some(*task) == parent && !number.is_empty() && digits
    });
    (task.is_some() && above.len() >= 2 && above[above.len() - 2] == "ecs").then(|| (Kind::Oci, part.into()))
}

fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The pod that a component names: `podUID` of the cgroupfs driver, `…kubepods…-podUID.slice` of systemd's.
fn pod_in(part: &str) -> Option<String> {
    let part = part.split(':').next()?;
    let uid = match part.strip_suffix(".slice") {
        Some(slice) if slice.contains("kubepods") => slice.rsplit_once("-pod")?.1,
        Some(_) => return None,
        None => part.strip_prefix("pod")?,
    };
    let uid = uid.replace('_', "-");
    // Static pods have 32 digits and no dashes.
    let digits = uid.bytes().filter(u8::is_ascii_hexdigit).count();
    let dashes = uid.bytes().filter(|byte| *byte == b'-').count();
    (digits == 32 && digits + dashes == uid.len() && (dashes == 0 || dashes == 4)).then_some(uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3f1c0a4b5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708";
    const OTHER: &str = "aaaa0a4b5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6aaaa";
    const POD: &str = "0f7f2f5a-9f7f-4b43-8e3b-6c1b9c2f7a10";

    /// `ID`, `OTHER`, `POD` and `P_D` (the pod as systemd writes it) stand for their values.
    fn filled(path: &str) -> String {
        path.replace("P_D", &POD.replace('-', "_"))
            .replace("POD", POD)
            .replace("ID", ID)
            .replace("OTHER", OTHER)
    }

    #[test]
    fn paths_of_every_runtime_name_the_container() {
        let rows: &[(&str, Kind, &str, bool)] = &[
            // Docker: cgroupfs driver, systemd driver, a compose parent, rootless, docker in docker
            ("/docker/ID", Kind::Docker, ID, false),
            ("/system.slice/docker-ID.scope", Kind::Docker, ID, false),
            ("/system.slice/docker-ID.scope/init", Kind::Docker, ID, false),
            ("/docker/ID/docker/OTHER", Kind::Docker, ID, false),
            (
                "/user.slice/user-1000.slice/user@1000.service/user.slice/docker-ID.scope",
                Kind::Docker,
                ID,
                false,
            ),
            ("/actions_job/ID", Kind::Oci, ID, false),
            // podman: systemd and cgroupfs managers, split mode, pods, rootless
            ("/machine.slice/libpod-ID.scope", Kind::Podman, ID, false),
            (
                "/machine.slice/libpod-ID.scope/container",
                Kind::Podman,
                ID,
                false,
            ),
            ("/libpod_parent/libpod-ID", Kind::Podman, ID, false),
            (
                "/system.slice/web.service/libpod-payload-ID",
                Kind::Podman,
                ID,
                false,
            ),
            (
                "/machine.slice/machine-libpod_pod_OTHER.slice/libpod-ID.scope/container",
                Kind::Podman,
                ID,
                false,
            ),
            (
                "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope/container",
                Kind::Podman,
                ID,
                false,
            ),
            // containerd without Kubernetes
            ("/system.slice/nerdctl-ID.scope", Kind::Containerd, ID, false),
            ("/default/ID", Kind::Containerd, ID, false),
            // Kubernetes: systemd driver with containerd and CRI-O, all three classes, kind, cgroupfs driver, dockershim
            (
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podP_D.slice/cri-containerd-ID.scope",
                Kind::Containerd,
                ID,
                true,
            ),
            (
                "/kubepods.slice/kubepods-podP_D.slice/crio-ID.scope",
                Kind::Crio,
                ID,
                true,
            ),
            (
                "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podP_D.slice/crio-ID.scope/container",
                Kind::Crio,
                ID,
                true,
            ),
            (
                "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-podP_D.slice/cri-containerd-ID.scope",
                Kind::Containerd,
                ID,
                true,
            ),
            (
                "/system.slice/containerd.service/kubepods-burstable-podP_D.slice:cri-containerd:ID",
                Kind::Containerd,
                ID,
                true,
            ),
            ("/kubepods/burstable/podPOD/ID", Kind::Oci, ID, true),
            ("/kubepods/podPOD/crio-ID", Kind::Crio, ID, true),
            (
                "/kubepods.slice/kubepods-podP_D.slice/docker-ID.scope",
                Kind::Docker,
                ID,
                true,
            ),
            // LXC and LXD
            ("/lxc/web1", Kind::Lxc, "web1", false),
            ("/lxc.payload/web1/init.scope", Kind::Lxc, "web1", false),
            (
                "/lxc.payload.lab_gpu/system.slice/docker-ID.scope",
                Kind::Lxc,
                "lab_gpu",
                false,
            ),
            // systemd-nspawn, as a service and registered by hand
            (
                "/machine.slice/systemd-nspawn@build\\x2dbox.service/payload",
                Kind::Nspawn,
                "build-box",
                false,
            ),
            ("/machine.slice/machine-t1.scope", Kind::Nspawn, "t1", false),
            // Amazon
            ("/ecs/0123456789abcdef0123456789abcdef/ID", Kind::Oci, ID, false),
            (
                "/ecs/0123456789abcdef0123456789abcdef/0123456789abcdef0123456789abcdef-2531612879",
                Kind::Oci,
                "0123456789abcdef0123456789abcdef-2531612879",
                false,
            ),
        ];
        for (path, kind, id, in_pod) in rows {
            let path = filled(path);
            let (found, depth) = container(&path).unwrap_or_else(|| panic!("{path}: no container"));
            assert_eq!((found.kind, found.id.as_str()), (*kind, *id), "{path}");
            assert_eq!(found.pod.as_deref(), in_pod.then_some(POD), "{path}");
            let own = crate::ancestor(&path, depth);
            assert_eq!(
                container(&own).map(|(found, _)| found.id),
                Some(found.id),
                "{own}"
            );
        }
    }

    #[test]
    fn a_static_pod_has_a_uid_without_dashes() {
        let path = format!(
            "/kubepods.slice/kubepods-pod0123456789abcdef0123456789abcdef.slice/cri-containerd-{ID}.scope"
        );
        let pod = container(&path).and_then(|(found, _)| found.pod);
        assert_eq!(pod.as_deref(), Some("0123456789abcdef0123456789abcdef"));
    }

    #[test]
    fn what_is_no_container_is_none() {
        for path in [
            "/",
            "",
            "/user.slice/user-1000.slice/session-3.scope",
            "/system.slice/docker.service",
            "/system.slice/containerd.service",
            "/machine.slice/libpod-conmon-ID.scope",
            "/kubepods.slice/kubepods-podP_D.slice/crio-conmon-ID.scope",
            "/lxc.monitor.web1",
            "/lxc",
            "/machine.slice/machine-qemu\\x2d1\\x2dvm.scope",
            "/process_api/08fbb650b536bdcadecff4d4448e46f1",
            "/slurm/uid_1000/job_12/step_0/task_0",
            "/docker/ID0",
            "/docker/3F1C0A4B5D6E7F8091A2B3C4D5E6F708192A3B4C5D6E7F8091A2B3C4D5E6F708",
        ] {
            assert_eq!(container(&filled(path)), None, "{path}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_path_is_taken_apart(path in "(?s).{0,120}", more in "(/(docker|lxc|podx|ecs|machine.slice|:+|-))*") {
            for path in [path.clone(), format!("{path}{more}"), format!("{more}/docker-{path}.scope")] {
                if let Some((_, depth)) = container(&path) {
                    proptest::prop_assert!((1..=components(&path).count()).contains(&depth));
                }
            }
        }
    }
}
