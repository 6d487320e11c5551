/* GASNet-EX: atomic operations on numbers in segments. */
#ifndef GASNET_RATOMIC_H
#define GASNET_RATOMIC_H

#include "gasnetex.h"

#include "vgasnet_ex_atomics.h"

#define gex_AD_Create vgasnet_ex_AD_Create
#define gex_AD_Destroy vgasnet_ex_AD_Destroy
#define gex_AD_QueryFlags vgasnet_ex_AD_QueryFlags
#define gex_AD_QueryTM vgasnet_ex_AD_QueryTM
#define gex_AD_QueryDT vgasnet_ex_AD_QueryDT
#define gex_AD_QueryOps vgasnet_ex_AD_QueryOps
#define gex_AD_SetCData vgasnet_ex_AD_SetCData
#define gex_AD_QueryCData vgasnet_ex_AD_QueryCData

#define gex_AD_OpNB_I32 vgasnet_ex_AD_OpNB_I32
#define gex_AD_OpNB_U32 vgasnet_ex_AD_OpNB_U32
#define gex_AD_OpNB_I64 vgasnet_ex_AD_OpNB_I64
#define gex_AD_OpNB_U64 vgasnet_ex_AD_OpNB_U64
#define gex_AD_OpNB_FLT vgasnet_ex_AD_OpNB_FLT
#define gex_AD_OpNB_DBL vgasnet_ex_AD_OpNB_DBL

#define gex_AD_OpNBI_I32 vgasnet_ex_AD_OpNBI_I32
#define gex_AD_OpNBI_U32 vgasnet_ex_AD_OpNBI_U32
#define gex_AD_OpNBI_I64 vgasnet_ex_AD_OpNBI_I64
#define gex_AD_OpNBI_U64 vgasnet_ex_AD_OpNBI_U64
#define gex_AD_OpNBI_FLT vgasnet_ex_AD_OpNBI_FLT
#define gex_AD_OpNBI_DBL vgasnet_ex_AD_OpNBI_DBL

#endif
