/* Pinned ranges: system calls use them, other pages move around them, and their number is bounded. Prints the number
 * of its erroneous calls: the library reports each in one line. */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "kernel.h"
#include "local.h"

#define ROUNDS 10

static vgasnet_node_t me, ranks;
static size_t page, pages, most, errors;

static void *own(size_t offset) { return at(me, offset); }

/* Loads from every page, and stores to the last of every four, at a word used by nothing else. */
static void use_others(void) {
    static uint64_t stores = 0;
    ++stores;
    for (size_t i = 0; i < pages; ++i) {
        void *word = own(i * page + page - 8);
        if (i % 4 == 3) store_word(word, stores);
        CHECK_EQ(load_word(word), i % 4 == 3 ? stores : 0);
    }
}

static void refused(int is, int should) {
    CHECK_EQ(is, should);
    ++errors;
}

/* A nameless file with these bytes. */
static FILE *file_of(const unsigned char *bytes, size_t len) {
    FILE *file = tmpfile();
    CHECK(file != NULL && fwrite(bytes, 1, len, file) == len && fflush(file) == 0);
    return file;
}

/* Updates a copy of the bytes from `begin` on with the last words of the pages before `end`, where use_others
 * stores. */
static void copy_last_words(unsigned char *bytes, size_t begin, size_t end) {
    for (size_t border = (begin / page + 1) * page; border < end; border += page)
        memcpy(bytes + border - 8 - begin, own(border - 8), 8);
}

/* A range of pinned pages as the destination and the source of the kernel. */
static void system_calls(uint64_t *state) {
    unsigned char *bytes = (unsigned char *)allocate(most * page), *got = (unsigned char *)allocate(most * page);
    for (int i = 0; i < ROUNDS; ++i) {
        size_t first = 2 + (size_t)random_below(state, pages - most - 2), count = 1 + (size_t)random_below(state, most);
        size_t begin = first * page + (size_t)random_below(state, page / 2), end = (first + count) * page - 8;
        size_t len = end - begin;
        random_bytes(state, bytes, len);
        copy_last_words(bytes, begin, end);
        FILE *file = file_of(bytes, len);
        CHECK(vgasnet_pin(own(begin), len, VGASNET_PIN_WRITE) == VGASNET_OK);
        CHECK_EQ(syscall(SYS_pread64, fileno(file), own(begin), len, 0L), len);
        CHECK(vgasnet_unpin(own(begin), len) == VGASNET_OK);
        use_others();
        copy_last_words(bytes, begin, end);
        check_bytes((unsigned char *)own(begin), bytes, len, "read by the kernel");
        CHECK(vgasnet_pin(own(begin), len, VGASNET_PIN_READ) == VGASNET_OK);
        CHECK_EQ(syscall(SYS_pwrite64, fileno(file), own(begin), len, 0L), len);
        CHECK(vgasnet_unpin(own(begin), len) == VGASNET_OK);
        CHECK_EQ(pread(fileno(file), got, len, 0), len);
        check_bytes(got, bytes, len, "written by the kernel");
        vgasnet_get(got, me, own(begin), len);
        check_bytes(got, bytes, len, "got after the kernel");
        fclose(file);
    }
    free(bytes);
    free(got);
}

/* The kernel cannot access an untouched page unless it is pinned. */
static void untouched(void) {
    int ends[2];
    unsigned char bytes[4] = {1, 2, 3, 4};
    CHECK(pipe(ends) == 0 && kernel_write(ends[1], bytes, sizeof bytes) == sizeof bytes);
    CHECK(kernel_read(ends[0], own(page + 100), 2) == -1 && errno == EFAULT);
    CHECK(kernel_write(ends[1], own(page + 100), 2) == -1 && errno == EFAULT);
    CHECK(vgasnet_pin(own(page + 100), 2, VGASNET_PIN_WRITE) == VGASNET_OK);
    CHECK_EQ(kernel_read(ends[0], own(page + 100), 2), 2);
    CHECK_EQ(kernel_write(ends[1], own(page + 100), 2), 2);
    CHECK(vgasnet_unpin(own(page + 100), 2) == VGASNET_OK);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
    CHECK(memcmp(own(page + 100), bytes, 2) == 0);
}

/* As many pages as allowed, and one more. */
static void bound(void) {
    CHECK(vgasnet_pin(own(3), most * page - 3, VGASNET_PIN_WRITE) == VGASNET_OK);
    /* Pages count once, so these may be pinned again. Any other page is too much. */
    CHECK(vgasnet_pin(own(0), most * page, VGASNET_PIN_READ) == VGASNET_OK);
    refused(vgasnet_pin(own(most * page), 1, VGASNET_PIN_READ), VGASNET_ERR_RESOURCE);
    refused(vgasnet_pin(own(page), most * page, VGASNET_PIN_WRITE), VGASNET_ERR_RESOURCE);
    use_others();
    refused(vgasnet_unpin(own(most * page), 1), VGASNET_ERR_BAD_ARG);
    /* No page of a refused range is pinned. The pinned pages were pinned twice, and are unpinned twice. */
    CHECK(vgasnet_unpin(own(0), most * page) == VGASNET_OK);
    CHECK(vgasnet_unpin(own(0), most * page) == VGASNET_OK);
    for (size_t i = 0; i <= most; ++i) refused(vgasnet_unpin(own(i * page + 7), 1), VGASNET_ERR_BAD_ARG);
    refused(vgasnet_pin(own(page - 1), most * page, VGASNET_PIN_READ), VGASNET_ERR_RESOURCE);
    for (size_t i = 0; i <= most; ++i) refused(vgasnet_unpin(own(i * page), page), VGASNET_ERR_BAD_ARG);
    /* There is room again, also for other pages. */
    CHECK(vgasnet_pin(own((pages - most) * page), most * page, VGASNET_PIN_WRITE) == VGASNET_OK);
    use_others();
    CHECK(vgasnet_unpin(own((pages - most) * page), most * page) == VGASNET_OK);
}

/* The kernel can access a range pinned several times until the last pin is undone. */
static void pins_add_up(void) {
    unsigned char bytes[100], got[100];
    for (int times = 1; times <= 4; ++times) {
        int ends[2];
        memset(bytes, times, sizeof bytes);
        CHECK(pipe(ends) == 0);
        for (int i = 0; i < times; ++i) CHECK(vgasnet_pin(own(3 * page - 50), 100, VGASNET_PIN_WRITE) == VGASNET_OK);
        for (int i = times; i-- > 0;) {
            use_others();
            CHECK_EQ(kernel_write(ends[1], bytes, 42), 42);
            CHECK_EQ(kernel_read(ends[0], own(3 * page - 50), 42), 42);
            CHECK_EQ(kernel_write(ends[1], own(3 * page - 50), 42), 42);
            CHECK_EQ(kernel_read(ends[0], got, 42), 42);
            CHECK(memcmp(got, bytes, 42) == 0);
            CHECK(vgasnet_unpin(own(3 * page - 50), 100) == VGASNET_OK);
        }
        refused(vgasnet_unpin(own(3 * page - 50), 100), VGASNET_ERR_BAD_ARG);
        CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
    }
    /* Pins of parts add up to pins of pages. */
    CHECK(vgasnet_pin(own(2 * page), page, VGASNET_PIN_READ) == VGASNET_OK);
    refused(vgasnet_unpin(own(3 * page - 1), 2), VGASNET_ERR_BAD_ARG);
    CHECK(vgasnet_pin(own(3 * page), 1, VGASNET_PIN_READ) == VGASNET_OK);
    CHECK(vgasnet_unpin(own(3 * page - 1), 2) == VGASNET_OK);
    refused(vgasnet_unpin(own(2 * page), 1), VGASNET_ERR_BAD_ARG);
}

static void bad_arguments(void) {
    unsigned char elsewhere[8];
    const int modes[] = {0, VGASNET_PIN_READ | VGASNET_PIN_WRITE, 4, -1};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; ++i)
        refused(vgasnet_pin(own(0), 1, modes[i]), VGASNET_ERR_BAD_ARG);
    struct {
        void *addr;
        size_t len;
    } ranges[] = {
        {(unsigned char *)own(0) - 1, 2}, {own(pages * page - 1), 2}, {own(pages * page), 1},
        {own(0), pages * page + 1},       {own(8), SIZE_MAX},         {own(8), SIZE_MAX - 4},
        {NULL, 1},                        {elsewhere, 8},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; ++i) {
        refused(vgasnet_pin(ranges[i].addr, ranges[i].len, VGASNET_PIN_READ), VGASNET_ERR_BAD_ARG);
        refused(vgasnet_unpin(ranges[i].addr, ranges[i].len), VGASNET_ERR_BAD_ARG);
        refused(vgasnet_advise(ranges[i].addr, ranges[i].len, VGASNET_ADVISE_WILLNEED), VGASNET_ERR_BAD_ARG);
    }
    refused(vgasnet_advise(own(0), page, 0), VGASNET_ERR_BAD_ARG);
    refused(vgasnet_advise(own(0), page, 5), VGASNET_ERR_BAD_ARG);
    refused(vgasnet_advise(own(0), page, -1), VGASNET_ERR_BAD_ARG);
    refused(vgasnet_unpin(own(0), page), VGASNET_ERR_BAD_ARG);
}

static void *store_one(void *word) {
    store_word(word, load_word(word) + 1);
    return NULL;
}

/* Another thread stores to a page pinned for reading: it may have to wait, and everything else goes on. */
static void stores_wait(void) {
    for (uint64_t i = 1; i <= ROUNDS; ++i) {
        pthread_t thread;
        void *word = own(page * (i % 3) + 200);
        uint64_t before = load_word(word);
        CHECK(vgasnet_pin(word, 8, VGASNET_PIN_READ) == VGASNET_OK);
        CHECK(pthread_create(&thread, NULL, store_one, word) == 0);
        use_others();
        CHECK(vgasnet_unpin(word, 8) == VGASNET_OK);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK_EQ(load_word(word), before + 1);
    }
}

/* A page of rank 0 is pinned while another rank puts to it and gets from it: no bytes of either are lost. */
static void others_wait(void) {
    for (uint64_t round = 1; round <= ROUNDS; ++round) {
        size_t at_page = 5 + round % 2;
        int mode = round % 3 == 0 ? VGASNET_PIN_READ : VGASNET_PIN_WRITE, ends[2];
        if (me == 0) CHECK(vgasnet_pin(own(at_page * page), 300, mode) == VGASNET_OK);
        vgasnet_barrier_notify(0, VGASNET_BARRIERFLAG_ANONYMOUS);
        if (me == 0) {
            use_others();
            if (mode == VGASNET_PIN_WRITE) {
                CHECK(pipe(ends) == 0 && kernel_write(ends[1], &round, 8) == 8);
                CHECK_EQ(kernel_read(ends[0], own(at_page * page), 8), 8);
                CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
            }
            CHECK(vgasnet_unpin(own(at_page * page), 300) == VGASNET_OK);
        }
        CHECK(vgasnet_barrier_wait(0, VGASNET_BARRIERFLAG_ANONYMOUS) == VGASNET_OK);
        if (me != 0) {
            vgasnet_put_val(0, at(0, at_page * page + 8 * me), round + me, 8);
            CHECK_EQ(vgasnet_get_val(0, at(0, at_page * page + 8 * me), 8), round + me);
        }
        barrier();
        uint64_t words[2];
        vgasnet_get(words, 0, at(0, at_page * page), sizeof words);
        if (mode == VGASNET_PIN_WRITE) CHECK_EQ(words[0], round);
        if (ranks > 1) CHECK_EQ(words[1], round + 1);
        barrier();
    }
}

int main(int argc, char **argv) {
    page = page_bytes(), pages = 4 * pool_pages();
    most = least(pool_pages() * 3 / 4, pool_pages() - 4);
    start(&argc, &argv, pages * page);
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    uint64_t state = mixed(30, me, 0);
    CHECK(most >= 2);
    untouched();
    system_calls(&state);
    bound();
    pins_add_up();
    bad_arguments();
    stores_wait();
    others_wait();
    printf("errors %zu\n", errors);
    return finish();
}
