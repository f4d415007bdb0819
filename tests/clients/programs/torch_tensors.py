"""PyTorch: tensors, copies, elementwise kernels, memory statistics, out-of-memory; the allocator is chosen outside."""

import os

import protocol
import torch

kept = []


def allocate(size):
    try:
        kept.append(torch.empty(max(size, 1), dtype=torch.uint8, device="cuda"))
    except torch.cuda.OutOfMemoryError:
        return 2
    return 0


# The setting must have reached the allocator, or three rows would test one.
wanted = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
assert (torch.cuda.get_allocator_backend() == "cudaMallocAsync") == ("cudaMallocAsync" in wanted)


def segments():
    """Whether the caching allocator maps segments that grow."""
    return sorted({segment["is_expandable"] for segment in torch.cuda.memory_snapshot()})


def below():
    print(torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.get_device_name(0), torch.cuda.get_device_capability(0))
    there = torch.arange(8, dtype=torch.float32).to("cuda")
    print(there.cpu())
    x = torch.empty(1 << 20, device="cuda")
    print(x.shape, torch.cuda.memory_allocated())
    if "Async" not in wanted:
        assert segments() == ["expandable" in wanted], segments()
    stream, start, end = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(stream):
        start.record()
        y = (there + 1) * 2
        end.record()
    stream.synchronize()
    print(start.elapsed_time(end) >= 0, y.shape)
    print(torch.zeros(4, 4, device="cuda").cpu()[0], torch.empty(1024).pin_memory().is_pinned())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        z = (there + 1) * 2
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    print(z.shape)
    graph.reset()
    del x, z
    torch.cuda.empty_cache()
    torch.cuda.synchronize()
    print(sorted(torch.cuda.memory_stats())[:3])


protocol.main(below, allocate, torch.cuda.mem_get_info)
