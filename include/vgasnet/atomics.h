/*
 * vgasnet: atomic operations on numbers of 32 and 64 bits in any segment.
 *
 * An operation is carried out where the number's page is, and atomic against all others of this chapter on the same number,
 * from whichever rank. It is not atomic against gets, puts, loads and stores: they may see the number before or after, and
 * a put at the same time may be lost. Nor is it atomic against processor atomics of C or C++ by the segment's own rank.
 *
 * A number's address is a multiple of its size. The halves of a number of 64 bits are not used together with the whole.
 * Numbers with a sign are given and returned as the unsigned ones with the same bits:
 *
 *   int64_t before = (int64_t)vgasnet_atomic_u64(node, addr, VGASNET_ATOMIC_ADD, (uint64_t)-1, 0);
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

/* ---- operations: what becomes of the number ---- */

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

/* ---- functions ---- */

/**
 * Changes a number of 32 bits in a rank's segment in one step, and returns what it was.
 *
 * Atomic against all other operations of this chapter on the same number, from whichever rank; not against gets, puts,
 * loads and stores. Not collective, any thread.
 *
 * Fatal: a number that is not aligned to its size or not in the segment of node, an operation that does not exist, a
 * call before vgasnet_attach.
 *
 * @param node rank with the number in its segment, 0 to vgasnet_nodes() - 1
 * @param addr remote address of the number, a multiple of 4
 * @param op what becomes of the number: VGASNET_ATOMIC_ADD to VGASNET_ATOMIC_IMAX
 * @param operand operand of op
 * @param compare the number that VGASNET_ATOMIC_CAS expects; other operations ignore it
 * @return the number before the operation
 * @see vgasnet_atomic_u32_nb, vgasnet_atomic_u32_nbi, vgasnet_atomic_fetch_add_u32, vgasnet_atomic_cas_u32
 */
uint32_t vgasnet_atomic_u32(vgasnet_node_t node, void *addr, int op, uint32_t operand, uint32_t compare);

/**
 * Changes a number of 64 bits in a rank's segment in one step, and returns what it was.
 *
 * Atomic against all other operations of this chapter on the same number, from whichever rank; not against gets, puts,
 * loads and stores. Not collective, any thread.
 *
 * Fatal: a number that is not aligned to its size or not in the segment of node, an operation that does not exist, a
 * call before vgasnet_attach.
 *
 * @param node rank with the number in its segment, 0 to vgasnet_nodes() - 1
 * @param addr remote address of the number, a multiple of 8
 * @param op what becomes of the number: VGASNET_ATOMIC_ADD to VGASNET_ATOMIC_IMAX
 * @param operand operand of op
 * @param compare the number that VGASNET_ATOMIC_CAS expects; other operations ignore it
 * @return the number before the operation
 * @see vgasnet_atomic_u64_nb, vgasnet_atomic_u64_nbi, vgasnet_atomic_fetch_add_u64, vgasnet_atomic_cas_u64
 */
uint64_t vgasnet_atomic_u64(vgasnet_node_t node, void *addr, int op, uint64_t operand, uint64_t compare);

/**
 * Starts to change a number of 32 bits in a rank's segment in one step, with a handle.
 *
 * It is complete when the handle has been synced. Operations in flight together are done in any order. Not collective,
 * any thread.
 *
 * Fatal: a number that is not aligned to its size or not in the segment of node, an operation that does not exist, a
 * call before vgasnet_attach.
 *
 * @param old local address that receives the number as it was; null if nobody needs it
 * @param node rank with the number in its segment, 0 to vgasnet_nodes() - 1
 * @param addr remote address of the number, a multiple of 4
 * @param op what becomes of the number: VGASNET_ATOMIC_ADD to VGASNET_ATOMIC_IMAX
 * @param operand operand of op
 * @param compare the number that VGASNET_ATOMIC_CAS expects; other operations ignore it
 * @return a handle to be synced exactly once; VGASNET_INVALID_HANDLE if the operation is complete already
 * @see vgasnet_wait_syncnb, vgasnet_atomic_u32
 */
vgasnet_handle_t vgasnet_atomic_u32_nb(uint32_t *old, vgasnet_node_t node, void *addr, int op, uint32_t operand, uint32_t compare);

/**
 * Starts to change a number of 64 bits in a rank's segment in one step, with a handle.
 *
 * It is complete when the handle has been synced. Operations in flight together are done in any order. Not collective,
 * any thread.
 *
 * Fatal: a number that is not aligned to its size or not in the segment of node, an operation that does not exist, a
 * call before vgasnet_attach.
 *
 * @param old local address that receives the number as it was; null if nobody needs it
 * @param node rank with the number in its segment, 0 to vgasnet_nodes() - 1
 * @param addr remote address of the number, a multiple of 8
 * @param op what becomes of the number: VGASNET_ATOMIC_ADD to VGASNET_ATOMIC_IMAX
 * @param operand operand of op
 * @param compare the number that VGASNET_ATOMIC_CAS expects; other operations ignore it
 * @return a handle to be synced exactly once; VGASNET_INVALID_HANDLE if the operation is complete already
 * @see vgasnet_wait_syncnb, vgasnet_atomic_u64
 */
vgasnet_handle_t vgasnet_atomic_u64_nb(uint64_t *old, vgasnet_node_t node, void *addr, int op, uint64_t operand, uint64_t compare);

/**
 * Starts to change a number of 32 bits in a rank's segment in one step, without a handle.
 *
 * It counts as an implicit put of the calling thread. Not collective, any thread.
 *
 * Fatal: a number that is not aligned to its size or not in the segment of node, an operation that does not exist, a
 * call before vgasnet_attach.
 *
 * @param old local address that receives the number as it was; null if nobody needs it
 * @param node rank with the number in its segment, 0 to vgasnet_nodes() - 1
 * @param addr remote address of the number, a multiple of 4
 * @param op what becomes of the number: VGASNET_ATOMIC_ADD to VGASNET_ATOMIC_IMAX
 * @param operand operand of op
 * @param compare the number that VGASNET_ATOMIC_CAS expects; other operations ignore it
 * @see vgasnet_wait_syncnbi_puts, vgasnet_atomic_u32
 */
void vgasnet_atomic_u32_nbi(uint32_t *old, vgasnet_node_t node, void *addr, int op, uint32_t operand, uint32_t compare);

/**
 * Starts to change a number of 64 bits in a rank's segment in one step, without a handle.
 *
 * It counts as an implicit put of the calling thread. Not collective, any thread.
 *
 * Fatal: a number that is not aligned to its size or not in the segment of node, an operation that does not exist, a
 * call before vgasnet_attach.
 *
 * @param old local address that receives the number as it was; null if nobody needs it
 * @param node rank with the number in its segment, 0 to vgasnet_nodes() - 1
 * @param addr remote address of the number, a multiple of 8
 * @param op what becomes of the number: VGASNET_ATOMIC_ADD to VGASNET_ATOMIC_IMAX
 * @param operand operand of op
 * @param compare the number that VGASNET_ATOMIC_CAS expects; other operations ignore it
 * @see vgasnet_wait_syncnbi_puts, vgasnet_atomic_u64
 */
void vgasnet_atomic_u64_nbi(uint64_t *old, vgasnet_node_t node, void *addr, int op, uint64_t operand, uint64_t compare);

/* ---- common operations by name ---- */

/**
 * Adds to a number of 32 bits in a rank's segment in one step; the sum wraps.
 *
 * A macro for vgasnet_atomic_u32. Not collective, any thread.
 *
 * Fatal: a number that is not aligned to its size or not in the segment of node, an operation that does not exist, a
 * call before vgasnet_attach.
 *
 * @param node rank with the number in its segment, 0 to vgasnet_nodes() - 1
 * @param addr remote address of the number, a multiple of 4
 * @param operand what is added
 * @return the number before the operation
 * @see vgasnet_atomic_u32
 */
#define vgasnet_atomic_fetch_add_u32(node, addr, operand) vgasnet_atomic_u32(node, addr, VGASNET_ATOMIC_ADD, operand, 0)

/**
 * Adds to a number of 64 bits in a rank's segment in one step; the sum wraps.
 *
 * A macro for vgasnet_atomic_u64. Not collective, any thread.
 *
 * Fatal: a number that is not aligned to its size or not in the segment of node, an operation that does not exist, a
 * call before vgasnet_attach.
 *
 * @param node rank with the number in its segment, 0 to vgasnet_nodes() - 1
 * @param addr remote address of the number, a multiple of 8
 * @param operand what is added
 * @return the number before the operation
 * @see vgasnet_atomic_u64
 */
#define vgasnet_atomic_fetch_add_u64(node, addr, operand) vgasnet_atomic_u64(node, addr, VGASNET_ATOMIC_ADD, operand, 0)

/**
 * Replaces a number of 32 bits in a rank's segment in one step.
 *
 * A macro for vgasnet_atomic_u32. Not collective, any thread.
 *
 * Fatal: a number that is not aligned to its size or not in the segment of node, an operation that does not exist, a
 * call before vgasnet_attach.
 *
 * @param node rank with the number in its segment, 0 to vgasnet_nodes() - 1
 * @param addr remote address of the number, a multiple of 4
 * @param operand the new number
 * @return the number before the operation
 * @see vgasnet_atomic_u32
 */
#define vgasnet_atomic_swap_u32(node, addr, operand) vgasnet_atomic_u32(node, addr, VGASNET_ATOMIC_SWAP, operand, 0)

/**
 * Replaces a number of 64 bits in a rank's segment in one step.
 *
 * A macro for vgasnet_atomic_u64. Not collective, any thread.
 *
 * Fatal: a number that is not aligned to its size or not in the segment of node, an operation that does not exist, a
 * call before vgasnet_attach.
 *
 * @param node rank with the number in its segment, 0 to vgasnet_nodes() - 1
 * @param addr remote address of the number, a multiple of 8
 * @param operand the new number
 * @return the number before the operation
 * @see vgasnet_atomic_u64
 */
#define vgasnet_atomic_swap_u64(node, addr, operand) vgasnet_atomic_u64(node, addr, VGASNET_ATOMIC_SWAP, operand, 0)

/**
 * Replaces a number of 32 bits in a rank's segment if it is the expected one, in one step.
 *
 * A macro for vgasnet_atomic_u32. Not collective, any thread.
 *
 * Fatal: a number that is not aligned to its size or not in the segment of node, an operation that does not exist, a
 * call before vgasnet_attach.
 *
 * @param node rank with the number in its segment, 0 to vgasnet_nodes() - 1
 * @param addr remote address of the number, a multiple of 4
 * @param compare the number that is expected
 * @param operand the new number
 * @return the number before the operation; it was replaced if this is compare
 * @see vgasnet_atomic_u32
 */
#define vgasnet_atomic_cas_u32(node, addr, compare, operand) vgasnet_atomic_u32(node, addr, VGASNET_ATOMIC_CAS, operand, compare)

/**
 * Replaces a number of 64 bits in a rank's segment if it is the expected one, in one step.
 *
 * A macro for vgasnet_atomic_u64. Not collective, any thread.
 *
 * Fatal: a number that is not aligned to its size or not in the segment of node, an operation that does not exist, a
 * call before vgasnet_attach.
 *
 * @param node rank with the number in its segment, 0 to vgasnet_nodes() - 1
 * @param addr remote address of the number, a multiple of 8
 * @param compare the number that is expected
 * @param operand the new number
 * @return the number before the operation; it was replaced if this is compare
 * @see vgasnet_atomic_u64
 */
#define vgasnet_atomic_cas_u64(node, addr, compare, operand) vgasnet_atomic_u64(node, addr, VGASNET_ATOMIC_CAS, operand, compare)

#ifdef __cplusplus
}
#endif

#endif
