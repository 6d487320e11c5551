/*
 * vgasnet: Active Messages.
 *
 * A request runs a handler at its target, with up to 16 arguments of 32 bits, and with a payload if it is a Medium or a
 * Long. The handler of a request may reply, once, to the sender. Requests and replies are reliable and unordered. They
 * return when the payload is free for reuse.
 *
 *   void short_handler(vgasnet_token_t token, vgasnet_handlerarg_t arg0, ...);
 *   void medium_handler(vgasnet_token_t token, void *buf, size_t nbytes, vgasnet_handlerarg_t arg0, ...);
 *   void long_handler(vgasnet_token_t token, void *buf, size_t nbytes, vgasnet_handlerarg_t arg0, ...);
 *
 * The buf of a Medium is the handler's until it returns, and aligned for any type. The buf of a Long is the address
 * that the sender named, in the segment of the handler's rank; the payload is there.
 *
 * Handlers run in threads of the client: in vgasnet_AMPoll, in requests, and in calls that wait or try. A thread runs
 * one handler at a time; several threads may run handlers at the same time. A handler may call vgasnet_mynode,
 * vgasnet_nodes, the replies, vgasnet_AMGetMsgSource, the handler-safe locks and vgasnet_exit, and may load from and
 * store to its rank's segment.
 *
 * At most 64 requests with 128 KiB of payload are under way from one rank to another. Further requests run handlers and
 * wait until handlers have run at the target.
 */
#ifndef VGASNET_MESSAGES_H
#define VGASNET_MESSAGES_H

#include <stddef.h>
#include <stdint.h>
#include <vgasnet/errors.h>
#include <vgasnet/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A message inside its handler. */
typedef void *vgasnet_token_t;

/* ---- limits ---- */

/**
 * Returns the largest number of arguments of a message.
 *
 * Not collective, any thread, also in handlers.
 *
 * @return the number of arguments of 32 bits: 16
 * @see vgasnet_AMRequestShortArgs
 */
size_t vgasnet_AMMaxArgs(void);

/**
 * Returns the largest payload of a Medium message.
 *
 * Not collective, any thread, also in handlers.
 *
 * @return the size in bytes, at least 512; the same for the whole job
 * @see vgasnet_AMRequestMediumArgs
 */
size_t vgasnet_AMMaxMedium(void);

/**
 * Returns the largest payload of a Long request.
 *
 * Not collective, any thread, also in handlers.
 *
 * @return the size in bytes, at least 512; the same for the whole job
 * @see vgasnet_AMRequestLongArgs
 */
size_t vgasnet_AMMaxLongRequest(void);

/**
 * Returns the largest payload of a Long reply.
 *
 * Not collective, any thread, also in handlers.
 *
 * @return the size in bytes, at least 512; the same for the whole job
 * @see vgasnet_AMReplyLongArgs
 */
size_t vgasnet_AMMaxLongReply(void);

/* ---- requests and replies ---- */

/**
 * Sends a Short message: a handler runs at the target with up to 16 arguments from an array.
 *
 * The call may run handlers, and waits while 64 requests with 128 KiB of payload are under way to the target. Not
 * collective, any thread that is in no handler.
 *
 * @param dest rank to run the handler, 0 to vgasnet_nodes() - 1
 * @param handler index of the handler at the target, 128 to 255. One that is not registered there is fatal there
 * @param numargs number of arguments, 0 to 16
 * @param args the arguments; may be null if numargs is 0
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG if there is no such rank, handler is below 128, there are more than 16 arguments, or the
 *     call is in a handler; nothing is sent
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_AMRequestShortM, vgasnet_AMReplyShortArgs, vgasnet_AMPoll
 */
int vgasnet_AMRequestShortArgs(vgasnet_node_t dest, vgasnet_handler_t handler, size_t numargs,
                               const vgasnet_handlerarg_t *args);

/**
 * Sends a Medium message: a handler runs at the target with a payload in a buffer and up to 16 arguments from an array.
 *
 * The call may run handlers, and waits while 64 requests with 128 KiB of payload are under way to the target. Not
 * collective, any thread that is in no handler.
 *
 * @param dest rank to run the handler, 0 to vgasnet_nodes() - 1
 * @param handler index of the handler at the target, 128 to 255. One that is not registered there is fatal there
 * @param source_addr local address of the payload; free for reuse when the call returns
 * @param nbytes size of the payload in bytes, 0 to vgasnet_AMMaxMedium()
 * @param numargs number of arguments, 0 to 16
 * @param args the arguments; may be null if numargs is 0
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG if there is no such rank, handler is below 128, there are more than 16 arguments, the
 *     payload is too long or null, or the call is in a handler; nothing is sent
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_AMRequestMediumM, vgasnet_AMReplyMediumArgs, vgasnet_AMPoll
 */
int vgasnet_AMRequestMediumArgs(vgasnet_node_t dest, vgasnet_handler_t handler, void *source_addr, size_t nbytes,
                                size_t numargs, const vgasnet_handlerarg_t *args);

/**
 * Sends a Long message: a handler runs at the target with a payload in its rank's segment and up to 16 arguments from
 * an array.
 *
 * The call may run handlers, and waits while 64 requests with 128 KiB of payload are under way to the target. Not
 * collective, any thread that is in no handler.
 *
 * @param dest rank to run the handler, 0 to vgasnet_nodes() - 1
 * @param handler index of the handler at the target, 128 to 255. One that is not registered there is fatal there
 * @param source_addr local address of the payload; free for reuse when the call returns
 * @param nbytes size of the payload in bytes, 0 to vgasnet_AMMaxLongRequest()
 * @param dest_addr remote address in the segment of dest, where the payload is when the handler runs
 * @param numargs number of arguments, 0 to 16
 * @param args the arguments; may be null if numargs is 0
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG if there is no such rank, handler is below 128, there are more than 16 arguments, the
 *     payload is too long, null or not in the target's segment, or the call is in a handler; nothing is sent
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_AMRequestLongM, vgasnet_AMReplyLongArgs, vgasnet_AMPoll
 */
int vgasnet_AMRequestLongArgs(vgasnet_node_t dest, vgasnet_handler_t handler, void *source_addr, size_t nbytes,
                              void *dest_addr, size_t numargs, const vgasnet_handlerarg_t *args);

/**
 * Replies with a Short message: a handler runs at the request's sender with up to 16 arguments from an array.
 *
 * Once at most in a handler of a request, in its thread. Not collective.
 *
 * @param token the token of the running handler, its first argument
 * @param handler index of the handler at the sender of the request, 128 to 255. One that is not registered there is
 *     fatal there
 * @param numargs number of arguments, 0 to 16
 * @param args the arguments; may be null if numargs is 0
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG if handler is below 128, there are more than 16 arguments, or the call is outside of a
 *     handler, in a handler of a reply, or the second reply; nothing is sent
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_AMReplyShortM, vgasnet_AMRequestShortArgs
 */
int vgasnet_AMReplyShortArgs(vgasnet_token_t token, vgasnet_handler_t handler, size_t numargs,
                             const vgasnet_handlerarg_t *args);

/**
 * Replies with a Medium message: a handler runs at the request's sender with a payload in a buffer and up to 16
 * arguments from an array.
 *
 * Once at most in a handler of a request, in its thread. Not collective.
 *
 * @param token the token of the running handler, its first argument
 * @param handler index of the handler at the sender of the request, 128 to 255. One that is not registered there is
 *     fatal there
 * @param source_addr local address of the payload; free for reuse when the call returns
 * @param nbytes size of the payload in bytes, 0 to vgasnet_AMMaxMedium()
 * @param numargs number of arguments, 0 to 16
 * @param args the arguments; may be null if numargs is 0
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG if handler is below 128, there are more than 16 arguments, the payload is too long or
 *     null, or the call is outside of a handler, in a handler of a reply, or the second reply; nothing is sent
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_AMReplyMediumM, vgasnet_AMRequestMediumArgs
 */
int vgasnet_AMReplyMediumArgs(vgasnet_token_t token, vgasnet_handler_t handler, void *source_addr, size_t nbytes,
                              size_t numargs, const vgasnet_handlerarg_t *args);

/**
 * Replies with a Long message: a handler runs at the request's sender with a payload in its rank's segment and up to 16
 * arguments from an array.
 *
 * Once at most in a handler of a request, in its thread. Not collective.
 *
 * @param token the token of the running handler, its first argument
 * @param handler index of the handler at the sender of the request, 128 to 255. One that is not registered there is
 *     fatal there
 * @param source_addr local address of the payload; free for reuse when the call returns
 * @param nbytes size of the payload in bytes, 0 to vgasnet_AMMaxLongReply()
 * @param dest_addr remote address in the segment of the request's sender, where the payload is when the handler runs
 * @param numargs number of arguments, 0 to 16
 * @param args the arguments; may be null if numargs is 0
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG if handler is below 128, there are more than 16 arguments, the payload is too long, null
 *     or not in the target's segment, or the call is outside of a handler, in a handler of a reply, or the second
 *     reply; nothing is sent
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_AMReplyLongM, vgasnet_AMRequestLongArgs
 */
int vgasnet_AMReplyLongArgs(vgasnet_token_t token, vgasnet_handler_t handler, void *source_addr, size_t nbytes,
                            void *dest_addr, size_t numargs, const vgasnet_handlerarg_t *args);

/* ---- handlers and progress ---- */

/**
 * Tells the rank that sent the message of the running handler.
 *
 * Only in a handler, in its thread.
 *
 * @param token the token of the running handler, its first argument
 * @param srcindex receives the index of the rank; not null
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG outside of a handler, or for a null pointer
 * @see vgasnet_AMReplyShortArgs
 */
int vgasnet_AMGetMsgSource(vgasnet_token_t token, vgasnet_node_t *srcindex);

/**
 * Lets the runtime work a little, and runs handlers of messages that have arrived.
 *
 * Not collective, any thread that is in no handler.
 *
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see VGASNET_BLOCKUNTIL
 */
int vgasnet_AMPoll(void);

/**
 * Waits until an expression is true, and runs handlers meanwhile.
 *
 * A statement macro. The expression is evaluated again when a handler has run, and after pauses, because another thread
 * or a put may have changed it. There are no pauses while a wait spins (vgasnet_set_waitmode); then they grow from 50
 * us to 10 ms. Not collective, any thread that is in no handler.
 *
 * Fatal: a call before vgasnet_attach.
 *
 * @param cond the expression, without side effects
 * @see vgasnet_AMPoll, vgasnet_set_waitmode
 */
#define VGASNET_BLOCKUNTIL(cond) \
    do { \
        uint64_t vgasnet_since_ = 0; \
        for (;;) { \
            uint64_t vgasnet_seen_ = vgasnet_handler_runs(); \
            if (cond) break; \
            vgasnet_wait_handler(vgasnet_seen_, &vgasnet_since_); \
        } \
    } while (0)

/**
 * Returns how many handlers have ended on this rank, for VGASNET_BLOCKUNTIL.
 *
 * Not collective, any thread.
 *
 * @return the number of handlers that have ended
 * @see VGASNET_BLOCKUNTIL, vgasnet_wait_handler
 */
uint64_t vgasnet_handler_runs(void);

/**
 * Waits until a handler ends, or until a condition is to be looked at again, for VGASNET_BLOCKUNTIL.
 *
 * Not collective, any thread that is in no handler.
 *
 * Fatal: a null pointer, a call before vgasnet_attach.
 *
 * @param seen what vgasnet_handler_runs returned before the condition was looked at; with another number now, the call
 *     returns at once
 * @param since 0 before the first look; the call notes there when the wait began. Not null
 * @see VGASNET_BLOCKUNTIL, vgasnet_handler_runs
 */
void vgasnet_wait_handler(uint64_t seen, uint64_t *since);

/**
 * Lets no handler of the program start in this rank any more.
 *
 * Messages that arrive have no effect, and requests get no reply. It is for languages whose runtime ends before the
 * process, which serves other ranks until they end. Before vgasnet_attach it does nothing. Not collective, any thread.
 *
 * @see vgasnet_exit
 */
void vgasnet_end_handlers(void);

/**
 * Begins a no-interrupt section, which does nothing: handlers never interrupt a thread.
 *
 * Not collective, any thread.
 *
 * @see vgasnet_resume_interrupts
 */
void vgasnet_hold_interrupts(void);

/**
 * Ends a no-interrupt section, which does nothing: handlers never interrupt a thread.
 *
 * Not collective, any thread.
 *
 * @see vgasnet_hold_interrupts
 */
void vgasnet_resume_interrupts(void);

#ifdef __cplusplus
}
#endif

#endif
