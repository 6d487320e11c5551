/* The words of mode told: a hidden window with many numbers on each rank, one for each window of the program. A word
 * is raised when the rank's memory of the window has been written. Windows of the same processes share the hidden
 * window, since communicators are scarce. */
#include "layer.h"
#include <stdlib.h>
#include <string.h>

struct words {
    MPI_Win win;
    MPI_Comm comm;
    uint64_t *own;
};

DEFINE_DUP_QUIETLY

/* Collective over the communicator. Errors must not reach the program's error handlers. All ranks create the words,
 * or none: writes by a rank without words would go unnoticed. */
int vgasnet_mpi_cache_words_create(uint64_t comm, int count, void **place) {
    struct words made, *words = malloc(sizeof *words);
    int error = dup_quietly(TO_HANDLE(MPI_Comm, comm), &made.comm);
    if (error) {
        free(words);
        return error;
    }
    error = NEXT(Win_allocate)(count * sizeof *made.own, sizeof *made.own, MPI_INFO_NULL, made.comm, &made.own, &made.win);
    if (!error) error = NEXT(Win_set_errhandler)(made.win, MPI_ERRORS_RETURN);
    if (!error) memset(made.own, 0, count * sizeof *made.own);
    if (!error) error = NEXT(Win_lock_all)(0, made.win);
    /* A word must not be read before its rank has set it. */
    int is_made = !error && words != NULL;
    int refused = NEXT(Allreduce)(MPI_IN_PLACE, &is_made, 1, MPI_INT, MPI_MIN, made.comm);
    if (refused || !is_made) {
        /* A window that some ranks lack cannot be freed. */
        NEXT(Comm_free)(&made.comm);
        free(words);
        return error ? error : MPI_ERR_OTHER;
    }
    *words = made;
    *place = words;
    return MPI_SUCCESS;
}

/* Collective. */
int vgasnet_mpi_cache_words_free(void *place) {
    struct words *words = place;
    int error = NEXT(Win_unlock_all)(words->win);
    if (error == MPI_SUCCESS) error = NEXT(Win_free)(&words->win);
    if (error == MPI_SUCCESS) error = NEXT(Comm_free)(&words->comm);
    free(words);
    return error;
}

/* Whether a communicator has the same processes in the same order. */
int vgasnet_mpi_cache_words_are_of(void *place, uint64_t comm) {
    struct words *words = place;
    int result;
    if (NEXT(Comm_compare)(words->comm, TO_HANDLE(MPI_Comm, comm), &result)) return 0;
    return result == MPI_IDENT || result == MPI_CONGRUENT;
}

/* MPI defines the result of a read concurrent with an addition only if the read is atomic as well. */
int vgasnet_mpi_cache_words_read(void *place, int at, int target, uint64_t *word) {
    struct words *words = place;
    uint64_t nothing = 0;
    int error = NEXT(Fetch_and_op)(&nothing, word, MPI_UINT64_T, target, at, MPI_NO_OP, words->win);
    return error ? error : NEXT(Win_flush)(target, words->win);
}

/* A word of this rank, without a message. */
uint64_t vgasnet_mpi_cache_words_own(void *place, int at) {
    struct words *words = place;
    NEXT(Win_sync)(words->win);
    return __atomic_load_n(&words->own[at], __ATOMIC_ACQUIRE);
}

int vgasnet_mpi_cache_words_raise(void *place, int at, int target) {
    struct words *words = place;
    uint64_t one = 1;
    int error = NEXT(Accumulate)(&one, 1, MPI_UINT64_T, target, at, 1, MPI_UINT64_T, MPI_SUM, words->win);
    return error ? error : NEXT(Win_flush)(target, words->win);
}
