/* Chapter "Extended API", register-memory operations. */
#include "client.h"

static const gasnet_register_value_t pattern = UINT64_C(0xf1e2d3c4b5a69788);

static gasnet_register_value_t low(gasnet_register_value_t value, size_t nbytes) {
    return nbytes == 8 ? value : value & ((UINT64_C(1) << 8 * nbytes) - 1);
}

int main(int argc, char **argv) {
    size_t nbytes;
    unsigned form;
    gasnet_node_t next;
    start(&argc, &argv, NULL, 0);
    next = next_node();
    for (nbytes = 1; nbytes <= SIZEOF_GASNET_REGISTER_VALUE_T; ++nbytes) {
        for (form = 0; form < 3; ++form) {
            /* Far apart, and across the edge of a page if unaligned. */
            char *there = (char *)at(next, segments[next].size / 9 / 4096 * 4096 * nbytes - form);
            gasnet_register_value_t value = pattern + form * 1000 + me;
            gasnet_valget_handle_t first, second;
            gasnet_memset(next, there - 1, 0x5a, nbytes + 2);
            if (form == 0) gasnet_put_val(next, there, value, nbytes);
            if (form == 1) gasnet_wait_syncnb(gasnet_put_nb_val(next, there, value, nbytes));
            if (form == 2) gasnet_put_nbi_val(next, there, value, nbytes);
            gasnet_wait_syncnbi_puts();
            CHECK(gasnet_get_val(next, there, nbytes) == low(value, nbytes));
            first = gasnet_get_nb_val(next, there, nbytes);
            second = gasnet_get_nb_val(next, there - 1, 1);
            gasnet_wait_syncnbi_all();
            CHECK(gasnet_wait_syncnb_valget(second) == 0x5a);
            CHECK(gasnet_wait_syncnb_valget(first) == low(value, nbytes));
            CHECK(gasnet_get_val(next, there + nbytes, 1) == 0x5a);
        }
    }
    return finish();
}
