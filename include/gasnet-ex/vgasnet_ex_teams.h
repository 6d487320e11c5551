/* The library's functions that make and destroy teams of GASNet-EX; vgasnet_ex.h tells how they are named. */
#ifndef VGASNET_EX_TEAMS_H
#define VGASNET_EX_TEAMS_H

#include <gex_types.h>

#ifdef __cplusplus
extern "C" {
#endif

size_t vgasnet_ex_TM_Split(gex_TM_t *new_team, gex_TM_t parent, int color, int key, void *scratch, size_t scratch_size,
                           gex_Flags_t flags);
size_t vgasnet_ex_TM_Create(gex_TM_t *new_teams, size_t new_count, gex_TM_t parent, gex_EP_Location_t *list, size_t count,
                            gex_Addr_t *scratch, size_t scratch_size, gex_Flags_t flags);
int vgasnet_ex_TM_Destroy(gex_TM_t team, gex_Memvec_t *scratch, gex_Flags_t flags);

#ifdef __cplusplus
}
#endif

#endif
