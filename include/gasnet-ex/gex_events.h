/* GASNet-EX: events, implicit operations, gets and puts, the barrier, locks. Clients include gasnetex.h. */
#ifndef GEX_EVENTS_H
#define GEX_EVENTS_H

#include <vgasnet_ex.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Tests whether an event is complete: GASNET_OK or GASNET_ERR_NOT_READY.
 * @see vgasnet_ex_Event_Test, GASNet-EX specification 0.19
 */
static inline int gex_Event_Test(gex_Event_t event) { return event == GEX_EVENT_INVALID ? 0 : vgasnet_ex_Event_Test(event); }

/** Waits until an event is complete. @see vgasnet_ex_Event_Wait, GASNet-EX specification 0.19 */
static inline void gex_Event_Wait(gex_Event_t event) {
    if (event != GEX_EVENT_INVALID) vgasnet_ex_Event_Wait(event);
}

#ifdef __cplusplus
}
#endif

/**
 * Tests whether at least one of several events is complete.
 * @see vgasnet_ex_Event_TestSome, GASNet-EX specification 0.19
 */
#define gex_Event_TestSome vgasnet_ex_Event_TestSome
/**
 * Waits until at least one of several events is complete.
 * @see vgasnet_ex_Event_WaitSome, GASNet-EX specification 0.19
 */
#define gex_Event_WaitSome vgasnet_ex_Event_WaitSome
/** Tests whether several events are all complete. @see vgasnet_ex_Event_TestAll, GASNet-EX specification 0.19 */
#define gex_Event_TestAll vgasnet_ex_Event_TestAll
/** Waits until several events are all complete. @see vgasnet_ex_Event_WaitAll, GASNet-EX specification 0.19 */
#define gex_Event_WaitAll vgasnet_ex_Event_WaitAll
/** Returns an event for a part of an operation. @see vgasnet_ex_Event_QueryLeaf, GASNet-EX specification 0.19 */
#define gex_Event_QueryLeaf vgasnet_ex_Event_QueryLeaf

/**
 * Tests whether the calling thread's implicit operations are complete.
 * @see vgasnet_ex_NBI_Test, GASNet-EX specification 0.19
 */
#define gex_NBI_Test vgasnet_ex_NBI_Test
/**
 * Waits until the calling thread's implicit operations are complete.
 * @see vgasnet_ex_NBI_Wait, GASNet-EX specification 0.19
 */
#define gex_NBI_Wait vgasnet_ex_NBI_Wait
/**
 * Begins an access region of the calling thread, which collects its implicit operations.
 * @see vgasnet_ex_NBI_BeginAccessRegion, GASNet-EX specification 0.19
 */
#define gex_NBI_BeginAccessRegion vgasnet_ex_NBI_BeginAccessRegion
/** Ends the access region of the calling thread. @see vgasnet_ex_NBI_EndAccessRegion, GASNet-EX specification 0.19 */
#define gex_NBI_EndAccessRegion vgasnet_ex_NBI_EndAccessRegion

/**
 * Reads bytes of a rank's segment, and returns when they have arrived.
 * @see vgasnet_ex_RMA_GetBlocking, GASNet-EX specification 0.19
 */
#define gex_RMA_GetBlocking vgasnet_ex_RMA_GetBlocking
/**
 * Starts to read bytes of a rank's segment, without an event.
 * @see vgasnet_ex_RMA_GetNBI, GASNet-EX specification 0.19
 */
#define gex_RMA_GetNBI vgasnet_ex_RMA_GetNBI
/** Starts to read bytes of a rank's segment, with an event. @see vgasnet_ex_RMA_GetNB, GASNet-EX specification 0.19 */
#define gex_RMA_GetNB vgasnet_ex_RMA_GetNB
/**
 * Writes bytes to a rank's segment, and returns when no rank can read the old ones any more.
 * @see vgasnet_ex_RMA_PutBlocking, GASNet-EX specification 0.19
 */
#define gex_RMA_PutBlocking vgasnet_ex_RMA_PutBlocking
/**
 * Starts to write bytes to a rank's segment, without an event.
 * @see vgasnet_ex_RMA_PutNBI, GASNet-EX specification 0.19
 */
#define gex_RMA_PutNBI vgasnet_ex_RMA_PutNBI
/** Starts to write bytes to a rank's segment, with an event. @see vgasnet_ex_RMA_PutNB, GASNet-EX specification 0.19 */
#define gex_RMA_PutNB vgasnet_ex_RMA_PutNB
/**
 * Reads a number from a rank's segment, and returns it.
 * @see vgasnet_ex_RMA_GetBlockingVal, GASNet-EX specification 0.19
 */
#define gex_RMA_GetBlockingVal vgasnet_ex_RMA_GetBlockingVal
/**
 * Writes a number to a rank's segment, and returns when no rank can read the old bytes any more.
 * @see vgasnet_ex_RMA_PutBlockingVal, GASNet-EX specification 0.19
 */
#define gex_RMA_PutBlockingVal vgasnet_ex_RMA_PutBlockingVal
/**
 * Starts to write a number to a rank's segment, without an event.
 * @see vgasnet_ex_RMA_PutNBIVal, GASNet-EX specification 0.19
 */
#define gex_RMA_PutNBIVal vgasnet_ex_RMA_PutNBIVal
/**
 * Starts to write a number to a rank's segment, with an event.
 * @see vgasnet_ex_RMA_PutNBVal, GASNet-EX specification 0.19
 */
#define gex_RMA_PutNBVal vgasnet_ex_RMA_PutNBVal

/** Arrives at a barrier of a team. @see vgasnet_ex_Coll_BarrierNB, GASNet-EX specification 0.19 */
#define gex_Coll_BarrierNB vgasnet_ex_Coll_BarrierNB
/** Arrives at a barrier of a team, and waits until all its ranks have. @see GASNet-EX specification 0.19 */
#define gex_Coll_BarrierBlocking(tm, flags) gex_Event_Wait(gex_Coll_BarrierNB(tm, flags))

/** Makes a lock free, as VGASNET_HSL_INITIALIZER and zeros do. @see vgasnet_hsl_init, GASNet-EX specification 0.19 */
#define gex_HSL_Init vgasnet_hsl_init
/** Ends the use of a lock, which must be free. @see vgasnet_hsl_destroy, GASNet-EX specification 0.19 */
#define gex_HSL_Destroy vgasnet_hsl_destroy
/** Takes a lock, and waits until it can. @see vgasnet_hsl_lock, GASNet-EX specification 0.19 */
#define gex_HSL_Lock vgasnet_hsl_lock
/** Gives back a lock that the calling thread holds. @see vgasnet_hsl_unlock, GASNet-EX specification 0.19 */
#define gex_HSL_Unlock vgasnet_hsl_unlock
/** Takes a lock if that needs no wait. @see vgasnet_hsl_trylock, GASNet-EX specification 0.19 */
#define gex_HSL_Trylock vgasnet_hsl_trylock

#endif
