/* The release of GASNet-EX whose headers these replace. Build systems read the numbers from here. */
#ifndef GASNET_CONFIG_H
#define GASNET_CONFIG_H

#include "gasnet_found.h"

#define GASNET_RELEASE_VERSION_MAJOR 2025
#define GASNET_RELEASE_VERSION_MINOR 8
#define GASNET_RELEASE_VERSION_PATCH 0

/* The specification of GASNet-EX that these headers follow. */
#define GEX_SPEC_VERSION_MAJOR 0
#define GEX_SPEC_VERSION_MINOR 19
#define GASNETI_EX_SPEC_VERSION_MAJOR GEX_SPEC_VERSION_MAJOR
#define GASNETI_EX_SPEC_VERSION_MINOR GEX_SPEC_VERSION_MINOR

/* Those of GASNet-1 and of the tools. */
#define GASNET_SPEC_VERSION_MAJOR 1
#define GASNET_SPEC_VERSION_MINOR 8
#define GASNETT_SPEC_VERSION_MAJOR 1
#define GASNETT_SPEC_VERSION_MINOR 20

#endif
