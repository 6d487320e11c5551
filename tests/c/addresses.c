/* Prints whether all ranks have code and data at the same addresses. */
#include "check.h"

static int variable;

int main(int argc, char **argv) {
    start(&argc, &argv, page_bytes());
    uintptr_t mine[2], theirs[2];
    mine[0] = (uintptr_t)main, mine[1] = (uintptr_t)&variable;
    vgasnet_put(vgasnet_mynode(), at(vgasnet_mynode(), 0), mine, sizeof mine);
    barrier();
    int is_same = 1;
    for (vgasnet_node_t rank = 0; rank < vgasnet_nodes(); ++rank) {
        vgasnet_get(theirs, rank, at(rank, 0), sizeof theirs);
        is_same = is_same && memcmp(theirs, mine, sizeof mine) == 0;
    }
    if (vgasnet_mynode() == 0) puts(is_same ? "same" : "different");
    return finish();
}
