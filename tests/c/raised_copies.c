/* The program's address of a get or put is inaccessible, and its handler of SIGSEGV reacts.
 *   raised_copies returns|exits|calls|jumps get|put */
#define _DEFAULT_SOURCE
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "local.h"

/* SIGALRM ends a program that waits for ever. */
#define SECONDS_MAX 20
#define TOLD 1

static const char *way;
static vgasnet_node_t me;
static unsigned char *closed, *bytes;
static sigjmp_buf back;

/* Tells rank 1 to request the page used by the copy. */
static void tell(void) { store_word(at(0, 2 * page_bytes()), TOLD); }

static void on_fault(int signal) {
    CHECK_EQ(signal, SIGSEGV);
    if (strcmp(way, "exits") == 0) vgasnet_exit(3);
    if (strcmp(way, "jumps") == 0) siglongjmp(back, 1);
    if (strcmp(way, "calls") == 0) barrier();
    CHECK(mprotect(closed, page_bytes(), PROT_READ | PROT_WRITE) == 0);
    memcpy(closed, bytes, page_bytes());
}

static void copy(const char *side) {
    unsigned char *got = (unsigned char *)allocate(page_bytes());
    /* The page is here, so the call copies it itself. */
    vgasnet_put(0, at(0, 0), bytes, page_bytes());
    vgasnet_get(got, 0, at(0, 0), page_bytes());
    tell();
    if (sigsetjmp(back, 1) == 0) {
        if (strcmp(side, "get") == 0) vgasnet_get(closed, 0, at(0, 0), page_bytes());
        if (strcmp(side, "put") == 0) vgasnet_put(0, at(0, 0), closed, page_bytes());
    }
    barrier();
    vgasnet_get(got, 0, at(0, 0), page_bytes());
    check_bytes(got + 8, bytes + 8, page_bytes() - 8, "bytes that were copied");
    if (strcmp(side, "get") == 0) check_bytes(closed + 8, bytes + 8, page_bytes() - 8, "bytes that were got");
    barrier();
}

static void want(void) {
    while (vgasnet_get_val(0, at(0, 2 * page_bytes()), 8) != TOLD) sched_yield();
    vgasnet_put_val(0, at(0, 0), bytes[0], 1);
    barrier();
    barrier();
}

int main(int argc, char **argv) {
    struct sigaction action;
    uint64_t state = mixed(77, 0, 0);
    if (argc < 3) return 1;
    start(&argc, &argv, 4 * page_bytes());
    me = vgasnet_mynode(), way = argv[1];
    bytes = (unsigned char *)allocate(page_bytes());
    random_bytes(&state, bytes, page_bytes());
    closed = (unsigned char *)mmap(NULL, page_bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(closed != MAP_FAILED);
    memset(&action, 0, sizeof action);
    action.sa_handler = on_fault;
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    alarm(SECONDS_MAX);
    barrier();
    if (me == 0) copy(argv[2]);
    if (me == 1) want();
    barrier();
    return finish();
}
