/*
 * vgasnet: collectives.
 *
 * Every image of a team (teams.h) calls the same collectives of the team in the same order, with the same sizes, root and
 * flags. Teams are independent of each other. images.h has images, flags and completion.
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
#include <vgasnet/images.h>
#include <vgasnet/reductions.h>
#include <vgasnet/teams.h>
#include <vgasnet/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Copies a block of one image to all.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags. The dst of an
 * image's own block may be its src.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach.
 *
 * @param team the team
 * @param dst local address of the block that is received
 * @param srcimage image that has the source
 * @param src local address of the block that is sent; ignored on other images than srcimage
 * @param nbytes bytes of a block, 0 or more; the same on all images
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @see vgasnet_coll_broadcast_nb, vgasnet_coll_broadcastM
 */
void vgasnet_coll_broadcast(vgasnet_team_handle_t team, void *dst, vgasnet_image_t srcimage, void *src, size_t nbytes,
                            int flags);

/**
 * Starts vgasnet_coll_broadcast: copies a block of one image to all.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags. Until the handle
 * is synced, sources must not change and destinations are undefined.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach.
 *
 * @param team the team
 * @param dst local address of the block that is received
 * @param srcimage image that has the source
 * @param src local address of the block that is sent; ignored on other images than srcimage
 * @param nbytes bytes of a block, 0 or more; the same on all images
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @return a handle to be synced exactly once, by vgasnet_coll_wait_sync and its like
 * @see vgasnet_coll_wait_sync, vgasnet_coll_broadcast
 */
vgasnet_coll_handle_t vgasnet_coll_broadcast_nb(vgasnet_team_handle_t team, void *dst, vgasnet_image_t srcimage,
                                                void *src, size_t nbytes, int flags);

/**
 * Copies a block of one image to all, with lists of addresses.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach.
 *
 * @param team the team
 * @param dstlist local addresses of the block that is received, with VGASNET_COLL_SINGLE one for each image of the
 *     team, else one for each image of this rank
 * @param srcimage image that has the source
 * @param src local address of the block that is sent; ignored on other images than srcimage
 * @param nbytes bytes of a block, 0 or more; the same on all images
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @see vgasnet_coll_broadcastM_nb, vgasnet_coll_broadcast
 */
void vgasnet_coll_broadcastM(vgasnet_team_handle_t team, void *const dstlist[], vgasnet_image_t srcimage, void *src,
                             size_t nbytes, int flags);

/**
 * Starts vgasnet_coll_broadcastM: copies a block of one image to all, with lists of addresses.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags. Until the handle
 * is synced, sources must not change and destinations are undefined.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach.
 *
 * @param team the team
 * @param dstlist local addresses of the block that is received, with VGASNET_COLL_SINGLE one for each image of the
 *     team, else one for each image of this rank
 * @param srcimage image that has the source
 * @param src local address of the block that is sent; ignored on other images than srcimage
 * @param nbytes bytes of a block, 0 or more; the same on all images
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @return a handle to be synced exactly once, by vgasnet_coll_wait_sync and its like
 * @see vgasnet_coll_wait_sync, vgasnet_coll_broadcastM
 */
vgasnet_coll_handle_t vgasnet_coll_broadcastM_nb(vgasnet_team_handle_t team, void *const dstlist[],
                                                 vgasnet_image_t srcimage, void *src, size_t nbytes, int flags);

/**
 * Sends each image its block of one image's source.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags. The dst of an
 * image's own block may be its src.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach.
 *
 * @param team the team
 * @param dst local address of the block that is received
 * @param srcimage image that has the source
 * @param src local address of the source: a block for each image of the team, in their order; ignored on other images
 *     than srcimage
 * @param nbytes bytes of a block, 0 or more; the same on all images
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @see vgasnet_coll_scatter_nb, vgasnet_coll_scatterM
 */
void vgasnet_coll_scatter(vgasnet_team_handle_t team, void *dst, vgasnet_image_t srcimage, void *src, size_t nbytes,
                          int flags);

/**
 * Starts vgasnet_coll_scatter: sends each image its block of one image's source.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags. Until the handle
 * is synced, sources must not change and destinations are undefined.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach.
 *
 * @param team the team
 * @param dst local address of the block that is received
 * @param srcimage image that has the source
 * @param src local address of the source: a block for each image of the team, in their order; ignored on other images
 *     than srcimage
 * @param nbytes bytes of a block, 0 or more; the same on all images
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @return a handle to be synced exactly once, by vgasnet_coll_wait_sync and its like
 * @see vgasnet_coll_wait_sync, vgasnet_coll_scatter
 */
vgasnet_coll_handle_t vgasnet_coll_scatter_nb(vgasnet_team_handle_t team, void *dst, vgasnet_image_t srcimage,
                                              void *src, size_t nbytes, int flags);

/**
 * Sends each image its block of one image's source, with lists of addresses.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach.
 *
 * @param team the team
 * @param dstlist local addresses of the block that is received, with VGASNET_COLL_SINGLE one for each image of the
 *     team, else one for each image of this rank
 * @param srcimage image that has the source
 * @param src local address of the source: a block for each image of the team, in their order; ignored on other images
 *     than srcimage
 * @param nbytes bytes of a block, 0 or more; the same on all images
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @see vgasnet_coll_scatterM_nb, vgasnet_coll_scatter
 */
void vgasnet_coll_scatterM(vgasnet_team_handle_t team, void *const dstlist[], vgasnet_image_t srcimage, void *src,
                           size_t nbytes, int flags);

/**
 * Starts vgasnet_coll_scatterM: sends each image its block of one image's source, with lists of addresses.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags. Until the handle
 * is synced, sources must not change and destinations are undefined.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach.
 *
 * @param team the team
 * @param dstlist local addresses of the block that is received, with VGASNET_COLL_SINGLE one for each image of the
 *     team, else one for each image of this rank
 * @param srcimage image that has the source
 * @param src local address of the source: a block for each image of the team, in their order; ignored on other images
 *     than srcimage
 * @param nbytes bytes of a block, 0 or more; the same on all images
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @return a handle to be synced exactly once, by vgasnet_coll_wait_sync and its like
 * @see vgasnet_coll_wait_sync, vgasnet_coll_scatterM
 */
vgasnet_coll_handle_t vgasnet_coll_scatterM_nb(vgasnet_team_handle_t team, void *const dstlist[],
                                               vgasnet_image_t srcimage, void *src, size_t nbytes, int flags);

/**
 * Collects a block from each image at one.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags. The dst of an
 * image's own block may be its src.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach.
 *
 * @param team the team
 * @param dstimage image that gets the result
 * @param dst local address of the result: a block for each image of the team, in their order; ignored on other images
 *     than dstimage
 * @param src local address of the block that is sent
 * @param nbytes bytes of a block, 0 or more; the same on all images
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @see vgasnet_coll_gather_nb, vgasnet_coll_gatherM
 */
void vgasnet_coll_gather(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst, void *src, size_t nbytes,
                         int flags);

/**
 * Starts vgasnet_coll_gather: collects a block from each image at one.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags. Until the handle
 * is synced, sources must not change and destinations are undefined.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach.
 *
 * @param team the team
 * @param dstimage image that gets the result
 * @param dst local address of the result: a block for each image of the team, in their order; ignored on other images
 *     than dstimage
 * @param src local address of the block that is sent
 * @param nbytes bytes of a block, 0 or more; the same on all images
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @return a handle to be synced exactly once, by vgasnet_coll_wait_sync and its like
 * @see vgasnet_coll_wait_sync, vgasnet_coll_gather
 */
vgasnet_coll_handle_t vgasnet_coll_gather_nb(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst, void *src,
                                             size_t nbytes, int flags);

/**
 * Collects a block from each image at one, with lists of addresses.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach.
 *
 * @param team the team
 * @param dstimage image that gets the result
 * @param dst local address of the result: a block for each image of the team, in their order; ignored on other images
 *     than dstimage
 * @param srclist local addresses of the block that is sent, with VGASNET_COLL_SINGLE one for each image of the team,
 *     else one for each image of this rank
 * @param nbytes bytes of a block, 0 or more; the same on all images
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @see vgasnet_coll_gatherM_nb, vgasnet_coll_gather
 */
void vgasnet_coll_gatherM(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst, void *const srclist[],
                          size_t nbytes, int flags);

/**
 * Starts vgasnet_coll_gatherM: collects a block from each image at one, with lists of addresses.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags. Until the handle
 * is synced, sources must not change and destinations are undefined.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach.
 *
 * @param team the team
 * @param dstimage image that gets the result
 * @param dst local address of the result: a block for each image of the team, in their order; ignored on other images
 *     than dstimage
 * @param srclist local addresses of the block that is sent, with VGASNET_COLL_SINGLE one for each image of the team,
 *     else one for each image of this rank
 * @param nbytes bytes of a block, 0 or more; the same on all images
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @return a handle to be synced exactly once, by vgasnet_coll_wait_sync and its like
 * @see vgasnet_coll_wait_sync, vgasnet_coll_gatherM
 */
vgasnet_coll_handle_t vgasnet_coll_gatherM_nb(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst,
                                              void *const srclist[], size_t nbytes, int flags);

/**
 * Collects a block from each image at all.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags. The dst of an
 * image's own block may be its src.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach.
 *
 * @param team the team
 * @param dst local address of the result: a block for each image of the team, in their order
 * @param src local address of the block that is sent
 * @param nbytes bytes of a block, 0 or more; the same on all images
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @see vgasnet_coll_gather_all_nb, vgasnet_coll_gather_allM
 */
void vgasnet_coll_gather_all(vgasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags);

/**
 * Starts vgasnet_coll_gather_all: collects a block from each image at all.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags. Until the handle
 * is synced, sources must not change and destinations are undefined.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach.
 *
 * @param team the team
 * @param dst local address of the result: a block for each image of the team, in their order
 * @param src local address of the block that is sent
 * @param nbytes bytes of a block, 0 or more; the same on all images
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @return a handle to be synced exactly once, by vgasnet_coll_wait_sync and its like
 * @see vgasnet_coll_wait_sync, vgasnet_coll_gather_all
 */
vgasnet_coll_handle_t vgasnet_coll_gather_all_nb(vgasnet_team_handle_t team, void *dst, void *src, size_t nbytes,
                                                 int flags);

/**
 * Collects a block from each image at all, with lists of addresses.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach.
 *
 * @param team the team
 * @param dstlist local addresses of the result: a block for each image of the team, in their order, with
 *     VGASNET_COLL_SINGLE one for each image of the team, else one for each image of this rank
 * @param srclist local addresses of the block that is sent, with VGASNET_COLL_SINGLE one for each image of the team,
 *     else one for each image of this rank
 * @param nbytes bytes of a block, 0 or more; the same on all images
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @see vgasnet_coll_gather_allM_nb, vgasnet_coll_gather_all
 */
void vgasnet_coll_gather_allM(vgasnet_team_handle_t team, void *const dstlist[], void *const srclist[], size_t nbytes,
                              int flags);

/**
 * Starts vgasnet_coll_gather_allM: collects a block from each image at all, with lists of addresses.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags. Until the handle
 * is synced, sources must not change and destinations are undefined.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach.
 *
 * @param team the team
 * @param dstlist local addresses of the result: a block for each image of the team, in their order, with
 *     VGASNET_COLL_SINGLE one for each image of the team, else one for each image of this rank
 * @param srclist local addresses of the block that is sent, with VGASNET_COLL_SINGLE one for each image of the team,
 *     else one for each image of this rank
 * @param nbytes bytes of a block, 0 or more; the same on all images
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @return a handle to be synced exactly once, by vgasnet_coll_wait_sync and its like
 * @see vgasnet_coll_wait_sync, vgasnet_coll_gather_allM
 */
vgasnet_coll_handle_t vgasnet_coll_gather_allM_nb(vgasnet_team_handle_t team, void *const dstlist[],
                                                  void *const srclist[], size_t nbytes, int flags);

/**
 * Exchanges blocks between all images: block j of image i becomes block i of image j.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags. The dst of an
 * image's own block may be its src.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach.
 *
 * @param team the team
 * @param dst local address of the result: a block for each image of the team, in their order
 * @param src local address of the source: a block for each image of the team, in their order
 * @param nbytes bytes of a block, 0 or more; the same on all images
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @see vgasnet_coll_exchange_nb, vgasnet_coll_exchangeM
 */
void vgasnet_coll_exchange(vgasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags);

/**
 * Starts vgasnet_coll_exchange: exchanges blocks between all images: block j of image i becomes block i of
 * image j.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags. Until the handle
 * is synced, sources must not change and destinations are undefined.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach.
 *
 * @param team the team
 * @param dst local address of the result: a block for each image of the team, in their order
 * @param src local address of the source: a block for each image of the team, in their order
 * @param nbytes bytes of a block, 0 or more; the same on all images
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @return a handle to be synced exactly once, by vgasnet_coll_wait_sync and its like
 * @see vgasnet_coll_wait_sync, vgasnet_coll_exchange
 */
vgasnet_coll_handle_t vgasnet_coll_exchange_nb(vgasnet_team_handle_t team, void *dst, void *src, size_t nbytes,
                                               int flags);

/**
 * Exchanges blocks between all images: block j of image i becomes block i of image j, with lists of addresses.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach.
 *
 * @param team the team
 * @param dstlist local addresses of the result: a block for each image of the team, in their order, with
 *     VGASNET_COLL_SINGLE one for each image of the team, else one for each image of this rank
 * @param srclist local addresses of the source: a block for each image of the team, in their order, with
 *     VGASNET_COLL_SINGLE one for each image of the team, else one for each image of this rank
 * @param nbytes bytes of a block, 0 or more; the same on all images
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @see vgasnet_coll_exchangeM_nb, vgasnet_coll_exchange
 */
void vgasnet_coll_exchangeM(vgasnet_team_handle_t team, void *const dstlist[], void *const srclist[], size_t nbytes,
                            int flags);

/**
 * Starts vgasnet_coll_exchangeM: exchanges blocks between all images: block j of image i becomes block i of
 * image j, with lists of addresses.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags. Until the handle
 * is synced, sources must not change and destinations are undefined.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach.
 *
 * @param team the team
 * @param dstlist local addresses of the result: a block for each image of the team, in their order, with
 *     VGASNET_COLL_SINGLE one for each image of the team, else one for each image of this rank
 * @param srclist local addresses of the source: a block for each image of the team, in their order, with
 *     VGASNET_COLL_SINGLE one for each image of the team, else one for each image of this rank
 * @param nbytes bytes of a block, 0 or more; the same on all images
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @return a handle to be synced exactly once, by vgasnet_coll_wait_sync and its like
 * @see vgasnet_coll_wait_sync, vgasnet_coll_exchangeM
 */
vgasnet_coll_handle_t vgasnet_coll_exchangeM_nb(vgasnet_team_handle_t team, void *const dstlist[],
                                                void *const srclist[], size_t nbytes, int flags);

#ifdef __cplusplus
}
#endif

#endif
