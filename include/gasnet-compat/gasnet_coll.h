/* GASNet-1's collectives, by their own names. */
#ifndef GASNET_COLL_H
#define GASNET_COLL_H

#include "gasnet.h"

#include "gasnet_collectives.h"

typedef vgasnet_coll_handle_t gasnet_coll_handle_t;
#define GASNET_COLL_INVALID_HANDLE VGASNET_COLL_INVALID_HANDLE

/** Tests whether one collective is complete. @see vgasnet_coll_try_sync */
#define gasnet_coll_try_sync vgasnet_coll_try_sync
/** Waits until one collective is complete. @see vgasnet_coll_wait_sync */
#define gasnet_coll_wait_sync vgasnet_coll_wait_sync
/** Tests whether several collectives are all complete. @see vgasnet_coll_try_sync_all */
#define gasnet_coll_try_sync_all vgasnet_coll_try_sync_all
/** Waits until several collectives are all complete. @see vgasnet_coll_wait_sync_all */
#define gasnet_coll_wait_sync_all vgasnet_coll_wait_sync_all
/** Tests whether at least one of several collectives is complete. @see vgasnet_coll_try_sync_some */
#define gasnet_coll_try_sync_some vgasnet_coll_try_sync_some
/** Waits until at least one of several collectives is complete. @see vgasnet_coll_wait_sync_some */
#define gasnet_coll_wait_sync_some vgasnet_coll_wait_sync_some

/** Starts vgasnet_coll_broadcast: copies a block of one image to all. @see vgasnet_coll_broadcast_nb */
#define gasnet_coll_broadcast_nb vgasnet_coll_broadcast_nb
/**
 * Starts vgasnet_coll_broadcastM: copies a block of one image to all, with lists of addresses.
 * @see vgasnet_coll_broadcastM_nb
 */
#define gasnet_coll_broadcastM_nb vgasnet_coll_broadcastM_nb
/**
 * Starts vgasnet_coll_scatter: sends each image its block of one image's source.
 * @see vgasnet_coll_scatter_nb
 */
#define gasnet_coll_scatter_nb vgasnet_coll_scatter_nb
/**
 * Starts vgasnet_coll_scatterM: sends each image its block of one image's source, with lists of addresses.
 * @see vgasnet_coll_scatterM_nb
 */
#define gasnet_coll_scatterM_nb vgasnet_coll_scatterM_nb
/** Starts vgasnet_coll_gather: collects a block from each image at one. @see vgasnet_coll_gather_nb */
#define gasnet_coll_gather_nb vgasnet_coll_gather_nb
/**
 * Starts vgasnet_coll_gatherM: collects a block from each image at one, with lists of addresses.
 * @see vgasnet_coll_gatherM_nb
 */
#define gasnet_coll_gatherM_nb vgasnet_coll_gatherM_nb
/**
 * Starts vgasnet_coll_gather_all: collects a block from each image at all.
 * @see vgasnet_coll_gather_all_nb
 */
#define gasnet_coll_gather_all_nb vgasnet_coll_gather_all_nb
/**
 * Starts vgasnet_coll_gather_allM: collects a block from each image at all, with lists of addresses.
 * @see vgasnet_coll_gather_allM_nb
 */
#define gasnet_coll_gather_allM_nb vgasnet_coll_gather_allM_nb
/**
 * Starts vgasnet_coll_exchange: exchanges blocks between all images: block j of image i becomes block i of
 * image j.
 * @see vgasnet_coll_exchange_nb
 */
#define gasnet_coll_exchange_nb vgasnet_coll_exchange_nb
/**
 * Starts vgasnet_coll_exchangeM: exchanges blocks between all images: block j of image i becomes block i of
 * image j, with lists of addresses.
 * @see vgasnet_coll_exchangeM_nb
 */
#define gasnet_coll_exchangeM_nb vgasnet_coll_exchangeM_nb
/**
 * Starts vgasnet_coll_reduce: combines elements of all images at one, element by element, in the order of the
 * images.
 * @see vgasnet_coll_reduce_nb
 */
#define gasnet_coll_reduce_nb vgasnet_coll_reduce_nb
/**
 * Starts vgasnet_coll_reduceM: combines elements of all images at one, element by element, in the order of
 * the images, with lists of addresses.
 * @see vgasnet_coll_reduceM_nb
 */
#define gasnet_coll_reduceM_nb vgasnet_coll_reduceM_nb

#endif
