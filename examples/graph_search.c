/* A breadth-first search of a graph with more edges than fit into memory. It visits the vertices level by level and
 * records for each vertex its parent.
 *
 * The graph is an R-MAT graph as in Graph500, with 2^SCALE vertices and 16 times as many edges. Each rank owns a block
 * of vertices (a 1-D partition) and keeps their edges in its segment in compressed rows. Data per vertex lie in
 * ordinary memory, about a sixth of the size of the edges.
 *
 * In each level a rank scans, in order, its vertices found in the previous level. So a level needs no page of edges
 * twice. Found vertices of other ranks are put into inboxes in the segments of these ranks. No rank sends a vertex
 * twice.
 *
 *   cc -O2 -Iinclude examples/graph_search.c -o graph_search -Ltarget/release -lvgasnet -Wl,-rpath,$PWD/target/release
 *   VGASNET_POOL_SIZE=16M VGASNET_PAGE_SIZE=64K target/release/vgasnetrun -n 2 ./graph_search 20
 *
 * With mmap as the last argument, one rank searches in a mapped file instead of a segment. For a fair comparison give
 * both the same memory, here 40 MiB for 64 MiB of edges and 15 MiB of vertices. The rank needs some memory outside its
 * pool:
 *
 *   export VGASNET_POOL_SIZE=8M VGASNET_PAGE_SIZE=64K
 *   systemd-run --user --scope -p MemoryMax=40M -p MemorySwapMax=0 ./graph_search 19 1
 *   systemd-run --user --scope -p MemoryMax=40M -p MemorySwapMax=0 ./graph_search 19 1 mmap
 *
 * or run both as root from a shell in a cgroup with this limit:
 *
 *   mkdir /sys/fs/cgroup/small && cd /sys/fs/cgroup/small && echo 40M >memory.max && echo $$ >cgroup.procs
 */
#include "mapped_file.h"
#include "rmat.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vgasnet.h>

/* The level of a vertex not found yet. A graph may not have as many levels. */
#define UNSEEN 255

/* Messages sent to a rank by one put. */
#define BATCH 4096

struct graph {
    unsigned scale;
    uint64_t seed;
    size_t vertices, edges;
};

/* A found vertex, for the rank that owns it. */
struct message {
    uint32_t vertex, parent;
};

/* Summary sent by each rank to each other at the end of a level. */
struct mail {
    uint64_t messages; /* total in the inbox since the start */
    uint64_t found;    /* vertices scanned by the sender in this level */
};

static vgasnet_node_t me, ranks;
static char **bases; /* of the segments */
static struct graph graph;

/* Per own vertex. The edges of vertex i are starts[i] up to starts[i + 1]. */
static size_t *starts;
static uint32_t *parents;

/* The level of each own vertex. For a vertex of another rank, the level in which this rank sent it there. */
static uint8_t *levels;

/* Only rank 0 prints the usage, and its status becomes the job's. */
static int usage(int status) {
    if (vgasnet_mynode() != 0) return 0;
    fprintf(status == 0 ? stdout : stderr,
            "usage: graph_search [SCALE [SEED [mmap]]]\n"
            "  SCALE  the graph has 2^SCALE vertices, at least one for each rank; 1 to 31 (default 14)\n"
            "  SEED   of the graph (default 1)\n"
            "  mmap   search in a mapped file in place of a segment, on one rank only\n");
    return status;
}

static void barrier(void) {
    vgasnet_barrier_notify(0, VGASNET_BARRIERFLAG_ANONYMOUS);
    vgasnet_barrier_wait(0, VGASNET_BARRIERFLAG_ANONYMOUS);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void fail(const char *what) {
    fprintf(stderr, "graph_search: rank %u: %s\n", me, what);
    vgasnet_exit(1);
}

/* Allocates zeroed memory. */
static void *memory(size_t count, size_t bytes) {
    void *found = calloc(count, bytes);
    if (found == NULL) fail("no memory for what there is of each vertex; give a smaller SCALE or more ranks");
    return found;
}

/* Parses a positive number; 0 if the text is not one. */
static size_t number(const char *text) {
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    return *end == '\0' && text[0] != '-' && value < UINT32_MAX ? (size_t)value : 0;
}

/* ---- layout ---- */

static size_t first_of(vgasnet_node_t rank) { return graph.vertices * rank / ranks; }

static size_t count_of(vgasnet_node_t rank) { return first_of(rank + 1) - first_of(rank); }

static vgasnet_node_t rank_of(uint32_t vertex) {
    vgasnet_node_t rank = (vgasnet_node_t)((uint64_t)vertex * ranks / graph.vertices);
    return vertex < first_of(rank + 1) ? rank : rank + 1;
}

/* At the start of a segment: the mail of each rank, one set for even and one for odd levels. */
static struct mail *mail_of(vgasnet_node_t rank, unsigned level) {
    return (struct mail *)(void *)bases[rank] + level % 2 * ranks;
}

/* Next: the inboxes, with the messages of each rank. Each has room for one message per vertex. */
static struct message *inbox_of(vgasnet_node_t rank, vgasnet_node_t from) {
    return (struct message *)(void *)(mail_of(rank, 0) + 2 * ranks) + from * count_of(rank);
}

/* Next, at the end of the search: the levels of the rank's vertices. */
static uint8_t *levels_of(vgasnet_node_t rank) { return (uint8_t *)inbox_of(rank, ranks); }

/* Last, at a multiple of 8 bytes: the edges. */
static size_t bytes_before_edges(void) {
    return 2 * ranks * sizeof(struct mail) + ranks * count_of(me) * sizeof(struct message) + (count_of(me) + 7) / 8 * 8;
}

/* The own edges, each as the vertex at its end. */
static uint32_t *own_edges(void) { return (uint32_t *)(void *)(bases[me] + bytes_before_edges()); }

/* ---- the graph ---- */

/* Calls a function for each edge, in either direction, that starts in a range of own vertices. */
static void for_each_edge(size_t first, size_t end, void (*take)(size_t own, uint32_t to)) {
    size_t base = first_of(me);
    for (size_t index = 0; index < graph.edges; ++index) {
        struct edge edge = rmat_edge(graph.scale, graph.seed, index);
        if (edge.from == edge.to) continue;
        if (edge.from - base >= first && edge.from - base < end) take(edge.from - base, edge.to);
        if (edge.to - base >= first && edge.to - base < end) take(edge.to - base, edge.from);
    }
}

static void count_edge(size_t own, uint32_t to) {
    (void)to;
    ++starts[own + 1];
}

/* The edges of a range of vertices while they are being grouped by vertex. */
static uint32_t *window;
static size_t window_start;

static void place_edge(size_t own, uint32_t to) { window[starts[own]++ - window_start] = to; }

/* Counts the edges of each own vertex. */
static void count_edges(void) {
    starts = (size_t *)memory(count_of(me) + 1, sizeof *starts);
    for_each_edge(0, count_of(me), count_edge);
    for (size_t own = 0; own < count_of(me); ++own) starts[own + 1] += starts[own];
}

/* Writes the edges, a window of vertices at a time. A window fits into ordinary memory of an eighth of the size of the
 * edges. Generating all edges again for each window is cheaper than storing them at random places out of core. */
static void place_edges(void) {
    size_t vertices = count_of(me), room = starts[vertices] / 8 + 1, widest = 0;
    for (size_t own = 0; own < vertices; ++own)
        if (starts[own + 1] - starts[own] > widest) widest = starts[own + 1] - starts[own];
    if (room < widest) room = widest;
    window = (uint32_t *)memory(room, sizeof *window);
    for (size_t first = 0, end; first < vertices; first = end) {
        for (end = first + 1; end < vertices && starts[end + 1] - starts[first] <= room;) ++end;
        size_t count = starts[end] - starts[first];
        window_start = starts[first];
        for_each_edge(first, end, place_edge);
        memcpy(own_edges() + window_start, window, count * sizeof *window);
    }
    free(window);
    /* Grouping has moved each start to the next one. */
    memmove(starts + 1, starts, vertices * sizeof *starts);
    starts[0] = 0;
}

/* ---- the search ---- */

/* Messages waiting to be sent to a rank. */
struct outbox {
    struct message messages[BATCH];
    size_t filled;
    uint64_t sent;
};

static struct outbox *outboxes;

/* The source of a put without _bulk may be overwritten as soon as the put returns. */
static void flush(vgasnet_node_t rank) {
    struct outbox *outbox = &outboxes[rank];
    vgasnet_put_nbi(rank, inbox_of(rank, me) + outbox->sent, outbox->messages, outbox->filled * sizeof(struct message));
    outbox->sent += outbox->filled, outbox->filled = 0;
}

/* Records a vertex if it is new here, and sends it to its rank. Returns 1 if the vertex is a new own one. */
static uint64_t find(uint32_t vertex, uint32_t parent, unsigned level) {
    if (levels[vertex] != UNSEEN) return 0;
    levels[vertex] = (uint8_t)level;
    vgasnet_node_t rank = rank_of(vertex);
    if (rank == me) {
        parents[vertex - first_of(me)] = parent;
        return 1;
    }
    struct outbox *outbox = &outboxes[rank];
    struct message message = {vertex, parent};
    outbox->messages[outbox->filled++] = message;
    if (outbox->filled == BATCH) flush(rank);
    return 0;
}

/* Follows the edges of all own vertices found in the previous level. Returns the number of own vertices found. */
static uint64_t follow_edges(unsigned level) {
    uint64_t found = 0;
    const uint32_t *edges = own_edges();
    for (size_t own = 0, first = first_of(me); own < count_of(me); ++own) {
        if (levels[first + own] != level - 1) continue;
        for (size_t at = starts[own]; at < starts[own + 1]; ++at)
            found += find(edges[at], (uint32_t)(first + own), level);
    }
    return found;
}

/* Sends the remaining messages and tells every rank their number. One barrier a level is enough: the next level has
 * separate mail, and no rank starts the level after it before this rank has read the mail of this level. */
static void send_mail(unsigned level, uint64_t found_before) {
    for (vgasnet_node_t rank = 0; rank < ranks; ++rank) flush(rank);
    vgasnet_wait_syncnbi_puts();
    for (vgasnet_node_t rank = 0; rank < ranks; ++rank) {
        struct mail mail = {outboxes[rank].sent, found_before};
        vgasnet_put(rank, mail_of(rank, level) + me, &mail, sizeof mail);
    }
    barrier();
}

/* Reads the new messages of this level. Returns the number of own vertices found. */
static uint64_t read_inboxes(unsigned level, uint64_t *read) {
    uint64_t found = 0;
    for (vgasnet_node_t from = 0; from < ranks; ++from) {
        const struct message *messages = inbox_of(me, from);
        for (; read[from] < mail_of(me, level)[from].messages; ++read[from])
            found += find(messages[read[from]].vertex, messages[read[from]].parent, level);
    }
    return found;
}

/* Returns the number of levels. */
static unsigned search(uint32_t root) {
    uint64_t found = rank_of(root) == me ? find(root, root, 0) : 0;
    uint64_t *read = (uint64_t *)memory(ranks, sizeof *read);
    for (unsigned level = 1; level < UNSEEN; ++level) {
        uint64_t found_before = found, found_anywhere = 0;
        found = found_before > 0 ? follow_edges(level) : 0;
        send_mail(level, found_before);
        found += read_inboxes(level, read);
        for (vgasnet_node_t rank = 0; rank < ranks; ++rank) found_anywhere += mail_of(me, level)[rank].found;
        if (found_anywhere == 0) {
            free(read);
            return level - 1;
        }
    }
    fail("the graph has more levels than a byte can count");
    return 0;
}

/* ---- check ---- */

/* Fetches the levels of all vertices from their ranks. */
static void gather_levels(void) {
    memcpy(levels_of(me), levels + first_of(me), count_of(me));
    barrier();
    for (vgasnet_node_t rank = 0; rank < ranks; ++rank)
        vgasnet_get(levels + first_of(rank), rank, levels_of(rank), count_of(rank));
    barrier();
}

/* Each vertex has an edge to its parent one level above, and no edge spans more than one level. So no path from the
 * root is shorter than the one found. */
static void check(uint32_t root) {
    size_t first = first_of(me);
    for (size_t own = 0; own < count_of(me); ++own) {
        uint8_t level = levels[first + own];
        int is_reached = level == UNSEEN || (first + own == root && level == 0 && parents[own] == root);
        for (size_t at = starts[own]; at < starts[own + 1]; ++at) {
            uint32_t to = own_edges()[at];
            if (levels[to] > level + 1 || level > levels[to] + 1) fail("an edge leads over more than one level");
            is_reached |= to == parents[own] && levels[to] + 1 == level;
        }
        if (!is_reached) fail("a vertex has a wrong parent");
    }
}

/* Sums a number of each rank on rank 0. The mail of the search is no longer needed. */
static uint64_t sum(uint64_t number) {
    struct mail mail = {0, number};
    barrier();
    vgasnet_put(0, mail_of(0, 0) + me, &mail, sizeof mail);
    barrier();
    uint64_t all = 0;
    for (vgasnet_node_t rank = 0; me == 0 && rank < ranks; ++rank) all += mail_of(0, 0)[rank].found;
    return all;
}

/* Attaches a segment with room for this rank's edges. */
static int start(int is_mapped) {
    count_edges();
    bases = (char **)memory(ranks, sizeof *bases);
    uintptr_t bytes = bytes_before_edges() + starts[count_of(me)] * sizeof(uint32_t);
    if (vgasnet_attach(NULL, 0, is_mapped ? 0 : bytes, 0) != VGASNET_OK) return 1;
    vgasnet_seginfo_t *segments = (vgasnet_seginfo_t *)memory(ranks, sizeof *segments);
    if (vgasnet_getSegmentInfo(segments, (int)ranks) != VGASNET_OK) return 1;
    for (vgasnet_node_t rank = 0; rank < ranks; ++rank) bases[rank] = (char *)segments[rank].addr;
    free(segments);
    if (is_mapped) bases[me] = (char *)mapped_file(bytes);
    return bases[me] == NULL;
}

/* Searches and prints the result. */
static void run(int is_mapped) {
    parents = (uint32_t *)memory(count_of(me), sizeof *parents);
    levels = (uint8_t *)memory(graph.vertices, sizeof *levels);
    outboxes = (struct outbox *)memory(ranks, sizeof *outboxes);
    memset(levels, UNSEEN, graph.vertices);
    /* Before renumbering, vertex 0 most likely has the most edges. */
    uint32_t root = rmat_renumbered(graph.scale, 0);
    barrier();
    double began = seconds();
    unsigned depth = search(root);
    barrier();
    double time = seconds() - began;
    gather_levels();
    check(root);
    uint64_t found = 0, followed = 0;
    for (size_t own = 0; own < count_of(me); ++own) {
        if (levels[first_of(me) + own] == UNSEEN) continue;
        ++found, followed += starts[own + 1] - starts[own];
    }
    found = sum(found), followed = sum(followed);
    if (me == 0)
        printf("graph search on %u ranks%s, scale %u, seed %" PRIu64 ": %" PRIu64 " of %zu vertices in %u levels, "
               "%" PRIu64 " edges, %.2f million edges/s\n",
               ranks, is_mapped ? ", by mmap" : "", graph.scale, graph.seed, found, graph.vertices, depth, followed / 2,
               1e-6 * (double)followed / 2 / time);
}

int main(int argc, char **argv) {
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) return 1;
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    if (argc > 1 && strcmp(argv[1], "--help") == 0) return usage(0);
    size_t scale = argc > 1 ? number(argv[1]) : 14, seed = argc > 2 ? number(argv[2]) : 1;
    int is_mapped = argc > 3, understood = argc < 4 || (argc == 4 && strcmp(argv[3], "mmap") == 0 && ranks == 1);
    if (!understood || seed == 0 || scale == 0 || scale > 31 || (size_t)1 << scale < ranks) return usage(2);

    graph.scale = (unsigned)scale, graph.seed = seed;
    graph.vertices = (size_t)1 << scale, graph.edges = EDGE_FACTOR * graph.vertices;
    if (start(is_mapped) != 0) return 1;
    place_edges();
    run(is_mapped);
    vgasnet_exit(0);
}
