//! Jobs of a batch system by the paths it chooses: Slurm, with its plugins for both versions of control groups.

use crate::components;

/// A Slurm job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Job {
    pub id: u64,
    /// User it runs as, where the path tells.
    pub uid: Option<u32>,
    /// For example `0`, `batch` or `extern`.
    pub step: Option<String>,
}

/// The job of `path`, and how many components of the path name it.
pub fn job(path: &str) -> Option<(Job, usize)> {
    let parts: Vec<&str> = components(path).collect();
    let after = |at: usize, prefix: &str| parts.get(at).and_then(|part| part.strip_prefix(prefix));
    for (at, part) in parts.iter().enumerate() {
        // Several slurmd on one host put their node's name into it, in both versions.
        let (uid, below) = if *part == "slurm" || part.starts_with("slurm_") {
            match after(at + 1, "uid_").and_then(|uid| uid.parse().ok()) {
                Some(uid) => (Some(uid), at + 2),
                None => continue,
            }
        } else if *part == "slurmstepd.scope" || part.ends_with("_slurmstepd.scope") {
            (None, at + 1)
        } else {
            continue;
        };
        if let Some(id) = after(below, "job_").and_then(|id| id.parse().ok()) {
            let step = after(below + 1, "step_").map(str::to_owned);
            return Some((Job { id, uid, step }, below + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_both_plugins_name_the_job() {
        let rows = [
            (
                "/slurm/uid_1000/job_4711/step_0/task_0",
                4711,
                Some(1000),
                Some("0"),
                3,
            ),
            ("/slurm/uid_0/job_9/step_batch", 9, Some(0), Some("batch"), 3),
            (
                "/slurm_node7/uid_1000/job_12/step_extern",
                12,
                Some(1000),
                Some("extern"),
                3,
            ),
            ("/slurm/uid_1000/job_12", 12, Some(1000), None, 3),
            (
                "/system.slice/slurmstepd.scope/job_88/step_1/user/task_3",
                88,
                None,
                Some("1"),
                3,
            ),
            (
                "/system.slice/node7_slurmstepd.scope/job_88/step_interactive/slurm",
                88,
                None,
                Some("interactive"),
                3,
            ),
        ];
        for (path, id, uid, step, depth) in rows {
            let step = step.map(str::to_owned);
            assert_eq!(job(path), Some((Job { id, uid, step }, depth)), "{path}");
        }
    }

    #[test]
    fn what_is_no_job_is_none() {
        for path in [
            "/",
            "/system.slice/slurmd.service",
            "/system.slice/slurmstepd.scope/system",
            "/slurm/uid_1000",
            "/slurm/job_1",
            "/slurm/uid_x/job_1",
            "/slurm/uid_1/job_x",
            "/slurm/uid_1/job_99999999999999999999999",
            "/job_1/step_0",
        ] {
            assert_eq!(job(path), None, "{path}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_path_is_taken_apart(path in "(/(slurm|uid_1|job_2|step_|slurmstepd.scope|.{0,8})){0,6}") {
            if let Some((_, depth)) = job(&path) {
                proptest::prop_assert!(depth <= components(&path).count());
            }
        }
    }
}
