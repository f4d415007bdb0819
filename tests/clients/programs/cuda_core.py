"""NVIDIA's Pythonic layer: devices, streams, buffers, run-time compilation and launch."""

import protocol
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

device = Device()
device.set_current()
stream = device.create_stream()
kept = []


def allocate(size):
    if not size:
        return 0
    try:
        kept.append(device.allocate(size, stream=stream))
    except Exception as error:
        assert "OUT_OF_MEMORY" in str(error), error
        return 2
    return 0


def info():
    error, free, total = driver.cuMemGetInfo()
    assert int(error) == 0
    return free, total


def below():
    print(device.name, device.compute_capability)
    source = 'extern "C" __global__ void k(int *p, double x, char c) { p[0] = x + c; }'
    kernel = Program(source, code_type="c++", options=ProgramOptions(arch="sm_90")).compile("cubin").get_kernel("k")
    block = device.allocate(4096, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=32), kernel, block, 2.0, 1)
    stream.sync()
    builder = device.create_graph_builder().begin_building()
    launch(builder, LaunchConfig(grid=1, block=32), kernel, block, 2.0, 1)
    left, right = builder.split(2)
    for branch in (left, right):
        launch(branch, LaunchConfig(grid=1, block=32), kernel, block, 2.0, 1)
    builder = type(builder).join(left, right)
    launch(builder, LaunchConfig(grid=1, block=32), kernel, block, 2.0, 1)
    graph = builder.end_building().complete()
    graph.upload(stream)
    for _ in range(3):
        graph.launch(stream)
    stream.sync()
    graph.close()
    builder.close()
    print(block.size, type(block.memory_resource).__name__)
    block.close(stream)
    print("closed")


protocol.main(below, allocate, info)
