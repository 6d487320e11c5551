/* The part of GASNet's tools that its clients use. It needs no library. There is no backtrace. */
#ifndef GASNET_TOOLS_H
#define GASNET_TOOLS_H
/* Keeps GASNet's own header of this name from being included as well. Some clients test it. */
#define _GASNET_TOOLS_H
#define _INCLUDED_GASNET_TOOLS_H

#include "gasnet_config.h"
#include "gasnet_toolkit.h"

GASNETT_BEGIN_EXTERNC

/* ---- the environment ---- */

#define gasnett_getenv(name) getenv(name)
GASNETT_INLINE(gasnett_getenv_withdefault) const char *gasnett_getenv_withdefault(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : otherwise;
}
/* 1 for a value that begins with y, Y, t, T or 1. */
GASNETT_INLINE(gasnett_getenv_yesno_withdefault) int gasnett_getenv_yesno_withdefault(const char *name, int otherwise) {
    const char *value = gasnett_getenv_withdefault(name, NULL);
    return value == NULL ? otherwise : strchr("yYtT1", value[0]) != NULL;
}
/* Whether programs are to say which variables they look at. */
GASNETT_INLINE(gasnett_verboseenv) int gasnett_verboseenv(void) {
    return gasnett_getenv_yesno_withdefault("GASNET_VERBOSEENV", 0);
}

/* Nothing about the library makes programs slow that measure themselves. */
#define gasnett_performance_warning_str() ""

GASNETT_END_EXTERNC

#endif
