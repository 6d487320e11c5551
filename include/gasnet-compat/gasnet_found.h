/* What GASNet's configure finds, by its names: some clients ask. */
#ifndef GASNET_FOUND_H
#define GASNET_FOUND_H

#ifndef HAVE_PTHREAD_H
#define HAVE_PTHREAD_H 1
#endif

/* Sizes of types, in bytes. */
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
