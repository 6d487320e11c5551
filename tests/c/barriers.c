/* The barrier: ids, flags and tries, and puts seen after it.
 *   barriers [FILE]
 * FILE must not exist. The rank that creates it wants no shared memory, and the others do. */
#include <fcntl.h>
#include <unistd.h>

#include "check.h"

#define ANONYMOUS VGASNET_BARRIERFLAG_ANONYMOUS
#define MISMATCH VGASNET_BARRIERFLAG_MISMATCH

static vgasnet_node_t me, ranks;

static int pass(int id, int flags) {
    vgasnet_barrier_notify(id, flags);
    return vgasnet_barrier_wait(id, flags);
}

static int try_until_ready(int id, int flags) {
    int answer;
    vgasnet_barrier_notify(id, flags);
    do {
        answer = vgasnet_barrier_try(id, flags);
    } while (answer == VGASNET_ERR_NOT_READY);
    return answer;
}

static void names(int (*go)(int id, int flags)) {
    int last = me == ranks - 1, alone = ranks == 1;
    int differs = alone ? VGASNET_OK : VGASNET_ERR_BARRIER_MISMATCH;
    CHECK_EQ(go(7, 0), VGASNET_OK);
    CHECK_EQ(go(-1, 0), VGASNET_OK);
    CHECK_EQ(go((int)me, ANONYMOUS), VGASNET_OK);
    CHECK_EQ(go(last ? 8 : 9, 0), differs);
    CHECK_EQ(go(8, 0), VGASNET_OK);
    CHECK_EQ(go(8, last ? ANONYMOUS : 0), VGASNET_OK);
    CHECK_EQ(go(8, last ? 0 : ANONYMOUS), VGASNET_OK);
    CHECK_EQ(go(8, MISMATCH), VGASNET_ERR_BARRIER_MISMATCH);
    CHECK_EQ(go(8, last ? MISMATCH : 0), VGASNET_ERR_BARRIER_MISMATCH);
    CHECK_EQ(go(8, last ? MISMATCH | ANONYMOUS : ANONYMOUS), VGASNET_ERR_BARRIER_MISMATCH);
    CHECK_EQ(go(0, 0), VGASNET_OK);
}

/* The wait has another id than the notify: a mismatch at this rank only. */
static void wait_differs(void) {
    vgasnet_barrier_notify(1, 0);
    CHECK_EQ(vgasnet_barrier_wait(me == 0 ? 2 : 1, 0), me == 0 ? VGASNET_ERR_BARRIER_MISMATCH : VGASNET_OK);
    vgasnet_barrier_notify(1, 0);
    CHECK_EQ(vgasnet_barrier_wait(1, ANONYMOUS), VGASNET_OK);
}

/* No rank passes before all have come: rank 0 comes only after all others have tried. */
static void nobody_passes_early(void) {
    if (me != 0) {
        vgasnet_barrier_notify(3, 0);
        for (int i = 0; i < 10; ++i) CHECK_EQ(vgasnet_barrier_try(3, 0), VGASNET_ERR_NOT_READY);
        vgasnet_put_val(0, at(0, me), 1, 1);
    } else {
        for (vgasnet_node_t rank = 1; rank < ranks; ++rank)
            while (vgasnet_get_val(0, at(0, rank), 1) != 1) {}
        vgasnet_barrier_notify(3, 0);
    }
    CHECK_EQ(vgasnet_barrier_wait(3, 0), VGASNET_OK);
}

/* After a barrier all ranks see the puts from before it. Between notify and wait other work goes on. */
static void visibility(void) {
    uintptr_t base = 2 * page_bytes();
    for (uint64_t round = 1; round <= 20; ++round) {
        for (vgasnet_node_t i = 0; i < ranks; ++i) {
            vgasnet_node_t target = (me + i) % ranks;
            uint64_t word = mixed(me, target, round);
            vgasnet_put(target, at(target, base + 8 * me), &word, 8);
        }
        vgasnet_barrier_notify((int)round, 0);
        CHECK_EQ(vgasnet_get_val(me, at(me, base + 8 * me), 8), mixed(me, me, round));
        CHECK_EQ(vgasnet_barrier_wait((int)round, 0), VGASNET_OK);
        for (vgasnet_node_t target = 0; target < ranks; ++target)
            for (vgasnet_node_t writer = 0; writer < ranks; ++writer)
                CHECK_EQ(vgasnet_get_val(target, at(target, base + 8 * writer), 8), mixed(writer, target, round));
        CHECK_EQ(try_until_ready(0, ANONYMOUS), VGASNET_OK);
    }
}

int main(int argc, char **argv) {
    int made = argc > 1 ? open(argv[1], O_CREAT | O_EXCL | O_WRONLY, 0600) : -1;
    if (argc > 1) CHECK(setenv("VGASNET_PEER_MEMORY", made < 0 ? "1" : "0", 1) == 0);
    if (made >= 0) close(made);
    start(&argc, &argv, 3 * page_bytes());
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    names(pass);
    names(try_until_ready);
    wait_differs();
    nobody_passes_early();
    visibility();
    for (int i = 0; i < 500; ++i) CHECK_EQ(pass(i, i % 3 == 0 ? ANONYMOUS : 0), VGASNET_OK);
    return finish();
}
