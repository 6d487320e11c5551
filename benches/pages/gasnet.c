/* The cost of a page from another rank's pool, next to GASNet's own operations on the same number of bytes between the
 * same two ranks in the same run. The program calls both GASNet and vgasnet. */
#include <gasnet.h>

#include "page.h"

static void meet_by_gasnet(void) {
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    check(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS) == GASNET_OK, "a barrier of GASNet's failed");
}

static void get_and_put(char *here, char *there) {
    double begin;
    size_t at, offset;
    for (at = 0; me == 0 && at < pages; ++at) {
        /* Memory not used just before, as for a page. */
        offset = at * page_bytes;
        begin = now();
        gasnet_get_bulk(here + offset, 1, there + offset, page_bytes);
        sample("gasnet_get", now() - begin);
        offset = (at + pages / 2) % pages * page_bytes;
        begin = now();
        gasnet_put_bulk(1, there + offset, here + offset, page_bytes);
        sample("gasnet_put", now() - begin);
    }
    /* The target has to call GASNet meanwhile; the barrier does so. */
    meet_by_gasnet();
}

int main(int argc, char **argv) {
    gasnet_seginfo_t own[2];
    int round;
    if (gasnet_init(&argc, &argv) != GASNET_OK) return 1;
    page_bytes = (size_t)atol(getenv("VGASNET_PAGE_SIZE"));
    pages = (size_t)atol(argv[1]);
    check(vgasnet_attach_gasnet(NULL, 0, pages * page_bytes, 0) == VGASNET_OK, "attaching GASNet failed");
    start_vgasnet(NULL, NULL);
    gasnet_getSegmentInfo(own, 2);
    memset(own[me].addr, 1, pages * page_bytes);
    for (round = 0; round < ROUNDS; ++round) {
        give_away(2 * round);
        fetch(2 * round, 1);
        give_away(2 * round + 1);
        fetch(2 * round + 1, 0);
        get_and_put(own[me].addr, own[1].addr);
    }
    meet();
    vgasnet_exit(0);
    return 0;
}
