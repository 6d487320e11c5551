/*
 * The library's functions for GASNet-EX. gasnetex.h defines GASNet-EX's names over them, so that a process may have GASNet itself as
 * well: vgasnet_ex_TM_Pair is gex_TM_Pair, with the same arguments, unless it says otherwise. GASNet-EX's specification documents them.
 *
 * An argument that makes no sense ends the job with a line, except where a function returns an error code.
 */
#ifndef VGASNET_EX_H
#define VGASNET_EX_H

#include <gex_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- init and attach ---- */

/**
 * Makes this process a rank of the job, and creates its client, endpoint and team of all ranks.
 *
 * Collective; once in a process.
 *
 * @param client receives the client; may be null
 * @param endpoint receives the endpoint, whose index is 0; may be null
 * @param team receives the team of all ranks; may be null
 * @param name name of the client, not empty
 * @param argc number of the program's arguments; may be null
 * @param argv the program's arguments; may be null
 * @param flags 0, or some of GEX_FLAG_USES_GASNET1 and GEX_FLAG_DEFER_THREADS
 * @retval GASNET_OK on success
 * @retval GASNET_ERR_NOT_INIT in a second call
 * @retval GASNET_ERR_BAD_ARG for a missing name or unknown flags, and as for vgasnet_init
 * @retval GASNET_ERR_RESOURCE if the machine lacks disk space, memory or threads
 * @see vgasnet_init, GASNet-EX specification 0.19 (gex_Client_Init)
 */
int vgasnet_ex_Client_Init(gex_Client_t *client, gex_EP_t *endpoint, gex_TM_t *team, const char *name, int *argc, char ***argv,
                           gex_Flags_t flags);

/**
 * Gives this rank its segment.
 *
 * Collective; once in a process. Returns when all ranks have attached.
 *
 * @param segment receives the segment; may be null
 * @param team the team of all ranks
 * @param size size in bytes, 1 to vgasnet_getMaxLocalSegmentSize(), rounded up to whole pages
 * @retval GASNET_OK on success
 * @retval GASNET_ERR_NOT_INIT before the init, and in a second call
 * @retval GASNET_ERR_BAD_ARG for a size of 0 or another team
 * @retval GASNET_ERR_RESOURCE if there is less space than size
 * @see vgasnet_attach, GASNet-EX specification 0.19 (gex_Segment_Attach)
 */
int vgasnet_ex_Segment_Attach(gex_Segment_t *segment, gex_TM_t team, uintptr_t size);

/**
 * Tells the objects that a job has, by whichever init.
 *
 * @param client receives the client; may be null
 * @param endpoint receives the endpoint; may be null
 * @param team receives the team of all ranks; may be null
 * @param segment receives the own segment, or GEX_SEGMENT_INVALID; may be null
 * @see vgasnet_ex_Client_Init, GASNet-EX specification 0.19 (gasnet_QueryGexObjects)
 */
void vgasnet_ex_QueryGexObjects(gex_Client_t *client, gex_EP_t *endpoint, gex_TM_t *team, gex_Segment_t *segment);

/**
 * Returns GASNet's name of an error code, such as "GASNET_ERR_BAD_ARG".
 *
 * May be called at any time, by any thread. Never fails.
 *
 * @param errval any number
 * @return a constant string; "unknown" for a number that is no code
 * @see vgasnet_ErrorName, GASNet-1 specification 1.8 (gasnet_ErrorName)
 */
const char *vgasnet_ex_ErrorName(int errval);

#ifdef __cplusplus
}
#endif

#include <vgasnet_ex_events.h>
#include <vgasnet_ex_messages.h>
#include <vgasnet_ex_objects.h>
#include <vgasnet_ex_rma.h>

#endif
