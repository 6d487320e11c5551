/* GASNet-EX: Active Messages whose payload is negotiated. Clients include gasnetex.h. */
#ifndef GEX_PREPARED_H
#define GEX_PREPARED_H

#include <gex_messages.h>
#include <vgasnet_ex_prepared.h>

/* What is behind the names of the same release. A buffer of the library saves no copy, so GASNET_NATIVE_NP_ALLOC_ is not defined. */
#define GASNET_SUPPORTS_AM_CANCEL 20240418L
#define GASNET_SUPPORTS_AM_COMMIT_V2 20240906L

/**
 * Begins a Medium request with a payload filled in afterwards by the client.
 * @see vgasnet_ex_AM_PrepareRequestMedium, GASNet-EX specification 0.19
 */
#define gex_AM_PrepareRequestMedium vgasnet_ex_AM_PrepareRequestMedium
/**
 * Begins a Long request with a payload filled in afterwards by the client.
 * @see vgasnet_ex_AM_PrepareRequestLong, GASNet-EX specification 0.19
 */
#define gex_AM_PrepareRequestLong vgasnet_ex_AM_PrepareRequestLong
/**
 * Begins a Medium reply with a payload filled in afterwards by the client.
 * @see vgasnet_ex_AM_PrepareReplyMedium, GASNet-EX specification 0.19
 */
#define gex_AM_PrepareReplyMedium vgasnet_ex_AM_PrepareReplyMedium
/**
 * Begins a Long reply with a payload filled in afterwards by the client.
 * @see vgasnet_ex_AM_PrepareReplyLong, GASNet-EX specification 0.19
 */
#define gex_AM_PrepareReplyLong vgasnet_ex_AM_PrepareReplyLong
/** Returns where the payload of a prepared message is. @see vgasnet_ex_AM_SrcDescAddr, GASNet-EX specification 0.19 */
#define gex_AM_SrcDescAddr vgasnet_ex_AM_SrcDescAddr
/**
 * Returns how large the payload of a prepared message may be.
 * @see vgasnet_ex_AM_SrcDescSize, GASNet-EX specification 0.19
 */
#define gex_AM_SrcDescSize vgasnet_ex_AM_SrcDescSize
/** Drops a prepared Medium request. @see vgasnet_ex_AM_CancelRequestMedium, GASNet-EX specification 0.19 */
#define gex_AM_CancelRequestMedium vgasnet_ex_AM_CancelRequestMedium
/** Drops a prepared Long request. @see vgasnet_ex_AM_CancelRequestLong, GASNet-EX specification 0.19 */
#define gex_AM_CancelRequestLong vgasnet_ex_AM_CancelRequestLong
/** Drops a prepared Medium reply. @see vgasnet_ex_AM_CancelReplyMedium, GASNet-EX specification 0.19 */
#define gex_AM_CancelReplyMedium vgasnet_ex_AM_CancelReplyMedium
/** Drops a prepared Long reply. @see vgasnet_ex_AM_CancelReplyLong, GASNet-EX specification 0.19 */
#define gex_AM_CancelReplyLong vgasnet_ex_AM_CancelReplyLong

#ifdef __cplusplus
extern "C" {
#endif

/* The functions for M arguments, for requests or replies. */
#define GEX_COMMITS_OF_(kind, M) \
    /**
     * Sends a prepared Medium message with M arguments.
     * @see vgasnet_ex_AM_CommitRequestMedium, vgasnet_ex_AM_CommitReplyMedium, GASNet-EX specification 0.19
     */ \
    static inline void gex_AM_Commit##kind##Medium##M(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, \
                                                      size_t nbytes VGASNET_PARAMETERS##M##_) { \
        const gex_AM_Arg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        (void)vgasnet_ex_AM_Commit##kind##Medium(sd, handler, nbytes, 0, M, args); \
    } \
    /**
     * Sends a prepared Long message with M arguments.
     * @see vgasnet_ex_AM_CommitRequestLong, vgasnet_ex_AM_CommitReplyLong, GASNet-EX specification 0.19
     */ \
    static inline void gex_AM_Commit##kind##Long##M(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes, \
                                                    void *dest_addr VGASNET_PARAMETERS##M##_) { \
        const gex_AM_Arg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        (void)vgasnet_ex_AM_Commit##kind##Long(sd, handler, nbytes, dest_addr, 0, M, args); \
    } \
    /**
     * Sends a prepared Medium message with M arguments; not 0 if it is not sent.
     * @see vgasnet_ex_AM_CommitRequestMedium, vgasnet_ex_AM_CommitReplyMedium, GASNet-EX specification 0.19
     */ \
    static inline int gex_AM_Commit##kind##Medium##M##_v2(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes, \
                                                          gex_Flags_t commit_flags VGASNET_PARAMETERS##M##_) { \
        const gex_AM_Arg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_ex_AM_Commit##kind##Medium(sd, handler, nbytes, commit_flags, M, args); \
    } \
    /**
     * Sends a prepared Long message with M arguments; not 0 if it is not sent.
     * @see vgasnet_ex_AM_CommitRequestLong, vgasnet_ex_AM_CommitReplyLong, GASNet-EX specification 0.19
     */ \
    static inline int gex_AM_Commit##kind##Long##M##_v2(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes, \
                                                        void *dest_addr, gex_Flags_t commit_flags VGASNET_PARAMETERS##M##_) { \
        const gex_AM_Arg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_ex_AM_Commit##kind##Long(sd, handler, nbytes, dest_addr, commit_flags, M, args); \
    }
#define GEX_COMMITS_(M) GEX_COMMITS_OF_(Request, M) GEX_COMMITS_OF_(Reply, M)

GEX_FOR_EACH_COUNT_(GEX_COMMITS_)

#ifdef __cplusplus
}
#endif

#define GEX_COUNTED_V2_(name, ...) \
    GEX_18TH_(__VA_ARGS__, name##16_v2, name##15_v2, name##14_v2, name##13_v2, name##12_v2, name##11_v2, name##10_v2, name##9_v2, \
              name##8_v2, name##7_v2, name##6_v2, name##5_v2, name##4_v2, name##3_v2, name##2_v2, name##1_v2, name##0_v2, 0)

/**
 * Sends a prepared Medium request with 0 to 16 arguments.
 * @see vgasnet_ex_AM_CommitRequestMedium, GASNet-EX specification 0.19
 */
#define gex_AM_CommitRequestMedium(sd, handler, ...) GEX_COUNTED_(gex_AM_CommitRequestMedium, __VA_ARGS__)(sd, handler, __VA_ARGS__)
/**
 * Sends a prepared Medium reply with 0 to 16 arguments.
 * @see vgasnet_ex_AM_CommitReplyMedium, GASNet-EX specification 0.19
 */
#define gex_AM_CommitReplyMedium(sd, handler, ...) GEX_COUNTED_(gex_AM_CommitReplyMedium, __VA_ARGS__)(sd, handler, __VA_ARGS__)
/**
 * Sends a prepared Long request with 0 to 16 arguments.
 * @see vgasnet_ex_AM_CommitRequestLong, GASNet-EX specification 0.19
 */
#define gex_AM_CommitRequestLong(sd, handler, nbytes, ...) \
    GEX_COUNTED_(gex_AM_CommitRequestLong, __VA_ARGS__)(sd, handler, nbytes, __VA_ARGS__)
/**
 * Sends a prepared Long reply with 0 to 16 arguments.
 * @see vgasnet_ex_AM_CommitReplyLong, GASNet-EX specification 0.19
 */
#define gex_AM_CommitReplyLong(sd, handler, nbytes, ...) \
    GEX_COUNTED_(gex_AM_CommitReplyLong, __VA_ARGS__)(sd, handler, nbytes, __VA_ARGS__)
/**
 * Sends a prepared Medium request with 0 to 16 arguments; not 0 if it is not sent.
 * @see vgasnet_ex_AM_CommitRequestMedium, GASNet-EX specification 0.19
 */
#define gex_AM_CommitRequestMedium_v2(sd, handler, nbytes, ...) \
    GEX_COUNTED_V2_(gex_AM_CommitRequestMedium, __VA_ARGS__)(sd, handler, nbytes, __VA_ARGS__)
/**
 * Sends a prepared Medium reply with 0 to 16 arguments; not 0 if it is not sent.
 * @see vgasnet_ex_AM_CommitReplyMedium, GASNet-EX specification 0.19
 */
#define gex_AM_CommitReplyMedium_v2(sd, handler, nbytes, ...) \
    GEX_COUNTED_V2_(gex_AM_CommitReplyMedium, __VA_ARGS__)(sd, handler, nbytes, __VA_ARGS__)
/**
 * Sends a prepared Long request with 0 to 16 arguments; not 0 if it is not sent.
 * @see vgasnet_ex_AM_CommitRequestLong, GASNet-EX specification 0.19
 */
#define gex_AM_CommitRequestLong_v2(sd, handler, nbytes, dest_addr, ...) \
    GEX_COUNTED_V2_(gex_AM_CommitRequestLong, __VA_ARGS__)(sd, handler, nbytes, dest_addr, __VA_ARGS__)
/**
 * Sends a prepared Long reply with 0 to 16 arguments; not 0 if it is not sent.
 * @see vgasnet_ex_AM_CommitReplyLong, GASNet-EX specification 0.19
 */
#define gex_AM_CommitReplyLong_v2(sd, handler, nbytes, dest_addr, ...) \
    GEX_COUNTED_V2_(gex_AM_CommitReplyLong, __VA_ARGS__)(sd, handler, nbytes, dest_addr, __VA_ARGS__)

#endif
