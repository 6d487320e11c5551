/* Collectives in the form of GASNet's clients. */
#include "client.h"

#include <gasnet_coll.h>

enum { BOTH = GASNET_COLL_LOCAL | GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_ALLSYNC };

static void add(void *results, size_t result_count, const void *left_operands, size_t left_count, const void *right_operands,
                size_t elem_size, int flags, int arg) {
    const uint64_t *left = (const uint64_t *)left_operands, *right = (const uint64_t *)right_operands;
    size_t i;
    CHECK(elem_size == sizeof(uint64_t) && left_count == result_count && flags == 0 && arg == 7);
    for (i = 0; i < result_count; ++i) ((uint64_t *)results)[i] = left[i] + right[i];
}

/* Barriers of a team in one call, and their names. */
static void check_barrier(gasnet_team_handle_t team, int named) {
    int id = 77;
    CHECK(gasnet_coll_barrier(team, named, 0) == GASNET_OK);
    CHECK(gasnet_coll_barrier_result(team, &id) == 0 && id == named);
    CHECK(gasnet_coll_barrier(team, 5, GASNET_BARRIERFLAG_UNNAMED) == GASNET_OK);
    id = 77;
    CHECK(gasnet_coll_barrier_result(team, &id) != 0 && id == 77);
    CHECK(gasnet_coll_barrier(team, 0, GASNET_BARRIERFLAG_MISMATCH) == GASNET_ERR_BARRIER_MISMATCH);
}

int main(int argc, char **argv) {
    gasnet_coll_fn_entry_t functions[] = {{add, 0}};
    gasnet_team_handle_t half;
    gasnet_coll_handle_t handle;
    gasnet_node_t i, root;
    uint64_t mine, *all, *theirs;
    start(&argc, &argv, NULL, 0);
    gasnet_coll_init(NULL, 0, functions, 1, 0);
    all = (uint64_t *)calloc(nodes, sizeof *all);
    theirs = (uint64_t *)calloc(nodes, sizeof *theirs);
    CHECK(all != NULL && theirs != NULL);
    for (root = 0; root < nodes; ++root) {
        mine = 0;
        theirs[0] = 1000 + me;
        gasnet_coll_broadcast(GASNET_TEAM_ALL, &mine, root, &theirs[0], sizeof mine, BOTH);
        CHECK(mine == 1000 + root);
        mine = me + 1;
        gasnet_coll_reduce(GASNET_TEAM_ALL, root, &all[0], &mine, 0, 0, sizeof mine, 1, 0, 7, BOTH);
        CHECK(me != root || all[0] == (uint64_t)nodes * (nodes + 1) / 2);
        mine = me;
        gasnet_coll_gather(GASNET_TEAM_ALL, root, all, &mine, sizeof mine, BOTH);
        for (i = 0; me == root && i < nodes; ++i) CHECK(all[i] == i);
        gasnet_coll_scatter(GASNET_TEAM_ALL, &mine, root, all, sizeof mine, BOTH);
        CHECK(mine == me);
    }
    handle = gasnet_coll_gather_all_nb(GASNET_TEAM_ALL, all, &mine, sizeof mine, BOTH);
    while (gasnet_coll_try_sync(handle) == GASNET_ERR_NOT_READY) gasnet_AMPoll();
    for (i = 0; i < nodes; ++i) CHECK(all[i] == i);
    for (i = 0; i < nodes; ++i) theirs[i] = me * 100 + i;
    gasnet_coll_exchange(GASNET_TEAM_ALL, all, theirs, sizeof mine, BOTH);
    for (i = 0; i < nodes; ++i) CHECK(all[i] == i * 100 + me);

    half = gasnet_coll_team_split(GASNET_TEAM_ALL, me % 2, me, NULL);
    CHECK(gasnet_coll_team_size(half) == (nodes + 1 - me % 2) / 2);
    gasnet_coll_broadcast(half, &mine, 0, &mine, sizeof mine, BOTH);
    CHECK(mine == me % 2);
    gasnet_coll_barrier_notify(half, 3, 0);
    CHECK(gasnet_coll_barrier_wait(half, 3, 0) == GASNET_OK);
    check_barrier(half, (int)(me % 2));
    check_barrier(GASNET_TEAM_ALL, -1);
    gasnet_coll_dumpTuningState(NULL, half);
    gasnet_coll_dumpProfile(NULL, GASNET_TEAM_ALL);
    return finish();
}
