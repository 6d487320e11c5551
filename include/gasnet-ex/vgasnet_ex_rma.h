/* The library's functions for gets, puts and the barrier of GASNet-EX; vgasnet_ex.h tells how they are named. */
#ifndef VGASNET_EX_RMA_H
#define VGASNET_EX_RMA_H

#include <gex_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- gets and puts ---- */

/**
 * Reads bytes of a rank's segment, and returns when they have arrived.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with length > 0, a call before the
 * attach.
 *
 * @param team the team, or a pair of endpoints
 * @param to local address that receives the bytes
 * @param rank rank in the team; of a pair, in the job
 * @param from remote address, in the segment of the rank
 * @param length number of bytes, 0 or more
 * @param flags GEX_FLAG_IMMEDIATE and promises about the peer, all ignored
 * @return 0, as nothing is refused
 * @see vgasnet_get, GASNet-EX specification 0.19 (gex_RMA_GetBlocking)
 */
int vgasnet_ex_RMA_GetBlocking(gex_TM_t team, void *to, gex_Rank_t rank, void *from, size_t length, gex_Flags_t flags);

/**
 * Starts to read bytes of a rank's segment, without an event.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with length > 0, a call before the
 * attach.
 *
 * @param team the team, or a pair of endpoints
 * @param to local address that receives the bytes
 * @param rank rank in the team; of a pair, in the job
 * @param from remote address, in the segment of the rank
 * @param length number of bytes, 0 or more
 * @param flags GEX_FLAG_IMMEDIATE and promises about the peer, all ignored
 * @return 0, as nothing is refused
 * @see vgasnet_ex_NBI_Wait, GASNet-EX specification 0.19 (gex_RMA_GetNBI)
 */
int vgasnet_ex_RMA_GetNBI(gex_TM_t team, void *to, gex_Rank_t rank, void *from, size_t length, gex_Flags_t flags);

/**
 * Starts to read bytes of a rank's segment, with an event.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with length > 0, a call before the
 * attach.
 *
 * @param team the team, or a pair of endpoints
 * @param to local address that receives the bytes
 * @param rank rank in the team; of a pair, in the job
 * @param from remote address, in the segment of the rank
 * @param length number of bytes, 0 or more
 * @param flags GEX_FLAG_IMMEDIATE and promises about the peer, all ignored
 * @return an event to be tested or waited for; GEX_EVENT_INVALID if the operation is complete already
 * @see vgasnet_ex_Event_Wait, GASNet-EX specification 0.19 (gex_RMA_GetNB)
 */
gex_Event_t vgasnet_ex_RMA_GetNB(gex_TM_t team, void *to, gex_Rank_t rank, void *from, size_t length, gex_Flags_t flags);

/**
 * Writes bytes to a rank's segment, and returns when no rank can read the old ones any more.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with length > 0, a call before the
 * attach.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param to remote address, in the segment of the rank
 * @param from local address of the bytes
 * @param length number of bytes, 0 or more
 * @param flags GEX_FLAG_IMMEDIATE and promises about the peer, all ignored
 * @return 0, as nothing is refused
 * @see vgasnet_put, GASNet-EX specification 0.19 (gex_RMA_PutBlocking)
 */
int vgasnet_ex_RMA_PutBlocking(gex_TM_t team, gex_Rank_t rank, void *to, const void *from, size_t length, gex_Flags_t flags);

/**
 * Starts to write bytes to a rank's segment, without an event.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with length > 0, a call before the
 * attach, the address of an event.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param to remote address, in the segment of the rank
 * @param from local address of the bytes
 * @param length number of bytes, 0 or more
 * @param local_completion GEX_EVENT_NOW: source is free on return. GEX_EVENT_DEFER: when the put is complete.
 *     GEX_EVENT_GROUP: when vgasnet_ex_NBI_Wait for GEX_EC_LC returns
 * @param flags GEX_FLAG_IMMEDIATE and promises about the peer, all ignored
 * @return 0, as nothing is refused
 * @see vgasnet_ex_NBI_Wait, GASNet-EX specification 0.19 (gex_RMA_PutNBI)
 */
int vgasnet_ex_RMA_PutNBI(gex_TM_t team, gex_Rank_t rank, void *to, const void *from, size_t length, gex_Event_t *local_completion,
                          gex_Flags_t flags);

/**
 * Starts to write bytes to a rank's segment, with an event.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with length > 0, a call before the
 * attach, GEX_EVENT_GROUP.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param to remote address, in the segment of the rank
 * @param from local address of the bytes
 * @param length number of bytes, 0 or more
 * @param local_completion GEX_EVENT_NOW: source is free on return. GEX_EVENT_DEFER: when the put is complete. Else the
 *     address that receives an event for the source
 * @param flags GEX_FLAG_IMMEDIATE and promises about the peer, all ignored
 * @return an event to be tested or waited for; GEX_EVENT_INVALID if the operation is complete already
 * @see vgasnet_ex_Event_Wait, GASNet-EX specification 0.19 (gex_RMA_PutNB)
 */
gex_Event_t vgasnet_ex_RMA_PutNB(gex_TM_t team, gex_Rank_t rank, void *to, const void *from, size_t length,
                                 gex_Event_t *local_completion, gex_Flags_t flags);

/**
 * Reads a number from a rank's segment, and returns it.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with length > 0, a call before the
 * attach, a length that is not 1 to 8.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param from remote address, in the segment of the rank
 * @param length number of bytes, 1 to SIZEOF_GEX_RMA_VALUE_T (8)
 * @param flags GEX_FLAG_IMMEDIATE and promises about the peer, all ignored
 * @return the unsigned integer of length bytes
 * @see vgasnet_get_val, GASNet-EX specification 0.19 (gex_RMA_GetBlockingVal)
 */
gex_RMA_Value_t vgasnet_ex_RMA_GetBlockingVal(gex_TM_t team, gex_Rank_t rank, void *from, size_t length, gex_Flags_t flags);

/**
 * Writes a number to a rank's segment, and returns when no rank can read the old bytes any more.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with length > 0, a call before the
 * attach, a length that is not 1 to 8.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param to remote address, in the segment of the rank
 * @param value the number, whose low-order bytes are written
 * @param length number of bytes, 1 to SIZEOF_GEX_RMA_VALUE_T (8)
 * @param flags GEX_FLAG_IMMEDIATE and promises about the peer, all ignored
 * @return 0, as nothing is refused
 * @see vgasnet_put_val, GASNet-EX specification 0.19 (gex_RMA_PutBlockingVal)
 */
int vgasnet_ex_RMA_PutBlockingVal(gex_TM_t team, gex_Rank_t rank, void *to, gex_RMA_Value_t value, size_t length,
                                  gex_Flags_t flags);

/**
 * Starts to write a number to a rank's segment, without an event.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with length > 0, a call before the
 * attach, a length that is not 1 to 8.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param to remote address, in the segment of the rank
 * @param value the number, whose low-order bytes are written
 * @param length number of bytes, 1 to SIZEOF_GEX_RMA_VALUE_T (8)
 * @param flags GEX_FLAG_IMMEDIATE and promises about the peer, all ignored
 * @return 0, as nothing is refused
 * @see vgasnet_ex_NBI_Wait, GASNet-EX specification 0.19 (gex_RMA_PutNBIVal)
 */
int vgasnet_ex_RMA_PutNBIVal(gex_TM_t team, gex_Rank_t rank, void *to, gex_RMA_Value_t value, size_t length, gex_Flags_t flags);

/**
 * Starts to write a number to a rank's segment, with an event.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with length > 0, a call before the
 * attach, a length that is not 1 to 8.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param to remote address, in the segment of the rank
 * @param value the number, whose low-order bytes are written
 * @param length number of bytes, 1 to SIZEOF_GEX_RMA_VALUE_T (8)
 * @param flags GEX_FLAG_IMMEDIATE and promises about the peer, all ignored
 * @return an event to be tested or waited for; GEX_EVENT_INVALID if the operation is complete already
 * @see vgasnet_ex_Event_Wait, GASNet-EX specification 0.19 (gex_RMA_PutNBVal)
 */
gex_Event_t vgasnet_ex_RMA_PutNBVal(gex_TM_t team, gex_Rank_t rank, void *to, gex_RMA_Value_t value, size_t length,
                                    gex_Flags_t flags);

/* ---- the barrier ---- */

/**
 * Arrives at a barrier of a team.
 *
 * Collective over the team; several may be under way.
 *
 * @param team the team
 * @param flags ignored
 * @return an event that completes when all ranks of the team have arrived
 * @see vgasnet_ex_Event_Wait, GASNet-EX specification 0.19 (gex_Coll_BarrierNB)
 */
gex_Event_t vgasnet_ex_Coll_BarrierNB(gex_TM_t team, gex_Flags_t flags);

#ifdef __cplusplus
}
#endif

#endif
