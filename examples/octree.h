/* The bodies and the octree around them in the memory of all ranks, for the example barnes_hut. Neither the tree nor
 * the order of its sums depends on the number of ranks. */
#ifndef OCTREE_H
#define OCTREE_H

#include "remote.h"
#include <math.h>
#include <stddef.h>

/* Maximum number of bodies in a leaf, and of levels of cells: a position has 21 bits per coordinate. */
#define LEAF_BODIES 4
#define LEVELS_MAX 21

/* The level of the cubes distributed over the ranks, and their number. Cells above it always have children. */
#define TOP_LEVELS 4
#define CUBES (1 << 3 * TOP_LEVELS)

/* Maximum number of upper cells: levels 0 to 3. */
#define UPPER_CELLS (1 + 8 + 64 + 512)

/* Bodies fetched at a time while searching for the bodies in own cubes. */
#define BLOCK_BODIES 1024

struct mass {
    double at[3], mass;
};

struct body {
    struct mass mass;
    double velocity[3];
    uint64_t unused; /* pads to 64 bytes */
};

/* A node: the rank that has it, and its number there. */
struct link {
    uint32_t rank, number;
};

/* A cell with its children, or a leaf with its bodies. */
struct node {
    struct mass all;
    double width;
    uint32_t bodies, children; /* one of them is 0 */
    union {
        struct link child[8];
        struct mass body[LEAF_BODIES];
    } of;
};

/* Information for the other ranks. */
struct notes {
    double low[3], high[3]; /* bounds of its bodies */
    uint64_t checksum, nodes; /* of its bodies; built in the last step */
    struct remote_counters counters;
    uint32_t counts[CUBES]; /* its bodies in each cube */
};

/* A body in an own cube. The key is its position on a space-filling curve that visits each cell completely before the
 * next. */
struct item {
    uint64_t key;
    struct mass mass;
};

/* The cubes in the order of the curve. */
struct cubes {
    double low[3], width;
    uint32_t counts[CUBES];
    uint32_t *bounds; /* the first cube of each rank, and the end */
};

/* This rank, the number of ranks, and this rank's memory. While rank 0 checks alone, it is the only rank. */
static unsigned me, ranks;
static char *own;

/* The number of bodies on all ranks, and their distribution. */
static uint64_t bodies = 1000, seed = 1;
static int is_uniform;

static struct cubes cubes;
static uint32_t nodes; /* of this rank, without the upper cells */

/* ---- layout ---- */

static size_t first_of(unsigned rank) { return bodies * rank / ranks; }

static size_t count_of(unsigned rank) { return first_of(rank + 1) - first_of(rank); }

/* A rank's memory starts with its notes, followed by its bodies, then its nodes and, on rank 0, the upper cells. */
static size_t offset_of_bodies(void) { return sizeof(struct notes); }

static size_t offset_of_nodes(void) { return offset_of_bodies() + (bodies / ranks + 1) * sizeof(struct body); }

/* Room for the nodes of a rank with many more cubes than its share. */
static uint32_t nodes_max(void) { return (uint32_t)(2 * bodies + CUBES); }

static size_t bytes_of_rank(void) {
    return offset_of_nodes() + ((size_t)nodes_max() + UPPER_CELLS) * sizeof(struct node);
}

static struct notes *own_notes(void) { return (struct notes *)(void *)own; }

static struct body *own_bodies(void) { return (struct body *)(void *)(own + offset_of_bodies()); }

static struct node *own_nodes(void) { return (struct node *)(void *)(own + offset_of_nodes()); }

/* Without other ranks everything lies in ordinary memory. */
static void get(void *to, unsigned rank, size_t offset, size_t bytes) {
    if (rank == me)
        memcpy(to, own + offset, bytes);
    else
        remote_get(to, rank, offset, bytes, 1);
}

static void barrier(void) {
    if (ranks > 1) remote_barrier();
}

/* ---- the bodies ---- */

/* splitmix64 */
static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* A number from 0 to below 1. */
static double random_part(uint64_t *state) {
    return (double)(mix(*state += UINT64_C(0x9e3779b97f4a7c15)) >> 11) * 0x1p-53;
}

/* A vector of this length in a random direction. */
static void random_direction(uint64_t *state, double length, double to[3]) {
    double square, scale;
    do {
        for (int axis = 0; axis < 3; ++axis) to[axis] = 2 * random_part(state) - 1;
        square = to[0] * to[0] + to[1] * to[1] + to[2] * to[2];
    } while (square > 1 || square < 1e-6);
    scale = length / sqrt(square);
    for (int axis = 0; axis < 3; ++axis) to[axis] *= scale;
}

/* Bodies at rest in a cube of width 2, or Plummer's model without the outermost hundredth. */
static struct body body_at(size_t index) {
    uint64_t state = mix(seed * UINT64_C(0xd1342543de82ef95) + index);
    struct body body = {{{0, 0, 0}, 1.0 / (double)bodies}, {0, 0, 0}, 0};
    if (is_uniform) {
        for (int axis = 0; axis < 3; ++axis) body.mass.at[axis] = 2 * random_part(&state) - 1;
        return body;
    }
    double inside = 0.99 * (random_part(&state) + 1e-9), part, height;
    double radius = 1 / sqrt(pow(inside, -2.0 / 3.0) - 1);
    do part = random_part(&state), height = 0.1 * random_part(&state);
    while (height > part * part * pow(1 - part * part, 3.5));
    random_direction(&state, radius, body.mass.at);
    random_direction(&state, part * sqrt(2.0) * pow(1 + radius * radius, -0.25), body.velocity);
    return body;
}

/* ---- distribution of the tree ---- */

/* Spreads 21 bits to every third bit. */
static uint64_t spread(uint64_t bits) {
    bits = (bits | bits << 32) & UINT64_C(0x001f00000000ffff);
    bits = (bits | bits << 16) & UINT64_C(0x001f0000ff0000ff);
    bits = (bits | bits << 8) & UINT64_C(0x100f00f00f00f00f);
    bits = (bits | bits << 4) & UINT64_C(0x10c30c30c30c30c3);
    return (bits | bits << 2) & UINT64_C(0x1249249249249249);
}

static uint64_t key_of(const double at[3]) {
    uint64_t key = 0;
    for (int axis = 0; axis < 3; ++axis) {
        double part = (at[axis] - cubes.low[axis]) / cubes.width;
        key |= spread((uint64_t)(part * (1 << LEVELS_MAX))) << axis;
    }
    return key;
}

static unsigned cube_of(uint64_t key) { return (unsigned)(key >> 3 * (LEVELS_MAX - TOP_LEVELS)); }

/* Finds the cube around all bodies. It is slightly enlarged so that no body lies on its upper border. */
static void find_space(void) {
    struct notes *notes = own_notes();
    double low[3], high[3], theirs[6];
    for (size_t at = 0; at < count_of(me); ++at)
        for (int axis = 0; axis < 3; ++axis) {
            double place = own_bodies()[at].mass.at[axis];
            if (at == 0 || place < notes->low[axis]) notes->low[axis] = place;
            if (at == 0 || place > notes->high[axis]) notes->high[axis] = place;
        }
    barrier();
    cubes.width = 0;
    for (unsigned rank = 0; rank < ranks; ++rank) {
        get(theirs, rank, 0, sizeof theirs);
        for (int axis = 0; axis < 3; ++axis) {
            if (rank == 0 || theirs[axis] < low[axis]) low[axis] = theirs[axis];
            if (rank == 0 || theirs[3 + axis] > high[axis]) high[axis] = theirs[3 + axis];
        }
    }
    for (int axis = 0; axis < 3; ++axis) {
        cubes.low[axis] = low[axis];
        if (high[axis] - low[axis] > cubes.width) cubes.width = high[axis] - low[axis];
    }
    cubes.width = cubes.width * 1.000001 + 1e-12;
}

/* Gives each rank consecutive cubes with about the same number of bodies. */
static void share_out(void) {
    static uint32_t theirs[CUBES];
    struct notes *notes = own_notes();
    memset(notes->counts, 0, sizeof notes->counts);
    for (size_t at = 0; at < count_of(me); ++at) ++notes->counts[cube_of(key_of(own_bodies()[at].mass.at))];
    barrier();
    memset(cubes.counts, 0, sizeof cubes.counts);
    for (unsigned rank = 0; rank < ranks; ++rank) {
        get(theirs, rank, offsetof(struct notes, counts), sizeof theirs);
        for (unsigned cube = 0; cube < CUBES; ++cube) cubes.counts[cube] += theirs[cube];
    }
    uint64_t before = 0;
    unsigned rank = 0;
    for (unsigned cube = 0; cube < CUBES; ++cube) {
        while (rank < ranks && before >= bodies * rank / ranks) cubes.bounds[rank++] = cube;
        before += cubes.counts[cube];
    }
    while (rank <= ranks) cubes.bounds[rank++] = CUBES;
}

static int compare(const void *left, const void *right) {
    uint64_t a = ((const struct item *)left)->key, b = ((const struct item *)right)->key;
    return (a > b) - (a < b);
}

/* Fetches the bodies in own cubes, sorted along the curve. */
static struct item *fetch_items(size_t *count) {
    static struct body block[BLOCK_BODIES];
    unsigned first = cubes.bounds[me], end = cubes.bounds[me + 1];
    size_t room = 0;
    for (unsigned cube = first; cube < end; ++cube) room += cubes.counts[cube];
    struct item *items = (struct item *)memory(room, sizeof *items);
    *count = 0;
    for (unsigned rank = 0; rank < ranks; ++rank)
        for (size_t at = 0, some; at < count_of(rank); at += some) {
            some = count_of(rank) - at < BLOCK_BODIES ? count_of(rank) - at : BLOCK_BODIES;
            get(block, rank, offset_of_bodies() + at * sizeof *block, some * sizeof *block);
            for (size_t one = 0; one < some; ++one) {
                struct item item = {key_of(block[one].mass.at), block[one].mass};
                if (cube_of(item.key) >= first && cube_of(item.key) < end) items[(*count)++] = item;
            }
        }
    qsort(items, *count, sizeof *items, compare);
    return items;
}

/* ---- the tree ---- */

static void add_mass(struct mass *sum, const struct mass *one) {
    double mass = sum->mass + one->mass;
    for (int axis = 0; axis < 3; ++axis)
        sum->at[axis] = (sum->at[axis] * sum->mass + one->at[axis] * one->mass) / mass;
    sum->mass = mass;
}

/* Allocates an own node. */
static uint32_t take_node(void) {
    if (nodes == nodes_max()) fail("bodies are too close together; give more of them, or another seed");
    return nodes++;
}

/* Builds a node and everything below it from bodies with a common key prefix. */
static struct mass build(uint32_t number, const struct item *items, size_t count, unsigned level) {
    struct node node;
    memset(&node, 0, sizeof node);
    node.width = cubes.width / (double)(1 << level);
    if (count <= LEAF_BODIES) {
        for (size_t at = 0; at < count; ++at) {
            node.of.body[node.bodies++] = items[at].mass;
            add_mass(&node.all, &items[at].mass);
        }
    } else {
        if (level == LEVELS_MAX) fail("more bodies than a leaf holds are at one place");
        unsigned shift = 3 * (LEVELS_MAX - 1 - level);
        for (size_t at = 0, end; at < count; at = end) {
            for (end = at + 1; end < count && items[end].key >> shift == items[at].key >> shift;) ++end;
            struct link link = {me, take_node()};
            struct mass below = build(link.number, items + at, end - at, level + 1);
            node.of.child[node.children++] = link;
            add_mass(&node.all, &below);
        }
    }
    own_nodes()[number] = node;
    return node.all;
}

/* Builds the nodes of the own cubes. The first nodes of a rank are the roots of its cubes with bodies. */
static void build_own(void) {
    size_t count, at = 0;
    struct item *items = fetch_items(&count);
    uint32_t cube_nodes = 0;
    for (unsigned cube = cubes.bounds[me]; cube < cubes.bounds[me + 1]; ++cube) cube_nodes += cubes.counts[cube] > 0;
    nodes = cube_nodes;
    for (uint32_t number = 0; number < cube_nodes; ++number) {
        size_t some = cubes.counts[cube_of(items[at].key)];
        build(number, items + at, some, TOP_LEVELS);
        at += some;
    }
    free(items);
}

/* Rank 0's state while it builds the upper cells: the next cube of each rank, and the next upper cell. */
struct upper {
    unsigned rank;
    uint32_t number, taken;
};

/* Builds an upper cell, the cells below it and the links to cubes, in the order of the curve. */
static struct mass build_upper(struct upper *upper, unsigned cube, unsigned level) {
    uint32_t number = nodes_max() + upper->taken++;
    unsigned width = 1U << 3 * (TOP_LEVELS - 1 - level); /* of a child, in cubes */
    struct node node;
    memset(&node, 0, sizeof node);
    node.width = cubes.width / (double)(1 << level);
    for (unsigned end = cube + 8 * width; cube < end; cube += width) {
        uint64_t inside = 0;
        for (unsigned one = cube; one < cube + width; ++one) inside += cubes.counts[one];
        if (inside == 0) continue;
        struct link link = {0, nodes_max() + upper->taken};
        struct mass below;
        if (level + 1 < TOP_LEVELS) {
            below = build_upper(upper, cube, level + 1);
        } else {
            while (cube >= cubes.bounds[upper->rank + 1]) ++upper->rank, upper->number = 0;
            link.rank = upper->rank, link.number = upper->number++;
            get(&below, link.rank, offset_of_nodes() + link.number * sizeof(struct node), sizeof below);
        }
        node.of.child[node.children++] = link;
        add_mass(&node.all, &below);
    }
    own_nodes()[number] = node;
    return node.all;
}

static void build_tree(void) {
    find_space();
    share_out();
    build_own();
    barrier();
    struct upper upper = {0, 0, 0};
    if (me == 0) build_upper(&upper, 0, 0);
    barrier();
}

#endif
