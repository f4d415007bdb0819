"""What the Python clients have in common: `grow STEP_MIB COUNT` allocates until refused and says how far it came,
`below` does ordinary work and prints nothing that a cap may change."""

import sys


def main(below, allocate, info):
    """`allocate(bytes)` returns a CUDA error code and keeps the block alive; `info()` returns (free, total)."""
    if sys.argv[1] == "below":
        below()
        return
    step, count = int(sys.argv[2]) << 20, int(sys.argv[3])
    allocate(0)  # whatever the client makes at its first call: its context
    free, total = info()
    granted, error = 0, 0
    while granted < count and error == 0:
        error = allocate(step)
        granted += error == 0
    print(f"free={free}\ntotal={total}\ngranted={granted}\nerror={error}")
