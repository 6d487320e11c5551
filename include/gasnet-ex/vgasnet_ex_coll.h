/* The library's functions for the collectives of GASNet-EX; vgasnet_ex.h tells how they are named. */
#ifndef VGASNET_EX_COLL_H
#define VGASNET_EX_COLL_H

#include <gex_types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*gex_Coll_ReduceFn_t)(const void *arg1, void *arg2_and_out, size_t count, const void *cdata);

gex_Event_t vgasnet_ex_Coll_BroadcastNB(gex_TM_t team, gex_Rank_t root, void *to, const void *from, size_t length,
                                        gex_Flags_t flags);
gex_Event_t vgasnet_ex_Coll_ReduceToOneNB(gex_TM_t team, gex_Rank_t root, void *to, const void *from, gex_DT_t type,
                                          size_t element_size, size_t count, gex_OP_t operation, gex_Coll_ReduceFn_t function,
                                          void *cdata, gex_Flags_t flags);
gex_Event_t vgasnet_ex_Coll_ReduceToAllNB(gex_TM_t team, void *to, const void *from, gex_DT_t type, size_t element_size,
                                          size_t count, gex_OP_t operation, gex_Coll_ReduceFn_t function, void *cdata,
                                          gex_Flags_t flags);

#ifdef __cplusplus
}
#endif

#endif
