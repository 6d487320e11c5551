/* GASNet-EX: events, implicit operations, gets and puts, the barrier, locks. Clients include gasnetex.h. */
#ifndef GEX_EVENTS_H
#define GEX_EVENTS_H

#include <vgasnet_ex.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline int gex_Event_Test(gex_Event_t event) { return event == GEX_EVENT_INVALID ? 0 : vgasnet_ex_Event_Test(event); }

static inline void gex_Event_Wait(gex_Event_t event) {
    if (event != GEX_EVENT_INVALID) vgasnet_ex_Event_Wait(event);
}

#ifdef __cplusplus
}
#endif

#define gex_Event_TestSome vgasnet_ex_Event_TestSome
#define gex_Event_WaitSome vgasnet_ex_Event_WaitSome
#define gex_Event_TestAll vgasnet_ex_Event_TestAll
#define gex_Event_WaitAll vgasnet_ex_Event_WaitAll
#define gex_Event_QueryLeaf vgasnet_ex_Event_QueryLeaf

#define gex_NBI_Test vgasnet_ex_NBI_Test
#define gex_NBI_Wait vgasnet_ex_NBI_Wait
#define gex_NBI_BeginAccessRegion vgasnet_ex_NBI_BeginAccessRegion
#define gex_NBI_EndAccessRegion vgasnet_ex_NBI_EndAccessRegion

#define gex_RMA_GetBlocking vgasnet_ex_RMA_GetBlocking
#define gex_RMA_GetNBI vgasnet_ex_RMA_GetNBI
#define gex_RMA_GetNB vgasnet_ex_RMA_GetNB
#define gex_RMA_PutBlocking vgasnet_ex_RMA_PutBlocking
#define gex_RMA_PutNBI vgasnet_ex_RMA_PutNBI
#define gex_RMA_PutNB vgasnet_ex_RMA_PutNB
#define gex_RMA_GetBlockingVal vgasnet_ex_RMA_GetBlockingVal
#define gex_RMA_PutBlockingVal vgasnet_ex_RMA_PutBlockingVal
#define gex_RMA_PutNBIVal vgasnet_ex_RMA_PutNBIVal
#define gex_RMA_PutNBVal vgasnet_ex_RMA_PutNBVal

#define gex_Coll_BarrierNB vgasnet_ex_Coll_BarrierNB
#define gex_Coll_BarrierBlocking(tm, flags) gex_Event_Wait(gex_Coll_BarrierNB(tm, flags))

#define gex_HSL_Init vgasnet_hsl_init
#define gex_HSL_Destroy vgasnet_hsl_destroy
#define gex_HSL_Lock vgasnet_hsl_lock
#define gex_HSL_Unlock vgasnet_hsl_unlock
#define gex_HSL_Trylock vgasnet_hsl_trylock

#endif
