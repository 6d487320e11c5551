/* Liao and others, figure 4: the ranks go through the file in segments. At each step of a segment a rank reads,
 * modifies and writes its own window, then moves to the next. So each rank sees the others' writes.
 *
 * A barrier follows each step. Without it two ranks could read the same bytes, and chance would determine the lost
 * write. */
#include "io.h"
#include "pattern.h"
#include <stdlib.h>
#include <string.h>

/* The rank that has this window at a step. */
static uint64_t visitor(uint64_t window, uint64_t step, uint64_t ranks) {
    return (window + ranks - step) % ranks;
}

static uint64_t visited(uint64_t word, uint64_t rank) {
    return 3 * word + rank + 1;
}

/* Checks the modifications of all earlier visitors, and modifies the words. */
static void modify(uint64_t *words, size_t count, uint64_t first, uint64_t window, uint64_t step) {
    uint64_t ranks = (uint64_t)io_ranks(), me = (uint64_t)io_rank(), differs = 0;
    /* The earlier visitors have multiplied the word by `factor` and added `more`. */
    uint64_t factor = 1, more = 0;
    for (uint64_t earlier = 0; earlier < step; ++earlier) {
        factor *= 3;
        more = visited(more, visitor(window, earlier, ranks));
    }
    uint64_t wanted = factor * word_of_file(first) + more;
    for (size_t at = 0; at < count; ++at, wanted += factor * WORD_STEP) {
        differs |= words[at] ^ wanted;
        words[at] = visited(words[at], me);
    }
    if (differs != 0) io_fail("a rank does not see what others have written");
}

struct times sliding_window(const struct orders *orders) {
    uint64_t ranks = (uint64_t)io_ranks(), me = (uint64_t)io_rank();
    uint64_t window_bytes = orders->unit, segments = orders->size / (ranks * window_bytes);
    uint64_t *words = (uint64_t *)allocate(window_bytes);
    double begun = begin(orders->path, IO_READ | IO_WRITE | (orders->is_atomic ? IO_ATOMIC : 0));
    for (uint64_t segment = 0; segment < segments; ++segment) {
        for (uint64_t step = 0; step < ranks; ++step) {
            uint64_t window = (me + step) % ranks;
            uint64_t offset = (segment * ranks + window) * window_bytes;
            io_read_at(offset, words, window_bytes);
            modify(words, window_bytes / 8, offset / 8, window, step);
            io_write_at(offset, words, window_bytes);
            io_barrier();
        }
    }
    struct times times = {end(orders, 1, begun), 0};
    free(words);
    return times;
}
