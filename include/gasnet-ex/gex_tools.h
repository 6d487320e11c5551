/* GASNet-EX's tools that are functions in the header: fatal errors, backtraces, bytes that are zero. Clients include gasnet_tools.h. */
#ifndef GEX_TOOLS_H
#define GEX_TOOLS_H

#include "gasnet_toolkit.h"

#if defined(__has_include)
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define GASNETT_HAVE_BACKTRACE_ 1
#endif
#endif

GASNETT_BEGIN_EXTERNC

/** Prints a text in one line, and ends the process by SIGABRT, so that the job fails. @see GASNet's README-tools */
#define gasnett_fatalerror_nopos gasneti_fatalerror

/* Clients that compile without warnings take their addresses. */
GASNETT_USED static void _gasneti_threadkey_init(void) {}
GASNETT_FORMAT_PRINTF(_gasnett_trace_printf_noop, 1, 2,
                      GASNETT_INLINE(_gasnett_trace_printf_noop) void _gasnett_trace_printf_noop(const char *format, ...)) {
    (void)format;
}

/** Flushes all output streams, and closes the standard streams. @see GASNet's README-tools */
GASNETT_INLINE(gasnett_close_streams) void gasnett_close_streams(void) {
    fflush(NULL);
    fclose(stdin);
    fclose(stdout);
    fclose(stderr);
}

/* No statistics of GASNet's are kept. */
#define GASNETT_STATS_GETMASK() ""
#define GASNETT_STATS_SETMASK(mask) ((void)0)
#define GASNETT_STATS_PRINTF _gasnett_trace_printf_noop
#define GASNETT_STATS_PRINTF_FORCE _gasnett_trace_printf_noop
#define GASNETT_STATS_DUMP(reset) ((void)(reset))

/* ---- backtraces ---- */

/* A client that can write backtraces of its own defines gasnett_backtrace_user. */
typedef struct {
    const char *name;
    int (*fnp)(int);
    int threadsupport;
} gasnett_backtrace_type_t;
extern gasnett_backtrace_type_t gasnett_backtrace_user __attribute__((__weak__));

/** Does nothing: backtraces need no preparation. @see GASNet's README-tools */
GASNETT_INLINE(gasnett_backtrace_init) void gasnett_backtrace_init(const char *program) { (void)program; }

/**
 * Writes a backtrace to a file. Returns 0 if there is one. The client's way comes first, unless GASNET_BACKTRACE_TYPE
 * names others only; then the C library's.
 * @see GASNet's README-tools
 */
GASNETT_INLINE(gasnett_print_backtrace) int gasnett_print_backtrace(int fd) {
    gasnett_backtrace_type_t *user = &gasnett_backtrace_user;
    const char *wanted = getenv("GASNET_BACKTRACE_TYPE");
    if (user != NULL && (wanted == NULL || strstr(wanted, user->name) != NULL) && user->fnp(fd) == 0) return 0;
#ifdef GASNETT_HAVE_BACKTRACE_
    {
        void *frames[64];
        backtrace_symbols_fd(frames, backtrace(frames, 64), fd);
        return 0;
    }
#else
    return 1;
#endif
}

/** Writes a backtrace to a file if GASNET_BACKTRACE says yes. Returns 0 if there is one. @see GASNet's README-tools */
GASNETT_INLINE(gasnett_print_backtrace_ifenabled) int gasnett_print_backtrace_ifenabled(int fd) {
    const char *wanted = getenv("GASNET_BACKTRACE");
    return wanted != NULL && strchr("yYtT1", wanted[0]) != NULL && wanted[0] != '\0' ? gasnett_print_backtrace(fd) : 1;
}

/* ---- bytes that are zero ---- */

/** Returns how many of some bytes are 0. @see GASNet's README-tools */
GASNETT_INLINE(gasnett_count0s) size_t gasnett_count0s(const void *bytes, size_t count) {
    const uint8_t *at = (const uint8_t *)bytes;
    size_t zeros = 0, i;
    for (i = 0; i < count; ++i) zeros += at[i] == 0;
    return zeros;
}
/** Copies bytes, and returns how many of them are 0. @see GASNet's README-tools */
GASNETT_INLINE(gasnett_count0s_copy) size_t gasnett_count0s_copy(void *to, const void *from, size_t count) {
    return gasnett_count0s(memcpy(to, from, count), count);
}
/** Returns how many bytes of a number are 0. @see GASNet's README-tools */
GASNETT_INLINE(gasnett_count0s_uint32_t) int gasnett_count0s_uint32_t(uint32_t value) {
    return (int)gasnett_count0s(&value, sizeof value);
}
/** Returns how many bytes of a number are 0. @see GASNet's README-tools */
GASNETT_INLINE(gasnett_count0s_uint64_t) int gasnett_count0s_uint64_t(uint64_t value) {
    return (int)gasnett_count0s(&value, sizeof value);
}
/** Returns how many bytes of a number are 0. @see GASNet's README-tools */
GASNETT_INLINE(gasnett_count0s_uintptr_t) int gasnett_count0s_uintptr_t(uintptr_t value) {
    return (int)gasnett_count0s(&value, sizeof value);
}

GASNETT_END_EXTERNC

#endif
