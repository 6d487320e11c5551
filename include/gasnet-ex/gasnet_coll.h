/*
 * GASNet-EX: collectives, and those of GASNet-1 that it has kept. The functions are called in the same order on all ranks of a team.
 *
 * Operands of a reduction meet in the order of their ranks, so GEX_OP_USER_NC works. Functions of the client's run in threads of the
 * client that poll or wait.
 */
#ifndef GASNET_COLL_H
#define GASNET_COLL_H

#include <gasnetex.h>

#include <vgasnet_ex_coll.h>

/** Starts to copy bytes of one rank to all of a team. @see vgasnet_ex_Coll_BroadcastNB, GASNet-EX specification 0.19 */
#define gex_Coll_BroadcastNB vgasnet_ex_Coll_BroadcastNB
/**
 * Starts to combine elements of all ranks of a team at one.
 * @see vgasnet_ex_Coll_ReduceToOneNB, GASNet-EX specification 0.19
 */
#define gex_Coll_ReduceToOneNB vgasnet_ex_Coll_ReduceToOneNB
/**
 * Starts to combine elements of all ranks of a team at all.
 * @see vgasnet_ex_Coll_ReduceToAllNB, GASNet-EX specification 0.19
 */
#define gex_Coll_ReduceToAllNB vgasnet_ex_Coll_ReduceToAllNB

/* ---- GASNet-1's: what is under way is an event ---- */

#include <gasnet_collectives.h>

/* Hints that EX has added; they change nothing. */
#define GASNET_COLL_FIXED_THREADS_PER_NODE 0
#define GASNET_COLL_DISABLE_AUTOTUNE 0
#define GASNET_COLL_NO_IMAGES 0

typedef gex_Event_t gasnet_coll_handle_t;
#define GASNET_COLL_INVALID_HANDLE GEX_EVENT_INVALID

/** Tests whether one collective is complete. @see gex_Event_Test */
#define gasnet_coll_try_sync gex_Event_Test
/** Tests whether several collectives are all complete. @see vgasnet_coll_try_sync_all */
#define gasnet_coll_try_sync_all(events, count) gex_Event_TestAll(events, count, 0)
/** Tests whether at least one of several collectives is complete. @see vgasnet_coll_try_sync_some */
#define gasnet_coll_try_sync_some(events, count) gex_Event_TestSome(events, count, 0)
/** Waits until one collective is complete. @see gex_Event_Wait */
#define gasnet_coll_wait_sync gex_Event_Wait
/** Waits until several collectives are all complete. @see vgasnet_coll_wait_sync_all */
#define gasnet_coll_wait_sync_all(events, count) gex_Event_WaitAll(events, count, 0)
/** Waits until at least one of several collectives is complete. @see vgasnet_coll_wait_sync_some */
#define gasnet_coll_wait_sync_some(events, count) gex_Event_WaitSome(events, count, 0)

/**
 * Starts vgasnet_coll_broadcast: copies a block of one image to all. Returns an event.
 * @see vgasnet_coll_broadcast_nb
 */
#define gasnet_coll_broadcast_nb(...) ((gex_Event_t)vgasnet_coll_broadcast_nb(__VA_ARGS__))
/**
 * Starts vgasnet_coll_broadcastM: copies a block of one image to all, with lists of addresses. Returns an
 * event.
 * @see vgasnet_coll_broadcastM_nb
 */
#define gasnet_coll_broadcastM_nb(...) ((gex_Event_t)vgasnet_coll_broadcastM_nb(__VA_ARGS__))
/**
 * Starts vgasnet_coll_scatter: sends each image its block of one image's source. Returns an event.
 * @see vgasnet_coll_scatter_nb
 */
#define gasnet_coll_scatter_nb(...) ((gex_Event_t)vgasnet_coll_scatter_nb(__VA_ARGS__))
/**
 * Starts vgasnet_coll_scatterM: sends each image its block of one image's source, with lists of addresses.
 * Returns an event.
 * @see vgasnet_coll_scatterM_nb
 */
#define gasnet_coll_scatterM_nb(...) ((gex_Event_t)vgasnet_coll_scatterM_nb(__VA_ARGS__))
/**
 * Starts vgasnet_coll_gather: collects a block from each image at one. Returns an event.
 * @see vgasnet_coll_gather_nb
 */
#define gasnet_coll_gather_nb(...) ((gex_Event_t)vgasnet_coll_gather_nb(__VA_ARGS__))
/**
 * Starts vgasnet_coll_gatherM: collects a block from each image at one, with lists of addresses. Returns an
 * event.
 * @see vgasnet_coll_gatherM_nb
 */
#define gasnet_coll_gatherM_nb(...) ((gex_Event_t)vgasnet_coll_gatherM_nb(__VA_ARGS__))
/**
 * Starts vgasnet_coll_gather_all: collects a block from each image at all. Returns an event.
 * @see vgasnet_coll_gather_all_nb
 */
#define gasnet_coll_gather_all_nb(...) ((gex_Event_t)vgasnet_coll_gather_all_nb(__VA_ARGS__))
/**
 * Starts vgasnet_coll_gather_allM: collects a block from each image at all, with lists of addresses. Returns
 * an event.
 * @see vgasnet_coll_gather_allM_nb
 */
#define gasnet_coll_gather_allM_nb(...) ((gex_Event_t)vgasnet_coll_gather_allM_nb(__VA_ARGS__))
/**
 * Starts vgasnet_coll_exchange: exchanges blocks between all images: block j of image i becomes block i of
 * image j. Returns an event.
 * @see vgasnet_coll_exchange_nb
 */
#define gasnet_coll_exchange_nb(...) ((gex_Event_t)vgasnet_coll_exchange_nb(__VA_ARGS__))
/**
 * Starts vgasnet_coll_exchangeM: exchanges blocks between all images: block j of image i becomes block i of
 * image j, with lists of addresses. Returns an event.
 * @see vgasnet_coll_exchangeM_nb
 */
#define gasnet_coll_exchangeM_nb(...) ((gex_Event_t)vgasnet_coll_exchangeM_nb(__VA_ARGS__))
/**
 * Starts vgasnet_coll_reduce: combines elements of all images at one, element by element, in the order of the
 * images. Returns an event.
 * @see vgasnet_coll_reduce_nb
 */
#define gasnet_coll_reduce_nb(...) ((gex_Event_t)vgasnet_coll_reduce_nb(__VA_ARGS__))
/**
 * Starts vgasnet_coll_reduceM: combines elements of all images at one, element by element, in the order of
 * the images, with lists of addresses. Returns an event.
 * @see vgasnet_coll_reduceM_nb
 */
#define gasnet_coll_reduceM_nb(...) ((gex_Event_t)vgasnet_coll_reduceM_nb(__VA_ARGS__))

#endif
