/* The local clustering coefficient of each vertex of a graph: the fraction of the pairs of its neighbours that are
 * connected. For each neighbour a rank reads the neighbour's list of neighbours. These are small gets of many sizes,
 * and they read the lists of high-degree vertices again and again, so a cache of gets helps.
 *
 * The graph is an R-MAT graph as in Graph500, with 2^SCALE vertices and 16 times as many edges. It is made simple:
 * undirected, without duplicate edges and loops. Each rank owns a block of vertices (a 1-D partition) and keeps their
 * lists in its segment in compressed rows. The start of the list of every vertex, of all ranks, lies in ordinary
 * memory. One get reads a list of another rank.
 *
 *   cc -O2 -Iinclude examples/lcc.c -o lcc -Ltarget/release -lvgasnet -Wl,-rpath,$PWD/target/release
 *   VGASNET_POOL_SIZE=64M target/release/vgasnetrun -n 2 ./lcc --scale 16 --cached
 *
 * Without --cached each list is fetched each time. Over MPI, with or without a library that caches gets:
 *
 *   mpicc -O2 -DUSE_MPI -D_POSIX_C_SOURCE=200809L examples/lcc.c -o lcc-mpi && mpiexec -n 2 ./lcc-mpi --scale 16
 */
#include "remote.h"
#include "rmat.h"

#define SCALE_MAX 28

/* The largest graph checked against one rank by default. */
#define SCALE_CHECKED 14

struct options {
    uint64_t scale, seed, batch;
    int is_weighted;
};

/* The result for the vertices of a rank. */
struct result {
    double coefficients, seconds; /* the sum, and the duration of the phase */
    uint64_t checksum;            /* over each vertex and its number of pairs */
    struct remote_counters counters;
};

static struct options options = {12, 1, 1, 0};
static size_t vertices;

/* The start of each vertex's list in the memory of its rank, counted in neighbours. Each block has one more entry than
 * vertices, the end of its last list. */
static uint64_t **starts;

static int usage(int status) {
    if (remote.me != 0) return 0;
    fprintf(status == 0 ? stdout : stderr,
            "usage: lcc [OPTION]...\n"
            "  --scale N   the graph has 2^N vertices, at least one for each rank; 1 to 28 (default 12)\n"
            "  --seed N    of the graph (default 1)\n"
            "  --cached    get through the cache of vgasnet\n"
            "  --weighted  what is kept there has the degree over the mean as weight\n"
            "  --batch N   begin so many gets before the first is waited for (default 1)\n"
            "  --check     compare the result with that of one rank by itself (default up to scale 14)\n"
            "  --no-check  do not\n"
            "  --json      print one line of JSON\n");
    return status;
}

/* ---- layout ---- */

static size_t first_of(unsigned rank) { return vertices * rank / remote.ranks; }

static size_t count_of(unsigned rank) { return first_of(rank + 1) - first_of(rank); }

static unsigned rank_of(uint32_t vertex) {
    unsigned rank = (unsigned)((uint64_t)vertex * remote.ranks / vertices);
    return vertex < first_of(rank + 1) ? rank : rank + 1;
}

/* A rank's memory starts with its result, followed by the starts of its lists, then the lists. */
static size_t offset_of_starts(void) { return sizeof(struct result); }

static size_t offset_of_lists(unsigned rank) { return offset_of_starts() + (count_of(rank) + 1) * sizeof(uint64_t); }

static uint32_t *own_lists(void) { return (uint32_t *)(void *)(remote.own + offset_of_lists(remote.me)); }

static uint64_t start_of(uint32_t vertex) {
    unsigned rank = rank_of(vertex);
    return starts[rank][vertex - first_of(rank)];
}

static size_t degree_of(uint32_t vertex) {
    unsigned rank = rank_of(vertex);
    return (size_t)(starts[rank][vertex - first_of(rank) + 1] - starts[rank][vertex - first_of(rank)]);
}

/* ---- the graph ---- */

/* The lists of a range of vertices in ordinary memory while they are being built. `places` has the next free place of
 * each list. */
struct window {
    size_t first, end; /* vertices */
    size_t *places;
    uint32_t *neighbours;
};

/* Adds all edges that start in the window, in either direction. Without room for neighbours, counts the edges of each
 * vertex in the place of the next vertex. */
static void add_edges(struct window *window) {
    for (size_t index = 0; index < EDGE_FACTOR * vertices; ++index) {
        struct edge edge = rmat_edge((unsigned)options.scale, options.seed, index);
        if (edge.from == edge.to) continue;
        for (int turn = 0; turn < 2; ++turn) {
            uint32_t from = turn == 0 ? edge.from : edge.to, to = turn == 0 ? edge.to : edge.from;
            if (from < window->first || from >= window->end) continue;
            size_t own = from - window->first;
            if (window->neighbours == NULL)
                ++window->places[own + 1];
            else
                window->neighbours[window->places[own]++] = to;
        }
    }
}

static int compare(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* Sorts a list and removes duplicates. Returns its new length. */
static size_t make_simple(uint32_t *list, size_t count) {
    size_t kept = 0;
    qsort(list, count, sizeof *list, compare);
    for (size_t at = 0; at < count; ++at)
        if (at == 0 || list[at] != list[at - 1]) list[kept++] = list[at];
    return kept;
}

/* Writes the lists of a block of vertices and their starts, a window of vertices at a time. A window fits into ordinary
 * memory of an eighth of the size of the lists. Generating all edges again for each window is cheaper than storing them
 * at random places out of core. `bounds` are the sums of the degrees before the graph is made simple. */
static void write_lists(size_t first, size_t count, const size_t *bounds, uint64_t *begins, uint32_t *lists) {
    size_t room = bounds[count] / 8 + 1, written = 0;
    for (size_t at = 0; at < count; ++at)
        if (bounds[at + 1] - bounds[at] > room) room = bounds[at + 1] - bounds[at];
    struct window window = {0, 0, (size_t *)memory(count, sizeof(size_t)), (uint32_t *)memory(room, sizeof(uint32_t))};
    for (size_t at = 0, end; at < count; at = end) {
        remote_progress("writing the graph", at, count);
        for (end = at + 1; end < count && bounds[end + 1] - bounds[at] <= room;) ++end;
        window.first = first + at, window.end = first + end;
        for (size_t own = at; own < end; ++own) window.places[own - at] = bounds[own] - bounds[at];
        add_edges(&window);
        for (size_t own = at; own < end; ++own) {
            uint32_t *list = window.neighbours + (bounds[own] - bounds[at]);
            size_t kept = make_simple(list, bounds[own + 1] - bounds[own]);
            begins[own] = written;
            memcpy(lists + written, list, kept * sizeof *list);
            written += kept;
        }
    }
    begins[count] = written;
    remote_progress("writing the graph", count, count);
    free(window.places);
    free(window.neighbours);
}

/* The running sums of the degrees of a block of vertices, duplicate edges included. */
static size_t *bounds_of(size_t first, size_t count) {
    struct window window = {first, first + count, (size_t *)memory(count + 1, sizeof(size_t)), NULL};
    add_edges(&window);
    for (size_t own = 0; own < count; ++own) window.places[own + 1] += window.places[own];
    return window.places;
}

/* Gets the starts of the lists of all ranks, once. */
static void get_starts(void) {
    starts = (uint64_t **)memory(remote.ranks, sizeof *starts);
    for (unsigned rank = 0; rank < remote.ranks; ++rank) {
        size_t bytes = (count_of(rank) + 1) * sizeof(uint64_t);
        starts[rank] = (uint64_t *)memory(bytes, 1);
        remote_get(starts[rank], rank, offset_of_starts(), bytes, 1);
    }
}

/* ---- the coefficients ---- */

/* One bit per vertex: set for the neighbours of the current vertex. */
static uint64_t *marks;

static void mark(const uint32_t *list, size_t count, int is_set) {
    for (size_t at = 0; at < count; ++at)
        if (is_set)
            marks[list[at] / 64] |= UINT64_C(1) << list[at] % 64;
        else
            marks[list[at] / 64] = 0;
}

/* The number of elements of the shorter list in the longer one. */
static uint64_t common_by_search(const uint32_t *shorter, size_t count, const uint32_t *longer, size_t room) {
    uint64_t common = 0;
    const uint32_t *low = longer, *end = longer + room;
    for (size_t at = 0; at < count; ++at) {
        for (const uint32_t *high = end; low < high;) {
            const uint32_t *middle = low + (high - low) / 2;
            if (*middle < shorter[at])
                low = middle + 1;
            else
                high = middle;
        }
        common += low < end && *low == shorter[at];
    }
    return common;
}

/* The number of common neighbours of two vertices. The neighbours of the first are marked. */
static uint64_t common(const uint32_t *first, size_t room, const uint32_t *second, size_t count) {
    if (room * 16 < count) return common_by_search(first, room, second, count);
    uint64_t found = 0;
    for (size_t at = 0; at < count; ++at) found += marks[second[at] / 64] >> second[at] % 64 & 1;
    return found;
}

/* The lists of a batch of neighbours. Lists of other ranks are fetched into the buffer. */
struct batch {
    uint32_t *buffer;
    const uint32_t **lists;
};

static void fetch(struct batch *batch, const uint32_t *neighbours, size_t count, size_t degree_max, double mean) {
    int is_pending = 0;
    for (size_t at = 0; at < count; ++at) {
        unsigned rank = rank_of(neighbours[at]);
        uint64_t start = start_of(neighbours[at]);
        batch->lists[at] = rank == remote.me ? own_lists() + start : batch->buffer + at * degree_max;
        if (rank == remote.me) continue;
        uint32_t *to = batch->buffer + at * degree_max;
        size_t offset = offset_of_lists(rank) + start * sizeof(uint32_t), degree = degree_of(neighbours[at]);
        float weight = options.is_weighted ? (float)((double)degree / mean) : 1;
        if (options.batch == 1)
            remote_get(to, rank, offset, degree * sizeof(uint32_t), weight);
        else
            remote_get_nb(to, rank, offset, degree * sizeof(uint32_t)), is_pending = 1;
    }
    if (is_pending) remote_wait();
}

/* Twice the number of connected pairs among the neighbours of a vertex. */
static uint64_t pairs_of(struct batch *batch, uint32_t vertex, size_t degree_max, double mean) {
    const uint32_t *list = own_lists() + start_of(vertex);
    size_t degree = degree_of(vertex);
    uint64_t pairs = 0;
    mark(list, degree, 1);
    for (size_t at = 0; at < degree; at += options.batch) {
        size_t count = degree - at < options.batch ? degree - at : (size_t)options.batch;
        fetch(batch, list + at, count, degree_max, mean);
        for (size_t one = 0; one < count; ++one)
            pairs += common(list, degree, batch->lists[one], degree_of(list[at + one]));
    }
    mark(list, degree, 0);
    return pairs;
}

static void add_vertex(struct result *result, uint32_t vertex, size_t degree, uint64_t pairs) {
    if (degree > 1) result->coefficients += (double)pairs / ((double)degree * (double)(degree - 1));
    result->checksum += mix(vertex ^ pairs << 32) ^ pairs;
}

/* Computes the coefficients of the own vertices. */
static struct result find_coefficients(void) {
    struct result result = {0, 0, 0, {0, 0, {0}}};
    size_t degree_max = 1, all = 0, first = first_of(remote.me);
    for (size_t vertex = 0; vertex < vertices; ++vertex) {
        size_t degree = degree_of((uint32_t)vertex);
        degree_max = degree > degree_max ? degree : degree_max, all += degree;
    }
    struct batch batch = {(uint32_t *)memory(options.batch * degree_max, sizeof(uint32_t)),
                          (const uint32_t **)memory(options.batch, sizeof(uint32_t *))};
    marks = (uint64_t *)memory(vertices / 64 + 1, sizeof *marks);
    remote_barrier();
    remote.counters.gets = 0, remote.counters.bytes = 0;
    double began = seconds();
    remote_read_only_begin(offset_of_starts(), 0);
    for (size_t own = 0; own < count_of(remote.me); ++own) {
        uint32_t vertex = (uint32_t)(first + own);
        uint64_t pairs = pairs_of(&batch, vertex, degree_max, (double)all / (double)vertices);
        add_vertex(&result, vertex, degree_of(vertex), pairs);
        remote_progress("coefficients", own, count_of(remote.me));
    }
    remote_progress("coefficients", 1, 1);
    remote_read_only_end(offset_of_starts());
    remote_barrier();
    result.seconds = seconds() - began;
    result.counters = remote.counters;
    free(batch.buffer);
    free(batch.lists);
    free(marks);
    return result;
}

/* ---- check and output ---- */

/* Computes the coefficients of all vertices on this rank in ordinary memory, by merging each pair of lists. */
static struct result find_alone(void) {
    struct result result = {0, 0, 0, {0, 0, {0}}};
    size_t *bounds = bounds_of(0, vertices);
    uint64_t *begins = (uint64_t *)memory(vertices + 1, sizeof *begins);
    uint32_t *lists = (uint32_t *)memory(bounds[vertices], sizeof *lists);
    write_lists(0, vertices, bounds, begins, lists);
    for (size_t vertex = 0; vertex < vertices; ++vertex) {
        uint64_t pairs = 0;
        for (uint64_t of = begins[vertex]; of < begins[vertex + 1]; ++of) {
            uint64_t left = begins[vertex], right = begins[lists[of]];
            while (left < begins[vertex + 1] && right < begins[lists[of] + 1]) {
                uint32_t a = lists[left], b = lists[right];
                pairs += a == b, left += a <= b, right += b <= a;
            }
        }
        add_vertex(&result, (uint32_t)vertex, (size_t)(begins[vertex + 1] - begins[vertex]), pairs);
        remote_progress("check", vertex, vertices);
    }
    remote_progress("check", 1, 1);
    free(bounds);
    free(begins);
    free(lists);
    return result;
}

/* Sums the results of all ranks, on rank 0. */
static struct result gather(const struct result *mine) {
    struct result sum = {0, 0, 0, {0, 0, {0}}}, one;
    memcpy(remote.own, mine, sizeof *mine);
    remote_barrier();
    for (unsigned rank = 0; remote.me == 0 && rank < remote.ranks; ++rank) {
        remote_get(&one, rank, 0, sizeof one, 1);
        sum.coefficients += one.coefficients, sum.checksum += one.checksum;
        sum.seconds = one.seconds > sum.seconds ? one.seconds : sum.seconds;
        remote_add_counters(&sum.counters, &one.counters);
    }
    return sum;
}

static void print(const struct result *sum, double mean, uint64_t own_bytes, uint64_t remote_bytes) {
    const struct remote_counters *counters = &sum->counters;
    if (remote.is_json) {
        printf("{\"program\":\"lcc\",\"ranks\":%u,\"scale\":%" PRIu64 ",\"seed\":%" PRIu64 ",\"cached\":%s,"
               "\"mean\":%.9f,\"checksum\":\"%016" PRIx64 "\",\"seconds\":%.6f,\"own_bytes\":%" PRIu64
               ",\"remote_bytes\":%" PRIu64 ",",
               remote.ranks, options.scale, options.seed, remote.is_cached ? "true" : "false", mean, sum->checksum,
               sum->seconds, own_bytes, remote_bytes);
        remote_print_json(counters);
        printf("}\n");
        return;
    }
    printf("lcc on %u ranks%s, scale %" PRIu64 ", seed %" PRIu64 ": mean coefficient %.6f, checksum %016" PRIx64
           ", %.3f s, %" PRIu64 " gets of %.1f MiB",
           remote.ranks, remote.is_cached ? ", cached" : "", options.scale, options.seed, mean, sum->checksum,
           sum->seconds, counters->gets, (double)counters->bytes / (1 << 20));
    if (remote.is_cached && counters->gets > 0)
        printf(", %.1f %% hits", 100.0 * (double)counters->cache[0] / (double)counters->gets);
    printf("\n");
}

/* Prints the result. The order of the ranks affects the last digits of the sum of coefficients. */
static void report(const struct result *mine) {
    uint64_t own_bytes = offset_of_lists(0) + starts[0][count_of(0)] * sizeof(uint32_t), remote_bytes = 0;
    struct result sum = gather(mine);
    for (unsigned rank = 0; rank < remote.ranks; ++rank)
        remote_bytes += rank == remote.me ? 0 : starts[rank][count_of(rank)] * sizeof(uint32_t);
    if (remote.me == 0) {
        if (remote.is_checked) {
            struct result alone = find_alone();
            double difference = alone.coefficients - sum.coefficients;
            if (alone.checksum != sum.checksum || difference > 1e-6 || difference < -1e-6)
                fail("the result is not that of one rank by itself");
        }
        print(&sum, sum.coefficients / (double)vertices, own_bytes, remote_bytes);
    }
    remote_barrier();
}

static int understand(int argc, char **argv) {
    for (int at = 1; at < argc; ++at) {
        const char *name = argv[at], *value = at + 1 < argc ? argv[at + 1] : "";
        if (strcmp(name, "--scale") == 0)
            options.scale = number(value, SCALE_MAX), ++at;
        else if (strcmp(name, "--seed") == 0)
            options.seed = number(value, INT64_MAX), ++at;
        else if (strcmp(name, "--batch") == 0)
            options.batch = number(value, 1024), ++at;
        else if (strcmp(name, "--weighted") == 0)
            options.is_weighted = 1;
        else if (!remote_understands(name))
            return 0;
    }
    if (remote.is_checked < 0) remote.is_checked = options.scale <= SCALE_CHECKED;
    vertices = (size_t)1 << (options.scale <= SCALE_MAX ? options.scale : 0);
    return options.scale - 1 < SCALE_MAX && options.seed != UINT64_MAX && options.batch - 1 < 1024 &&
           vertices >= remote.ranks;
}

int main(int argc, char **argv) {
    int status = remote_start(&argc, &argv);
    if (status != 0) return status;
    if (argc > 1 && strcmp(argv[1], "--help") == 0) return remote_end(usage(0));
    if (!understand(argc, argv)) return remote_end(usage(2));
    size_t first = first_of(remote.me), count = count_of(remote.me), *bounds = bounds_of(first, count);
    if (remote_attach(offset_of_lists(remote.me) + bounds[count] * sizeof(uint32_t)) != 0) return 1;
    uint64_t *begins = (uint64_t *)(void *)(remote.own + offset_of_starts());
    write_lists(first, count, bounds, begins, own_lists());
    free(bounds);
    remote_barrier();
    get_starts();
    struct result mine = find_coefficients();
    report(&mine);
    return remote_end(0);
}
