/* Nonblocking gets into the own segment, and puts from it, in flight together: they wait for no page when they
 * begin. */
#include "check.h"

static vgasnet_node_t me, next;
static size_t page, pages;

/* Sources are at the beginning of a segment, destinations after them, not at the borders of pages. */
static unsigned char *source(vgasnet_node_t rank, size_t i) { return (unsigned char *)at(rank, i * page + 3); }
static unsigned char *destination_at(vgasnet_node_t rank, size_t i) { return (unsigned char *)at(rank, (pages + 1 + i) * page + 77); }
static unsigned char *destination(size_t i) { return destination_at(me, i); }

static void fill(unsigned char *bytes, vgasnet_node_t rank, size_t i) {
    uint64_t state = mixed(rank, i, 1);
    random_bytes(&state, bytes, page);
}

static void check_all(unsigned char *got, unsigned char *expected, const char *what) {
    for (size_t i = 0; i < pages; ++i) {
        vgasnet_get(got, me, destination(i), page);
        fill(expected, next, i);
        check_bytes(got, expected, page, what);
        vgasnet_memset(me, destination(i), 0, page);
    }
}

int main(int argc, char **argv) {
    size_t unfinished = 0;
    vgasnet_handle_t *handles;
    unsigned char *bytes, *expected;
    page = page_bytes(), pages = 4 * pool_bytes() / page;
    start(&argc, &argv, (2 * pages + 3) * page);
    me = vgasnet_mynode(), next = (me + 1) % vgasnet_nodes();
    bytes = (unsigned char *)allocate(page), expected = (unsigned char *)allocate(page);
    handles = (vgasnet_handle_t *)allocate(pages * sizeof *handles);
    for (size_t i = 0; i < pages; ++i) {
        fill(bytes, me, i);
        vgasnet_put(me, source(me, i), bytes, page);
    }
    barrier();
    for (size_t i = 0; i < pages; ++i) {
        handles[i] = vgasnet_get_nb_bulk(destination(i), next, source(next, i), page);
        unfinished += handles[i] != VGASNET_INVALID_HANDLE;
    }
    CHECK(unfinished > 0);
    vgasnet_wait_syncnb_all(handles, pages);
    check_all(bytes, expected, "explicit");
    for (size_t i = 0; i < pages; ++i) vgasnet_get_nbi_bulk(destination(i), next, source(next, i), page);
    vgasnet_wait_syncnbi_gets();
    check_all(bytes, expected, "implicit");
    /* The rank before puts here. */
    barrier();
    next = (me + vgasnet_nodes() - 1) % vgasnet_nodes();
    for (int is_implicit = 0; is_implicit < 2; ++is_implicit) {
        vgasnet_node_t behind = (me + 1) % vgasnet_nodes();
        for (size_t i = 0; i < pages; ++i) {
            unsigned char *to = destination_at(behind, i);
            if (is_implicit) vgasnet_put_nbi_bulk(behind, to, source(me, i), page);
            else handles[i] = vgasnet_put_nb_bulk(behind, to, source(me, i), page);
        }
        if (is_implicit) vgasnet_wait_syncnbi_puts();
        else vgasnet_wait_syncnb_all(handles, pages);
        barrier();
        check_all(bytes, expected, is_implicit ? "implicit put" : "explicit put");
        barrier();
    }
    return finish();
}
