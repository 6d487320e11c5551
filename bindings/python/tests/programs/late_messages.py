"""Requests to ranks after the end of their program: without an interpreter they run no handler, and serve their segments."""

import time

import numpy as np

import vgasnet


@vgasnet.short
def count(message):
    pass


vgasnet.start(1 << 20, [count])
vgasnet.array(np.uint8)[:] = vgasnet.rank()
vgasnet.barrier()
if vgasnet.rank() == 0:
    # The others are gone soon; whether a request comes before or after makes no difference to the sender.
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        for rank in range(1, vgasnet.size()):
            vgasnet.request(rank, count)
            assert vgasnet.segment(rank).get(12345, 1)[0] == rank
