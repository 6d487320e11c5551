/* Features used by clients and missing in the specification, or only hinted at: wait modes, thread information, the
 * tools' and the handlers' headers. */
#include <stdlib.h>
#include <time.h>

#include "client.h"

#include <gasnet_handler.h>
#include <gasnet_tools.h>
#include <portable_inttypes.h>
#include <portable_platform.h>

#define _hidx_note 150
#define _hidx_noted 151
#define _hidx_parcel 152
#define _hidx_plain 153

GASNETT_THREADKEY_DEFINE(own);
GASNETT_IDENT(ident, "$Client: extras on " GASNETT_SYSTEM_TUPLE ", line " _STRINGIFY(__LINE__) " $");

static gasnett_atomic_t notes = gasnett_atomic_init(0);
static gasnett_atomic64_t wide = gasnett_atomic64_init(UINT64_C(1) << 40);
static gasnett_mutex_t mutex = GASNETT_MUTEX_INITIALIZER;
static gasnett_cond_t cond = GASNETT_COND_INITIALIZER;

/* A pointer travels to another node and back. */
static void note_inner(gasnet_token_t token, void *pointer) {
    CHECK(SHORT_REP(1, 2, (token, gasneti_handleridx(noted), PACK(pointer))) == GASNET_OK);
}
SHORT_HANDLER(note, 1, 2, (token, UNPACK(a0)), (token, UNPACK2(a0, a1)));

static void noted_inner(gasnet_token_t token, void *pointer) {
    (void)token;
    CHECK(pointer == &notes);
    gasnett_atomic_increment((gasnett_atomic_t *)pointer, GASNETT_ATOMIC_REL);
}
SHORT_HANDLER(noted, 1, 2, (token, UNPACK(a0)), (token, UNPACK2(a0, a1)));

static void parcel_inner(gasnet_token_t token, void *bytes, size_t len, int number, void *pointer) {
    compare(bytes, len, me, (uintptr_t)number);
    noted_inner(token, pointer);
}
MEDIUM_HANDLER(parcel, 2, 3, (token, addr, nbytes, a0, UNPACK(a1)), (token, addr, nbytes, a0, UNPACK2(a1, a2)));

SHORT_HANDLER_NOBITS_DECL(plain, 1);
void plain(gasnet_token_t token, gasnet_handlerarg_t a0) {
    (void)token;
    CHECK(a0 == -1);
    gasnett_atomic_increment(&notes, 0);
}

GASNETT_INLINE(twice) int twice(int number) { return 2 * number; }

static int threadinfo(gasnet_threadinfo_t info) {
    GASNET_POST_THREADINFO(info);
    int sum = twice(1);
    {
        GASNET_BEGIN_FUNCTION();
        int more = 1;
        sum += more;
    }
    return sum;
}

static void atomics(void) {
    gasnett_atomic_t small = gasnett_atomic_init(5);
    gasnett_strongatomic32_t strong = gasnett_strongatomic32_init(0);
    CHECK(gasnett_atomic_add(&small, 3, GASNETT_ATOMIC_NONE) == 8 && gasnett_atomic_subtract(&small, 9, 0) == UINT32_MAX);
    CHECK(gasnett_atomic_signed(gasnett_atomic_read(&small, GASNETT_ATOMIC_ACQ)) == -1);
    gasnett_atomic_set(&small, 2, GASNETT_ATOMIC_REL);
    CHECK(!gasnett_atomic_decrement_and_test(&small, GASNETT_ATOMIC_ACQ_IF_TRUE));
    CHECK(gasnett_atomic_decrement_and_test(&small, GASNETT_ATOMIC_MB_PRE | GASNETT_ATOMIC_MB_POST));
    CHECK(!gasnett_atomic_compare_and_swap(&small, 1, 2, 0) && gasnett_atomic_compare_and_swap(&small, 0, 7, 0));
    CHECK(gasnett_atomic_swap(&small, 1, 0) == 7);
    gasnett_strongatomic32_increment(&strong, 0);
    gasnett_strongatomic32_decrement(&strong, 0);
    CHECK(gasnett_strongatomic32_read(&strong, 0) == 0);
    gasnett_local_mb();
    gasnett_local_wmb();
    gasnett_local_rmb();
    gasnett_compiler_fence();
    gasnett_spinloop_hint();
}

/* Beyond 32 bits, with every flag. */
static void wide_atomics(void) {
    const uint64_t high = UINT64_C(1) << 40;
    const int both = GASNETT_ATOMIC_REL | GASNETT_ATOMIC_ACQ;
    CHECK(gasnett_atomic64_read(&wide, GASNETT_ATOMIC_MB_PRE) == high);
    CHECK(gasnett_atomic64_add(&wide, high + 2, GASNETT_ATOMIC_WMB_PRE | GASNETT_ATOMIC_RMB_POST) == 2 * high + 2);
    CHECK(gasnett_atomic64_subtract(&wide, high, GASNETT_ATOMIC_RMB_PRE | GASNETT_ATOMIC_WMB_POST) == high + 2);
    gasnett_atomic64_increment(&wide, GASNETT_ATOMIC_REL);
    gasnett_atomic64_decrement(&wide, GASNETT_ATOMIC_ACQ);
    CHECK(gasnett_atomic64_swap(&wide, 1, both) == high + 2);
    CHECK(gasnett_atomic64_decrement_and_test(&wide, GASNETT_ATOMIC_ACQ_IF_TRUE));
    CHECK(!gasnett_atomic64_decrement_and_test(&wide, GASNETT_ATOMIC_ACQ_IF_FALSE));
    CHECK(gasnett_atomic64_read(&wide, 0) == UINT64_MAX);
    CHECK(!gasnett_atomic64_compare_and_swap(&wide, UINT32_MAX, 0, GASNETT_ATOMIC_RMB_POST_IF_FALSE));
    CHECK(gasnett_atomic64_compare_and_swap(&wide, UINT64_MAX, high, GASNETT_ATOMIC_RMB_POST_IF_TRUE));
    gasnett_atomic64_set(&wide, high, GASNETT_ATOMIC_MB_POST);
    CHECK(gasnett_atomic64_read(&wide, GASNETT_ATOMIC_NONE) == high);
}

/* Facts about compiler, system and processor at a client's compilation. */
#if PLATFORM_COMPILER_GNU + PLATFORM_COMPILER_CLANG != 1 || PLATFORM_OS_LINUX != 1
#error compiler and system
#endif
#if PLATFORM_ARCH_64 + PLATFORM_ARCH_32 != 1 || PLATFORM_ARCH_LITTLE_ENDIAN + PLATFORM_ARCH_BIG_ENDIAN != 1
#error processor
#endif
#if PLATFORM_COMPILER_GNU_C + PLATFORM_COMPILER_GNU_CXX + PLATFORM_COMPILER_CLANG_C + PLATFORM_COMPILER_CLANG_CXX != 1
#error language
#endif
#if !PLATFORM_COMPILER_VERSION_GT(3, 99, 0) || PLATFORM_COMPILER_VERSION_LT(4, 0, 0) || PLATFORM_COMPILER_VERSION_EQ(1, 0, 0)
#error version
#endif
#if defined(__x86_64__) && !PLATFORM_ARCH_X86_64
#error x86-64
#endif
static void platform(void) {
    const char *family = PLATFORM_STRINGIFY(PLATFORM_COMPILER_FAMILYNAME);
    char text[100];
    CHECK(strcmp(family, PLATFORM_COMPILER_FAMILYID == 19 ? "CLANG" : "GNU") == 0 && PLATFORM_COMPILER_ID > 0);
    CHECK(strcmp(PLATFORM_STRINGIFY(PLATFORM_OS_FAMILYNAME), "LINUX") == 0);
    CHECK(strstr(PLATFORM_COMPILER_IDSTR, PLATFORM_COMPILER_VERSION_STR) != NULL);
    CHECK((sizeof(void *) == 8) == PLATFORM_ARCH_64 && gasnett_isLittleEndian() == PLATFORM_ARCH_LITTLE_ENDIAN);
    snprintf(text, sizeof text, "%" PRIuSZ " %" PRIdPD " %" PRIu64, sizeof text, (ptrdiff_t)-1, UINT64_MAX);
    CHECK(strcmp(text, "100 -1 18446744073709551615") == 0);
    CHECK(strcmp(gasneti_gethostname(), gasnett_gethostname()) == 0 && strlen(gasneti_gethostname()) > 0);
}

static void tools(void) {
    gasnett_tick_t begin = gasnett_ticks_now(), end;
    CHECK(begin > GASNETT_TICK_MIN && begin < GASNETT_TICK_MAX);
    CHECK(gasnett_nsleep(2000000) == 0);
    end = gasnett_ticks_now();
    CHECK(gasnett_ticks_to_us(end - begin) >= 1900 && gasnett_ticks_to_ns(end - begin) >= 1900000);
    CHECK(gasnett_tick_overheadus() < 1000 && gasnett_tick_granularityus() < 1000);
    gasnett_mutex_lock(&mutex);
    CHECK(gasnett_mutex_trylock(&mutex) != 0);
    gasnett_cond_signal(&cond);
    gasnett_mutex_unlock(&mutex);
    CHECK(gasnett_threadkey_get(own) == NULL);
    gasnett_threadkey_set(own, &notes);
    CHECK(gasnett_threadkey_get(own) == &notes);
    CHECK(gasnett_cpu_count() > 0 && gasnett_getPhysMemSz(1) > 0 && strlen(gasnett_gethostname()) > 0);
    CHECK(strlen(gasnett_getenv_withdefault("CHECK_NO_SUCH_VARIABLE", "text")) == 4);
    CHECK(gasnett_getenv_yesno_withdefault("CHECK_NO_SUCH_VARIABLE", 1));
    CHECK(!gasnett_verboseenv() && HAVE_PTHREAD_H && SIZEOF_LONG == sizeof(long));
    CHECK(gasnett_checksum("a", 1) != gasnett_checksum("b", 1));
    GASNETT_TRACE_PRINTF("%d", 1);
    if_pf (GASNETT_TRACE_ENABLED) gasnett_fatalerror("there is %s", "a trace");
}

static double seconds(clockid_t clock) {
    struct timespec now;
    CHECK(clock_gettime(clock, &now) == 0);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Seconds in which this thread ran. */
static double ran(void) { return seconds(CLOCK_THREAD_CPUTIME_ID); }

/* Conditions changed by no handler: by a late put, or by another thread. */
static void wait_for_a_put(int value, int mode) {
    volatile int *word = (volatile int *)at(me, 64);
    double begin, ran_before, wall;
    if (me == 0) gasnett_nsleep(30000000);
    gasnet_put_val(next_node(), at(next_node(), 64), (gasnet_register_value_t)value, sizeof value);
    begin = seconds(CLOCK_MONOTONIC);
    ran_before = ran();
    GASNET_BLOCKUNTIL(*word == value);
    wall = seconds(CLOCK_MONOTONIC) - begin;
    /* A long wait shows the mode: a blocking thread yields the processor, on a busy machine to others. */
    if (wall > 0.025 && mode == GASNET_WAIT_BLOCK) CHECK(ran() - ran_before < wall - wall / 100);
}
#ifdef GASNET_PAR
/* Seconds in which this thread was ready and waited for a processor. */
static double waited(void) {
    char line[100];
    char *tail = line;
    FILE *file = fopen("/proc/thread-self/schedstat", "r");
    CHECK(file != NULL && fgets(line, sizeof line, file) != NULL);
    fclose(file);
    strtod(line, &tail);
    return 1e-9 * strtod(tail, NULL);
}

static void *mark(void *place) {
    gasnett_nsleep(30000000);
    gasnett_atomic_set((gasnett_atomic_t *)place, 1, GASNETT_ATOMIC_REL);
    return NULL;
}
static void wait_for_a_thread(int mode) {
    gasnett_atomic_t marked = gasnett_atomic_init(0);
    pthread_t thread;
    long looks = 0;
    double begin = seconds(CLOCK_MONOTONIC), awake_before = ran() + waited(), awake, wall;
    CHECK(pthread_create(&thread, NULL, mark, &marked) == 0);
    GASNET_BLOCKUNTIL((++looks, gasnett_atomic_read(&marked, GASNETT_ATOMIC_ACQ) == 1));
    awake = ran() + waited() - awake_before;
    wall = seconds(CLOCK_MONOTONIC) - begin;
    CHECK(pthread_join(thread, NULL) == 0);
    /* A spinning thread may have to wait for a lock sometimes, and for a processor. A sleeping one looks every few
     * milliseconds. */
    if (mode == GASNET_WAIT_SPIN) CHECK(looks > 100 || awake > wall / 2);
}
#else
static void wait_for_a_thread(int mode) { (void)mode; }
#endif

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {
        gasneti_handler_tableentry_with_bits(note),
        gasneti_handler_tableentry_with_bits(noted),
        gasneti_handler_tableentry_with_bits(parcel),
        gasneti_handler_tableentry_no_bits(plain),
    };
    const int modes[] = {GASNET_WAIT_SPIN, GASNET_WAIT_BLOCK, GASNET_WAIT_SPINBLOCK};
    unsigned char bytes[300];
    unsigned i;
    start(&argc, &argv, table, 4);
    atomics();
    wide_atomics();
    platform();
    tools();
    CHECK(threadinfo(GASNET_GET_THREADINFO()) == 3);
    for (i = 0; i < 3; ++i) {
        CHECK(gasnet_set_waitmode(modes[i]) == GASNET_OK);
        CHECK(SHORT_REQ(1, 2, (next_node(), gasneti_handleridx(note), PACK(&notes))) == GASNET_OK);
        fill(bytes, sizeof bytes, me, i);
        CHECK(MEDIUM_REQ(2, 3, (me, gasneti_handleridx(parcel), bytes, sizeof bytes, (int)i, PACK(&notes))) == GASNET_OK);
        CHECK(gasnet_AMRequestShort(me, gasneti_handleridx(plain), 1, -1) == GASNET_OK);
        GASNET_BLOCKUNTIL(gasnett_atomic_read(&notes, 0) == 3 * (i + 1));
        wait_for_a_put((int)i + 1, modes[i]);
        wait_for_a_thread(modes[i]);
        barrier();
    }
    CHECK(gasnet_set_waitmode(3) == GASNET_ERR_BAD_ARG);
    CHECK(gasnet_AMRequestShort(me, gasneti_handleridx(plain), -1) == GASNET_ERR_BAD_ARG);
    CHECK(strlen(ident) > 0);
    return finish();
}
