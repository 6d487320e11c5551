/*
 * GASNet-EX: teams that the client makes. Clients include gasnetex.h.
 *
 * A team needs no scratch, so collectives of one with GEX_FLAG_TM_NO_SCRATCH are as fast. What the client gives is left alone, and given
 * back when the team is destroyed. No rank waits for another one in gex_TM_Destroy.
 */
#ifndef GEX_TEAMS_H
#define GEX_TEAMS_H

#include <vgasnet_ex_teams.h>

#define gex_TM_Split vgasnet_ex_TM_Split
#define gex_TM_Create vgasnet_ex_TM_Create
#define gex_TM_Destroy vgasnet_ex_TM_Destroy

#endif
