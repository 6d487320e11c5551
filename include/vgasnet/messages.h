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

/* A message inside its handler. */
typedef void *vgasnet_token_t;

/* The most arguments, and the largest payloads in bytes. */
size_t vgasnet_AMMaxArgs(void);
size_t vgasnet_AMMaxMedium(void);
size_t vgasnet_AMMaxLongRequest(void);
size_t vgasnet_AMMaxLongReply(void);

/*
 * Requests and replies with numargs arguments from an array. vgasnet_AMRequestShort0 to vgasnet_AMRequestShort16 and
 * their like, below, take the arguments one by one.
 *
 * VGASNET_ERR_BAD_ARG: no such rank; a handler index below 128; more than 16 arguments; a payload that is too long or
 * not in the target's segment; a request in a handler; a reply outside of a handler, in a handler of a reply, or a
 * second one. Nothing is sent then. A handler index that is not registered at the target is fatal there.
 */
int vgasnet_AMRequestShortArgs(vgasnet_node_t dest, vgasnet_handler_t handler, size_t numargs,
                               const vgasnet_handlerarg_t *args);
int vgasnet_AMRequestMediumArgs(vgasnet_node_t dest, vgasnet_handler_t handler, void *source_addr, size_t nbytes,
                                size_t numargs, const vgasnet_handlerarg_t *args);
int vgasnet_AMRequestLongArgs(vgasnet_node_t dest, vgasnet_handler_t handler, void *source_addr, size_t nbytes,
                              void *dest_addr, size_t numargs, const vgasnet_handlerarg_t *args);
int vgasnet_AMReplyShortArgs(vgasnet_token_t token, vgasnet_handler_t handler, size_t numargs,
                             const vgasnet_handlerarg_t *args);
int vgasnet_AMReplyMediumArgs(vgasnet_token_t token, vgasnet_handler_t handler, void *source_addr, size_t nbytes,
                              size_t numargs, const vgasnet_handlerarg_t *args);
int vgasnet_AMReplyLongArgs(vgasnet_token_t token, vgasnet_handler_t handler, void *source_addr, size_t nbytes,
                            void *dest_addr, size_t numargs, const vgasnet_handlerarg_t *args);

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

/* vgasnet_AMRequestShortM, MediumM, LongM, LongAsyncM and vgasnet_AMReplyShortM, MediumM, LongM for M arguments. */
#define VGASNET_MESSAGES_(M) \
    static inline int vgasnet_AMRequestShort##M(vgasnet_node_t dest, vgasnet_handler_t handler VGASNET_PARAMETERS##M##_) { \
        const vgasnet_handlerarg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_AMRequestShortArgs(dest, handler, M, args); \
    } \
    static inline int vgasnet_AMRequestMedium##M(vgasnet_node_t dest, vgasnet_handler_t handler, void *source_addr, \
                                                 size_t nbytes VGASNET_PARAMETERS##M##_) { \
        const vgasnet_handlerarg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_AMRequestMediumArgs(dest, handler, source_addr, nbytes, M, args); \
    } \
    static inline int vgasnet_AMRequestLong##M(vgasnet_node_t dest, vgasnet_handler_t handler, void *source_addr, \
                                               size_t nbytes, void *dest_addr VGASNET_PARAMETERS##M##_) { \
        const vgasnet_handlerarg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_AMRequestLongArgs(dest, handler, source_addr, nbytes, dest_addr, M, args); \
    } \
    static inline int vgasnet_AMRequestLongAsync##M(vgasnet_node_t dest, vgasnet_handler_t handler, void *source_addr, \
                                                    size_t nbytes, void *dest_addr VGASNET_PARAMETERS##M##_) { \
        const vgasnet_handlerarg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_AMRequestLongArgs(dest, handler, source_addr, nbytes, dest_addr, M, args); \
    } \
    static inline int vgasnet_AMReplyShort##M(vgasnet_token_t token, vgasnet_handler_t handler VGASNET_PARAMETERS##M##_) { \
        const vgasnet_handlerarg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_AMReplyShortArgs(token, handler, M, args); \
    } \
    static inline int vgasnet_AMReplyMedium##M(vgasnet_token_t token, vgasnet_handler_t handler, void *source_addr, \
                                               size_t nbytes VGASNET_PARAMETERS##M##_) { \
        const vgasnet_handlerarg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_AMReplyMediumArgs(token, handler, source_addr, nbytes, M, args); \
    } \
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

/* In a handler: the rank that sent the message. VGASNET_ERR_BAD_ARG: outside of a handler, or a null pointer. */
int vgasnet_AMGetMsgSource(vgasnet_token_t token, vgasnet_node_t *srcindex);

/* Lets the runtime work a little, and runs handlers of messages that have arrived. */
int vgasnet_AMPoll(void);

/* Waits until the expression cond is true, running handlers. cond is evaluated again when a handler has run, and after
 * pauses, because another thread or a put may have changed it: none while a wait spins (vgasnet_set_waitmode), then
 * pauses that grow from 50 us to 10 ms. */
#define VGASNET_BLOCKUNTIL(cond) \
    do { \
        uint64_t vgasnet_since_ = 0; \
        for (;;) { \
            uint64_t vgasnet_seen_ = vgasnet_handler_runs(); \
            if (cond) break; \
            vgasnet_wait_handler(vgasnet_seen_, &vgasnet_since_); \
        } \
    } while (0)

/* The number of handlers that have ended on this rank; and a wait until it differs from seen, or until the next look at a
 * condition. *since is 0 before the first look; the call notes there when the wait began. */
uint64_t vgasnet_handler_runs(void);
void vgasnet_wait_handler(uint64_t seen, uint64_t *since);

/* No handler of the program starts in this rank any more: messages that come have no effect, and requests get no reply. For
 * languages whose runtime ends before the process, which serves others until they end. Nothing before vgasnet_attach. */
void vgasnet_end_handlers(void);

/* No-interrupt sections. Handlers never interrupt a thread, so these do nothing. */
void vgasnet_hold_interrupts(void);
void vgasnet_resume_interrupts(void);

#ifdef __cplusplus
}
#endif

#endif
