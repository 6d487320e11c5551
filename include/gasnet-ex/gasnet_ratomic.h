/* GASNet-EX: atomic operations on numbers in segments. */
#ifndef GASNET_RATOMIC_H
#define GASNET_RATOMIC_H

#include "gasnetex.h"

#include "vgasnet_ex_atomics.h"

/**
 * Makes an atomic domain: numbers of one type, on which its operations are atomic.
 * @see vgasnet_ex_AD_Create, GASNet-EX specification 0.19
 */
#define gex_AD_Create vgasnet_ex_AD_Create
/** Forgets an atomic domain at this rank. @see vgasnet_ex_AD_Destroy, GASNet-EX specification 0.19 */
#define gex_AD_Destroy vgasnet_ex_AD_Destroy
/**
 * Returns the flags that an atomic domain was made with.
 * @see vgasnet_ex_AD_QueryFlags, GASNet-EX specification 0.19
 */
#define gex_AD_QueryFlags vgasnet_ex_AD_QueryFlags
/** Returns the team of an atomic domain. @see vgasnet_ex_AD_QueryTM, GASNet-EX specification 0.19 */
#define gex_AD_QueryTM vgasnet_ex_AD_QueryTM
/** Returns the type of an atomic domain. @see vgasnet_ex_AD_QueryDT, GASNet-EX specification 0.19 */
#define gex_AD_QueryDT vgasnet_ex_AD_QueryDT
/** Returns the operations of an atomic domain. @see vgasnet_ex_AD_QueryOps, GASNet-EX specification 0.19 */
#define gex_AD_QueryOps vgasnet_ex_AD_QueryOps
/** Sets the client's data of an atomic domain. @see vgasnet_ex_AD_SetCData, GASNet-EX specification 0.19 */
#define gex_AD_SetCData vgasnet_ex_AD_SetCData
/** Returns the client's data of an atomic domain. @see vgasnet_ex_AD_QueryCData, GASNet-EX specification 0.19 */
#define gex_AD_QueryCData vgasnet_ex_AD_QueryCData

/**
 * Starts to change an int32_t in a rank's segment in one step, with an event.
 * @see vgasnet_ex_AD_OpNB_I32, GASNet-EX specification 0.19
 */
#define gex_AD_OpNB_I32 vgasnet_ex_AD_OpNB_I32
/**
 * Starts to change a uint32_t in a rank's segment in one step, with an event.
 * @see vgasnet_ex_AD_OpNB_U32, GASNet-EX specification 0.19
 */
#define gex_AD_OpNB_U32 vgasnet_ex_AD_OpNB_U32
/**
 * Starts to change an int64_t in a rank's segment in one step, with an event.
 * @see vgasnet_ex_AD_OpNB_I64, GASNet-EX specification 0.19
 */
#define gex_AD_OpNB_I64 vgasnet_ex_AD_OpNB_I64
/**
 * Starts to change a uint64_t in a rank's segment in one step, with an event.
 * @see vgasnet_ex_AD_OpNB_U64, GASNet-EX specification 0.19
 */
#define gex_AD_OpNB_U64 vgasnet_ex_AD_OpNB_U64
/**
 * Starts to change a float in a rank's segment in one step, with an event.
 * @see vgasnet_ex_AD_OpNB_FLT, GASNet-EX specification 0.19
 */
#define gex_AD_OpNB_FLT vgasnet_ex_AD_OpNB_FLT
/**
 * Starts to change a double in a rank's segment in one step, with an event.
 * @see vgasnet_ex_AD_OpNB_DBL, GASNet-EX specification 0.19
 */
#define gex_AD_OpNB_DBL vgasnet_ex_AD_OpNB_DBL

/**
 * Starts to change an int32_t in a rank's segment in one step, without an event.
 * @see vgasnet_ex_AD_OpNBI_I32, GASNet-EX specification 0.19
 */
#define gex_AD_OpNBI_I32 vgasnet_ex_AD_OpNBI_I32
/**
 * Starts to change a uint32_t in a rank's segment in one step, without an event.
 * @see vgasnet_ex_AD_OpNBI_U32, GASNet-EX specification 0.19
 */
#define gex_AD_OpNBI_U32 vgasnet_ex_AD_OpNBI_U32
/**
 * Starts to change an int64_t in a rank's segment in one step, without an event.
 * @see vgasnet_ex_AD_OpNBI_I64, GASNet-EX specification 0.19
 */
#define gex_AD_OpNBI_I64 vgasnet_ex_AD_OpNBI_I64
/**
 * Starts to change a uint64_t in a rank's segment in one step, without an event.
 * @see vgasnet_ex_AD_OpNBI_U64, GASNet-EX specification 0.19
 */
#define gex_AD_OpNBI_U64 vgasnet_ex_AD_OpNBI_U64
/**
 * Starts to change a float in a rank's segment in one step, without an event.
 * @see vgasnet_ex_AD_OpNBI_FLT, GASNet-EX specification 0.19
 */
#define gex_AD_OpNBI_FLT vgasnet_ex_AD_OpNBI_FLT
/**
 * Starts to change a double in a rank's segment in one step, without an event.
 * @see vgasnet_ex_AD_OpNBI_DBL, GASNet-EX specification 0.19
 */
#define gex_AD_OpNBI_DBL vgasnet_ex_AD_OpNBI_DBL

#endif
