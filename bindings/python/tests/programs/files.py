"""Shared files: places, positions, lists, locks, numpy's writes and reads."""

import io
import os
import sys

import numpy as np

import vgasnet

path = sys.argv[1]
vgasnet.start(8 << 20)
rank, ranks = vgasnet.rank(), vgasnet.size()
following = (rank + 1) % ranks
block = np.arange(3000) + rank

with vgasnet.File(path, "w+") as file:
    assert file.readable() and file.writable() and file.seekable() and isinstance(file, io.RawIOBase)
    file.write_at(rank * block.nbytes, block)
    vgasnet.barrier()
    got = np.empty_like(block)
    assert file.read_into_at(following * block.nbytes, got) == block.nbytes and (got == np.arange(3000) + following).all()
    assert file.size() == ranks * block.nbytes
    assert len(file.read_at(file.size() - 5, 100)) == 5
    vgasnet.barrier()

    # To and from the own segment, without waiting.
    mine = vgasnet.array(np.int64, 3000)
    with file.read_into_at_nb(following * block.nbytes, mine) as operation:
        pass
    assert operation.result == block.nbytes
    assert (mine == got).all()
    vgasnet.barrier()
    file.write_at_nb(rank * block.nbytes, mine).wait()
    assert file.error() is None
    vgasnet.barrier()
    assert np.frombuffer(file.read_at(rank * block.nbytes, 8), np.int64)[0] == following

    # Lists, locks, a shared number.
    one, two = np.zeros(2), np.zeros(3)
    if rank == 0:
        file.writev_at([(0, 8), (80, 32)], [np.arange(2.0), np.arange(2.0, 5.0)])
        assert file.readv_at([(80, 32), (0, 8)], [one, two]) == 40
        assert one.tolist() == [1, 2] and two.tolist() == [3, 4, 0]
    vgasnet.barrier()
    for _ in range(20):
        with file.locked(0, 8):
            count = int(np.frombuffer(file.read_at(0, 8), np.int64)[0])
            file.write_at(0, np.array([count + 1 if count >= 0 else 1]))
    file.set_pointer(1000)
    vgasnet.barrier()
    places = vgasnet.WORLD.gather_all(np.array([file.take(10)])).ravel()
    assert sorted(places) == [1000 + 10 * at for at in range(ranks)]
    assert np.frombuffer(file.read_at(0, 8), np.int64)[0] == 20 * ranks
    vgasnet.barrier()

    # A position of each rank, and its users.
    assert file.seek(rank * 4096) == rank * 4096 == file.tell()
    np.save(file, np.full(100, rank))
    file.flush()
    file.sync()
    file.seek(following * 4096)
    file.seek(following * 4096)
    assert (np.load(file) == following).all()
    vgasnet.barrier()
    file.set_size(5)
    assert file.size() == 5 and file.seek(-2, os.SEEK_END) == 3 and len(file.read()) == 2 and file.read(1) == b""
    file.preallocate(100)
    file.extend(7)
    file.set_atomic(True)
    assert file.truncate(7) == 7
    file.advise("willneed", 0, 7)
assert file.closed
try:
    file.size()
except ValueError:
    pass
else:
    raise AssertionError("a closed file has a size")
vgasnet.barrier()
assert os.path.getsize(path) == 7

with vgasnet.File(path, io_ranks=1) as file:
    assert not file.writable()
    try:
        file.write_at(0, b"x")
    except vgasnet.Error as error:
        assert f"rank {rank}: vgasnet_file_write_at: " in str(error), error
    else:
        raise AssertionError("a file that is open to be read is written")
vgasnet.barrier()

# More than the pool.
large = vgasnet.array(np.uint8, 4 << 20)
large[:] = rank
with vgasnet.File(path, "w+") as file:
    file.write_at(rank * large.nbytes, large)
    vgasnet.barrier()
    file.read_into_at(following * large.nbytes, large)
    assert (large == following).all()
    vgasnet.barrier()
    # Buffers without another owner live as long as the call. A buffer of this size is unmapped when freed.
    count = 8 << 20
    file.writev_at([(2 * rank * count, 2 * count)], (np.full(count, value, np.uint8) for value in (rank, 7)))
    assert file.read_at(2 * rank * count, 2 * count) == bytes([rank]) * count + bytes([7]) * count
