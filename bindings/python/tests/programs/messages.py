"""Active Messages of all kinds, with replies."""

import numpy as np

import vgasnet
from refusing import refused

greeted, answered, blocks = [], [], []


@vgasnet.short
def greet(message, first, second):
    greeted.append((message.source, first, second))
    message.reply(answer, second)


@vgasnet.short
def answer(message, number):
    answered.append((message.source, number))


@vgasnet.medium
def block(message, number):
    blocks.append((number, message.payload))
    # Nothing else of the package may be called here.
    try:
        vgasnet.barrier()
    except RuntimeError as error:
        assert "a handler may reply" in str(error)
    else:
        raise AssertionError("a handler waits")
    message.reply(placed, payload=message.array(np.int32) * 2, offset=4096)


@vgasnet.long
def placed(message):
    # The payload is where the array is.
    assert message.offset == 4096 and message.nbytes == 40
    assert (message.array(np.int32) == vgasnet.array(np.int32, 10, 4096)).all()
    answered.append((message.source, int(message.array(np.int32).sum())))


@vgasnet.short
def sixteen(message, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p):
    answered.append((a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p))


@vgasnet.short
def forgotten(message):
    pass


vgasnet.start(1 << 16, [greet, answer, block, placed, sixteen])
rank, ranks = vgasnet.rank(), vgasnet.size()
following, previous = (rank + 1) % ranks, (rank - 1) % ranks

vgasnet.request(following, greet, -(2**31), 2**31 - 1)
vgasnet.wait_until(lambda: greeted and answered)
assert greeted == [(previous, -(2**31), 2**31 - 1)] and answered == [(following, 2**31 - 1)]
answered.clear()

data = np.arange(10, dtype=np.int32) + rank
vgasnet.request(following, block, 9, payload=data)
vgasnet.wait_until(lambda: blocks and answered)
assert blocks == [(9, (np.arange(10, dtype=np.int32) + previous).tobytes())]
assert answered == [(following, 2 * int(data.sum()))]
answered.clear()
vgasnet.barrier()

vgasnet.request(following, sixteen, *range(16))
vgasnet.wait_until(lambda: answered)
assert answered == [tuple(range(16))]

# More than a window of requests.
greeted.clear()
answered.clear()
vgasnet.barrier()
for number in range(500):
    vgasnet.request(following, greet, number, 0)
vgasnet.wait_until(lambda: len(answered) == 500)
vgasnet.barrier()
assert sorted(first for _, first, _ in greeted) == list(range(500))

for wrong, kind in [
    (lambda: vgasnet.request(following, greet, 1), TypeError),
    (lambda: vgasnet.request(following, greet, 1, 2**31), ValueError),
    (lambda: vgasnet.request(ranks, greet, 1, 2), ValueError),
    (lambda: vgasnet.request(following, greet, 1, 2, payload=b""), TypeError),
    (lambda: vgasnet.request(following, block, 1), TypeError),
    (lambda: vgasnet.request(following, placed, payload=b"x", offset=1 << 16), IndexError),
    (lambda: vgasnet.request(following, forgotten), ValueError),
    (lambda: vgasnet.request(following, block, 1, payload=bytes(vgasnet.payload_bytes_max()[0] + 1)), vgasnet.Error),
    (lambda: vgasnet.short(lambda message, *rest: None), TypeError),
]:
    refused(kind, wrong)
vgasnet.poll()
vgasnet.barrier()
