/* Functions of the C library on a segment of eight pools. */
#include "local.h"

static vgasnet_node_t me;
static unsigned char *own;
static size_t own_bytes;

static void strings(uint64_t *state) {
    char text[64];
    memset(own, 'a', own_bytes - 1);
    own[own_bytes - 1] = '\0';
    CHECK_EQ(strlen((char *)own), own_bytes - 1);
    for (size_t border = page_bytes(); border < own_bytes; border += 2 * page_bytes()) {
        char *place = (char *)own + border - random_below(state, 30);
        uint64_t number = random_word(state);
        snprintf(text, sizeof text, "page %zu: %" PRIu64, border, number);
        snprintf(place, sizeof text, "page %zu: %" PRIu64, border, number);
        CHECK(strcmp(place, text) == 0);
        CHECK_EQ(strtoull(strchr(place, ':') + 1, NULL, 10), number);
        /* The end of the string overwrites the bytes after it. */
        place[strlen(text)] = 'a';
    }
    CHECK_EQ(strlen((char *)own), own_bytes - 1);
}

static void searches(uint64_t *state) {
    memset(own, 7, own_bytes);
    for (int i = 0; i < 8; ++i) {
        size_t place = (size_t)random_below(state, own_bytes), from = (size_t)random_below(state, place + 1);
        own[place] = 8;
        CHECK_EQ((unsigned char *)memchr(own + from, 8, own_bytes - from) - own, place);
        if (place > 0) CHECK(memchr(own, 8, place) == NULL);
        CHECK(memcmp(own, own + 1, own_bytes - 1) != 0);
        own[place] = 7;
    }
    CHECK(memchr(own, 8, own_bytes) == NULL);
    CHECK(memcmp(own, own + 1, own_bytes - 1) == 0);
}

/* Overlapping moves in both directions and copies from page to page, compared with the same calls in memory. */
static void moves(uint64_t *state) {
    size_t area = 2 * page_bytes() + 777;
    unsigned char *model = (unsigned char *)allocate(area), *place = own + page_bytes() - 333;
    random_bytes(state, model, area);
    memcpy(place, model, area);
    for (int i = 0; i < 200; ++i) {
        size_t len = random_length(state, area), to = (size_t)random_below(state, area - len + 1);
        size_t from = (size_t)random_below(state, area - len + 1);
        int byte = (int)random_below(state, 256);
        switch (random_below(state, 3)) {
        case 0:
            memmove(place + to, place + from, len);
            memmove(model + to, model + from, len);
            break;
        case 1:
            memset(place + to, byte, len);
            memset(model + to, byte, len);
            break;
        default:
            /* memcpy is allowed if source and destination do not overlap. */
            memcpy(place + area, place + from, len);
            CHECK(memcmp(place + area, model + from, len) == 0);
        }
        if (i % 20 == 0) check_bytes(place, model, area, "moved");
    }
    check_bytes(place, model, area, "moved");
    free(model);
}

static int compare_words(const void *left, const void *right) {
    uint32_t a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return a < b ? -1 : a > b;
}

/* Two pools of elements of an odd size, compared by their first four bytes. Some elements cross a border. */
static void sorts(uint64_t *state) {
    const size_t width = 5, count = least(2 * pool_bytes() / width, 200000);
    unsigned char *elements = own + 3;
    uint64_t sum = 0;
    uint32_t word, before = 0;
    for (size_t i = 0; i < count; ++i) {
        word = (uint32_t)random_word(state);
        memcpy(elements + i * width, &word, sizeof word);
        sum += word;
    }
    qsort(elements, count, width, compare_words);
    for (size_t i = 0; i < count; ++i) {
        memcpy(&word, elements + i * width, sizeof word);
        CHECK(word >= before);
        before = word, sum -= word;
    }
    CHECK_EQ(sum, 0);
    for (size_t i = 0; i < 1000; ++i) {
        const unsigned char *any = elements + random_below(state, count) * width;
        const void *found = bsearch(any, elements, count, width, compare_words);
        CHECK(found != NULL && compare_words(found, any) == 0);
    }
}

int main(int argc, char **argv) {
    own_bytes = 8 * pool_bytes();
    start(&argc, &argv, own_bytes);
    me = vgasnet_mynode();
    own = (unsigned char *)at(me, 0);
    uint64_t state = mixed(21, me, 0);
    strings(&state);
    searches(&state);
    moves(&state);
    sorts(&state);
    /* The next rank gets the bytes written by the C library. */
    barrier();
    vgasnet_node_t next = (me + 1) % vgasnet_nodes();
    unsigned char *got = (unsigned char *)allocate(own_bytes);
    memset(own, (int)me + 1, own_bytes);
    barrier();
    vgasnet_get(got, next, at(next, 0), own_bytes);
    CHECK(got[0] == next + 1 && memcmp(got, got + 1, own_bytes - 1) == 0);
    free(got);
    return finish();
}
