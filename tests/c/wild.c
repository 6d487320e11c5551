/* Accesses outside every segment. wild PART: the last rank loads or stores beyond its segment, or with a pool too
 * small for loads and stores, while the others wait for it. */
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <signal.h>

#include "local.h"

static sigjmp_buf back;
static void *volatile faulted_at;

/* Prints the address before the access, so that the test can compare the library's line. */
static unsigned char *announce(uintptr_t beyond) {
    vgasnet_seginfo_t segments[64];
    vgasnet_node_t me = vgasnet_mynode();
    CHECK(vgasnet_getSegmentInfo(segments, 64) == VGASNET_OK);
    uintptr_t base = (uintptr_t)segments[me].addr, end = base + segments[me].size;
    printf("touches %#" PRIxPTR " beyond %#" PRIxPTR " to %#" PRIxPTR "\n", end + beyond, base, end);
    fflush(stdout);
    return (unsigned char *)(end + beyond);
}

static void touch(const char *part) {
    volatile unsigned char *place;
    uint64_t word = 1;
    if (strcmp(part, "store") == 0) {
        place = announce(0);
        place[-1] = 1;
        place[0] = 1;
    } else if (strcmp(part, "load") == 0) {
        place = announce(0);
        word += place[-1] + place[0];
    } else if (strcmp(part, "across") == 0) {
        copy_piece(announce(0) - 3, &word, sizeof word);
    } else if (strcmp(part, "far") == 0) {
        place = announce((uintptr_t)1 << 20);
        place[0] = 1;
    } else if (strcmp(part, "in-library") == 0) {
        place = announce(0);
        memset((unsigned char *)place - 1000, (int)word, 5000);
    }
    vgasnet_exit(5 + (word == 0));
}

static void jump(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    faulted_at = info->si_addr;
    siglongjmp(back, 1);
}

/* A client with a handler gets this fault like any other outside the segment, and may go on. */
static void handled(void) {
    struct sigaction action;
    unsigned char *volatile place = announce(0);
    memset(&action, 0, sizeof action);
    action.sa_flags = SA_SIGINFO, action.sa_sigaction = jump;
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    for (int i = 0; i < 10; ++i) {
        if (sigsetjmp(back, 1) == 0) {
            *(volatile unsigned char *)place = 1;
            CHECK(!"a store beyond the segment");
        }
        CHECK(faulted_at == place);
        place[-1 - i] = 1;
    }
}

/* The first load is of the first page, for which the pool may already be too small. */
static void first_load(void) { CHECK_EQ(load_word(at(vgasnet_mynode(), 0)), 0); }

int main(int argc, char **argv) {
    if (argc < 2) return 1;
    start(NULL, NULL, 8 * page_bytes());
    barrier();
    if (vgasnet_mynode() == vgasnet_nodes() - 1) {
        if (strcmp(argv[1], "handled") == 0) handled();
        else if (strcmp(argv[1], "first-load") == 0) first_load();
        else touch(argv[1]);
    }
    return finish();
}
