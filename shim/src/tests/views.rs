//! What a program is told of the device's memory.

use driver::CudaError;
use ledger::Mode;

use super::world::CONTEXT;
use super::{MIB, Stage, call};
use crate::hooks::{device, memory};

const DEVICE: usize = 64 << 30;

fn info(stage: &Stage) -> (usize, usize) {
    let (mut free, mut total) = (0, 0);
    call!(stage, cuMemGetInfo_v2 => device::memory_info, &raw mut free, &raw mut total).unwrap();
    (free, total)
}

#[test]
fn free_and_total_are_the_accounts_and_saturate() {
    let stage = Stage::new(100 * MIB, CONTEXT);
    assert_eq!(
        info(&stage),
        ((100 * MIB - CONTEXT) as usize, (100 * MIB) as usize)
    );
    let mut pointer = 0;
    call!(stage, cuMemAlloc_v2 => memory::alloc, &raw mut pointer, 50 << 20).unwrap();
    assert_eq!(info(&stage).0, (50 * MIB - CONTEXT) as usize);
    stage.set_cap(10 * MIB, Mode::Enforce);
    assert_eq!(info(&stage), (0, (10 * MIB) as usize), "a cap below what is used");
    let mut total = 0;
    call!(stage, cuDeviceTotalMem_v2 => device::total_memory, &raw mut total, 0).unwrap();
    assert_eq!(total, (10 * MIB) as usize);
}

#[test]
fn a_cap_above_the_device_shows_the_device() {
    let stage = Stage::new(1 << 40, CONTEXT);
    assert_eq!(info(&stage), (DEVICE - CONTEXT as usize, DEVICE));
}

#[test]
fn observing_changes_no_view_and_refuses_nothing() {
    let stage = Stage::new(10 * MIB, CONTEXT);
    stage.set_cap(10 * MIB, Mode::Observe);
    let mut pointer = 0;
    call!(stage, cuMemAlloc_v2 => memory::alloc, &raw mut pointer, 50 << 20).unwrap();
    stage.assert_exact();
    assert_eq!(info(&stage), (DEVICE - stage.physical() as usize, DEVICE));
    // More than any account can hold is the driver's to refuse.
    let huge = call!(stage, cuMemAlloc_v2 => memory::alloc, &raw mut pointer, 1 << 43);
    assert_eq!(huge, Ok(()));
}

#[test]
fn an_error_of_the_driver_is_the_answer() {
    let stage = Stage::new(100 * MIB, CONTEXT);
    stage.fail_next("cuMemGetInfo_v2", CudaError::DEINITIALIZED.code());
    let (mut free, mut total) = (7, 7);
    let result = call!(stage, cuMemGetInfo_v2 => device::memory_info, &raw mut free, &raw mut total);
    assert_eq!((result, free, total), (Err(CudaError::DEINITIALIZED), 7, 7));
    let null = call!(stage, cuMemGetInfo_v2 => device::memory_info, core::ptr::null_mut(), &raw mut total);
    assert_eq!(null, Err(CudaError::INVALID_VALUE));
}
