/* Helper macros that clients have from GASNet-EX's headers. */
#ifndef GEX_HELPERS_H
#define GEX_HELPERS_H

#include "gasnet_text.h"

#ifndef MIN
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#endif
#ifndef MAX
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#endif

#endif
