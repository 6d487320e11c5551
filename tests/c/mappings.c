/* Loads and stores of more pages than the system has mappings for: adjacent pages, which need few mappings, or
 * "apart". Prints the time of an access, and the number of mappings of the process. */
#include <time.h>

#include "local.h"

static vgasnet_node_t me;
static size_t pages, step;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static size_t mappings(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    size_t lines = 0;
    int c;
    CHECK(maps != NULL);
    while ((c = getc(maps)) != EOF) lines += c == '\n';
    CHECK(fclose(maps) == 0);
    return lines;
}

static void *word_at(size_t page) { return at(me, page * step * page_bytes() + page * 8 % page_bytes()); }

/* One access to each page, without two neighbours in sequence. */
static void each(const char *what, uint64_t round, int is_store) {
    double begin = seconds();
    size_t prime = 1000003, page = 0;
    for (size_t i = 0; i < pages; ++i) {
        page = (page + prime) % pages;
        if (is_store) store_word(word_at(page), mixed(me, round, page));
        else CHECK_EQ(load_word(word_at(page)), round == 0 ? 0 : mixed(me, round, page));
    }
    printf("%s of %zu pages, each %zu-th: %.2f us each, %zu mappings\n", what, pages, step,
           1e6 * (seconds() - begin) / (double)pages, mappings());
}

int main(int argc, char **argv) {
    int is_apart = argc > 1 && strcmp(argv[1], "apart") == 0;
    start(&argc, &argv, 2 * pool_bytes());
    me = vgasnet_mynode();
    /* All of them fit into the pool. */
    step = is_apart ? 2 : 1, pages = pool_pages() - pool_pages() / 16;
    each("first loads", 0, 0);
    for (uint64_t round = 1; round <= 2; ++round) {
        each("stores", round, 1);
        each("loads", round, 0);
        if (!is_apart) CHECK(mappings() < 1000);
    }
    return finish();
}
