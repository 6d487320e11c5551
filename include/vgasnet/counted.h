/*
 * vgasnet: Active Messages with their arguments one by one.
 *
 * A function whose name ends in M exists for each M from 0 to 16, as vgasnet_AMRequestShort0 to vgasnet_AMRequestShort16,
 * and takes M arguments. messages.h says how messages work.
 */
#ifndef VGASNET_COUNTED_H
#define VGASNET_COUNTED_H

#include <stddef.h>
#include <vgasnet/messages.h>
#include <vgasnet/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The parameters and the arguments of the functions below, by their number. */
#define VGASNET_PARAMETERS0_
#define VGASNET_PARAMETERS1_ , vgasnet_handlerarg_t a0
#define VGASNET_PARAMETERS2_ VGASNET_PARAMETERS1_, vgasnet_handlerarg_t a1
#define VGASNET_PARAMETERS3_ VGASNET_PARAMETERS2_, vgasnet_handlerarg_t a2
#define VGASNET_PARAMETERS4_ VGASNET_PARAMETERS3_, vgasnet_handlerarg_t a3
#define VGASNET_PARAMETERS5_ VGASNET_PARAMETERS4_, vgasnet_handlerarg_t a4
#define VGASNET_PARAMETERS6_ VGASNET_PARAMETERS5_, vgasnet_handlerarg_t a5
#define VGASNET_PARAMETERS7_ VGASNET_PARAMETERS6_, vgasnet_handlerarg_t a6
#define VGASNET_PARAMETERS8_ VGASNET_PARAMETERS7_, vgasnet_handlerarg_t a7
#define VGASNET_PARAMETERS9_ VGASNET_PARAMETERS8_, vgasnet_handlerarg_t a8
#define VGASNET_PARAMETERS10_ VGASNET_PARAMETERS9_, vgasnet_handlerarg_t a9
#define VGASNET_PARAMETERS11_ VGASNET_PARAMETERS10_, vgasnet_handlerarg_t a10
#define VGASNET_PARAMETERS12_ VGASNET_PARAMETERS11_, vgasnet_handlerarg_t a11
#define VGASNET_PARAMETERS13_ VGASNET_PARAMETERS12_, vgasnet_handlerarg_t a12
#define VGASNET_PARAMETERS14_ VGASNET_PARAMETERS13_, vgasnet_handlerarg_t a13
#define VGASNET_PARAMETERS15_ VGASNET_PARAMETERS14_, vgasnet_handlerarg_t a14
#define VGASNET_PARAMETERS16_ VGASNET_PARAMETERS15_, vgasnet_handlerarg_t a15
#define VGASNET_ARGUMENTS0_ 0
#define VGASNET_ARGUMENTS1_ a0
#define VGASNET_ARGUMENTS2_ VGASNET_ARGUMENTS1_, a1
#define VGASNET_ARGUMENTS3_ VGASNET_ARGUMENTS2_, a2
#define VGASNET_ARGUMENTS4_ VGASNET_ARGUMENTS3_, a3
#define VGASNET_ARGUMENTS5_ VGASNET_ARGUMENTS4_, a4
#define VGASNET_ARGUMENTS6_ VGASNET_ARGUMENTS5_, a5
#define VGASNET_ARGUMENTS7_ VGASNET_ARGUMENTS6_, a6
#define VGASNET_ARGUMENTS8_ VGASNET_ARGUMENTS7_, a7
#define VGASNET_ARGUMENTS9_ VGASNET_ARGUMENTS8_, a8
#define VGASNET_ARGUMENTS10_ VGASNET_ARGUMENTS9_, a9
#define VGASNET_ARGUMENTS11_ VGASNET_ARGUMENTS10_, a10
#define VGASNET_ARGUMENTS12_ VGASNET_ARGUMENTS11_, a11
#define VGASNET_ARGUMENTS13_ VGASNET_ARGUMENTS12_, a12
#define VGASNET_ARGUMENTS14_ VGASNET_ARGUMENTS13_, a13
#define VGASNET_ARGUMENTS15_ VGASNET_ARGUMENTS14_, a14
#define VGASNET_ARGUMENTS16_ VGASNET_ARGUMENTS15_, a15

#define VGASNET_MESSAGES_(M) \
    /**
     * Sends a Short message: a handler runs at the target with M arguments.
     *
     * M is 0 to 16: the number of arguments a0, a1, ... of 32 bits. The call may run handlers, and waits while 64
     * requests with 128 KiB of payload are under way to the target. Not collective, any thread that is in no handler.
     *
     * @param dest rank to run the handler, 0 to vgasnet_nodes() - 1
     * @param handler index of the handler at the target, 128 to 255. One that is not registered there is fatal there
     * @retval VGASNET_OK on success
     * @retval VGASNET_ERR_BAD_ARG if there is no such rank, handler is below 128, or the call is in a handler; nothing
     *     is sent
     * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
     * @see vgasnet_AMRequestShortArgs
     */ \
    static inline int vgasnet_AMRequestShort##M(vgasnet_node_t dest, vgasnet_handler_t handler VGASNET_PARAMETERS##M##_) { \
        const vgasnet_handlerarg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_AMRequestShortArgs(dest, handler, M, args); \
    } \
    /**
     * Sends a Medium message: a handler runs at the target with a payload in a buffer and M arguments.
     *
     * M is 0 to 16: the number of arguments a0, a1, ... of 32 bits. The call may run handlers, and waits while 64
     * requests with 128 KiB of payload are under way to the target. Not collective, any thread that is in no handler.
     *
     * @param dest rank to run the handler, 0 to vgasnet_nodes() - 1
     * @param handler index of the handler at the target, 128 to 255. One that is not registered there is fatal there
     * @param source_addr local address of the payload; free for reuse when the call returns
     * @param nbytes size of the payload in bytes, 0 to vgasnet_AMMaxMedium()
     * @retval VGASNET_OK on success
     * @retval VGASNET_ERR_BAD_ARG if there is no such rank, handler is below 128, the payload is too long or null, or
     *     the call is in a handler; nothing is sent
     * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
     * @see vgasnet_AMRequestMediumArgs
     */ \
    static inline int vgasnet_AMRequestMedium##M(vgasnet_node_t dest, vgasnet_handler_t handler, void *source_addr, \
                                                 size_t nbytes VGASNET_PARAMETERS##M##_) { \
        const vgasnet_handlerarg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_AMRequestMediumArgs(dest, handler, source_addr, nbytes, M, args); \
    } \
    /**
     * Sends a Long message: a handler runs at the target with a payload in its rank's segment and M arguments.
     *
     * M is 0 to 16: the number of arguments a0, a1, ... of 32 bits. The call may run handlers, and waits while 64
     * requests with 128 KiB of payload are under way to the target. Not collective, any thread that is in no handler.
     *
     * @param dest rank to run the handler, 0 to vgasnet_nodes() - 1
     * @param handler index of the handler at the target, 128 to 255. One that is not registered there is fatal there
     * @param source_addr local address of the payload; free for reuse when the call returns
     * @param nbytes size of the payload in bytes, 0 to vgasnet_AMMaxLongRequest()
     * @param dest_addr remote address in the segment of dest, where the payload is when the handler runs
     * @retval VGASNET_OK on success
     * @retval VGASNET_ERR_BAD_ARG if there is no such rank, handler is below 128, the payload is too long, null or not
     *     in the target's segment, or the call is in a handler; nothing is sent
     * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
     * @see vgasnet_AMRequestLongArgs
     */ \
    static inline int vgasnet_AMRequestLong##M(vgasnet_node_t dest, vgasnet_handler_t handler, void *source_addr, \
                                               size_t nbytes, void *dest_addr VGASNET_PARAMETERS##M##_) { \
        const vgasnet_handlerarg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_AMRequestLongArgs(dest, handler, source_addr, nbytes, dest_addr, M, args); \
    } \
    /**
     * Sends a Long message: a handler runs at the target with a payload in its rank's segment and M arguments.
     *
     * M is 0 to 16: the number of arguments a0, a1, ... of 32 bits. It is the same as vgasnet_AMRequestLongM. The call
     * may run handlers, and waits while 64 requests with 128 KiB of payload are under way to the target. Not
     * collective, any thread that is in no handler.
     *
     * @param dest rank to run the handler, 0 to vgasnet_nodes() - 1
     * @param handler index of the handler at the target, 128 to 255. One that is not registered there is fatal there
     * @param source_addr local address of the payload; free for reuse when the call returns
     * @param nbytes size of the payload in bytes, 0 to vgasnet_AMMaxLongRequest()
     * @param dest_addr remote address in the segment of dest, where the payload is when the handler runs
     * @retval VGASNET_OK on success
     * @retval VGASNET_ERR_BAD_ARG if there is no such rank, handler is below 128, the payload is too long, null or not
     *     in the target's segment, or the call is in a handler; nothing is sent
     * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
     * @see vgasnet_AMRequestLongArgs
     */ \
    static inline int vgasnet_AMRequestLongAsync##M(vgasnet_node_t dest, vgasnet_handler_t handler, void *source_addr, \
                                                    size_t nbytes, void *dest_addr VGASNET_PARAMETERS##M##_) { \
        const vgasnet_handlerarg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_AMRequestLongArgs(dest, handler, source_addr, nbytes, dest_addr, M, args); \
    } \
    /**
     * Replies with a Short message: a handler runs at the request's sender with M arguments.
     *
     * M is 0 to 16: the number of arguments a0, a1, ... of 32 bits. Once at most in a handler of a request, in its
     * thread. Not collective.
     *
     * @param token the token of the running handler, its first argument
     * @param handler index of the handler at the sender of the request, 128 to 255. One that is not registered there is
     *     fatal there
     * @retval VGASNET_OK on success
     * @retval VGASNET_ERR_BAD_ARG if handler is below 128, or the call is outside of a handler, in a handler of a
     *     reply, or the second reply; nothing is sent
     * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
     * @see vgasnet_AMReplyShortArgs
     */ \
    static inline int vgasnet_AMReplyShort##M(vgasnet_token_t token, vgasnet_handler_t handler VGASNET_PARAMETERS##M##_) { \
        const vgasnet_handlerarg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_AMReplyShortArgs(token, handler, M, args); \
    } \
    /**
     * Replies with a Medium message: a handler runs at the request's sender with a payload in a buffer and M arguments.
     *
     * M is 0 to 16: the number of arguments a0, a1, ... of 32 bits. Once at most in a handler of a request, in its
     * thread. Not collective.
     *
     * @param token the token of the running handler, its first argument
     * @param handler index of the handler at the sender of the request, 128 to 255. One that is not registered there is
     *     fatal there
     * @param source_addr local address of the payload; free for reuse when the call returns
     * @param nbytes size of the payload in bytes, 0 to vgasnet_AMMaxMedium()
     * @retval VGASNET_OK on success
     * @retval VGASNET_ERR_BAD_ARG if handler is below 128, the payload is too long or null, or the call is outside of a
     *     handler, in a handler of a reply, or the second reply; nothing is sent
     * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
     * @see vgasnet_AMReplyMediumArgs
     */ \
    static inline int vgasnet_AMReplyMedium##M(vgasnet_token_t token, vgasnet_handler_t handler, void *source_addr, \
                                               size_t nbytes VGASNET_PARAMETERS##M##_) { \
        const vgasnet_handlerarg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_AMReplyMediumArgs(token, handler, source_addr, nbytes, M, args); \
    } \
    /**
     * Replies with a Long message: a handler runs at the request's sender with a payload in its rank's segment and M
     * arguments.
     *
     * M is 0 to 16: the number of arguments a0, a1, ... of 32 bits. Once at most in a handler of a request, in its
     * thread. Not collective.
     *
     * @param token the token of the running handler, its first argument
     * @param handler index of the handler at the sender of the request, 128 to 255. One that is not registered there is
     *     fatal there
     * @param source_addr local address of the payload; free for reuse when the call returns
     * @param nbytes size of the payload in bytes, 0 to vgasnet_AMMaxLongReply()
     * @param dest_addr remote address in the segment of the request's sender, where the payload is when the handler
     *     runs
     * @retval VGASNET_OK on success
     * @retval VGASNET_ERR_BAD_ARG if handler is below 128, the payload is too long, null or not in the target's
     *     segment, or the call is outside of a handler, in a handler of a reply, or the second reply; nothing is sent
     * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
     * @see vgasnet_AMReplyLongArgs
     */ \
    static inline int vgasnet_AMReplyLong##M(vgasnet_token_t token, vgasnet_handler_t handler, void *source_addr, \
                                             size_t nbytes, void *dest_addr VGASNET_PARAMETERS##M##_) { \
        const vgasnet_handlerarg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_AMReplyLongArgs(token, handler, source_addr, nbytes, dest_addr, M, args); \
    }
VGASNET_MESSAGES_(0)
VGASNET_MESSAGES_(1)
VGASNET_MESSAGES_(2)
VGASNET_MESSAGES_(3)
VGASNET_MESSAGES_(4)
VGASNET_MESSAGES_(5)
VGASNET_MESSAGES_(6)
VGASNET_MESSAGES_(7)
VGASNET_MESSAGES_(8)
VGASNET_MESSAGES_(9)
VGASNET_MESSAGES_(10)
VGASNET_MESSAGES_(11)
VGASNET_MESSAGES_(12)
VGASNET_MESSAGES_(13)
VGASNET_MESSAGES_(14)
VGASNET_MESSAGES_(15)
VGASNET_MESSAGES_(16)

#ifdef __cplusplus
}
#endif

#endif
