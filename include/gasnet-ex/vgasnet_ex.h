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

int vgasnet_ex_Client_Init(gex_Client_t *client, gex_EP_t *endpoint, gex_TM_t *team, const char *name, int *argc, char ***argv,
                           gex_Flags_t flags);
int vgasnet_ex_Segment_Attach(gex_Segment_t *segment, gex_TM_t team, uintptr_t size);
/* gasnet_QueryGexObjects */
void vgasnet_ex_QueryGexObjects(gex_Client_t *client, gex_EP_t *endpoint, gex_TM_t *team, gex_Segment_t *segment);

/* ---- objects ---- */

void vgasnet_ex_Client_SetCData(gex_Client_t client, const void *cdata);
void *vgasnet_ex_Client_QueryCData(gex_Client_t client);
gex_Flags_t vgasnet_ex_Client_QueryFlags(gex_Client_t client);
const char *vgasnet_ex_Client_QueryName(gex_Client_t client);

void vgasnet_ex_EP_SetCData(gex_EP_t endpoint, const void *cdata);
void *vgasnet_ex_EP_QueryCData(gex_EP_t endpoint);
gex_Client_t vgasnet_ex_EP_QueryClient(gex_EP_t endpoint);
gex_Flags_t vgasnet_ex_EP_QueryFlags(gex_EP_t endpoint);
gex_Segment_t vgasnet_ex_EP_QuerySegment(gex_EP_t endpoint);
gex_EP_Index_t vgasnet_ex_EP_QueryIndex(gex_EP_t endpoint);
int vgasnet_ex_EP_RegisterHandlers(gex_EP_t endpoint, gex_AM_Entry_t *table, size_t entries);
int vgasnet_ex_EP_Create(gex_EP_t *endpoint, gex_Client_t client, gex_EP_Capabilities_t capabilities, gex_Flags_t flags);
int vgasnet_ex_EP_BindSegment(gex_EP_t endpoint, gex_Segment_t segment, gex_Flags_t flags);
int vgasnet_ex_EP_PublishBoundSegment(gex_TM_t team, gex_EP_t *endpoints, size_t count, gex_Flags_t flags);
gex_Event_t vgasnet_ex_EP_QueryBoundSegmentNB(gex_TM_t team, gex_Rank_t rank, void **owneraddr, void **localaddr, uintptr_t *size,
                                              gex_Flags_t flags);

void vgasnet_ex_Segment_SetCData(gex_Segment_t segment, const void *cdata);
void *vgasnet_ex_Segment_QueryCData(gex_Segment_t segment);
gex_Client_t vgasnet_ex_Segment_QueryClient(gex_Segment_t segment);
gex_Flags_t vgasnet_ex_Segment_QueryFlags(gex_Segment_t segment);
void *vgasnet_ex_Segment_QueryAddr(gex_Segment_t segment);
uintptr_t vgasnet_ex_Segment_QuerySize(gex_Segment_t segment);
int vgasnet_ex_Segment_QueryBound(gex_TM_t team, gex_Rank_t rank, void **owneraddr, void **localaddr, uintptr_t *size);
int vgasnet_ex_Segment_Create(gex_Segment_t *segment, gex_Client_t client, gex_Addr_t address, uintptr_t length, gex_MK_t kind,
                              gex_Flags_t flags);

void vgasnet_ex_TM_SetCData(gex_TM_t team, const void *cdata);
void *vgasnet_ex_TM_QueryCData(gex_TM_t team);
gex_Client_t vgasnet_ex_TM_QueryClient(gex_TM_t team);
gex_EP_t vgasnet_ex_TM_QueryEP(gex_TM_t team);
gex_Flags_t vgasnet_ex_TM_QueryFlags(gex_TM_t team);
gex_Rank_t vgasnet_ex_TM_QueryRank(gex_TM_t team);
gex_Rank_t vgasnet_ex_TM_QuerySize(gex_TM_t team);
gex_Rank_t vgasnet_ex_TM_TranslateRankToJobrank(gex_TM_t team, gex_Rank_t rank);
gex_Rank_t vgasnet_ex_TM_TranslateJobrankToRank(gex_TM_t team, gex_Rank_t jobrank);
/* The answer goes to *location. */
void vgasnet_ex_TM_TranslateRankToEP(gex_TM_t team, gex_Rank_t rank, gex_EP_Location_t *location);
gex_TM_t vgasnet_ex_TM_Pair(gex_EP_t endpoint, gex_EP_Index_t remote_index);

/* args points to a structure of gasnet_mk.h. */
int vgasnet_ex_MK_Create(gex_MK_t *kind, gex_Client_t client, const void *args, gex_Flags_t flags);

/* ---- the job ---- */

int vgasnet_ex_System_GetVerboseErrors(void);
void vgasnet_ex_System_SetVerboseErrors(int enable);
void vgasnet_ex_System_QueryNbrhdInfo(gex_RankInfo_t **info, gex_Rank_t *count, gex_Rank_t *me);
void vgasnet_ex_System_QueryHostInfo(gex_RankInfo_t **info, gex_Rank_t *count, gex_Rank_t *me);
void vgasnet_ex_System_QueryMyPosition(gex_Rank_t *nbrhds, gex_Rank_t *my_nbrhd, gex_Rank_t *hosts, gex_Rank_t *my_host);
int vgasnet_ex_System_QueryProgressThreads(gex_Client_t client, unsigned int *count, const gex_ProgressThreadInfo_t **info,
                                           gex_Flags_t flags);

/* ---- events ---- */

int vgasnet_ex_Event_Test(gex_Event_t event);
void vgasnet_ex_Event_Wait(gex_Event_t event);
int vgasnet_ex_Event_TestSome(gex_Event_t *events, size_t count, gex_Flags_t flags);
void vgasnet_ex_Event_WaitSome(gex_Event_t *events, size_t count, gex_Flags_t flags);
int vgasnet_ex_Event_TestAll(gex_Event_t *events, size_t count, gex_Flags_t flags);
void vgasnet_ex_Event_WaitAll(gex_Event_t *events, size_t count, gex_Flags_t flags);
gex_Event_t vgasnet_ex_Event_QueryLeaf(gex_Event_t root, gex_EC_t category);
int vgasnet_ex_NBI_Test(gex_EC_t mask, gex_Flags_t flags);
void vgasnet_ex_NBI_Wait(gex_EC_t mask, gex_Flags_t flags);
void vgasnet_ex_NBI_BeginAccessRegion(gex_Flags_t flags);
gex_Event_t vgasnet_ex_NBI_EndAccessRegion(gex_Flags_t flags);

/* ---- gets and puts ---- */

int vgasnet_ex_RMA_GetBlocking(gex_TM_t team, void *to, gex_Rank_t rank, void *from, size_t length, gex_Flags_t flags);
int vgasnet_ex_RMA_GetNBI(gex_TM_t team, void *to, gex_Rank_t rank, void *from, size_t length, gex_Flags_t flags);
gex_Event_t vgasnet_ex_RMA_GetNB(gex_TM_t team, void *to, gex_Rank_t rank, void *from, size_t length, gex_Flags_t flags);
int vgasnet_ex_RMA_PutBlocking(gex_TM_t team, gex_Rank_t rank, void *to, const void *from, size_t length, gex_Flags_t flags);
int vgasnet_ex_RMA_PutNBI(gex_TM_t team, gex_Rank_t rank, void *to, const void *from, size_t length, gex_Event_t *local_completion,
                          gex_Flags_t flags);
gex_Event_t vgasnet_ex_RMA_PutNB(gex_TM_t team, gex_Rank_t rank, void *to, const void *from, size_t length,
                                 gex_Event_t *local_completion, gex_Flags_t flags);
gex_RMA_Value_t vgasnet_ex_RMA_GetBlockingVal(gex_TM_t team, gex_Rank_t rank, void *from, size_t length, gex_Flags_t flags);
int vgasnet_ex_RMA_PutBlockingVal(gex_TM_t team, gex_Rank_t rank, void *to, gex_RMA_Value_t value, size_t length,
                                  gex_Flags_t flags);
int vgasnet_ex_RMA_PutNBIVal(gex_TM_t team, gex_Rank_t rank, void *to, gex_RMA_Value_t value, size_t length, gex_Flags_t flags);
gex_Event_t vgasnet_ex_RMA_PutNBVal(gex_TM_t team, gex_Rank_t rank, void *to, gex_RMA_Value_t value, size_t length,
                                    gex_Flags_t flags);

/* ---- the barrier ---- */

gex_Event_t vgasnet_ex_Coll_BarrierNB(gex_TM_t team, gex_Flags_t flags);

/* ---- Active Messages; count arguments come from an array ---- */

int vgasnet_ex_AM_RequestShort(gex_TM_t team, gex_Rank_t rank, gex_AM_Index_t handler, gex_Flags_t flags, size_t count,
                               const gex_AM_Arg_t *args);
int vgasnet_ex_AM_RequestMedium(gex_TM_t team, gex_Rank_t rank, gex_AM_Index_t handler, const void *source, size_t length,
                                gex_Event_t *local_completion, gex_Flags_t flags, size_t count, const gex_AM_Arg_t *args);
int vgasnet_ex_AM_RequestLong(gex_TM_t team, gex_Rank_t rank, gex_AM_Index_t handler, const void *source, size_t length,
                              void *destination, gex_Event_t *local_completion, gex_Flags_t flags, size_t count,
                              const gex_AM_Arg_t *args);
int vgasnet_ex_AM_ReplyShort(gex_Token_t token, gex_AM_Index_t handler, gex_Flags_t flags, size_t count, const gex_AM_Arg_t *args);
int vgasnet_ex_AM_ReplyMedium(gex_Token_t token, gex_AM_Index_t handler, const void *source, size_t length,
                              gex_Event_t *local_completion, gex_Flags_t flags, size_t count, const gex_AM_Arg_t *args);
int vgasnet_ex_AM_ReplyLong(gex_Token_t token, gex_AM_Index_t handler, const void *source, size_t length, void *destination,
                            gex_Event_t *local_completion, gex_Flags_t flags, size_t count, const gex_AM_Arg_t *args);

gex_TI_t vgasnet_ex_Token_Info(gex_Token_t token, gex_Token_Info_t *info, gex_TI_t mask);
size_t vgasnet_ex_Token_MaxReplyMedium(gex_Token_t token, const gex_Event_t *local_completion, gex_Flags_t flags, unsigned int count);
size_t vgasnet_ex_Token_MaxReplyLong(gex_Token_t token, const gex_Event_t *local_completion, gex_Flags_t flags, unsigned int count);
size_t vgasnet_ex_AM_MaxRequestMedium(gex_TM_t team, gex_Rank_t rank, const gex_Event_t *local_completion, gex_Flags_t flags,
                                      unsigned int count);
size_t vgasnet_ex_AM_MaxReplyMedium(gex_TM_t team, gex_Rank_t rank, const gex_Event_t *local_completion, gex_Flags_t flags,
                                    unsigned int count);
size_t vgasnet_ex_AM_MaxRequestLong(gex_TM_t team, gex_Rank_t rank, const gex_Event_t *local_completion, gex_Flags_t flags,
                                    unsigned int count);
size_t vgasnet_ex_AM_MaxReplyLong(gex_TM_t team, gex_Rank_t rank, const gex_Event_t *local_completion, gex_Flags_t flags,
                                  unsigned int count);
size_t vgasnet_ex_AM_LUBRequestMedium(void);
size_t vgasnet_ex_AM_LUBReplyMedium(void);
size_t vgasnet_ex_AM_LUBRequestLong(void);
size_t vgasnet_ex_AM_LUBReplyLong(void);

#ifdef __cplusplus
}
#endif

#endif
