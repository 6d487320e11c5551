/* The library's functions for Active Messages whose payload is negotiated: see vgasnet_ex.h. Those that commit take count arguments from
 * an array, and commit_flags also where GASNet-EX has none; then they are 0, and so is the result. */
#ifndef VGASNET_EX_PREPARED_H
#define VGASNET_EX_PREPARED_H

#include <gex_types.h>

#ifdef __cplusplus
extern "C" {
#endif

gex_AM_SrcDesc_t vgasnet_ex_AM_PrepareRequestMedium(gex_TM_t team, gex_Rank_t rank, const void *buffer, size_t least, size_t most,
                                                    gex_Event_t *local_completion, gex_Flags_t flags, unsigned int count);
gex_AM_SrcDesc_t vgasnet_ex_AM_PrepareRequestLong(gex_TM_t team, gex_Rank_t rank, const void *buffer, size_t least, size_t most,
                                                  void *destination, gex_Event_t *local_completion, gex_Flags_t flags,
                                                  unsigned int count);
gex_AM_SrcDesc_t vgasnet_ex_AM_PrepareReplyMedium(gex_Token_t token, const void *buffer, size_t least, size_t most,
                                                  gex_Event_t *local_completion, gex_Flags_t flags, unsigned int count);
gex_AM_SrcDesc_t vgasnet_ex_AM_PrepareReplyLong(gex_Token_t token, const void *buffer, size_t least, size_t most, void *destination,
                                                gex_Event_t *local_completion, gex_Flags_t flags, unsigned int count);

void *vgasnet_ex_AM_SrcDescAddr(gex_AM_SrcDesc_t prepared);
size_t vgasnet_ex_AM_SrcDescSize(gex_AM_SrcDesc_t prepared);

int vgasnet_ex_AM_CommitRequestMedium(gex_AM_SrcDesc_t prepared, gex_AM_Index_t handler, size_t length, gex_Flags_t commit_flags,
                                      size_t count, const gex_AM_Arg_t *args);
int vgasnet_ex_AM_CommitReplyMedium(gex_AM_SrcDesc_t prepared, gex_AM_Index_t handler, size_t length, gex_Flags_t commit_flags,
                                    size_t count, const gex_AM_Arg_t *args);
int vgasnet_ex_AM_CommitRequestLong(gex_AM_SrcDesc_t prepared, gex_AM_Index_t handler, size_t length, void *destination,
                                    gex_Flags_t commit_flags, size_t count, const gex_AM_Arg_t *args);
int vgasnet_ex_AM_CommitReplyLong(gex_AM_SrcDesc_t prepared, gex_AM_Index_t handler, size_t length, void *destination,
                                  gex_Flags_t commit_flags, size_t count, const gex_AM_Arg_t *args);

int vgasnet_ex_AM_CancelRequestMedium(gex_AM_SrcDesc_t prepared, gex_Flags_t flags);
int vgasnet_ex_AM_CancelRequestLong(gex_AM_SrcDesc_t prepared, gex_Flags_t flags);
int vgasnet_ex_AM_CancelReplyMedium(gex_AM_SrcDesc_t prepared, gex_Flags_t flags);
int vgasnet_ex_AM_CancelReplyLong(gex_AM_SrcDesc_t prepared, gex_Flags_t flags);

#ifdef __cplusplus
}
#endif

#endif
