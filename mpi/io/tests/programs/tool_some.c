#define WRAPS_SOME
#include "tool.inc"
