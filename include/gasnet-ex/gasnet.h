/* GASNet-1 and GASNet-EX, mixed: a client may begin with either init, and use the names of both. gasnetex.h tells how to compile. */
#ifndef GASNET_H
#define GASNET_H
#define _INCLUDED_GASNET_H

#include "gasnetex.h"

#include "gasnet_counted.h"
#include "gasnet_tools.h"

/* The objects that a job has, by whichever init; a place may be null. */
#define gasnet_QueryGexObjects vgasnet_ex_QueryGexObjects

#endif
