/* Files by MPI-IO, with views and collective calls if the pattern has them. */
#include "io.h"
#include "pattern.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static MPI_File file;
static MPI_Datatype in_file, in_memory;
static int has_view;
static uint64_t view_bytes;

static void check(int result, const char *what) {
    char text[MPI_MAX_ERROR_STRING];
    int len = 0;
    if (result == MPI_SUCCESS) return;
    MPI_Error_string(result, text, &len);
    fprintf(stderr, "%s\n", text);
    io_fail(what);
}

void io_start(int *argc, char ***argv) {
    /* A preloaded library for files may want threads. */
    int provided;
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
}

void io_end(int status) {
    MPI_Finalize();
    exit(status);
}

void io_fail(const char *what) {
    fprintf(stderr, "rank %d: %s\n", io_rank(), what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

int io_rank(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

int io_ranks(void) {
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return ranks;
}

void io_barrier(void) {
    MPI_Barrier(MPI_COMM_WORLD);
}

double io_now(void) {
    return MPI_Wtime();
}

void io_open(const char *path, int flags) {
    int mode = flags & IO_READ ? (flags & IO_WRITE ? MPI_MODE_RDWR : MPI_MODE_RDONLY) : MPI_MODE_WRONLY;
    if (flags & IO_NEW) mode |= MPI_MODE_CREATE;
    check(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file), "MPI_File_open");
    if (flags & IO_ATOMIC) check(MPI_File_set_atomicity(file, 1), "MPI_File_set_atomicity");
}

void io_sync(void) {
    check(MPI_File_sync(file), "MPI_File_sync");
}

void io_close(void) {
    check(MPI_File_close(&file), "MPI_File_close");
    if (has_view) {
        MPI_Type_free(&in_file);
        MPI_Type_free(&in_memory);
    }
    has_view = 0;
}

/* Checks that all bytes were moved. */
static void check_count(MPI_Status *status, int result, MPI_Datatype type, int wanted, const char *what) {
    int count;
    check(result, what);
    MPI_Get_count(status, type, &count);
    if (count != wanted) io_fail(what);
}

void io_write_at(uint64_t offset, const void *from, size_t len) {
    MPI_Status status;
    int result = MPI_File_write_at(file, (MPI_Offset)offset, from, (int)len, MPI_BYTE, &status);
    check_count(&status, result, MPI_BYTE, (int)len, "MPI_File_write_at");
}

void io_read_at(uint64_t offset, void *to, size_t len) {
    MPI_Status status;
    int result = MPI_File_read_at(file, (MPI_Offset)offset, to, (int)len, MPI_BYTE, &status);
    check_count(&status, result, MPI_BYTE, (int)len, "MPI_File_read_at");
}

void io_write_all(uint64_t offset, const void *from, size_t len) {
    MPI_Status status;
    int result = MPI_File_write_at_all(file, (MPI_Offset)offset, from, (int)len, MPI_BYTE, &status);
    check_count(&status, result, MPI_BYTE, (int)len, "MPI_File_write_at_all");
}

/* A datatype of rows, from either their offsets in the file or in memory. */
static MPI_Datatype type_of(size_t count, const int lens[], const MPI_Aint offsets[], uint64_t extent) {
    MPI_Datatype rows, resized;
    MPI_Type_create_hindexed((int)count, lens, offsets, MPI_DOUBLE, &rows);
    MPI_Type_create_resized(rows, 0, (MPI_Aint)extent, &resized);
    MPI_Type_commit(&resized);
    MPI_Type_free(&rows);
    return resized;
}

void io_view(size_t count, const struct io_row rows[], uint64_t extent) {
    int *lens = (int *)allocate(count * sizeof *lens);
    MPI_Aint *offsets = (MPI_Aint *)allocate(count * sizeof *offsets);
    view_bytes = 0;
    for (size_t at = 0; at < count; ++at) {
        lens[at] = (int)(rows[at].len / sizeof(double));
        offsets[at] = (MPI_Aint)rows[at].in_file;
        view_bytes += rows[at].len;
    }
    in_file = type_of(count, lens, offsets, extent);
    for (size_t at = 0; at < count; ++at) offsets[at] = (MPI_Aint)rows[at].in_memory;
    in_memory = type_of(count, lens, offsets, extent);
    has_view = 1;
    free(lens);
    free(offsets);
    check(MPI_File_set_view(file, 0, MPI_DOUBLE, in_file, "native", MPI_INFO_NULL), "MPI_File_set_view");
}

void io_write_view(uint64_t nth, const void *memory) {
    MPI_Status status;
    MPI_Offset offset = (MPI_Offset)(nth * view_bytes / sizeof(double));
    int result = MPI_File_write_at_all(file, offset, memory, 1, in_memory, &status);
    check_count(&status, result, in_memory, 1, "MPI_File_write_at_all");
}

void io_read_view(uint64_t nth, void *memory) {
    MPI_Status status;
    MPI_Offset offset = (MPI_Offset)(nth * view_bytes / sizeof(double));
    int result = MPI_File_read_at_all(file, offset, memory, 1, in_memory, &status);
    check_count(&status, result, in_memory, 1, "MPI_File_read_at_all");
}
