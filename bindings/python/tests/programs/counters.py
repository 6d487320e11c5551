"""Statistics, where they are counted and where not."""

import os

import numpy as np

import vgasnet

vgasnet.start(1 << 20)
there = vgasnet.segment((vgasnet.rank() + 1) % vgasnet.size())
before = vgasnet.statistics()
assert (before is None) == (os.environ.get("VGASNET_STATS") != "1")
for _ in range(10):
    there.get(0, 100000)
after = vgasnet.statistics()
if before is not None:
    assert after["get_bytes"] - before["get_bytes"] == 1000000
    assert after["page_size"] == 1 << 16 and isinstance(after["wait_barrier"], vgasnet.Times)
    assert after["elapsed"] > before["elapsed"] and after["size_bytes"] > 1000
vgasnet.barrier()
