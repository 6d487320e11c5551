/*
 * Handlers and messages that carry pointers. An argument of a message has 32 bits, a pointer 64, so it travels as two
 * arguments. Clients give two numbers of arguments, the first for pointers of 32 bits.
 *
 *   sending:   SHORT_REQ(1, 2, (node, gasneti_handleridx(note), PACK(pointer)));
 *   handling:  SHORT_HANDLER(note, 1, 2, (token, UNPACK(a0)), (token, UNPACK2(a0, a1)));
 *
 * SHORT_HANDLER defines note_64, which gets token, a0 and a1 (a Medium's or Long's also addr and nbytes) and calls the
 * client's note_inner with the arguments in the last parentheses. The client defines _hidx_note, the handler's index.
 */
#ifndef GASNET_HANDLER_H
#define GASNET_HANDLER_H
/* Keeps GASNet's own header of this name from being included as well. */
#define _GASNET_HANDLER_H

#include "gasnet.h"

#if UINTPTR_MAX != UINT64_MAX
#error "gasnet_handler.h is for pointers of 64 bits"
#endif
#define GASNETI_PTR64 1

/* ---- pointers as arguments ---- */

#define GASNETI_HIWORD(word) ((uint32_t)((uint64_t)(uintptr_t)(word) >> 32))
#define GASNETI_LOWORD(word) ((uint32_t)(uint64_t)(uintptr_t)(word))
#define GASNETI_MAKEWORD(high, low) ((uint64_t)(uint32_t)(high) << 32 | (uint32_t)(low))

#define PACK(pointer) (gasnet_handlerarg_t)GASNETI_HIWORD(pointer), (gasnet_handlerarg_t)GASNETI_LOWORD(pointer)
#define UNPACK2(high, low) ((void *)(uintptr_t)GASNETI_MAKEWORD(high, low))

/* ---- sending ---- */

#define SHORT_REQ(args32, args64, arguments) gasnet_AMRequestShort##args64 arguments
#define SHORT_REP(args32, args64, arguments) gasnet_AMReplyShort##args64 arguments
#define MEDIUM_REQ(args32, args64, arguments) gasnet_AMRequestMedium##args64 arguments
#define MEDIUM_REP(args32, args64, arguments) gasnet_AMReplyMedium##args64 arguments
#define LONG_REQ(args32, args64, arguments) gasnet_AMRequestLong##args64 arguments
#define LONG_REP(args32, args64, arguments) gasnet_AMReplyLong##args64 arguments
#define LONGASYNC_REQ(args32, args64, arguments) gasnet_AMRequestLongAsync##args64 arguments

/* ---- handlers ---- */

/* How the functions that are defined here are linked; "static" keeps them to the file. */
#ifndef GASNETI_HANDLER_SCOPE
#define GASNETI_HANDLER_SCOPE extern
#endif

/* The parameters of a handler for its arguments, by their number. vgasnet/counted.h names them the same. */
#define GASNET_HANDLER_PARAMETERS_(count) VGASNET_PARAMETERS##count##_

/* A use of each parameter that the wrapped function may not need. */
#define GASNET_HANDLER_TOUCH_(name) ((void)(name))

#define SHORT_HANDLER_NOBITS_DECL(name, args) \
    GASNETI_HANDLER_SCOPE void name(gasnet_token_t token GASNET_HANDLER_PARAMETERS_(args))
#define MEDIUM_HANDLER_NOBITS_DECL(name, args) \
    GASNETI_HANDLER_SCOPE void name(gasnet_token_t token, void *addr, size_t nbytes GASNET_HANDLER_PARAMETERS_(args))
#define SHORT_HANDLER_DECL(name, args32, args64) SHORT_HANDLER_NOBITS_DECL(name##_64, args64)
#define MEDIUM_HANDLER_DECL(name, args32, args64) MEDIUM_HANDLER_NOBITS_DECL(name##_64, args64)

/* Each definition is preceded by its declaration and followed by one, which the client's semicolon ends. */
#define SHORT_HANDLER(name, args32, args64, arguments32, arguments64) \
    SHORT_HANDLER_DECL(name, args32, args64); \
    SHORT_HANDLER_DECL(name, args32, args64) { \
        GASNET_HANDLER_TOUCH_(token); \
        name##_inner arguments64; \
    } \
    SHORT_HANDLER_DECL(name, args32, args64)
#define MEDIUM_HANDLER(name, args32, args64, arguments32, arguments64) \
    MEDIUM_HANDLER_DECL(name, args32, args64); \
    MEDIUM_HANDLER_DECL(name, args32, args64) { \
        GASNET_HANDLER_TOUCH_(token); \
        GASNET_HANDLER_TOUCH_(addr); \
        GASNET_HANDLER_TOUCH_(nbytes); \
        name##_inner arguments64; \
    } \
    MEDIUM_HANDLER_DECL(name, args32, args64)

/* The handlers of Longs and Mediums have the same type. */
#define LONG_HANDLER_NOBITS_DECL MEDIUM_HANDLER_NOBITS_DECL
#define LONG_HANDLER_DECL MEDIUM_HANDLER_DECL
#define LONG_HANDLER MEDIUM_HANDLER

/* ---- tables of handlers ---- */

typedef void (*gasneti_handler_fn_t)();

#define gasneti_handleridx(name) _hidx_##name
#define gasneti_handler_tableentry_with_bits(name) {gasneti_handleridx(name), (gasneti_handler_fn_t)name##_64}
#define gasneti_handler_tableentry_no_bits(name) {gasneti_handleridx(name), (gasneti_handler_fn_t)name}

#endif
