/* Gravitation of many bodies by the method of Barnes and Hut: the cells of an octree stand for distant groups of
 * bodies.
 *
 * Each rank has a block of the bodies. In each step the ranks divide space into small cubes and distribute the cubes by
 * their number of bodies. A rank fetches the bodies in its cubes and builds the octree below them in its memory. Rank 0
 * builds the cells above.
 *
 * Then each rank computes the forces on its own bodies. For each body it walks the tree from the root and opens the
 * cells that are near: it gets their children, objects of one size, from the ranks that have them. All bodies need the
 * upper cells, and neighbours need the same lower cells. No rank writes in this phase, so a cache of gets helps.
 *
 *   cc -O2 -Iinclude examples/barnes_hut.c -o barnes_hut -Ltarget/release -lvgasnet -lm -Wl,-rpath,$PWD/target/release
 *   VGASNET_POOL_SIZE=64M target/release/vgasnetrun -n 2 ./barnes_hut --bodies 20000 --cached
 *
 * Without --cached each object is fetched each time. --direct-mapped uses a simple cache of this program, with one
 * object per slot. Over MPI, with or without a library that caches gets:
 *
 *   mpicc -O2 -DUSE_MPI -D_POSIX_C_SOURCE=200809L examples/barnes_hut.c -o barnes_hut-mpi -lm
 *   mpiexec -n 2 ./barnes_hut-mpi --bodies 20000
 *
 * The tree and the order of the sums do not depend on the number of ranks: the result equals a run on one rank to the
 * last bit.
 */
#include "octree.h"

/* A cell is opened if its width is more than this fraction of its distance. */
#define THETA 0.5

/* Added to squared distances, so no force is infinite. A body does not attract itself: its distance is 0. */
#define SOFTENING 1e-4

#define STEP_SECONDS 0.01

/* Nodes pending in a walk through the tree, at most: seven siblings at each level, and the current node. */
#define STACK_NODES (8 * (LEVELS_MAX + 2))

/* Limits of the comparison with sums over all pairs: the number of bodies, and the error. The error is the root mean square
 * of the differences, relative to the root mean square of the forces. */
#define BODIES_SUMMED 4096
#define ERROR_MAX 0.01

struct options {
    uint64_t steps, cache_bytes;
    int is_batched;
};

/* A slot of the direct-mapped cache. */
struct slot {
    struct link link;
    int is_taken;
    struct node node;
};

static struct options options = {2, 0, 0};

/* The direct-mapped cache, if it is used. */
static struct slot *slots;
static size_t slot_count;

/* Time and gets of the force phases. */
static double force_seconds;
static struct remote_counters force_counters;

static int usage(int status) {
    if (remote.me != 0) return 0;
    fprintf(status == 0 ? stdout : stderr,
            "usage: barnes_hut [OPTION]...\n"
            "  --bodies N             at least one for each rank, at most 16777216 (default 1000)\n"
            "  --steps N              of time (default 2)\n"
            "  --seed N               of the places of the bodies (default 1)\n"
            "  --uniform              bodies all over a cube; else a cluster, by the model of Plummer\n"
            "  --cached               get nodes through the cache of vgasnet\n"
            "  --direct-mapped BYTES  get nodes through a cache of this program instead\n"
            "  --batch                get all children of a cell at once\n"
            "  --check                compare the result with that of one rank by itself, and forces on up to 4096\n"
            "                         bodies with sums over all pairs (default up to 10000 bodies)\n"
            "  --no-check             do not\n"
            "  --json                 print one line of JSON\n");
    return status;
}

/* ---- forces ---- */

/* A node of another rank, through the direct-mapped cache. */
static void get_by_slot(struct node *to, struct link link) {
    struct slot *slot = &slots[mix((uint64_t)link.rank << 32 | link.number) % slot_count];
    if (!slot->is_taken || slot->link.rank != link.rank || slot->link.number != link.number) {
        get(&slot->node, link.rank, offset_of_nodes() + link.number * sizeof *to, sizeof *to);
        slot->link = link, slot->is_taken = 1;
    } else {
        ++remote.counters.cache[0], ++remote.counters.gets, remote.counters.bytes += sizeof *to;
    }
    *to = slot->node;
}

/* Gets nodes, all at once or one by one. */
static void get_nodes(struct node *to, const struct link *links, size_t count) {
    int is_pending = 0;
    for (size_t at = 0; at < count; ++at) {
        size_t offset = offset_of_nodes() + links[at].number * sizeof *to;
        if (links[at].rank == me)
            to[at] = own_nodes()[links[at].number];
        else if (slots != NULL)
            get_by_slot(&to[at], links[at]);
        else if (options.is_batched)
            remote_get_nb(&to[at], links[at].rank, offset, sizeof *to), is_pending = 1;
        else
            remote_get(&to[at], links[at].rank, offset, sizeof *to, 1);
    }
    if (is_pending) remote_wait();
}

static void attract(const double at[3], const struct mass *mass, double force[3]) {
    double way[3], square = SOFTENING;
    for (int axis = 0; axis < 3; ++axis) way[axis] = mass->at[axis] - at[axis], square += way[axis] * way[axis];
    double scale = mass->mass / (square * sqrt(square));
    for (int axis = 0; axis < 3; ++axis) force[axis] += scale * way[axis];
}

/* Whether the cell must be opened for a body at this position. */
static int is_near(const struct node *cell, const double at[3]) {
    double square = 0;
    for (int axis = 0; axis < 3; ++axis) square += (cell->all.at[axis] - at[axis]) * (cell->all.at[axis] - at[axis]);
    return cell->width * cell->width >= THETA * THETA * square;
}

/* Computes the force on a body of mass 1. */
static void find_force(const double at[3], double force[3]) {
    static struct node stack[STACK_NODES];
    const struct link root = {0, nodes_max()};
    size_t waiting = 1;
    get_nodes(stack, &root, 1);
    force[0] = force[1] = force[2] = 0;
    while (waiting > 0) {
        struct node node = stack[--waiting];
        if (node.bodies > 0) {
            for (uint32_t one = 0; one < node.bodies; ++one) attract(at, &node.of.body[one], force);
        } else if (is_near(&node, at)) {
            get_nodes(&stack[waiting], node.of.child, node.children);
            waiting += node.children;
        } else {
            attract(at, &node.all, force);
        }
    }
}

static int is_alone(void) { return own != remote.own; }

/* Computes the forces on all own bodies. No rank writes meanwhile. */
static void find_forces(double (*forces)[3]) {
    struct remote_counters before = remote.counters;
    double began = seconds();
    if (!is_alone()) remote_read_only_begin(offset_of_nodes(), sizeof(struct node));
    for (size_t at = 0; slots != NULL && at < slot_count; ++at) slots[at].is_taken = 0;
    for (size_t at = 0; at < count_of(me); ++at) {
        find_force(own_bodies()[at].mass.at, forces[at]);
        remote_progress(is_alone() ? "check" : "forces", at, count_of(me));
    }
    remote_progress(is_alone() ? "check" : "forces", 1, 1);
    if (!is_alone()) remote_read_only_end(offset_of_nodes());
    barrier();
    if (is_alone()) return;
    force_seconds += seconds() - began;
    force_counters.gets += remote.counters.gets - before.gets;
    force_counters.bytes += remote.counters.bytes - before.bytes;
    memcpy(force_counters.cache, remote.counters.cache, sizeof force_counters.cache);
}

/* The error of the forces relative to sums over all pairs. */
static double error_of(double (*forces)[3]) {
    double errors = 0, squares = 0;
    for (size_t at = 0; at < bodies; ++at) {
        double exact[3] = {0, 0, 0};
        for (size_t other = 0; other < bodies; ++other)
            attract(own_bodies()[at].mass.at, &own_bodies()[other].mass, exact);
        for (int axis = 0; axis < 3; ++axis) {
            errors += (forces[at][axis] - exact[axis]) * (forces[at][axis] - exact[axis]);
            squares += exact[axis] * exact[axis];
        }
    }
    return sqrt(errors / squares);
}

/* Simulates all steps. */
static void simulate(void) {
    double(*forces)[3] = (double(*)[3])memory(count_of(me), sizeof *forces);
    for (size_t at = 0; at < count_of(me); ++at) own_bodies()[at] = body_at(first_of(me) + at);
    for (uint64_t step = 0; step < options.steps; ++step) {
        build_tree();
        find_forces(forces);
        if (step == 0 && is_alone() && bodies <= BODIES_SUMMED && error_of(forces) > ERROR_MAX)
            fail("forces are far from the sums over all pairs");
        for (size_t at = 0; at < count_of(me); ++at) {
            struct body *body = &own_bodies()[at];
            for (int axis = 0; axis < 3; ++axis) {
                body->velocity[axis] += STEP_SECONDS * forces[at][axis];
                body->mass.at[axis] += STEP_SECONDS * body->velocity[axis];
            }
        }
    }
    free(forces);
}

/* ---- check and output ---- */

static uint64_t checksum_of_own(void) {
    uint64_t sum = 0, word;
    for (size_t at = 0; at < count_of(me); ++at)
        for (int axis = 0; axis < 3; ++axis) {
            memcpy(&word, &own_bodies()[at].mass.at[axis], sizeof word);
            sum += mix(word + 3 * (first_of(me) + at) + (uint64_t)axis);
        }
    return sum;
}

/* Repeats the simulation on rank 0 alone in ordinary memory. Returns the checksum. */
static uint64_t checksum_alone(void) {
    unsigned all = ranks;
    struct slot *before = slots;
    ranks = 1, slots = NULL;
    own = (char *)memory(bytes_of_rank(), 1);
    simulate();
    uint64_t sum = checksum_of_own();
    free(own);
    own = remote.own, ranks = all, slots = before;
    return sum;
}

static void print(uint64_t checksum, uint64_t own_bytes, uint64_t remote_bytes, const struct remote_counters *sum) {
    const char *way = remote.is_cached ? ", cached" : slots != NULL ? ", direct-mapped" : "";
    if (remote.is_json) {
        printf("{\"program\":\"barnes_hut\",\"ranks\":%u,\"bodies\":%" PRIu64 ",\"steps\":%" PRIu64 ",\"seed\":%" PRIu64
               ",\"cached\":%s,\"checksum\":\"%016" PRIx64 "\",\"seconds\":%.6f,\"own_bytes\":%" PRIu64
               ",\"remote_bytes\":%" PRIu64 ",",
               ranks, bodies, options.steps, seed, remote.is_cached ? "true" : "false", checksum,
               force_seconds, own_bytes, remote_bytes);
        remote_print_json(sum);
        printf("}\n");
        return;
    }
    printf("barnes_hut on %u ranks%s, %" PRIu64 " bodies, %" PRIu64 " steps, seed %" PRIu64 ": checksum %016" PRIx64
           ", forces in %.3f s, %.1f us a body, %" PRIu64 " gets of %.1f MiB",
           ranks, way, bodies, options.steps, seed, checksum, force_seconds,
           1e6 * force_seconds * ranks / (double)bodies / (double)options.steps, sum->gets,
           (double)sum->bytes / (1 << 20));
    if (way[0] != '\0' && sum->gets > 0) printf(", %.1f %% hits", 100.0 * (double)sum->cache[0] / (double)sum->gets);
    printf("\n");
}

/* Combines the results of all ranks. */
static void report(void) {
    struct remote_counters sum = {0, 0, {0}};
    struct notes *mine = own_notes();
    uint64_t checksum = 0, all_nodes = 0, least_nodes = UINT64_MAX, most_nodes = 0;
    mine->checksum = checksum_of_own(), mine->nodes = nodes, mine->counters = force_counters;
    barrier();
    for (unsigned rank = 0; me == 0 && rank < ranks; ++rank) {
        static struct notes notes;
        get(&notes, rank, 0, sizeof notes);
        remote_add_counters(&sum, &notes.counters);
        checksum += notes.checksum, all_nodes += notes.nodes;
        if (notes.nodes < least_nodes) least_nodes = notes.nodes;
        if (notes.nodes > most_nodes) most_nodes = notes.nodes;
    }
    if (me == 0) {
        if (remote.is_checked && checksum_alone() != checksum) fail("the result is not that of one rank by itself");
        /* Upper bounds of the memory of one rank, and of the memory it reads from others. */
        uint64_t own_bytes = offset_of_nodes() + (most_nodes + UPPER_CELLS) * sizeof(struct node);
        print(checksum, own_bytes, (all_nodes - least_nodes) * sizeof(struct node), &sum);
    }
    remote_barrier();
}

static int understand(int argc, char **argv) {
    for (int at = 1; at < argc; ++at) {
        const char *name = argv[at], *value = at + 1 < argc ? argv[at + 1] : "";
        if (strcmp(name, "--bodies") == 0)
            bodies = number(value, 1 << 24), ++at;
        else if (strcmp(name, "--steps") == 0)
            options.steps = number(value, 1000000), ++at;
        else if (strcmp(name, "--seed") == 0)
            seed = number(value, INT64_MAX), ++at;
        else if (strcmp(name, "--direct-mapped") == 0)
            options.cache_bytes = number(value, INT64_MAX), ++at;
        else if (strcmp(name, "--uniform") == 0)
            is_uniform = 1;
        else if (strcmp(name, "--batch") == 0)
            options.is_batched = 1;
        else if (!remote_understands(name))
            return 0;
    }
    if (remote.is_checked < 0) remote.is_checked = bodies <= 10000;
    slot_count = (size_t)(options.cache_bytes / sizeof(struct slot));
    int is_slotted = options.cache_bytes == 0 || (slot_count > 0 && options.cache_bytes != UINT64_MAX);
    return bodies >= remote.ranks && bodies != UINT64_MAX && seed != UINT64_MAX &&
           options.steps - 1 < 1000000 && is_slotted && !(remote.is_cached && slot_count > 0);
}

int main(int argc, char **argv) {
    int status = remote_start(&argc, &argv);
    if (status != 0) return status;
    if (argc > 1 && strcmp(argv[1], "--help") == 0) return remote_end(usage(0));
    if (!understand(argc, argv)) return remote_end(usage(2));
    me = remote.me, ranks = remote.ranks;
    cubes.bounds = (uint32_t *)memory(ranks + 1, sizeof *cubes.bounds);
    if (slot_count > 0) slots = (struct slot *)memory(slot_count, sizeof *slots);
    if (remote_attach(bytes_of_rank()) != 0) return 1;
    own = remote.own;
    simulate();
    report();
    return remote_end(0);
}
