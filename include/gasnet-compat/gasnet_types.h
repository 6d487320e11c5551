/* GASNet-1's types and constants by their own names, and its macros in place of functions. Clients include gasnet.h. */
#ifndef GASNET_TYPES_H
#define GASNET_TYPES_H

#include <vgasnet.h>

/* ---- types ---- */

typedef vgasnet_node_t gasnet_node_t;
typedef vgasnet_handler_t gasnet_handler_t;
typedef vgasnet_handlerarg_t gasnet_handlerarg_t;
typedef vgasnet_handlerentry_t gasnet_handlerentry_t;
typedef vgasnet_token_t gasnet_token_t;
typedef vgasnet_handle_t gasnet_handle_t;
typedef vgasnet_valget_handle_t gasnet_valget_handle_t;
typedef vgasnet_register_value_t gasnet_register_value_t;
typedef vgasnet_seginfo_t gasnet_seginfo_t;
typedef vgasnet_nodeinfo_t gasnet_nodeinfo_t;
typedef vgasnet_hsl_t gasnet_hsl_t;
typedef void *gasnet_threadinfo_t;

#define SIZEOF_GASNET_REGISTER_VALUE_T SIZEOF_VGASNET_REGISTER_VALUE_T
#define GASNET_INVALID_HANDLE VGASNET_INVALID_HANDLE
#define GASNET_HSL_INITIALIZER VGASNET_HSL_INITIALIZER

/* ---- constants ---- */

#define GASNET_OK VGASNET_OK
#define GASNET_ERR_NOT_INIT VGASNET_ERR_NOT_INIT
#define GASNET_ERR_RESOURCE VGASNET_ERR_RESOURCE
#define GASNET_ERR_BAD_ARG VGASNET_ERR_BAD_ARG
#define GASNET_ERR_NOT_READY VGASNET_ERR_NOT_READY
#define GASNET_ERR_BARRIER_MISMATCH VGASNET_ERR_BARRIER_MISMATCH

#define GASNET_BARRIERFLAG_ANONYMOUS VGASNET_BARRIERFLAG_ANONYMOUS
#define GASNET_BARRIERFLAG_MISMATCH VGASNET_BARRIERFLAG_MISMATCH
#define GASNET_BARRIERFLAG_UNNAMED VGASNET_BARRIERFLAG_UNNAMED
#define GASNET_BARRIERFLAG_IMAGES VGASNET_BARRIERFLAG_IMAGES

#define GASNET_WAIT_SPIN VGASNET_WAIT_SPIN
#define GASNET_WAIT_BLOCK VGASNET_WAIT_BLOCK
#define GASNET_WAIT_SPINBLOCK VGASNET_WAIT_SPINBLOCK

/* ---- macros in place of functions ---- */

#ifdef __cplusplus
extern "C" {
#endif

/* A client may define it: the largest segment that it wants to be offered, in bytes. */
extern uint64_t gasnet_max_segsize;

/* Functions and no macros, since generators of bindings for other languages look for them. */
/**
 * Returns the name of an error code, such as "GASNET_ERR_BAD_ARG".
 * @see vgasnet_ex_ErrorName, GASNet-1 specification 1.8
 */
const char *gasnet_ErrorName(int errval) __asm__("vgasnet_ex_ErrorName");
/** Returns the meaning of an error code, as half a sentence. @see vgasnet_ErrorDesc, GASNet-1 specification 1.8 */
const char *gasnet_ErrorDesc(int errval) __asm__("vgasnet_ErrorDesc");

#ifdef __cplusplus
}
#endif

/* GASNet's own variables for what these functions return; they can be read once gasnet_init has returned. */
#define gasneti_mynode vgasnet_mynode()
#define gasneti_nodes vgasnet_nodes()

/**
 * Returns what GASNET_POST_THREADINFO takes: threads need no information from the library.
 * @see GASNet-1 specification 1.8
 */
#define GASNET_GET_THREADINFO() ((gasnet_threadinfo_t)0)
#if defined(__GNUC__)
/** A declaration, which may stand before others. @see GASNet-1 specification 1.8 */
#define GASNET_POST_THREADINFO(info) gasnet_threadinfo_t gasnet_threadinfo_ __attribute__((__unused__)) = (info)
#else
/** A declaration, which may stand before others. @see GASNet-1 specification 1.8 */
#define GASNET_POST_THREADINFO(info) gasnet_threadinfo_t gasnet_threadinfo_ = (info)
#endif
/** A declaration at the beginning of a function, which may stand before others. @see GASNet-1 specification 1.8 */
#define GASNET_BEGIN_FUNCTION() GASNET_POST_THREADINFO(GASNET_GET_THREADINFO())

/** Waits until an expression is true, and runs handlers meanwhile. @see GASNet-1 specification 1.8 */
#define GASNET_BLOCKUNTIL(cond) VGASNET_BLOCKUNTIL(cond)

#endif
