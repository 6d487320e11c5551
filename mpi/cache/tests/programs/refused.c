/* R7: if MPI refuses the bytes of a get that joined another one in vain, the call that completes it reports the
 * error, once. */
#include "common.h"

enum { LONGS = 64 };

static MPI_Win win;
static int other, fresh;

/* The second get joins the first, and the third one also writes the first's buffer: so the library itself asks for
 * the bytes of the second. */
static void join_in_vain(void) {
    static long first, second;
    tool_refuses = 1;
    CHECK(MPI_Get(&first, 1, MPI_LONG, other, fresh, 1, MPI_LONG, win) == MPI_SUCCESS);
    CHECK(MPI_Get(&second, 1, MPI_LONG, other, fresh, 1, MPI_LONG, win) == MPI_SUCCESS);
    CHECK(MPI_Get(&first, 1, MPI_LONG, other, fresh + 1, 1, MPI_LONG, win) == MPI_SUCCESS);
    tool_refuses = 0;
    fresh += 2;
}

static void expect_refused(int code) {
    int class = MPI_SUCCESS;
    CHECK(MPI_Error_class(code, &class) == MPI_SUCCESS);
    EQUAL(class, MPI_ERR_OTHER);
}

int main(int argc, char **argv) {
    long *memory, value;
    MPI_Group all, others;
    start(&argc, &argv);
    other = 1 - rank;
    win = make_window(&memory, LONGS, argv[1]);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, win);
    join_in_vain();
    expect_refused(MPI_Win_flush(other, win));
    CHECK(MPI_Win_flush(other, win) == MPI_SUCCESS);
    join_in_vain();
    expect_refused(MPI_Win_flush_local(other, win));
    join_in_vain();
    expect_refused(MPI_Win_flush_all(win));
    CHECK(MPI_Win_flush_all(win) == MPI_SUCCESS);
    join_in_vain();
    expect_refused(MPI_Win_flush_local_all(win));
    join_in_vain();
    expect_refused(MPI_Win_unlock_all(win));
    CHECK(MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win) == MPI_SUCCESS);
    join_in_vain();
    expect_refused(MPI_Win_unlock(other, win));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_fence(0, win);
    join_in_vain();
    expect_refused(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, &other, &others);
    MPI_Win_post(others, 0, win);
    MPI_Win_start(others, 0, win);
    join_in_vain();
    expect_refused(MPI_Win_complete(win));
    MPI_Win_wait(win);
    /* The epochs are over nevertheless, and new ones work. */
    MPI_Win_lock_all(0, win);
    CHECK(MPI_Get(&value, 1, MPI_LONG, other, fresh, 1, MPI_LONG, win) == MPI_SUCCESS);
    CHECK(MPI_Win_unlock_all(win) == MPI_SUCCESS);
    EQUAL(value, 1000L * other + fresh);
    MPI_Group_free(&all), MPI_Group_free(&others);
    MPI_Win_free(&win);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
