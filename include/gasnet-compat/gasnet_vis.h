/* GASNet-1's vector, indexed and strided transfers, by their own names. */
#ifndef GASNET_VIS_H
#define GASNET_VIS_H

#include "gasnet.h"

#include "gasnet_vis_names.h"

#endif
