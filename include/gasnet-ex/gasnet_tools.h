/*
 * The part of GASNet-EX's tools that its clients use. Programs may include it alone, or after gasnetex.h. What counts things, reads
 * variables or asks the system is in the library; the rest is in the headers.
 *
 * Locks and atomics are real in every thread mode, so a client need not name one. There is no tracing, and no freezing for a
 * debugger.
 */
#ifndef GASNET_TOOLS_H
#define GASNET_TOOLS_H
#define _GASNET_TOOLS_H
#define _INCLUDED_GASNET_TOOLS_H

#if defined(GASNETT_LITE_MODE) + defined(GASNETT_THREAD_SAFE) + defined(GASNETT_THREAD_SINGLE) > 1
#error "define one of GASNETT_THREAD_SAFE, GASNETT_THREAD_SINGLE and GASNETT_LITE_MODE, or none"
#endif
#if defined(GASNETT_LITE_MODE)
#undef GASNETT_LITE_MODE
#define GASNETT_LITE_MODE 1
#define GASNETT_THREAD_MODEL LITE
#elif defined(GASNETT_THREAD_SINGLE) || defined(GASNET_SEQ) || defined(GASNET_PARSYNC)
#undef GASNETT_THREAD_SINGLE
#define GASNETT_THREAD_SINGLE 1
#define GASNETT_THREAD_MODEL SEQ
#elif defined(GASNETT_THREAD_SAFE) || defined(GASNET_PAR) || defined(_REENTRANT) || defined(PTHREAD_MUTEX_INITIALIZER)
#undef GASNETT_THREAD_SAFE
#define GASNETT_THREAD_SAFE 1
#define GASNETT_THREAD_MODEL PAR
#else
#define GASNETT_THREAD_SINGLE 1
#define GASNETT_THREAD_MODEL SEQ
#endif

#include "gasnet_config.h"

#include "gasnet_portable_platform.h"
#include "gasnet_toolkit.h"

#include "gex_helpers.h"
#include "vgasnet_ex_tools.h"

/* ---- the release ---- */

#define GASNETT_RELEASE_VERSION_MAJOR GASNET_RELEASE_VERSION_MAJOR
#define GASNETT_RELEASE_VERSION_MINOR GASNET_RELEASE_VERSION_MINOR
#define GASNETT_RELEASE_VERSION_PATCH GASNET_RELEASE_VERSION_PATCH
/** Returns the release as one number, such as 2025080000. @see GASNet's README-tools */
#define gasnett_release_version() \
    ((uint64_t)(GASNET_RELEASE_VERSION_MAJOR * 1000000 + GASNET_RELEASE_VERSION_MINOR * 10000 + GASNET_RELEASE_VERSION_PATCH))
/** Returns the release as a text, such as "2025.8.0". @see GASNet's README-tools */
#define gasnett_release_version_str() \
    _STRINGIFY(GASNET_RELEASE_VERSION_MAJOR) "." _STRINGIFY(GASNET_RELEASE_VERSION_MINOR) "." \
    _STRINGIFY(GASNET_RELEASE_VERSION_PATCH)
/**
 * Returns an empty text: nothing about the library makes programs slow that measure themselves.
 * @see GASNet's README-tools
 */
#define gasnett_performance_warning_str() ""

/* ---- the system ---- */

#define GASNETT_PAGESHIFT 12
#define GASNETT_SET_AFFINITY_SUPPORT 1
/** Binds the calling thread to a processor. @see vgasnet_ex_tool_set_affinity, GASNet's README-tools */
#define gasnett_set_affinity vgasnet_ex_tool_set_affinity
/** Returns the path of the program that runs. @see vgasnet_ex_tool_exe_name, GASNet's README-tools */
#define gasnett_exe_name vgasnet_ex_tool_exe_name
/**
 * Raises the soft limit of a resource to the hard one, unless the variable GASNET_MAXIMIZE_name says no.
 * @see vgasnet_ex_tool_maximize_rlimit, GASNet's README-tools
 */
#define gasnett_maximize_rlimit vgasnet_ex_tool_maximize_rlimit
/**
 * Raises the soft limits of processor time and of all kinds of memory to the hard ones.
 * @see vgasnet_ex_tool_maximize_rlimits, GASNet's README-tools
 */
#define gasnett_maximize_rlimits vgasnet_ex_tool_maximize_rlimits

/* ---- numbers and the environment ---- */

/** Reads an integer, or a size in bytes. @see vgasnet_ex_tool_parse_int, GASNet's README-tools */
#define gasnett_parse_int vgasnet_ex_tool_parse_int
/**
 * Writes a number so that gasnett_parse_int reads it as the same one.
 * @see vgasnet_ex_tool_format_number, GASNet's README-tools
 */
#define gasnett_format_number vgasnet_ex_tool_format_number
/** Returns a variable of the environment, or null. @see GASNet's README-tools */
#define gasnett_getenv(name) getenv(name)
/** Sets a variable of the environment. @see GASNet's README-tools */
#define gasnett_setenv(name, value) ((void)setenv((name), (value), 1))
/** Removes a variable from the environment. @see GASNet's README-tools */
#define gasnett_unsetenv(name) ((void)unsetenv(name))
/**
 * Returns a variable of the environment, or a default.
 * @see vgasnet_ex_tool_getenv_withdefault, GASNet's README-tools
 */
#define gasnett_getenv_withdefault vgasnet_ex_tool_getenv_withdefault
/**
 * Returns whether a variable of the environment says yes.
 * @see vgasnet_ex_tool_getenv_yesno_withdefault, GASNet's README-tools
 */
#define gasnett_getenv_yesno_withdefault vgasnet_ex_tool_getenv_yesno_withdefault
/**
 * Returns a number or a size in a variable of the environment, or a default.
 * @see vgasnet_ex_tool_getenv_int_withdefault, GASNet's README-tools
 */
#define gasnett_getenv_int_withdefault vgasnet_ex_tool_getenv_int_withdefault
/**
 * Returns a fraction in a variable of the environment, or a default.
 * @see vgasnet_ex_tool_getenv_dbl_withdefault, GASNet's README-tools
 */
#define gasnett_getenv_dbl_withdefault vgasnet_ex_tool_getenv_dbl_withdefault
/**
 * Returns whether rank 0 shows the variables that are asked for.
 * @see vgasnet_ex_tool_verboseenv, GASNet's README-tools
 */
#define gasnett_verboseenv vgasnet_ex_tool_verboseenv
/**
 * Shows a variable and its text, once, if GASNET_VERBOSEENV is set.
 * @see vgasnet_ex_tool_envstr_display, GASNet's README-tools
 */
#define gasnett_envstr_display vgasnet_ex_tool_envstr_display
/**
 * Shows a variable and its number, once, if GASNET_VERBOSEENV is set.
 * @see vgasnet_ex_tool_envint_display, GASNet's README-tools
 */
#define gasnett_envint_display vgasnet_ex_tool_envint_display
/**
 * Shows a variable and its fraction, once, if GASNET_VERBOSEENV is set.
 * @see vgasnet_ex_tool_envdbl_display, GASNet's README-tools
 */
#define gasnett_envdbl_display vgasnet_ex_tool_envdbl_display
/** Writes data types as text, for messages. @see vgasnet_ex_tool_format_dt, GASNet's README-tools */
#define gasnett_format_dt vgasnet_ex_tool_format_dt
/** Writes operations as text, for messages. @see vgasnet_ex_tool_format_op, GASNet's README-tools */
#define gasnett_format_op vgasnet_ex_tool_format_op
/** Writes fields of a message as text, for messages. @see vgasnet_ex_tool_format_ti, GASNet's README-tools */
#define gasnett_format_ti vgasnet_ex_tool_format_ti

/* ---- attributes ---- */

/** As `GASNETT_FORMAT_PRINTF`, of a pointer to a function. @see GASNet's README-tools */
#define GASNETT_FORMAT_PRINTF_FUNCPTR(pointer, format, first, declaration) \
    __attribute__((__format__(__printf__, format, first))) declaration
#if defined(__cplusplus) && __cplusplus >= 201703L
#define GASNETT_FALLTHROUGH [[fallthrough]];
#elif defined(__has_attribute)
#if __has_attribute(__fallthrough__) && !defined(__cplusplus)
#define GASNETT_FALLTHROUGH __attribute__((__fallthrough__));
#endif
#endif
#ifndef GASNETT_FALLTHROUGH
#define GASNETT_FALLTHROUGH
#endif
/** Tells the compiler that a place is never reached. @see GASNet's README-tools */
#define gasneti_builtin_unreachable() __builtin_unreachable()
/** Tells the compiler that a place is never reached. @see GASNet's README-tools */
#define gasnett_unreachable() __builtin_unreachable()
/** Tells the compiler that a condition is true. @see GASNet's README-tools */
#define gasnett_assume(condition) ((condition) ? (void)0 : __builtin_unreachable())

/* Evaluates arguments that a macro does not use otherwise. */
/** Uses an argument, so that no compiler warns. @see GASNet's README-tools */
#define GASNETT_UNUSED_ARGS1(a) ((void)(a))
/** Uses 2 arguments, so that no compiler warns. @see GASNet's README-tools */
#define GASNETT_UNUSED_ARGS2(a, b) ((void)(a), (void)(b))
/** Uses 3 arguments, so that no compiler warns. @see GASNet's README-tools */
#define GASNETT_UNUSED_ARGS3(a, b, c) (GASNETT_UNUSED_ARGS2(a, b), (void)(c))
/** Uses 4 arguments, so that no compiler warns. @see GASNet's README-tools */
#define GASNETT_UNUSED_ARGS4(a, b, c, d) (GASNETT_UNUSED_ARGS3(a, b, c), (void)(d))
/** Uses 5 arguments, so that no compiler warns. @see GASNet's README-tools */
#define GASNETT_UNUSED_ARGS5(a, b, c, d, e) (GASNETT_UNUSED_ARGS4(a, b, c, d), (void)(e))
#define GASNETT_UNUSED_ARGS6(a, b, c, d, e, f) (GASNETT_UNUSED_ARGS5(a, b, c, d, e), (void)(f))
#define GASNETT_UNUSED_ARGS7(a, b, c, d, e, f, g) (GASNETT_UNUSED_ARGS6(a, b, c, d, e, f), (void)(g))
#define GASNETT_UNUSED_ARGS8(a, b, c, d, e, f, g, h) (GASNETT_UNUSED_ARGS7(a, b, c, d, e, f, g), (void)(h))

/* ---- locks; nothing is asserted of them, as in GASNet when it is not built to check ---- */

/** Asserts nothing, as GASNet does when it is not built to check. @see GASNet's README-tools */
#define gasnett_mutex_assertlocked(mutex) ((void)(mutex))
/** Asserts nothing, as GASNet does when it is not built to check. @see GASNet's README-tools */
#define gasnett_mutex_assertunlocked(mutex) ((void)(mutex))
/** Asserts nothing, as GASNet does when it is not built to check. @see GASNet's README-tools */
#define gasnett_rwlock_assertlocked(lock) ((void)(lock))
/** Asserts nothing, as GASNet does when it is not built to check. @see GASNet's README-tools */
#define gasnett_rwlock_assertrdlocked(lock) ((void)(lock))
/** Asserts nothing, as GASNet does when it is not built to check. @see GASNet's README-tools */
#define gasnett_rwlock_assertwrlocked(lock) ((void)(lock))
/** Asserts nothing, as GASNet does when it is not built to check. @see GASNet's README-tools */
#define gasnett_rwlock_assertunlocked(lock) ((void)(lock))

#include "gex_tools.h"
#ifdef _INCLUDED_GASNETEX_H
#include "gex_formats.h"
#endif

#endif
