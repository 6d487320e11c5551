/* vgasnet: types that several chapters share. */
#ifndef VGASNET_TYPES_H
#define VGASNET_TYPES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The index of a rank: 0 to vgasnet_nodes() - 1. */
typedef uint32_t vgasnet_node_t;

/** The number of an Active Message handler. */
typedef uint8_t vgasnet_handler_t;

/** An argument of a handler. */
typedef int32_t vgasnet_handlerarg_t;

/** An entry of a table of handlers. fnptr takes a handler of any type: in C it has no prototype. C23 has no such types
 * any more; there GNU C takes any function for a void pointer. */
#if defined(__GNUC__) && !defined(__cplusplus) && __STDC_VERSION__ > 202000L
typedef struct {
    vgasnet_handler_t index;
    void *fnptr;
} vgasnet_handlerentry_t;
#else
#if defined(__GNUC__) && !defined(__cplusplus)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#endif
typedef struct {
    vgasnet_handler_t index;
    void (*fnptr)();
} vgasnet_handlerentry_t;
#if defined(__GNUC__) && !defined(__cplusplus)
#pragma GCC diagnostic pop
#endif
#endif

#ifdef __cplusplus
}
#endif

#endif
