/* GASNet-EX: init and attach, objects, and the job. Clients include gasnetex.h. */
#ifndef GEX_OBJECTS_H
#define GEX_OBJECTS_H

#include <vgasnet_ex.h>

#define gex_Client_Init vgasnet_ex_Client_Init
#define gex_Client_SetCData vgasnet_ex_Client_SetCData
#define gex_Client_QueryCData vgasnet_ex_Client_QueryCData
#define gex_Client_QueryFlags vgasnet_ex_Client_QueryFlags
#define gex_Client_QueryName vgasnet_ex_Client_QueryName

#define gex_Segment_Attach vgasnet_ex_Segment_Attach
#define gex_Segment_SetCData vgasnet_ex_Segment_SetCData
#define gex_Segment_QueryCData vgasnet_ex_Segment_QueryCData
#define gex_Segment_QueryClient vgasnet_ex_Segment_QueryClient
#define gex_Segment_QueryFlags vgasnet_ex_Segment_QueryFlags
#define gex_Segment_QueryAddr vgasnet_ex_Segment_QueryAddr
#define gex_Segment_QuerySize vgasnet_ex_Segment_QuerySize
#define gex_Segment_QueryBound vgasnet_ex_Segment_QueryBound
#define gex_Segment_Create vgasnet_ex_Segment_Create

#define gex_EP_SetCData vgasnet_ex_EP_SetCData
#define gex_EP_QueryCData vgasnet_ex_EP_QueryCData
#define gex_EP_QueryClient vgasnet_ex_EP_QueryClient
#define gex_EP_QueryFlags vgasnet_ex_EP_QueryFlags
#define gex_EP_QuerySegment vgasnet_ex_EP_QuerySegment
#define gex_EP_QueryIndex vgasnet_ex_EP_QueryIndex
#define gex_EP_RegisterHandlers vgasnet_ex_EP_RegisterHandlers
#define gex_EP_Create vgasnet_ex_EP_Create
#define gex_EP_BindSegment vgasnet_ex_EP_BindSegment
#define gex_EP_PublishBoundSegment vgasnet_ex_EP_PublishBoundSegment
#define gex_EP_QueryBoundSegmentNB vgasnet_ex_EP_QueryBoundSegmentNB

#define gex_TM_SetCData vgasnet_ex_TM_SetCData
#define gex_TM_QueryCData vgasnet_ex_TM_QueryCData
#define gex_TM_QueryClient vgasnet_ex_TM_QueryClient
#define gex_TM_QueryEP vgasnet_ex_TM_QueryEP
#define gex_TM_QueryFlags vgasnet_ex_TM_QueryFlags
#define gex_TM_QueryRank vgasnet_ex_TM_QueryRank
#define gex_TM_QuerySize vgasnet_ex_TM_QuerySize
#define gex_TM_TranslateRankToJobrank vgasnet_ex_TM_TranslateRankToJobrank
#define gex_TM_TranslateJobrankToRank vgasnet_ex_TM_TranslateJobrankToRank
#define gex_TM_Pair vgasnet_ex_TM_Pair

#define gex_System_QueryJobRank vgasnet_mynode
#define gex_System_QueryJobSize vgasnet_nodes
#define gex_System_GetVerboseErrors vgasnet_ex_System_GetVerboseErrors
#define gex_System_SetVerboseErrors vgasnet_ex_System_SetVerboseErrors
#define gex_System_QueryNbrhdInfo vgasnet_ex_System_QueryNbrhdInfo
#define gex_System_QueryHostInfo vgasnet_ex_System_QueryHostInfo
#define gex_System_QueryMyPosition vgasnet_ex_System_QueryMyPosition
#define gex_System_QueryProgressThreads vgasnet_ex_System_QueryProgressThreads

#ifdef __cplusplus
extern "C" {
#endif

/* No segment and no kind of memory is made but those that stay until the job ends. */
static inline void gex_Segment_Destroy(gex_Segment_t segment, gex_Flags_t flags) { (void)segment, (void)flags; }

static inline gex_EP_Location_t gex_TM_TranslateRankToEP(gex_TM_t team, gex_Rank_t rank, gex_Flags_t flags) {
    gex_EP_Location_t location;
    (void)flags;
    vgasnet_ex_TM_TranslateRankToEP(team, rank, &location);
    return location;
}

/* There is no limit on threads. */
static inline uint64_t gex_System_QueryMaxThreads(void) { return GASNETI_MAX_THREADS; }

/* Handlers run in threads of the client only. */
static inline int gex_System_QueryHiddenAMConcurrencyLevel(void) { return 0; }

#ifdef __cplusplus
}
#endif

#endif
