"""Arrays on a segment of eight pools, in place, with faulthandler on."""

import faulthandler

import numpy as np

import vgasnet

POOL = 1 << 20

vgasnet.init()
vgasnet.attach(8 * POOL)
# Its handler of SIGSEGV comes after the library's.
faulthandler.enable()
rank, ranks = vgasnet.rank(), vgasnet.size()
assert vgasnet.segment().nbytes == 8 * POOL and vgasnet.segment().is_own
assert [segment.rank for segment in vgasnet.segments()] == list(range(ranks))
assert len(vgasnet.places()) == ranks and vgasnet.segment_bytes_max(True) <= vgasnet.segment_bytes_max()

for dtype in (np.int64, np.float32, np.uint8, np.complex128):
    array = vgasnet.array(dtype)
    assert array.nbytes == 8 * POOL and array.dtype == dtype
    array[:] = 1
    assert array.sum(dtype=np.complex128 if dtype is np.complex128 else np.float64) == array.size, dtype
    array *= 3
    assert array.max() == 3 and array.min() == 3

# A matrix, by rows and by columns, and a view of a view.
matrix = vgasnet.array(np.float64, (1024, 1024))
matrix[:] = np.arange(1024)[:, None]
assert (matrix.sum(axis=1) == np.arange(1024) * 1024).all()
assert (matrix.sum(axis=0) == 1024 * 1023 / 2).all()
matrix.T[3] = -1
assert matrix[:, 3].sum() == -1024
np.multiply(matrix, 2, out=matrix)
assert matrix[7, 8] == 14

# Structures, and a place that is no multiple of anything.
pairs = vgasnet.array(np.dtype([("key", "u1"), ("value", "<f8")]), 1000, offset=12345)
pairs["key"] = 7
pairs["value"] = np.arange(1000)
assert pairs["value"].sum() == 499500 and int(pairs["key"].sum()) == 7000
assert vgasnet.array(np.uint8, 1, 12345)[0] == 7

# A buffer for the kernel, and a pinned range.
with open("/dev/zero", "rb", buffering=0) as zeros:
    assert zeros.readinto(memoryview(vgasnet.array(np.uint8, 3 * POOL))) > 0
assert not vgasnet.array(np.uint8, 1 << 16).any()
with vgasnet.segment().pinned(0, 1 << 17, write=True) as pinned:
    pinned[:] = 5
vgasnet.segment().advise("willneed", 0, 1 << 18)
assert vgasnet.array(np.uint8, 1 << 17).sum() == 5 << 17

# Sorting in place goes over all of it many times.
words = vgasnet.array(np.uint32, 2 * POOL // 4)
words[:] = np.random.default_rng(2017 + rank).integers(0, 1 << 32, words.size, np.uint32)
expected = np.sort(np.array(words))
words.sort()
assert (words == expected).all()

assert vgasnet.array(np.int32, (0, 5)).shape == (0, 5)
vgasnet.barrier()
