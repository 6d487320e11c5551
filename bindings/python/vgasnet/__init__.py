"""vgasnet: segments larger than memory, as arrays of numpy, on all ranks of a job.

::

    import numpy as np
    import vgasnet

    vgasnet.start(1 << 30)                      # a segment of 1 GiB on every rank
    mine = vgasnet.array(np.float64)            # an array on it, which may be larger than memory
    mine[:] = vgasnet.rank()
    vgasnet.barrier()
    neighbour = vgasnet.segment((vgasnet.rank() + 1) % vgasnet.size())
    block = neighbour.get(0, 1024, np.float64)  # a copy of these elements

The job is started by ``vgasnetrun -n 4 python3 program.py``, or over MPI by its launcher. A refusal of the library is an
exception with its line (``vgasnet.Error``). Any thread may call any function, unless its text says otherwise; calls let other
threads run.
docs/reference/python.md has more.
"""

from .collectives import WORLD, Collective, Reduction, Team, reduction, team_of
from .errors import BarrierMismatch, Error, FileError
from .files import File
from .job import (
    Place,
    attach,
    barrier,
    barrier_notify,
    barrier_test,
    barrier_wait,
    exit,
    init,
    places,
    poll,
    rank,
    segment_bytes_max,
    set_wait_mode,
    size,
    start,
    wait_until,
)
from .messages import Handler, Message, long, medium, payload_bytes_max, request, short
from .operations import Operation, access_region, test_all, test_some, wait_all, wait_some
from .segment import Segment, array, segment, segments
from .statistics import Times, readonly_statistics, statistics

__version__ = "0.1.0"

__all__ = [
    "WORLD",
    "BarrierMismatch",
    "Collective",
    "Error",
    "File",
    "FileError",
    "Handler",
    "Message",
    "Operation",
    "Place",
    "Reduction",
    "Segment",
    "Team",
    "Times",
    "access_region",
    "array",
    "attach",
    "barrier",
    "barrier_notify",
    "barrier_test",
    "barrier_wait",
    "exit",
    "init",
    "long",
    "medium",
    "payload_bytes_max",
    "places",
    "poll",
    "rank",
    "readonly_statistics",
    "reduction",
    "request",
    "segment",
    "segment_bytes_max",
    "segments",
    "set_wait_mode",
    "short",
    "size",
    "start",
    "statistics",
    "team_of",
    "test_all",
    "test_some",
    "wait_all",
    "wait_some",
    "wait_until",
]
