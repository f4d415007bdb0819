//! Copies of a run of bytes to, from and between arrays: the functions from before boxes could be copied.

use super::Sim;
use super::copy::Return::{AtOnce, Complete};
use super::copy::{Side, copy};
use driver::prelude::*;
use std::ptr::null_mut;

impl Sim {
    pub(super) fn cuMemcpyHtoA_v2(
        api: StreamApi,
        dstArray: CUarray,
        dstOffset: usize,
        srcHost: *const c_void,
        ByteCount: usize,
    ) -> CuResult {
        let (to, from) = (Side::Array(dstArray, dstOffset), Side::Host(srcHost as u64));
        copy(api, to, from, ByteCount, null_mut(), Complete)
    }

    pub(super) fn cuMemcpyHtoAAsync_v2(
        api: StreamApi,
        dstArray: CUarray,
        dstOffset: usize,
        srcHost: *const c_void,
        ByteCount: usize,
        hStream: CUstream,
    ) -> CuResult {
        let (to, from) = (Side::Array(dstArray, dstOffset), Side::Host(srcHost as u64));
        copy(api, to, from, ByteCount, hStream, AtOnce)
    }

    pub(super) fn cuMemcpyAtoH_v2(
        api: StreamApi,
        dstHost: *mut c_void,
        srcArray: CUarray,
        srcOffset: usize,
        ByteCount: usize,
    ) -> CuResult {
        let (to, from) = (Side::Host(dstHost as u64), Side::Array(srcArray, srcOffset));
        copy(api, to, from, ByteCount, null_mut(), Complete)
    }

    pub(super) fn cuMemcpyAtoHAsync_v2(
        api: StreamApi,
        dstHost: *mut c_void,
        srcArray: CUarray,
        srcOffset: usize,
        ByteCount: usize,
        hStream: CUstream,
    ) -> CuResult {
        let (to, from) = (Side::Host(dstHost as u64), Side::Array(srcArray, srcOffset));
        copy(api, to, from, ByteCount, hStream, AtOnce)
    }

    pub(super) fn cuMemcpyDtoA_v2(
        api: StreamApi,
        dstArray: CUarray,
        dstOffset: usize,
        srcDevice: CUdeviceptr,
        ByteCount: usize,
    ) -> CuResult {
        let (to, from) = (Side::Array(dstArray, dstOffset), Side::Device(srcDevice));
        copy(api, to, from, ByteCount, null_mut(), AtOnce)
    }

    pub(super) fn cuMemcpyAtoD_v2(
        api: StreamApi,
        dstDevice: CUdeviceptr,
        srcArray: CUarray,
        srcOffset: usize,
        ByteCount: usize,
    ) -> CuResult {
        let (to, from) = (Side::Device(dstDevice), Side::Array(srcArray, srcOffset));
        copy(api, to, from, ByteCount, null_mut(), AtOnce)
    }

    pub(super) fn cuMemcpyAtoA_v2(
        api: StreamApi,
        dstArray: CUarray,
        dstOffset: usize,
        srcArray: CUarray,
        srcOffset: usize,
        ByteCount: usize,
    ) -> CuResult {
        let (to, from) = (Side::Array(dstArray, dstOffset), Side::Array(srcArray, srcOffset));
        copy(api, to, from, ByteCount, null_mut(), AtOnce)
    }
}
