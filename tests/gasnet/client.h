/* The common part of these clients of GASNet-1. Valid as C99 and as C++. Includes only gasnet.h. */
#ifndef CLIENT_H
#define CLIENT_H

#include <gasnet.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) check_failed(__FILE__, __LINE__, #condition); \
    } while (0)

static inline void check_failed(const char *file, int line, const char *what) {
    fprintf(stderr, "check: node %u: %s:%d: %s does not hold\n", (unsigned)gasnet_mynode(), file, line, what);
    gasnet_exit(1);
}

/* Handlers of any type: C++ has no unprototyped functions. */
#define HANDLER(index, function) {index, (void (*)())function}

static gasnet_node_t me, nodes;
static gasnet_seginfo_t *segments;

/* A number set by the test harness. */
static inline size_t number_from_environment(const char *name) {
    const char *text = gasnet_getenv(name);
    CHECK(text != NULL);
    return (size_t)strtoull(text, NULL, 10);
}

/* The segment of each node is this many times its memory. */
static inline uintptr_t segment_bytes(void) { return 4 * (uintptr_t)number_from_environment("CHECK_POOL_BYTES"); }

static inline void barrier(void) {
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    CHECK(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS) == GASNET_OK);
}

static inline void start(int *argc, char ***argv, gasnet_handlerentry_t *table, int entries) {
    if (gasnet_init(argc, argv) != GASNET_OK) exit(1);
    me = gasnet_mynode(), nodes = gasnet_nodes();
    CHECK(gasnet_attach(table, entries, segment_bytes(), 0) == GASNET_OK);
    segments = (gasnet_seginfo_t *)malloc(nodes * sizeof *segments);
    CHECK(segments != NULL && gasnet_getSegmentInfo(segments, (int)nodes) == GASNET_OK);
}

static inline int finish(void) {
    barrier();
    gasnet_exit(0);
    return 1;
}

/* The address at this offset in a node's segment. */
static inline void *at(gasnet_node_t node, uintptr_t offset) { return (char *)segments[node].addr + offset; }

static inline gasnet_node_t next_node(void) { return (me + 1) % nodes; }
static inline gasnet_node_t previous_node(void) { return (me + nodes - 1) % nodes; }

/* A byte that depends on the node and on the place. */
static inline unsigned char byte_of(gasnet_node_t node, uintptr_t place) {
    return (unsigned char)(node * 37 + place * 11 + (place >> 9));
}

static inline void fill(void *to, size_t len, gasnet_node_t node, uintptr_t place) {
    size_t i;
    for (i = 0; i < len; ++i) ((unsigned char *)to)[i] = byte_of(node, place + i);
}

static inline void compare(const void *is, size_t len, gasnet_node_t node, uintptr_t place) {
    size_t i;
    for (i = 0; i < len; ++i) CHECK(((const unsigned char *)is)[i] == byte_of(node, place + i));
}

#endif
