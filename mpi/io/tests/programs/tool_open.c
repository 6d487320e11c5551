#define WRAPS_OPEN
#include "tool.inc"
