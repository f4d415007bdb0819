//! What the kernel's files could say: whatever it is, reading it ends, and no path it gives leads out of its directory.

#[path = "../../tests/fuzz/engine.rs"]
mod engine;

use std::path::Component;

use engine::fuzz;

use crate::{Membership, Mounts, container, job, service};

const MOUNTS: &str = "25 30 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n\
                      31 25 0:27 /system.slice /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
                      40 30 8:1 / /mnt/with\\040space rw - ext4 /dev/sda1 rw\n";
const GROUPS: [&str; 4] = [
    "4:cpu,cpuacct:/docker/3f4e1d6c7a8b9c0d1e2f3f4e1d6c7a8b9c0d1e2f3f4e1d6c7a8b9c0d1e2f3f4e\n1:name=systemd:/init.scope\n",
    "0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0\n",
    "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12ab_34.slice/cri-containerd-00ff.scope\n",
    "0::/../user.slice/user-1000.slice/user@1000.service/app.slice/a\\x2db.service (deleted)\n",
];

#[test]
fn no_list_of_groups_leads_out_of_the_mounted_trees() {
    let mounts = Mounts::parse(MOUNTS);
    let seeds = GROUPS.iter().map(|text| text.as_bytes().to_vec()).collect();
    fuzz("cgroup-membership", seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let membership = Membership::parse(&text);
        for group in membership.groups() {
            let _ = (container(&group.path), job(&group.path), service(&group.path));
            if let Some(directory) = mounts.directory(group) {
                assert!(
                    directory.components().all(|part| part != Component::ParentDir),
                    "{directory:?}"
                );
            }
        }
    });
}

#[test]
fn no_list_of_mounts_leads_out_either() {
    let membership = Membership::parse(GROUPS[0]);
    fuzz("mountinfo", vec![MOUNTS.as_bytes().to_vec()], |bytes| {
        let mounts = Mounts::parse(&String::from_utf8_lossy(bytes));
        let _ = mounts.layout();
        for group in membership.groups() {
            let _ = mounts.directory(group);
        }
    });
}
