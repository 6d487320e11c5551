"""Jobs that end with another status than 0. The argument names the way."""

import os
import signal
import sys
import time

import numpy as np

import vgasnet

how = sys.argv[1]


@vgasnet.short
def fails(message):
    if how == "handler-exit":
        print("last words")
        sys.exit(7)
    raise ValueError("in the handler")


def raises(left, right):
    raise ValueError("in the reduction")


bad = vgasnet.reduction(raises)
vgasnet.start(1 << 16, [fails])
if how == "exception" and vgasnet.rank() == 1:
    raise RuntimeError("for the test")
if how == "exit" and vgasnet.rank() == 1:
    print("last words")
    vgasnet.exit(7)
if how == "closed" and vgasnet.rank() == 1:
    sys.stdout.close()
    vgasnet.exit(7)
if how.startswith("handler") and vgasnet.rank() == 1:
    vgasnet.request(0, fails)
if how == "reduction":
    vgasnet.WORLD.reduce(np.ones(5), bad)
if how == "interrupt" and vgasnet.rank() == 0:
    # As a terminal does, to the launcher.
    os.kill(os.getppid(), signal.SIGINT)
    # A signal that comes just before one sleep interrupts the next.
    for _ in range(600):
        time.sleep(0.1)
vgasnet.barrier()
vgasnet.barrier()
