"""A handler of a signal raises an exception while its rank waits for operations: the program may go on with them."""

import signal
import time

import numpy as np

import vgasnet


class Late(Exception):
    pass


def is_late(*_):
    raise Late


vgasnet.start(1 << 16)
signal.signal(signal.SIGALRM, is_late)
for wait in (lambda collective: collective.wait(), lambda collective: vgasnet.wait_all([collective])):
    vgasnet.barrier()
    if vgasnet.rank() == 1:
        time.sleep(0.5)
        vgasnet.WORLD.broadcast(np.arange(3), root=1)
        continue
    collective = vgasnet.WORLD.broadcast_nb(np.zeros(3, np.int64), root=1)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        wait(collective)
        raise AssertionError("no signal came")
    except Late:
        pass
    assert collective.wait().tolist() == [0, 1, 2] and collective.test()
