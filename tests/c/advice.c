/* Hints about ranges in use change no byte, and unneeded pages leave the pool. */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "kernel.h"
#include "local.h"

#define OPERATIONS 700

static vgasnet_node_t me, ranks;
static size_t page, pages, stripe_bytes;
/* The bytes of this rank's stripes: one stripe in every page of every segment. */
static unsigned char *model, *got;

static void advise(uint64_t *state) {
    size_t begin = (size_t)random_below(state, pages * page), most = pages * page - begin;
    size_t len = random_below(state, 2) == 0 ? random_length(state, most) : (size_t)random_below(state, most + 1);
    CHECK(vgasnet_advise(at(me, begin), len, VGASNET_ADVISE_WILLNEED + (int)random_below(state, 4)) == VGASNET_OK);
}

/* Stores to or loads from a stripe of the own segment. Puts to or gets from a stripe of another one. */
static void use_stripe(uint64_t *state) {
    vgasnet_node_t target = (vgasnet_node_t)random_below(state, ranks);
    size_t number = (size_t)random_below(state, pages), len = 1 + random_length(state, stripe_bytes - 1);
    size_t offset = (size_t)random_below(state, stripe_bytes - len + 1);
    unsigned char *there = (unsigned char *)at(target, number * page + me * stripe_bytes + offset);
    unsigned char *here = model + (target * pages + number) * stripe_bytes + offset;
    if (random_below(state, 2) == 0) {
        random_bytes(state, here, len);
        if (target == me) memcpy(there, here, len);
        if (target != me) vgasnet_put(target, there, here, len);
    } else {
        if (target == me) memcpy(got, there, len);
        if (target != me) vgasnet_get(got, target, there, len);
        check_bytes(got, here, len, "stripe");
    }
}

/* The kernel cannot access a page outside of the pool. */
static int is_there(const int *ends, size_t number) {
    unsigned char byte;
    ssize_t wrote = kernel_write(ends[1], at(me, number * page), 1);
    CHECK(wrote == 1 || errno == EFAULT);
    if (wrote == 1) CHECK_EQ(kernel_read(ends[0], &byte, 1), 1);
    return wrote == 1;
}

/* Unneeded pages leave the pool with their stored bytes. */
static void leave(uint64_t *state) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    for (size_t number = 0; number < 2; ++number) {
        store_word(at(me, number * page + page - 8), random_word(state));
        memcpy(model + number * 8, at(me, number * page + page - 8), 8);
    }
    /* A hint about a page in flight is lost, so the hint is repeated until the page leaves. */
    do {
        CHECK(vgasnet_advise(at(me, 0), 2 * page, VGASNET_ADVISE_DONTNEED) == VGASNET_OK);
        sched_yield();
    } while (is_there(ends, 0) || is_there(ends, 1));
    for (size_t number = 0; number < 2; ++number)
        CHECK(memcmp(at(me, number * page + page - 8), model + number * 8, 8) == 0);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

int main(int argc, char **argv) {
    page = page_bytes(), pages = 4 * pool_pages();
    start(&argc, &argv, pages * page);
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    stripe_bytes = page / ranks;
    model = (unsigned char *)allocate(ranks * pages * stripe_bytes);
    got = (unsigned char *)allocate(stripe_bytes);
    uint64_t state = mixed(31, me, 0);
    for (int i = 0; i < OPERATIONS; ++i) {
        if (i % 4 == 0) advise(&state);
        use_stripe(&state);
    }
    barrier();
    for (vgasnet_node_t target = 0; target < ranks; ++target)
        for (size_t number = 0; number < pages; ++number) {
            vgasnet_get(got, target, at(target, number * page + me * stripe_bytes), stripe_bytes);
            check_bytes(got, model + (target * pages + number) * stripe_bytes, stripe_bytes, "stripe in the end");
        }
    barrier();
    leave(&state);
    return finish();
}
