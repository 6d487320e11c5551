/* A computing rank still serves its pages, and an idle rank takes no processor time. Prints the figures. The bounds
 * are the library's promises. */
#include "check.h"
#include <sys/resource.h>
#include <time.h>

#define READ_BYTES ((uintptr_t)32 << 20)

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double processor_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void sleep_for(double time) {
    struct timespec left;
    left.tv_sec = (time_t)time;
    left.tv_nsec = (long)((time - (double)left.tv_sec) * 1e9);
    while (nanosleep(&left, &left) != 0) {}
}

/* Rank 0 writes its own segment, then computes for three seconds without a call, while rank 1 reads the segment. */
static void serve_while_computing(unsigned char *buffer) {
    uintptr_t offset;
    double begin;
    volatile uint64_t spin = 0;

    if (vgasnet_mynode() == 0) {
        memset(buffer, 7, READ_BYTES);
        for (offset = 0; offset < READ_BYTES; offset += page_bytes()) {
            vgasnet_put_bulk(0, at(0, offset), buffer + offset, page_bytes());
        }
    }
    barrier();
    begin = seconds();
    if (vgasnet_mynode() == 0) {
        while (seconds() - begin < 3) ++spin;
    } else if (vgasnet_mynode() == 1) {
        vgasnet_get_bulk(buffer, 0, at(0, 0), READ_BYTES);
        printf("32 MiB from a rank that computes: %.3f s\n", seconds() - begin);
        CHECK(seconds() - begin < 2);
        CHECK(buffer[0] == 7 && buffer[READ_BYTES - 1] == 7);
    }
    barrier();
}

/* All ranks but 0 wait in a barrier, and rank 0's helper is idle. Each uses less than a fiftieth of a core, even if
 * it cannot sleep, and little at first, when it polls more often. Other load makes a wake-up more expensive, never
 * cheaper: the best of a few times counts. */
static void idle(void) {
    const double time = 2, at_first = 0.02;
    double least = time;
    int round;
    for (round = 0; round < 3; ++round) {
        double before, used;
        barrier();
        before = processor_seconds();
        if (vgasnet_mynode() == 0) sleep_for(time);
        barrier();
        used = processor_seconds() - before;
        if (used < least) least = used;
    }
    printf("rank %u: idle for %.0f s: %.4f s of processor time\n", vgasnet_mynode(), time, least);
    CHECK(least < time / 50 + at_first);
}

int main(int argc, char **argv) {
    unsigned char *buffer = (unsigned char *)malloc(READ_BYTES);
    CHECK(buffer != NULL);
    start(&argc, &argv, READ_BYTES);
    serve_while_computing(buffer);
    idle();
    free(buffer);
    return finish();
}
