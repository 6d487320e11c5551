/* Chapter "Barriers", and GASNet's changes to it since 1.20. */
#include "client.h"

enum { NAMED = 0, ANONYMOUS = GASNET_BARRIERFLAG_ANONYMOUS, MISMATCH = GASNET_BARRIERFLAG_MISMATCH };

static int tries;

/* Half of the phases end by tries. */
static int end(int id, int flags) {
    int answer;
    if (++tries % 2) return gasnet_barrier_wait(id, flags);
    do answer = gasnet_barrier_try(id, flags);
    while (answer == GASNET_ERR_NOT_READY);
    return answer;
}

static int phase(int notify_id, int notify_flags, int id, int flags) {
    gasnet_barrier_notify(notify_id, notify_flags);
    return end(id, flags);
}

static void was_named(int id) {
    int named = id + 1;
    CHECK(gasnet_barrier_result(&named) == 0 && named == id);
}

static void was_anonymous(void) {
    int named;
    CHECK(gasnet_barrier_result(&named) != 0);
}

static void alike_everywhere(int n) {
    CHECK(phase(n, NAMED, n, NAMED) == GASNET_OK);
    was_named(n);
    CHECK(phase(n, ANONYMOUS, n + 1, ANONYMOUS) == GASNET_OK);
    was_anonymous();
    CHECK(gasnet_barrier(-n, NAMED) == GASNET_OK);
    was_named(-n);
    CHECK(gasnet_barrier((int)me, GASNET_BARRIERFLAG_UNNAMED) == GASNET_OK);
    was_anonymous();
    CHECK(gasnet_barrier(n, GASNET_BARRIERFLAG_IMAGES) == GASNET_OK);
    was_named(n);
    /* Flags may differ between notify and wait. */
    CHECK(phase(n, NAMED, 0, ANONYMOUS) == GASNET_OK);
    was_named(n);
    CHECK(phase(0, ANONYMOUS, n, NAMED) == GASNET_OK);
    was_anonymous();
    CHECK(phase(n, NAMED, n + 1, NAMED) == GASNET_ERR_BARRIER_MISMATCH);
    CHECK(phase(n, MISMATCH, n, MISMATCH) == GASNET_ERR_BARRIER_MISMATCH);
}

/* One node differs from the others. */
static void one_differs(gasnet_node_t one) {
    int is_one = me == one, answer;
    CHECK(gasnet_barrier(1, is_one ? MISMATCH : NAMED) == GASNET_ERR_BARRIER_MISMATCH);
    CHECK(gasnet_barrier(1, is_one ? MISMATCH : ANONYMOUS) == GASNET_ERR_BARRIER_MISMATCH);
    if (nodes == 1) return;
    CHECK(gasnet_barrier(is_one ? 5 : 6, NAMED) == GASNET_ERR_BARRIER_MISMATCH);
    CHECK(gasnet_barrier(is_one ? 5 : 6, is_one ? NAMED : ANONYMOUS) == GASNET_OK);
    was_named(5);
    CHECK(gasnet_barrier(is_one ? 5 : 6, is_one ? ANONYMOUS : NAMED) == GASNET_OK);
    was_named(6);
    CHECK((is_one ? phase(5, ANONYMOUS, 6, NAMED) : phase(6, NAMED, 6, NAMED)) == GASNET_OK);
    was_named(6);
    answer = is_one ? phase(5, ANONYMOUS, 5, NAMED) : phase(6, NAMED, 6, NAMED);
    CHECK(answer == (is_one ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK));
}

/* No node passes a barrier before all have come, and earlier puts are seen after it. */
static void orders_puts(void) {
    uint64_t round;
    for (round = 1; round <= 50; ++round) {
        gasnet_put(next_node(), at(next_node(), 0), &round, sizeof round);
        gasnet_barrier_notify((int)round, NAMED);
        CHECK(end((int)round, NAMED) == GASNET_OK);
        CHECK(*(volatile uint64_t *)at(me, 0) == round);
        CHECK(gasnet_barrier(0, ANONYMOUS) == GASNET_OK);
    }
}

int main(int argc, char **argv) {
    gasnet_node_t one;
    int n;
    start(&argc, &argv, NULL, 0);
    for (n = 1; n < 20; ++n) alike_everywhere(n * 1000);
    for (one = 0; one < nodes; ++one) one_differs(one);
    orders_puts();
    return finish();
}
