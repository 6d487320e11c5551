/* The library's functions that make and destroy teams of GASNet-EX; vgasnet_ex.h tells how they are named. */
#ifndef VGASNET_EX_TEAMS_H
#define VGASNET_EX_TEAMS_H

#include <gex_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes a team of all ranks of another that give the same color.
 *
 * Collective over the parent.
 *
 * Fatal: a negative color, scratch that is not in the own segment.
 *
 * @param new_team receives the team; null to take part and get none
 * @param parent the team that is split
 * @param color 0 or more; ranks with the same number get the same team
 * @param key place in the new team; equal ones are in the order of the parent
 * @param scratch memory in the own segment, which the library leaves alone; ignored with GEX_FLAG_TM_NO_SCRATCH
 * @param scratch_size its size in bytes
 * @param flags some of GEX_FLAG_TM_
 * @return a size of scratch in bytes if flags ask for it, and then no team is made; else 0
 * @see vgasnet_ex_TM_Destroy, GASNet-EX specification 0.19 (gex_TM_Split)
 */
size_t vgasnet_ex_TM_Split(gex_TM_t *new_team, gex_TM_t parent, int color, int key, void *scratch, size_t scratch_size,
                           gex_Flags_t flags);

/**
 * Makes teams of given ranks of another.
 *
 * Collective over the parent. Each rank gives all members of its team, in order, or none.
 *
 * @param new_teams receives the teams; may be null if flags ask for a size
 * @param new_count 1 if the caller is a member, else 0
 * @param parent the team that has the ranks
 * @param list the members, by their ranks in the parent, or in the job with GEX_FLAG_RANK_IS_JOBRANK
 * @param count number of members
 * @param scratch addresses of memory in the members' segments, as flags say, which the library leaves alone
 * @param scratch_size its size in bytes
 * @param flags some of GEX_FLAG_TM_
 * @return a size of scratch in bytes if flags ask for it, and then no team is made; else 0
 * @see vgasnet_ex_TM_Destroy, GASNet-EX specification 0.19 (gex_TM_Create)
 */
size_t vgasnet_ex_TM_Create(gex_TM_t *new_teams, size_t new_count, gex_TM_t parent, gex_EP_Location_t *list, size_t count,
                            gex_Addr_t *scratch, size_t scratch_size, gex_Flags_t flags);

/**
 * Forgets a team at this rank, and gives its scratch back.
 *
 * Collective over the team; no rank waits for another.
 *
 * @param team the team
 * @param scratch receives the scratch of the client, if it gave any; may be null
 * @param flags some of GEX_FLAG_GLOBALLY_QUIESCED
 * @return 1 if scratch was written, else 0
 * @see GASNet-EX specification 0.19 (gex_TM_Destroy)
 */
int vgasnet_ex_TM_Destroy(gex_TM_t team, gex_Memvec_t *scratch, gex_Flags_t flags);

#ifdef __cplusplus
}
#endif

#endif
