/*
 * What the tools of GASNet-1 and of GASNet-EX have in common: attributes, timers, atomics, memory barriers, locks, and functions
 * about the process. All of it is in this header, which needs gcc or clang and POSIX threads, and no library. There is no
 * tracing. Clients include gasnet_tools.h.
 *
 * Atomics take flags: which memory barriers to add before and after. Locks are real in every thread mode.
 */
#ifndef GASNET_TOOLKIT_H
#define GASNET_TOOLKIT_H

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "gasnet_process.h"
#include "gasnet_text.h"
#include "portable_inttypes.h"
#include "portable_platform.h"

/* ---- attributes ---- */

#define GASNETT_UNUSED __attribute__((__unused__))
#define GASNETT_USED __attribute__((__used__))
#define GASNETT_NORETURN __attribute__((__noreturn__))
#define GASNETT_MALLOC __attribute__((__malloc__))
#define GASNETT_PURE __attribute__((__pure__))
#define GASNETT_CONST __attribute__((__const__))
#define GASNETT_HOT __attribute__((__hot__))
#define GASNETT_COLD __attribute__((__cold__))
#define GASNETT_DEPRECATED __attribute__((__deprecated__))
#define GASNETT_WARN_UNUSED_RESULT __attribute__((__warn_unused_result__))
/** Marks a function that does not return, for compilers that name it in a line of its own. Expands to nothing.
 * @see GASNet's README-tools */
#define GASNETT_NORETURNP(function)
/** Marks a function that returns new memory, as `GASNETT_NORETURNP`. @see GASNet's README-tools */
#define GASNETT_MALLOCP(function)
/** Marks a function without side effects, as `GASNETT_NORETURNP`. @see GASNet's README-tools */
#define GASNETT_PUREP(function)
/** Marks a function of its arguments alone, as `GASNETT_NORETURNP`. @see GASNet's README-tools */
#define GASNETT_CONSTP(function)
/** Declares a function that takes a format of printf: the argument `format`, with values from argument `first` on, counted
 * from 1. A body may follow.
 * @see GASNet's README-tools */
#define GASNETT_FORMAT_PRINTF(function, format, first, declaration) \
    __attribute__((__format__(__printf__, format, first))) declaration

/** Begins an inline function. @see GASNet's README-tools */
#define GASNETT_INLINE(function) static __inline__ GASNETT_UNUSED
/** Begins a function that is always inlined. @see GASNet's README-tools */
#define GASNETT_ALWAYS_INLINE(function) static __inline__ __attribute__((__always_inline__, __unused__))
/** Begins an inline function, as `GASNETT_INLINE`. @see GASNet's README-tools */
#define GASNETT_PLEASE_INLINE(function) GASNETT_INLINE(function)
/** Declares a function that is never inlined. A body may follow. @see GASNet's README-tools */
#define GASNETT_NEVER_INLINE(function, declaration) __attribute__((__noinline__)) declaration
#define GASNETT_RESTRICT __restrict__
#define GASNETT_CURRENT_FUNCTION __func__

/** A condition, which is mostly true. @see GASNet's README-tools */
#define GASNETT_PREDICT_TRUE(condition) __builtin_expect(!!(condition), 1)
/** A condition, which is mostly false. @see GASNet's README-tools */
#define GASNETT_PREDICT_FALSE(condition) __builtin_expect(!!(condition), 0)
/** `if` of a condition that is mostly true. @see GASNet's README-tools */
#define if_pt(condition) if (GASNETT_PREDICT_TRUE(condition))
/** `if` of a condition that is mostly false. @see GASNet's README-tools */
#define if_pf(condition) if (GASNETT_PREDICT_FALSE(condition))
/** Asks the processor for a cache line, to read it. @see GASNet's README-tools */
#define GASNETT_PREFETCH_READ_HINT(address) __builtin_prefetch((address), 0)
/** Asks the processor for a cache line, to write it. @see GASNet's README-tools */
#define GASNETT_PREFETCH_WRITE_HINT(address) __builtin_prefetch((address), 1)
/** Returns whether the compiler knows an expression's value. @see GASNet's README-tools */
#define gasnett_constant_p(expression) __builtin_constant_p(expression)

#ifdef __cplusplus
#define GASNETT_EXTERNC extern "C"
#define GASNETT_BEGIN_EXTERNC extern "C" {
#define GASNETT_END_EXTERNC }
#else
#define GASNETT_EXTERNC extern
#define GASNETT_BEGIN_EXTERNC
#define GASNETT_END_EXTERNC
#endif

#define GASNETT_SYSTEM_TUPLE _STRINGIFY(PLATFORM_ARCH_FAMILYNAME) "-" _STRINGIFY(PLATFORM_OS_FAMILYNAME)

/* Puts a text into the program, for tools that search it. */
/** Defines a string that stays in the object file. @see GASNet's README-tools */
#define GASNETT_IDENT(name, text) static char name[] GASNETT_USED = text

#define GASNETT_CACHE_LINE_BYTES 64
#define GASNETT_PAGESIZE 4096
#define GASNETT_CONFIG_STRING "PTR=64bit,TIMER=posix,ATOMIC=compiler"
#ifdef GASNETI_MAX_THREADS
#define GASNETT_MAX_THREADS GASNETI_MAX_THREADS
#endif

GASNETT_BEGIN_EXTERNC

/* ---- memory barriers ---- */

/** A memory barrier for loads and stores. @see GASNet's README-tools */
#define gasnett_local_mb() __atomic_thread_fence(__ATOMIC_SEQ_CST)
/** A memory barrier for stores. @see GASNet's README-tools */
#define gasnett_local_wmb() __atomic_thread_fence(__ATOMIC_RELEASE)
/** A memory barrier for loads. @see GASNet's README-tools */
#define gasnett_local_rmb() __atomic_thread_fence(__ATOMIC_ACQUIRE)
/** A memory barrier for loads and stores. @see GASNet's README-tools */
#define gasnett_weak_mb() gasnett_local_mb()
/** A memory barrier for stores. @see GASNet's README-tools */
#define gasnett_weak_wmb() gasnett_local_wmb()
/** A memory barrier for loads. @see GASNet's README-tools */
#define gasnett_weak_rmb() gasnett_local_rmb()
/** A barrier for the compiler alone. @see GASNet's README-tools */
#define gasnett_compiler_fence() __asm__ __volatile__("" ::: "memory")
#if defined(__x86_64__) || defined(__i386__)
/** Tells the processor that a loop spins. @see GASNet's README-tools */
#define gasnett_spinloop_hint() __asm__ __volatile__("pause" ::: "memory")
#elif defined(__aarch64__)
/** Tells the processor that a loop spins. @see GASNet's README-tools */
#define gasnett_spinloop_hint() __asm__ __volatile__("yield" ::: "memory")
#else
/** Tells the processor that a loop spins. @see GASNet's README-tools */
#define gasnett_spinloop_hint() gasnett_compiler_fence()
#endif
/** Gives up the processor. @see GASNet's README-tools */
#define gasnett_sched_yield() sched_yield()

/* ---- atomics ---- */

/* Barriers before and after; some only where a compare-and-swap or a decrement-and-test was true, or false. */
#define GASNETT_ATOMIC_NONE 0
#define GASNETT_ATOMIC_RMB_PRE 1
#define GASNETT_ATOMIC_WMB_PRE 2
#define GASNETT_ATOMIC_MB_PRE 3
#define GASNETT_ATOMIC_RMB_POST 4
#define GASNETT_ATOMIC_WMB_POST 8
#define GASNETT_ATOMIC_MB_POST 12
#define GASNETT_ATOMIC_RMB_POST_IF_TRUE 16
#define GASNETT_ATOMIC_RMB_POST_IF_FALSE 32
#define GASNETT_ATOMIC_REL GASNETT_ATOMIC_MB_PRE
#define GASNETT_ATOMIC_ACQ GASNETT_ATOMIC_MB_POST
#define GASNETT_ATOMIC_ACQ_IF_TRUE GASNETT_ATOMIC_RMB_POST_IF_TRUE
#define GASNETT_ATOMIC_ACQ_IF_FALSE GASNETT_ATOMIC_RMB_POST_IF_FALSE

#define GASNETT_HAVE_ATOMIC_CAS 1
#define GASNETT_HAVE_ATOMIC_ADD_SUB 1
#define GASNETT_HAVE_STRONGATOMIC_CAS 1
#define GASNETT_HAVE_STRONGATOMIC_ADD_SUB 1

GASNETT_INLINE(gasnett_fence_before_) void gasnett_fence_before_(int flags) {
    if (flags & GASNETT_ATOMIC_MB_PRE) gasnett_local_mb();
}
GASNETT_INLINE(gasnett_fence_after_) void gasnett_fence_after_(int flags) {
    if (flags & GASNETT_ATOMIC_MB_POST) gasnett_local_mb();
}
GASNETT_INLINE(gasnett_fence_answer_) int gasnett_fence_answer_(int answer, int flags) {
    int wanted = answer ? GASNETT_ATOMIC_RMB_POST_IF_TRUE : GASNETT_ATOMIC_RMB_POST_IF_FALSE;
    if (flags & (wanted | GASNETT_ATOMIC_MB_POST)) gasnett_local_mb();
    return answer;
}

#define GASNETT_ATOMIC_TYPE_(name, value_t) \
    typedef struct { \
        value_t value_; \
    } name##_t; \
    /** Returns the number. flags: some of GASNETT_ATOMIC_. @see GASNet's README-tools */ \
    GASNETT_INLINE(name##_read) value_t name##_read(name##_t const *at, int flags) { \
        value_t value; \
        gasnett_fence_before_(flags); \
        value = __atomic_load_n(&at->value_, __ATOMIC_RELAXED); \
        gasnett_fence_after_(flags); \
        return value; \
    } \
    /** Sets the number. flags: some of GASNETT_ATOMIC_. @see GASNet's README-tools */ \
    GASNETT_INLINE(name##_set) void name##_set(name##_t *at, value_t value, int flags) { \
        gasnett_fence_before_(flags); \
        __atomic_store_n(&at->value_, value, __ATOMIC_RELAXED); \
        gasnett_fence_after_(flags); \
    } \
    /** Sets the number, and returns the old one. flags: some of GASNETT_ATOMIC_. @see GASNet's README-tools */ \
    GASNETT_INLINE(name##_swap) value_t name##_swap(name##_t *at, value_t value, int flags) { \
        gasnett_fence_before_(flags); \
        value = __atomic_exchange_n(&at->value_, value, __ATOMIC_RELAXED); \
        gasnett_fence_after_(flags); \
        return value; \
    } \
    /** Adds to the number, and returns the new one. flags: some of GASNETT_ATOMIC_. @see GASNet's README-tools */ \
    GASNETT_INLINE(name##_add) value_t name##_add(name##_t *at, value_t value, int flags) { \
        gasnett_fence_before_(flags); \
        value = __atomic_add_fetch(&at->value_, value, __ATOMIC_RELAXED); \
        gasnett_fence_after_(flags); \
        return value; \
    } \
    /**
     * Subtracts from the number, and returns the new one. flags: some of GASNETT_ATOMIC_.
     * @see GASNet's README-tools
     */ \
    GASNETT_INLINE(name##_subtract) value_t name##_subtract(name##_t *at, value_t value, int flags) { \
        gasnett_fence_before_(flags); \
        value = __atomic_sub_fetch(&at->value_, value, __ATOMIC_RELAXED); \
        gasnett_fence_after_(flags); \
        return value; \
    } \
    /** Adds 1. flags: some of GASNETT_ATOMIC_. @see GASNet's README-tools */ \
    GASNETT_INLINE(name##_increment) void name##_increment(name##_t *at, int flags) { \
        (void)name##_add(at, 1, flags); \
    } \
    /** Subtracts 1. flags: some of GASNETT_ATOMIC_. @see GASNet's README-tools */ \
    GASNETT_INLINE(name##_decrement) void name##_decrement(name##_t *at, int flags) { \
        (void)name##_subtract(at, 1, flags); \
    } \
    /**
     * Subtracts 1, and returns whether the new number is 0. flags: some of GASNETT_ATOMIC_.
     * @see GASNet's README-tools
     */ \
    GASNETT_INLINE(name##_decrement_and_test) int name##_decrement_and_test(name##_t *at, int flags) { \
        return gasnett_fence_answer_(name##_subtract(at, 1, flags & GASNETT_ATOMIC_MB_PRE) == 0, flags); \
    } \
    /**
     * Sets the number if it is the expected one, and returns whether it did. flags: some of GASNETT_ATOMIC_.
     * @see GASNet's README-tools
     */ \
    GASNETT_INLINE(name##_compare_and_swap) \
    int name##_compare_and_swap(name##_t *at, value_t is, value_t value, int flags) { \
        int swapped; \
        gasnett_fence_before_(flags); \
        swapped = __atomic_compare_exchange_n(&at->value_, &is, value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
        return gasnett_fence_answer_(swapped, flags); \
    }

typedef uint32_t gasnett_atomic_val_t;
typedef int32_t gasnett_atomic_sval_t;
#define GASNETT_ATOMIC_MAX UINT32_MAX
#define GASNETT_ATOMIC_SIGNED_MIN INT32_MIN
#define GASNETT_ATOMIC_SIGNED_MAX INT32_MAX
/** Returns the signed number with the same bits. @see GASNet's README-tools */
#define gasnett_atomic_signed(value) ((gasnett_atomic_sval_t)(value))

GASNETT_ATOMIC_TYPE_(gasnett_atomic, uint32_t)
GASNETT_ATOMIC_TYPE_(gasnett_atomic32, uint32_t)
GASNETT_ATOMIC_TYPE_(gasnett_atomic64, uint64_t)
GASNETT_ATOMIC_TYPE_(gasnett_strongatomic, uint32_t)
GASNETT_ATOMIC_TYPE_(gasnett_strongatomic32, uint32_t)
GASNETT_ATOMIC_TYPE_(gasnett_strongatomic64, uint64_t)

/** Initialises an atomic number. @see GASNet's README-tools */
#define gasnett_atomic_init(value) {(uint32_t)(value)}
/** Initialises an atomic number. @see GASNet's README-tools */
#define gasnett_atomic32_init(value) {(uint32_t)(value)}
/** Initialises an atomic number. @see GASNet's README-tools */
#define gasnett_atomic64_init(value) {(uint64_t)(value)}
/** Initialises an atomic number. @see GASNet's README-tools */
#define gasnett_strongatomic_init(value) {(uint32_t)(value)}
/** Initialises an atomic number. @see GASNet's README-tools */
#define gasnett_strongatomic32_init(value) {(uint32_t)(value)}
/** Initialises an atomic number. @see GASNet's README-tools */
#define gasnett_strongatomic64_init(value) {(uint64_t)(value)}

/* ---- timers ---- */

/* Nanoseconds since some moment, in one thread never less than before. */
typedef uint64_t gasnett_tick_t;
#define GASNETT_TICK_MIN ((gasnett_tick_t)0)
#define GASNETT_TICK_MAX UINT64_MAX

/** Returns the time of day, in microseconds since 1970. @see GASNet's README-tools */
GASNETT_INLINE(gasnett_gettimeofday_us) uint64_t gasnett_gettimeofday_us(void) {
    struct timeval now;
    gettimeofday(&now, NULL);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_usec;
}

/** Returns nanoseconds since some moment, in one thread never less than before. @see GASNet's README-tools */
GASNETT_INLINE(gasnett_ticks_now) gasnett_tick_t gasnett_ticks_now(void) {
#ifdef CLOCK_MONOTONIC
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
#else /* A compiler in the mode of strict C. */
    return gasnett_gettimeofday_us() * 1000;
#endif
}

/** Converts ticks to nanoseconds. @see GASNet's README-tools */
#define gasnett_ticks_to_ns(ticks) ((uint64_t)(ticks))
/** Converts ticks to microseconds. @see GASNet's README-tools */
#define gasnett_ticks_to_us(ticks) ((uint64_t)(ticks) / 1000)

/** Measures the cost of one reading, in microseconds. @see GASNet's README-tools */
GASNETT_INLINE(gasnett_tick_overheadus) double gasnett_tick_overheadus(void) {
    gasnett_tick_t begin = gasnett_ticks_now(), end = begin;
    int n;
    for (n = 0; n < 1000; ++n) end = gasnett_ticks_now();
    return (double)(end - begin) / 1000 / 1000;
}
/** Measures the least difference between two readings, in microseconds. @see GASNet's README-tools */
GASNETT_INLINE(gasnett_tick_granularityus) double gasnett_tick_granularityus(void) {
    gasnett_tick_t least = GASNETT_TICK_MAX;
    int n;
    for (n = 0; n < 100; ++n) {
        gasnett_tick_t before = gasnett_ticks_now(), now = before;
        while (now == before) now = gasnett_ticks_now();
        if (now - before < least) least = now - before;
    }
    return (double)least / 1000;
}
/** Returns the cost of one reading, in microseconds. @see GASNet's README-tools */
#define gasnett_timer_overheadus() gasnett_tick_overheadus()
/** Returns the least difference between two readings, in microseconds. @see GASNet's README-tools */
#define gasnett_timer_granularityus() gasnett_tick_granularityus()

/**
 * Sleeps at least so many nanoseconds, unless a signal is handled: 0, or -1 with errno as by nanosleep.
 * @see GASNet's README-tools
 */
GASNETT_INLINE(gasnett_nsleep) int gasnett_nsleep(uint64_t nanoseconds) {
    struct timeval time;
    uint64_t microseconds = (nanoseconds + 999) / 1000;
    time.tv_sec = (time_t)(microseconds / 1000000);
    time.tv_usec = (suseconds_t)(microseconds % 1000000);
    return select(0, NULL, NULL, NULL, &time);
}

/* ---- threads ---- */

typedef pthread_mutex_t gasnett_mutex_t;
#define GASNETT_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
/** Initialises a mutex. @see GASNet's README-tools */
#define gasnett_mutex_init(mutex) ((void)pthread_mutex_init((mutex), NULL))
/** Ends the use of a mutex. @see GASNet's README-tools */
#define gasnett_mutex_destroy(mutex) ((void)pthread_mutex_destroy(mutex))
/** Ends the use of a mutex. @see GASNet's README-tools */
#define gasnett_mutex_destroy_ignoreerr(mutex) ((void)pthread_mutex_destroy(mutex))
/** Takes a mutex, and waits until it can. @see GASNet's README-tools */
#define gasnett_mutex_lock(mutex) ((void)pthread_mutex_lock(mutex))
/** Takes a mutex if that needs no wait; 0 if it is taken now. @see GASNet's README-tools */
#define gasnett_mutex_trylock(mutex) pthread_mutex_trylock(mutex)
/** Gives back a mutex. @see GASNet's README-tools */
#define gasnett_mutex_unlock(mutex) ((void)pthread_mutex_unlock(mutex))

typedef pthread_cond_t gasnett_cond_t;
#define GASNETT_COND_INITIALIZER PTHREAD_COND_INITIALIZER
/** Initialises a condition variable. @see GASNet's README-tools */
#define gasnett_cond_init(cond) ((void)pthread_cond_init((cond), NULL))
/** Ends the use of a condition variable. @see GASNet's README-tools */
#define gasnett_cond_destroy(cond) ((void)pthread_cond_destroy(cond))
/** Wakes a thread that waits. @see GASNet's README-tools */
#define gasnett_cond_signal(cond) ((void)pthread_cond_signal(cond))
/** Wakes all threads that wait. @see GASNet's README-tools */
#define gasnett_cond_broadcast(cond) ((void)pthread_cond_broadcast(cond))
/** Gives back a mutex, waits to be woken, and takes it again. @see GASNet's README-tools */
#define gasnett_cond_wait(cond, mutex) ((void)pthread_cond_wait((cond), (mutex)))

#ifdef PTHREAD_RWLOCK_INITIALIZER
typedef pthread_rwlock_t gasnett_rwlock_t;
#define GASNETT_RWLOCK_INITIALIZER PTHREAD_RWLOCK_INITIALIZER
/** Initialises a lock for readers and writers. @see GASNet's README-tools */
#define gasnett_rwlock_init(lock) ((void)pthread_rwlock_init((lock), NULL))
/** Ends the use of a lock for readers and writers. @see GASNet's README-tools */
#define gasnett_rwlock_destroy(lock) ((void)pthread_rwlock_destroy(lock))
/** Takes the lock to read. @see GASNet's README-tools */
#define gasnett_rwlock_rdlock(lock) ((void)pthread_rwlock_rdlock(lock))
/** Takes the lock to write. @see GASNet's README-tools */
#define gasnett_rwlock_wrlock(lock) ((void)pthread_rwlock_wrlock(lock))
/** Takes the lock to read if that needs no wait; 0 if it is taken now. @see GASNet's README-tools */
#define gasnett_rwlock_tryrdlock(lock) pthread_rwlock_tryrdlock(lock)
/** Takes the lock to write if that needs no wait; 0 if it is taken now. @see GASNet's README-tools */
#define gasnett_rwlock_trywrlock(lock) pthread_rwlock_trywrlock(lock)
/** Gives back the lock. @see GASNet's README-tools */
#define gasnett_rwlock_unlock(lock) ((void)pthread_rwlock_unlock(lock))
#endif

/* A pointer that each thread has for itself, null at first. */
/** Declares a pointer of each thread, defined in another file. @see GASNet's README-tools */
#define GASNETT_THREADKEY_DECLARE(key) extern __thread void *key
/** Defines a pointer of each thread, null at first. @see GASNet's README-tools */
#define GASNETT_THREADKEY_DEFINE(key) __thread void *key = NULL
/** Does nothing: a key needs no preparation. @see GASNet's README-tools */
#define gasnett_threadkey_init(key) ((void)(key))
/** Returns the calling thread's pointer. @see GASNet's README-tools */
#define gasnett_threadkey_get(key) (key)
/** Sets the calling thread's pointer. @see GASNet's README-tools */
#define gasnett_threadkey_set(key, value) ((void)((key) = (value)))
/** Returns the calling thread's pointer. @see GASNet's README-tools */
#define gasnett_threadkey_get_noinit(key) gasnett_threadkey_get(key)
/** Sets the calling thread's pointer. @see GASNet's README-tools */
#define gasnett_threadkey_set_noinit(key, value) gasnett_threadkey_set(key, value)

/* ---- the process ---- */

#define GASNETT_TEXT_(number) #number
#define GASNETT_LINE_(number) GASNETT_TEXT_(number)
/** The place in the source, as a text. @see GASNet's README-tools */
#define gasnett_current_loc (__FILE__ ":" GASNETT_LINE_(__LINE__))

/** Prints a text in one line, and ends the process by SIGABRT, so that the job fails. @see GASNet's README-tools */
#define gasnett_fatalerror gasneti_fatalerror
/** Returns the name of this machine. @see GASNet's README-tools */
#define gasnett_gethostname gasneti_gethostname

/** Returns the number of processors that are online, or 0 if the system does not tell. @see GASNet's README-tools */
GASNETT_INLINE(gasnett_cpu_count) int gasnett_cpu_count(void) {
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (int)count : 0;
}

/**
 * Returns the machine's memory in bytes, or 0 if the system does not tell; with must_know that is fatal.
 * @see GASNet's README-tools
 */
GASNETT_INLINE(gasnett_getPhysMemSz) uint64_t gasnett_getPhysMemSz(int must_know) {
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    if (pages > 0 && size > 0) return (uint64_t)pages * (uint64_t)size;
    if (must_know) gasnett_fatalerror("the system does not tell how much memory it has");
    return 0;
}

/** Flushes all output streams. @see GASNet's README-tools */
GASNETT_INLINE(gasnett_flush_streams) void gasnett_flush_streams(void) { fflush(NULL); }
/** Ends the process with a status, at once. @see GASNet's README-tools */
GASNETT_INLINE(gasnett_killmyprocess) GASNETT_NORETURN void gasnett_killmyprocess(int status) { _exit(status); }
/** Returns 1 on processors that have low-order bytes first, else 0. @see GASNet's README-tools */
GASNETT_INLINE(gasnett_isLittleEndian) int gasnett_isLittleEndian(void) {
    const uint16_t one = 1;
    return *(const uint8_t *)&one;
}

/** Returns a hash of some bytes (FNV-1a). @see GASNet's README-tools */
GASNETT_INLINE(gasnett_checksum) uint64_t gasnett_checksum(const void *bytes, int nbytes) {
    const uint8_t *at = (const uint8_t *)bytes;
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    while (nbytes-- > 0) sum = (sum ^ *at++) * UINT64_C(0x100000001b3);
    return sum;
}

/* Installs a handler for a signal; returns the one before. */
typedef void (*gasnett_sighandlerfn_t)(int);
/** Installs a handler for a signal; returns the one before. @see GASNet's README-tools */
GASNETT_INLINE(gasnett_reghandler) gasnett_sighandlerfn_t gasnett_reghandler(int number, gasnett_sighandlerfn_t handler) {
    return signal(number, handler);
}

/* There is no trace, so nothing is written to it. */
#define GASNETT_TRACE_ENABLED 0
/** Names the place in the client's source for a trace. Without effect: there is no trace. @see GASNet's README-tools */
#define GASNETT_TRACE_SETSOURCELINE(file, line) ((void)0)
/** The place of `GASNETT_TRACE_SETSOURCELINE`. Without effect. @see GASNet's README-tools */
#define GASNETT_TRACE_GETSOURCELINE(file, line) ((void)0)
/** Keeps the place of a trace. Without effect. @see GASNet's README-tools */
#define GASNETT_TRACE_FREEZESOURCELINE() ((void)0)
/** Ends `GASNETT_TRACE_FREEZESOURCELINE`. Without effect. @see GASNet's README-tools */
#define GASNETT_TRACE_UNFREEZESOURCELINE() ((void)0)
/** The kinds of events in a trace: none. @see GASNet's README-tools */
#define GASNETT_TRACE_GETMASK() ""
/** Chooses the kinds of events in a trace. Without effect. @see GASNet's README-tools */
#define GASNETT_TRACE_SETMASK(mask) ((void)0)
/** Whether a trace has local operations: 0. @see GASNet's README-tools */
#define GASNETT_TRACE_GET_TRACELOCAL() 0
/** Chooses whether a trace has local operations. Without effect. @see GASNet's README-tools */
#define GASNETT_TRACE_SET_TRACELOCAL(local) ((void)0)
GASNETT_FORMAT_PRINTF(gasnett_no_trace_, 1, 2,
                      GASNETT_INLINE(gasnett_no_trace_) void gasnett_no_trace_(const char *format, ...)) {
    (void)format;
}
#define GASNETT_TRACE_PRINTF gasnett_no_trace_
#define GASNETT_TRACE_PRINTF_FORCE gasnett_no_trace_

GASNETT_END_EXTERNC

#endif
