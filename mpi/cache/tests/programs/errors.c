/* R7: errors, statuses and error handlers are MPI's. Prints them: the output is the same with and without the
 * library. */
#include "common.h"

static int called;

static void on_error(MPI_Win *win, int *code, ...) {
    (void)win, (void)code;
    ++called;
}

static void show(const char *what, int code) {
    int class = -1;
    MPI_Error_class(code, &class);
    if (rank == 0) printf("%s: class %d, handler called %d\n", what, class, called);
    called = 0;
}

int main(int argc, char **argv) {
    long *memory, value = 0, more[4];
    MPI_Win win;
    MPI_Errhandler handler;
    MPI_Request request;
    MPI_Status status;
    int flag;
    start(&argc, &argv);
    int other = 1 - rank;
    win = make_window(&memory, 16, argv[1]);
    MPI_Win_create_errhandler(on_error, &handler);
    MPI_Win_set_errhandler(win, handler);
    MPI_Errhandler_free(&handler);
    show("get before any epoch", MPI_Get(&value, 1, MPI_LONG, other, 0, 1, MPI_LONG, win));
    show("flush before any epoch", MPI_Win_flush(other, win));
    show("unlock of nothing", MPI_Win_unlock(other, win));
    show("lock", MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win));
    show("get", MPI_Get(&value, 1, MPI_LONG, other, 0, 1, MPI_LONG, win));
    show("flush", MPI_Win_flush(other, win));
    show("second get", MPI_Get(&value, 1, MPI_LONG, other, 0, 1, MPI_LONG, win));
    show("second flush", MPI_Win_flush(other, win));
    show("get of no rank", MPI_Get(&value, 1, MPI_LONG, 99, 0, 1, MPI_LONG, win));
    show("flush of no rank", MPI_Win_flush(99, win));
    show("get of a negative count", MPI_Get(&value, -1, MPI_LONG, other, 0, -1, MPI_LONG, win));
    show("get of nobody", MPI_Get(&value, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win));
    show("get of no type", MPI_Get(&value, 1, MPI_DATATYPE_NULL, other, 0, 1, MPI_LONG, win));
    show("rget", MPI_Rget(more, 2, MPI_LONG, other, 0, 2, MPI_LONG, win, &request));
    show("wait", MPI_Wait(&request, &status));
    show("rget of a hit", MPI_Rget(more, 2, MPI_LONG, other, 0, 2, MPI_LONG, win, &request));
    for (flag = 0; !flag;) MPI_Test(&request, &flag, &status);
    if (rank == 0) printf("null %d\n", request == MPI_REQUEST_NULL);
    show("unlock", MPI_Win_unlock(other, win));
    show("get after the epoch", MPI_Get(&value, 1, MPI_LONG, other, 0, 1, MPI_LONG, win));
#ifndef OPEN_MPI
    /* Open MPI accesses the released lock, and may crash. */
    show("flush after the epoch", MPI_Win_flush(other, win));
#endif
    MPI_Barrier(MPI_COMM_WORLD);
    show("fence", MPI_Win_fence(0, win));
    show("get between fences", MPI_Get(&value, 1, MPI_LONG, other, 0, 1, MPI_LONG, win));
    show("second fence", MPI_Win_fence(0, win));
    show("lock after a fence", MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win));
    show("get with a lock", MPI_Get(&value, 1, MPI_LONG, other, 0, 1, MPI_LONG, win));
    show("unlock of that", MPI_Win_unlock(other, win));
    show("get after the fence's epoch", MPI_Get(&value, 1, MPI_LONG, other, 0, 1, MPI_LONG, win));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
