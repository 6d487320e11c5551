/* GASNet-EX: kinds of memory. There is only that of the host: gex_MK_Create refuses to make others. */
#ifndef GASNET_MK_H
#define GASNET_MK_H

#include "gasnetex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    GEX_MK_CLASS_HOST,
    GEX_MK_CLASS_CUDA_UVA,
    GEX_MK_CLASS_HIP,
    GEX_MK_CLASS_ZE
} gex_MK_Class_t;

typedef struct {
    uint64_t gex_flags;
    gex_MK_Class_t gex_class;
    union {
        struct {
            int gex_CUdevice;
        } gex_class_cuda_uva;
        struct {
            int gex_hipDevice;
        } gex_class_hip;
        struct {
            void *gex_zeDevice;
            void *gex_zeContext;
            uint32_t gex_zeMemoryOrdinal;
        } gex_class_ze;
    } gex_args;
} gex_MK_Create_args_t;

/**
 * Refuses to make a kind of memory: segments are memory of the host. Returns GASNET_ERR_BAD_ARG.
 * @see vgasnet_ex_MK_Create, GASNet-EX specification 0.19
 */
static inline int gex_MK_Create(gex_MK_t *kind, gex_Client_t client, const gex_MK_Create_args_t *args, gex_Flags_t flags) {
    return vgasnet_ex_MK_Create(kind, client, args, flags);
}

/** Does nothing: no kind of memory is made. @see GASNet-EX specification 0.19 */
static inline void gex_MK_Destroy(gex_MK_t kind, gex_Flags_t flags) { (void)kind, (void)flags; }

#ifdef __cplusplus
}
#endif

#endif
