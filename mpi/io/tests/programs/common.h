/* Shared by the test programs. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

#define FAIL(...)                                                              \
    do {                                                                       \
        fprintf(stderr, "%s:%d: rank %d: ", __FILE__, __LINE__, rank);         \
        fprintf(stderr, __VA_ARGS__);                                          \
        fputc('\n', stderr);                                                   \
        MPI_Abort(MPI_COMM_WORLD, 3);                                          \
        abort();                                                               \
    } while (0)

#define CHECK(condition)                           \
    do {                                           \
        if (!(condition)) FAIL("%s", #condition);  \
    } while (0)

static inline void expect_equal(int line, const char *one, long long its, const char *other, long long others) {
    if (its == others) return;
    fprintf(stderr, "line %d: rank %d: %s is %lld, %s is %lld\n", line, rank, one, its, other, others);
    MPI_Abort(MPI_COMM_WORLD, 3);
    abort();
}

#define EQUAL(one, other) expect_equal(__LINE__, #one, (long long)(one), #other, (long long)(other))

/* A call that must succeed. */
#define OK(call) EQUAL(call, MPI_SUCCESS)

static inline void start(int *argc, char ***argv) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

/* Ends MPI after all ranks have arrived. */
static inline void finish(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) puts("done");
    MPI_Finalize();
}

/* A pseudo-random number, a function of the three arguments. */
static inline uint64_t mixed(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t x = a * 0x9e3779b97f4a7c15u ^ (b + 0x7f4a7c15u) * 0xbf58476d1ce4e5b9u ^ (c + 1) * 0x94d049bb133111ebu;
    x ^= x >> 31, x *= 0xbf58476d1ce4e5b9u, x ^= x >> 27, x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Whether the library serves this file. */
static inline int is_cached(MPI_File file) {
    MPI_Info info;
    char value[MPI_MAX_INFO_VAL + 1];
    int found;
    OK(MPI_File_get_info(file, &info));
    MPI_Info_get(info, "vgasnet_cache", MPI_MAX_INFO_VAL, value, &found);
    MPI_Info_free(&info);
    return found && strcmp(value, "enable") == 0;
}

/* Whether the test expects files to be cached. */
static inline int is_expected(void) { return getenv("EXPECT_CACHED") != NULL; }

/* Opens a file, emptied if the mode has MPI_MODE_CREATE. */
static inline MPI_File opened(const char *path, int mode) {
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file));
    if (mode & MPI_MODE_CREATE) OK(MPI_File_set_size(file, 0));
    EQUAL(is_cached(file), is_expected());
    return file;
}

/* Makes all ranks' writes visible to all ranks. */
static inline void settle(MPI_File file) {
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_sync(file));
}
