/* GASNet-EX: init and attach, objects, and the job. Clients include gasnetex.h. */
#ifndef GEX_OBJECTS_H
#define GEX_OBJECTS_H

#include <vgasnet_ex.h>

/**
 * Makes this process a rank of the job, and creates its client, endpoint and team of all ranks.
 * @see vgasnet_ex_Client_Init, GASNet-EX specification 0.19
 */
#define gex_Client_Init vgasnet_ex_Client_Init
/** Sets the client's data of a client. @see vgasnet_ex_Client_SetCData, GASNet-EX specification 0.19 */
#define gex_Client_SetCData vgasnet_ex_Client_SetCData
/** Returns the client's data of a client. @see vgasnet_ex_Client_QueryCData, GASNet-EX specification 0.19 */
#define gex_Client_QueryCData vgasnet_ex_Client_QueryCData
/** Returns the flags that a client was made with. @see vgasnet_ex_Client_QueryFlags, GASNet-EX specification 0.19 */
#define gex_Client_QueryFlags vgasnet_ex_Client_QueryFlags
/** Returns the name that the client gave at its init. @see vgasnet_ex_Client_QueryName, GASNet-EX specification 0.19 */
#define gex_Client_QueryName vgasnet_ex_Client_QueryName

/** Gives this rank its segment. @see vgasnet_ex_Segment_Attach, GASNet-EX specification 0.19 */
#define gex_Segment_Attach vgasnet_ex_Segment_Attach
/** Sets the client's data of a segment. @see vgasnet_ex_Segment_SetCData, GASNet-EX specification 0.19 */
#define gex_Segment_SetCData vgasnet_ex_Segment_SetCData
/** Returns the client's data of a segment. @see vgasnet_ex_Segment_QueryCData, GASNet-EX specification 0.19 */
#define gex_Segment_QueryCData vgasnet_ex_Segment_QueryCData
/** Returns the client of a segment. @see vgasnet_ex_Segment_QueryClient, GASNet-EX specification 0.19 */
#define gex_Segment_QueryClient vgasnet_ex_Segment_QueryClient
/** Returns the flags that a segment was made with. @see vgasnet_ex_Segment_QueryFlags, GASNet-EX specification 0.19 */
#define gex_Segment_QueryFlags vgasnet_ex_Segment_QueryFlags
/** Returns the address of a segment in its own rank. @see vgasnet_ex_Segment_QueryAddr, GASNet-EX specification 0.19 */
#define gex_Segment_QueryAddr vgasnet_ex_Segment_QueryAddr
/** Returns the size of a segment. @see vgasnet_ex_Segment_QuerySize, GASNet-EX specification 0.19 */
#define gex_Segment_QuerySize vgasnet_ex_Segment_QuerySize
/** Tells a rank's segment. @see vgasnet_ex_Segment_QueryBound, GASNet-EX specification 0.19 */
#define gex_Segment_QueryBound vgasnet_ex_Segment_QueryBound
/** Refuses to make a segment: a process has one. @see vgasnet_ex_Segment_Create, GASNet-EX specification 0.19 */
#define gex_Segment_Create vgasnet_ex_Segment_Create

/** Sets the client's data of an endpoint. @see vgasnet_ex_EP_SetCData, GASNet-EX specification 0.19 */
#define gex_EP_SetCData vgasnet_ex_EP_SetCData
/** Returns the client's data of an endpoint. @see vgasnet_ex_EP_QueryCData, GASNet-EX specification 0.19 */
#define gex_EP_QueryCData vgasnet_ex_EP_QueryCData
/** Returns the client of an endpoint. @see vgasnet_ex_EP_QueryClient, GASNet-EX specification 0.19 */
#define gex_EP_QueryClient vgasnet_ex_EP_QueryClient
/** Returns the flags that an endpoint was made with. @see vgasnet_ex_EP_QueryFlags, GASNet-EX specification 0.19 */
#define gex_EP_QueryFlags vgasnet_ex_EP_QueryFlags
/** Returns the segment that an endpoint is bound to. @see vgasnet_ex_EP_QuerySegment, GASNet-EX specification 0.19 */
#define gex_EP_QuerySegment vgasnet_ex_EP_QuerySegment
/** Returns the index of an endpoint in its process. @see vgasnet_ex_EP_QueryIndex, GASNet-EX specification 0.19 */
#define gex_EP_QueryIndex vgasnet_ex_EP_QueryIndex
/**
 * Registers handlers of Active Messages at this rank.
 * @see vgasnet_ex_EP_RegisterHandlers, GASNet-EX specification 0.19
 */
#define gex_EP_RegisterHandlers vgasnet_ex_EP_RegisterHandlers
/** Refuses to make an endpoint: a process has one. @see vgasnet_ex_EP_Create, GASNet-EX specification 0.19 */
#define gex_EP_Create vgasnet_ex_EP_Create
/**
 * Refuses to bind a segment: the endpoint keeps the one of the attach.
 * @see vgasnet_ex_EP_BindSegment, GASNet-EX specification 0.19
 */
#define gex_EP_BindSegment vgasnet_ex_EP_BindSegment
/**
 * Does nothing: all ranks know all segments after the attach.
 * @see vgasnet_ex_EP_PublishBoundSegment, GASNet-EX specification 0.19
 */
#define gex_EP_PublishBoundSegment vgasnet_ex_EP_PublishBoundSegment
/** Tells a rank's segment. @see vgasnet_ex_EP_QueryBoundSegmentNB, GASNet-EX specification 0.19 */
#define gex_EP_QueryBoundSegmentNB vgasnet_ex_EP_QueryBoundSegmentNB

/** Sets the client's data of a team. @see vgasnet_ex_TM_SetCData, GASNet-EX specification 0.19 */
#define gex_TM_SetCData vgasnet_ex_TM_SetCData
/** Returns the client's data of a team. @see vgasnet_ex_TM_QueryCData, GASNet-EX specification 0.19 */
#define gex_TM_QueryCData vgasnet_ex_TM_QueryCData
/** Returns the client of a team. @see vgasnet_ex_TM_QueryClient, GASNet-EX specification 0.19 */
#define gex_TM_QueryClient vgasnet_ex_TM_QueryClient
/** Returns the caller's endpoint in a team. @see vgasnet_ex_TM_QueryEP, GASNet-EX specification 0.19 */
#define gex_TM_QueryEP vgasnet_ex_TM_QueryEP
/** Returns the flags that a team was made with. @see vgasnet_ex_TM_QueryFlags, GASNet-EX specification 0.19 */
#define gex_TM_QueryFlags vgasnet_ex_TM_QueryFlags
/** Returns the caller's rank in a team. @see vgasnet_ex_TM_QueryRank, GASNet-EX specification 0.19 */
#define gex_TM_QueryRank vgasnet_ex_TM_QueryRank
/** Returns the number of ranks of a team. @see vgasnet_ex_TM_QuerySize, GASNet-EX specification 0.19 */
#define gex_TM_QuerySize vgasnet_ex_TM_QuerySize
/**
 * Returns the rank in the job of a team's rank.
 * @see vgasnet_ex_TM_TranslateRankToJobrank, GASNet-EX specification 0.19
 */
#define gex_TM_TranslateRankToJobrank vgasnet_ex_TM_TranslateRankToJobrank
/**
 * Returns the rank in a team of a job's rank.
 * @see vgasnet_ex_TM_TranslateJobrankToRank, GASNet-EX specification 0.19
 */
#define gex_TM_TranslateJobrankToRank vgasnet_ex_TM_TranslateJobrankToRank
/**
 * Returns a pair of endpoints: a team of the caller and any rank of the job, for messages and transfers.
 * @see vgasnet_ex_TM_Pair, GASNet-EX specification 0.19
 */
#define gex_TM_Pair vgasnet_ex_TM_Pair

/** Returns the caller's index. @see vgasnet_mynode, GASNet-EX specification 0.19 */
#define gex_System_QueryJobRank vgasnet_mynode
/** Returns the number of ranks in the job. @see vgasnet_nodes, GASNet-EX specification 0.19 */
#define gex_System_QueryJobSize vgasnet_nodes
/**
 * Returns whether refusals that a client may live with print a line.
 * @see vgasnet_ex_System_GetVerboseErrors, GASNet-EX specification 0.19
 */
#define gex_System_GetVerboseErrors vgasnet_ex_System_GetVerboseErrors
/**
 * Sets whether refusals that a client may live with print a line.
 * @see vgasnet_ex_System_SetVerboseErrors, GASNet-EX specification 0.19
 */
#define gex_System_SetVerboseErrors vgasnet_ex_System_SetVerboseErrors
/**
 * Tells the ranks whose segments the caller can load from: itself.
 * @see vgasnet_ex_System_QueryNbrhdInfo, GASNet-EX specification 0.19
 */
#define gex_System_QueryNbrhdInfo vgasnet_ex_System_QueryNbrhdInfo
/** Tells the ranks of the caller's machine. @see vgasnet_ex_System_QueryHostInfo, GASNet-EX specification 0.19 */
#define gex_System_QueryHostInfo vgasnet_ex_System_QueryHostInfo
/**
 * Tells the number of neighbourhoods and of machines, and the caller's place among them.
 * @see vgasnet_ex_System_QueryMyPosition, GASNet-EX specification 0.19
 */
#define gex_System_QueryMyPosition vgasnet_ex_System_QueryMyPosition
/**
 * Tells the functions that threads of the client are to run: none.
 * @see vgasnet_ex_System_QueryProgressThreads, GASNet-EX specification 0.19
 */
#define gex_System_QueryProgressThreads vgasnet_ex_System_QueryProgressThreads

#ifdef __cplusplus
extern "C" {
#endif

/** Does nothing: the segment stays until the job ends. @see GASNet-EX specification 0.19 */
static inline void gex_Segment_Destroy(gex_Segment_t segment, gex_Flags_t flags) { (void)segment, (void)flags; }

/**
 * Returns the endpoint of a team's rank: the rank in the job, and the endpoint's index.
 * @see vgasnet_ex_TM_TranslateRankToEP, GASNet-EX specification 0.19
 */
static inline gex_EP_Location_t gex_TM_TranslateRankToEP(gex_TM_t team, gex_Rank_t rank, gex_Flags_t flags) {
    gex_EP_Location_t location;
    (void)flags;
    vgasnet_ex_TM_TranslateRankToEP(team, rank, &location);
    return location;
}

/** Returns a number of threads by which clients size tables; there is no limit. @see GASNet-EX specification 0.19 */
static inline uint64_t gex_System_QueryMaxThreads(void) { return GASNETI_MAX_THREADS; }

/** Returns 0: handlers run in threads of the client only. @see GASNet-EX specification 0.19 */
static inline int gex_System_QueryHiddenAMConcurrencyLevel(void) { return 0; }

#ifdef __cplusplus
}
#endif

#endif
