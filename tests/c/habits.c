/* Client habits forbidden by GASNet's specification that work with GASNet: calls in the wrong order, and transfers
 * within the own memory outside the segment. */
#include "check.h"

#define BYTES 300000

static unsigned char here[BYTES], there[BYTES];
static vgasnet_hsl_t lock = VGASNET_HSL_INITIALIZER;
static vgasnet_node_t me;
static uint64_t state;

static void fill(unsigned char *bytes) { random_bytes(&state, bytes, BYTES); }

static void expect_copy(const char *what) {
    check_bytes(there, here, BYTES, what);
    fill(here);
}

static void transfers(void) {
    vgasnet_memvec_t from = {here, BYTES}, to = {there, BYTES};
    fill(here);
    vgasnet_put(me, there, here, BYTES);
    expect_copy("vgasnet_put");
    vgasnet_get(there, me, here, BYTES);
    expect_copy("vgasnet_get");
    vgasnet_wait_syncnb(vgasnet_put_nb(me, there, here, BYTES));
    expect_copy("vgasnet_put_nb");
    vgasnet_wait_syncnb(vgasnet_get_nb_bulk(there, me, here, BYTES));
    expect_copy("vgasnet_get_nb_bulk");
    vgasnet_put_nbi_bulk(me, there, here, BYTES);
    vgasnet_wait_syncnbi_puts();
    expect_copy("vgasnet_put_nbi_bulk");
    vgasnet_get_nbi(there, me, here, BYTES);
    vgasnet_wait_syncnbi_gets();
    expect_copy("vgasnet_get_nbi");
    vgasnet_putv_bulk(me, 1, &to, 1, &from);
    expect_copy("vgasnet_putv_bulk");
    vgasnet_getv_bulk(1, &to, me, 1, &from);
    expect_copy("vgasnet_getv_bulk");
    vgasnet_put_val(me, there, 0x1234567, 4);
    CHECK(vgasnet_get_val(me, there, 4) == 0x1234567);
    CHECK(vgasnet_wait_syncnb_valget(vgasnet_get_nb_val(me, there, 4)) == 0x1234567);
    vgasnet_memset(me, there, 7, BYTES);
    memset(here, 7, BYTES);
    expect_copy("vgasnet_memset");
}

/* The other side is in the own segment. */
static void through_the_segment(void) {
    void *place = at(me, page_bytes() / 2);
    vgasnet_put(me, place, here, BYTES);
    vgasnet_put(me, there, place, BYTES);
    expect_copy("vgasnet_put from the segment");
    vgasnet_put(me, place, here, BYTES);
    vgasnet_get(place, me, there, BYTES);
    vgasnet_get(here, me, place, BYTES);
    expect_copy("vgasnet_get to the segment");
}

static void barriers(void) {
    for (int i = 0; i < 3; ++i) {
        vgasnet_barrier_notify(i, 0);
        vgasnet_barrier_notify(7, 0);
        CHECK(vgasnet_barrier_wait(i, 0) == VGASNET_OK);
        CHECK(vgasnet_barrier_wait(i, 0) == VGASNET_OK);
        CHECK(vgasnet_barrier_try(i, 0) == VGASNET_OK);
    }
}

static void locks(void) {
    for (int i = 0; i < 3; ++i) {
        vgasnet_hsl_unlock(&lock);
        vgasnet_hsl_lock(&lock);
        vgasnet_hsl_unlock(&lock);
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv, 16 * page_bytes());
    me = vgasnet_mynode(), state = mixed(40, me, 0);
    transfers();
    through_the_segment();
    barriers();
    locks();
    return finish();
}
