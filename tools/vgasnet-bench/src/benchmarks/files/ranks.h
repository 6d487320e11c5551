/* Ranks of vgasnet, for the ways without MPI. */
#ifndef RANKS_H
#define RANKS_H

#include "io.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <vgasnet.h>

void io_start(int *argc, char ***argv) {
    if (vgasnet_init(argc, argv) != VGASNET_OK || vgasnet_attach(NULL, 0, 0, 0) != VGASNET_OK) exit(1);
}

void io_end(int status) {
    vgasnet_exit(status);
}

void io_fail(const char *what) {
    fprintf(stderr, "rank %u: %s\n", (unsigned)vgasnet_mynode(), what);
    vgasnet_exit(1);
}

int io_rank(void) {
    return (int)vgasnet_mynode();
}

int io_ranks(void) {
    return (int)vgasnet_nodes();
}

void io_barrier(void) {
    vgasnet_barrier_notify(0, VGASNET_BARRIERFLAG_ANONYMOUS);
    vgasnet_barrier_wait(0, VGASNET_BARRIERFLAG_ANONYMOUS);
}

double io_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
