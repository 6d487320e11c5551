/* The library's functions for atomic domains of GASNet-EX; see vgasnet_ex.h. */
#ifndef VGASNET_EX_ATOMICS_H
#define VGASNET_EX_ATOMICS_H

#include <gex_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes an atomic domain: numbers of one type, on which its operations are atomic.
 *
 * Collective over the team.
 *
 * Fatal: a type or an operation that does not exist or do not fit.
 *
 * @param domain receives the domain
 * @param team the team whose ranks have the numbers
 * @param type one of GEX_DT_
 * @param operations some of GEX_OP_: all that the client will use
 * @param flags hints, which change nothing
 * @see vgasnet_ex_AD_Destroy, GASNet-EX specification 0.19 (gex_AD_Create)
 */
void vgasnet_ex_AD_Create(gex_AD_t *domain, gex_TM_t team, gex_DT_t type, gex_OP_t operations, gex_Flags_t flags);

/**
 * Forgets an atomic domain at this rank.
 *
 * Collective over its team. Its operations must be complete.
 *
 * @param domain the domain
 * @see vgasnet_ex_AD_Create, GASNet-EX specification 0.19 (gex_AD_Destroy)
 */
void vgasnet_ex_AD_Destroy(gex_AD_t domain);

/**
 * Returns the flags that an atomic domain was made with.
 *
 * @param domain the atomic domain
 * @return the flags
 * @see GASNet-EX specification 0.19 (gex_AD_QueryFlags)
 */
gex_Flags_t vgasnet_ex_AD_QueryFlags(gex_AD_t domain);

/**
 * Returns the team of an atomic domain.
 *
 * @param domain the domain
 * @return the team
 * @see GASNet-EX specification 0.19 (gex_AD_QueryTM)
 */
gex_TM_t vgasnet_ex_AD_QueryTM(gex_AD_t domain);

/**
 * Returns the type of an atomic domain.
 *
 * @param domain the domain
 * @return one of GEX_DT_
 * @see GASNet-EX specification 0.19 (gex_AD_QueryDT)
 */
gex_DT_t vgasnet_ex_AD_QueryDT(gex_AD_t domain);

/**
 * Returns the operations of an atomic domain.
 *
 * @param domain the domain
 * @return some of GEX_OP_
 * @see GASNet-EX specification 0.19 (gex_AD_QueryOps)
 */
gex_OP_t vgasnet_ex_AD_QueryOps(gex_AD_t domain);

/**
 * Sets the client's data of an atomic domain.
 *
 * @param domain the atomic domain
 * @param cdata the client's data; may be null
 * @see vgasnet_ex_AD_QueryCData, GASNet-EX specification 0.19 (gex_AD_SetCData)
 */
void vgasnet_ex_AD_SetCData(gex_AD_t domain, const void *cdata);

/**
 * Returns the client's data of an atomic domain.
 *
 * @param domain the atomic domain
 * @return what the client has set, null at first
 * @see vgasnet_ex_AD_SetCData, GASNet-EX specification 0.19 (gex_AD_QueryCData)
 */
void *vgasnet_ex_AD_QueryCData(gex_AD_t domain);

/**
 * Starts to change an int32_t in a rank's segment in one step, with an event.
 *
 * Fatal: an operation that the domain does not have, an address that is not aligned or not in the segment, a null
 * result of an operation that fetches.
 *
 * @param domain a domain of this type
 * @param result local address that receives the number as it was; null unless the operation fetches
 * @param rank rank in the domain's team, or in the job with GEX_FLAG_RANK_IS_JOBRANK
 * @param address remote address of the number, aligned, in the segment of the rank
 * @param operation one of GEX_OP_, which the domain has
 * @param operand1 first operand; of GEX_OP_CAS and GEX_OP_FCAS the expected number
 * @param operand2 second operand; of GEX_OP_CAS and GEX_OP_FCAS the new number
 * @param flags GEX_FLAG_RANK_IS_JOBRANK, GEX_FLAG_AD_ACQ, GEX_FLAG_AD_REL and hints
 * @return an event to be tested or waited for; GEX_EVENT_INVALID if the operation is complete already
 * @see vgasnet_ex_Event_Wait, GASNet-EX specification 0.19 (gex_AD_OpNB_I32)
 */
gex_Event_t vgasnet_ex_AD_OpNB_I32(gex_AD_t domain, int32_t *result, gex_Rank_t rank, void *address, gex_OP_t operation,
                                   int32_t operand1, int32_t operand2, gex_Flags_t flags);

/**
 * Starts to change a uint32_t in a rank's segment in one step, with an event.
 *
 * Fatal: an operation that the domain does not have, an address that is not aligned or not in the segment, a null
 * result of an operation that fetches.
 *
 * @param domain a domain of this type
 * @param result local address that receives the number as it was; null unless the operation fetches
 * @param rank rank in the domain's team, or in the job with GEX_FLAG_RANK_IS_JOBRANK
 * @param address remote address of the number, aligned, in the segment of the rank
 * @param operation one of GEX_OP_, which the domain has
 * @param operand1 first operand; of GEX_OP_CAS and GEX_OP_FCAS the expected number
 * @param operand2 second operand; of GEX_OP_CAS and GEX_OP_FCAS the new number
 * @param flags GEX_FLAG_RANK_IS_JOBRANK, GEX_FLAG_AD_ACQ, GEX_FLAG_AD_REL and hints
 * @return an event to be tested or waited for; GEX_EVENT_INVALID if the operation is complete already
 * @see vgasnet_ex_Event_Wait, GASNet-EX specification 0.19 (gex_AD_OpNB_U32)
 */
gex_Event_t vgasnet_ex_AD_OpNB_U32(gex_AD_t domain, uint32_t *result, gex_Rank_t rank, void *address, gex_OP_t operation,
                                   uint32_t operand1, uint32_t operand2, gex_Flags_t flags);

/**
 * Starts to change an int64_t in a rank's segment in one step, with an event.
 *
 * Fatal: an operation that the domain does not have, an address that is not aligned or not in the segment, a null
 * result of an operation that fetches.
 *
 * @param domain a domain of this type
 * @param result local address that receives the number as it was; null unless the operation fetches
 * @param rank rank in the domain's team, or in the job with GEX_FLAG_RANK_IS_JOBRANK
 * @param address remote address of the number, aligned, in the segment of the rank
 * @param operation one of GEX_OP_, which the domain has
 * @param operand1 first operand; of GEX_OP_CAS and GEX_OP_FCAS the expected number
 * @param operand2 second operand; of GEX_OP_CAS and GEX_OP_FCAS the new number
 * @param flags GEX_FLAG_RANK_IS_JOBRANK, GEX_FLAG_AD_ACQ, GEX_FLAG_AD_REL and hints
 * @return an event to be tested or waited for; GEX_EVENT_INVALID if the operation is complete already
 * @see vgasnet_ex_Event_Wait, GASNet-EX specification 0.19 (gex_AD_OpNB_I64)
 */
gex_Event_t vgasnet_ex_AD_OpNB_I64(gex_AD_t domain, int64_t *result, gex_Rank_t rank, void *address, gex_OP_t operation,
                                   int64_t operand1, int64_t operand2, gex_Flags_t flags);

/**
 * Starts to change a uint64_t in a rank's segment in one step, with an event.
 *
 * Fatal: an operation that the domain does not have, an address that is not aligned or not in the segment, a null
 * result of an operation that fetches.
 *
 * @param domain a domain of this type
 * @param result local address that receives the number as it was; null unless the operation fetches
 * @param rank rank in the domain's team, or in the job with GEX_FLAG_RANK_IS_JOBRANK
 * @param address remote address of the number, aligned, in the segment of the rank
 * @param operation one of GEX_OP_, which the domain has
 * @param operand1 first operand; of GEX_OP_CAS and GEX_OP_FCAS the expected number
 * @param operand2 second operand; of GEX_OP_CAS and GEX_OP_FCAS the new number
 * @param flags GEX_FLAG_RANK_IS_JOBRANK, GEX_FLAG_AD_ACQ, GEX_FLAG_AD_REL and hints
 * @return an event to be tested or waited for; GEX_EVENT_INVALID if the operation is complete already
 * @see vgasnet_ex_Event_Wait, GASNet-EX specification 0.19 (gex_AD_OpNB_U64)
 */
gex_Event_t vgasnet_ex_AD_OpNB_U64(gex_AD_t domain, uint64_t *result, gex_Rank_t rank, void *address, gex_OP_t operation,
                                   uint64_t operand1, uint64_t operand2, gex_Flags_t flags);

/**
 * Starts to change a float in a rank's segment in one step, with an event.
 *
 * Fatal: an operation that the domain does not have, an address that is not aligned or not in the segment, a null
 * result of an operation that fetches.
 *
 * @param domain a domain of this type
 * @param result local address that receives the number as it was; null unless the operation fetches
 * @param rank rank in the domain's team, or in the job with GEX_FLAG_RANK_IS_JOBRANK
 * @param address remote address of the number, aligned, in the segment of the rank
 * @param operation one of GEX_OP_, which the domain has
 * @param operand1 first operand; of GEX_OP_CAS and GEX_OP_FCAS the expected number
 * @param operand2 second operand; of GEX_OP_CAS and GEX_OP_FCAS the new number
 * @param flags GEX_FLAG_RANK_IS_JOBRANK, GEX_FLAG_AD_ACQ, GEX_FLAG_AD_REL and hints
 * @return an event to be tested or waited for; GEX_EVENT_INVALID if the operation is complete already
 * @see vgasnet_ex_Event_Wait, GASNet-EX specification 0.19 (gex_AD_OpNB_FLT)
 */
gex_Event_t vgasnet_ex_AD_OpNB_FLT(gex_AD_t domain, float *result, gex_Rank_t rank, void *address, gex_OP_t operation,
                                   float operand1, float operand2, gex_Flags_t flags);

/**
 * Starts to change a double in a rank's segment in one step, with an event.
 *
 * Fatal: an operation that the domain does not have, an address that is not aligned or not in the segment, a null
 * result of an operation that fetches.
 *
 * @param domain a domain of this type
 * @param result local address that receives the number as it was; null unless the operation fetches
 * @param rank rank in the domain's team, or in the job with GEX_FLAG_RANK_IS_JOBRANK
 * @param address remote address of the number, aligned, in the segment of the rank
 * @param operation one of GEX_OP_, which the domain has
 * @param operand1 first operand; of GEX_OP_CAS and GEX_OP_FCAS the expected number
 * @param operand2 second operand; of GEX_OP_CAS and GEX_OP_FCAS the new number
 * @param flags GEX_FLAG_RANK_IS_JOBRANK, GEX_FLAG_AD_ACQ, GEX_FLAG_AD_REL and hints
 * @return an event to be tested or waited for; GEX_EVENT_INVALID if the operation is complete already
 * @see vgasnet_ex_Event_Wait, GASNet-EX specification 0.19 (gex_AD_OpNB_DBL)
 */
gex_Event_t vgasnet_ex_AD_OpNB_DBL(gex_AD_t domain, double *result, gex_Rank_t rank, void *address, gex_OP_t operation,
                                   double operand1, double operand2, gex_Flags_t flags);

/**
 * Starts to change an int32_t in a rank's segment in one step, without an event.
 *
 * Fatal: an operation that the domain does not have, an address that is not aligned or not in the segment, a null
 * result of an operation that fetches.
 *
 * @param domain a domain of this type
 * @param result local address that receives the number as it was; null unless the operation fetches
 * @param rank rank in the domain's team, or in the job with GEX_FLAG_RANK_IS_JOBRANK
 * @param address remote address of the number, aligned, in the segment of the rank
 * @param operation one of GEX_OP_, which the domain has
 * @param operand1 first operand; of GEX_OP_CAS and GEX_OP_FCAS the expected number
 * @param operand2 second operand; of GEX_OP_CAS and GEX_OP_FCAS the new number
 * @param flags GEX_FLAG_RANK_IS_JOBRANK, GEX_FLAG_AD_ACQ, GEX_FLAG_AD_REL and hints
 * @return 0, as nothing is refused
 * @see vgasnet_ex_NBI_Wait, GASNet-EX specification 0.19 (gex_AD_OpNBI_I32)
 */
int vgasnet_ex_AD_OpNBI_I32(gex_AD_t domain, int32_t *result, gex_Rank_t rank, void *address, gex_OP_t operation,
                            int32_t operand1, int32_t operand2, gex_Flags_t flags);

/**
 * Starts to change a uint32_t in a rank's segment in one step, without an event.
 *
 * Fatal: an operation that the domain does not have, an address that is not aligned or not in the segment, a null
 * result of an operation that fetches.
 *
 * @param domain a domain of this type
 * @param result local address that receives the number as it was; null unless the operation fetches
 * @param rank rank in the domain's team, or in the job with GEX_FLAG_RANK_IS_JOBRANK
 * @param address remote address of the number, aligned, in the segment of the rank
 * @param operation one of GEX_OP_, which the domain has
 * @param operand1 first operand; of GEX_OP_CAS and GEX_OP_FCAS the expected number
 * @param operand2 second operand; of GEX_OP_CAS and GEX_OP_FCAS the new number
 * @param flags GEX_FLAG_RANK_IS_JOBRANK, GEX_FLAG_AD_ACQ, GEX_FLAG_AD_REL and hints
 * @return 0, as nothing is refused
 * @see vgasnet_ex_NBI_Wait, GASNet-EX specification 0.19 (gex_AD_OpNBI_U32)
 */
int vgasnet_ex_AD_OpNBI_U32(gex_AD_t domain, uint32_t *result, gex_Rank_t rank, void *address, gex_OP_t operation,
                            uint32_t operand1, uint32_t operand2, gex_Flags_t flags);

/**
 * Starts to change an int64_t in a rank's segment in one step, without an event.
 *
 * Fatal: an operation that the domain does not have, an address that is not aligned or not in the segment, a null
 * result of an operation that fetches.
 *
 * @param domain a domain of this type
 * @param result local address that receives the number as it was; null unless the operation fetches
 * @param rank rank in the domain's team, or in the job with GEX_FLAG_RANK_IS_JOBRANK
 * @param address remote address of the number, aligned, in the segment of the rank
 * @param operation one of GEX_OP_, which the domain has
 * @param operand1 first operand; of GEX_OP_CAS and GEX_OP_FCAS the expected number
 * @param operand2 second operand; of GEX_OP_CAS and GEX_OP_FCAS the new number
 * @param flags GEX_FLAG_RANK_IS_JOBRANK, GEX_FLAG_AD_ACQ, GEX_FLAG_AD_REL and hints
 * @return 0, as nothing is refused
 * @see vgasnet_ex_NBI_Wait, GASNet-EX specification 0.19 (gex_AD_OpNBI_I64)
 */
int vgasnet_ex_AD_OpNBI_I64(gex_AD_t domain, int64_t *result, gex_Rank_t rank, void *address, gex_OP_t operation,
                            int64_t operand1, int64_t operand2, gex_Flags_t flags);

/**
 * Starts to change a uint64_t in a rank's segment in one step, without an event.
 *
 * Fatal: an operation that the domain does not have, an address that is not aligned or not in the segment, a null
 * result of an operation that fetches.
 *
 * @param domain a domain of this type
 * @param result local address that receives the number as it was; null unless the operation fetches
 * @param rank rank in the domain's team, or in the job with GEX_FLAG_RANK_IS_JOBRANK
 * @param address remote address of the number, aligned, in the segment of the rank
 * @param operation one of GEX_OP_, which the domain has
 * @param operand1 first operand; of GEX_OP_CAS and GEX_OP_FCAS the expected number
 * @param operand2 second operand; of GEX_OP_CAS and GEX_OP_FCAS the new number
 * @param flags GEX_FLAG_RANK_IS_JOBRANK, GEX_FLAG_AD_ACQ, GEX_FLAG_AD_REL and hints
 * @return 0, as nothing is refused
 * @see vgasnet_ex_NBI_Wait, GASNet-EX specification 0.19 (gex_AD_OpNBI_U64)
 */
int vgasnet_ex_AD_OpNBI_U64(gex_AD_t domain, uint64_t *result, gex_Rank_t rank, void *address, gex_OP_t operation,
                            uint64_t operand1, uint64_t operand2, gex_Flags_t flags);

/**
 * Starts to change a float in a rank's segment in one step, without an event.
 *
 * Fatal: an operation that the domain does not have, an address that is not aligned or not in the segment, a null
 * result of an operation that fetches.
 *
 * @param domain a domain of this type
 * @param result local address that receives the number as it was; null unless the operation fetches
 * @param rank rank in the domain's team, or in the job with GEX_FLAG_RANK_IS_JOBRANK
 * @param address remote address of the number, aligned, in the segment of the rank
 * @param operation one of GEX_OP_, which the domain has
 * @param operand1 first operand; of GEX_OP_CAS and GEX_OP_FCAS the expected number
 * @param operand2 second operand; of GEX_OP_CAS and GEX_OP_FCAS the new number
 * @param flags GEX_FLAG_RANK_IS_JOBRANK, GEX_FLAG_AD_ACQ, GEX_FLAG_AD_REL and hints
 * @return 0, as nothing is refused
 * @see vgasnet_ex_NBI_Wait, GASNet-EX specification 0.19 (gex_AD_OpNBI_FLT)
 */
int vgasnet_ex_AD_OpNBI_FLT(gex_AD_t domain, float *result, gex_Rank_t rank, void *address, gex_OP_t operation, float operand1,
                            float operand2, gex_Flags_t flags);

/**
 * Starts to change a double in a rank's segment in one step, without an event.
 *
 * Fatal: an operation that the domain does not have, an address that is not aligned or not in the segment, a null
 * result of an operation that fetches.
 *
 * @param domain a domain of this type
 * @param result local address that receives the number as it was; null unless the operation fetches
 * @param rank rank in the domain's team, or in the job with GEX_FLAG_RANK_IS_JOBRANK
 * @param address remote address of the number, aligned, in the segment of the rank
 * @param operation one of GEX_OP_, which the domain has
 * @param operand1 first operand; of GEX_OP_CAS and GEX_OP_FCAS the expected number
 * @param operand2 second operand; of GEX_OP_CAS and GEX_OP_FCAS the new number
 * @param flags GEX_FLAG_RANK_IS_JOBRANK, GEX_FLAG_AD_ACQ, GEX_FLAG_AD_REL and hints
 * @return 0, as nothing is refused
 * @see vgasnet_ex_NBI_Wait, GASNet-EX specification 0.19 (gex_AD_OpNBI_DBL)
 */
int vgasnet_ex_AD_OpNBI_DBL(gex_AD_t domain, double *result, gex_Rank_t rank, void *address, gex_OP_t operation, double operand1,
                            double operand2, gex_Flags_t flags);

#ifdef __cplusplus
}
#endif

#endif
