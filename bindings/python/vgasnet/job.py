"""Start and end of a job, its ranks, and their barrier."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import sys
import traceback
from types import TracebackType
from typing import TYPE_CHECKING, Callable, List, NamedTuple, Optional, Sequence, Type

from . import raw
from ._core import attached, flush_output, initialised, job, number, pending
from .errors import Error, check

if TYPE_CHECKING:
    from .messages import Handler

_WAIT_MODES = {"spin": raw.VGASNET_WAIT_SPIN, "block": raw.VGASNET_WAIT_BLOCK, "spinblock": raw.VGASNET_WAIT_SPINBLOCK}


def init(library: Optional[str] = None) -> None:
    """Makes this process a rank of the job. All ranks call it, once. ``library`` is the path of libvgasnet.so; without it
    ``raw.library`` lists the places where it is looked for. mpi4py may be imported before or after it.
    """
    loaded = raw.library(library)
    check(loaded.vgasnet_init(None, None))
    job.library, job.rank, job.ranks = loaded, loaded.vgasnet_mynode(), loaded.vgasnet_nodes()
    _note_failures()


def attach(segment_bytes: int = 0, handlers: "Sequence[Handler]" = ()) -> None:
    """Gives this rank a segment, rounded up to whole pages; 0 for none. All ranks call it, once, after ``init``, with the same
    handlers in the same order. The sizes may differ. It returns when all ranks have attached.
    """
    from . import collectives, messages

    library = initialised()
    segment_bytes = number("segment_bytes", segment_bytes, 0, (1 << 63) - 1)
    table = messages.table_of(handlers)
    check(library.vgasnet_attach(table, len(handlers), segment_bytes, 0))
    messages.note_indices(handlers, table)
    segments = (raw.vgasnet_seginfo_t * job.ranks)()
    check(library.vgasnet_getSegmentInfo(segments, job.ranks))
    job.segments = [(segment.addr or 0, segment.size) for segment in segments]
    collectives.register()
    atexit.register(_leave)


def start(segment_bytes: int = 0, handlers: "Sequence[Handler]" = (), library: Optional[str] = None) -> None:
    """``init`` and ``attach``."""
    init(library)
    attach(segment_bytes, handlers)


def _show_whole(kind: Type[BaseException], error: BaseException, trace: Optional[TracebackType]) -> None:
    """Prints an exception in one piece: ranks share the terminal. Without its traceback if another rank has printed the reason."""
    if isinstance(error, Error) and not error.line:
        text = f"rank {job.rank}: {error}\n"
    else:
        text = "".join(traceback.format_exception(kind, error, trace))
    flush_output()
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()


def _note_failures() -> None:
    """Has ``_leave`` know of uncaught exceptions."""
    shown_by = _show_whole if sys.excepthook is sys.__excepthook__ else sys.excepthook

    def show(kind: Type[BaseException], error: BaseException, trace: Optional[TracebackType]) -> None:
        shown_by(kind, error, trace)
        # At a prompt the program goes on. Python itself sees to Ctrl-C: the process ends by the signal.
        is_the_end = not hasattr(sys, "ps1") and not sys.flags.interactive and not issubclass(kind, KeyboardInterrupt)
        job.has_failed = job.has_failed or is_the_end

    sys.excepthook = show


def _leave() -> None:
    """Before the interpreter goes: nothing may write to its memory any more, or run in it. The rank serves its segment further."""
    if job.has_failed:
        # The job ends here. mpi4py would end MPI next, which waits for all ranks.
        exit(1)
    for operation, _ in list(pending.values()):
        operation.wait()
    initialised().vgasnet_end_handlers()


def exit(status: int = 0) -> None:
    """Ends the whole job with a status of 0 to 255, and does not return. A rank whose program simply ends serves its segment until all
    ranks have ended. Functions of atexit do not run; buffered output is written.
    """
    flush_output()
    initialised().vgasnet_exit(number("status", status, 0, 255))


def rank() -> int:
    """The number of this rank: 0 to ``size() - 1``."""
    initialised()
    return job.rank


def size() -> int:
    """The number of ranks."""
    initialised()
    return job.ranks


class Place(NamedTuple):
    """Where a rank is. Ranks with the same host share a machine; ranks with the same neighbourhood use each other's pages."""

    host: int
    neighbourhood: int


def places() -> List[Place]:
    """Where all ranks are."""
    table = (raw.vgasnet_nodeinfo_t * size())()
    check(initialised().vgasnet_getNodeInfo(table, size()))
    return [Place(entry.host, entry.supernode) for entry in table]


def segment_bytes_max(of_all: bool = False) -> int:
    """The largest segment in bytes offered to this rank, or to all. After ``init``."""
    library = initialised()
    return library.vgasnet_getMaxGlobalSegmentSize() if of_all else library.vgasnet_getMaxLocalSegmentSize()


def set_wait_mode(mode: str) -> None:
    """How waiting threads share the processors: "spin", "block" or "spinblock", the default."""
    if mode not in _WAIT_MODES:
        raise ValueError(f"mode {mode!r}; give one of {', '.join(_WAIT_MODES)}")
    check(initialised().vgasnet_set_waitmode(_WAIT_MODES[mode]))


def barrier(name: Optional[int] = None) -> None:
    """Waits until all ranks are here. With a name, a number, all must give the same, else BarrierMismatch is raised on all. No two
    threads of a rank call barriers at the same time.
    """
    check(attached().vgasnet_barrier(*barrier_name(name)))


def barrier_notify(name: Optional[int] = None) -> None:
    """The first half of a barrier: says that this rank is here, and waits for nobody."""
    attached().vgasnet_barrier_notify(*barrier_name(name))


def barrier_wait(name: Optional[int] = None) -> None:
    """The second half: waits until all ranks have notified."""
    check(attached().vgasnet_barrier_wait(*barrier_name(name)))


def barrier_test(name: Optional[int] = None) -> bool:
    """The second half without waiting: whether all ranks have notified. Once it was True, the barrier is over."""
    code = attached().vgasnet_barrier_try(*barrier_name(name))
    if code != raw.VGASNET_ERR_NOT_READY:
        check(code)
    return code == raw.VGASNET_OK


def barrier_name(name: Optional[int]) -> "tuple[int, int]":
    """The id and the flags of a barrier with this name, or without one."""
    if name is None:
        return 0, raw.VGASNET_BARRIERFLAG_ANONYMOUS
    return number("name", name, -(1 << 31), (1 << 31) - 1), 0


def poll() -> None:
    """Lets the library work a little, and runs handlers of messages that have arrived."""
    check(attached().vgasnet_AMPoll())


def wait_until(condition: Callable[[], object]) -> None:
    """Waits until ``condition()`` is true, running handlers. It is called again when a handler has run, and after pauses, since
    another thread or a put may have changed it.
    """
    library = attached()
    since = ctypes.c_uint64(0)
    while True:
        seen = library.vgasnet_handler_runs()
        if condition():
            return
        library.vgasnet_wait_handler(seen, ctypes.byref(since))
