/*
 * GASNet-EX: Active Messages. Clients include gasnetex.h.
 *
 * gex_AM_RequestShort0 to gex_AM_RequestShort16 and their like take so many arguments. Without the number, the name is a macro that
 * counts them.
 */
#ifndef GEX_MESSAGES_H
#define GEX_MESSAGES_H

#include <vgasnet_ex.h>

/** Tells about the message of the running handler. @see vgasnet_ex_Token_Info, GASNet-EX specification 0.19 */
#define gex_Token_Info vgasnet_ex_Token_Info
/**
 * Returns the largest payload of a Medium reply to the message of the running handler.
 * @see vgasnet_ex_Token_MaxReplyMedium, GASNet-EX specification 0.19
 */
#define gex_Token_MaxReplyMedium vgasnet_ex_Token_MaxReplyMedium
/**
 * Returns the largest payload of a Long reply to the message of the running handler.
 * @see vgasnet_ex_Token_MaxReplyLong, GASNet-EX specification 0.19
 */
#define gex_Token_MaxReplyLong vgasnet_ex_Token_MaxReplyLong
/**
 * Returns the largest payload of a Medium request to a rank.
 * @see vgasnet_ex_AM_MaxRequestMedium, GASNet-EX specification 0.19
 */
#define gex_AM_MaxRequestMedium vgasnet_ex_AM_MaxRequestMedium
/**
 * Returns the largest payload of a Medium reply to a rank.
 * @see vgasnet_ex_AM_MaxReplyMedium, GASNet-EX specification 0.19
 */
#define gex_AM_MaxReplyMedium vgasnet_ex_AM_MaxReplyMedium
/**
 * Returns the largest payload of a Long request to a rank.
 * @see vgasnet_ex_AM_MaxRequestLong, GASNet-EX specification 0.19
 */
#define gex_AM_MaxRequestLong vgasnet_ex_AM_MaxRequestLong
/**
 * Returns the largest payload of a Long reply to a rank.
 * @see vgasnet_ex_AM_MaxReplyLong, GASNet-EX specification 0.19
 */
#define gex_AM_MaxReplyLong vgasnet_ex_AM_MaxReplyLong
/**
 * Returns a payload that a Medium request may have between any two ranks.
 * @see vgasnet_ex_AM_LUBRequestMedium, GASNet-EX specification 0.19
 */
#define gex_AM_LUBRequestMedium vgasnet_ex_AM_LUBRequestMedium
/**
 * Returns a payload that a Medium reply may have between any two ranks.
 * @see vgasnet_ex_AM_LUBReplyMedium, GASNet-EX specification 0.19
 */
#define gex_AM_LUBReplyMedium vgasnet_ex_AM_LUBReplyMedium
/**
 * Returns a payload that a Long request may have between any two ranks.
 * @see vgasnet_ex_AM_LUBRequestLong, GASNet-EX specification 0.19
 */
#define gex_AM_LUBRequestLong vgasnet_ex_AM_LUBRequestLong
/**
 * Returns a payload that a Long reply may have between any two ranks.
 * @see vgasnet_ex_AM_LUBReplyLong, GASNet-EX specification 0.19
 */
#define gex_AM_LUBReplyLong vgasnet_ex_AM_LUBReplyLong

#ifdef __cplusplus
extern "C" {
#endif

/** Returns the largest number of arguments of a message: 16. @see GASNet-EX specification 0.19 */
static inline unsigned int gex_AM_MaxArgs(void) { return 16; }

/* The functions for M arguments. vgasnet/counted.h names their parameters. */
#define GEX_MESSAGES_(M) \
    /**
     * Runs a handler at another rank, with M arguments.
     * @see vgasnet_ex_AM_RequestShort, GASNet-EX specification 0.19
     */ \
    static inline int gex_AM_RequestShort##M(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, \
                                             gex_Flags_t flags VGASNET_PARAMETERS##M##_) { \
        const gex_AM_Arg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_ex_AM_RequestShort(tm, rank, handler, flags, M, args); \
    } \
    /**
     * Runs a handler at another rank, with a payload in a buffer and M arguments.
     * @see vgasnet_ex_AM_RequestMedium, GASNet-EX specification 0.19
     */ \
    static inline int gex_AM_RequestMedium##M(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, const void *source_addr, \
                                              size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags VGASNET_PARAMETERS##M##_) { \
        const gex_AM_Arg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_ex_AM_RequestMedium(tm, rank, handler, source_addr, nbytes, lc_opt, flags, M, args); \
    } \
    /**
     * Runs a handler at another rank, with a payload in the segment and M arguments.
     * @see vgasnet_ex_AM_RequestLong, GASNet-EX specification 0.19
     */ \
    static inline int gex_AM_RequestLong##M(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, const void *source_addr, \
                                            size_t nbytes, void *dest_addr, gex_Event_t *lc_opt, \
                                            gex_Flags_t flags VGASNET_PARAMETERS##M##_) { \
        const gex_AM_Arg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_ex_AM_RequestLong(tm, rank, handler, source_addr, nbytes, dest_addr, lc_opt, flags, M, args); \
    } \
    /**
     * Runs a handler at the sender of a request, with M arguments.
     * @see vgasnet_ex_AM_ReplyShort, GASNet-EX specification 0.19
     */ \
    static inline int gex_AM_ReplyShort##M(gex_Token_t token, gex_AM_Index_t handler, \
                                           gex_Flags_t flags VGASNET_PARAMETERS##M##_) { \
        const gex_AM_Arg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_ex_AM_ReplyShort(token, handler, flags, M, args); \
    } \
    /**
     * Runs a handler at the sender of a request, with a payload in a buffer and M arguments.
     * @see vgasnet_ex_AM_ReplyMedium, GASNet-EX specification 0.19
     */ \
    static inline int gex_AM_ReplyMedium##M(gex_Token_t token, gex_AM_Index_t handler, const void *source_addr, size_t nbytes, \
                                            gex_Event_t *lc_opt, gex_Flags_t flags VGASNET_PARAMETERS##M##_) { \
        const gex_AM_Arg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_ex_AM_ReplyMedium(token, handler, source_addr, nbytes, lc_opt, flags, M, args); \
    } \
    /**
     * Runs a handler at the sender of a request, with a payload in the segment and M arguments.
     * @see vgasnet_ex_AM_ReplyLong, GASNet-EX specification 0.19
     */ \
    static inline int gex_AM_ReplyLong##M(gex_Token_t token, gex_AM_Index_t handler, const void *source_addr, size_t nbytes, \
                                          void *dest_addr, gex_Event_t *lc_opt, gex_Flags_t flags VGASNET_PARAMETERS##M##_) { \
        const gex_AM_Arg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_ex_AM_ReplyLong(token, handler, source_addr, nbytes, dest_addr, lc_opt, flags, M, args); \
    }

/* All of them, for a macro of M. */
#define GEX_FOR_EACH_COUNT_(each) \
    each(0) each(1) each(2) each(3) each(4) each(5) each(6) each(7) each(8) each(9) each(10) each(11) each(12) each(13) each(14) \
    each(15) each(16)

GEX_FOR_EACH_COUNT_(GEX_MESSAGES_)

#ifdef __cplusplus
}
#endif

/* The function for as many arguments as there are behind the first of the list. */
#define GEX_18TH_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, name, ...) name
#define GEX_COUNTED_(name, ...) \
    GEX_18TH_(__VA_ARGS__, name##16, name##15, name##14, name##13, name##12, name##11, name##10, name##9, name##8, name##7, \
              name##6, name##5, name##4, name##3, name##2, name##1, name##0, 0)

/**
 * Runs a handler at another rank, with as many arguments as are given, 0 to 16.
 * @see vgasnet_ex_AM_RequestShort, GASNet-EX specification 0.19
 */
#define gex_AM_RequestShort(tm, rank, handler, ...) \
    GEX_COUNTED_(gex_AM_RequestShort, __VA_ARGS__)(tm, rank, handler, __VA_ARGS__)
/**
 * Runs a handler at another rank, with a payload in a buffer and 0 to 16 arguments.
 * @see vgasnet_ex_AM_RequestMedium, GASNet-EX specification 0.19
 */
#define gex_AM_RequestMedium(tm, rank, handler, source_addr, nbytes, lc_opt, ...) \
    GEX_COUNTED_(gex_AM_RequestMedium, __VA_ARGS__)(tm, rank, handler, source_addr, nbytes, lc_opt, __VA_ARGS__)
/**
 * Runs a handler at another rank, with a payload in the segment and 0 to 16 arguments.
 * @see vgasnet_ex_AM_RequestLong, GASNet-EX specification 0.19
 */
#define gex_AM_RequestLong(tm, rank, handler, source_addr, nbytes, dest_addr, lc_opt, ...) \
    GEX_COUNTED_(gex_AM_RequestLong, __VA_ARGS__)(tm, rank, handler, source_addr, nbytes, dest_addr, lc_opt, __VA_ARGS__)
/**
 * Runs a handler at the sender of a request, with as many arguments as are given, 0 to 16.
 * @see vgasnet_ex_AM_ReplyShort, GASNet-EX specification 0.19
 */
#define gex_AM_ReplyShort(token, handler, ...) GEX_COUNTED_(gex_AM_ReplyShort, __VA_ARGS__)(token, handler, __VA_ARGS__)
/**
 * Runs a handler at the sender of a request, with a payload in a buffer and 0 to 16 arguments.
 * @see vgasnet_ex_AM_ReplyMedium, GASNet-EX specification 0.19
 */
#define gex_AM_ReplyMedium(token, handler, source_addr, nbytes, lc_opt, ...) \
    GEX_COUNTED_(gex_AM_ReplyMedium, __VA_ARGS__)(token, handler, source_addr, nbytes, lc_opt, __VA_ARGS__)
/**
 * Runs a handler at the sender of a request, with a payload in the segment and 0 to 16 arguments.
 * @see vgasnet_ex_AM_ReplyLong, GASNet-EX specification 0.19
 */
#define gex_AM_ReplyLong(token, handler, source_addr, nbytes, dest_addr, lc_opt, ...) \
    GEX_COUNTED_(gex_AM_ReplyLong, __VA_ARGS__)(token, handler, source_addr, nbytes, dest_addr, lc_opt, __VA_ARGS__)

#endif
