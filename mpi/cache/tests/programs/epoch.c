/* R4: in mode checked all entries of a target die when a get of it is complete, whichever call completes it. */
#include "common.h"

static long *memory;
static MPI_Win win;
static int other;

/* The current value. */
static long expected(int at, long changes) {
    return 1000L * other + at + 100 * changes;
}

static long changes;

/* From now on the old bytes are wrong. */
static void change_all(void) {
    change(memory, 32, 100);
    ++changes;
}

static void get(long *to, int at) {
    MPI_Get(to, 1, MPI_LONG, other, at, 1, MPI_LONG, win);
}

/* Two gets of an epoch share a transfer, and the next epoch has another. */
static void passive(int how) {
    long one = -1, two = -1;
    tool_gets = 0;
    if (how == 2 || how == 3) MPI_Win_lock_all(0, win); else MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win);
    get(&one, how);
    get(&two, how);
    EQUAL(tool_gets, 1);
    switch (how) {
    case 0: MPI_Win_flush(other, win); break;
    case 1: MPI_Win_flush_local(other, win); break;
    case 2: MPI_Win_flush_all(win); break;
    case 3: MPI_Win_flush_local_all(win); break;
    case 4: MPI_Win_unlock(other, win); break;
    }
    EQUAL(one, expected(how, changes));
    EQUAL(two, one);
    change_all();
    if (how == 4) MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win);
    get(&one, how);
    if (how == 2 || how == 3) MPI_Win_unlock_all(win); else MPI_Win_unlock(other, win);
    EQUAL(one, expected(how, changes));
    EQUAL(tool_gets, 2);
    change_all();
    MPI_Win_lock_all(0, win);
    get(&one, how);
    MPI_Win_unlock_all(win);
    EQUAL(one, expected(how, changes));
    change_all();
}

static void by_request(void) {
    long one = -1, two = -1;
    MPI_Request request;
    MPI_Win_lock_all(0, win);
    MPI_Rget(&one, 1, MPI_LONG, other, 8, 1, MPI_LONG, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EQUAL(one, expected(8, changes));
    change_all();
    get(&two, 8);
    MPI_Win_flush(other, win);
    EQUAL(two, expected(8, changes));
    /* A get in flight does not serve gets after a completion of the target. */
    get(&one, 9);
    MPI_Rget(&two, 1, MPI_LONG, other, 10, 1, MPI_LONG, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    change_all();
    get(&two, 9);
    MPI_Win_unlock_all(win);
    EQUAL(two, expected(9, changes));
    change_all();
}

static void fences(void) {
    long one = -1, two = -1;
    MPI_Win_fence(0, win);
    tool_gets = 0;
    get(&one, 11);
    get(&two, 11);
    EQUAL(tool_gets, 1);
    MPI_Win_fence(0, win);
    EQUAL(one, expected(11, changes));
    EQUAL(two, one);
    change_all();
    get(&one, 11);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    EQUAL(one, expected(11, changes));
    change_all();
}

static void groups(void) {
    MPI_Group world, peer;
    long one = -1, two = -1;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &other, &peer);
    for (int round = 0; round < 2; ++round) {
        tool_gets = 0;
        MPI_Win_post(peer, 0, win);
        MPI_Win_start(peer, 0, win);
        get(&one, 12);
        get(&two, 12);
        EQUAL(tool_gets, 1);
        MPI_Win_complete(win);
        MPI_Win_wait(win);
        EQUAL(one, expected(12, changes));
        EQUAL(two, one);
        change_all();
    }
    MPI_Group_free(&peer);
    MPI_Group_free(&world);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    other = 1 - rank;
    win = make_window(&memory, 32, argv[1]);
    for (int how = 0; how < 5; ++how) passive(how);
    by_request();
    fences();
    groups();
    MPI_Win_free(&win);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
