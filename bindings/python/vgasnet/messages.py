"""Active Messages: functions that run at other ranks.

A handler runs in a thread of the rank that has called this package and waits or polls there: in gets that miss, barriers, ``wait``,
``test``, requests and ``poll``. A rank that only computes, or waits for something else, runs none. It runs with the interpreter's
lock, as any code of Python, so it is interrupted by other threads.

A handler may reply once to a request, use arrays of the own segment, change the program's variables, and call
``vgasnet.exit``. Other functions of the package raise RuntimeError there. An exception that leaves a handler is printed and ends
the job with status 1, since nobody could catch it.
"""

from __future__ import annotations

import ctypes
import inspect
import sys
import traceback
from typing import Any, Callable, List, Optional, Sequence

import numpy as np

from . import raw
from ._core import attached, flush_output, initialised, job, lent, number, thread
from .errors import check
from .segment import segment

_ARGUMENTS_MAX = 16
_CLIENT_FIRST = 128
_MAKERS = "vgasnet.short, medium and long make handlers"
_INT32 = (-(1 << 31), (1 << 31) - 1)


class Handler:
    """A function that runs when a message for it comes. Decorators make it: ``short``, ``medium`` and ``long``."""

    def __init__(self, kind: str, function: Callable[..., None]) -> None:
        self.kind = kind
        self.function = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.arguments = _arguments_of(function)
        self.index = 0

    def __call__(self, *arguments: Any) -> None:
        self.function(*arguments)

    def __repr__(self) -> str:
        return f"<{self.kind} handler {self.__name__} of {self.arguments} arguments>"

    def _thunk(self) -> Any:
        """Called by C."""
        payload = [] if self.kind == "short" else [ctypes.c_void_p, ctypes.c_size_t]
        signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *payload, *[ctypes.c_int32] * self.arguments)

        def run(token: int, *rest: int) -> None:
            place, nbytes = rest[: len(payload)] or (None, 0)
            _run(self, Message(self, token, place or 0, nbytes), rest[len(payload) :])

        return signature(run)


def short(function: Callable[..., None]) -> Handler:
    """Makes a function the handler of messages without payload: ``function(message, argument, ...)``, with up to 16 arguments,
    numbers of 32 bits with a sign. It is given to ``attach``, by all ranks in the same order."""
    return Handler("short", function)


def medium(function: Callable[..., None]) -> Handler:
    """The same for messages with a payload: ``message.payload`` has its bytes."""
    return Handler("medium", function)


def long(function: Callable[..., None]) -> Handler:
    """The same for messages with a payload in the receiver's segment: ``message.array`` has it."""
    return Handler("long", function)


class Message:
    """A message inside its handler.

    Attributes:
        source: its sender
        nbytes: the size of its payload
    """

    def __init__(self, handler: Handler, token: int, place: int, nbytes: int) -> None:
        self._handler = handler
        self._token: Optional[int] = token
        self._place = place
        self.nbytes = nbytes
        source = ctypes.c_uint32()
        check(initialised().vgasnet_AMGetMsgSource(token, ctypes.byref(source)))
        self.source = source.value

    @property
    def payload(self) -> bytes:
        """A copy of the payload, while the handler runs."""
        self._token_now()
        return ctypes.string_at(self._place, self.nbytes) if self.nbytes else b""

    @property
    def offset(self) -> int:
        """Where in the own segment the payload of a long message is, in bytes."""
        if self._handler.kind != "long":
            raise TypeError(f"a {self._handler.kind} message has no place in the segment")
        return self._place - segment().address

    def array(self, dtype: Any = np.uint8) -> np.ndarray:
        """The payload as an array: of a long message, where it is in the own segment; of a medium one, a copy."""
        dtype = np.dtype(dtype)
        if self._handler.kind == "long":
            return segment().array(dtype, self.nbytes // dtype.itemsize, self.offset)
        return np.frombuffer(bytearray(self.payload), dtype)

    def reply(self, handler: Handler, *arguments: int, payload: Any = None, offset: Optional[int] = None) -> None:
        """Sends a message back, from the handler of a request, once. As ``request``."""
        token = self._token_now()
        _send("Reply", token, self.source, handler, arguments, payload, offset)

    def _token_now(self) -> int:
        if self._token is None:
            raise RuntimeError("the handler of this message has returned")
        return self._token


def request(rank: int, handler: Handler, *arguments: int, payload: Any = None, offset: Optional[int] = None) -> None:
    """Has a handler run at a rank, with these arguments. Medium and long messages have a payload, an array or buffer, which is free
    for reuse on return. That of a long message goes to ``offset`` in the receiver's segment. Waits while too many requests are
    under way to the rank, running handlers meanwhile. Messages are reliable and unordered."""
    attached()
    rank = number("rank", rank, 0, job.ranks - 1)
    _send("Request", rank, rank, handler, arguments, payload, offset)


def payload_bytes_max() -> "tuple[int, int, int]":
    """The largest payloads in bytes: of medium messages, of long requests, and of long replies."""
    library = initialised()
    return library.vgasnet_AMMaxMedium(), library.vgasnet_AMMaxLongRequest(), library.vgasnet_AMMaxLongReply()


def _send(
    call: str, to: int, rank: int, handler: Handler, arguments: Sequence[int], payload: Any, offset: Optional[int]
) -> None:
    """Sends a request to a rank, or a reply by a token."""
    if not isinstance(handler, Handler):
        raise TypeError(f"{handler!r} is no handler; {_MAKERS}")
    if handler.index < _CLIENT_FIRST:
        raise ValueError(f"{handler!r} was not given to attach")
    if len(arguments) != handler.arguments:
        raise TypeError(f"{handler!r} is sent {len(arguments)}")
    if (payload is None) != (handler.kind == "short") or (offset is None) != (handler.kind != "long"):
        raise TypeError(f"{handler!r}: short messages have no payload, medium ones have one, long ones have one and an offset")
    numbers = (ctypes.c_int32 * len(arguments))(*[number("an argument", argument, *_INT32) for argument in arguments])
    address, nbytes, _ = (0, 0, None) if payload is None else lent(payload, False)
    memory = [] if payload is None else [address, nbytes]
    place = [] if offset is None else [segment(rank)._place(offset, nbytes)]
    function = getattr(initialised(), f"vgasnet_AM{call}{handler.kind.capitalize()}Args")
    check(function(to, handler.index, *memory, *place, len(arguments), numbers))


def _run(handler: Handler, message: Message, arguments: Sequence[int]) -> None:
    """Runs a handler in a thread that has called in. An exception ends the job: nobody could catch it."""
    thread.is_in_handler = True
    try:
        handler.function(message, *arguments)
    except SystemExit as ended:
        _end(ended.code if isinstance(ended.code, int) else int(ended.code is not None))
    except BaseException:
        print(f"vgasnet: rank {job.rank}: {handler!r} has raised an exception, which ends the job:", file=sys.stderr)
        traceback.print_exc()
        _end(1)
    finally:
        thread.is_in_handler = False
        message._token = None


def _end(status: int) -> None:
    flush_output()
    initialised().vgasnet_exit(status & 255)


def _arguments_of(function: Callable[..., None]) -> int:
    """How many arguments a handler takes besides its message."""
    parameters = list(inspect.signature(function).parameters.values())
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not parameters or any(parameter.kind not in positional for parameter in parameters):
        raise TypeError(f"{function.__name__} is no handler: it takes a message and a fixed number of arguments")
    if len(parameters) > _ARGUMENTS_MAX + 1:
        raise TypeError(f"{function.__name__} takes {len(parameters) - 1} arguments; messages have at most {_ARGUMENTS_MAX}")
    return len(parameters) - 1


def table_of(handlers: Sequence[Handler]) -> Any:
    """The table of handlers for attach."""
    table = (raw.vgasnet_handlerentry_t * max(len(handlers), 1))()
    seen: List[Handler] = []
    for entry, handler in zip(table, handlers):
        if not isinstance(handler, Handler) or handler in seen:
            raise TypeError(f"{handler!r} is no handler, or is there twice; {_MAKERS}")
        seen.append(handler)
        thunk = handler._thunk()
        job.kept.append(thunk)
        entry.fnptr = ctypes.cast(thunk, ctypes.c_void_p).value
    return table


def note_indices(handlers: Sequence[Handler], table: Any) -> None:
    """Notes which index each handler has got."""
    for entry, handler in zip(table, handlers):
        handler.index = entry.index
