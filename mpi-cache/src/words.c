/* The words of mode told: a hidden window of many numbers a rank, one for each window of the program, raised when the memory of the rank's
 * window has been written. Windows of the same processes share it, since communicators are few. */
#include "layer.h"
#include <stdlib.h>
#include <string.h>

struct words {
    MPI_Win win;
    MPI_Comm comm;
};

/* Collective over the communicator. Errors of the words are not for the program's error handlers. */
int vgasnet_mpi_cache_words_create(uint64_t comm, int count, void **place) {
    struct words *words = calloc(1, sizeof *words);
    uint64_t *own;
    int error;
    if (words == NULL) return MPI_ERR_NO_MEM;
    if ((error = NEXT(Comm_dup)(TO_HANDLE(MPI_Comm, comm), &words->comm))) goto failed;
    if ((error = NEXT(Comm_set_errhandler)(words->comm, MPI_ERRORS_RETURN))) goto failed;
    if ((error = NEXT(Win_allocate)(count * sizeof *own, sizeof *own, MPI_INFO_NULL, words->comm, &own, &words->win))) goto failed;
    if ((error = NEXT(Win_set_errhandler)(words->win, MPI_ERRORS_RETURN))) goto failed;
    memset(own, 0, count * sizeof *own);
    if ((error = NEXT(Win_lock_all)(0, words->win))) goto failed;
    /* Nobody reads a word that its rank has not set. */
    if ((error = NEXT(Allreduce)(MPI_IN_PLACE, &(int){0}, 1, MPI_INT, MPI_BOR, words->comm))) goto failed;
    *place = words;
    return MPI_SUCCESS;
failed:
    free(words);
    return error;
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

/* MPI says what a read beside an addition gives only if the read is atomic as well. */
int vgasnet_mpi_cache_words_read(void *place, int at, int target, uint64_t *word) {
    struct words *words = place;
    uint64_t nothing = 0;
    int error = NEXT(Fetch_and_op)(&nothing, word, MPI_UINT64_T, target, at, MPI_NO_OP, words->win);
    return error ? error : NEXT(Win_flush)(target, words->win);
}

int vgasnet_mpi_cache_words_raise(void *place, int at, int target) {
    struct words *words = place;
    uint64_t one = 1;
    int error = NEXT(Accumulate)(&one, 1, MPI_UINT64_T, target, at, 1, MPI_UINT64_T, MPI_SUM, words->win);
    return error ? error : NEXT(Win_flush)(target, words->win);
}
