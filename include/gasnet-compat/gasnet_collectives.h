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

#define gasnet_coll_init vgasnet_coll_init

#define gasnet_coll_broadcast vgasnet_coll_broadcast
#define gasnet_coll_broadcastM vgasnet_coll_broadcastM

#define gasnet_coll_scatter vgasnet_coll_scatter
#define gasnet_coll_scatterM vgasnet_coll_scatterM

#define gasnet_coll_gather vgasnet_coll_gather
#define gasnet_coll_gatherM vgasnet_coll_gatherM

#define gasnet_coll_gather_all vgasnet_coll_gather_all
#define gasnet_coll_gather_allM vgasnet_coll_gather_allM

#define gasnet_coll_exchange vgasnet_coll_exchange
#define gasnet_coll_exchangeM vgasnet_coll_exchangeM

#define gasnet_coll_reduce vgasnet_coll_reduce
#define gasnet_coll_reduceM vgasnet_coll_reduceM

/* teams and their barriers */
#define gasnet_coll_team_size vgasnet_coll_team_size
#define gasnet_coll_team_split vgasnet_coll_team_split
#define gasnet_coll_team_free vgasnet_coll_team_free
#define gasnet_coll_team_rank2node vgasnet_coll_team_rank2node
#define gasnet_coll_team_node2rank vgasnet_coll_team_node2rank
#define gasnet_coll_barrier_notify vgasnet_coll_barrier_notify
#define gasnet_coll_barrier_wait vgasnet_coll_barrier_wait
#define gasnet_coll_barrier_try vgasnet_coll_barrier_try
#define gasnet_coll_barrier vgasnet_coll_barrier
#define gasnet_coll_barrier_result vgasnet_coll_barrier_result

/* There is nothing to tune, so nothing is written or read. */
static inline void gasnet_coll_dumpTuningState(char *filename, gasnet_team_handle_t team) { (void)filename, (void)team; }
static inline void gasnet_coll_loadTuningState(char *filename, gasnet_team_handle_t team) { (void)filename, (void)team; }
static inline void gasnet_coll_dumpProfile(char *filename, gasnet_team_handle_t team) { (void)filename, (void)team; }

/* names from inside GASNet that some clients use */
#define gasnete_coll_team_size vgasnet_coll_team_size
#define gasnete_coll_team_split vgasnet_coll_team_split
#define gasnete_coll_team_free vgasnet_coll_team_free
#define gasnete_coll_team_rank2node vgasnet_coll_team_rank2node
#define gasnete_coll_team_node2rank vgasnet_coll_team_node2rank
/* behind their arguments; nothing here */
#define GASNETE_THREAD_GET

#endif
