#define WRAPS_ALL
#include "tool.inc"
