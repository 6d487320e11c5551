/* A file of HDF5: contiguous and chunked datasets by collective and independent writes, hyperslabs, points, a
 * growing dataset, attributes, a filter, and a second opening that changes the file. Another number of ranks and
 * HDF5's tools read it. hdf5 write|read FILE */
#include "common.h"
#include <hdf5.h>

enum { ROWS = 96, COLUMNS = 53, GROWN = ROWS + 32, POINTS = 40 };

/* A call of HDF5 that must succeed. */
#define DONE(call)                                 \
    do {                                           \
        if ((call) < 0) FAIL("%s fails", #call);   \
    } while (0)

static hid_t made(hid_t id, const char *what) {
    if (id < 0) FAIL("%s fails", what);
    return id;
}
#define MADE(call) made(call, #call)

static int value(int dataset, hsize_t row, hsize_t column) { return (int)(mixed(dataset, row, column) % 1000000); }

/* The way of writing a dataset; its name tells it. */
struct dataset {
    const char *name;
    hsize_t rows, chunk[2];
    int is_collective, is_filtered, by_columns;
};

static const struct dataset datasets[] = {
    {"contiguous", ROWS, {0, 0}, 1, 0, 0},
    {"columns", ROWS, {0, 0}, 1, 0, 1},
    {"columns_alone", ROWS, {0, 0}, 0, 0, 1},
    {"chunked", ROWS, {7, 11}, 1, 0, 0},
    {"chunked_alone", ROWS, {7, 11}, 0, 0, 1},
    {"filtered", ROWS, {16, 20}, 1, 1, 0},
    {"grown", GROWN, {16, 20}, 1, 0, 1},
};
enum { DATASETS = sizeof datasets / sizeof *datasets };

static hid_t opened_by_all(const char *path, unsigned flags) {
    hid_t access = MADE(H5Pcreate(H5P_FILE_ACCESS)), file;
    void *handle;
    DONE(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL));
    file = MADE(flags & H5F_ACC_TRUNC ? H5Fcreate(path, flags, H5P_DEFAULT, access) : H5Fopen(path, flags, access));
    DONE(H5Fget_vfd_handle(file, access, &handle));
    EQUAL(is_cached(*(MPI_File *)handle), is_expected());
    DONE(H5Pclose(access));
    return file;
}

static hid_t transfer(int is_collective) {
    hid_t list = MADE(H5Pcreate(H5P_DATASET_XFER));
    DONE(H5Pset_dxpl_mpio(list, is_collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT));
    return list;
}

/* Contiguous rows, none for the last of several ranks; or columns, dealt to the ranks round robin. */
static hsize_t select_own(const struct dataset *set, hid_t space, hsize_t start[2], hsize_t step[2], hsize_t count[2]) {
    hsize_t sharers = ranks == 1 ? 1 : ranks - 1, from = set->rows * rank / sharers, to = set->rows * (rank + 1) / sharers;
    if (from > set->rows) from = set->rows;
    if (to > set->rows) to = set->rows;
    start[0] = set->by_columns ? 0 : from, start[1] = set->by_columns ? rank : 0;
    step[0] = 1, step[1] = set->by_columns ? ranks : 1;
    count[0] = set->by_columns ? set->rows : to - from;
    count[1] = set->by_columns ? (COLUMNS - rank + ranks - 1) / ranks : COLUMNS;
    if (count[0] * count[1] == 0) DONE(H5Sselect_none(space));
    else DONE(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, step, count, NULL));
    return count[0] * count[1];
}

static void write_dataset(hid_t file, int which) {
    const struct dataset *set = &datasets[which];
    hsize_t sizes[2] = {set->rows, COLUMNS}, limits[2] = {H5S_UNLIMITED, COLUMNS}, first[2] = {ROWS, COLUMNS};
    hsize_t start[2], step[2], count[2], number, at;
    hid_t making = MADE(H5Pcreate(H5P_DATASET_CREATE)), id, memory, list = transfer(set->is_collective);
    int is_grown = set->rows > ROWS;
    hid_t space = MADE(H5Screate_simple(2, is_grown ? first : sizes, is_grown ? limits : sizes));
    DONE(H5Pset_obj_track_times(making, 0));
    if (set->chunk[0]) DONE(H5Pset_chunk(making, 2, set->chunk));
    if (set->is_filtered) DONE(H5Pset_deflate(making, 5));
    id = MADE(H5Dcreate2(file, set->name, H5T_STD_I32LE, space, H5P_DEFAULT, making, H5P_DEFAULT));
    if (is_grown) {
        DONE(H5Dset_extent(id, sizes));
        DONE(H5Sclose(space));
        space = MADE(H5Dget_space(id));
    }
    number = select_own(set, space, start, step, count);
    int *values = malloc((number + 1) * sizeof *values);
    for (at = 0; at < number; ++at)
        values[at] = value(which, start[0] + at / count[1] * step[0], start[1] + at % count[1] * step[1]);
    memory = MADE(H5Screate_simple(1, &number, NULL));
    DONE(H5Dwrite(id, H5T_NATIVE_INT, memory, space, list, values));
    free(values);
    DONE(H5Sclose(memory));
    DONE(H5Sclose(space));
    DONE(H5Pclose(list));
    DONE(H5Pclose(making));
    DONE(H5Dclose(id));
}

/* Single elements, dealt to the ranks round robin. */
static void write_points(hid_t file) {
    hsize_t size = 10 * POINTS * ranks, number = POINTS, places[POINTS];
    hid_t space = MADE(H5Screate_simple(1, &size, NULL)), memory = MADE(H5Screate_simple(1, &number, NULL)), id, list = transfer(1);
    hid_t making = MADE(H5Pcreate(H5P_DATASET_CREATE));
    int values[POINTS], at;
    DONE(H5Pset_obj_track_times(making, 0));
    DONE(H5Pset_fill_value(making, H5T_NATIVE_INT, &(int){-1}));
    id = MADE(H5Dcreate2(file, "points", H5T_STD_I32LE, space, H5P_DEFAULT, making, H5P_DEFAULT));
    for (at = 0; at < POINTS; ++at) {
        places[at] = 10 * (hsize_t)(at * ranks + rank) + mixed(3, rank, at) % 10;
        values[at] = value(100, places[at], 0);
    }
    DONE(H5Sselect_elements(space, H5S_SELECT_SET, POINTS, places));
    DONE(H5Dwrite(id, H5T_NATIVE_INT, memory, space, list, values));
    DONE(H5Sclose(space));
    DONE(H5Sclose(memory));
    DONE(H5Pclose(list));
    DONE(H5Pclose(making));
    DONE(H5Dclose(id));
}

static void write_attribute(hid_t of, const char *name, int number) {
    hsize_t size = 3;
    int values[3] = {number, number + 1, number + 2};
    hid_t space = MADE(H5Screate_simple(1, &size, NULL)), id;
    id = MADE(H5Acreate2(of, name, H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT));
    DONE(H5Awrite(id, H5T_NATIVE_INT, values));
    DONE(H5Aclose(id));
    DONE(H5Sclose(space));
}

static void write_file(const char *path) {
    hid_t file = opened_by_all(path, H5F_ACC_TRUNC), group;
    int which;
    for (which = 0; which + 1 < DATASETS; ++which) write_dataset(file, which);
    DONE(H5Fflush(file, H5F_SCOPE_GLOBAL));
    write_attribute(file, "first", 1);
    DONE(H5Fclose(file));
    file = opened_by_all(path, H5F_ACC_RDWR);
    group = MADE(H5Gcreate2(file, "later", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    write_attribute(group, "second", 20);
    write_points(group);
    write_dataset(group, DATASETS - 1);
    DONE(H5Gclose(group));
    DONE(H5Fclose(file));
}

/* Reads a whole dataset on each rank, collectively or not. */
static void check_dataset(hid_t file, int which, int is_collective) {
    const struct dataset *set = &datasets[which];
    char path[64];
    hsize_t sizes[2], at;
    snprintf(path, sizeof path, "%s%s", which == DATASETS - 1 ? "later/" : "", set->name);
    hid_t id = MADE(H5Dopen2(file, path, H5P_DEFAULT)), space = MADE(H5Dget_space(id)), list = transfer(is_collective);
    EQUAL(H5Sget_simple_extent_dims(space, sizes, NULL), 2);
    EQUAL(sizes[0], set->rows);
    int *values = malloc(sizes[0] * sizes[1] * sizeof *values);
    DONE(H5Dread(id, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, list, values));
    for (at = 0; at < sizes[0] * sizes[1]; ++at)
        if (values[at] != value(which, at / COLUMNS, at % COLUMNS)) FAIL("%s: element %llu is %d", path, (unsigned long long)at, values[at]);
    free(values);
    DONE(H5Pclose(list));
    DONE(H5Sclose(space));
    DONE(H5Dclose(id));
}

static void check_points(hid_t file) {
    hid_t id = MADE(H5Dopen2(file, "later/points", H5P_DEFAULT)), space = MADE(H5Dget_space(id));
    hsize_t size, at, written = 0;
    EQUAL(H5Sget_simple_extent_dims(space, &size, NULL), 1);
    int *values = malloc(size * sizeof *values);
    DONE(H5Dread(id, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    for (at = 0; at < size; ++at) {
        if (values[at] == -1) continue;
        EQUAL(values[at], value(100, at, 0));
        ++written;
    }
    EQUAL(written, size / 10);
    free(values);
    DONE(H5Sclose(space));
    DONE(H5Dclose(id));
}

static void check_attribute(hid_t file, const char *of, const char *name, int number) {
    int values[3];
    hid_t id = MADE(H5Aopen_by_name(file, of, name, H5P_DEFAULT, H5P_DEFAULT));
    DONE(H5Aread(id, H5T_NATIVE_INT, values));
    EQUAL(values[0], number);
    EQUAL(values[2], number + 2);
    DONE(H5Aclose(id));
}

static void read_file(const char *path) {
    hid_t file = opened_by_all(path, H5F_ACC_RDONLY);
    for (int which = 0; which < DATASETS; ++which) check_dataset(file, which, which % 2 == 0);
    check_points(file);
    check_attribute(file, ".", "first", 1);
    check_attribute(file, "later", "second", 20);
    DONE(H5Fclose(file));
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    if (argc != 3) FAIL("usage: hdf5 write|read FILE");
    (strcmp(argv[1], "write") == 0 ? write_file : read_file)(argv[2]);
    finish();
    return 0;
}
