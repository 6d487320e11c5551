/* The integers of a fixed number of bits, and how printf prints them: those of inttypes.h. Of size_t and ptrdiff_t it has
 * nothing: PRIuSZ prints a size_t, PRIdPD a ptrdiff_t, and so on. */
#ifndef VGASNET_PORTABLE_INTTYPES_H
#define VGASNET_PORTABLE_INTTYPES_H

#include <inttypes.h>
#include <stddef.h>

/* GASNet's header of this name defines the same names, perhaps with other letters. */
#ifndef PRIuSZ
#define PRIdSZ "zd"
#define PRIiSZ "zi"
#define PRIoSZ "zo"
#define PRIuSZ "zu"
#define PRIxSZ "zx"
#define PRIXSZ "zX"
#endif
#ifndef PRIdPD
#define PRIdPD "td"
#define PRIiPD "ti"
#define PRIoPD "to"
#define PRIuPD "tu"
#define PRIxPD "tx"
#define PRIXPD "tX"
#endif

#endif
