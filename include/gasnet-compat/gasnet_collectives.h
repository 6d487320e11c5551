/* Names of GASNet-1's collectives that clients of GASNet-EX have as well: all but those of handles. Clients include gasnet_coll.h. */
#ifndef GASNET_COLLECTIVES_H
#define GASNET_COLLECTIVES_H

#include <vgasnet/collectives.h>

typedef vgasnet_team_handle_t gasnet_team_handle_t;
typedef vgasnet_image_t gasnet_image_t;
typedef vgasnet_coll_fn_handle_t gasnet_coll_fn_handle_t;
typedef vgasnet_coll_fn_entry_t gasnet_coll_fn_entry_t;
typedef vgasnet_coll_reduce_fn_t gasnet_coll_reduce_fn_t;

#define GASNET_TEAM_ALL VGASNET_TEAM_ALL
#define GASNET_COLL_IN_NOSYNC VGASNET_COLL_IN_NOSYNC
#define GASNET_COLL_IN_MYSYNC VGASNET_COLL_IN_MYSYNC
#define GASNET_COLL_IN_ALLSYNC VGASNET_COLL_IN_ALLSYNC
#define GASNET_COLL_OUT_NOSYNC VGASNET_COLL_OUT_NOSYNC
#define GASNET_COLL_OUT_MYSYNC VGASNET_COLL_OUT_MYSYNC
#define GASNET_COLL_OUT_ALLSYNC VGASNET_COLL_OUT_ALLSYNC
#define GASNET_COLL_SINGLE VGASNET_COLL_SINGLE
#define GASNET_COLL_LOCAL VGASNET_COLL_LOCAL
#define GASNET_COLL_AGGREGATE VGASNET_COLL_AGGREGATE
#define GASNET_COLL_DST_IN_SEGMENT VGASNET_COLL_DST_IN_SEGMENT
#define GASNET_COLL_SRC_IN_SEGMENT VGASNET_COLL_SRC_IN_SEGMENT

/** Sets the numbers of images, and registers functions for reductions. @see vgasnet_coll_init */
#define gasnet_coll_init vgasnet_coll_init

/** Copies a block of one image to all. @see vgasnet_coll_broadcast */
#define gasnet_coll_broadcast vgasnet_coll_broadcast
/** Copies a block of one image to all, with lists of addresses. @see vgasnet_coll_broadcastM */
#define gasnet_coll_broadcastM vgasnet_coll_broadcastM

/** Sends each image its block of one image's source. @see vgasnet_coll_scatter */
#define gasnet_coll_scatter vgasnet_coll_scatter
/** Sends each image its block of one image's source, with lists of addresses. @see vgasnet_coll_scatterM */
#define gasnet_coll_scatterM vgasnet_coll_scatterM

/** Collects a block from each image at one. @see vgasnet_coll_gather */
#define gasnet_coll_gather vgasnet_coll_gather
/** Collects a block from each image at one, with lists of addresses. @see vgasnet_coll_gatherM */
#define gasnet_coll_gatherM vgasnet_coll_gatherM

/** Collects a block from each image at all. @see vgasnet_coll_gather_all */
#define gasnet_coll_gather_all vgasnet_coll_gather_all
/** Collects a block from each image at all, with lists of addresses. @see vgasnet_coll_gather_allM */
#define gasnet_coll_gather_allM vgasnet_coll_gather_allM

/** Exchanges blocks between all images: block j of image i becomes block i of image j. @see vgasnet_coll_exchange */
#define gasnet_coll_exchange vgasnet_coll_exchange
/**
 * Exchanges blocks between all images: block j of image i becomes block i of image j, with lists of addresses.
 * @see vgasnet_coll_exchangeM
 */
#define gasnet_coll_exchangeM vgasnet_coll_exchangeM

/** Combines elements of all images at one, element by element, in the order of the images. @see vgasnet_coll_reduce */
#define gasnet_coll_reduce vgasnet_coll_reduce
/**
 * Combines elements of all images at one, element by element, in the order of the images, with lists of addresses.
 * @see vgasnet_coll_reduceM
 */
#define gasnet_coll_reduceM vgasnet_coll_reduceM

/* teams and their barriers */
/** Returns the number of ranks of a team. @see vgasnet_coll_team_size */
#define gasnet_coll_team_size vgasnet_coll_team_size
/** Makes a team of all ranks of another that give the same color. @see vgasnet_coll_team_split */
#define gasnet_coll_team_split vgasnet_coll_team_split
/** Forgets a team at this rank. @see vgasnet_coll_team_free */
#define gasnet_coll_team_free vgasnet_coll_team_free
/** Returns the number in the job of a team's rank. @see vgasnet_coll_team_rank2node */
#define gasnet_coll_team_rank2node vgasnet_coll_team_rank2node
/** Returns the number in a team of a rank of the job. @see vgasnet_coll_team_node2rank */
#define gasnet_coll_team_node2rank vgasnet_coll_team_node2rank
/** Arrives at the barrier of a team, and waits for nobody. @see vgasnet_coll_barrier_notify */
#define gasnet_coll_barrier_notify vgasnet_coll_barrier_notify
/** Waits until all ranks of a team have notified its barrier. @see vgasnet_coll_barrier_wait */
#define gasnet_coll_barrier_wait vgasnet_coll_barrier_wait
/** Tests whether all ranks of a team have notified its barrier. @see vgasnet_coll_barrier_try */
#define gasnet_coll_barrier_try vgasnet_coll_barrier_try
/** Arrives at the barrier of a team, and waits until all its ranks have. @see vgasnet_coll_barrier */
#define gasnet_coll_barrier vgasnet_coll_barrier
/** Tells the name of a team's last barrier. @see vgasnet_coll_barrier_result */
#define gasnet_coll_barrier_result vgasnet_coll_barrier_result

/** Does nothing: there is nothing to tune. @see vgasnet_coll_init */
static inline void gasnet_coll_dumpTuningState(char *filename, gasnet_team_handle_t team) { (void)filename, (void)team; }
/** Does nothing: there is nothing to tune. @see vgasnet_coll_init */
static inline void gasnet_coll_loadTuningState(char *filename, gasnet_team_handle_t team) { (void)filename, (void)team; }
/** Does nothing: there is no profile. @see vgasnet_coll_init */
static inline void gasnet_coll_dumpProfile(char *filename, gasnet_team_handle_t team) { (void)filename, (void)team; }

/* names from inside GASNet that some clients use */
/** Returns the number of ranks of a team. @see vgasnet_coll_team_size */
#define gasnete_coll_team_size vgasnet_coll_team_size
/** Makes a team of all ranks of another that give the same color. @see vgasnet_coll_team_split */
#define gasnete_coll_team_split vgasnet_coll_team_split
/** Forgets a team at this rank. @see vgasnet_coll_team_free */
#define gasnete_coll_team_free vgasnet_coll_team_free
/** Returns the number in the job of a team's rank. @see vgasnet_coll_team_rank2node */
#define gasnete_coll_team_rank2node vgasnet_coll_team_rank2node
/** Returns the number in a team of a rank of the job. @see vgasnet_coll_team_node2rank */
#define gasnete_coll_team_node2rank vgasnet_coll_team_node2rank
/* behind their arguments; nothing here */
#define GASNETE_THREAD_GET

#endif
