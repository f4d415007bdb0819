//! A root filesystem of its own for a test: this machine's distribution by debootstrap, made once and kept under `target`,
//! with a layer above it in memory that ends with the test.
//!
//! All mounts live in a mount namespace that one process holds, `Overlay`'s; it is the first process of a process namespace
//! too and ends with its standard input, so that neither a mount nor a process outlives the test, however it ends.

use std::{
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::Duration,
};

use super::{
    outcome::{self, Outcome},
    skip::skip,
    target,
};

/// What the root has beside Debian's minimum.
const PACKAGES: &str = "systemd,systemd-sysv,dbus,cron,login,libc6-i386,python3-minimal";

/// A hundred megabytes are downloaded and unpacked.
const DEBOOTSTRAP_WATCHDOG: Duration = Duration::from_secs(900);

/// Search path inside the root.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The unchanging base, made by the first test that asks. `None`, and one line for `what`, where there can be none.
pub fn base(what: &str) -> Option<&'static Path> {
    static BASE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match BASE.get_or_init(make_base) {
        Ok(path) => Some(path),
        Err(why) => {
            skip(what, why);
            None
        }
    }
}

fn make_base() -> Result<PathBuf, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("needs root, for a root filesystem of its own".into());
    }
    if Command::new("debootstrap").arg("--version").output().is_err() {
        return Err("needs the package debootstrap".into());
    }
    let probe = outcome::run(Command::new("unshare").args(["--mount", "--pid", "--net", "--fork", "true"]));
    if probe.code != 0 {
        return Err(format!("needs to make namespaces: {}", probe.stderr));
    }
    let origin = Origin::of_this_machine()?;
    let home = directory().join(&origin.suite);
    if home.join("packages").is_file_with(PACKAGES) {
        return Ok(home.join("root"));
    }
    let work = directory().join(format!(".{}.{}", origin.suite, std::process::id()));
    fs::create_dir_all(&work).map_err(|error| error.to_string())?;
    // In namespaces of its own: an interrupted debootstrap leaves its mounts and programs behind.
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "debootstrap"]);
    command.args([
        "--variant=minbase",
        &format!("--include={PACKAGES}"),
        &origin.suite,
    ]);
    command.arg(work.join("root")).arg(&origin.mirror);
    command.env_remove("LD_LIBRARY_PATH").env("LC_ALL", "C");
    let made = outcome::start(&mut command).finish_within("debootstrap", DEBOOTSTRAP_WATCHDOG);
    if made.code != 0 {
        let last = made.stdout.lines().last().unwrap_or_default().to_owned();
        fs::remove_dir_all(&work).map_err(|error| error.to_string())?;
        return Err(format!("debootstrap of {} failed: {last}", origin.suite));
    }
    for cache in ["var/cache/apt", "var/lib/apt/lists"] {
        fs::remove_dir_all(work.join("root").join(cache)).map_err(|error| error.to_string())?;
    }
    fs::write(work.join("packages"), PACKAGES).map_err(|error| error.to_string())?;
    let _an_older_one = fs::remove_dir_all(&home);
    fs::rename(&work, &home).map_err(|error| error.to_string())?;
    Ok(home.join("root"))
}

/// Where roots stay.
fn directory() -> PathBuf {
    target().join("rootfs")
}

trait IsFileWith {
    fn is_file_with(&self, text: &str) -> bool;
}

impl IsFileWith for PathBuf {
    fn is_file_with(&self, text: &str) -> bool {
        fs::read_to_string(self).is_ok_and(|found| found == text)
    }
}

/// A distribution's release and where it comes from.
#[derive(Debug, PartialEq, Eq)]
struct Origin {
    mirror: String,
    suite: String,
}

impl Origin {
    /// As the package sources of this machine say, so that programs compiled here run there.
    fn of_this_machine() -> Result<Origin, String> {
        let code = fs::read_to_string("/etc/os-release")
            .unwrap_or_default()
            .lines()
            .find_map(|line| {
                line.strip_prefix("VERSION_CODENAME=")
                    .map(|code| code.trim_matches('"').to_owned())
            })
            .ok_or("/etc/os-release names no release of Debian's kind")?;
        let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
        files.extend(
            fs::read_dir("/etc/apt/sources.list.d")
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path()),
        );
        let texts = files.iter().filter_map(|file| fs::read_to_string(file).ok());
        let origin = texts.filter_map(|text| Origin::in_sources(&text, &code)).next();
        origin.ok_or(format!("no source of packages here offers {code} main"))
    }

    /// The source of `suite`'s component `main` in a list of either form, lines or paragraphs.
    fn in_sources(text: &str, suite: &str) -> Option<Origin> {
        let line = text.lines().find_map(|line| {
            let words = line.strip_prefix("deb ")?;
            let words = words
                .trim_start()
                .strip_prefix('[')
                .map_or(Some(words), |rest| Some(rest.split_once(']')?.1))?;
            let mut words = words.split_whitespace();
            let mirror = words.next()?;
            (words.next()? == suite && words.any(|word| word == "main")).then_some(mirror)
        });
        let paragraph = || {
            text.split("\n\n").find_map(|paragraph| {
                let field = |name: &str| {
                    paragraph
                        .lines()
                        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                };
                let has = |name: &str, word: &str| {
                    field(name).is_some_and(|value| value.split_whitespace().any(|found| found == word))
                };
                (has("Types", "deb") && has("Suites", suite) && has("Components", "main"))
                    .then(|| field("URIs")?.split_whitespace().next())?
            })
        };
        let mirror = line.or_else(paragraph)?;
        Some(Origin {
            mirror: mirror.to_owned(),
            suite: suite.to_owned(),
        })
    }
}

/// One test's root: everything above the base is in memory, the network is its own.
pub struct Overlay {
    holder: Child,
    /// The holder's first process, as this machine counts.
    first: String,
    root: PathBuf,
}

impl Overlay {
    /// A root whose programs run by `command`: with `/proc`, `/dev`, `/sys` and an empty `/run` of its own.
    #[track_caller]
    pub fn new(base: &Path) -> Overlay {
        Overlay::hold(base, KERNEL_FILESYSTEMS)
    }

    /// A root that a container manager boots, by `outside` (`machine.rs`): nothing is mounted in it; outside of it `/run` is empty.
    #[track_caller]
    pub fn bare(base: &Path) -> Overlay {
        Overlay::hold(base, "mount -t tmpfs tmpfs /run; mkdir /run/systemd")
    }

    #[track_caller]
    fn hold(base: &Path, more: &str) -> Overlay {
        let at = directory().join("at");
        fs::create_dir_all(&at).expect("a mount point can be made");
        let script = format!("{LAYERS}\n{more}\n{HOLD}");
        let mut command = Command::new("unshare");
        command.args([
            "--mount",
            "--pid",
            "--net",
            "--ipc",
            "--uts",
            "--fork",
            "--kill-child",
        ]);
        command.args(["sh", "-euc", &script, "sh"]).arg(base).arg(&at);
        let mut holder = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare can be started");
        let mut first = String::new();
        let said = holder.stdout.take().expect("stdout is a pipe");
        BufReader::new(said)
            .read_line(&mut first)
            .expect("the holder says who it is");
        let overlay = Overlay {
            holder,
            first: first.trim().to_owned(),
            root: at.join("root"),
        };
        assert!(
            !overlay.first.is_empty(),
            "the root filesystem could not be mounted"
        );
        overlay
    }

    /// `program` inside the root, as root, with nothing of this environment.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.outside("chroot");
        command.arg(&self.root).arg(program);
        command
    }

    /// Runs the line in the root's shell.
    #[track_caller]
    pub fn sh(&self, line: &str) -> Outcome {
        outcome::run(self.command("sh").args(["-c", line]))
    }

    /// `program` of this machine where the root is mounted (`root`), but not inside it.
    pub fn outside(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args([
            "--target",
            &self.first,
            "--mount",
            "--pid",
            "--net",
            "--ipc",
            "--uts",
        ]);
        command.arg("--").arg(program);
        command
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", "/")
            .env("LC_ALL", "C.UTF-8");
        command
    }

    /// Where the root is for programs of `outside`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A file or directory of the root, to be read and written from here. An absolute link in it leads out of the root.
    pub fn file(&self, path: &str) -> PathBuf {
        let root = self.root.strip_prefix("/").expect("the root's path is absolute");
        Path::new("/proc")
            .join(&self.first)
            .join("root")
            .join(root)
            .join(path.trim_start_matches('/'))
    }

    /// Writes a file, whose directory is made.
    #[track_caller]
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let file = self.file(path);
        fs::create_dir_all(file.parent().expect("a file has a directory")).expect("a directory can be made");
        fs::write(file, content).unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// Shows `from`, a file or directory of this machine, read-only at `to` in the root.
    #[track_caller]
    pub fn bind(&self, from: &Path, to: &str) {
        let target = self.root.join(to.trim_start_matches('/'));
        let script = r#"if [ -d "$1" ]; then mkdir -p "$2"; else mkdir -p "${2%/*}"; : >> "$2"; fi
            mount --bind "$1" "$2" && mount -o remount,bind,ro "$2""#;
        let mut command = self.outside("sh");
        outcome::run(command.args(["-euc", script, "sh"]).arg(from).arg(target)).success();
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        drop(self.holder.stdin.take()); // the first process ends, with it all others and the mounts
        let _reaped = self.holder.wait();
    }
}

/// Says the first process's number as this machine counts, mounts the layers. $1 is the base, $2 the mount point.
const LAYERS: &str = r#"
read -r first rest < /proc/self/stat
mount -t tmpfs -o mode=755 tmpfs "$2"
mkdir "$2/upper" "$2/work" "$2/root"
mount -t overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" overlay "$2/root"
! command -v ip > /dev/null || ip link set lo up
"#;

const KERNEL_FILESYSTEMS: &str = r#"
cd "$2/root"
mount --rbind /sys sys
mount --make-rslave sys
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=755 tmpfs dev
for node in null zero full random urandom tty; do : > dev/$node; mount --bind /dev/$node dev/$node; done
mkdir dev/shm dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t proc proc proc
"#;

/// Until the test ends. Ignoring SIGCHLD reaps what is orphaned in the process namespace.
const HOLD: &str = r#"
mount -t proc proc /proc
trap '' CHLD
echo "$first"
exec cat > /dev/null
"#;

#[test]
fn the_source_of_packages_is_found_in_both_forms() {
    let expected = Some(Origin {
        mirror: "http://a.example/debian".into(),
        suite: "bookworm".into(),
    });
    let lines = "# deb http://no.example bookworm main\ndeb http://b.example bookworm-updates main\n\
                 deb [signed-by=/k] http://a.example/debian bookworm main contrib\n";
    assert_eq!(Origin::in_sources(lines, "bookworm"), expected);
    let paragraphs = "Types: deb\nURIs: http://b.example\nSuites: bookworm-security\nComponents: main\n\n\
                      Types: deb deb-src\nURIs: http://a.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\n";
    assert_eq!(Origin::in_sources(paragraphs, "bookworm"), expected);
    assert_eq!(Origin::in_sources(paragraphs, "trixie"), None);
}

#[test]
fn a_root_filesystem_leaves_nothing_behind() {
    let Some(base) = base("a root filesystem of its own") else {
        return;
    };
    let mounts = || fs::read_to_string("/proc/self/mountinfo").expect("mountinfo");
    let (before, first) = (mounts(), {
        let overlay = Overlay::new(base);
        overlay.write("/etc/of-this-test", "x");
        assert_eq!(overlay.sh("cat /etc/of-this-test; id -un").stdout, "xroot\n");
        overlay.bind(Path::new("/etc/os-release"), "/opt/deep/release");
        overlay
            .sh("test -s /opt/deep/release && ! touch /opt/deep/release")
            .success();
        overlay.sh("sleep 1000 > /dev/null 2>&1 & echo started").success();
        assert_eq!(overlay.sh("exit 7").code, 7);
        overlay.first.clone()
    });
    assert_eq!(mounts(), before);
    assert!(!Path::new("/proc").join(first).exists(), "no process is left");
    assert!(!base.join("etc/of-this-test").exists(), "the base is as it was");
    assert!(
        !Overlay::new(base).file("/etc/of-this-test").exists(),
        "the next test begins anew"
    );
}
