"""The functions, constants and structures of vgasnet.h, by their names in C, beyond the classes of this package.

``vgasnet.raw.library()`` has every function, with the types of its arguments: ``raw.library().vgasnet_pin(address, 4096, 1)``.
Only ctypes checks arguments. A fatal error of the header ends the job. include/vgasnet/ documents each function.
"""

from __future__ import annotations

import ctypes
from typing import Any

from ._library import Library as Library
from ._library import library as library
from ._prototypes import VGASNET_CONFIG_STRING as VGASNET_CONFIG_STRING
from ._prototypes import prototypes as prototypes

VGASNET_VERSION_MAJOR = 0
VGASNET_VERSION_MINOR = 1
VGASNET_VERSION_PATCH = 0
VGASNET_RELEASE_VERSION_MAJOR = VGASNET_VERSION_MAJOR
VGASNET_RELEASE_VERSION_MINOR = VGASNET_VERSION_MINOR
VGASNET_RELEASE_VERSION_PATCH = VGASNET_VERSION_PATCH
VGASNET_SPEC_VERSION_MAJOR = 1
VGASNET_SPEC_VERSION_MINOR = 8
VGASNET_MAXNODES = 1048576
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
    """Fields of 64 bits; a star marks structures of times."""
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
    offers_kept offers_refused guests near_reads block_ahead fault_copied
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
