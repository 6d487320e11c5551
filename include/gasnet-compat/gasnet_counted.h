/* Requests and replies with the number of arguments as an argument: gasnet_AMRequestShort(node, handler, 2, 7, 8). Later
 * releases of GASNet-1 have them besides those with the number in their name. A wrong number is GASNET_ERR_BAD_ARG. */
#ifndef GASNET_COUNTED_H
#define GASNET_COUNTED_H

#include <stdarg.h>

/* Reads numargs arguments behind it into args, and returns the result of call. */
#define GASNET_COUNTED_(call) \
    gasnet_handlerarg_t args[17] = {0}; \
    int at; \
    va_list list; \
    va_start(list, numargs); \
    for (at = 0; at < numargs && at < 17; ++at) args[at] = va_arg(list, gasnet_handlerarg_t); \
    va_end(list); \
    return call

/**
 * Sends a Short request with numargs arguments, 0 to 16.
 * @see vgasnet_AMRequestShortArgs, GASNet-1 specification 1.8
 */
static inline int gasnet_AMRequestShort(gasnet_node_t dest, gasnet_handler_t handler, int numargs, ...) {
    GASNET_COUNTED_(vgasnet_AMRequestShortArgs(dest, handler, (size_t)numargs, args));
}
/**
 * Sends a Medium request with numargs arguments, 0 to 16.
 * @see vgasnet_AMRequestMediumArgs, GASNet-1 specification 1.8
 */
static inline int gasnet_AMRequestMedium(gasnet_node_t dest, gasnet_handler_t handler, void *source_addr, size_t nbytes,
                                         int numargs, ...) {
    GASNET_COUNTED_(vgasnet_AMRequestMediumArgs(dest, handler, source_addr, nbytes, (size_t)numargs, args));
}
/** Sends a Long request with numargs arguments, 0 to 16. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
static inline int gasnet_AMRequestLong(gasnet_node_t dest, gasnet_handler_t handler, void *source_addr, size_t nbytes,
                                       void *dest_addr, int numargs, ...) {
    GASNET_COUNTED_(vgasnet_AMRequestLongArgs(dest, handler, source_addr, nbytes, dest_addr, (size_t)numargs, args));
}
/**
 * Sends a Long request with numargs arguments, 0 to 16; the payload is free when the call returns.
 * @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8
 */
static inline int gasnet_AMRequestLongAsync(gasnet_node_t dest, gasnet_handler_t handler, void *source_addr, size_t nbytes,
                                            void *dest_addr, int numargs, ...) {
    GASNET_COUNTED_(vgasnet_AMRequestLongArgs(dest, handler, source_addr, nbytes, dest_addr, (size_t)numargs, args));
}
/** Sends a Short reply with numargs arguments, 0 to 16. @see vgasnet_AMReplyShortArgs, GASNet-1 specification 1.8 */
static inline int gasnet_AMReplyShort(gasnet_token_t token, gasnet_handler_t handler, int numargs, ...) {
    GASNET_COUNTED_(vgasnet_AMReplyShortArgs(token, handler, (size_t)numargs, args));
}
/** Sends a Medium reply with numargs arguments, 0 to 16. @see vgasnet_AMReplyMediumArgs, GASNet-1 specification 1.8 */
static inline int gasnet_AMReplyMedium(gasnet_token_t token, gasnet_handler_t handler, void *source_addr, size_t nbytes,
                                       int numargs, ...) {
    GASNET_COUNTED_(vgasnet_AMReplyMediumArgs(token, handler, source_addr, nbytes, (size_t)numargs, args));
}
/** Sends a Long reply with numargs arguments, 0 to 16. @see vgasnet_AMReplyLongArgs, GASNet-1 specification 1.8 */
static inline int gasnet_AMReplyLong(gasnet_token_t token, gasnet_handler_t handler, void *source_addr, size_t nbytes,
                                     void *dest_addr, int numargs, ...) {
    GASNET_COUNTED_(vgasnet_AMReplyLongArgs(token, handler, source_addr, nbytes, dest_addr, (size_t)numargs, args));
}

#endif
