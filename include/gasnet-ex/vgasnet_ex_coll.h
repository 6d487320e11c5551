/* The library's functions for the collectives of GASNet-EX; vgasnet_ex.h tells how they are named. */
#ifndef VGASNET_EX_COLL_H
#define VGASNET_EX_COLL_H

#include <gex_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Combines count elements: arg2_and_out[i] = arg1[i] op arg2_and_out[i]. It may call what handlers may. */
typedef void (*gex_Coll_ReduceFn_t)(const void *arg1, void *arg2_and_out, size_t count, const void *cdata);

/**
 * Starts to copy bytes of one rank to all of a team.
 *
 * Collective over the team, in the same order on all its ranks.
 *
 * @param team the team
 * @param root rank that has the bytes
 * @param to local address that receives the bytes
 * @param from local address of the bytes; ignored on other ranks than root
 * @param length number of bytes, 0 or more
 * @param flags ignored
 * @return an event to be tested or waited for; GEX_EVENT_INVALID if the operation is complete already
 * @see vgasnet_ex_Event_Wait, GASNet-EX specification 0.19 (gex_Coll_BroadcastNB)
 */
gex_Event_t vgasnet_ex_Coll_BroadcastNB(gex_TM_t team, gex_Rank_t root, void *to, const void *from, size_t length,
                                        gex_Flags_t flags);

/**
 * Starts to combine elements of all ranks of a team at one.
 *
 * Collective over the team, in the same order on all its ranks. Operands meet in the order of the ranks.
 *
 * @param team the team
 * @param root rank that gets the result
 * @param to local address of the result, on root
 * @param from local address of the caller's elements; may be to on root
 * @param type one of GEX_DT_
 * @param element_size bytes of an element
 * @param count number of elements, 0 or more
 * @param operation one of GEX_OP_, which the type has; GEX_OP_USER and GEX_OP_USER_NC for function
 * @param function combines elements, in a thread of the client; ignored with another operation
 * @param cdata what function gets
 * @param flags ignored
 * @return an event to be tested or waited for; GEX_EVENT_INVALID if the operation is complete already
 * @see vgasnet_ex_Event_Wait, GASNet-EX specification 0.19 (gex_Coll_ReduceToOneNB)
 */
gex_Event_t vgasnet_ex_Coll_ReduceToOneNB(gex_TM_t team, gex_Rank_t root, void *to, const void *from, gex_DT_t type,
                                          size_t element_size, size_t count, gex_OP_t operation, gex_Coll_ReduceFn_t function,
                                          void *cdata, gex_Flags_t flags);

/**
 * Starts to combine elements of all ranks of a team at all.
 *
 * Collective over the team, in the same order on all its ranks. Operands meet in the order of the ranks.
 *
 * @param team the team
 * @param to local address of the result
 * @param from local address of the caller's elements; may be to on all ranks or on none
 * @param type one of GEX_DT_
 * @param element_size bytes of an element
 * @param count number of elements, 0 or more
 * @param operation one of GEX_OP_, which the type has; GEX_OP_USER and GEX_OP_USER_NC for function
 * @param function combines elements, in a thread of the client; ignored with another operation
 * @param cdata what function gets
 * @param flags ignored
 * @return an event to be tested or waited for; GEX_EVENT_INVALID if the operation is complete already
 * @see vgasnet_ex_Event_Wait, GASNet-EX specification 0.19 (gex_Coll_ReduceToAllNB)
 */
gex_Event_t vgasnet_ex_Coll_ReduceToAllNB(gex_TM_t team, void *to, const void *from, gex_DT_t type, size_t element_size,
                                          size_t count, gex_OP_t operation, gex_Coll_ReduceFn_t function, void *cdata,
                                          gex_Flags_t flags);

#ifdef __cplusplus
}
#endif

#endif
