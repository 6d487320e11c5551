/*
 * GASNet-EX: the types that are numbers, and the constants. Programs may include it without a thread mode.
 *
 * The numbers are those of GASNet-EX 2025.8.0: clients have some of them built in.
 */
#ifndef GASNET_FWD_H
#define GASNET_FWD_H

#include <stddef.h>
#include <stdint.h>

/* ---- types ---- */

typedef uint32_t gex_Rank_t;
typedef uint16_t gex_EP_Index_t;
typedef uint32_t gex_Flags_t;
typedef uint32_t gex_DT_t;
typedef uint32_t gex_OP_t;
typedef uint32_t gex_EP_Capabilities_t;
typedef uint8_t gex_AM_Index_t;
typedef int32_t gex_AM_Arg_t;
typedef uint64_t gex_RMA_Value_t;
typedef unsigned int gex_TI_t;
typedef unsigned int gex_EC_t;
typedef void *gex_Addr_t;
/* The handle of an operation, as vgasnet_handle_t; it points nowhere. */
typedef struct vgasnet_operation *gex_Event_t;

typedef struct {
    gex_Rank_t gex_rank;
    gex_EP_Index_t gex_ep_index;
} gex_EP_Location_t;

#define SIZEOF_GEX_RMA_VALUE_T 8

/* ---- values that stand for none ---- */

#define GEX_RANK_INVALID ((gex_Rank_t)0xFFFFFFFF)

#define GEX_EVENT_INVALID ((gex_Event_t)(uintptr_t)0)
#define GEX_EVENT_NO_OP ((gex_Event_t)(uintptr_t)1)
/* In place of the address of an event. */
#define GEX_EVENT_NOW ((gex_Event_t *)(uintptr_t)1)
#define GEX_EVENT_DEFER ((gex_Event_t *)(uintptr_t)2)
#define GEX_EVENT_GROUP ((gex_Event_t *)(uintptr_t)3)

/* ---- flags; those of different calls may be the same ---- */

/* of communication */
#define GEX_FLAG_IMMEDIATE 0x1
#define GEX_FLAG_SELF_SEG_UNKNOWN 0x8
#define GEX_FLAG_SELF_SEG_SOME 0x10
#define GEX_FLAG_SELF_SEG_BOUND 0x20
#define GEX_FLAG_SELF_SEG_OFFSET 0x40
#define GEX_FLAG_PEER_SEG_UNKNOWN 0x80
#define GEX_FLAG_PEER_SEG_SOME 0x100
#define GEX_FLAG_PEER_SEG_BOUND 0x200
#define GEX_FLAG_PEER_SEG_OFFSET 0x400
#define GEX_FLAG_RANK_IS_JOBRANK 0x2000
#define GEX_FLAG_PEER_NEVER_NBRHD 0x4000
#define GEX_FLAG_PEER_NEVER_SELF 0x8000

/* of limits of Active Messages, and of vector, indexed and strided puts */
#define GEX_FLAG_AM_PREPARE_LEAST_CLIENT 0x800
#define GEX_FLAG_AM_PREPARE_LEAST_ALLOC 0x1000
#define GEX_FLAG_ENABLE_LEAF_LC 0x800

/* of atomic operations, and of their domains */
#define GEX_FLAG_AD_REL 0x2
#define GEX_FLAG_AD_ACQ 0x4
#define GEX_FLAG_AD_MY_RANK 0x800
#define GEX_FLAG_AD_MY_NBRHD 0x1000
#define GEX_FLAG_AD_FAVOR_MY_RANK 0x1
#define GEX_FLAG_AD_FAVOR_MY_NBRHD 0x2
#define GEX_FLAG_AD_FAVOR_REMOTE 0x4

/* of handlers */
#define GEX_FLAG_AM_SHORT 0x1
#define GEX_FLAG_AM_MEDIUM 0x2
#define GEX_FLAG_AM_LONG 0x4
#define GEX_FLAG_AM_MEDLONG 0x6
#define GEX_FLAG_AM_REQUEST 0x8
#define GEX_FLAG_AM_REPLY 0x10
#define GEX_FLAG_AM_REQREP 0x18

/* of clients, and of endpoints */
#define GEX_FLAG_USES_GASNET1 0x1
#define GEX_FLAG_DEFER_THREADS 0x2
#define GEX_FLAG_HINT_ACCEL_AD 0x1
#define GEX_FLAG_HINT_ACCEL_COLL 0x2
#define GEX_FLAG_HINT_ACCEL_ALL 0x3

/* of teams */
#define GEX_FLAG_TM_SCRATCH_SIZE_MIN 0x1
#define GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED 0x2
#define GEX_FLAG_TM_GLOBAL_SCRATCH 0x4
#define GEX_FLAG_TM_LOCAL_SCRATCH 0x8
#define GEX_FLAG_TM_SYMMETRIC_SCRATCH 0x10
#define GEX_FLAG_TM_NO_SCRATCH 0x20
#define GEX_FLAG_SCRATCH_SEG_OFFSET 0x40
#define GEX_FLAG_GLOBALLY_QUIESCED 0x2000

/* ---- capabilities of endpoints ---- */

#define GEX_EP_CAPABILITY_RMA 0x1
#define GEX_EP_CAPABILITY_AM 0x2
#define GEX_EP_CAPABILITY_VIS 0x4
#define GEX_EP_CAPABILITY_COLL 0x8
#define GEX_EP_CAPABILITY_AD 0x10
#define GEX_EP_CAPABILITY_ALL 0x1F

/* ---- categories of events ---- */

#define GEX_EC_GET 0x1U
#define GEX_EC_PUT 0x2U
#define GEX_EC_AM 0x4U
#define GEX_EC_LC 0x8U
#define GEX_EC_RMW 0x10U
#define GEX_EC_ALL 0xFFFFFFFFU

/* ---- data types ---- */

#define GEX_DT_I32 0x1
#define GEX_DT_U32 0x2
#define GEX_DT_I64 0x4
#define GEX_DT_U64 0x8
#define GEX_DT_FLT 0x10
#define GEX_DT_DBL 0x20
#define GEX_DT_USER 0x40

/* ---- operations of atomic domains and reductions ---- */

#define GEX_OP_AND 0x1
#define GEX_OP_OR 0x2
#define GEX_OP_XOR 0x4
#define GEX_OP_ADD 0x8
#define GEX_OP_SUB 0x10
#define GEX_OP_MULT 0x20
#define GEX_OP_MIN 0x40
#define GEX_OP_MAX 0x80
#define GEX_OP_INC 0x100
#define GEX_OP_DEC 0x200
#define GEX_OP_SET 0x400
#define GEX_OP_CAS 0x800

#define GEX_OP_FAND 0x8000
#define GEX_OP_FOR 0x10000
#define GEX_OP_FXOR 0x20000
#define GEX_OP_FADD 0x40000
#define GEX_OP_FSUB 0x80000
#define GEX_OP_FMULT 0x100000
#define GEX_OP_FMIN 0x200000
#define GEX_OP_FMAX 0x400000
#define GEX_OP_FINC 0x800000
#define GEX_OP_FDEC 0x1000000
#define GEX_OP_SWAP 0x2000000
#define GEX_OP_FCAS 0x4000000
#define GEX_OP_CSWAP GEX_OP_FCAS
#define GEX_OP_GET 0x8000000
#define GEX_OP_USER 0x40000000
#define GEX_OP_USER_NC 0x80000000

#define GEX_OP_TO_FETCHING(op) ((op) << 15)
#define GEX_OP_TO_NONFETCHING(op) ((op) >> 15)

#endif
