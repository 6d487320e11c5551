/* Every rank writes and reads all of rank 0's segment, which is several pools long.
 *   traffic SEGMENT_MIB ROUNDS [die | offered]
 * die: the last rank kills itself after one round. offered: rank 0 first prints the offered size. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vgasnet.h>

#define MIB ((uintptr_t)1 << 20)

static void barrier(void) {
    vgasnet_barrier_notify(0, VGASNET_BARRIERFLAG_ANONYMOUS);
    vgasnet_barrier_wait(0, VGASNET_BARRIERFLAG_ANONYMOUS);
}

int main(int argc, char **argv) {
    vgasnet_seginfo_t segment;
    unsigned char *buffer = (unsigned char *)malloc(MIB);
    uintptr_t size, at;
    vgasnet_node_t me, ranks;
    int round, rounds, die;

    if (argc < 3 || buffer == NULL) return 2;
    rounds = atoi(argv[2]);
    die = argc > 3 && strcmp(argv[3], "die") == 0;
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) return 3;
    me = vgasnet_mynode();
    ranks = vgasnet_nodes();
    size = (uintptr_t)strtoull(argv[1], NULL, 10) * MIB;
    /* If attach is refused, the first rank to end may end the others before they print anything. */
    if (me == 0 && argc > 3 && strcmp(argv[3], "offered") == 0) {
        fprintf(stderr, "offered: %lu\n", (unsigned long)vgasnet_getMaxLocalSegmentSize());
    }
    if (vgasnet_attach(NULL, 0, size, 0) != VGASNET_OK) return 3;
    vgasnet_getSegmentInfo(&segment, 1);

    for (round = 0; round < rounds; ++round) {
        for (at = me * MIB; at < size; at += ranks * MIB) {
            memset(buffer, round + (int)(at / MIB), MIB);
            vgasnet_put_bulk(0, (char *)segment.addr + at, buffer, MIB);
        }
        barrier();
        for (at = 0; at < size; at += MIB) {
            vgasnet_get_bulk(buffer, 0, (char *)segment.addr + at, MIB);
            if (buffer[0] != (unsigned char)(round + (int)(at / MIB)) || memcmp(buffer, buffer + 1, MIB - 1) != 0) {
                fprintf(stderr, "traffic: rank %u: wrong bytes at %lu in round %d\n", me, (unsigned long)at, round);
                return 1;
            }
        }
        barrier();
        if (die && me == ranks - 1) raise(SIGKILL);
    }
    free(buffer);
    vgasnet_exit(0);
    return 0;
}
