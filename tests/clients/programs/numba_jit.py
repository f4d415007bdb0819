"""numba-cuda: arrays, a kernel compiled from Python, launch."""

import warnings

import numpy
import protocol
from numba import cuda

warnings.filterwarnings("ignore")
kept = []


def allocate(size):
    try:
        kept.append(cuda.device_array(size, numpy.uint8))
    except Exception as error:
        assert "OUT_OF_MEMORY" in str(error) or getattr(error, "code", None) == 2, error
        return 2
    return 0


@cuda.jit
def increment(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


def below():
    print(len(cuda.gpus), cuda.get_current_device().name)
    there = cuda.to_device(numpy.arange(16, dtype=numpy.float32))
    copy = cuda.device_array(16, numpy.float32)
    copy.copy_to_device(there)
    print(copy.copy_to_host())
    stream, event = cuda.stream(), cuda.event()
    event.record(stream)
    event.synchronize()
    increment[1, 32](there)
    cuda.synchronize()
    print("launched")


protocol.main(below, allocate, lambda: tuple(cuda.current_context().get_memory_info()))
