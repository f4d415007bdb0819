"""NVIDIA's own low-level bindings of the driver API."""

import protocol
from cuda.bindings import driver


def check(result):
    assert int(result[0]) == 0, result
    return result[1] if len(result) == 2 else result[1:]


check(driver.cuInit(0))
device = check(driver.cuDeviceGet(0))
context = check(driver.cuDevicePrimaryCtxRetain(device))
check(driver.cuCtxSetCurrent(context))


def allocate(size):
    return int(driver.cuMemAlloc(size)[0]) if size else 0


def below():
    print(check(driver.cuDeviceGetCount()), check(driver.cuDeviceGetName(64, device)).split(b"\0")[0])
    pointer, back = check(driver.cuMemAlloc(1 << 20)), bytearray(5)
    check(driver.cuMemcpyHtoD(pointer, b"hello", 5))
    check(driver.cuMemcpyDtoH(back, pointer, 5))
    print(bytes(back))
    stream, start, end = check(driver.cuStreamCreate(0)), check(driver.cuEventCreate(0)), check(driver.cuEventCreate(0))
    check(driver.cuEventRecord(start, stream))
    block = check(driver.cuMemAllocAsync(4096, stream))
    check(driver.cuMemFreeAsync(block, stream))
    image = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a){ret;}\n\0"
    function = check(driver.cuModuleGetFunction(check(driver.cuModuleLoadData(image)), b"k"))
    check(driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, ((pointer,), (None,)), 0))
    check(driver.cuEventRecord(end, stream))
    check(driver.cuStreamSynchronize(stream))
    print(check(driver.cuEventElapsedTime(start, end)) >= 0)
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
    check(driver.cuStreamBeginCapture(stream, mode))
    inside = check(driver.cuMemAllocAsync(1 << 20, stream))
    check(driver.cuMemsetD8Async(pointer, 7, 5, stream))
    check(driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, ((pointer,), (None,)), 0))
    check(driver.cuMemFreeAsync(inside, stream))
    graph = check(driver.cuStreamEndCapture(stream))
    executable = check(driver.cuGraphInstantiate(graph, 0))
    for _ in range(3):
        check(driver.cuGraphLaunch(executable, stream))
    check(driver.cuStreamSynchronize(stream))
    check(driver.cuMemcpyDtoH(back, pointer, 5))
    print(bytes(back), check(driver.cuGraphGetNodes(graph, 4))[1])
    check(driver.cuGraphExecDestroy(executable))
    check(driver.cuGraphDestroy(graph))
    check(driver.cuDeviceGraphMemTrim(device))
    check(driver.cuMemFree(pointer))
    print("freed")


protocol.main(below, allocate, lambda: check(driver.cuMemGetInfo()))
