"""Gets and puts of all kinds, to the next rank's segment."""

import numpy as np

import vgasnet

POOL = 1 << 20
WORDS = POOL  # of 8 bytes: eight pools

vgasnet.start(8 * WORDS)
rank, ranks = vgasnet.rank(), vgasnet.size()
there = vgasnet.segment((rank + 1) % ranks)
mine = vgasnet.array(np.int64)
mine[:] = np.arange(WORDS) + rank * WORDS
vgasnet.barrier()


def words(start, count):
    """The contents of the next rank."""
    return np.arange(start, start + count) + there.rank * WORDS


# Blocking: also more than the pool at once, to memory and to the own segment.
assert (there.get(8 * 100, 10, np.int64) == words(100, 10)).all()
assert (there.get(0, WORDS, np.int64) == words(0, WORDS)).all()
matrix = there.get(8 * 5, (3, 4), np.int64)
assert matrix.shape == (3, 4) and matrix[2, 3] == words(16, 1)[0]
buffer = bytearray(16)
assert there.get_into(8, buffer) is buffer and np.frombuffer(buffer, np.int64).tolist() == words(1, 2).tolist()
vgasnet.barrier()

# Without waiting; one is forgotten, and its memory stays.
outs = [np.empty(1000, np.int64) for _ in range(8)]
operations = [there.get_nb(8 * 1000 * at, out) for at, out in enumerate(outs)]
there.get_nb(0, np.empty(POOL, np.uint8))
done = vgasnet.wait_some(operations)
assert done and all(operation.test() for operation in done)
vgasnet.wait_all(operations)
assert vgasnet.test_all(operations) and len(vgasnet.test_some(operations)) == 8
for at, out in enumerate(outs):
    assert (out == words(1000 * at, 1000)).all()
with there.get_nb(8 * 77, np.empty(1, np.int64)) as operation:
    pass
assert operation.result[0] == words(77, 1)[0] and operation.wait() is operation.result
vgasnet.wait_all([])
vgasnet.barrier()

# Puts, in parts, and sets.
with there.put_nb(0, np.full(500, -1)):
    pass
there.put(8 * 500, b"\x07" * 8)
there.fill(8 * 501, 8, 255)
there.fill_nb(8 * 502, 8, 1).wait()
with vgasnet.access_region() as region:
    for at in range(503, 510):
        there.put_nbi(8 * at, np.array([at]))
    got = np.empty(1, np.int64)
    there.get_nbi(8 * 700, got)
    region.end().wait()
    assert got[0] == words(700, 1)[0]
with vgasnet.access_region():
    there.put_nbi(8 * 510, np.array([510]))
vgasnet.barrier()
assert (mine[:500] == -1).all() and mine[500] == 0x0707070707070707 and mine[501] == -1 and mine[502] == 0x0101010101010101
assert mine[503:511].tolist() == list(range(503, 511))
vgasnet.barrier()

# Lists, and strides there and here.
outs = [np.empty(count, np.int64) for count in (3, 0, 100)]
there.get_list([8 * 10000, 0, 8 * 90000], outs)
assert (outs[0] == words(10000, 3)).all() and (outs[2] == words(90000, 100)).all()
there.put_list([8 * 20000, 8 * 40000], [np.arange(4), np.arange(5)])
columns = np.zeros((50, 8), np.int64)
there.get_strided(8 * 50000, (8 * 1024, 16), columns[:, ::2])
assert (columns[:, ::2] == words(50000, 1)[0] + 1024 * np.arange(50)[:, None] + 2 * np.arange(4)).all()
assert not columns[:, 1::2].any()
there.put_strided(8 * 120000, (16,), np.arange(6)[::2])
there.put_strided(8 * 130000, (), np.array(9))
vgasnet.barrier()
assert mine[20000:20004].tolist() == [0, 1, 2, 3] and mine[40000:40005].tolist() == [0, 1, 2, 3, 4]
assert mine[120000] == 0 and mine[120002] == 2 and mine[120004] == 4 and mine[120001] == 120001 + rank * WORDS
assert mine[130000] == 9
vgasnet.barrier()

# Atomic operations: all ranks on rank 0's.
zero = vgasnet.segment(0)
if rank == 0:
    mine[:3] = 0
vgasnet.barrier()
seen = {zero.fetch_add(0, 1) for _ in range(100)}
assert len(seen) == 100
zero.atomic("max", 8, rank - 5)
zero.atomic("max", 16, 2**32 - 1 - rank, dtype=np.uint32)
vgasnet.barrier()
assert zero.get(0, 1, np.int64)[0] == 100 * ranks
assert zero.atomic("add", 8, 0) == max(0, ranks - 6)
assert zero.atomic("or", 16, 0, dtype=np.uint32) == 2**32 - 1
vgasnet.barrier()
if rank == 0:
    assert zero.compare_and_swap(0, -1, 5) == 100 * ranks
    assert zero.compare_and_swap(0, 100 * ranks, -5) == 100 * ranks
    assert zero.atomic("swap", 0, 7) == -5
    assert zero.atomic("min", 20, -3, dtype=np.int32) == 0 and zero.atomic("xor", 20, 0, dtype=np.int32) == -3
    with zero.atomic_nb("add", 0, 1) as operation:
        pass
    assert operation.result[0] == 7
vgasnet.barrier()

# Copies of read-only data.
with there.readonly(8 * 200000, 8 * 1000, get_bytes_max=4096):
    for _ in range(3):
        assert there.get(8 * 200100, 1, np.int64)[0] == words(200100, 1)[0]
assert set(vgasnet.readonly_statistics()) >= {"gets", "hits", "bytes_max"}
vgasnet.barrier()
