"""Triton: a kernel compiled from Python and launched on PyTorch's tensors."""

import protocol
import torch
import triton
import triton.language as tl

kept = []


def allocate(size):
    try:
        kept.append(torch.empty(max(size, 1), dtype=torch.uint8, device="cuda"))
    except torch.cuda.OutOfMemoryError:
        return 2
    return 0


@triton.jit
def increment(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, tl.load(x + offsets, mask=mask) + 1, mask=mask)


def below():
    x = torch.ones(100, device="cuda")
    y = torch.empty_like(x)
    increment[(1,)](x, y, 100, BLOCK=128)
    torch.cuda.synchronize()
    print("launched", y.shape)


protocol.main(below, allocate, torch.cuda.mem_get_info)
