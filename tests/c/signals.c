/* A client's own handler of SIGSEGV gets all faults except the library's.
 *   signals WHEN HOW
 * WHEN is before or after (vgasnet_attach), HOW one of the ways below. */
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "local.h"

#define FAULTS 60

static vgasnet_node_t me;
static size_t pages, closed_bytes;
static unsigned char *closed;
static volatile sig_atomic_t faults, traps, jumps, interrupts, interrupts_at_fault, touches_segment, saves_mask;
static void *volatile faulted_at;
static sigjmp_buf back;

/* The action installed by the client. sigaction must report it. */
static struct sigaction installed;

static void open_page(void) { CHECK(mprotect(closed, closed_bytes, PROT_READ | PROT_WRITE) == 0); }

/* The common part of all handlers. Faults in the segment may interrupt it. */
static void on_fault(void) {
    ++faults;
    if (touches_segment) store_word(at(me, (size_t)faults % pages * page_bytes() + 16), (uint64_t)faults);
    interrupts_at_fault = interrupts;
    if (jumps) siglongjmp(back, 1);
    open_page();
}

static void handle(int signal) {
    CHECK(signal == SIGSEGV);
    on_fault();
}

static void handle_with_info(int signal, siginfo_t *info, void *context) {
    CHECK(signal == SIGSEGV && info->si_signo == SIGSEGV && context != NULL);
    CHECK(info->si_code == SEGV_ACCERR);
    faulted_at = info->si_addr;
    on_fault();
}

/* Raises a signal blocked by its mask. */
static void handle_masked(int signal, siginfo_t *info, void *context) {
    sigset_t now;
    CHECK(raise(SIGUSR1) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &now) == 0 && sigismember(&now, SIGUSR1) == 1);
    handle_with_info(signal, info, context);
}

static void on_interrupt(int signal) {
    (void)signal;
    ++interrupts;
}

static void on_trap(int signal) {
    CHECK(signal == SIGTRAP);
    ++traps;
    store_word(at(me, (size_t)traps % pages * page_bytes() + 40), (uint64_t)traps);
}

static int is_text(const char *is, const char *should) { return strcmp(is, should) == 0; }

static void describe(const char *how) {
    memset(&installed, 0, sizeof installed);
    sigemptyset(&installed.sa_mask);
    if (is_text(how, "plain")) {
        installed.sa_handler = handle;
    } else if (is_text(how, "signal")) {
        installed.sa_handler = handle, installed.sa_flags = SA_RESTART;
    } else {
        installed.sa_flags = SA_SIGINFO;
        installed.sa_sigaction = is_text(how, "masked") ? handle_masked : handle_with_info;
    }
    if (is_text(how, "masked")) sigaddset(&installed.sa_mask, SIGUSR1);
    if (is_text(how, "nodefer")) installed.sa_flags |= SA_NODEFER;
}

/* Whether sigaction reports this action. */
static int is_same(const struct sigaction *is, const struct sigaction *should) {
    const int flags = SA_SIGINFO | SA_NODEFER | SA_RESTART | SA_ONSTACK | (int)SA_RESETHAND;
    int same = (is->sa_flags & flags) == (should->sa_flags & flags);
    for (int signal = 1; signal < 32; ++signal)
        same = same && sigismember(&is->sa_mask, signal) == sigismember(&should->sa_mask, signal);
    return same && (should->sa_flags & SA_SIGINFO ? is->sa_sigaction == should->sa_sigaction
                                                  : is->sa_handler == should->sa_handler);
}

static void check_told(const struct sigaction *should) {
    struct sigaction told;
    memset(&told, 0xee, sizeof told);
    CHECK(sigaction(SIGSEGV, NULL, &told) == 0);
    CHECK(is_same(&told, should));
}

static void install(const char *how) {
    struct sigaction none, before;
    memset(&none, 0, sizeof none);
    none.sa_handler = SIG_DFL;
    describe(how);
    check_told(&none);
    if (is_text(how, "signal")) {
        CHECK(signal(SIGSEGV, handle) == SIG_DFL);
        /* BSD semantics: the signal is in its handler's mask, and calls may report it or not. */
        CHECK(sigaction(SIGSEGV, NULL, &before) == 0 && before.sa_handler == handle);
        installed.sa_mask = before.sa_mask;
        return;
    }
    CHECK(sigaction(SIGSEGV, &installed, &before) == 0);
    CHECK(is_same(&before, &none));
}

/* Loads and stores only in the segment: the client's handler gets none of these faults. */
static void use_segment(uint64_t *state) {
    sig_atomic_t before = faults;
    for (int i = 0; i < 8; ++i) {
        unsigned char *place = (unsigned char *)at(me, random_below(state, pages) * page_bytes() + 24);
        uint64_t word = random_word(state);
        if (i % 2 == 0) CHECK_EQ(load_word(place), load_word(place + 8));
        if (i % 2 == 1) store_word(place, word), store_word(place + 8, word);
    }
    CHECK(faults == before);
}

/* Copies a word by one instruction, if there is one: it may fault on either side. */
static void copy_word(void *to, const void *from) {
#if defined(__x86_64__)
    __asm__ volatile("movsq" : "+S"(from), "+D"(to) : : "memory");
#else
    store_word(to, load_word(from));
#endif
}

static void check_nothing_blocked(void) {
    sigset_t now;
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &now) == 0);
    for (int signal = 1; signal < 32; ++signal) CHECK(sigismember(&now, signal) == 0);
}

/* A fault outside of the library: the handler opens the page, or jumps out of the access. The source of a store is
 * in the segment. */
static void fault_once(uint64_t *state) {
    unsigned char *place = closed + random_below(state, closed_bytes - 7);
    const void *source = at(me, random_below(state, pages) * page_bytes() + 24);
    sig_atomic_t before = faults, interrupts_before = interrupts;
    CHECK(mprotect(closed, closed_bytes, PROT_NONE) == 0);
    if (sigsetjmp(back, saves_mask) == 0) {
        copy_word(place, source);
        CHECK(!jumps && memcmp(place, source, 8) == 0);
    } else {
        CHECK(jumps);
    }
    CHECK(faults == before + 1);
    check_nothing_blocked();
    if (installed.sa_flags & SA_SIGINFO) CHECK(faulted_at == place);
    if (sigismember(&installed.sa_mask, SIGUSR1) == 1) {
        CHECK(interrupts_at_fault == interrupts_before);
        CHECK(interrupts == interrupts_before + 1);
    }
}

static void faults_of_all_kinds(uint64_t *state) {
    /* With SA_NODEFER, sigsetjmp need not save the mask. */
    saves_mask = (installed.sa_flags & SA_NODEFER) == 0;
    for (int i = 0; i < FAULTS; ++i) {
        jumps = i % 3 == 2, touches_segment = i % 2;
        use_segment(state);
        fault_once(state);
    }
}

static void *fault_in_thread(void *argument) {
    (void)argument;
    uint64_t state = mixed(25, me, 1);
    faults_of_all_kinds(&state);
    return NULL;
}

/* A sent signal of any kind belongs to the client. */
static void sent(void) {
    sig_atomic_t before = faults;
    struct sigaction counting = installed;
    counting.sa_flags = 0, counting.sa_handler = handle;
    jumps = touches_segment = 0;
    CHECK(sigaction(SIGSEGV, &counting, NULL) == 0);
    CHECK(raise(SIGSEGV) == 0);
    CHECK(faults == before + 1);
    CHECK(sigaction(SIGSEGV, &installed, &counting) == 0);
    CHECK(counting.sa_handler == handle);
}

/* Traps of the program itself, as by a built-in debugger. */
static void trapped(uint64_t *state) {
    struct sigaction told;
    CHECK(sigaction(SIGTRAP, NULL, &told) == 0 && told.sa_handler == on_trap);
    for (sig_atomic_t i = 0; i < FAULTS; i += 2) {
        use_segment(state);
        CHECK(raise(SIGTRAP) == 0);
#if defined(__x86_64__)
        __asm__ volatile("int3");
#else
        CHECK(raise(SIGTRAP) == 0);
#endif
        CHECK(traps == i + 2);
    }
}

/* A handler called once. */
static void once(uint64_t *state) {
    struct sigaction none, resetting = installed;
    memset(&none, 0, sizeof none);
    resetting.sa_flags |= (int)SA_RESETHAND;
    jumps = touches_segment = 0;
    CHECK(sigaction(SIGSEGV, &resetting, NULL) == 0);
    check_told(&resetting);
    fault_once(state);
    struct sigaction told;
    CHECK(sigaction(SIGSEGV, NULL, &told) == 0 && told.sa_handler == SIG_DFL);
    use_segment(state);
    CHECK(sigaction(SIGSEGV, &installed, NULL) == 0);
}

int main(int argc, char **argv) {
    pthread_t thread;
    if (argc < 3 || vgasnet_init(&argc, &argv) != VGASNET_OK) return 1;
    int before = is_text(argv[1], "before");
    signal(SIGUSR1, on_interrupt);
    if (before) {
        install(argv[2]);
        CHECK(signal(SIGTRAP, on_trap) == SIG_DFL);
    }
    pages = 3 * pool_pages();
    CHECK(vgasnet_attach(NULL, 0, pages * page_bytes(), 0) == VGASNET_OK);
    me = vgasnet_mynode();
    (void)at(0, 0);
    closed_bytes = (size_t)sysconf(_SC_PAGESIZE);
    closed = (unsigned char *)mmap(NULL, closed_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(closed != MAP_FAILED);
    uint64_t state = mixed(25, me, 0);
    use_segment(&state);
    if (!before) {
        install(argv[2]);
        CHECK(signal(SIGTRAP, on_trap) == SIG_DFL);
    }
    check_told(&installed);
    faults_of_all_kinds(&state);
    CHECK(pthread_create(&thread, NULL, fault_in_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    check_told(&installed);
    sent();
    trapped(&state);
    once(&state);
    check_told(&installed);
    CHECK(signal(SIGSEGV, SIG_DFL) == installed.sa_handler);
    use_segment(&state);
    return finish();
}
