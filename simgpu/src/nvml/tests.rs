//! The functions against a node of two H200 in this process.

use super::{Nvml, session};
use crate::catalogue::{CONTEXT_BYTES, Product};
use crate::client::{Client, Observer, Place};
use crate::facts::NodeFacts;
use crate::model::Sharing;
use crate::server::{Config, Place as ServerPlace, Server};
use driver::nvml::*;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// NVML has one session per process, so the tests take turns.
static TURN: Mutex<()> = Mutex::new(());

struct Node {
    place: Place,
    thread: Option<JoinHandle<()>>,
    _dir: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Node {
    fn start() -> Node {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("run/sim/sim.sock");
        let facts = NodeFacts::of(&[Product::H200; 2], 1, CONTEXT_BYTES).without_noise();
        let sharing = Sharing::Sliced {
            slice: 1_024_000,
            switch: 50_000,
        };
        let config = Config {
            facts,
            sharing,
            losses: Vec::new(),
            linger_ns: None,
        };
        let mut server = Server::new(ServerPlace::take(&socket).unwrap(), config).unwrap();
        let thread = Some(std::thread::spawn(move || server.run().unwrap()));
        Node {
            place: Place { socket, server: None },
            thread,
            _dir: dir,
            _turn: turn,
        }
    }

    fn initialised() -> Node {
        let node = Node::start();
        session::begin(&node.place).unwrap();
        node
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        while session::end().is_ok() {}
        if let Ok(observer) = Observer::connect(&self.place) {
            let _ = observer.stop();
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What a function stores, or its error.
fn ask<T>(function: impl FnOnce(*mut T) -> NvmlResult) -> Result<T, NvmlError> {
    let mut answer = MaybeUninit::<T>::zeroed();
    function(answer.as_mut_ptr())?;
    // SAFETY: the function succeeded, so it stored an answer; all of these are integers anyway.
    Ok(unsafe { answer.assume_init() })
}

fn text(function: impl FnOnce(*mut c_char, c_uint) -> NvmlResult) -> Result<String, NvmlError> {
    let mut bytes = [0u8; 96];
    function(bytes.as_mut_ptr().cast(), bytes.len() as c_uint)?;
    Ok(std::ffi::CStr::from_bytes_until_nul(&bytes)
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned())
}

fn device(index: c_uint) -> nvmlDevice_t {
    // SAFETY: the pointer is `ask`'s.
    ask(|to| unsafe { Nvml::nvmlDeviceGetHandleByIndex_v2(index, to) }).unwrap()
}

type Processes = (Result<(), NvmlError>, c_uint, Vec<nvmlProcessInfo_t>);

fn processes(device: nvmlDevice_t, room: c_uint) -> Processes {
    let empty = nvmlProcessInfo_t {
        pid: 0,
        usedGpuMemory: 0,
        gpuInstanceId: 0,
        computeInstanceId: 0,
    };
    let (mut count, mut list) = (room, vec![empty; room as usize]);
    let to = if room == 0 { null_mut() } else { list.as_mut_ptr() };
    // SAFETY: a list of `count` places.
    let result = unsafe { Nvml::nvmlDeviceGetComputeRunningProcesses_v3(device, &mut count, to) };
    list.truncate(count as usize);
    (result, count, list)
}

#[test]
fn nothing_answers_before_the_first_init_and_after_the_last_shutdown() {
    let node = Node::start();
    // SAFETY: the pointer is `ask`'s; the unknown function looks at nothing.
    let count = || ask(|to| unsafe { Nvml::nvmlDeviceGetCount_v2(to) });
    assert_eq!(count(), Err(NvmlError::UNINITIALIZED));
    assert_eq!(session::end(), Err(NvmlError::UNINITIALIZED));
    session::begin(&node.place).unwrap();
    session::begin(&node.place).unwrap();
    assert_eq!(count(), Ok(2));
    session::end().unwrap();
    assert_eq!(count(), Ok(2));
    session::end().unwrap();
    assert_eq!(count(), Err(NvmlError::UNINITIALIZED));
}

#[test]
fn without_a_node_or_a_server_to_start_there_is_no_driver() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    let place = Place {
        socket: dir.path().join("sim.sock"),
        server: None,
    };
    assert_eq!(session::begin(&place), Err(NvmlError::DRIVER_NOT_LOADED));
}

#[test]
fn a_device_is_found_by_index_uuid_serial_and_pci_address() {
    let _node = Node::initialised();
    let second = device(1);
    // SAFETY: buffers and pointers are those of `text` and `ask`, or locals.
    unsafe {
        let uuid = text(|to, n| Nvml::nvmlDeviceGetUUID(second, to, n)).unwrap();
        let serial = text(|to, n| Nvml::nvmlDeviceGetSerial(second, to, n)).unwrap();
        let pci = ask(|to| Nvml::nvmlDeviceGetPciInfo_v3(second, to)).unwrap();
        assert!(uuid.starts_with("GPU-") && uuid.len() == 40, "{uuid}");
        let c = |text: &str| std::ffi::CString::new(text).unwrap();
        let (uuid, serial) = (c(&uuid), c(&serial));
        assert_eq!(
            ask(|to| Nvml::nvmlDeviceGetHandleByUUID(uuid.as_ptr(), to)),
            Ok(second)
        );
        assert_eq!(
            ask(|to| Nvml::nvmlDeviceGetHandleBySerial(serial.as_ptr(), to)),
            Ok(second)
        );
        for id in [pci.busId.as_ptr(), pci.busIdLegacy.as_ptr()] {
            assert_eq!(
                ask(|to| Nvml::nvmlDeviceGetHandleByPciBusId_v2(id, to)),
                Ok(second)
            );
        }
        let unknown = c("GPU-00000000-0000-0000-0000-000000000000");
        let absent = ask(|to| Nvml::nvmlDeviceGetHandleByUUID(unknown.as_ptr(), to));
        assert_eq!(absent, Err(NvmlError::NOT_FOUND));
        let beyond = ask(|to| Nvml::nvmlDeviceGetHandleByIndex_v2(2, to));
        assert_eq!(beyond, Err(NvmlError::INVALID_ARGUMENT));
        for wrong in [null_mut(), second.byte_add(1), second.byte_add(8)] {
            assert_eq!(
                ask(|to| Nvml::nvmlDeviceGetIndex(wrong, to)),
                Err(NvmlError::INVALID_ARGUMENT)
            );
        }
        assert_eq!(ask(|to| Nvml::nvmlDeviceGetIndex(second, to)), Ok(1));
        let mut short = [0; 4];
        let cut = Nvml::nvmlDeviceGetName(second, short.as_mut_ptr(), 4);
        assert_eq!(cut, Err(NvmlError::INSUFFICIENT_SIZE));
    }
}

#[test]
fn looking_is_no_use_and_use_is_seen() {
    let node = Node::initialised();
    let (first, second) = (device(0), device(1));
    // SAFETY: the pointers are `ask`'s.
    let v1 = || ask(|to| unsafe { Nvml::nvmlDeviceGetMemoryInfo(first, to) }).unwrap();
    let v2 = || {
        let mut info = nvmlMemory_v2_t {
            version: struct_version::<nvmlMemory_v2_t>(2),
            total: 0,
            reserved: 0,
            free: 0,
            used: 0,
        };
        // SAFETY: `info` is a whole struct of version 2.
        unsafe { Nvml::nvmlDeviceGetMemoryInfo_v2(first, &mut info) }.unwrap();
        info
    };
    assert_eq!(processes(first, 0), (Ok(()), 0, vec![]));
    assert_eq!(v2().used, 0);

    let client = Client::connect(&node.place).unwrap();
    client.charge(0, 3 << 30).unwrap();
    let info = v2();
    assert_eq!(info.used, 3 << 30);
    assert_eq!(info.total, info.used + info.free + info.reserved);
    assert_eq!((v1().total, v1().free), (info.total, info.free));
    assert_eq!(v1().total, v1().free + v1().used);

    let me = std::process::id();
    assert_eq!(
        processes(first, 0),
        (Err(NvmlError::INSUFFICIENT_SIZE), 1, vec![])
    );
    let (result, count, list) = processes(first, 8);
    assert_eq!((result, count), (Ok(()), 1));
    assert_eq!(
        (list[0].pid, list[0].usedGpuMemory, list[0].gpuInstanceId),
        (me, 3 << 30, u32::MAX)
    );
    assert_eq!(processes(second, 8).1, 0);
    client.discharge(0, 3 << 30).unwrap();
    assert_eq!(processes(first, 8).1, 0);
}

#[test]
fn a_struct_of_another_version_is_refused() {
    let _node = Node::initialised();
    let mut info = nvmlMemory_v2_t {
        version: 0,
        total: 0,
        reserved: 0,
        free: 0,
        used: 0,
    };
    // SAFETY: a whole struct, whatever its version word says.
    let refused = unsafe { Nvml::nvmlDeviceGetMemoryInfo_v2(device(0), &mut info) };
    assert_eq!(refused, Err(NvmlError::ARGUMENT_VERSION_MISMATCH));
}

#[test]
fn what_the_stand_in_lacks_is_not_supported() {
    use super::Fallback as _;
    let _node = Node::initialised();
    // SAFETY: a row without arguments.
    let fan = unsafe { Nvml::nvmlDeviceGetFanSpeed() };
    assert_eq!(fan, Err(NvmlError::NOT_SUPPORTED));
    // SAFETY: the pointers are `ask`'s.
    unsafe {
        assert_eq!(ask(|to| Nvml::nvmlDeviceIsMigDeviceHandle(device(0), to)), Ok(0));
        let instance = ask(|to| Nvml::nvmlDeviceGetMigDeviceHandleByIndex(device(0), 0, to));
        assert_eq!(instance, Err(NvmlError::NOT_FOUND));
    }
}
