/* A store that waits for very long: the client's handlers run in the meantime, may miss other pages, and may leave
 * the store for good. The last rank holds a page of rank 0 and is stopped.
 *   waits jumps|returns [alternate]
 * jumps: the last handler leaves the store. alternate: on an alternate stack. */
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include "local.h"
#include "timer.h"

#define TICKS 4

static size_t pages;
static sigjmp_buf back;
static volatile sig_atomic_t ticks, quits, jumps;
static pid_t holder;
static int stack_flag;

/* Misses a page in every second run. */
static void on_tick(int signal) {
    (void)signal;
    /* Another tick may have arrived during the last handler. */
    if (ticks == TICKS) return;
    size_t page = 2 + (size_t)ticks * 3 % (pages - 2);
    CHECK_EQ(load_word(at(0, page * page_bytes())), 1000 + page);
    if (++ticks < TICKS) return;
    raise(SIGQUIT);
    if (jumps) siglongjmp(back, 1);
    /* The page of the interrupted store arrives, for this handler, too. */
    CHECK(kill(holder, SIGCONT) == 0);
    CHECK_EQ(load_word(at(0, 0)), 77);
}

static void on_quit(int signal) {
    (void)signal;
    ++quits;
}

static void use_alternate_stack(void) {
    stack_t stack;
    memset(&stack, 0, sizeof stack);
    stack.ss_size = 256 << 10;
    stack.ss_sp = allocate(stack.ss_size);
    CHECK(sigaltstack(&stack, NULL) == 0);
    stack_flag = SA_ONSTACK;
}

static void handle(int signal, void (*handler)(int)) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = stack_flag;
    CHECK(sigaction(signal, &action, NULL) == 0);
}

/* Waits until the process is stopped. */
static void await_stop(pid_t pid) {
    char name[64], line[400], state = 0;
    sprintf(name, "/proc/%d/stat", (int)pid);
    while (state != 'T') {
        FILE *status = fopen(name, "r");
        CHECK(status != NULL && fgets(line, sizeof line, status) != NULL);
        fclose(status);
        CHECK(sscanf(strrchr(line, ')') + 1, " %c", &state) == 1);
        usleep(1000);
    }
}

/* Stores to the page, and leaves the store in the handler, or returns to it. A load would be carried out at the
 * page's rank. */
static void wait_for_page(void) {
    set_timer(150000);
    if (sigsetjmp(back, 1) == 0) {
        store_word(at(0, 8), 79);
        CHECK(!jumps);
        CHECK_EQ(load_word(at(0, 0)), 77);
        CHECK_EQ(load_word(at(0, 8)), 79);
    }
    set_timer(0);
    CHECK(ticks == TICKS && quits == 1);
    if (jumps) CHECK(kill(holder, SIGCONT) == 0);
}

/* Stores to the page after the waiting rank's store has taken the right to write. */
static void store(void) {
    uint64_t word = 78;
    CHECK(vgasnet_AMPoll() == VGASNET_OK);
    vgasnet_put(0, at(0, 0), &word, sizeof word);
}

int main(int argc, char **argv) {
    uint64_t pid = (uint64_t)getpid(), word = 77;
    CHECK(argc > 1);
    jumps = strcmp(argv[1], "jumps") == 0;
    pages = 3 * pool_pages();
    start(&argc, &argv, pages * page_bytes());
    int is_holder = vgasnet_mynode() == vgasnet_nodes() - 1;
    if (vgasnet_mynode() == 0)
        for (size_t page = 2; page < pages; ++page) store_word(at(0, page * page_bytes()), 1000 + page);
    if (is_holder) vgasnet_put(0, at(0, page_bytes()), &pid, sizeof pid);
    barrier();
    if (vgasnet_mynode() == 0) holder = (pid_t)load_word(at(0, page_bytes()));
    if (argc > 2) use_alternate_stack();
    handle(SIGALRM, on_tick);
    handle(SIGQUIT, on_quit);
    barrier();
    if (is_holder) vgasnet_put(0, at(0, 0), &word, sizeof word);
    barrier();
    if (is_holder) CHECK(raise(SIGSTOP) == 0);
    if (vgasnet_mynode() == 0) {
        await_stop(holder);
        wait_for_page();
    }
    /* The page of the abandoned store arrives, and no rank keeps it: this rank calls only the barrier. */
    if (is_holder && jumps) store();
    barrier();
    if (vgasnet_mynode() == 0) {
        CHECK_EQ(load_word(at(0, 0)), jumps ? 78 : 77);
        size_t most = least(pool_pages() * 3 / 4, pool_pages() - 4);
        for (size_t first = 0; first + most <= pages; first += most) {
            CHECK(vgasnet_pin(at(0, first * page_bytes()), most * page_bytes(), VGASNET_PIN_WRITE) == VGASNET_OK);
            CHECK(vgasnet_unpin(at(0, first * page_bytes()), most * page_bytes()) == VGASNET_OK);
        }
        for (size_t page = 2; page < pages; ++page) CHECK_EQ(load_word(at(0, page * page_bytes())), 1000 + page);
    }
    return finish();
}
