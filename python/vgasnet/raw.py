"""The functions, constants and structures of vgasnet.h, by their names in C, for what the classes of this package do not have.

``vgasnet.raw.library()`` has every function, with the types of its arguments: ``raw.library().vgasnet_pin(address, 4096, 1)``.
Nothing is checked that ctypes does not check; what the header calls fatal ends the job. include/vgasnet/ documents each.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from typing import Any, Dict, Iterator, Tuple

_TYPES: Dict[str, Any] = {
    "void": None,
    "int": ctypes.c_int32,
    "u8": ctypes.c_uint8,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
    "f32": ctypes.c_float,
    "size": ctypes.c_size_t,
    "ptr": ctypes.c_void_p,
    "text": ctypes.c_char_p,
}

# Each function: the type of its result, its name, the types of its arguments.
_PROTOTYPES = """
# version.h
text vgasnet_config_string
# errors.h
text vgasnet_ErrorName int
text vgasnet_ErrorDesc int
text vgasnet_ErrorLine
# job.h
int vgasnet_init ptr ptr
int vgasnet_attach ptr int size size
int vgasnet_attach_gasnet ptr int size size
void vgasnet_exit int
u32 vgasnet_mynode
u32 vgasnet_nodes
int vgasnet_getNodeInfo ptr int
int vgasnet_set_waitmode int
text vgasnet_getenv ptr
# segment.h
size vgasnet_getMaxLocalSegmentSize
size vgasnet_getMaxGlobalSegmentSize
int vgasnet_getSegmentInfo ptr int
# transfer.h
void vgasnet_get ptr u32 ptr size
void vgasnet_put u32 ptr ptr size
void vgasnet_get_bulk ptr u32 ptr size
void vgasnet_put_bulk u32 ptr ptr size
void vgasnet_memset u32 ptr int size
# nonblocking.h
ptr vgasnet_get_nb ptr u32 ptr size
ptr vgasnet_put_nb u32 ptr ptr size
ptr vgasnet_get_nb_bulk ptr u32 ptr size
ptr vgasnet_put_nb_bulk u32 ptr ptr size
ptr vgasnet_memset_nb u32 ptr int size
void vgasnet_get_nbi ptr u32 ptr size
void vgasnet_put_nbi u32 ptr ptr size
void vgasnet_get_nbi_bulk ptr u32 ptr size
void vgasnet_put_nbi_bulk u32 ptr ptr size
void vgasnet_memset_nbi u32 ptr int size
void vgasnet_wait_syncnb ptr
int vgasnet_try_syncnb ptr
void vgasnet_wait_syncnb_all ptr size
int vgasnet_try_syncnb_all ptr size
void vgasnet_wait_syncnb_some ptr size
int vgasnet_try_syncnb_some ptr size
void vgasnet_wait_syncnbi_gets
void vgasnet_wait_syncnbi_puts
void vgasnet_wait_syncnbi_all
int vgasnet_try_syncnbi_gets
int vgasnet_try_syncnbi_puts
int vgasnet_try_syncnbi_all
int vgasnet_try_syncnb_nopoll ptr
int vgasnet_try_syncnb_all_nopoll ptr size
int vgasnet_try_syncnb_some_nopoll ptr size
int vgasnet_try_syncnbi_gets_nopoll
int vgasnet_try_syncnbi_puts_nopoll
int vgasnet_try_syncnbi_all_nopoll
void vgasnet_begin_nbi_accessregion
ptr vgasnet_end_nbi_accessregion
# values.h
void vgasnet_put_val u32 ptr u64 size
ptr vgasnet_put_nb_val u32 ptr u64 size
void vgasnet_put_nbi_val u32 ptr u64 size
u64 vgasnet_get_val u32 ptr size
ptr vgasnet_get_nb_val u32 ptr size
u64 vgasnet_wait_syncnb_valget ptr
# atomics.h
u32 vgasnet_atomic_u32 u32 ptr int u32 u32
u64 vgasnet_atomic_u64 u32 ptr int u64 u64
ptr vgasnet_atomic_u32_nb ptr u32 ptr int u32 u32
ptr vgasnet_atomic_u64_nb ptr u32 ptr int u64 u64
void vgasnet_atomic_u32_nbi ptr u32 ptr int u32 u32
void vgasnet_atomic_u64_nbi ptr u32 ptr int u64 u64
# lists.h
void vgasnet_putv_bulk u32 size ptr size ptr
void vgasnet_getv_bulk size ptr u32 size ptr
void vgasnet_puti_bulk u32 size ptr size size ptr size
void vgasnet_geti_bulk size ptr size u32 size ptr size
void vgasnet_puts_bulk u32 ptr ptr ptr ptr ptr size
void vgasnet_gets_bulk ptr ptr u32 ptr ptr ptr size
ptr vgasnet_putv_nb_bulk u32 size ptr size ptr
ptr vgasnet_getv_nb_bulk size ptr u32 size ptr
ptr vgasnet_puti_nb_bulk u32 size ptr size size ptr size
ptr vgasnet_geti_nb_bulk size ptr size u32 size ptr size
ptr vgasnet_puts_nb_bulk u32 ptr ptr ptr ptr ptr size
ptr vgasnet_gets_nb_bulk ptr ptr u32 ptr ptr ptr size
void vgasnet_putv_nbi_bulk u32 size ptr size ptr
void vgasnet_getv_nbi_bulk size ptr u32 size ptr
void vgasnet_puti_nbi_bulk u32 size ptr size size ptr size
void vgasnet_geti_nbi_bulk size ptr size u32 size ptr size
void vgasnet_puts_nbi_bulk u32 ptr ptr ptr ptr ptr size
void vgasnet_gets_nbi_bulk ptr ptr u32 ptr ptr ptr size
# readonly.h
int vgasnet_readonly_begin u32 ptr size int ptr
int vgasnet_readonly_end u32 ptr size
void vgasnet_get_weighted ptr u32 ptr size f32
int vgasnet_readonly_stats ptr size
# residency.h
int vgasnet_pin ptr size int
int vgasnet_unpin ptr size
int vgasnet_advise ptr size int
# messages.h
size vgasnet_AMMaxArgs
size vgasnet_AMMaxMedium
size vgasnet_AMMaxLongRequest
size vgasnet_AMMaxLongReply
int vgasnet_AMRequestShortArgs u32 u8 size ptr
int vgasnet_AMRequestMediumArgs u32 u8 ptr size size ptr
int vgasnet_AMRequestLongArgs u32 u8 ptr size ptr size ptr
int vgasnet_AMReplyShortArgs ptr u8 size ptr
int vgasnet_AMReplyMediumArgs ptr u8 ptr size size ptr
int vgasnet_AMReplyLongArgs ptr u8 ptr size ptr size ptr
int vgasnet_AMGetMsgSource ptr ptr
int vgasnet_AMPoll
u64 vgasnet_handler_runs
void vgasnet_wait_handler u64 ptr
void vgasnet_end_handlers
void vgasnet_hold_interrupts
void vgasnet_resume_interrupts
# locks.h
void vgasnet_hsl_init ptr
void vgasnet_hsl_destroy ptr
void vgasnet_hsl_lock ptr
int vgasnet_hsl_trylock ptr
void vgasnet_hsl_unlock ptr
# barrier.h
void vgasnet_barrier_notify int int
int vgasnet_barrier_wait int int
int vgasnet_barrier_try int int
int vgasnet_barrier int int
int vgasnet_barrier_result ptr
# collectives.h
void vgasnet_coll_init ptr u32 ptr size int
void vgasnet_coll_broadcast ptr ptr u32 ptr size int
ptr vgasnet_coll_broadcast_nb ptr ptr u32 ptr size int
void vgasnet_coll_broadcastM ptr ptr u32 ptr size int
ptr vgasnet_coll_broadcastM_nb ptr ptr u32 ptr size int
void vgasnet_coll_scatter ptr ptr u32 ptr size int
ptr vgasnet_coll_scatter_nb ptr ptr u32 ptr size int
void vgasnet_coll_scatterM ptr ptr u32 ptr size int
ptr vgasnet_coll_scatterM_nb ptr ptr u32 ptr size int
void vgasnet_coll_gather ptr u32 ptr ptr size int
ptr vgasnet_coll_gather_nb ptr u32 ptr ptr size int
void vgasnet_coll_gatherM ptr u32 ptr ptr size int
ptr vgasnet_coll_gatherM_nb ptr u32 ptr ptr size int
void vgasnet_coll_gather_all ptr ptr ptr size int
ptr vgasnet_coll_gather_all_nb ptr ptr ptr size int
void vgasnet_coll_gather_allM ptr ptr ptr size int
ptr vgasnet_coll_gather_allM_nb ptr ptr ptr size int
void vgasnet_coll_exchange ptr ptr ptr size int
ptr vgasnet_coll_exchange_nb ptr ptr ptr size int
void vgasnet_coll_exchangeM ptr ptr ptr size int
ptr vgasnet_coll_exchangeM_nb ptr ptr ptr size int
void vgasnet_coll_reduce ptr u32 ptr ptr size size size size int int int
ptr vgasnet_coll_reduce_nb ptr u32 ptr ptr size size size size int int int
void vgasnet_coll_reduceM ptr u32 ptr ptr size size size size int int int
ptr vgasnet_coll_reduceM_nb ptr u32 ptr ptr size size size size int int int
void vgasnet_coll_wait_sync ptr
int vgasnet_coll_try_sync ptr
void vgasnet_coll_wait_sync_all ptr size
int vgasnet_coll_try_sync_all ptr size
void vgasnet_coll_wait_sync_some ptr size
int vgasnet_coll_try_sync_some ptr size
void vgasnet_coll_barrier_notify ptr int int
int vgasnet_coll_barrier_try ptr int int
int vgasnet_coll_barrier_wait ptr int int
int vgasnet_coll_barrier ptr int int
int vgasnet_coll_barrier_result ptr ptr
ptr vgasnet_coll_team_split ptr u32 u32 ptr
ptr vgasnet_coll_team_of size ptr u32
void vgasnet_coll_team_free ptr
u32 vgasnet_coll_team_size ptr
u32 vgasnet_coll_team_rank2node ptr u32
u32 vgasnet_coll_team_node2rank ptr u32
# files.h
int vgasnet_file_open ptr ptr int u32 ptr ptr
int vgasnet_file_sync ptr
int vgasnet_file_set_size ptr u64
int vgasnet_file_set_atomic ptr int
int vgasnet_file_set_pointer ptr u64
int vgasnet_file_preallocate ptr u64
int vgasnet_file_close ptr
int vgasnet_file_read_at ptr u64 ptr size ptr
int vgasnet_file_write_at ptr u64 ptr size
int vgasnet_file_readv_at ptr size ptr size ptr ptr
int vgasnet_file_writev_at ptr size ptr size ptr
ptr vgasnet_file_read_at_nb ptr u64 ptr size ptr
ptr vgasnet_file_write_at_nb ptr u64 ptr size
int vgasnet_file_lock ptr u64 u64 int
int vgasnet_file_unlock ptr u64 u64
int vgasnet_file_take ptr u64 ptr
int vgasnet_file_flush ptr
int vgasnet_file_advise ptr u64 u64 int
int vgasnet_file_size ptr ptr
int vgasnet_file_error ptr ptr
# stats.h
int vgasnet_stats ptr size
# debug.h
int vgasnet_debug_read ptr ptr size
void vgasnet_debug_stop int
"""

VGASNET_VERSION_MAJOR = 0
VGASNET_VERSION_MINOR = 1
VGASNET_VERSION_PATCH = 0
VGASNET_RELEASE_VERSION_MAJOR = VGASNET_VERSION_MAJOR
VGASNET_RELEASE_VERSION_MINOR = VGASNET_VERSION_MINOR
VGASNET_RELEASE_VERSION_PATCH = VGASNET_VERSION_PATCH
VGASNET_SPEC_VERSION_MAJOR = 1
VGASNET_SPEC_VERSION_MINOR = 8
VGASNET_CONFIG_STRING = "VGASNET=0.1.0,SPEC=1.8,SEGMENT=LARGE,ALIGNED_SEGMENTS=0,PTR=64bit"
VGASNET_MAXNODES = 4096
VGASNET_PAGESIZE = 4096
VGASNET_SEGMENT_LARGE = 1
VGASNET_ALIGNED_SEGMENTS = 0
VGASNET_NULL_ARGV_OK = 1

VGASNET_OK = 0
VGASNET_ERR_NOT_INIT = 10001
VGASNET_ERR_RESOURCE = 10002
VGASNET_ERR_BAD_ARG = 10003
VGASNET_ERR_NOT_READY = 10004
VGASNET_ERR_BARRIER_MISMATCH = 10005
VGASNET_ERR_IO = 10006

VGASNET_WAIT_SPIN = 0
VGASNET_WAIT_BLOCK = 1
VGASNET_WAIT_SPINBLOCK = 2

VGASNET_INVALID_HANDLE = 0
SIZEOF_VGASNET_REGISTER_VALUE_T = 8

VGASNET_ATOMIC_ADD = 0
VGASNET_ATOMIC_AND = 1
VGASNET_ATOMIC_OR = 2
VGASNET_ATOMIC_XOR = 3
VGASNET_ATOMIC_SWAP = 4
VGASNET_ATOMIC_CAS = 5
VGASNET_ATOMIC_MIN = 6
VGASNET_ATOMIC_MAX = 7
VGASNET_ATOMIC_IMIN = 8
VGASNET_ATOMIC_IMAX = 9

VGASNET_READONLY_KEEP = 1

VGASNET_PIN_READ = 1
VGASNET_PIN_WRITE = 2
VGASNET_ADVISE_WILLNEED = 1
VGASNET_ADVISE_DONTNEED = 2
VGASNET_ADVISE_SEQUENTIAL = 3
VGASNET_ADVISE_READMOSTLY = 4

VGASNET_BARRIERFLAG_ANONYMOUS = 1
VGASNET_BARRIERFLAG_MISMATCH = 2
VGASNET_BARRIERFLAG_UNNAMED = 5
VGASNET_BARRIERFLAG_IMAGES = 8

VGASNET_TEAM_ALL = 1
VGASNET_COLL_INVALID_HANDLE = 0
VGASNET_COLL_IN_NOSYNC = 1 << 0
VGASNET_COLL_IN_MYSYNC = 1 << 1
VGASNET_COLL_IN_ALLSYNC = 1 << 2
VGASNET_COLL_OUT_NOSYNC = 1 << 3
VGASNET_COLL_OUT_MYSYNC = 1 << 4
VGASNET_COLL_OUT_ALLSYNC = 1 << 5
VGASNET_COLL_SINGLE = 1 << 6
VGASNET_COLL_LOCAL = 1 << 7
VGASNET_COLL_AGGREGATE = 1 << 8
VGASNET_COLL_DST_IN_SEGMENT = 1 << 10
VGASNET_COLL_SRC_IN_SEGMENT = 1 << 11

VGASNET_FILE_READ = 1
VGASNET_FILE_WRITE = 2
VGASNET_FILE_CREATE = 4
VGASNET_FILE_EXCLUSIVE = 8
VGASNET_FILE_TRUNCATE = 16
VGASNET_FILE_ATOMIC = 32


class vgasnet_handlerentry_t(ctypes.Structure):
    _fields_ = [("index", ctypes.c_uint8), ("fnptr", ctypes.c_void_p)]


class vgasnet_nodeinfo_t(ctypes.Structure):
    _fields_ = [("host", ctypes.c_uint32), ("supernode", ctypes.c_uint32)]


class vgasnet_seginfo_t(ctypes.Structure):
    _fields_ = [("addr", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class vgasnet_memvec_t(ctypes.Structure):
    _fields_ = [("addr", ctypes.c_void_p), ("len", ctypes.c_size_t)]


class vgasnet_readonly_options_t(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("cache_bytes_max", ctypes.c_size_t),
        ("get_bytes_max", ctypes.c_size_t),
        ("object_bytes", ctypes.c_size_t),
    ]


class vgasnet_hsl_t(ctypes.Structure):
    _fields_ = [("opaque_", ctypes.c_uint32 * 4)]


class vgasnet_coll_fn_entry_t(ctypes.Structure):
    _fields_ = [("fnptr", ctypes.c_void_p), ("flags", ctypes.c_uint32)]


class vgasnet_file_options_t(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("stripe_bytes", ctypes.c_size_t),
        ("io_ranks", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
    ]


class vgasnet_file_run_t(ctypes.Structure):
    _fields_ = [("offset", ctypes.c_uint64), ("len", ctypes.c_uint64)]


def _numbers(names: str, times: Any = None) -> list:
    """Fields of 64 bits; those with a star are structures of times."""
    return [(name.rstrip("*"), times if name.endswith("*") else ctypes.c_uint64) for name in names.split()]


class vgasnet_readonly_stats_t(ctypes.Structure):
    _fields_ = _numbers(
        """
    gets hits partial joined direct conflicting capacity failing evicted bytes_hit bytes_fetched entries bytes_used
    bytes_max
        """
    )


class vgasnet_stats_times_t(ctypes.Structure):
    _fields_ = _numbers("count sum_ns p50_ns p90_ns p99_ns max_ns")


class vgasnet_stats_t(ctypes.Structure):
    _fields_ = _numbers(
        """
    size_bytes elapsed threads page_size pool_size hit_gets hit_puts hit_gets_neighbour
    hit_puts_neighbour hit_pins get_bytes put_bytes miss_own_disk* miss_neighbour* miss_other_host*
    miss_zeros* miss_right* miss_frame* miss_late* overwritten refetched_2 refetched_4 fault_mapped
    fault_read fault_write ahead_fetched ahead_used ahead_wasted evicted_clean evicted_dirty cleaned
    disk_read* disk_write* disk_read_bytes disk_write_bytes disk_busy page_in_neighbour_bytes
    page_in_other_host_bytes page_out_neighbour_bytes page_out_other_host_bytes served_pool served_disk
    served_zeros served_stores protocol_sent protocol_received protocol_sent_bytes active_sent
    active_received active_sent_bytes active_received_bytes collective_sent collective_received
    collective_sent_bytes collective_received_bytes collective_read_bytes wait_page* wait_fault*
    wait_barrier* wait_collective* wait_credit* wait_message* wait_flush* wait_space* wait_end*
    fault_borrowed cleaned_ahead zeros_came miss_joined shipped* served_pieces in_blocks block_hits
    block_reads block_writes fault_block block_wait* block_frames copy_gets copy_hits copy_partial
    copy_joined copy_direct copy_conflicting copy_capacity copy_failing copy_dormant copy_hit_bytes
    copy_fetched_bytes copy_used_bytes copy_max_bytes file_reads file_read_bytes file_writes
    file_write_bytes file_hits file_shipped file_disk_reads file_disk_read_bytes file_disk_writes
    file_disk_write_bytes file_coalesced file_aged file_refused wait_lock* spill_bytes drain_bytes
        """,
        vgasnet_stats_times_t,
    )


class vgasnet_debug_layout_t(ctypes.Structure):
    _fields_ = _numbers(
        """
    version rank segment segment_bytes page_bytes entries entry_bytes entry_count key frames readable scratch
    scratch_bytes code
        """
    )


# void (*)(void *results, size_t result_count, const void *left_operands, size_t left_count, const void *right_operands,
#          size_t elem_size, int flags, int arg)
vgasnet_coll_reduce_fn_t = ctypes.CFUNCTYPE(
    None,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int32,
    ctypes.c_int32,
)


def prototypes() -> Iterator[Tuple[str, str, Tuple[str, ...]]]:
    """Each function's name, and what this module calls the types of its result and of its arguments."""
    for line in _PROTOTYPES.splitlines():
        if line and not line.startswith("#"):
            result, name, *arguments = line.split()
            yield name, result, tuple(arguments)


class Library:
    """The shared library: each function of vgasnet.h is an attribute. Calls let other threads of Python run."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.dll = ctypes.CDLL(path, use_errno=True)
        for name, result, arguments in prototypes():
            function = getattr(self.dll, name)
            function.restype = _TYPES[result]
            function.argtypes = [_TYPES[argument] for argument in arguments]
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self.path} has no {name}")


def _candidates() -> Iterator[str]:
    """Where the library may be, most likely first: where VGASNET_LIBRARY says, in the tree that this package is part of, beside
    the vgasnetrun in PATH, where the system looks."""
    name = "libvgasnet.so"
    told = os.environ.get("VGASNET_LIBRARY")
    if told:
        yield os.path.join(told, name) if os.path.isdir(told) else told
        return
    # share/vgasnet/python/vgasnet of an installation.
    here = os.path.dirname(os.path.abspath(__file__))
    yield os.path.join(here, *[os.pardir] * 4, "lib", name)
    launcher = shutil.which("vgasnetrun")
    if launcher:
        place = os.path.dirname(os.path.realpath(launcher))
        yield os.path.join(place, name)
        yield os.path.join(place, os.pardir, "lib", name)
    # python/vgasnet of the sources, after cargo build --release.
    yield os.path.join(here, os.pardir, os.pardir, "target", "release", name)
    yield name


_loaded: "Library | None" = None


def library(path: "str | None" = None) -> Library:
    """The library, which is loaded by the first call: from ``path``, else from where VGASNET_LIBRARY says (a file, or its
    directory), else from where it is usually.

    Raises OSError if it is not found, or is of another version than this package; ValueError for another path than that
    from which it was loaded."""
    global _loaded
    if _loaded is not None:
        if path is not None and os.path.realpath(path) != os.path.realpath(_loaded.path):
            raise ValueError(f"the library was loaded from {_loaded.path}; it cannot be loaded from {path} as well")
        return _loaded
    candidates = [path] if path else list(_candidates())
    for candidate in candidates:
        if candidate == candidates[-1] or os.path.exists(candidate):
            _loaded = _open(candidate)
            return _loaded
    raise AssertionError("the last candidate is tried")


def _open(path: str) -> Library:
    try:
        opened = Library(path)
    except AttributeError as error:
        raise OSError(f"{path} is of another version of vgasnet than this package: {error}") from None
    except OSError as error:
        raise OSError(
            f"{error}; name the library by VGASNET_LIBRARY=/path/to/libvgasnet.so, or put vgasnetrun in PATH"
        ) from None
    version = opened.vgasnet_config_string().decode()
    if version != VGASNET_CONFIG_STRING:
        raise OSError(f"{path} is {version}; this package is for {VGASNET_CONFIG_STRING}")
    return opened


if sys.byteorder != "little" or ctypes.sizeof(ctypes.c_void_p) != 8:
    raise ImportError("vgasnet runs on 64-bit little-endian machines only")
