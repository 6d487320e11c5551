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

/** Returns a variable of the environment, or null. @see GASNet's README-tools */
#define gasnett_getenv(name) getenv(name)
/** Returns a variable of the environment, or a default if it is missing or empty. @see GASNet's README-tools */
GASNETT_INLINE(gasnett_getenv_withdefault) const char *gasnett_getenv_withdefault(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : otherwise;
}
/**
 * Returns 1 if a variable begins with y, Y, t, T or 1, 0 if with another letter, a default if it is missing.
 * @see GASNet's README-tools
 */
GASNETT_INLINE(gasnett_getenv_yesno_withdefault) int gasnett_getenv_yesno_withdefault(const char *name, int otherwise) {
    const char *value = gasnett_getenv_withdefault(name, NULL);
    return value == NULL ? otherwise : strchr("yYtT1", value[0]) != NULL;
}
/** Returns whether programs are to say which variables they look at. @see GASNet's README-tools */
GASNETT_INLINE(gasnett_verboseenv) int gasnett_verboseenv(void) {
    return gasnett_getenv_yesno_withdefault("GASNET_VERBOSEENV", 0);
}

/**
 * Returns an empty text: nothing about the library makes programs slow that measure themselves.
 * @see GASNet's README-tools
 */
#define gasnett_performance_warning_str() ""

GASNETT_END_EXTERNC

#endif
