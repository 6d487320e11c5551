"""Threads that compute on the segment, get, and run handlers, while the interpreter's lock goes from one to the other."""

import faulthandler
import sys
import threading

import numpy as np

import vgasnet

POOL = 1 << 20
handled = [0]


@vgasnet.medium
def store(message, place):
    # A handler faults, with the lock of the interpreter.
    vgasnet.array(np.uint8, message.nbytes, place)[:] = np.frombuffer(message.payload, np.uint8)
    handled[0] += 1


vgasnet.start(8 * POOL, [store])
faulthandler.enable()
sys.setswitchinterval(1e-5)
rank, ranks = vgasnet.rank(), vgasnet.size()
there = vgasnet.segment((rank + 1) % ranks)
quarter = 2 * POOL
wrong = []


def compute(at):
    """Loads and stores element by element, so that threads change between them, and all at once."""
    part = vgasnet.array(np.int64, quarter // 8, at * quarter)
    for round_ in range(3):
        part[:] = round_
        for place in range(0, part.size, 4099):
            part[place] += 1
        if int(part.sum()) != round_ * part.size + len(range(0, part.size, 4099)):
            wrong.append(("compute", at, round_))


def transfer(at):
    """Puts and gets to the next rank's."""
    for round_ in range(200):
        data = np.full(1000, round_ % 251, np.uint8)
        there.put(at * quarter + 1000 * round_, data)
        if (there.get(at * quarter + 1000 * round_, 1000) != data).any():
            wrong.append(("transfer", at, round_))


def send(at):
    for round_ in range(100):
        vgasnet.request(there.rank, store, at * quarter + 4000 * round_, payload=np.full(4000, 7, np.uint8))


threads = [threading.Thread(target=run, args=(at,)) for at, run in enumerate([compute, compute, transfer, send])]
for thread in threads:
    thread.start()
while any(thread.is_alive() for thread in threads):
    vgasnet.poll()
for thread in threads:
    thread.join()
assert not wrong, wrong
vgasnet.wait_until(lambda: handled[0] == 100)
vgasnet.barrier()
assert (vgasnet.array(np.uint8, 400000, 3 * quarter) == 7).all()
vgasnet.barrier()
