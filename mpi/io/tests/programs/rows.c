#include <mpi.h>
#include <stdio.h>

/* Rows of the table, dealt round robin to the ranks: each write has 8 KiB, each row its neighbours on other ranks. */
enum { ROWS = 8192, COLUMNS = 1024 };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int me, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_File file;
    if (argc != 2 || MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS) {
        fprintf(stderr, argc != 2 ? "usage: rows FILE\n" : "rows: cannot open %s\n", argv[1]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }

    static double row[COLUMNS];
    double begin = MPI_Wtime(), sum = 0, total;
    for (int at = me; at < ROWS; at += ranks) {
        for (int column = 0; column < COLUMNS; ++column) row[column] = at;
        MPI_File_write_at(file, (MPI_Offset)at * sizeof row, row, COLUMNS, MPI_DOUBLE, MPI_STATUS_IGNORE);
    }
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
    for (int at = (me + 1) % ranks; at < ROWS; at += ranks) {
        MPI_File_read_at(file, (MPI_Offset)at * sizeof row, row, COLUMNS, MPI_DOUBLE, MPI_STATUS_IGNORE);
        sum += row[COLUMNS - 1];
    }
    MPI_File_close(&file);
    MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (me == 0) printf("sum %.0f, %.2f s\n", total, MPI_Wtime() - begin);
    MPI_Finalize();
    return 0;
}
