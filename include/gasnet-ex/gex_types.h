/* GASNet-EX: objects, which are known by their handles, and structures. Clients include gasnetex.h. */
#ifndef GEX_TYPES_H
#define GEX_TYPES_H

#include <gasnet_fwd.h>
#include <vgasnet.h>

/* ---- handles; zero is that of no object ---- */

typedef struct vgasnet_ex_client *gex_Client_t;
typedef struct vgasnet_ex_endpoint *gex_EP_t;
typedef struct vgasnet_ex_segment *gex_Segment_t;
typedef struct vgasnet_ex_team *gex_TM_t;
typedef struct vgasnet_ex_prepared *gex_AM_SrcDesc_t;
typedef struct vgasnet_ex_domain *gex_AD_t;
typedef struct vgasnet_ex_kind *gex_MK_t;
typedef vgasnet_token_t gex_Token_t;
typedef vgasnet_hsl_t gex_HSL_t;

#define GEX_CLIENT_INVALID ((gex_Client_t)(uintptr_t)0)
#define GEX_EP_INVALID ((gex_EP_t)(uintptr_t)0)
#define GEX_SEGMENT_INVALID ((gex_Segment_t)(uintptr_t)0)
#define GEX_TM_INVALID ((gex_TM_t)(uintptr_t)0)
#define GEX_AM_SRCDESC_NO_OP ((gex_AM_SrcDesc_t)(uintptr_t)0)
#define GEX_AD_INVALID ((gex_AD_t)(uintptr_t)0)
#define GEX_MK_INVALID ((gex_MK_t)(uintptr_t)0)
#define GEX_MK_HOST ((gex_MK_t)(uintptr_t)1)

/* ---- structures; clients initialise some by position ---- */

/* A handler of any type: in C, before C23, it has no prototype. */
#if defined(__GNUC__) && !defined(__cplusplus)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#endif
typedef void (*gex_AM_Fn_t)();
#if defined(__GNUC__) && !defined(__cplusplus)
#pragma GCC diagnostic pop
#endif

typedef struct {
    gex_AM_Index_t gex_index;
    gex_AM_Fn_t gex_fnptr;
    gex_Flags_t gex_flags;
    unsigned int gex_nargs;
    const void *gex_cdata;
    const char *gex_name;
} gex_AM_Entry_t;

typedef struct {
    gex_Rank_t gex_srcrank;
    gex_EP_t gex_ep;
    const gex_AM_Entry_t *gex_entry;
    int gex_is_req;
    int gex_is_long;
} gex_Token_Info_t;

typedef struct {
    void *gex_addr;
    size_t gex_len;
} gex_Memvec_t;

typedef const struct {
    gex_Rank_t gex_jobrank;
} gex_RankInfo_t;

typedef struct {
    const char *gex_device_list;
    unsigned int gex_thread_roles;
    void *(*gex_progress_fn)(void *);
    void *gex_progress_arg;
} gex_ProgressThreadInfo_t;

#define GEX_THREAD_ROLE_RCV 0x1
#define GEX_THREAD_ROLE_SND 0x2

/* What to tell of a message; all of it is told always. */
#define GEX_TI_SRCRANK 0x1U
#define GEX_TI_ENTRY 0x2U
#define GEX_TI_IS_REQ 0x4U
#define GEX_TI_IS_LONG 0x8U
#define GEX_TI_EP 0x10U
#define GEX_TI_ALL 0x1FU

#define GEX_AM_INDEX_BASE 128

#define GEX_HSL_INITIALIZER VGASNET_HSL_INITIALIZER

#endif
