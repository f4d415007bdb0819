"""nvidia-ml-py: what a tenant sees of the device and of who uses it. `view` prints it as JSON, `below` what no cap changes."""

import json
import os
import sys

import pynvml

pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
if sys.argv[1] == "below":
    print(pynvml.nvmlSystemGetDriverVersion(), pynvml.nvmlDeviceGetCount(), pynvml.nvmlDeviceGetName(handle), pynvml.nvmlDeviceGetUUID(handle))
    try:
        pynvml.nvmlDeviceGetHandleByIndex(99)
    except pynvml.NVMLError as error:
        print(error)
else:
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    newer = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    # The older form counts what the driver keeps for itself as used.
    older, newest = (memory.total, memory.used), (newer.total, newer.used + newer.reserved)
    assert older == newest, (older, newest)
    processes = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    print(json.dumps({
        "total": memory.total,
        "free": memory.free,
        "used": memory.used,
        "processes": {process.pid: process.usedGpuMemory for process in processes},
        "pid": os.getpid(),
    }))
pynvml.nvmlShutdown()
