/* Build systems of GASNet's clients look for this file to see which conduits are installed. */
#include <gasnet.h>
