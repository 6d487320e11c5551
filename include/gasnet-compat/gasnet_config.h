/* The release of GASNet whose headers these replace. Build systems read the numbers from here. */
#ifndef GASNET_CONFIG_H
#define GASNET_CONFIG_H

#include "gasnet_found.h"

#define GASNET_RELEASE_VERSION_MAJOR 1
#define GASNET_RELEASE_VERSION_MINOR 28
#define GASNET_RELEASE_VERSION_PATCH 0

#endif
