/* MPI 4's functions with large counts. Mode always. */
#include "common.h"

int main(int argc, char **argv) {
    long *memory, value = -1, many[4];
    MPI_Win win;
    MPI_Info info;
    MPI_Request request;
    start(&argc, &argv);
    int other = 1 - rank;
    MPI_Info_create(&info);
    MPI_Info_set(info, "vgasnet_cache", argv[1]);
    MPI_Win_allocate_c(64, 8, info, MPI_COMM_WORLD, &memory, &win);
    MPI_Info_free(&info);
    for (int i = 0; i < 8; ++i) memory[i] = 1000L * rank + i;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    MPI_Get_c(many, 4, MPI_LONG, other, 2, 4, MPI_LONG, win);
    MPI_Win_flush(other, win);
    EQUAL(many[3], 1000 * other + 5);
    change(memory, 8, 100);
    MPI_Get_c(&value, 1, MPI_LONG, other, 2, 1, MPI_LONG, win);
    EQUAL(value, many[0]);
    MPI_Rget_c(&value, 1, MPI_LONG, other, 2, 1, MPI_LONG, win, &request);
    EQUAL(value, many[0]);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    value = 5;
    MPI_Put_c(&value, 1, MPI_LONG, other, 5, 1, MPI_LONG, win);
    MPI_Win_flush(other, win);
    MPI_Get_c(many, 4, MPI_LONG, other, 2, 4, MPI_LONG, win);
    MPI_Win_flush(other, win);
    EQUAL(many[3], 5);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
