/* The release of GASNet-EX whose headers these replace. Build systems read the numbers from here. */
#ifndef GASNET_CONFIG_H
#define GASNET_CONFIG_H

/* What GASNet's configure finds, by its names. Some clients ask whether there are threads. */
#ifndef HAVE_PTHREAD_H
#define HAVE_PTHREAD_H 1
#endif

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

/* Sizes of types, as GASNet's configure finds them. */
#ifndef SIZEOF_INT
#define SIZEOF_CHAR 1
#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_LONG 8
#define SIZEOF_LONG_LONG 8
#define SIZEOF_VOID_P 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_PTRDIFF_T 8
#endif

#endif
