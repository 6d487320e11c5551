/* The library's functions for Active Messages whose payload is negotiated: see vgasnet_ex.h. Those that commit take count arguments from
 * an array, and commit_flags also where GASNet-EX has none; then they are 0, and so is the result. */
#ifndef VGASNET_EX_PREPARED_H
#define VGASNET_EX_PREPARED_H

#include <gex_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Begins a Medium request with a payload filled in afterwards by the client.
 *
 * The same thread commits or cancels it.
 *
 * Fatal: sizes that a message cannot have, a second message of the thread before the first is committed.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param buffer the payload, in memory of the client; null for a buffer of the library
 * @param least least size of the payload in bytes
 * @param most largest size of the payload in bytes
 * @param local_completion GEX_EVENT_NOW, or the address that receives an event for buffer; null without a buffer
 * @param flags 0 or GEX_FLAG_IMMEDIATE
 * @param count number of arguments, 0 to 16
 * @return what the commit takes; GEX_AM_SRCDESC_NO_OP if GEX_FLAG_IMMEDIATE was given and the message would have to
 *     wait
 * @see vgasnet_ex_AM_CommitRequestMedium, GASNet-EX specification 0.19 (gex_AM_PrepareRequestMedium)
 */
gex_AM_SrcDesc_t vgasnet_ex_AM_PrepareRequestMedium(gex_TM_t team, gex_Rank_t rank, const void *buffer, size_t least, size_t most,
                                                    gex_Event_t *local_completion, gex_Flags_t flags, unsigned int count);

/**
 * Begins a Long request with a payload filled in afterwards by the client.
 *
 * The same thread commits or cancels it.
 *
 * Fatal: sizes that a message cannot have, a second message of the thread before the first is committed.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param buffer the payload, in memory of the client; null for a buffer of the library
 * @param least least size of the payload in bytes
 * @param most largest size of the payload in bytes
 * @param destination remote address of the payload, in the target's segment; null if the commit gives it
 * @param local_completion GEX_EVENT_NOW, or the address that receives an event for buffer; null without a buffer
 * @param flags 0 or GEX_FLAG_IMMEDIATE
 * @param count number of arguments, 0 to 16
 * @return what the commit takes; GEX_AM_SRCDESC_NO_OP if GEX_FLAG_IMMEDIATE was given and the message would have to
 *     wait
 * @see vgasnet_ex_AM_CommitRequestLong, GASNet-EX specification 0.19 (gex_AM_PrepareRequestLong)
 */
gex_AM_SrcDesc_t vgasnet_ex_AM_PrepareRequestLong(gex_TM_t team, gex_Rank_t rank, const void *buffer, size_t least, size_t most,
                                                  void *destination, gex_Event_t *local_completion, gex_Flags_t flags,
                                                  unsigned int count);

/**
 * Begins a Medium reply with a payload filled in afterwards by the client.
 *
 * The same thread commits or cancels it.
 *
 * Fatal: sizes that a message cannot have, a second message of the thread before the first is committed.
 *
 * @param token the token of the running handler
 * @param buffer the payload, in memory of the client; null for a buffer of the library
 * @param least least size of the payload in bytes
 * @param most largest size of the payload in bytes
 * @param local_completion GEX_EVENT_NOW, or the address that receives an event for buffer; null without a buffer
 * @param flags 0 or GEX_FLAG_IMMEDIATE
 * @param count number of arguments, 0 to 16
 * @return what the commit takes; GEX_AM_SRCDESC_NO_OP if GEX_FLAG_IMMEDIATE was given and the message would have to
 *     wait
 * @see vgasnet_ex_AM_CommitReplyMedium, GASNet-EX specification 0.19 (gex_AM_PrepareReplyMedium)
 */
gex_AM_SrcDesc_t vgasnet_ex_AM_PrepareReplyMedium(gex_Token_t token, const void *buffer, size_t least, size_t most,
                                                  gex_Event_t *local_completion, gex_Flags_t flags, unsigned int count);

/**
 * Begins a Long reply with a payload filled in afterwards by the client.
 *
 * The same thread commits or cancels it.
 *
 * Fatal: sizes that a message cannot have, a second message of the thread before the first is committed.
 *
 * @param token the token of the running handler
 * @param buffer the payload, in memory of the client; null for a buffer of the library
 * @param least least size of the payload in bytes
 * @param most largest size of the payload in bytes
 * @param destination remote address of the payload, in the target's segment; null if the commit gives it
 * @param local_completion GEX_EVENT_NOW, or the address that receives an event for buffer; null without a buffer
 * @param flags 0 or GEX_FLAG_IMMEDIATE
 * @param count number of arguments, 0 to 16
 * @return what the commit takes; GEX_AM_SRCDESC_NO_OP if GEX_FLAG_IMMEDIATE was given and the message would have to
 *     wait
 * @see vgasnet_ex_AM_CommitReplyLong, GASNet-EX specification 0.19 (gex_AM_PrepareReplyLong)
 */
gex_AM_SrcDesc_t vgasnet_ex_AM_PrepareReplyLong(gex_Token_t token, const void *buffer, size_t least, size_t most, void *destination,
                                                gex_Event_t *local_completion, gex_Flags_t flags, unsigned int count);

/**
 * Returns where the payload of a prepared message is.
 *
 * @param prepared what the prepare call has returned
 * @return the address, in the client's buffer or in one of the library
 * @see GASNet-EX specification 0.19 (gex_AM_SrcDescAddr)
 */
void *vgasnet_ex_AM_SrcDescAddr(gex_AM_SrcDesc_t prepared);

/**
 * Returns how large the payload of a prepared message may be.
 *
 * @param prepared what the prepare call has returned
 * @return the size in bytes, from least to most of the prepare call
 * @see GASNet-EX specification 0.19 (gex_AM_SrcDescSize)
 */
size_t vgasnet_ex_AM_SrcDescSize(gex_AM_SrcDesc_t prepared);

/**
 * Sends a prepared Medium request, with arguments from an array.
 *
 * @param prepared what the prepare call has returned
 * @param handler index of the handler at the target, 128 to 255
 * @param length size of the payload in bytes, at most vgasnet_ex_AM_SrcDescSize(prepared)
 * @param commit_flags 0 or GEX_FLAG_IMMEDIATE
 * @param count number of arguments, as prepared
 * @param args the arguments; may be null if count is 0
 * @return 0 if the message is sent; another number if it is not, as GEX_FLAG_IMMEDIATE allows, and prepared stays as it
 *     is
 * @see vgasnet_ex_AM_PrepareRequestMedium, GASNet-EX specification 0.19 (gex_AM_CommitRequestMedium)
 */
int vgasnet_ex_AM_CommitRequestMedium(gex_AM_SrcDesc_t prepared, gex_AM_Index_t handler, size_t length, gex_Flags_t commit_flags,
                                      size_t count, const gex_AM_Arg_t *args);

/**
 * Sends a prepared Medium reply, with arguments from an array.
 *
 * @param prepared what the prepare call has returned
 * @param handler index of the handler at the target, 128 to 255
 * @param length size of the payload in bytes, at most vgasnet_ex_AM_SrcDescSize(prepared)
 * @param commit_flags 0 or GEX_FLAG_IMMEDIATE
 * @param count number of arguments, as prepared
 * @param args the arguments; may be null if count is 0
 * @return 0 if the message is sent; another number if it is not, as GEX_FLAG_IMMEDIATE allows, and prepared stays as it
 *     is
 * @see vgasnet_ex_AM_PrepareReplyMedium, GASNet-EX specification 0.19 (gex_AM_CommitReplyMedium)
 */
int vgasnet_ex_AM_CommitReplyMedium(gex_AM_SrcDesc_t prepared, gex_AM_Index_t handler, size_t length, gex_Flags_t commit_flags,
                                    size_t count, const gex_AM_Arg_t *args);

/**
 * Sends a prepared Long request, with arguments from an array.
 *
 * @param prepared what the prepare call has returned
 * @param handler index of the handler at the target, 128 to 255
 * @param length size of the payload in bytes, at most vgasnet_ex_AM_SrcDescSize(prepared)
 * @param destination remote address of the payload, in the target's segment
 * @param commit_flags 0 or GEX_FLAG_IMMEDIATE
 * @param count number of arguments, as prepared
 * @param args the arguments; may be null if count is 0
 * @return 0 if the message is sent; another number if it is not, as GEX_FLAG_IMMEDIATE allows, and prepared stays as it
 *     is
 * @see vgasnet_ex_AM_PrepareRequestLong, GASNet-EX specification 0.19 (gex_AM_CommitRequestLong)
 */
int vgasnet_ex_AM_CommitRequestLong(gex_AM_SrcDesc_t prepared, gex_AM_Index_t handler, size_t length, void *destination,
                                    gex_Flags_t commit_flags, size_t count, const gex_AM_Arg_t *args);

/**
 * Sends a prepared Long reply, with arguments from an array.
 *
 * @param prepared what the prepare call has returned
 * @param handler index of the handler at the target, 128 to 255
 * @param length size of the payload in bytes, at most vgasnet_ex_AM_SrcDescSize(prepared)
 * @param destination remote address of the payload, in the target's segment
 * @param commit_flags 0 or GEX_FLAG_IMMEDIATE
 * @param count number of arguments, as prepared
 * @param args the arguments; may be null if count is 0
 * @return 0 if the message is sent; another number if it is not, as GEX_FLAG_IMMEDIATE allows, and prepared stays as it
 *     is
 * @see vgasnet_ex_AM_PrepareReplyLong, GASNet-EX specification 0.19 (gex_AM_CommitReplyLong)
 */
int vgasnet_ex_AM_CommitReplyLong(gex_AM_SrcDesc_t prepared, gex_AM_Index_t handler, size_t length, void *destination,
                                  gex_Flags_t commit_flags, size_t count, const gex_AM_Arg_t *args);

/**
 * Drops a prepared Medium request.
 *
 * @param prepared what the prepare call has returned
 * @param flags ignored
 * @return 0
 * @see vgasnet_ex_AM_PrepareRequestMedium, GASNet-EX specification 0.19 (gex_AM_CancelRequestMedium)
 */
int vgasnet_ex_AM_CancelRequestMedium(gex_AM_SrcDesc_t prepared, gex_Flags_t flags);

/**
 * Drops a prepared Long request.
 *
 * @param prepared what the prepare call has returned
 * @param flags ignored
 * @return 0
 * @see vgasnet_ex_AM_PrepareRequestLong, GASNet-EX specification 0.19 (gex_AM_CancelRequestLong)
 */
int vgasnet_ex_AM_CancelRequestLong(gex_AM_SrcDesc_t prepared, gex_Flags_t flags);

/**
 * Drops a prepared Medium reply.
 *
 * @param prepared what the prepare call has returned
 * @param flags ignored
 * @return 0
 * @see vgasnet_ex_AM_PrepareReplyMedium, GASNet-EX specification 0.19 (gex_AM_CancelReplyMedium)
 */
int vgasnet_ex_AM_CancelReplyMedium(gex_AM_SrcDesc_t prepared, gex_Flags_t flags);

/**
 * Drops a prepared Long reply.
 *
 * @param prepared what the prepare call has returned
 * @param flags ignored
 * @return 0
 * @see vgasnet_ex_AM_PrepareReplyLong, GASNet-EX specification 0.19 (gex_AM_CancelReplyLong)
 */
int vgasnet_ex_AM_CancelReplyLong(gex_AM_SrcDesc_t prepared, gex_Flags_t flags);

#ifdef __cplusplus
}
#endif

#endif
