/* Edges of R-MAT graphs as in Graph500, for the examples graph_search and lcc. Each edge is generated independently. */
#ifndef RMAT_H
#define RMAT_H

#include <stddef.h>
#include <stdint.h>

/* Edges per vertex. */
#define EDGE_FACTOR 16

/* Cumulative probabilities, scaled to 2^16, for the quarters of the adjacency matrix: upper left, upper right, lower
 * left. */
#define RMAT_A 37356                  /* 0.57 */
#define RMAT_A_B (RMAT_A + 12452)     /* 0.19 more */
#define RMAT_A_B_C (RMAT_A_B + 12452) /* 0.19 more, leaving 0.05 for the last quarter */

/* A generated edge. It is undirected. */
struct edge {
    uint32_t from, to;
};

/* splitmix64 */
static inline uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint64_t random_word(uint64_t *state) { return mix(*state += UINT64_C(0x9e3779b97f4a7c15)); }

/* Permutes the vertex numbers. R-MAT concentrates edges at low numbers, so without this one rank would have most
 * edges. */
static inline uint32_t rmat_renumbered(unsigned scale, uint32_t vertex) {
    uint32_t mask = (uint32_t)((UINT64_C(1) << scale) - 1);
    for (int turn = 0; turn < 2; ++turn) {
        vertex = vertex * UINT32_C(0x9e3779b1) & mask;
        vertex ^= vertex >> (scale / 2 + 1);
    }
    return vertex;
}

/* Generates one edge of the graph with 2^scale vertices. */
static inline struct edge rmat_edge(unsigned scale, uint64_t seed, size_t index) {
    uint64_t state = seed * UINT64_C(0xd1342543de82ef95) + index * scale, bits = 0;
    struct edge edge = {0, 0};
    for (unsigned level = 0; level < scale; ++level, bits >>= 16) {
        if (level % 4 == 0) bits = random_word(&state);
        uint32_t part = (uint32_t)(bits & UINT16_MAX);
        edge.from = edge.from << 1 | (part >= RMAT_A_B);
        edge.to = edge.to << 1 | ((part >= RMAT_A && part < RMAT_A_B) || part >= RMAT_A_B_C);
    }
    edge.from = rmat_renumbered(scale, edge.from), edge.to = rmat_renumbered(scale, edge.to);
    return edge;
}

#endif
