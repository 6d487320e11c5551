/* The destination of a get and the source of a put in the caller's own segment. */
#include "check.h"

static vgasnet_node_t me, ranks;
static size_t area_bytes;
static unsigned char *here, *there, *got;

/* Each rank works in one area of its own segment and one of the target's, with models of both in its memory. */
static void *own(size_t offset) { return at(me, offset); }
static void *remote(vgasnet_node_t target, size_t offset) { return at(target, (1 + me) * area_bytes + offset); }

static void move_in(uint64_t form, vgasnet_node_t target, size_t to, size_t from, size_t len) {
    if (form == 0) vgasnet_get(own(to), target, remote(target, from), len);
    if (form == 1) vgasnet_wait_syncnb(vgasnet_get_nb_bulk(own(to), target, remote(target, from), len));
    if (form == 2) {
        vgasnet_get_nbi(own(to), target, remote(target, from), len);
        vgasnet_wait_syncnbi_gets();
    }
    memcpy(here + to, there + from, len);
}

static void move_out(uint64_t form, vgasnet_node_t target, size_t to, size_t from, size_t len) {
    if (form == 0) vgasnet_put(target, remote(target, to), own(from), len);
    if (form == 1) vgasnet_wait_syncnb(vgasnet_put_nb(target, remote(target, to), own(from), len));
    if (form == 2) {
        vgasnet_put_nbi_bulk(target, remote(target, to), own(from), len);
        vgasnet_wait_syncnbi_all();
    }
    memcpy(there + to, here + from, len);
}

static void compare(vgasnet_node_t target) {
    vgasnet_get(got, me, own(0), area_bytes);
    check_bytes(got, here, area_bytes, "own segment");
    vgasnet_get(got, target, remote(target, 0), area_bytes);
    check_bytes(got, there, area_bytes, "target's segment");
}

int main(int argc, char **argv) {
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) return 1;
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    area_bytes = 2 * page_bytes() + 333;
    CHECK(vgasnet_attach(NULL, 0, (ranks + 1) * area_bytes, 0) == VGASNET_OK);
    here = (unsigned char *)allocate(area_bytes);
    there = (unsigned char *)allocate(area_bytes);
    got = (unsigned char *)allocate(area_bytes);
    uint64_t state = mixed(7, me, 0);
    for (vgasnet_node_t i = 0; i < ranks; ++i) {
        vgasnet_node_t target = (me + i) % ranks;
        random_bytes(&state, here, area_bytes);
        random_bytes(&state, there, area_bytes);
        vgasnet_put(me, own(0), here, area_bytes);
        vgasnet_put(target, remote(target, 0), there, area_bytes);
        for (int j = 0; j < 60; ++j) {
            size_t len = random_length(&state, area_bytes);
            size_t to = (size_t)random_below(&state, area_bytes - len + 1);
            size_t from = (size_t)random_below(&state, area_bytes - len + 1);
            uint64_t form = random_below(&state, 3);
            if (random_below(&state, 2) == 0) {
                move_in(form, target, to, from, len);
            } else {
                move_out(form, target, to, from, len);
            }
        }
        compare(target);
        /* The same place as source and destination: nothing changes. */
        vgasnet_put(me, own(5), own(5), area_bytes - 10);
        vgasnet_get(own(5), me, own(5), area_bytes - 10);
        compare(target);
    }
    return finish();
}
