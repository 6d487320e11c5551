/* Instructions that use several pages at once, or repeat themselves, in a pool with room for few pages. */
#include <pthread.h>

#include "local.h"

#define THREADS 4
#define MOVES 60

#if defined(__x86_64__)
#include <immintrin.h>

static vgasnet_node_t me;
static size_t page, pages;

static unsigned char *own(size_t offset) { return (unsigned char *)at(me, offset); }

/* Touches every other page, so that the pool has other pages than the instruction needs. */
static void use_others(void) {
    for (size_t i = 0; i < pages; ++i) (void)load_word(own(i * page));
}

/* A word across a border is copied to a word across another border: four pages, two of them written. */
static void four_pages_at_once(uint64_t *state) {
    for (size_t i = 1; i + 4 < pages; ++i) {
        for (size_t before = 1; before < 8; ++before) {
            const void *from = own(i * page - before);
            void *to = own((i + 3) * page - (8 - before));
            uint64_t word = random_word(state), moved;
            copy_piece((void *)(uintptr_t)from, &word, sizeof word);
            use_others();
            __asm__ volatile("movsq" : "+S"(from), "+D"(to) : : "memory");
            CHECK_EQ((uintptr_t)to, (uintptr_t)own((i + 3) * page - (8 - before) + 8));
            copy_piece(&moved, own((i + 3) * page - (8 - before)), sizeof moved);
            CHECK_EQ(moved, word);
        }
    }
}

static void *move_across(void *argument) {
    size_t number = *(const size_t *)argument;
    for (uint64_t i = 0; i < MOVES; ++i) {
        uint64_t word = mixed(24, number, i), moved;
        const void *from = own((1 + number) * page - 3);
        void *to = own((2 + THREADS + number) * page - 5);
        copy_piece((void *)(uintptr_t)from, &word, sizeof word);
        __asm__ volatile("movsq" : "+S"(from), "+D"(to) : : "memory");
        copy_piece(&moved, own((2 + THREADS + number) * page - 5), sizeof moved);
        CHECK_EQ(moved, word);
    }
    return NULL;
}

/* Several threads, each with four pages at once, in a pool that may have no more than four. */
static void four_pages_at_once_in_threads(void) {
    pthread_t threads[THREADS];
    size_t numbers[THREADS];
    CHECK(2 + 2 * THREADS < pages);
    for (size_t i = 0; i < THREADS; ++i) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, move_across, &numbers[i]) == 0);
    }
    for (size_t i = 0; i < THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

/* One instruction over more pages than the pool has. */
static void repeated(uint64_t *state) {
    size_t half = pages / 2 * page, count = half - 100;
    const void *from = own(17);
    void *to = own(half + 50);
    for (size_t offset = 17; offset < 17 + count; offset += 509) *own(offset) = (unsigned char)random_word(state);
    __asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(count) : : "memory");
    CHECK_EQ(count, 0);
    CHECK(memcmp(own(17), own(half + 50), half - 100) == 0);
    from = own(17), to = own(half + 50), count = half - 100;
    __asm__ volatile("repe cmpsb" : "+S"(from), "+D"(to), "+c"(count) : : "memory", "cc");
    CHECK_EQ(count, 0);
    to = own(9), count = pages * page - 18;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(0x5a) : "memory");
    CHECK(*own(9) == 0x5a && memcmp(own(9), own(10), pages * page - 19) == 0);
}

/* Reads, computes and writes in one instruction, and checks the flags and the address after it. */
static void read_and_write(uint64_t *state) {
    for (size_t i = 0; i + 1 < pages; ++i) {
        uint64_t *word = (uint64_t *)own(i * page + 8 * random_below(state, page / 8));
        uint64_t before = random_word(state);
        unsigned char carry;
        store_word(word, before);
        use_others();
        CHECK_EQ(__sync_fetch_and_add(word, 5), before);
        use_others();
        CHECK(__sync_bool_compare_and_swap(word, before + 5, before));
        use_others();
        __asm__ volatile("addq %2, %0; setc %1" : "+m"(*word), "=q"(carry) : "r"(~before) : "cc");
        CHECK_EQ(carry, 0);
        CHECK_EQ(load_word(word), UINT64_MAX);
        use_others();
        __asm__ volatile("addq $1, %0; setc %1" : "+m"(*word), "=q"(carry) : : "cc");
        CHECK_EQ(carry, 1);
        use_others();
        __asm__ volatile("pushq %1; popq %0" : "=m"(*word) : "m"(*(uint64_t *)own((i + 1) * page)) : "memory");
        CHECK_EQ(load_word(word), load_word(own((i + 1) * page)));
    }
}

static uint64_t add_three(uint64_t number) { return number + 3; }

/* A call through a pointer in the segment. */
static void called_through(void) {
    uint64_t (*volatile *pointer)(uint64_t) = (uint64_t (*volatile *)(uint64_t))own(2 * page + 8);
    *pointer = add_three;
    use_others();
    CHECK_EQ((*pointer)(4), 7);
}

/* One instruction loads eight words from eight pages. */
__attribute__((target("avx2"))) static void gathered(uint64_t *state) {
    const int step = (int)(page / 4);
    uint32_t is[8], should[8];
    CHECK(pages > 8);
    for (size_t i = 0; i < 8; ++i) {
        should[i] = (uint32_t)random_word(state);
        copy_piece(own(i * page + 40), &should[i], sizeof should[i]);
    }
    use_others();
    __m256i steps = _mm256_setr_epi32(0, step, 2 * step, 3 * step, 4 * step, 5 * step, 6 * step, 7 * step);
    _mm256_storeu_si256((__m256i *)is, _mm256_i32gather_epi32((const int *)own(40), steps, 4));
    CHECK(memcmp(is, should, sizeof is) == 0);
}

/* 32 bytes across borders, and a store that writes only the half in one page. */
__attribute__((target("avx2"))) static void wide(uint64_t *state) {
    unsigned char bytes[32], got[32];
    for (size_t i = 1; i + 1 < pages; ++i) {
        random_bytes(state, bytes, sizeof bytes);
        use_others();
        _mm256_storeu_si256((__m256i *)own(i * page - 13), _mm256_loadu_si256((const __m256i *)bytes));
        use_others();
        _mm256_storeu_si256((__m256i *)got, _mm256_loadu_si256((const __m256i *)own(i * page - 13)));
        CHECK(memcmp(bytes, got, sizeof bytes) == 0);
        use_others();
        __m256i second_half = _mm256_setr_epi32(0, 0, 0, 0, -1, -1, -1, -1);
        _mm256_maskstore_epi32((int *)own(i * page - 16), second_half, _mm256_set1_epi32((int)i));
        CHECK_EQ(*(uint32_t *)own(i * page), i);
        CHECK(memcmp(own(i * page - 13), bytes, 13) == 0);
    }
}

int main(int argc, char **argv) {
    page = page_bytes(), pages = 3 * pool_pages();
    start(&argc, &argv, pages * page);
    me = vgasnet_mynode();
    uint64_t state = mixed(24, me, 0);
    four_pages_at_once(&state);
    four_pages_at_once_in_threads();
    repeated(&state);
    read_and_write(&state);
    called_through();
    if (__builtin_cpu_supports("avx2")) {
        gathered(&state);
        wide(&state);
    } else {
        fprintf(stderr, "NOT RUN: instructions.c: this processor has no AVX2\n");
    }
    return finish();
}

#else

int main(int argc, char **argv) {
    start(&argc, &argv, page_bytes());
    fprintf(stderr, "NOT RUN: instructions.c: it knows x86-64 only\n");
    return finish();
}

#endif
