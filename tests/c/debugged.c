/* For debuggers and checkers: stores to a segment of several pools, and adds its words up. Handlers store, too, by
 * single steps unless a debugger is attached. "gets" avoids loads and stores, "race" lets two threads add to one
 * word. */
#include <pthread.h>
#include <signal.h>

#include "local.h"

static size_t pages;
/* The segment, which debuggers find and change by this name. */
static char *volatile base;

static void on_signal(int signal) {
    (void)signal;
    for (size_t page = 0; page < pages; ++page) store_word(at(vgasnet_mynode(), page * page_bytes()), page + 1000);
}

/* A debugger stops here. */
static __attribute__((noinline)) uint64_t total_of(void) {
    uint64_t total = 0;
    for (size_t page = 0; page < pages; ++page) total += load_word(base + page * page_bytes());
    return total;
}

static void *add(void *word) {
    for (int i = 0; i < 1000; ++i) *(uint64_t *)word += 1;
    return NULL;
}

static void race(uint64_t *word) {
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i) CHECK(pthread_create(&threads[i], NULL, add, word) == 0);
    for (int i = 0; i < 2; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(int argc, char **argv) {
    int gets = argc > 1 && strcmp(argv[1], "gets") == 0, races = argc > 1 && strcmp(argv[1], "race") == 0;
    pages = 4 * pool_pages();
    start(&argc, &argv, pages * page_bytes());
    vgasnet_node_t me = vgasnet_mynode();
    base = (char *)at(me, 0);
    uint64_t total = 0;
    if (gets) {
        for (size_t page = 0; page < pages; ++page) {
            uint64_t word = page + 1000;
            vgasnet_put(me, at(me, page * page_bytes()), &word, sizeof word);
        }
        for (size_t page = 0; page < pages; ++page) {
            uint64_t word;
            vgasnet_get(&word, me, at(me, page * page_bytes()), sizeof word);
            total += word;
        }
    } else {
        CHECK(signal(SIGUSR1, on_signal) != SIG_ERR && raise(SIGUSR1) == 0);
        if (races) race((uint64_t *)at(me, page_bytes() - 8));
        total = total_of();
    }
    CHECK_EQ(total, pages * 1000 + pages * (pages - 1) / 2);
    printf("total %" PRIu64 "\n", total);
    return finish();
}
