"""One rank asks for a segment larger than any disk: all ranks refuse the attach, and the exception of one has the line."""

import vgasnet

vgasnet.init()
rank = vgasnet.rank()
try:
    vgasnet.attach((1 << 16) + (rank == 1) * (1 << 60))
except vgasnet.Error as error:
    assert error.code == vgasnet.raw.VGASNET_ERR_RESOURCE and error.name == "VGASNET_ERR_RESOURCE"
    assert error.line.startswith("rank 1: vgasnet_attach: a segment of ") if rank == 1 else not error.line, error.line
    said = "VGASNET_ERR_RESOURCE: the machine lacks something: disk space, memory or threads; another rank has printed more of it"
    assert str(error) == (error.line or said), error
else:
    raise AssertionError("it was not refused")
