/* The library's functions for atomic domains of GASNet-EX; see vgasnet_ex.h. */
#ifndef VGASNET_EX_ATOMICS_H
#define VGASNET_EX_ATOMICS_H

#include <gex_types.h>

#ifdef __cplusplus
extern "C" {
#endif

void vgasnet_ex_AD_Create(gex_AD_t *domain, gex_TM_t team, gex_DT_t type, gex_OP_t operations, gex_Flags_t flags);
void vgasnet_ex_AD_Destroy(gex_AD_t domain);
gex_Flags_t vgasnet_ex_AD_QueryFlags(gex_AD_t domain);
gex_TM_t vgasnet_ex_AD_QueryTM(gex_AD_t domain);
gex_DT_t vgasnet_ex_AD_QueryDT(gex_AD_t domain);
gex_OP_t vgasnet_ex_AD_QueryOps(gex_AD_t domain);
void vgasnet_ex_AD_SetCData(gex_AD_t domain, const void *cdata);
void *vgasnet_ex_AD_QueryCData(gex_AD_t domain);

gex_Event_t vgasnet_ex_AD_OpNB_I32(gex_AD_t domain, int32_t *result, gex_Rank_t rank, void *address, gex_OP_t operation,
                                   int32_t operand1, int32_t operand2, gex_Flags_t flags);
gex_Event_t vgasnet_ex_AD_OpNB_U32(gex_AD_t domain, uint32_t *result, gex_Rank_t rank, void *address, gex_OP_t operation,
                                   uint32_t operand1, uint32_t operand2, gex_Flags_t flags);
gex_Event_t vgasnet_ex_AD_OpNB_I64(gex_AD_t domain, int64_t *result, gex_Rank_t rank, void *address, gex_OP_t operation,
                                   int64_t operand1, int64_t operand2, gex_Flags_t flags);
gex_Event_t vgasnet_ex_AD_OpNB_U64(gex_AD_t domain, uint64_t *result, gex_Rank_t rank, void *address, gex_OP_t operation,
                                   uint64_t operand1, uint64_t operand2, gex_Flags_t flags);
gex_Event_t vgasnet_ex_AD_OpNB_FLT(gex_AD_t domain, float *result, gex_Rank_t rank, void *address, gex_OP_t operation,
                                   float operand1, float operand2, gex_Flags_t flags);
gex_Event_t vgasnet_ex_AD_OpNB_DBL(gex_AD_t domain, double *result, gex_Rank_t rank, void *address, gex_OP_t operation,
                                   double operand1, double operand2, gex_Flags_t flags);

int vgasnet_ex_AD_OpNBI_I32(gex_AD_t domain, int32_t *result, gex_Rank_t rank, void *address, gex_OP_t operation,
                            int32_t operand1, int32_t operand2, gex_Flags_t flags);
int vgasnet_ex_AD_OpNBI_U32(gex_AD_t domain, uint32_t *result, gex_Rank_t rank, void *address, gex_OP_t operation,
                            uint32_t operand1, uint32_t operand2, gex_Flags_t flags);
int vgasnet_ex_AD_OpNBI_I64(gex_AD_t domain, int64_t *result, gex_Rank_t rank, void *address, gex_OP_t operation,
                            int64_t operand1, int64_t operand2, gex_Flags_t flags);
int vgasnet_ex_AD_OpNBI_U64(gex_AD_t domain, uint64_t *result, gex_Rank_t rank, void *address, gex_OP_t operation,
                            uint64_t operand1, uint64_t operand2, gex_Flags_t flags);
int vgasnet_ex_AD_OpNBI_FLT(gex_AD_t domain, float *result, gex_Rank_t rank, void *address, gex_OP_t operation, float operand1,
                            float operand2, gex_Flags_t flags);
int vgasnet_ex_AD_OpNBI_DBL(gex_AD_t domain, double *result, gex_Rank_t rank, void *address, gex_OP_t operation, double operand1,
                            double operand2, gex_Flags_t flags);

#ifdef __cplusplus
}
#endif

#endif
