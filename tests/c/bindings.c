/* The functions for bindings of other languages: the line of an error, and the end of handlers. */
#include "check.h"

#define LATE 200 /* more than a window of requests */

static volatile int32_t ran;

static void count(vgasnet_token_t token, vgasnet_handlerarg_t by) {
    CHECK(token != NULL);
    ran += by;
}

static void lines_are_given_once(void) {
    char start[32];
    CHECK_EQ(*vgasnet_ErrorLine(), '\0');
    CHECK(vgasnet_set_waitmode(77) == VGASNET_ERR_BAD_ARG);
    snprintf(start, sizeof start, "rank %u: vgasnet_set_waitmode: ", vgasnet_mynode());
    CHECK(strncmp(vgasnet_ErrorLine(), start, strlen(start)) == 0);
    CHECK_EQ(*vgasnet_ErrorLine(), '\0');
}

int main(int argc, char **argv) {
    vgasnet_handlerentry_t handlers[1];
    vgasnet_node_t me, ranks;
    handlers[0].index = 200;
    handlers[0].fnptr = (void (*)())count;
    vgasnet_end_handlers(); /* too early: no effect */
    CHECK(vgasnet_init(&argc, &argv) == VGASNET_OK);
    lines_are_given_once();
    CHECK(vgasnet_attach(handlers, 1, page_bytes(), 0) == VGASNET_OK);
    me = vgasnet_mynode();
    ranks = vgasnet_nodes();

    CHECK(vgasnet_AMRequestShort1((me + 1) % ranks, 200, 1) == VGASNET_OK);
    VGASNET_BLOCKUNTIL(ran == 1);
    vgasnet_barrier_notify(0, VGASNET_BARRIERFLAG_ANONYMOUS);
    CHECK(vgasnet_barrier_wait(0, VGASNET_BARRIERFLAG_ANONYMOUS) == VGASNET_OK);

    vgasnet_end_handlers();
    vgasnet_barrier_notify(0, VGASNET_BARRIERFLAG_ANONYMOUS);
    CHECK(vgasnet_barrier_wait(0, VGASNET_BARRIERFLAG_ANONYMOUS) == VGASNET_OK);
    /* Senders get their credit back nevertheless. */
    for (int i = 0; i < LATE; ++i) CHECK(vgasnet_AMRequestShort1((me + 1) % ranks, 200, 1) == VGASNET_OK);
    vgasnet_barrier_notify(0, VGASNET_BARRIERFLAG_ANONYMOUS);
    CHECK(vgasnet_barrier_wait(0, VGASNET_BARRIERFLAG_ANONYMOUS) == VGASNET_OK);
    CHECK(vgasnet_AMPoll() == VGASNET_OK);
    CHECK_EQ(ran, 1);
    /* Collectives use messages of the library's own. */
    vgasnet_coll_broadcast(VGASNET_TEAM_ALL, &me, 0, &me, sizeof me, 0);
    CHECK_EQ(me, 0);
    return 0;
}
