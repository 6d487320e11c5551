/*
 * vgasnet: reductions.
 *
 * A reduction is a collective; collectives.h has the rules of all. It combines the elements of all images with a function
 * of the table that vgasnet_coll_init has registered: element by element, in the order of the images. The function gets
 * func_arg and the flags of its entry.
 */
#ifndef VGASNET_REDUCTIONS_H
#define VGASNET_REDUCTIONS_H

#include <stddef.h>
#include <vgasnet/images.h>
#include <vgasnet/teams.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Combines elements of all images at one, element by element, in the order of the images.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach, a function that is not in the table.
 *
 * @param team the team
 * @param dstimage image that gets the result
 * @param dst local address of the result, elem_count elements; it may be the src of that image; ignored on other images
 *     than dstimage
 * @param src local address of the image's elements
 * @param src_blksz ignored
 * @param src_offset ignored
 * @param elem_size bytes of an element
 * @param elem_count number of elements, 0 or more
 * @param func place of the function in the table of vgasnet_coll_init
 * @param func_arg argument that the function gets
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @see vgasnet_coll_reduce_nb, vgasnet_coll_reduceM
 */
void vgasnet_coll_reduce(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst, void *src, size_t src_blksz,
                         size_t src_offset, size_t elem_size, size_t elem_count, vgasnet_coll_fn_handle_t func,
                         int func_arg, int flags);

/**
 * Starts vgasnet_coll_reduce: combines elements of all images at one, element by element, in the order of the
 * images.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags. Until the handle
 * is synced, sources must not change and destinations are undefined.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach, a function that is not in the table.
 *
 * @param team the team
 * @param dstimage image that gets the result
 * @param dst local address of the result, elem_count elements; it may be the src of that image; ignored on other images
 *     than dstimage
 * @param src local address of the image's elements
 * @param src_blksz ignored
 * @param src_offset ignored
 * @param elem_size bytes of an element
 * @param elem_count number of elements, 0 or more
 * @param func place of the function in the table of vgasnet_coll_init
 * @param func_arg argument that the function gets
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @return a handle to be synced exactly once, by vgasnet_coll_wait_sync and its like
 * @see vgasnet_coll_wait_sync, vgasnet_coll_reduce
 */
vgasnet_coll_handle_t vgasnet_coll_reduce_nb(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst, void *src,
                                             size_t src_blksz, size_t src_offset, size_t elem_size, size_t elem_count,
                                             vgasnet_coll_fn_handle_t func, int func_arg, int flags);

/**
 * Combines elements of all images at one, element by element, in the order of the images, with lists of addresses.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach, a function that is not in the table.
 *
 * @param team the team
 * @param dstimage image that gets the result
 * @param dst local address of the result, elem_count elements; it may be the src of that image; ignored on other images
 *     than dstimage
 * @param srclist local addresses of the image's elements, with VGASNET_COLL_SINGLE one for each image of the team, else
 *     one for each image of this rank
 * @param src_blksz ignored
 * @param src_offset ignored
 * @param elem_size bytes of an element
 * @param elem_count number of elements, 0 or more
 * @param func place of the function in the table of vgasnet_coll_init
 * @param func_arg argument that the function gets
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @see vgasnet_coll_reduceM_nb, vgasnet_coll_reduce
 */
void vgasnet_coll_reduceM(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst, void *const srclist[],
                          size_t src_blksz, size_t src_offset, size_t elem_size, size_t elem_count,
                          vgasnet_coll_fn_handle_t func, int func_arg, int flags);

/**
 * Starts vgasnet_coll_reduceM: combines elements of all images at one, element by element, in the order of
 * the images, with lists of addresses.
 *
 * Collective over the team: each image calls, in its own thread, with the same sizes, root and flags. Until the handle
 * is synced, sources must not change and destinations are undefined.
 *
 * Fatal: no such team or root, unknown flags, a null address where there are bytes, other collectives on other ranks
 * (as far as that is seen), a call before vgasnet_attach, a function that is not in the table.
 *
 * @param team the team
 * @param dstimage image that gets the result
 * @param dst local address of the result, elem_count elements; it may be the src of that image; ignored on other images
 *     than dstimage
 * @param srclist local addresses of the image's elements, with VGASNET_COLL_SINGLE one for each image of the team, else
 *     one for each image of this rank
 * @param src_blksz ignored
 * @param src_offset ignored
 * @param elem_size bytes of an element
 * @param elem_count number of elements, 0 or more
 * @param func place of the function in the table of vgasnet_coll_init
 * @param func_arg argument that the function gets
 * @param flags 0, or some of VGASNET_COLL_; 0 stands for VGASNET_COLL_IN_ALLSYNC and VGASNET_COLL_OUT_ALLSYNC
 * @return a handle to be synced exactly once, by vgasnet_coll_wait_sync and its like
 * @see vgasnet_coll_wait_sync, vgasnet_coll_reduceM
 */
vgasnet_coll_handle_t vgasnet_coll_reduceM_nb(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst,
                                              void *const srclist[], size_t src_blksz, size_t src_offset,
                                              size_t elem_size, size_t elem_count, vgasnet_coll_fn_handle_t func,
                                              int func_arg, int flags);

#ifdef __cplusplus
}
#endif

#endif
