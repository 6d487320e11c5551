/* What a page costs that another rank has in its pool, and what MPI itself takes for as many bytes between the same two
 * ranks in the same run. benches/pages.rs compiles and starts it. A program that calls MPI and vgasnet both.
 *
 * Prints, for rank 0: "name microseconds", one line a sample. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vgasnet.h>

#define ROUNDS 5

static size_t page_bytes;
static size_t pages;
static vgasnet_node_t me;
static vgasnet_seginfo_t segments[2];

static void check(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "pages: rank %d: %s\n", (int)me, what);
    vgasnet_exit(1);
}

static void meet(void) {
    vgasnet_barrier_notify(0, VGASNET_BARRIERFLAG_ANONYMOUS);
    check(vgasnet_barrier_wait(0, VGASNET_BARRIERFLAG_ANONYMOUS) == VGASNET_OK, "a barrier failed");
}

static void sample(const char *name, double seconds) {
    printf("%s %.1f\n", name, seconds * 1e6);
}

static char *page(size_t number) {
    return (char *)segments[0].addr + number * page_bytes;
}

/* Rank 1 makes all pages of rank 0's segment its own, and rank 0 has none of them. */
static void give_away(int round) {
    size_t at;
    uint64_t word;
    for (at = 0; me == 1 && at < pages; ++at) {
        word = at * 1000 + (uint64_t)round;
        vgasnet_put(0, page(at), &word, sizeof word);
    }
    meet();
}

/* A word of each page: the whole page has to come. Backwards, so that none is fetched ahead; forwards they are. */
static void fetch(int round, int backwards) {
    size_t step, at;
    uint64_t word;
    double begin, start = MPI_Wtime();
    for (step = 0; me == 0 && step < pages; ++step) {
        at = backwards ? pages - 1 - step : step;
        begin = MPI_Wtime();
        vgasnet_get(&word, 0, page(at), sizeof word);
        if (backwards) sample("page_of_a_peer", MPI_Wtime() - begin);
        check(word == at * 1000 + (uint64_t)round, "other bytes than were put");
    }
    if (me == 0 && !backwards) sample("page_of_a_peer_ahead", (MPI_Wtime() - start) / (double)pages);
    meet();
}

/* One way: half of there and back. */
static void send_and_receive(char *memory) {
    double begin = MPI_Wtime();
    size_t at;
    int tag = 1;
    for (at = 0; at < pages; ++at, memory += page_bytes) {
        begin = MPI_Wtime();
        if (me == 0) MPI_Send(memory, (int)page_bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
        MPI_Recv(memory, (int)page_bytes, MPI_BYTE, me == 0 ? 1 : 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (me == 1) MPI_Send(memory, (int)page_bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
        if (me == 0) sample("mpi_send", (MPI_Wtime() - begin) / 2);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void get_and_put(char *memory, MPI_Win window) {
    double begin;
    size_t at;
    MPI_Aint there;
    MPI_Win_lock_all(0, window);
    for (at = 0; me == 0 && at < pages; ++at) {
        /* Of memory that was not used just before, as a page is not. */
        there = (MPI_Aint)(at * page_bytes);
        begin = MPI_Wtime();
        MPI_Get(memory + there, (int)page_bytes, MPI_BYTE, 1, there, (int)page_bytes, MPI_BYTE, window);
        MPI_Win_flush(1, window);
        sample("mpi_get", MPI_Wtime() - begin);
        there = (MPI_Aint)((at + pages / 2) % pages * page_bytes);
        begin = MPI_Wtime();
        MPI_Put(memory + there, (int)page_bytes, MPI_BYTE, 1, there, (int)page_bytes, MPI_BYTE, window);
        MPI_Win_flush(1, window);
        sample("mpi_put", MPI_Wtime() - begin);
    }
    MPI_Win_unlock_all(window);
    /* The target has to call MPI meanwhile, and this does. */
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    int provided, round, has_window;
    char *memory;
    MPI_Aint memory_bytes;
    MPI_Win window;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    check(vgasnet_init(&argc, &argv) == VGASNET_OK, "init failed");
    me = vgasnet_mynode();
    check(vgasnet_nodes() == 2, "start two ranks");
    page_bytes = (size_t)atol(getenv("VGASNET_PAGE_SIZE"));
    pages = (size_t)atol(argv[1]);
    check(vgasnet_attach(NULL, 0, me == 0 ? pages * page_bytes : 0, 0) == VGASNET_OK, "attach failed");
    check(vgasnet_getSegmentInfo(segments, 2) == VGASNET_OK, "no segments");
    memory_bytes = (MPI_Aint)(pages * page_bytes);
    MPI_Alloc_mem(memory_bytes, MPI_INFO_NULL, &memory);
    memset(memory, 1, pages * page_bytes);
    /* Over TCP, Open MPI 4 has no windows for programs with threads. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    has_window = MPI_Win_create(memory, memory_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window) == MPI_SUCCESS;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    for (round = 0; round < ROUNDS; ++round) {
        give_away(2 * round);
        fetch(2 * round, 1);
        send_and_receive(memory);
        give_away(2 * round + 1);
        fetch(2 * round + 1, 0);
        if (has_window) get_and_put(memory, window);
    }
    if (has_window) MPI_Win_free(&window);
    MPI_Free_mem(memory);
    meet();
    vgasnet_exit(0);
    return 0;
}
