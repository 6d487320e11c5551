/*
 * GASNet-EX: teams that the client makes. Clients include gasnetex.h.
 *
 * A team needs no scratch, so collectives of one with GEX_FLAG_TM_NO_SCRATCH are as fast. What the client gives is left alone, and given
 * back when the team is destroyed. No rank waits for another one in gex_TM_Destroy.
 */
#ifndef GEX_TEAMS_H
#define GEX_TEAMS_H

#include <vgasnet_ex_teams.h>

/**
 * Makes a team of all ranks of another that give the same color.
 * @see vgasnet_ex_TM_Split, GASNet-EX specification 0.19
 */
#define gex_TM_Split vgasnet_ex_TM_Split
/** Makes teams of given ranks of another. @see vgasnet_ex_TM_Create, GASNet-EX specification 0.19 */
#define gex_TM_Create vgasnet_ex_TM_Create
/** Forgets a team at this rank, and gives its scratch back. @see vgasnet_ex_TM_Destroy, GASNet-EX specification 0.19 */
#define gex_TM_Destroy vgasnet_ex_TM_Destroy

#endif
