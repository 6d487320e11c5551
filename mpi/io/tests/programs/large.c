/* Counts of MPI 4. large FILE */
#include "common.h"

int main(int argc, char **argv) {
    MPI_File file;
    MPI_Status status;
    MPI_Datatype tile, memory;
    MPI_Request request;
    int lens[2] = {3, 2}, at[2] = {0, 5};
    MPI_Count count, sizes[2] = {6, 4}, parts[2] = {6, 2}, starts[2] = {0, 1};
    int numbers[24], i;
    start(&argc, &argv);
    CHECK(argc == 2);
    file = opened(argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR);
    for (i = 0; i < 24; ++i) numbers[i] = 100 * rank + i;
    /* MPICH's own files do not support types of MPI 4, so the view has none. */
    MPI_Type_indexed(2, lens, at, MPI_INT, &tile);
    MPI_Type_commit(&tile);
    MPI_Type_create_subarray_c(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &memory);
    MPI_Type_commit(&memory);
    OK(MPI_File_set_view(file, 1000 * rank, MPI_INT, tile, "native", MPI_INFO_NULL));
    OK(MPI_File_write_at_all_c(file, 2, numbers, 1, memory, &status));
    MPI_Get_elements_c(&status, memory, &count);
    EQUAL(count, 12);
    settle(file);
    memset(numbers, 0, sizeof numbers);
    OK(MPI_File_iread_at_c(file, 2, numbers, 12, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    for (i = 0; i < 12; ++i) EQUAL(numbers[i], 100 * rank + i / 2 * 4 + 1 + i % 2);
    OK(MPI_File_set_view(file, 1000 * rank, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at_c(file, 0, numbers, 13, MPI_INT, &status));
    EQUAL(numbers[2], 100 * rank + 1), EQUAL(numbers[5], 100 * rank + 2), EQUAL(numbers[6], 100 * rank + 5), EQUAL(numbers[7], 100 * rank + 6);
    /* By pointers, split and shared. */
    OK(MPI_File_seek(file, 100, MPI_SEEK_SET));
    numbers[0] = 7 + rank;
    OK(MPI_File_write_c(file, numbers, 1, MPI_INT, &status));
    OK(MPI_File_iwrite_c(file, numbers, 1, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_File_write_all_begin_c(file, numbers, 1, MPI_INT));
    OK(MPI_File_write_all_end(file, numbers, &status));
    OK(MPI_File_seek(file, 100, MPI_SEEK_SET));
    OK(MPI_File_read_all_c(file, numbers + 1, 3, MPI_INT, &status));
    EQUAL(numbers[1], 7 + rank), EQUAL(numbers[2], 7 + rank), EQUAL(numbers[3], 7 + rank);
    OK(MPI_File_set_view(file, 8000, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_write_ordered_c(file, numbers, 1, MPI_INT, &status));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_iwrite_shared_c(file, numbers, 1, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    settle(file);
    OK(MPI_File_read_at_all_c(file, 0, numbers, 2 * ranks, MPI_INT, &status));
    MPI_Get_elements_c(&status, MPI_INT, &count);
    EQUAL(count, 2 * ranks);
    for (i = 0; i < ranks; ++i) EQUAL(numbers[i], 7 + i);
    MPI_Type_free(&tile);
    MPI_Type_free(&memory);
    OK(MPI_File_close(&file));
    finish();
    return 0;
}
