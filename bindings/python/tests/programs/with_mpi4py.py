"""mpi4py beside vgasnet over MPI. The argument names the starter of MPI: mpi4py, vgasnet, or mpi4py after its import."""

import sys

import numpy as np

if sys.argv[1] == "imported":
    import mpi4py

    mpi4py.rc.initialize = False
    from mpi4py import MPI

    import vgasnet

    vgasnet.init()
    assert MPI.Is_initialized()
elif sys.argv[1].startswith("mpi4py"):
    from mpi4py import MPI

    import vgasnet

    assert MPI.Is_initialized()
    vgasnet.init()
else:
    import vgasnet

    vgasnet.init()
    from mpi4py import MPI

vgasnet.attach(8 << 20)
rank, ranks = vgasnet.rank(), vgasnet.size()
comm = MPI.COMM_WORLD
assert (comm.rank, comm.size) == (rank, ranks), (comm.rank, comm.size, rank, ranks)

if sys.argv[1] == "mpi4py-fails" and rank == 1:
    raise RuntimeError("for the test")
mine = vgasnet.array(np.int64)
mine[:] = np.arange(mine.size) + rank
for round_ in range(10):
    # MPI's own messages and collectives, with ordinary memory, between gets that go over it.
    total = comm.allreduce(int(mine[:1000].sum()))
    assert total == ranks * 499500 + 1000 * ranks * (ranks - 1) // 2
    block = np.array(mine[round_ * 1000 : (round_ + 1) * 1000])
    got = np.empty_like(block)
    comm.Sendrecv(block, (rank + 1) % ranks, recvbuf=got, source=(rank - 1) % ranks)
    there = vgasnet.segment((rank - 1) % ranks)
    assert (there.get(round_ * 8000, 1000, np.int64) == got).all()
assert comm.bcast({"text": ["from rank 0"]} if rank == 0 else None) == {"text": ["from rank 0"]}
vgasnet.barrier()
comm.Barrier()
