/* The library's functions for events of GASNet-EX; vgasnet_ex.h tells how they are named. */
#ifndef VGASNET_EX_EVENTS_H
#define VGASNET_EX_EVENTS_H

#include <gex_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Tests whether an event is complete.
 *
 * Fatal: GEX_EVENT_NO_OP, an event that was synced before.
 *
 * @param event the event; GEX_EVENT_INVALID is complete. Dead once it is complete
 * @retval GASNET_OK if it is complete
 * @retval GASNET_ERR_NOT_READY if it is not
 * @see vgasnet_ex_Event_Wait, GASNet-EX specification 0.19 (gex_Event_Test)
 */
int vgasnet_ex_Event_Test(gex_Event_t event);

/**
 * Waits until an event is complete.
 *
 * Fatal: GEX_EVENT_NO_OP, an event that was synced before.
 *
 * @param event the event; GEX_EVENT_INVALID is complete. Dead afterwards
 * @see vgasnet_ex_Event_Test, GASNet-EX specification 0.19 (gex_Event_Wait)
 */
void vgasnet_ex_Event_Wait(gex_Event_t event);

/**
 * Tests whether at least one of several events is complete.
 *
 * Fatal: a null array, GEX_EVENT_NO_OP.
 *
 * @param events array of events; completed ones are replaced by GEX_EVENT_INVALID
 * @param count number of events, 0 or more
 * @param flags ignored
 * @retval GASNET_OK if one is, or none is valid
 * @retval GASNET_ERR_NOT_READY if not
 * @see vgasnet_ex_Event_WaitSome, GASNet-EX specification 0.19 (gex_Event_TestSome)
 */
int vgasnet_ex_Event_TestSome(gex_Event_t *events, size_t count, gex_Flags_t flags);

/**
 * Waits until at least one of several events is complete.
 *
 * Fatal: a null array, GEX_EVENT_NO_OP.
 *
 * @param events array of events; completed ones are replaced by GEX_EVENT_INVALID
 * @param count number of events, 0 or more
 * @param flags ignored
 * @see vgasnet_ex_Event_TestSome, GASNet-EX specification 0.19 (gex_Event_WaitSome)
 */
void vgasnet_ex_Event_WaitSome(gex_Event_t *events, size_t count, gex_Flags_t flags);

/**
 * Tests whether several events are all complete.
 *
 * Fatal: a null array, GEX_EVENT_NO_OP.
 *
 * @param events array of events; completed ones are replaced by GEX_EVENT_INVALID
 * @param count number of events, 0 or more
 * @param flags ignored
 * @retval GASNET_OK if all are
 * @retval GASNET_ERR_NOT_READY if not
 * @see vgasnet_ex_Event_WaitAll, GASNet-EX specification 0.19 (gex_Event_TestAll)
 */
int vgasnet_ex_Event_TestAll(gex_Event_t *events, size_t count, gex_Flags_t flags);

/**
 * Waits until several events are all complete.
 *
 * Fatal: a null array, GEX_EVENT_NO_OP.
 *
 * @param events array of events; completed ones are replaced by GEX_EVENT_INVALID
 * @param count number of events, 0 or more
 * @param flags ignored
 * @see vgasnet_ex_Event_TestAll, GASNet-EX specification 0.19 (gex_Event_WaitAll)
 */
void vgasnet_ex_Event_WaitAll(gex_Event_t *events, size_t count, gex_Flags_t flags);

/**
 * Returns an event for a part of an operation.
 *
 * Fatal: an unknown category, GEX_EVENT_NO_OP.
 *
 * @param root the operation's event
 * @param category one of GEX_EC_; GEX_EC_LC for the source of a put
 * @return the event; GEX_EVENT_INVALID if that part is complete
 * @see GASNet-EX specification 0.19 (gex_Event_QueryLeaf)
 */
gex_Event_t vgasnet_ex_Event_QueryLeaf(gex_Event_t root, gex_EC_t category);

/**
 * Tests whether the calling thread's implicit operations are complete.
 *
 * Fatal: a mask without known categories, a call in an access region.
 *
 * @param mask which ones: some of GEX_EC_, or GEX_EC_ALL
 * @param flags ignored
 * @retval GASNET_OK if they are complete
 * @retval GASNET_ERR_NOT_READY if some are not
 * @see vgasnet_ex_NBI_Wait, GASNet-EX specification 0.19 (gex_NBI_Test)
 */
int vgasnet_ex_NBI_Test(gex_EC_t mask, gex_Flags_t flags);

/**
 * Waits until the calling thread's implicit operations are complete.
 *
 * Fatal: a mask without known categories, a call in an access region.
 *
 * @param mask which ones: some of GEX_EC_, or GEX_EC_ALL
 * @param flags ignored
 * @see vgasnet_ex_NBI_Test, GASNet-EX specification 0.19 (gex_NBI_Wait)
 */
void vgasnet_ex_NBI_Wait(gex_EC_t mask, gex_Flags_t flags);

/**
 * Begins an access region of the calling thread, which collects its implicit operations.
 *
 * Fatal: a call in an open region.
 *
 * @param flags ignored
 * @see vgasnet_begin_nbi_accessregion, GASNet-EX specification 0.19 (gex_NBI_BeginAccessRegion)
 */
void vgasnet_ex_NBI_BeginAccessRegion(gex_Flags_t flags);

/**
 * Ends the access region of the calling thread.
 *
 * Fatal: a call without an open region.
 *
 * @param flags ignored
 * @return one event for the region's operations; GEX_EVENT_INVALID if all are complete
 * @see vgasnet_end_nbi_accessregion, GASNet-EX specification 0.19 (gex_NBI_EndAccessRegion)
 */
gex_Event_t vgasnet_ex_NBI_EndAccessRegion(gex_Flags_t flags);

#ifdef __cplusplus
}
#endif

#endif
