/* A file of PnetCDF: variables of fixed size and with records, collective and independent calls, strides, requests,
 * a definition that moves existing bytes. Another number of ranks and netCDF's tools read it. pnetcdf write|read
 * FILE */
#include "common.h"
#include <pnetcdf.h>

enum { ROWS = 61, COLUMNS = 47, RECORDS = 5 };

#undef OK
#define OK(call)                                                                                \
    do {                                                                                        \
        int code_ = (call);                                                                     \
        if (code_ != NC_NOERR) FAIL("%s: %s", #call, ncmpi_strerror(code_));                    \
    } while (0)

static int value(int variable, int record, int row, int column) {
    return (int)(mixed(variable, record, row * COLUMNS + column) % 1000000);
}

/* The rows of a rank: the last has none if there are others. */
static int first_row(int of) { return ranks == 1 ? of * ROWS : of >= ranks - 1 ? ROWS : of * ROWS / (ranks - 1); }

struct file {
    int id, records, rows, columns, fixed, strided, kept, added;
};

static void define(struct file *file, const char *path) {
    int dims[3];
    OK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file->id));
    OK(ncmpi_def_dim(file->id, "record", NC_UNLIMITED, &file->records));
    OK(ncmpi_def_dim(file->id, "row", ROWS, &file->rows));
    OK(ncmpi_def_dim(file->id, "column", COLUMNS, &file->columns));
    dims[0] = file->records, dims[1] = file->rows, dims[2] = file->columns;
    OK(ncmpi_def_var(file->id, "fixed", NC_DOUBLE, 2, dims + 1, &file->fixed));
    OK(ncmpi_def_var(file->id, "strided", NC_INT, 2, dims + 1, &file->strided));
    OK(ncmpi_def_var(file->id, "kept", NC_FLOAT, 3, dims, &file->kept));
    OK(ncmpi_put_att_text(file->id, NC_GLOBAL, "title", 10, "one of two"));
    OK(ncmpi_put_att_int(file->id, file->fixed, "of_ranks", NC_INT, 1, &(int){7}));
    OK(ncmpi_enddef(file->id));
}

/* Rows of all ranks, whole. */
static void put_fixed(const struct file *file) {
    MPI_Offset start[2] = {first_row(rank), 0}, count[2] = {first_row(rank + 1) - start[0], COLUMNS};
    double *values = malloc((count[0] * COLUMNS + 1) * sizeof *values);
    for (int row = 0; row < count[0]; ++row)
        for (int column = 0; column < COLUMNS; ++column) values[row * COLUMNS + column] = value(0, 0, start[0] + row, column);
    OK(ncmpi_put_vara_double_all(file->id, file->fixed, start, count, values));
    free(values);
}

/* Columns, dealt to the ranks round robin, one after another by independent calls; all ranks see this one's writes
 * at once. */
static void put_strided(const struct file *file) {
    MPI_Offset stride[2] = {1, ranks}, count[2] = {1, (COLUMNS - rank + ranks - 1) / ranks};
    int values[COLUMNS];
    OK(ncmpi_begin_indep_data(file->id));
    for (int row = rank; row < ROWS + rank; ++row) {
        MPI_Offset start[2] = {row % ROWS, rank};
        for (int at = 0; at < count[1]; ++at) values[at] = value(1, 0, start[0], rank + at * ranks);
        if (count[1] > 0) OK(ncmpi_put_vars_int(file->id, file->strided, start, count, stride, values));
    }
    OK(ncmpi_end_indep_data(file->id));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Offset all[2] = {0, 0}, whole[2] = {ROWS, COLUMNS};
    int *read = malloc(ROWS * COLUMNS * sizeof *read);
    OK(ncmpi_get_vara_int_all(file->id, file->strided, all, whole, read));
    for (int at = 0; at < ROWS * COLUMNS; ++at) EQUAL(read[at], value(1, 0, at / COLUMNS, at % COLUMNS));
    free(read);
}

/* Records, in no order, as requests; ranks wait for several of them together. */
static void put_records(const struct file *file, int variable, int id) {
    static float values[RECORDS][ROWS * COLUMNS];
    int requests[RECORDS], statuses[RECORDS];
    for (int at = 0; at < RECORDS; ++at) {
        int record = (at * 3 + variable) % RECORDS;
        MPI_Offset start[3] = {record, first_row(rank), 0}, count[3] = {1, first_row(rank + 1) - start[1], COLUMNS};
        for (int row = 0; row < count[1]; ++row)
            for (int column = 0; column < COLUMNS; ++column)
                values[at][row * COLUMNS + column] = value(variable, record, start[1] + row, column);
        OK(ncmpi_iput_vara_float(file->id, id, start, count, values[at], &requests[at]));
    }
    OK(ncmpi_wait_all(file->id, RECORDS, requests, statuses));
    for (int at = 0; at < RECORDS; ++at) OK(statuses[at]);
}

static void write_file(const char *path) {
    struct file file;
    int dims[3];
    define(&file, path);
    put_fixed(&file);
    put_strided(&file);
    put_records(&file, 2, file.kept);
    OK(ncmpi_sync(file.id));
    /* The new definition goes before the records, which move. */
    OK(ncmpi_redef(file.id));
    dims[0] = file.records, dims[1] = file.rows, dims[2] = file.columns;
    OK(ncmpi_def_var(file.id, "added", NC_FLOAT, 3, dims, &file.added));
    OK(ncmpi_put_att_text(file.id, NC_GLOBAL, "history", 2000, memset(malloc(2000), 'x', 2000)));
    OK(ncmpi_enddef(file.id));
    put_records(&file, 3, file.added);
    OK(ncmpi_close(file.id));
}

static void check_records(int id, const char *name, int variable) {
    static float values[ROWS * COLUMNS];
    int its;
    OK(ncmpi_inq_varid(id, name, &its));
    for (int record = 0; record < RECORDS; ++record) {
        MPI_Offset start[3] = {record, 0, rank % COLUMNS}, count[3] = {1, ROWS, COLUMNS - start[2]};
        OK(ncmpi_get_vara_float_all(id, its, start, count, values));
        for (int row = 0; row < ROWS; ++row)
            for (int column = 0; column < count[2]; ++column)
                EQUAL(values[row * count[2] + column], value(variable, record, row, start[2] + column));
    }
}

static void read_file(const char *path) {
    int id, fixed, strided, number;
    MPI_Offset length;
    double row_values[COLUMNS];
    OK(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &id));
    OK(ncmpi_inq_varid(id, "fixed", &fixed));
    OK(ncmpi_inq_varid(id, "strided", &strided));
    OK(ncmpi_inq_attlen(id, NC_GLOBAL, "history", &length));
    EQUAL(length, 2000);
    OK(ncmpi_inq_dimlen(id, 0, &length));
    EQUAL(length, RECORDS);
    check_records(id, "kept", 2);
    check_records(id, "added", 3);
    OK(ncmpi_begin_indep_data(id));
    for (int row = rank; row < ROWS; row += ranks) {
        MPI_Offset start[2] = {row, 0}, count[2] = {1, COLUMNS};
        OK(ncmpi_get_vara_double(id, fixed, start, count, row_values));
        for (int column = 0; column < COLUMNS; ++column) {
            MPI_Offset place[2] = {row, column};
            EQUAL(row_values[column], value(0, 0, row, column));
            OK(ncmpi_get_var1_int(id, strided, place, &number));
            EQUAL(number, value(1, 0, row, column));
        }
    }
    OK(ncmpi_end_indep_data(id));
    OK(ncmpi_close(id));
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    if (argc != 3) FAIL("usage: pnetcdf write|read FILE");
    (strcmp(argv[1], "write") == 0 ? write_file : read_file)(argv[2]);
    finish();
    return 0;
}
