/* Runs an access pattern once: PATTERN PATH SIZE UNIT SYNC ATOMIC. Prints the seconds in JSON. vgasnet-bench compiles
 * and runs this program. */
#include "io.h"
#include "pattern.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    struct times (*run)(const struct orders *orders);
} patterns[] = {
    {"sliding-window", sliding_window}, {"btio-full", btio_full}, {"btio-simple", btio_simple},
    {"flash", flash},                   {"sequential", sequential}, {"rows", rows},
};

uint64_t word_of_file(uint64_t index) {
    return (index + 1) * WORD_STEP;
}

void fill(uint64_t offset, void *to, size_t len) {
    unsigned char *byte = (unsigned char *)to;
    for (; len > 0 && offset % 8 != 0; --len, ++offset) *byte++ = (unsigned char)(word_of_file(offset / 8) >> offset % 8 * 8);
    uint64_t word = word_of_file(offset / 8);
    for (; len >= 8; len -= 8, offset += 8, byte += 8, word += WORD_STEP) memcpy(byte, &word, 8);
    for (; len > 0; --len, ++offset) *byte++ = (unsigned char)(word_of_file(offset / 8) >> offset % 8 * 8);
}

void check_filled(uint64_t offset, const void *bytes, size_t len) {
    static unsigned char wanted[1 << 16];
    for (size_t done = 0; done < len; done += sizeof wanted) {
        size_t part = len - done < sizeof wanted ? len - done : sizeof wanted;
        fill(offset + done, wanted, part);
        if (memcmp((const char *)bytes + done, wanted, part) != 0) io_fail("a read found other bytes than were written");
    }
}

void *allocate(size_t bytes) {
    void *memory = calloc(1, bytes);
    if (memory == NULL) io_fail("memory");
    return memory;
}

double begin(const char *path, int flags) {
    io_barrier();
    double begun = io_now();
    io_open(path, flags);
    return begun;
}

double end(const struct orders *orders, int is_written, double begun) {
    if (is_written && orders->ends_with_sync) io_sync();
    io_close();
    io_barrier();
    return io_now() - begun;
}

int main(int argc, char **argv) {
    io_start(&argc, &argv);
    if (argc != 7) io_fail("usage: PATTERN PATH SIZE UNIT SYNC ATOMIC");
    struct orders orders = {argv[2], atoi(argv[5]), atoi(argv[6]), strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10)};
    for (size_t at = 0; at < sizeof patterns / sizeof *patterns; ++at) {
        if (strcmp(patterns[at].name, argv[1]) != 0) continue;
        struct times times = patterns[at].run(&orders);
        if (io_rank() == 0) printf("{\"written_seconds\":%.6f,\"read_seconds\":%.6f}\n", times.written, times.read);
        fflush(stdout);
        io_end(0);
    }
    io_fail("there is no such pattern");
    return 1;
}
