//! A node per test, and the test's body in a process that has never seen another one.

use driver::abi::*;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

const SERVER: &str = env!("CARGO_BIN_EXE_stint-sim");
/// Set in the process that runs a test's body; the value is its part in it.
const PART: &str = "STINT_TEST_CUDA_PART";
const FIRST: &str = "first";

/// Calls a driver function.
macro_rules! cu {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        #[allow(unused_unsafe)]
        // SAFETY: the test passes what the function's documentation asks for, or null.
        unsafe { simgpu::cuda::$function($($argument),*) }
    }};
}

pub(crate) use cu;

/// A test whose body runs on a fresh node, started with these settings.
macro_rules! on_a_node {
    ($name:ident, $settings:expr, $body:expr) => {
        #[test]
        fn $name() {
            let path = concat!(module_path!(), "::", stringify!($name));
            $crate::harness::run(
                path.split_once("::").expect("a module").1,
                &$settings,
                $body,
            );
        }
    };
}

pub(crate) use on_a_node;

struct Node {
    dir: tempfile::TempDir,
}

fn sim(dir: &tempfile::TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(SERVER);
    command.args(arguments).arg("--run-dir").arg(dir.path());
    command.output().expect("stint-sim runs")
}

impl Drop for Node {
    fn drop(&mut self) {
        sim(&self.dir, &["stop"]);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs the body in a copy of this program, on a node of its own.
pub fn run(name: &str, settings: &[&str], body: impl FnOnce()) {
    if std::env::var_os(PART).is_some() {
        let (_done, watch) = mpsc::channel::<()>();
        std::thread::spawn(move || {
            if let Err(mpsc::RecvTimeoutError::Timeout) = watch.recv_timeout(Duration::from_secs(60)) {
                eprintln!("the test hangs");
                std::process::abort();
            }
        });
        return body();
    }
    let dir = tempfile::tempdir().expect("a directory");
    let node = Node { dir };
    let started = sim(&node.dir, &[&["start"], settings].concat());
    assert!(started.status.success(), "{}", text(&started.stderr));
    let output = copy_of_test(name, FIRST)
        .env("STINT_RUN_DIR", node.dir.path())
        .output();
    let output = output.expect("this program runs");
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
}

fn copy_of_test(name: &str, part: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(PART, part);
    command
}

/// The part this process plays in its test: "first", or what [`another`] called it.
pub fn part() -> String {
    std::env::var(PART).expect("inside a test")
}

/// A second process that runs the same body in another part, with pipes.
pub fn another(name: &str, part: &str) -> Command {
    let mut command = copy_of_test(name, part);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Initialises the driver and makes the primary context of device 0 current.
pub fn begin() -> CUcontext {
    cu!(cuInit(0)).expect("init");
    let mut context = std::ptr::null_mut();
    cu!(cuDevicePrimaryCtxRetain(&mut context, 0)).expect("retain");
    cu!(cuCtxSetCurrent(context)).expect("set");
    context
}

/// Free bytes of the current device.
pub fn free_bytes() -> usize {
    let (mut free, mut total) = (0, 0);
    cu!(cuMemGetInfo_v2(&mut free, &mut total)).expect("info");
    assert!(free <= total);
    free
}

/// Plain device memory.
pub fn alloc(bytes: usize) -> CUdeviceptr {
    let mut pointer = 0;
    cu!(cuMemAlloc_v2(&mut pointer, bytes)).expect("alloc");
    pointer
}

/// Runs a test's body's counterpart to its end and wants it to succeed.
pub fn finished(child: std::process::Child) -> String {
    let output = child.wait_with_output().expect("waits");
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

pub const MIB: usize = 1 << 20;
pub const GRANULE: usize = 2 * MIB;
