/* Vector, indexed and strided transfers in the form of GASNet's clients. */
#include "client.h"

#include <gasnet_vis.h>

enum { PIECES = 6, PIECE = 90, BYTES = PIECES * PIECE };

static unsigned char out[BYTES], in[BYTES];

static uintptr_t gap(void) { return segments[next_node()].size / (PIECES + 1); }

static void check_and_forget(void) {
    compare(in, BYTES, me, 0);
    memset(in, 0, BYTES);
    gasnet_memset(next_node(), at(next_node(), 0), 0, PIECE);
}

int main(int argc, char **argv) {
    gasnet_memvec_t here, there[PIECES];
    void *addresses[PIECES];
    void *source[1] = {out}, *destination[1] = {in};
    /* PIECES rows of PIECE bytes, far apart at the target and dense here. */
    size_t count[2] = {PIECE, PIECES}, dense[1] = {PIECE}, far_apart[1];
    gasnet_node_t next;
    size_t i;
    start(&argc, &argv, NULL, 0);
    next = next_node();
    far_apart[0] = gap();
    fill(out, BYTES, me, 0);
    for (i = 0; i < PIECES; ++i) {
        addresses[i] = at(next, i * gap());
        there[i].addr = addresses[i];
        there[i].len = PIECE;
    }
    here.addr = out, here.len = BYTES;
    gasnet_putv_bulk(next, PIECES, there, 1, &here);
    here.addr = in;
    gasnet_getv_bulk(1, &here, next, PIECES, there);
    check_and_forget();

    gasnet_wait_syncnb(gasnet_puti_nb_bulk(next, PIECES, addresses, PIECE, 1, source, BYTES));
    gasnet_wait_syncnb(gasnet_geti_nb_bulk(1, destination, BYTES, next, PIECES, addresses, PIECE));
    check_and_forget();

    gasnet_puts_nbi_bulk(next, at(next, 0), far_apart, out, dense, count, 1);
    gasnet_wait_syncnbi_puts();
    gasnet_gets_nbi_bulk(in, dense, next, at(next, 0), far_apart, count, 1);
    gasnet_wait_syncnbi_gets();
    check_and_forget();
    return finish();
}
