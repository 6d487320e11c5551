/* The compiler, the system and the processor, by GASNet's names. */
#ifndef GASNET_PORTABLE_PLATFORM_H
#define GASNET_PORTABLE_PLATFORM_H

#include "portable_platform.h"

#endif
