"""Refused calls, in jobs that go on."""

import errno
import pickle
import sys

import numpy as np

import vgasnet
from refusing import refused

refused(vgasnet.Error, vgasnet.rank, "call vgasnet.start, or vgasnet.init, first")
refused(vgasnet.Error, lambda: vgasnet.array(np.uint8), "first")
vgasnet.init()
rank, ranks = vgasnet.rank(), vgasnet.size()
refused(vgasnet.Error, vgasnet.init, f"rank {rank}: vgasnet_init: ")
refused(vgasnet.Error, vgasnet.barrier, "call vgasnet.start, or vgasnet.attach, first")
refused(ValueError, lambda: vgasnet.set_wait_mode("doze"), "spinblock")
refused(TypeError, lambda: vgasnet.attach(1 << 16, [print]), "is no handler")

vgasnet.attach(1 << 16)
refused(vgasnet.Error, lambda: vgasnet.attach(1 << 16), f"rank {rank}: vgasnet_attach: ")

there = vgasnet.segment((rank + 1) % ranks)
refused(ValueError, lambda: vgasnet.segment(ranks), f"rank is {ranks}; give 0 to {ranks - 1}")
refused(IndexError, lambda: there.get(65530, 7), "7 bytes at offset 65530", "has 65536")
refused(IndexError, lambda: there.put(-1, b"x"), "offset -1")
refused(ValueError, lambda: there.array(), "get and put")
refused(TypeError, lambda: vgasnet.array(object), "cannot be in a segment")
refused(TypeError, lambda: there.put(0, np.array([None])), "references")
refused(ValueError, lambda: there.put(0, np.arange(10)[::2]), "gaps")
refused(ValueError, lambda: there.get_into(0, b"bytes"), "read-only")
refused(ValueError, lambda: there.fetch_add(4, 1), "no multiple of 8")
refused(TypeError, lambda: there.fetch_add(4, 1, np.float64), "not atomic")
refused(ValueError, lambda: there.atomic("nand", 0, 1), "xor")
refused(ValueError, lambda: there.atomic("add", 0, 1 << 63), "a number is")
refused(IndexError, lambda: there.get(0, 1 << 50), "1125899906842624 bytes at offset 0")
refused(IndexError, lambda: there.readonly(1 << 40).__enter__(), "0 bytes at offset 1099511627776")
for half in [
    lambda: vgasnet.segment(0.5),
    lambda: vgasnet.array(np.uint8, None, 0.5),
    lambda: there.get(0.5, 1),
    lambda: there.put(0.5, b"x"),
    lambda: there.fill(0, 0.5),
    lambda: there.fill(0, 1, 0.5),
    lambda: there.fetch_add(0, 0.5),
    lambda: there.get_list([0.5], [bytearray(1)]),
    lambda: there.get_strided(0, (0.5,), np.empty(1)),
    lambda: vgasnet.segment().advise("willneed", 0, 0.5),
]:
    refused(TypeError, half, "is 0.5; give an integer")
refused(TypeError, lambda: vgasnet.request(0, print), "<built-in function print> is no handler; vgasnet.short")
refused(RuntimeError, lambda: there.put_nbi(0, b"x"), "access_region")
refused(ValueError, lambda: there.get_strided(0, (-8,), np.empty(1)), "negative")
refused(ValueError, lambda: vgasnet.segment().advise("maybe"), "willneed")
refused(ValueError, lambda: there.advise("willneed"), "own one")

error = refused(vgasnet.FileError, lambda: vgasnet.File(f"{sys.argv[1]}/none"))
assert error.code == vgasnet.raw.VGASNET_ERR_IO and isinstance(error, OSError)
assert error.errno in (errno.ENOENT, None) and (rank != 0 or error.errno == errno.ENOENT), error.errno
refused(ValueError, lambda: vgasnet.File("x", "a"), "mode 'a'")
refused(ValueError, lambda: vgasnet.File(f"{sys.argv[1]}/x", "w", permissions=-1), "permissions is -1; give 0 to 4095")
refused(ValueError, lambda: vgasnet.File(f"{sys.argv[1]}/x", "w", stripe_bytes=-1), "stripe_bytes is -1")
refused(ValueError, lambda: there.readonly(object_bytes=-1).__enter__(), "object_bytes is -1")

again = pickle.loads(pickle.dumps(error))
assert str(again) == str(error) and (again.code, again.line, again.errno) == (error.code, error.line, error.errno)

refused(ValueError, lambda: vgasnet.WORLD.barrier(1 << 32), "name is 4294967296")
error = refused(vgasnet.BarrierMismatch, lambda: vgasnet.barrier(rank))
again = pickle.loads(pickle.dumps(error))
assert type(again) is vgasnet.BarrierMismatch and str(again) == str(error) and again.code == error.code
vgasnet.barrier(5)
vgasnet.barrier_notify()
while not vgasnet.barrier_test():
    pass
