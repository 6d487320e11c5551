/* Shared by the test programs. Linked with tool.c, which counts the calls that reach MPI. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No rank, nor the null process. */
#define TOOL_NOBODY (-1000)

/* Defined by tool.c. */
extern int tool_gets, tool_rgets, tool_flushes, tool_allocates, tool_dups, tool_atoms, tool_refuses, tool_words, tool_refused_target;
extern int tool_parts, tool_holds, tool_instant_target;
extern long tool_get_ns, tool_part_ns, tool_word_ns;
extern void (*tool_on_allocated)(void);

static int rank, ranks;

#define CHECK(condition)                                                                              \
    do {                                                                                              \
        if (!(condition)) {                                                                           \
            fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, rank, #condition);            \
            MPI_Abort(MPI_COMM_WORLD, 3);                                                             \
            abort();                                                                                  \
        }                                                                                             \
    } while (0)

#define EQUAL(one, other)                                                                                        \
    do {                                                                                                         \
        long one_ = (long)(one), other_ = (long)(other);                                                         \
        if (one_ != other_) {                                                                                    \
            fprintf(stderr, "%s:%d: rank %d: %s is %ld, %s is %ld\n", __FILE__, __LINE__, rank, #one, one_,      \
                    #other, other_);                                                                             \
            MPI_Abort(MPI_COMM_WORLD, 3);                                                                        \
            abort();                                                                                             \
        }                                                                                                        \
    } while (0)

static inline void start(int *argc, char ***argv) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

/* A window of `longs` longs, with a long as its unit. Each long has its index and 1000 times its rank. */
static inline MPI_Win make_window(long **memory, int longs, const char *mode) {
    MPI_Win win;
    MPI_Info info = MPI_INFO_NULL;
    if (mode != NULL) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "vgasnet_cache", mode);
    }
    MPI_Win_allocate(longs * sizeof(long), sizeof(long), info, MPI_COMM_WORLD, memory, &win);
    for (int i = 0; i < longs; ++i) (*memory)[i] = 1000L * rank + i;
    if (mode != NULL) MPI_Info_free(&info);
    MPI_Barrier(MPI_COMM_WORLD);
    return win;
}

/* The owner changes its memory behind the cache's back: a reader of the old value has it from the cache. */
static inline void change(long *memory, int longs, long by) {
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < longs; ++i) memory[i] += by;
    MPI_Barrier(MPI_COMM_WORLD);
}
