/* A handler stores to the page of the get or put it interrupts, while a neighbour has the page or wants it.
 *   interrupted_copies WAY
 * In the way "values" signals arrive while numbers are put, one after the other. In all other ways the copy stops
 * until the signal has been sent, since the client's memory lacks a page supplied by another thread. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel.h"
#include "local.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

/* A handler that waits for ever ends the job this many seconds after the previous one. */
#define SECONDS_MAX 20
/* The copy stops this long after the signal. A handler that is not deferred stores in this time. */
#define STILL_US 20000
#define SIGNALS 100
#define ROUNDS 4
#define TOLD 1

static vgasnet_node_t me;
static pthread_t main_thread;
static int userfaults;
static unsigned char *lacking;
static volatile sig_atomic_t handled;
static uint64_t sent;

/* The handler's word is in the second half of page 0 of rank 0, all other puts are in the first half. */
static void *word_of_handler(void) { return at(0, page_bytes() / 2 + 8); }

static void on_signal(int signal) {
    (void)signal;
    CHECK(pthread_equal(pthread_self(), main_thread));
    alarm(SECONDS_MAX);
    store_word(word_of_handler(), load_word(word_of_handler()) + 1);
    __atomic_store_n(&handled, handled + 1, __ATOMIC_RELEASE);
}

/* Memory without pages until supply() provides some. Returns whether the system has such memory. */
static int open_lacking(void) {
    struct uffdio_api api;
    memset(&api, 0, sizeof api);
    api.api = UFFD_API;
    userfaults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    if (userfaults < 0 || ioctl(userfaults, UFFDIO_API, &api) != 0) return 0;
    lacking = (unsigned char *)mmap(NULL, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(lacking != MAP_FAILED);
    return 1;
}

static void take_away(void) {
    struct uffdio_register all;
    memset(&all, 0, sizeof all);
    CHECK(madvise(lacking, page_bytes(), MADV_DONTNEED) == 0);
    all.range.start = (uintptr_t)lacking;
    all.range.len = page_bytes();
    all.mode = UFFDIO_REGISTER_MODE_MISSING;
    CHECK(ioctl(userfaults, UFFDIO_REGISTER, &all) == 0);
}

static void supply(const unsigned char *bytes) {
    struct uffdio_copy copy;
    memset(&copy, 0, sizeof copy);
    copy.dst = (uintptr_t)lacking;
    copy.src = (uintptr_t)bytes;
    copy.len = page_bytes();
    CHECK(ioctl(userfaults, UFFDIO_COPY, &copy) == 0);
}

/* Waits until the copy stops, has rank 1 request the page, interrupts the copy and lets it go on. This thread itself
 * takes no signal. */
static void *interrupt(void *bytes) {
    struct uffd_msg message;
    struct timespec still;
    sigset_t all;
    sigfillset(&all);
    CHECK(pthread_sigmask(SIG_BLOCK, &all, NULL) == 0);
    CHECK(read(userfaults, &message, sizeof message) == (ssize_t)sizeof message && message.event == UFFD_EVENT_PAGEFAULT);
    vgasnet_put_val(1, at(1, 0), TOLD, 8);
    still.tv_sec = 0;
    still.tv_nsec = 1000L * STILL_US;
    nanosleep(&still, NULL);
    CHECK(pthread_kill(main_thread, SIGUSR1) == 0);
    nanosleep(&still, NULL);
    supply((const unsigned char *)bytes);
    return NULL;
}

/* One get or put of the first half of page 0, or a part of it. Returns its length. */
static size_t copy(const char *way) {
    size_t half = page_bytes() / 2;
    if (strcmp(way, "put") == 0) vgasnet_put(0, at(0, 0), lacking, half);
    if (strcmp(way, "get") == 0) vgasnet_get(lacking, 0, at(0, 0), half);
    if (strcmp(way, "started") == 0) vgasnet_wait_syncnb(vgasnet_put_nb_bulk(0, at(0, 0), lacking, half));
    if (strcmp(way, "few") == 0) vgasnet_put(0, at(0, 0), lacking, half = 100);
    if (strcmp(way, "list") == 0) {
        vgasnet_memvec_t from, to;
        from.addr = lacking, to.addr = at(0, 0), from.len = to.len = half;
        vgasnet_putv_bulk(0, 1, &to, 1, &from);
    }
    return half;
}

/* Rank 1 gets the page. If it cannot lend the page to others, it wants the page again. */
static void want(unsigned char *bytes, unsigned char *got) {
    vgasnet_put(0, at(0, 0), bytes, page_bytes() / 2);
    barrier();
    barrier();
    while (load_word(at(1, 0)) != TOLD) sched_yield();
    vgasnet_get(got, 0, at(0, 0), page_bytes());
    vgasnet_put(0, at(0, page_bytes() / 4), bytes + page_bytes() / 4, page_bytes() / 4);
    store_word(at(1, 0), 0);
}

static void interrupt_one(const char *way, unsigned char *bytes, unsigned char *got) {
    pthread_t other;
    size_t len;
    barrier();
    /* Brings the page here. A put to a page of rank 1 may be sent there by the thread that drives. It would stop, and the
     * put of TOLD would wait for it. */
    CHECK(vgasnet_pin(at(0, 0), page_bytes(), VGASNET_PIN_WRITE) == 0);
    CHECK(vgasnet_unpin(at(0, 0), page_bytes()) == 0);
    vgasnet_put(0, at(0, 0), bytes, page_bytes() / 2);
    /* Uses the page as below. */
    for (int i = 0; i < 3; ++i) {
        vgasnet_put(0, at(0, 0), bytes, strcmp(way, "few") == 0 ? 100 : page_bytes() / 2);
        vgasnet_get(got, 0, at(0, 0), 100);
    }
    barrier();
    take_away();
    sig_atomic_t before = handled;
    CHECK(pthread_create(&other, NULL, interrupt, bytes) == 0);
    len = copy(way);
    CHECK(pthread_join(other, NULL) == 0);
    while (__atomic_load_n(&handled, __ATOMIC_ACQUIRE) == before) sched_yield();
    if (strcmp(way, "get") == 0) check_bytes(lacking, bytes, len, "bytes that were got");
    vgasnet_get(got, 0, at(0, 0), len);
    check_bytes(got, bytes, least(len, page_bytes() / 4), "bytes that were put");
}

/* Sends one signal after the other, each after the previous one has been handled. */
static void *send(void *argument) {
    sigset_t all;
    sigfillset(&all);
    CHECK(pthread_sigmask(SIG_BLOCK, &all, NULL) == 0);
    for (sig_atomic_t one = 0; one < SIGNALS; ++one) {
        CHECK(pthread_kill(main_thread, SIGUSR1) == 0);
        while (__atomic_load_n(&handled, __ATOMIC_ACQUIRE) == one) sched_yield();
    }
    return argument;
}

/* Rank 0 puts numbers, gets them, and is interrupted. The others take the page away. */
static void fight(unsigned char *bytes) {
    pthread_t sender;
    uint64_t state = mixed(28, me, 0), number = 0;
    if (me == 0) CHECK(pthread_create(&sender, NULL, send, NULL) == 0);
    while (me == 0 ? handled < SIGNALS : vgasnet_get_val(0, word_of_handler(), 8) < SIGNALS) {
        if (me != 0) {
            alarm(SECONDS_MAX);
            vgasnet_put(0, at(0, page_bytes() / 4), bytes, page_bytes() / 4);
            continue;
        }
        for (uint64_t i = random_below(&state, 200); i > 0; --i) vgasnet_put_val(0, at(0, 0), ++number, 8);
        CHECK_EQ(vgasnet_get_val(0, at(0, 0), 8), number);
        vgasnet_put(0, at(0, 64), bytes, 100);
    }
    if (me == 0) CHECK(pthread_join(sender, NULL) == 0);
    sent = SIGNALS;
}

int main(int argc, char **argv) {
    struct sigaction action;
    if (argc < 2) return 1;
    start(&argc, &argv, 4 * page_bytes());
    me = vgasnet_mynode(), main_thread = pthread_self();
    unsigned char *bytes = (unsigned char *)allocate(page_bytes()), *got = (unsigned char *)allocate(page_bytes());
    uint64_t state = mixed(29, 0, 0);
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    alarm(SECONDS_MAX);
    if (strcmp(argv[1], "values") == 0) {
        fight(bytes);
    } else if (!open_lacking()) {
        if (me == 0) fprintf(stderr, "NOT RUN: interrupted_copies: the system has no userfaultfd: %s\n", strerror(errno));
        return finish();
    } else {
        for (uint64_t round = 0; round < ROUNDS; ++round) {
            random_bytes(&state, bytes, page_bytes() / 2);
            if (me == 0) interrupt_one(argv[1], bytes, got), ++sent;
            if (me == 1) want(bytes, got);
            if (me > 1) barrier(), barrier();
            barrier();
        }
    }
    barrier();
    if (me == 0) CHECK_EQ(load_word(word_of_handler()), sent);
    return finish();
}
