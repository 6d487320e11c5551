/* The cost of a page from another rank's pool, next to MPI's own operations on the same number of bytes between the
 * same two ranks in the same run. The program calls both MPI and vgasnet. */
#include <mpi.h>

#include "page.h"

/* Half of a round trip. */
static void send_and_receive(char *memory) {
    double begin = now();
    size_t at;
    int tag = 1;
    for (at = 0; at < pages; ++at, memory += page_bytes) {
        begin = now();
        if (me == 0) MPI_Send(memory, (int)page_bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
        MPI_Recv(memory, (int)page_bytes, MPI_BYTE, me == 0 ? 1 : 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (me == 1) MPI_Send(memory, (int)page_bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
        if (me == 0) sample("mpi_send", (now() - begin) / 2);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void get_and_put(char *memory, MPI_Win window) {
    double begin;
    size_t at;
    MPI_Aint there;
    MPI_Win_lock_all(0, window);
    for (at = 0; me == 0 && at < pages; ++at) {
        /* Memory not used just before, as for a page. */
        there = (MPI_Aint)(at * page_bytes);
        begin = now();
        MPI_Get(memory + there, (int)page_bytes, MPI_BYTE, 1, there, (int)page_bytes, MPI_BYTE, window);
        MPI_Win_flush(1, window);
        sample("mpi_get", now() - begin);
        there = (MPI_Aint)((at + pages / 2) % pages * page_bytes);
        begin = now();
        MPI_Put(memory + there, (int)page_bytes, MPI_BYTE, 1, there, (int)page_bytes, MPI_BYTE, window);
        MPI_Win_flush(1, window);
        sample("mpi_put", now() - begin);
    }
    MPI_Win_unlock_all(window);
    /* The target has to call MPI meanwhile; the barrier does so. */
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    int provided, round, has_window;
    char *memory;
    MPI_Aint memory_bytes;
    MPI_Win window;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    page_bytes = (size_t)atol(getenv("VGASNET_PAGE_SIZE"));
    pages = (size_t)atol(argv[1]);
    start_vgasnet(&argc, &argv);
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
