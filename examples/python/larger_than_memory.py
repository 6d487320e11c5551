#!/usr/bin/env python3
"""A NumPy array larger than its memory: filled, scaled and summed in place.

usage: larger_than_memory.py [MIB]

MIB (256) is the size of each rank's array.
"""
import sys

import numpy as np

import vgasnet


def memory_mib():
    """Resident memory of this process, shared pages divided among their mappings."""
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) >> 10 for line in file if line.startswith("Pss:"))


def main():
    mib = sys.argv[1] if len(sys.argv) == 2 else "256"
    if len(sys.argv) > 2 or not mib.isdecimal() or int(mib) == 0:
        sys.exit(__doc__)
    vgasnet.start(int(mib) << 20)
    before = memory_mib()
    array = vgasnet.array(np.float64)
    array[:] = 1
    array *= 3
    array[::1024] = 0
    in_use = memory_mib() - before
    expected = 3 * (array.size - (array.size + 1023) // 1024)
    if array.sum() != expected or array.max() != 3:
        sys.exit(f"rank {vgasnet.rank()}: the sum is {array.sum()} and should be {expected}")
    print(f"rank {vgasnet.rank()}: numpy array of {array.nbytes >> 20} MiB, sum {array.sum():.0f} is right; "
          f"memory for it: {in_use} MiB")


main()
