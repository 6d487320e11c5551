"""Collectives on arrays, of all ranks and of teams."""

import numpy as np

import vgasnet
from refusing import refused
from vgasnet import WORLD

longest = vgasnet.reduction(lambda left, right: np.where(abs(right) > abs(left), right, left))
vgasnet.start(1 << 20)
rank, ranks = vgasnet.rank(), vgasnet.size()
assert WORLD.size == ranks and WORLD.rank == rank
root = ranks - 1

array = np.arange(10.0) if rank == root else np.empty(10)
assert WORLD.broadcast(array, root) is array and array.tolist() == list(range(10))
assert (WORLD.broadcast(vgasnet.array(np.int32, 100) if rank else np.full(100, 3, np.int32)) == 3).all()

blocks = np.arange(ranks * 6).reshape(ranks, 2, 3) if rank == root else None
mine = WORLD.scatter(blocks, np.empty((2, 3), np.int64), root)
assert mine.ravel().tolist() == list(range(6 * rank, 6 * rank + 6))
together = WORLD.gather(mine, root=root)
assert (together is None) == (rank != root)
if rank == root:
    assert (together == blocks).all()
assert (WORLD.gather_all(np.array([rank], np.uint8))[:, 0] == range(ranks)).all()
assert (WORLD.exchange(np.arange(ranks) + 100 * rank) == 100 * np.arange(ranks) + rank).all()

for dtype in ("i1", "u2", "i4", "u8", "f4", "f8", "c16"):
    total = WORLD.reduce(np.full(5, rank + 1, dtype), "sum", root)
    if rank == root:
        assert total.dtype == dtype and (total == ranks * (ranks + 1) // 2).all(), (dtype, total)
numbers = np.array([rank, -rank, 2])
for op, expected in [
    ("max", [ranks - 1, 0, 2]),
    ("min", [0, 1 - ranks, 2]),
    ("prod", [0, 0, 2**ranks]),
    (longest, [ranks - 1, 1 - ranks, 2]),
]:
    assert WORLD.reduce_all(numbers, op).tolist() == expected, op
assert WORLD.reduce_all(np.array([1 << rank]), "or").tolist() == [(1 << ranks) - 1]
assert WORLD.reduce_all(np.array([rank > 0, True]), "and").tolist() == [False, True]

# Without waiting, several at once, and results.
operations = [WORLD.gather_all_nb(np.array([rank, at]), ready=True) for at in range(20)]
with WORLD.reduce_nb(np.ones(100000), root=0) as reduced:
    pass
vgasnet.wait_all(operations)
for at, operation in enumerate(operations):
    assert operation.result.tolist() == [[each, at] for each in range(ranks)]
if rank == 0:
    assert (reduced.result == ranks).all()

# Teams.
team = WORLD.split(rank % 2, ranks - rank)
assert team.size == len(range(rank % 2, ranks, 2))
members = [team.rank_of(number) for number in range(team.size)]
assert members == sorted(range(rank % 2, ranks, 2), reverse=True) and members[team.rank] == rank
assert team.reduce_all(np.array([rank])).tolist() == [sum(members)]
team.barrier()
team.free()
pair = vgasnet.team_of([rank], 5)
assert pair.gather_all(np.array([rank])).tolist() == [[rank]]
pair.free()
WORLD.barrier(77)

for wrong, kind in [
    (lambda: WORLD.broadcast(array, ranks), ValueError),
    (lambda: WORLD.reduce(np.array(["text"])), TypeError),
    (lambda: WORLD.reduce(array, "average"), ValueError),
    (lambda: WORLD.exchange(np.empty(ranks + 1)), ValueError),
    (lambda: WORLD.gather_all(array, out=np.empty(3)), ValueError),
    (lambda: WORLD.gather_all(np.empty((4, 4))[:, 1]), ValueError),
    (lambda: WORLD.free(), ValueError),
    (lambda: vgasnet.team_of([], 0), ValueError),
]:
    refused(kind, wrong)
WORLD.barrier()
