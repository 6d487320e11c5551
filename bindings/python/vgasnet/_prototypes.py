"""The types of each function of vgasnet.h for ctypes. tests/c_interface compares it with the headers."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, Iterator, Tuple

# The version of the interface, as the library has it.
VGASNET_CONFIG_STRING = "VGASNET=0.1.0,SPEC=1.8,SEGMENT=LARGE,ALIGNED_SEGMENTS=0,PTR=64bit"

TYPES: Dict[str, Any] = {
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
# nonblocking.h, completion.h
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
# images.h, collectives.h, reductions.h, teams.h
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
int vgasnet_file_extend ptr u64
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
int vgasnet_file_error_count ptr ptr
# stats.h
int vgasnet_stats ptr size
# debug.h
int vgasnet_debug_read ptr ptr size
void vgasnet_debug_stop int
"""


def prototypes() -> Iterator[Tuple[str, str, Tuple[str, ...]]]:
    """Each function's name, with this module's names for the types of result and arguments."""
    for line in _PROTOTYPES.splitlines():
        if line and not line.startswith("#"):
            result, name, *arguments = line.split()
            yield name, result, tuple(arguments)
