#!/usr/bin/env python3
"""Sums of numpy arrays that live on segments, larger than the pool, with faulthandler on.

usage: segment.py [--library PATH] [MIB]

Each rank fills an array of MIB (64) on its own segment, computes on it in place, and sums it. Then it gets the last part of its
neighbour's. All sums are checked. The library is libvgasnet.so where the system finds it, else that of target/release.
"""
import ctypes
import faulthandler
import os
import sys

try:
    import numpy as np
except ImportError:
    sys.exit("segment.py: numpy is not installed; on Debian: apt-get install python3-numpy")

OK = 0
ANONYMOUS = 1  # VGASNET_BARRIERFLAG_ANONYMOUS


class Segment(ctypes.Structure):
    """vgasnet_seginfo_t"""

    _fields_ = [("addr", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class Vgasnet:
    """A rank, with a segment of so many bytes."""

    def __init__(self, size_bytes, path=None):
        self.library = load_library(path)
        self.library.vgasnet_attach.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t]
        self.library.vgasnet_get.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t]
        self.library.vgasnet_get.restype = None
        self.library.vgasnet_mynode.restype = self.library.vgasnet_nodes.restype = ctypes.c_uint32
        self.check("vgasnet_init", None, None)
        self.check("vgasnet_attach", None, 0, size_bytes, 0)
        self.rank, self.ranks = self.library.vgasnet_mynode(), self.library.vgasnet_nodes()
        self.segments = (Segment * self.ranks)()
        self.check("vgasnet_getSegmentInfo", self.segments, self.ranks)

    def check(self, name, *arguments):
        """Calls a function that returns whether all is well. The library has said what is not."""
        if getattr(self.library, name)(*arguments) != OK:
            sys.exit(1)

    def array(self, dtype):
        """The own segment as an array. Nothing is copied: each element is loaded and stored where it is."""
        own = self.segments[self.rank]
        return np.frombuffer((ctypes.c_char * own.size).from_address(own.addr), dtype)

    def get(self, rank, start, count, dtype):
        """A copy of elements of another rank's array."""
        copy = np.empty(count, dtype)
        source = self.segments[rank].addr + start * copy.itemsize
        self.library.vgasnet_get(copy.ctypes.data, rank, source, copy.nbytes)
        return copy

    def barrier(self):
        self.library.vgasnet_barrier_notify(0, ANONYMOUS)
        self.check("vgasnet_barrier_wait", 0, ANONYMOUS)


def load_library(path):
    built = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "target", "release", "libvgasnet.so")
    for candidate in [path] if path else ["libvgasnet.so", built]:
        try:
            return ctypes.CDLL(candidate)
        except OSError as error:
            reason = error
    sys.exit(f"segment.py: {reason}; build it by cargo build --release, or name it by --library")


def arguments():
    """The path of the library, or None, and the size of a rank's array in MiB."""
    words = sys.argv[1:]
    path = words[1] if words[:1] == ["--library"] and len(words) > 1 else None
    rest = words[2:] if path else words
    mib = rest[0] if rest else "64"
    if len(rest) > 1 or not mib.isdecimal() or int(mib) == 0:
        sys.exit(__doc__)
    return path, int(mib)


def check(what, is_, should_be):
    if is_ != should_be:
        sys.exit(f"segment.py: {what} is {is_} and should be {should_be}")


def main():
    path, mib = arguments()
    job = Vgasnet(mib << 20, path)
    # Its handler of SIGSEGV comes after the library's.
    faulthandler.enable()
    mine = job.array(np.int64)
    count, part = mine.size, 1 << 16

    for start in range(0, count, part):
        mine[start : start + part] = np.arange(start, start + part)
    check("the sum", int(mine.sum()), count * (count - 1) // 2)
    mine *= 2
    mine += job.rank
    check("the sum of the changed", int(mine.sum()), count * (count - 1) + job.rank * count)
    check("the largest", int(mine.max()), 2 * (count - 1) + job.rank)

    job.barrier()
    neighbour = (job.rank + 1) % job.ranks
    got = job.get(neighbour, count - part, part, np.int64)
    check("the neighbour's", int(got.sum()), part * (2 * count - part - 1) + neighbour * part)
    job.barrier()
    if job.rank == 0:
        print(f"{job.ranks} ranks, {mib} MiB each: sums are right")


main()
