/*
 * GASNet-EX (specification 0.19, as release 2025.8.0 has it), by its own names, over vgasnet. Programs that were written for GASNet-EX
 * compile against this header as they are and link with -lvgasnet:
 *
 *   cc -Iinclude/gasnet-ex -Iinclude/gasnet-compat -Iinclude -DGASNET_PAR client.c -lvgasnet
 *
 * Nothing of a segment but the own one can be loaded from or stored to, so a neighbourhood is one rank.
 */
#ifndef GASNETEX_H
#define GASNETEX_H
#define _INCLUDED_GASNETEX_H

#include "gasnet_mode.h"

#include "gasnet_config.h"
#include "gasnet_fwd.h"
#include "gasnet_identity.h"

#include <vgasnet.h>

#include "gasnet_names.h"
#include "gasnet_process.h"
#include "gasnet_types.h"
#include "portable_inttypes.h"
#include "gasnet_portable_platform.h"

#include "gex_types.h"
#include "vgasnet_ex.h"

#include "gex_objects.h"
#include "gex_teams.h"
#include "gex_events.h"
#include "gex_messages.h"
#include "gex_prepared.h"

#endif
