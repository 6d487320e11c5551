/*
 * vgasnet: collectives and teams.
 *
 * Every image of a team calls the same collectives of the team in the same order, with the same sizes, root and flags.
 * Teams are independent of each other. An image is a rank, unless vgasnet_coll_init gives some ranks several: then each of
 * a rank's is a thread, and they are numbered rank by rank. That is so in VGASNET_TEAM_ALL only. In other teams an image is
 * a rank, by its number in the team, and one thread of it calls.
 *
 * All memory is local, anywhere. Until the collective is complete, sources must not change and destinations are undefined.
 *
 * With several images a collective under way takes memory of the rank besides: a block for each of its images; in exchange
 * two blocks for each of its images and each image of the job; at a root and in gather_all a block for each image of the job,
 * if ranks have different numbers of images. Each rank counts with as many images as that with the most.
 *
 * A collective makes progress in calls that poll or wait. At most 16 of a team are under way at a rank; further ones
 * wait for their turn.
 *
 * Fatal: a team that does not exist, a thread that is no image where its rank has several, a root that the team does not
 * have, unknown flags, a null address where there are bytes, different collectives on different ranks (as far as that is
 * seen) or of the images of a rank, a call before vgasnet_attach.
 */
#ifndef VGASNET_COLLECTIVES_H
#define VGASNET_COLLECTIVES_H

#include <stddef.h>
#include <stdint.h>
#include <vgasnet/barrier.h>
#include <vgasnet/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A team of ranks. It numbers them 0 to vgasnet_coll_team_size() - 1. */
typedef struct vgasnet_team *vgasnet_team_handle_t;
#define VGASNET_TEAM_ALL ((vgasnet_team_handle_t)(uintptr_t)1)

typedef uint32_t vgasnet_image_t;

/* A collective under way. It must be synced exactly once, like a vgasnet_handle_t. */
typedef struct vgasnet_collective *vgasnet_coll_handle_t;
#define VGASNET_COLL_INVALID_HANDLE ((vgasnet_coll_handle_t)0)

/* When a collective begins. MYSYNC: an image's memory is not used before that image has called. ALLSYNC: no memory is used
 * before all images have called. NOSYNC allows any time, and is done as MYSYNC. */
#define VGASNET_COLL_IN_NOSYNC (1 << 0)
#define VGASNET_COLL_IN_MYSYNC (1 << 1)
#define VGASNET_COLL_IN_ALLSYNC (1 << 2)
/* When it is complete at an image. MYSYNC: the memory of that image is not used any more and holds the result. ALLSYNC:
 * the same is true of every image. NOSYNC promises nothing before a barrier, and is done as MYSYNC. Without a flag for
 * in or out, ALLSYNC is meant. */
#define VGASNET_COLL_OUT_NOSYNC (1 << 3)
#define VGASNET_COLL_OUT_MYSYNC (1 << 4)
#define VGASNET_COLL_OUT_ALLSYNC (1 << 5)
/* Whether each image gives every image's addresses (SINGLE) or only those of its rank (LOCAL). It matters for lists of
 * addresses: with SINGLE they have an entry for every image of the team, without it one for each image of the rank. An
 * image's own entry is read in its own call. Both together are fatal. */
#define VGASNET_COLL_SINGLE (1 << 6)
#define VGASNET_COLL_LOCAL (1 << 7)
/* Hints; they change nothing. */
#define VGASNET_COLL_AGGREGATE (1 << 8)
#define VGASNET_COLL_DST_IN_SEGMENT (1 << 10)
#define VGASNET_COLL_SRC_IN_SEGMENT (1 << 11)

/* Reduces result_count elements of elem_size bytes: results[i] = left_operands[i] op right_operands[i]. results may be
 * left_operands. Called in threads that poll or wait. It must not call functions of the library. */
typedef void (*vgasnet_coll_reduce_fn_t)(void *results, size_t result_count, const void *left_operands, size_t left_count,
                                         const void *right_operands, size_t elem_size, int flags, int arg);
typedef struct {
    vgasnet_coll_reduce_fn_t fnptr;
    unsigned int flags;
} vgasnet_coll_fn_entry_t;
/* The place of a function in the table. */
typedef vgasnet_handlerarg_t vgasnet_coll_fn_handle_t;

/* Registers fn_count functions for reductions, the same ones on every rank. They replace those of an earlier call.
 * images: null, or the number of images of each rank of the job, the same on all; null means one a rank. my_image: the image
 * that the calling thread is, or anything with null images. Each image calls this, in its own thread, before its first
 * collective. Where a rank has one image, any thread of it may call collectives, one at a time. init_flags are ignored.
 * Fatal: a rank without image, an image of another rank, other numbers of images while images wait for one another. */
void vgasnet_coll_init(const vgasnet_image_t images[], vgasnet_image_t my_image, vgasnet_coll_fn_entry_t fn_tbl[],
                       size_t fn_count, int init_flags);

/*
 * broadcast: nbytes bytes at src of srcimage to dst of every image.
 * scatter: block i of nbytes bytes at src of srcimage to dst of image i.
 * gather: nbytes bytes at src of image i to block i at dst of dstimage.
 * gather_all: the same to dst of every image.
 * exchange: block j at src of image i to block i at dst of image j.
 * The dst of a rank's own block may be its src.
 *
 * reduce: elem_count elements of elem_size bytes at src of every image, reduced element by element with function func in
 * the order of the images, to dst of dstimage. dst may be src of that image. func gets func_arg and the flags of its
 * entry. src_blksz and src_offset are ignored.
 *
 * Where an image has no src or dst, the argument is ignored. The functions with M take lists of addresses, see
 * VGASNET_COLL_SINGLE.
 */
void vgasnet_coll_broadcast(vgasnet_team_handle_t team, void *dst, vgasnet_image_t srcimage, void *src, size_t nbytes,
                            int flags);
vgasnet_coll_handle_t vgasnet_coll_broadcast_nb(vgasnet_team_handle_t team, void *dst, vgasnet_image_t srcimage,
                                                void *src, size_t nbytes, int flags);
void vgasnet_coll_broadcastM(vgasnet_team_handle_t team, void *const dstlist[], vgasnet_image_t srcimage, void *src,
                             size_t nbytes, int flags);
vgasnet_coll_handle_t vgasnet_coll_broadcastM_nb(vgasnet_team_handle_t team, void *const dstlist[],
                                                 vgasnet_image_t srcimage, void *src, size_t nbytes, int flags);
void vgasnet_coll_scatter(vgasnet_team_handle_t team, void *dst, vgasnet_image_t srcimage, void *src, size_t nbytes,
                          int flags);
vgasnet_coll_handle_t vgasnet_coll_scatter_nb(vgasnet_team_handle_t team, void *dst, vgasnet_image_t srcimage,
                                              void *src, size_t nbytes, int flags);
void vgasnet_coll_scatterM(vgasnet_team_handle_t team, void *const dstlist[], vgasnet_image_t srcimage, void *src,
                           size_t nbytes, int flags);
vgasnet_coll_handle_t vgasnet_coll_scatterM_nb(vgasnet_team_handle_t team, void *const dstlist[],
                                               vgasnet_image_t srcimage, void *src, size_t nbytes, int flags);
void vgasnet_coll_gather(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst, void *src, size_t nbytes,
                         int flags);
vgasnet_coll_handle_t vgasnet_coll_gather_nb(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst, void *src,
                                             size_t nbytes, int flags);
void vgasnet_coll_gatherM(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst, void *const srclist[],
                          size_t nbytes, int flags);
vgasnet_coll_handle_t vgasnet_coll_gatherM_nb(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst,
                                              void *const srclist[], size_t nbytes, int flags);
void vgasnet_coll_gather_all(vgasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags);
vgasnet_coll_handle_t vgasnet_coll_gather_all_nb(vgasnet_team_handle_t team, void *dst, void *src, size_t nbytes,
                                                 int flags);
void vgasnet_coll_gather_allM(vgasnet_team_handle_t team, void *const dstlist[], void *const srclist[], size_t nbytes,
                              int flags);
vgasnet_coll_handle_t vgasnet_coll_gather_allM_nb(vgasnet_team_handle_t team, void *const dstlist[],
                                                  void *const srclist[], size_t nbytes, int flags);
void vgasnet_coll_exchange(vgasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags);
vgasnet_coll_handle_t vgasnet_coll_exchange_nb(vgasnet_team_handle_t team, void *dst, void *src, size_t nbytes,
                                               int flags);
void vgasnet_coll_exchangeM(vgasnet_team_handle_t team, void *const dstlist[], void *const srclist[], size_t nbytes,
                            int flags);
vgasnet_coll_handle_t vgasnet_coll_exchangeM_nb(vgasnet_team_handle_t team, void *const dstlist[],
                                                void *const srclist[], size_t nbytes, int flags);
void vgasnet_coll_reduce(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst, void *src, size_t src_blksz,
                         size_t src_offset, size_t elem_size, size_t elem_count, vgasnet_coll_fn_handle_t func,
                         int func_arg, int flags);
vgasnet_coll_handle_t vgasnet_coll_reduce_nb(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst, void *src,
                                             size_t src_blksz, size_t src_offset, size_t elem_size, size_t elem_count,
                                             vgasnet_coll_fn_handle_t func, int func_arg, int flags);
void vgasnet_coll_reduceM(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst, void *const srclist[],
                          size_t src_blksz, size_t src_offset, size_t elem_size, size_t elem_count,
                          vgasnet_coll_fn_handle_t func, int func_arg, int flags);
vgasnet_coll_handle_t vgasnet_coll_reduceM_nb(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst,
                                              void *const srclist[], size_t src_blksz, size_t src_offset,
                                              size_t elem_size, size_t elem_count, vgasnet_coll_fn_handle_t func,
                                              int func_arg, int flags);

/* As vgasnet_wait_syncnb, vgasnet_try_syncnb and their like. */
void vgasnet_coll_wait_sync(vgasnet_coll_handle_t handle);
int vgasnet_coll_try_sync(vgasnet_coll_handle_t handle);
void vgasnet_coll_wait_sync_all(vgasnet_coll_handle_t *handles, size_t numhandles);
int vgasnet_coll_try_sync_all(vgasnet_coll_handle_t *handles, size_t numhandles);
void vgasnet_coll_wait_sync_some(vgasnet_coll_handle_t *handles, size_t numhandles);
int vgasnet_coll_try_sync_some(vgasnet_coll_handle_t *handles, size_t numhandles);

/* The barrier of a team, as vgasnet_barrier_notify, _try and _wait, vgasnet_barrier and vgasnet_barrier_result. The
 * barrier of VGASNET_TEAM_ALL is the same barrier as theirs. With VGASNET_BARRIERFLAG_IMAGES every image of VGASNET_TEAM_ALL
 * takes part: each notifies, and each waits, in its own thread. */
void vgasnet_coll_barrier_notify(vgasnet_team_handle_t team, int id, int flags);
int vgasnet_coll_barrier_try(vgasnet_team_handle_t team, int id, int flags);
int vgasnet_coll_barrier_wait(vgasnet_team_handle_t team, int id, int flags);
int vgasnet_coll_barrier(vgasnet_team_handle_t team, int id, int flags);
int vgasnet_coll_barrier_result(vgasnet_team_handle_t team, int *id);

/* Makes a team of all ranks of parent that give the same color. They are in the order of relrank; if that is equal, of
 * their numbers in parent. Collective: one thread of each rank calls, also of ranks with several images, while no
 * collective of the parent is under way. clientdata is ignored. */
vgasnet_team_handle_t vgasnet_coll_team_split(vgasnet_team_handle_t parent, vgasnet_node_t color, vgasnet_node_t relrank,
                                              void *clientdata);

/* Makes a team of these ranks of the job, in this order. Only they call, one thread of each, with the same arguments; none waits for
 * another. Teams that exist at the same time and have the same first rank have different tags, up to 2147483647. Fatal: a rank that does
 * not exist or is there twice; a list without the calling rank. */
vgasnet_team_handle_t vgasnet_coll_team_of(size_t ranks, const vgasnet_node_t rank[], uint32_t tag);

/* Forgets a team at this rank. Its collectives and barriers must be complete here. Fatal: VGASNET_TEAM_ALL. */
void vgasnet_coll_team_free(vgasnet_team_handle_t team);

/* The number of ranks of a team. */
vgasnet_node_t vgasnet_coll_team_size(vgasnet_team_handle_t team);
/* The job's number of rank rank of the team. */
vgasnet_node_t vgasnet_coll_team_rank2node(vgasnet_team_handle_t team, vgasnet_node_t rank);
/* The team's number of the job's rank node. Fatal: a rank outside the team. */
vgasnet_node_t vgasnet_coll_team_node2rank(vgasnet_team_handle_t team, vgasnet_node_t node);

#ifdef __cplusplus
}
#endif

#endif
