/* The library's functions for Active Messages of GASNet-EX; vgasnet_ex.h tells how they are named. */
#ifndef VGASNET_EX_MESSAGES_H
#define VGASNET_EX_MESSAGES_H

#include <gex_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Runs a handler at another rank, with arguments from an array.
 *
 * Fatal: a handler below 128, more than 16 arguments, a payload that is too long, a call in a place where messages are
 * not allowed.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param handler index of the handler at the target, 128 to 255
 * @param flags 0, or GEX_FLAG_IMMEDIATE, with which a message that would have to wait is not sent
 * @param count number of arguments, 0 to 16
 * @param args the arguments; may be null if count is 0
 * @return 0 if the message is sent; another number if it is not, as GEX_FLAG_IMMEDIATE allows
 * @see vgasnet_AMRequestShortArgs, GASNet-EX specification 0.19 (gex_AM_RequestShort)
 */
int vgasnet_ex_AM_RequestShort(gex_TM_t team, gex_Rank_t rank, gex_AM_Index_t handler, gex_Flags_t flags, size_t count,
                               const gex_AM_Arg_t *args);

/**
 * Runs a handler at another rank, with a payload in a buffer and arguments from an array.
 *
 * Fatal: a handler below 128, more than 16 arguments, a payload that is too long, a call in a place where messages are
 * not allowed.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param handler index of the handler at the target, 128 to 255
 * @param source local address of the payload
 * @param length size of the payload in bytes
 * @param local_completion GEX_EVENT_NOW, GEX_EVENT_GROUP, or the address that receives GEX_EVENT_INVALID: source is
 *     free when the call returns
 * @param flags 0, or GEX_FLAG_IMMEDIATE, with which a message that would have to wait is not sent
 * @param count number of arguments, 0 to 16
 * @param args the arguments; may be null if count is 0
 * @return 0 if the message is sent; another number if it is not, as GEX_FLAG_IMMEDIATE allows
 * @see vgasnet_AMRequestMediumArgs, GASNet-EX specification 0.19 (gex_AM_RequestMedium)
 */
int vgasnet_ex_AM_RequestMedium(gex_TM_t team, gex_Rank_t rank, gex_AM_Index_t handler, const void *source, size_t length,
                                gex_Event_t *local_completion, gex_Flags_t flags, size_t count, const gex_AM_Arg_t *args);

/**
 * Runs a handler at another rank, with a payload in the segment and arguments from an array.
 *
 * Fatal: a handler below 128, more than 16 arguments, a payload that is too long, a call in a place where messages are
 * not allowed.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param handler index of the handler at the target, 128 to 255
 * @param source local address of the payload
 * @param length size of the payload in bytes
 * @param destination remote address of the payload, in the segment of the rank
 * @param local_completion GEX_EVENT_NOW, GEX_EVENT_GROUP, or the address that receives GEX_EVENT_INVALID: source is
 *     free when the call returns
 * @param flags 0, or GEX_FLAG_IMMEDIATE, with which a message that would have to wait is not sent
 * @param count number of arguments, 0 to 16
 * @param args the arguments; may be null if count is 0
 * @return 0 if the message is sent; another number if it is not, as GEX_FLAG_IMMEDIATE allows
 * @see vgasnet_AMRequestLongArgs, GASNet-EX specification 0.19 (gex_AM_RequestLong)
 */
int vgasnet_ex_AM_RequestLong(gex_TM_t team, gex_Rank_t rank, gex_AM_Index_t handler, const void *source, size_t length,
                              void *destination, gex_Event_t *local_completion, gex_Flags_t flags, size_t count,
                              const gex_AM_Arg_t *args);

/**
 * Runs a handler at the sender of a request, with arguments from an array.
 *
 * Once at most in a handler of a request.
 *
 * Fatal: a handler below 128, more than 16 arguments, a payload that is too long, a call in a place where messages are
 * not allowed.
 *
 * @param token the token of the running handler
 * @param handler index of the handler at the target, 128 to 255
 * @param flags ignored
 * @param count number of arguments, 0 to 16
 * @param args the arguments; may be null if count is 0
 * @return 0, as nothing is refused
 * @see vgasnet_AMReplyShortArgs, GASNet-EX specification 0.19 (gex_AM_ReplyShort)
 */
int vgasnet_ex_AM_ReplyShort(gex_Token_t token, gex_AM_Index_t handler, gex_Flags_t flags, size_t count, const gex_AM_Arg_t *args);

/**
 * Runs a handler at the sender of a request, with a payload in a buffer and arguments from an array.
 *
 * Once at most in a handler of a request.
 *
 * Fatal: a handler below 128, more than 16 arguments, a payload that is too long, a call in a place where messages are
 * not allowed.
 *
 * @param token the token of the running handler
 * @param handler index of the handler at the target, 128 to 255
 * @param source local address of the payload
 * @param length size of the payload in bytes
 * @param local_completion GEX_EVENT_NOW, or the address that receives GEX_EVENT_INVALID: source is free when the call
 *     returns
 * @param flags ignored
 * @param count number of arguments, 0 to 16
 * @param args the arguments; may be null if count is 0
 * @return 0, as nothing is refused
 * @see vgasnet_AMReplyMediumArgs, GASNet-EX specification 0.19 (gex_AM_ReplyMedium)
 */
int vgasnet_ex_AM_ReplyMedium(gex_Token_t token, gex_AM_Index_t handler, const void *source, size_t length,
                              gex_Event_t *local_completion, gex_Flags_t flags, size_t count, const gex_AM_Arg_t *args);

/**
 * Runs a handler at the sender of a request, with a payload in the segment and arguments from an array.
 *
 * Once at most in a handler of a request.
 *
 * Fatal: a handler below 128, more than 16 arguments, a payload that is too long, a call in a place where messages are
 * not allowed.
 *
 * @param token the token of the running handler
 * @param handler index of the handler at the target, 128 to 255
 * @param source local address of the payload
 * @param length size of the payload in bytes
 * @param destination remote address of the payload, in the segment of the request's sender
 * @param local_completion GEX_EVENT_NOW, or the address that receives GEX_EVENT_INVALID: source is free when the call
 *     returns
 * @param flags ignored
 * @param count number of arguments, 0 to 16
 * @param args the arguments; may be null if count is 0
 * @return 0, as nothing is refused
 * @see vgasnet_AMReplyLongArgs, GASNet-EX specification 0.19 (gex_AM_ReplyLong)
 */
int vgasnet_ex_AM_ReplyLong(gex_Token_t token, gex_AM_Index_t handler, const void *source, size_t length, void *destination,
                            gex_Event_t *local_completion, gex_Flags_t flags, size_t count, const gex_AM_Arg_t *args);

/**
 * Tells about the message of the running handler.
 *
 * @param token the token of the running handler
 * @param info receives the sender's rank in the job, the endpoint, the handler's entry and the kind of message
 * @param mask some of GEX_TI_; all is told always
 * @return what is told: some of GEX_TI_
 * @see GASNet-EX specification 0.19 (gex_Token_Info)
 */
gex_TI_t vgasnet_ex_Token_Info(gex_Token_t token, gex_Token_Info_t *info, gex_TI_t mask);

/**
 * Returns the largest payload of a Medium reply to the message of the running handler.
 *
 * @param token the token of the running handler
 * @param local_completion as for the message
 * @param flags as for the message
 * @param count number of arguments, 0 to 16
 * @return the size in bytes, at least 512
 * @see GASNet-EX specification 0.19 (gex_Token_MaxReplyMedium)
 */
size_t vgasnet_ex_Token_MaxReplyMedium(gex_Token_t token, const gex_Event_t *local_completion, gex_Flags_t flags, unsigned int count);

/**
 * Returns the largest payload of a Long reply to the message of the running handler.
 *
 * @param token the token of the running handler
 * @param local_completion as for the message
 * @param flags as for the message
 * @param count number of arguments, 0 to 16
 * @return the size in bytes, at least 512
 * @see GASNet-EX specification 0.19 (gex_Token_MaxReplyLong)
 */
size_t vgasnet_ex_Token_MaxReplyLong(gex_Token_t token, const gex_Event_t *local_completion, gex_Flags_t flags, unsigned int count);

/**
 * Returns the largest payload of a Medium request to a rank.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team, or GEX_RANK_INVALID for any
 * @param local_completion as for the message
 * @param flags as for the message
 * @param count number of arguments, 0 to 16
 * @return the size in bytes, at least 512
 * @see GASNet-EX specification 0.19 (gex_AM_MaxRequestMedium)
 */
size_t vgasnet_ex_AM_MaxRequestMedium(gex_TM_t team, gex_Rank_t rank, const gex_Event_t *local_completion, gex_Flags_t flags,
                                      unsigned int count);

/**
 * Returns the largest payload of a Medium reply to a rank.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team, or GEX_RANK_INVALID for any
 * @param local_completion as for the message
 * @param flags as for the message
 * @param count number of arguments, 0 to 16
 * @return the size in bytes, at least 512
 * @see GASNet-EX specification 0.19 (gex_AM_MaxReplyMedium)
 */
size_t vgasnet_ex_AM_MaxReplyMedium(gex_TM_t team, gex_Rank_t rank, const gex_Event_t *local_completion, gex_Flags_t flags,
                                    unsigned int count);

/**
 * Returns the largest payload of a Long request to a rank.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team, or GEX_RANK_INVALID for any
 * @param local_completion as for the message
 * @param flags as for the message
 * @param count number of arguments, 0 to 16
 * @return the size in bytes, at least 512
 * @see GASNet-EX specification 0.19 (gex_AM_MaxRequestLong)
 */
size_t vgasnet_ex_AM_MaxRequestLong(gex_TM_t team, gex_Rank_t rank, const gex_Event_t *local_completion, gex_Flags_t flags,
                                    unsigned int count);

/**
 * Returns the largest payload of a Long reply to a rank.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team, or GEX_RANK_INVALID for any
 * @param local_completion as for the message
 * @param flags as for the message
 * @param count number of arguments, 0 to 16
 * @return the size in bytes, at least 512
 * @see GASNet-EX specification 0.19 (gex_AM_MaxReplyLong)
 */
size_t vgasnet_ex_AM_MaxReplyLong(gex_TM_t team, gex_Rank_t rank, const gex_Event_t *local_completion, gex_Flags_t flags,
                                  unsigned int count);

/**
 * Returns a payload that a Medium request may have between any two ranks.
 *
 * @return the size in bytes, at least 512
 * @see GASNet-EX specification 0.19 (gex_AM_LUBRequestMedium)
 */
size_t vgasnet_ex_AM_LUBRequestMedium(void);

/**
 * Returns a payload that a Medium reply may have between any two ranks.
 *
 * @return the size in bytes, at least 512
 * @see GASNet-EX specification 0.19 (gex_AM_LUBReplyMedium)
 */
size_t vgasnet_ex_AM_LUBReplyMedium(void);

/**
 * Returns a payload that a Long request may have between any two ranks.
 *
 * @return the size in bytes, at least 512
 * @see GASNet-EX specification 0.19 (gex_AM_LUBRequestLong)
 */
size_t vgasnet_ex_AM_LUBRequestLong(void);

/**
 * Returns a payload that a Long reply may have between any two ranks.
 *
 * @return the size in bytes, at least 512
 * @see GASNet-EX specification 0.19 (gex_AM_LUBReplyLong)
 */
size_t vgasnet_ex_AM_LUBReplyLong(void);

#ifdef __cplusplus
}
#endif

#endif
