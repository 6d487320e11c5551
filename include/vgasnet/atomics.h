/*
 * vgasnet: atomic operations on numbers of 32 and 64 bits in any segment.
 *
 * An operation is carried out where the number's page is, and atomic against all others of this chapter on the same number,
 * from whichever rank. Against gets, puts, loads and stores it is not: those may see a number before or after, and a put at
 * the same time may be lost. Processor atomics of C or C++ by the segment's own rank are not either.
 *
 * addr is a remote address, a multiple of the number's size, and so are the two halves of a number never used together with
 * the whole. What it was before goes to *old, or is returned. old is a local address, or null: then nobody needs it.
 * compare matters to VGASNET_ATOMIC_CAS only. Numbers with a sign are given and returned as the unsigned ones with the same
 * bits: (int64_t)vgasnet_atomic_u64(...).
 *
 * Fatal: an address that is not aligned, or not in the segment of the rank, and an operation that does not exist.
 */
#ifndef VGASNET_ATOMICS_H
#define VGASNET_ATOMICS_H

#include <stdint.h>
#include <vgasnet/nonblocking.h>
#include <vgasnet/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What becomes of the number: */
#define VGASNET_ATOMIC_ADD 0 /* the sum, which wraps */
#define VGASNET_ATOMIC_AND 1 /* the bits that the operand has, too */
#define VGASNET_ATOMIC_OR 2 /* with the bits that the operand has */
#define VGASNET_ATOMIC_XOR 3 /* with those bits changed */
#define VGASNET_ATOMIC_SWAP 4 /* the operand */
#define VGASNET_ATOMIC_CAS 5 /* the operand, if the number is compare; else it stays */
#define VGASNET_ATOMIC_MIN 6 /* the smaller one */
#define VGASNET_ATOMIC_MAX 7 /* the larger one */
#define VGASNET_ATOMIC_IMIN 8 /* the smaller one, of numbers with a sign */
#define VGASNET_ATOMIC_IMAX 9 /* the larger one, of numbers with a sign */

/* Complete on return, which is what the number was. */
uint32_t vgasnet_atomic_u32(vgasnet_node_t node, void *addr, int op, uint32_t operand, uint32_t compare);
uint64_t vgasnet_atomic_u64(vgasnet_node_t node, void *addr, int op, uint64_t operand, uint64_t compare);

/* Complete when the handle has been synced. Operations in flight together are done in any order. */
vgasnet_handle_t vgasnet_atomic_u32_nb(uint32_t *old, vgasnet_node_t node, void *addr, int op, uint32_t operand, uint32_t compare);
vgasnet_handle_t vgasnet_atomic_u64_nb(uint64_t *old, vgasnet_node_t node, void *addr, int op, uint64_t operand, uint64_t compare);

/* They count as implicit puts. */
void vgasnet_atomic_u32_nbi(uint32_t *old, vgasnet_node_t node, void *addr, int op, uint32_t operand, uint32_t compare);
void vgasnet_atomic_u64_nbi(uint64_t *old, vgasnet_node_t node, void *addr, int op, uint64_t operand, uint64_t compare);

/* The common ones by name. Each returns what the number was. */
#define vgasnet_atomic_fetch_add_u32(node, addr, operand) vgasnet_atomic_u32(node, addr, VGASNET_ATOMIC_ADD, operand, 0)
#define vgasnet_atomic_fetch_add_u64(node, addr, operand) vgasnet_atomic_u64(node, addr, VGASNET_ATOMIC_ADD, operand, 0)
#define vgasnet_atomic_swap_u32(node, addr, operand) vgasnet_atomic_u32(node, addr, VGASNET_ATOMIC_SWAP, operand, 0)
#define vgasnet_atomic_swap_u64(node, addr, operand) vgasnet_atomic_u64(node, addr, VGASNET_ATOMIC_SWAP, operand, 0)
#define vgasnet_atomic_cas_u32(node, addr, compare, operand) vgasnet_atomic_u32(node, addr, VGASNET_ATOMIC_CAS, operand, compare)
#define vgasnet_atomic_cas_u64(node, addr, compare, operand) vgasnet_atomic_u64(node, addr, VGASNET_ATOMIC_CAS, operand, compare)

#ifdef __cplusplus
}
#endif

#endif
