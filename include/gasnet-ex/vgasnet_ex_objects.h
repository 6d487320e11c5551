/* The library's functions for objects and the job of GASNet-EX; vgasnet_ex.h tells how they are named. */
#ifndef VGASNET_EX_OBJECTS_H
#define VGASNET_EX_OBJECTS_H

#include <gex_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Sets the client's data of a client.
 *
 * @param client the client
 * @param cdata the client's data; may be null
 * @see vgasnet_ex_Client_QueryCData, GASNet-EX specification 0.19 (gex_Client_SetCData)
 */
void vgasnet_ex_Client_SetCData(gex_Client_t client, const void *cdata);

/**
 * Returns the client's data of a client.
 *
 * @param client the client
 * @return what the client has set, null at first
 * @see vgasnet_ex_Client_SetCData, GASNet-EX specification 0.19 (gex_Client_QueryCData)
 */
void *vgasnet_ex_Client_QueryCData(gex_Client_t client);

/**
 * Returns the flags that a client was made with.
 *
 * @param client the client
 * @return the flags
 * @see GASNet-EX specification 0.19 (gex_Client_QueryFlags)
 */
gex_Flags_t vgasnet_ex_Client_QueryFlags(gex_Client_t client);

/**
 * Returns the name that the client gave at its init.
 *
 * @param client the client
 * @return the name, a constant
 * @see GASNet-EX specification 0.19 (gex_Client_QueryName)
 */
const char *vgasnet_ex_Client_QueryName(gex_Client_t client);

/**
 * Sets the client's data of an endpoint.
 *
 * @param endpoint the endpoint
 * @param cdata the client's data; may be null
 * @see vgasnet_ex_EP_QueryCData, GASNet-EX specification 0.19 (gex_EP_SetCData)
 */
void vgasnet_ex_EP_SetCData(gex_EP_t endpoint, const void *cdata);

/**
 * Returns the client's data of an endpoint.
 *
 * @param endpoint the endpoint
 * @return what the client has set, null at first
 * @see vgasnet_ex_EP_SetCData, GASNet-EX specification 0.19 (gex_EP_QueryCData)
 */
void *vgasnet_ex_EP_QueryCData(gex_EP_t endpoint);

/**
 * Returns the client of an endpoint.
 *
 * @param endpoint the endpoint
 * @return the client
 * @see GASNet-EX specification 0.19 (gex_EP_QueryClient)
 */
gex_Client_t vgasnet_ex_EP_QueryClient(gex_EP_t endpoint);

/**
 * Returns the flags that an endpoint was made with.
 *
 * @param endpoint the endpoint
 * @return the flags
 * @see GASNet-EX specification 0.19 (gex_EP_QueryFlags)
 */
gex_Flags_t vgasnet_ex_EP_QueryFlags(gex_EP_t endpoint);

/**
 * Returns the segment that an endpoint is bound to.
 *
 * @param endpoint the endpoint
 * @return the segment, or GEX_SEGMENT_INVALID before the attach
 * @see GASNet-EX specification 0.19 (gex_EP_QuerySegment)
 */
gex_Segment_t vgasnet_ex_EP_QuerySegment(gex_EP_t endpoint);

/**
 * Returns the index of an endpoint in its process.
 *
 * @param endpoint the endpoint
 * @return the index, 0 for the only endpoint there is
 * @see GASNet-EX specification 0.19 (gex_EP_QueryIndex)
 */
gex_EP_Index_t vgasnet_ex_EP_QueryIndex(gex_EP_t endpoint);

/**
 * Registers handlers of Active Messages at this rank.
 *
 * Not collective; may be called again for more handlers.
 *
 * @param endpoint the endpoint
 * @param table the handlers, which are copied. An index is 128 to 255, or 0 for the highest free one, which is then
 *     written to the table
 * @param entries number of entries in table
 * @retval GASNET_OK on success
 * @retval GASNET_ERR_BAD_ARG for a null table with entries, or a table that makes no sense
 * @see GASNet-EX specification 0.19 (gex_EP_RegisterHandlers)
 */
int vgasnet_ex_EP_RegisterHandlers(gex_EP_t endpoint, gex_AM_Entry_t *table, size_t entries);

/**
 * Refuses to make an endpoint: a process has one.
 *
 * @param endpoint left as it is
 * @param client the client
 * @param capabilities some of GEX_EP_CAPABILITY_
 * @param flags ignored
 * @retval GASNET_ERR_RESOURCE always, unless
 * @retval GASNET_ERR_BAD_ARG for unknown capabilities or none
 * @see GASNet-EX specification 0.19 (gex_EP_Create)
 */
int vgasnet_ex_EP_Create(gex_EP_t *endpoint, gex_Client_t client, gex_EP_Capabilities_t capabilities, gex_Flags_t flags);

/**
 * Refuses to bind a segment: the endpoint keeps the one of the attach.
 *
 * @param endpoint the endpoint
 * @param segment ignored
 * @param flags ignored
 * @retval GASNET_ERR_BAD_ARG always
 * @see GASNet-EX specification 0.19 (gex_EP_BindSegment)
 */
int vgasnet_ex_EP_BindSegment(gex_EP_t endpoint, gex_Segment_t segment, gex_Flags_t flags);

/**
 * Does nothing: all ranks know all segments after the attach.
 *
 * @param team the team
 * @param endpoints array of endpoints; may be null if count is 0
 * @param count number of endpoints
 * @param flags ignored
 * @retval GASNET_OK on success
 * @retval GASNET_ERR_BAD_ARG for a null array of endpoints
 * @see GASNet-EX specification 0.19 (gex_EP_PublishBoundSegment)
 */
int vgasnet_ex_EP_PublishBoundSegment(gex_TM_t team, gex_EP_t *endpoints, size_t count, gex_Flags_t flags);

/**
 * Tells a rank's segment.
 *
 * Handlers may call it.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param owneraddr receives the segment's address in its own rank; may be null
 * @param localaddr receives the address here, which is null for another rank's segment; may be null
 * @param size receives the size in bytes, 0 without a segment; may be null
 * @param flags ignored
 * @return GEX_EVENT_INVALID, as the answer is there
 * @see GASNet-EX specification 0.19 (gex_EP_QueryBoundSegmentNB)
 */
gex_Event_t vgasnet_ex_EP_QueryBoundSegmentNB(gex_TM_t team, gex_Rank_t rank, void **owneraddr, void **localaddr, uintptr_t *size,
                                              gex_Flags_t flags);

/**
 * Sets the client's data of a segment.
 *
 * @param segment the segment
 * @param cdata the client's data; may be null
 * @see vgasnet_ex_Segment_QueryCData, GASNet-EX specification 0.19 (gex_Segment_SetCData)
 */
void vgasnet_ex_Segment_SetCData(gex_Segment_t segment, const void *cdata);

/**
 * Returns the client's data of a segment.
 *
 * @param segment the segment
 * @return what the client has set, null at first
 * @see vgasnet_ex_Segment_SetCData, GASNet-EX specification 0.19 (gex_Segment_QueryCData)
 */
void *vgasnet_ex_Segment_QueryCData(gex_Segment_t segment);

/**
 * Returns the client of a segment.
 *
 * @param segment the segment
 * @return the client
 * @see GASNet-EX specification 0.19 (gex_Segment_QueryClient)
 */
gex_Client_t vgasnet_ex_Segment_QueryClient(gex_Segment_t segment);

/**
 * Returns the flags that a segment was made with.
 *
 * @param segment the segment
 * @return the flags
 * @see GASNet-EX specification 0.19 (gex_Segment_QueryFlags)
 */
gex_Flags_t vgasnet_ex_Segment_QueryFlags(gex_Segment_t segment);

/**
 * Returns the address of a segment in its own rank.
 *
 * @param segment the segment
 * @return the address
 * @see GASNet-EX specification 0.19 (gex_Segment_QueryAddr)
 */
void *vgasnet_ex_Segment_QueryAddr(gex_Segment_t segment);

/**
 * Returns the size of a segment.
 *
 * @param segment the segment
 * @return the size in bytes
 * @see GASNet-EX specification 0.19 (gex_Segment_QuerySize)
 */
uintptr_t vgasnet_ex_Segment_QuerySize(gex_Segment_t segment);

/**
 * Tells a rank's segment.
 *
 * Handlers may call it.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param owneraddr receives the segment's address in its own rank; may be null
 * @param localaddr receives the address here, which is null for another rank's segment; may be null
 * @param size receives the size in bytes, 0 without a segment; may be null
 * @retval GASNET_OK on success
 * @retval GASNET_ERR_RESOURCE if the rank has no segment; nothing is written
 * @see GASNet-EX specification 0.19 (gex_Segment_QueryBound)
 */
int vgasnet_ex_Segment_QueryBound(gex_TM_t team, gex_Rank_t rank, void **owneraddr, void **localaddr, uintptr_t *size);

/**
 * Refuses to make a segment: a process has one.
 *
 * @param segment left as it is
 * @param client the client
 * @param address ignored
 * @param length ignored
 * @param kind ignored
 * @param flags ignored
 * @retval GASNET_ERR_RESOURCE always
 * @see GASNet-EX specification 0.19 (gex_Segment_Create)
 */
int vgasnet_ex_Segment_Create(gex_Segment_t *segment, gex_Client_t client, gex_Addr_t address, uintptr_t length, gex_MK_t kind,
                              gex_Flags_t flags);

/**
 * Sets the client's data of a team.
 *
 * @param team the team
 * @param cdata the client's data; may be null
 * @see vgasnet_ex_TM_QueryCData, GASNet-EX specification 0.19 (gex_TM_SetCData)
 */
void vgasnet_ex_TM_SetCData(gex_TM_t team, const void *cdata);

/**
 * Returns the client's data of a team.
 *
 * @param team the team
 * @return what the client has set, null at first
 * @see vgasnet_ex_TM_SetCData, GASNet-EX specification 0.19 (gex_TM_QueryCData)
 */
void *vgasnet_ex_TM_QueryCData(gex_TM_t team);

/**
 * Returns the client of a team.
 *
 * @param team the team
 * @return the client
 * @see GASNet-EX specification 0.19 (gex_TM_QueryClient)
 */
gex_Client_t vgasnet_ex_TM_QueryClient(gex_TM_t team);

/**
 * Returns the caller's endpoint in a team.
 *
 * @param team the team
 * @return the endpoint
 * @see GASNet-EX specification 0.19 (gex_TM_QueryEP)
 */
gex_EP_t vgasnet_ex_TM_QueryEP(gex_TM_t team);

/**
 * Returns the flags that a team was made with.
 *
 * @param team the team
 * @return the flags
 * @see GASNet-EX specification 0.19 (gex_TM_QueryFlags)
 */
gex_Flags_t vgasnet_ex_TM_QueryFlags(gex_TM_t team);

/**
 * Returns the caller's rank in a team.
 *
 * @param team the team
 * @return the rank, 0 to the team's size - 1
 * @see GASNet-EX specification 0.19 (gex_TM_QueryRank)
 */
gex_Rank_t vgasnet_ex_TM_QueryRank(gex_TM_t team);

/**
 * Returns the number of ranks of a team.
 *
 * @param team the team
 * @return the number of ranks, at least 1
 * @see GASNet-EX specification 0.19 (gex_TM_QuerySize)
 */
gex_Rank_t vgasnet_ex_TM_QuerySize(gex_TM_t team);

/**
 * Returns the rank in the job of a team's rank.
 *
 * @param team the team
 * @param rank rank in the team
 * @return the rank in the job
 * @see GASNet-EX specification 0.19 (gex_TM_TranslateRankToJobrank)
 */
gex_Rank_t vgasnet_ex_TM_TranslateRankToJobrank(gex_TM_t team, gex_Rank_t rank);

/**
 * Returns the rank in a team of a job's rank.
 *
 * @param team the team
 * @param jobrank rank in the job
 * @return the rank in the team, or GEX_RANK_INVALID if it is none of the team
 * @see GASNet-EX specification 0.19 (gex_TM_TranslateJobrankToRank)
 */
gex_Rank_t vgasnet_ex_TM_TranslateJobrankToRank(gex_TM_t team, gex_Rank_t jobrank);

/**
 * Tells the endpoint of a team's rank.
 *
 * Differs from gex_TM_TranslateRankToEP, which returns the answer.
 *
 * @param team the team
 * @param rank rank in the team
 * @param location receives the rank in the job and the index of the endpoint; not null
 * @see GASNet-EX specification 0.19 (gex_TM_TranslateRankToEP)
 */
void vgasnet_ex_TM_TranslateRankToEP(gex_TM_t team, gex_Rank_t rank, gex_EP_Location_t *location);

/**
 * Returns a pair of endpoints: a team of the caller and any rank of the job, for messages and transfers.
 *
 * A pair is a number. Nothing frees it.
 *
 * @param endpoint the caller's endpoint
 * @param remote_index index of the other ranks' endpoint: 0
 * @return the pair
 * @see GASNet-EX specification 0.19 (gex_TM_Pair)
 */
gex_TM_t vgasnet_ex_TM_Pair(gex_EP_t endpoint, gex_EP_Index_t remote_index);

/**
 * Refuses to make a kind of memory: segments are memory of the host.
 *
 * @param kind left as it is
 * @param client the client
 * @param args a gex_MK_Create_args_t; ignored
 * @param flags ignored
 * @retval GASNET_ERR_BAD_ARG always
 * @see GASNet-EX specification 0.19 (gex_MK_Create)
 */
int vgasnet_ex_MK_Create(gex_MK_t *kind, gex_Client_t client, const void *args, gex_Flags_t flags);

/* ---- the job ---- */

/**
 * Returns whether refusals that a client may live with print a line.
 *
 * @return not 0 if they do, as at first
 * @see vgasnet_ex_System_SetVerboseErrors, GASNet-EX specification 0.19 (gex_System_GetVerboseErrors)
 */
int vgasnet_ex_System_GetVerboseErrors(void);

/**
 * Sets whether refusals that a client may live with print a line.
 *
 * @param enable 0 for no, another number for yes
 * @see vgasnet_ex_System_GetVerboseErrors, GASNet-EX specification 0.19 (gex_System_SetVerboseErrors)
 */
void vgasnet_ex_System_SetVerboseErrors(int enable);

/**
 * Tells the ranks whose segments the caller can load from: itself.
 *
 * @param info receives an array of the library, in the order of the job; may be null
 * @param count receives the number of its entries; may be null
 * @param me receives the caller's place in it; may be null
 * @see GASNet-EX specification 0.19 (gex_System_QueryNbrhdInfo)
 */
void vgasnet_ex_System_QueryNbrhdInfo(gex_RankInfo_t **info, gex_Rank_t *count, gex_Rank_t *me);

/**
 * Tells the ranks of the caller's machine.
 *
 * @param info receives an array of the library, in the order of the job; may be null
 * @param count receives the number of its entries; may be null
 * @param me receives the caller's place in it; may be null
 * @see GASNet-EX specification 0.19 (gex_System_QueryHostInfo)
 */
void vgasnet_ex_System_QueryHostInfo(gex_RankInfo_t **info, gex_Rank_t *count, gex_Rank_t *me);

/**
 * Tells the number of neighbourhoods and of machines, and the caller's place among them.
 *
 * @param nbrhds receives the number of neighbourhoods; may be null
 * @param my_nbrhd receives the caller's; may be null
 * @param hosts receives the number of machines; may be null
 * @param my_host receives the caller's; may be null
 * @see GASNet-EX specification 0.19 (gex_System_QueryMyPosition)
 */
void vgasnet_ex_System_QueryMyPosition(gex_Rank_t *nbrhds, gex_Rank_t *my_nbrhd, gex_Rank_t *hosts, gex_Rank_t *my_host);

/**
 * Tells the functions that threads of the client are to run: none.
 *
 * @param client the client
 * @param count receives 0
 * @param info receives a null pointer
 * @param flags 0
 * @retval GASNET_OK on success
 * @retval GASNET_ERR_BAD_ARG for a null pointer or other flags
 * @retval GASNET_ERR_RESOURCE if the client's init was not given GEX_FLAG_DEFER_THREADS
 * @see GASNet-EX specification 0.19 (gex_System_QueryProgressThreads)
 */
int vgasnet_ex_System_QueryProgressThreads(gex_Client_t client, unsigned int *count, const gex_ProgressThreadInfo_t **info,
                                           gex_Flags_t flags);

#ifdef __cplusplus
}
#endif

#endif
