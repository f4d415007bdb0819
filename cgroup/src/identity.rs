//! What a process is, from all its groups. On a hybrid host a container or job may be named in a hierarchy other than the
//! one that names the process: runtimes and Slurm use version 1 there, systemd both.

use crate::ancestor;
use crate::container::{Container, container};
use crate::job::{Job, job};
use crate::membership::{Cgroup, Membership};

/// Something a path names, and the group that is its own: when that one is removed, it has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<T> {
    pub what: T,
    pub group: Cgroup,
}

/// What a process is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The group that names it: the first, in the order of [`Membership::groups`], that is not a root.
    pub group: Option<Cgroup>,
    pub container: Option<Found<Container>>,
    pub job: Option<Found<Job>>,
}

impl Membership {
    /// What the groups say. A container or job counts if `made_by_root` holds for the group and the number of components
    /// of its path that name it: see [`crate::Mounts::made_by_root`].
    pub fn identity(&self, made_by_root: impl Fn(&Cgroup, usize) -> bool) -> Identity {
        Identity {
            group: self.named().cloned(),
            container: self.first(container, &made_by_root),
            job: self.first(job, &made_by_root),
        }
    }

    fn first<T>(
        &self,
        find: impl Fn(&str) -> Option<(T, usize)>,
        made_by_root: impl Fn(&Cgroup, usize) -> bool,
    ) -> Option<Found<T>> {
        self.groups().find_map(|group| {
            let (what, depth) = find(&group.path)?;
            made_by_root(group, depth).then(|| Found {
                what,
                group: Cgroup {
                    hierarchy: group.hierarchy.clone(),
                    path: ancestor(&group.path, depth),
                },
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::Hierarchy;

    const ID: &str = "3f1c0a4b5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708";

    #[test]
    fn on_a_hybrid_host_containers_and_jobs_are_found_where_they_are() {
        let text = format!(
            "5:freezer:/slurm/uid_1000/job_7/step_0\n4:memory:/docker/{ID}/inner\n1:name=systemd:/system.slice/slurmd.service\n\
             0::/system.slice/slurmd.service\n"
        );
        let found = Membership::parse(&text).identity(|_, _| true);
        assert_eq!(found.group.unwrap().path, "/system.slice/slurmd.service");
        let container = found.container.unwrap();
        assert_eq!(container.what.id, ID);
        assert_eq!(
            container.group.path,
            format!("/docker/{ID}"),
            "the container's own group"
        );
        let job = found.job.unwrap();
        assert_eq!(
            (job.what.id, job.group.path.as_str()),
            (7, "/slurm/uid_1000/job_7")
        );
        assert_eq!(job.group.hierarchy, Hierarchy::Legacy("freezer".into()));
    }

    #[test]
    fn a_name_a_user_could_have_given_is_passed_over() {
        let forged = format!("/user.slice/user-1000.slice/user@1000.service/docker-{ID}.scope");
        let genuine = format!("/docker/{}", ID.replace('3', "4"));
        let text = format!("4:memory:{genuine}\n0::{forged}\n");
        let by_root = |group: &Cgroup, _| !group.path.starts_with("/user.slice");
        let membership = Membership::parse(&text);
        assert_eq!(
            membership.identity(by_root).container.unwrap().group.path,
            genuine
        );
        assert_eq!(
            Membership::parse(&format!("0::{forged}\n"))
                .identity(by_root)
                .container,
            None
        );
    }
}
