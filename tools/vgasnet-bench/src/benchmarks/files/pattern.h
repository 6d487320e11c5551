/* Access patterns, and the bytes of their files. */
#ifndef PATTERN_H
#define PATTERN_H

#include <stddef.h>
#include <stdint.h>

/* Parameters of a pattern. */
struct orders {
    const char *path;
    int ends_with_sync, is_atomic;
    uint64_t size, unit;
};

/* Seconds from open to close, for written and for read files. */
struct times {
    double written, read;
};

struct times sliding_window(const struct orders *orders);
struct times btio_full(const struct orders *orders);
struct times btio_simple(const struct orders *orders);
struct times flash(const struct orders *orders);
struct times sequential(const struct orders *orders);
struct times rows(const struct orders *orders);

/* A file consists of words. Successive words differ by a constant step, which is nearly free compared with a copy. */
#define WORD_STEP UINT64_C(0x9E3779B97F4A7C15)
uint64_t word_of_file(uint64_t index);
void fill(uint64_t offset, void *to, size_t len);
void check_filled(uint64_t offset, const void *bytes, size_t len);

/* begin opens a file. end closes it, after a sync if requested. Both have a barrier, so the time in between covers all
 * ranks. */
double begin(const char *path, int flags);
double end(const struct orders *orders, int is_written, double begun);

void *allocate(size_t bytes);

#endif
