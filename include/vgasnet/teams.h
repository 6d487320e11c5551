/*
 * vgasnet: teams of ranks, and their barriers.
 *
 * A team numbers its ranks 0 to vgasnet_coll_team_size() - 1. The team of all ranks is VGASNET_TEAM_ALL, in the order of
 * the job. Collectives (collectives.h) and shared files (files.h) take a team.
 */
#ifndef VGASNET_TEAMS_H
#define VGASNET_TEAMS_H

#include <stddef.h>
#include <stdint.h>
#include <vgasnet/barrier.h>
#include <vgasnet/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A team of ranks. It numbers them 0 to vgasnet_coll_team_size() - 1. */
typedef struct vgasnet_team *vgasnet_team_handle_t;
/** The team of all ranks of the job. */
#define VGASNET_TEAM_ALL ((vgasnet_team_handle_t)(uintptr_t)1)

/* ---- barriers ---- */

/**
 * Arrives at the barrier of a team, and waits for nobody.
 *
 * Collective over the team. Once a rank, and one thread of a rank at a time; with VGASNET_BARRIERFLAG_IMAGES each image
 * of VGASNET_TEAM_ALL in its own thread. The barrier of VGASNET_TEAM_ALL is the one of vgasnet_barrier_notify.
 *
 * Fatal: a team that does not exist, unknown flags, a call before vgasnet_attach.
 *
 * @param team the team
 * @param id name of the barrier, any number; ignored with VGASNET_BARRIERFLAG_ANONYMOUS
 * @param flags 0 for a barrier named id, or some of VGASNET_BARRIERFLAG_
 * @see vgasnet_coll_barrier_wait, vgasnet_coll_barrier_try, vgasnet_barrier_notify
 */
void vgasnet_coll_barrier_notify(vgasnet_team_handle_t team, int id, int flags);

/**
 * Tests whether all ranks of a team have notified its barrier.
 *
 * Without a notify before, it returns VGASNET_OK at once, with one warning; with VGASNET_CHECK=1 that is fatal.
 *
 * Collective over the team. Once a rank, and one thread of a rank at a time; with VGASNET_BARRIERFLAG_IMAGES each image
 * of VGASNET_TEAM_ALL in its own thread. The barrier of VGASNET_TEAM_ALL is the one of vgasnet_barrier_notify.
 *
 * Fatal: a team that does not exist, unknown flags.
 *
 * @param team the team
 * @param id as in vgasnet_coll_barrier_notify
 * @param flags as in vgasnet_coll_barrier_notify
 * @retval VGASNET_OK if all have notified; the barrier is complete
 * @retval VGASNET_ERR_NOT_READY if some rank has not notified
 * @retval VGASNET_ERR_BARRIER_MISMATCH if two ranks notified with different ids, if one notified with
 *     VGASNET_BARRIERFLAG_MISMATCH, or if id is not the one of this rank's notify or, if that was anonymous, of the
 *     other ranks'
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_coll_barrier_notify, vgasnet_coll_barrier_wait
 */
int vgasnet_coll_barrier_try(vgasnet_team_handle_t team, int id, int flags);

/**
 * Waits until all ranks of a team have notified its barrier.
 *
 * Without a notify before, it returns VGASNET_OK at once, with one warning; with VGASNET_CHECK=1 that is fatal.
 *
 * Collective over the team. Once a rank, and one thread of a rank at a time; with VGASNET_BARRIERFLAG_IMAGES each image
 * of VGASNET_TEAM_ALL in its own thread. The barrier of VGASNET_TEAM_ALL is the one of vgasnet_barrier_notify.
 *
 * Fatal: a team that does not exist, unknown flags.
 *
 * @param team the team
 * @param id as in vgasnet_coll_barrier_notify
 * @param flags as in vgasnet_coll_barrier_notify
 * @retval VGASNET_OK if all have notified
 * @retval VGASNET_ERR_BARRIER_MISMATCH if two ranks notified with different ids, if one notified with
 *     VGASNET_BARRIERFLAG_MISMATCH, or if id is not the one of this rank's notify or, if that was anonymous, of the
 *     other ranks'
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_coll_barrier_notify, vgasnet_coll_barrier_result
 */
int vgasnet_coll_barrier_wait(vgasnet_team_handle_t team, int id, int flags);

/**
 * Arrives at the barrier of a team, and waits until all its ranks have.
 *
 * Collective over the team. Once a rank, and one thread of a rank at a time; with VGASNET_BARRIERFLAG_IMAGES each image
 * of VGASNET_TEAM_ALL in its own thread. The barrier of VGASNET_TEAM_ALL is the one of vgasnet_barrier_notify.
 *
 * Fatal: a team that does not exist, unknown flags.
 *
 * @param team the team
 * @param id name of the barrier, any number; ignored with VGASNET_BARRIERFLAG_ANONYMOUS
 * @param flags 0 for a barrier named id, or some of VGASNET_BARRIERFLAG_
 * @retval VGASNET_OK if all have notified
 * @retval VGASNET_ERR_BARRIER_MISMATCH if two ranks notified with different ids, if one notified with
 *     VGASNET_BARRIERFLAG_MISMATCH, or if id is not the one of this rank's notify or, if that was anonymous, of the
 *     other ranks'
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_coll_barrier_notify, vgasnet_barrier
 */
int vgasnet_coll_barrier(vgasnet_team_handle_t team, int id, int flags);

/**
 * Tells the name of a team's last barrier.
 *
 * May be called between a barrier with the answer VGASNET_OK and the next notify. Not collective.
 *
 * Fatal: a team that does not exist, a call at another time, a null pointer.
 *
 * @param team the team
 * @param id receives the id of the notifies, the same on every rank, if the barrier had one; not null
 * @return 0 if the barrier had a name, another number if all ranks notified anonymously
 * @see vgasnet_coll_barrier_wait, vgasnet_barrier_result
 */
int vgasnet_coll_barrier_result(vgasnet_team_handle_t team, int *id);

/* ---- teams ---- */

/**
 * Makes a team of all ranks of another that give the same color.
 *
 * Collective over the parent: one thread of each rank calls, also of ranks with several images, while no collective of
 * the parent is under way.
 *
 * Fatal: a team that does not exist, a call before vgasnet_attach.
 *
 * @param parent the team that is split
 * @param color ranks with the same number get the same team
 * @param relrank place in the new team: ranks are in the order of these numbers and, if they are equal, of their
 *     numbers in parent
 * @param clientdata ignored
 * @return the new team, to be freed by vgasnet_coll_team_free
 * @see vgasnet_coll_team_of, vgasnet_coll_team_free
 */
vgasnet_team_handle_t vgasnet_coll_team_split(vgasnet_team_handle_t parent, vgasnet_node_t color, vgasnet_node_t relrank,
                                              void *clientdata);

/**
 * Makes a team of given ranks of the job, in the given order.
 *
 * Only these ranks call, one thread of each, with the same arguments; none waits for another.
 *
 * Fatal: a rank that does not exist or is there twice, a list without the calling rank, a call before vgasnet_attach.
 *
 * @param ranks number of ranks, at least 1
 * @param rank the ranks by their numbers in the job
 * @param tag 0 to 2147483647; teams that exist at the same time and have the same first rank have different tags
 * @return the new team, to be freed by vgasnet_coll_team_free
 * @see vgasnet_coll_team_split, vgasnet_coll_team_free
 */
vgasnet_team_handle_t vgasnet_coll_team_of(size_t ranks, const vgasnet_node_t rank[], uint32_t tag);

/**
 * Forgets a team at this rank.
 *
 * Its collectives and barriers must be complete here. Not collective.
 *
 * Fatal: VGASNET_TEAM_ALL, a team that does not exist.
 *
 * @param team the team
 * @see vgasnet_coll_team_split
 */
void vgasnet_coll_team_free(vgasnet_team_handle_t team);

/**
 * Returns the number of ranks of a team.
 *
 * Not collective, any thread.
 *
 * Fatal: a team that does not exist.
 *
 * @param team the team
 * @return the number of ranks, at least 1
 * @see vgasnet_coll_team_rank2node
 */
vgasnet_node_t vgasnet_coll_team_size(vgasnet_team_handle_t team);

/**
 * Returns the number in the job of a team's rank.
 *
 * Not collective, any thread.
 *
 * Fatal: a team that does not exist, a rank that it does not have.
 *
 * @param team the team
 * @param rank number in the team, 0 to vgasnet_coll_team_size(team) - 1
 * @return the number in the job
 * @see vgasnet_coll_team_node2rank
 */
vgasnet_node_t vgasnet_coll_team_rank2node(vgasnet_team_handle_t team, vgasnet_node_t rank);

/**
 * Returns the number in a team of a rank of the job.
 *
 * Not collective, any thread.
 *
 * Fatal: a team that does not exist, a rank outside the team.
 *
 * @param team the team
 * @param node number in the job, of a rank of the team
 * @return the number in the team
 * @see vgasnet_coll_team_rank2node
 */
vgasnet_node_t vgasnet_coll_team_node2rank(vgasnet_team_handle_t team, vgasnet_node_t node);

#ifdef __cplusplus
}
#endif

#endif
