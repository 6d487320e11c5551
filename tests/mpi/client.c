/* A program with both MPI and vgasnet. Its first argument says who starts MPI, its second one how it ends. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vgasnet.h>

#define ROUNDS 40
#define BYTES 100000

static int rank, ranks;

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "rank %d: %s:%d: %s does not hold\n", rank, __FILE__, __LINE__, #condition); \
            vgasnet_exit(1); \
        } \
    } while (0)

static unsigned char byte_of(int round, int from, size_t at) {
    return (unsigned char)(round * 31 + from * 7 + (int)(at % 251));
}

/* Sends the same bytes by MPI around the ring of ranks and by vgasnet through the next rank's segment. */
static void both(int round, const vgasnet_seginfo_t *segments) {
    static unsigned char mine[BYTES], by_mpi[BYTES], by_vgasnet[BYTES];
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    size_t at, offset = (size_t)round * 4099;
    for (at = 0; at < BYTES; ++at) mine[at] = byte_of(round, rank, at);
    vgasnet_put(next, (char *)segments[next].addr + offset, mine, BYTES);
    MPI_Sendrecv(mine, BYTES, MPI_BYTE, next, round, by_mpi, BYTES, MPI_BYTE, before, round, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    vgasnet_get(by_vgasnet, rank, (char *)segments[rank].addr + offset, BYTES);
    CHECK(memcmp(by_mpi, by_vgasnet, BYTES) == 0);
    for (at = 0; at < BYTES; ++at) CHECK(by_mpi[at] == byte_of(round, before, at));
    vgasnet_barrier_notify(0, VGASNET_BARRIERFLAG_ANONYMOUS);
    CHECK(vgasnet_barrier_wait(0, VGASNET_BARRIERFLAG_ANONYMOUS) == VGASNET_OK);
}

int main(int argc, char **argv) {
    const char *start, *end;
    int provided = -1, initialised = 0, round;
    vgasnet_seginfo_t *segments;
    if (argc != 3) return 2;
    start = argv[1], end = argv[2];
    if (strcmp(start, "before") == 0) MPI_Init(&argc, &argv);
    if (strcmp(start, "threads-before") == 0) MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(vgasnet_init(&argc, &argv) == VGASNET_OK);
    if (strcmp(start, "after") == 0) MPI_Init(&argc, &argv);
    if (strcmp(start, "threads-after") == 0) {
        MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
        CHECK(provided == MPI_THREAD_MULTIPLE);
    }
    MPI_Initialized(&initialised);
    CHECK(initialised);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(rank == (int)vgasnet_mynode() && ranks == (int)vgasnet_nodes());
    CHECK(vgasnet_attach(NULL, 0, BYTES + ROUNDS * 4099, 0) == VGASNET_OK);
    segments = (vgasnet_seginfo_t *)malloc((size_t)ranks * sizeof *segments);
    CHECK(segments != NULL && vgasnet_getSegmentInfo(segments, ranks) == VGASNET_OK);
    for (round = 0; round < ROUNDS; ++round) both(round, segments);
    free(segments);
    if (strcmp(end, "finalize") == 0) MPI_Finalize();
    if (strcmp(end, "exit") == 0) vgasnet_exit(0);
    return 0;
}
