/* Blocking gets and puts of all lengths and alignments, from every rank to every rank, across page borders. Each
 * rank writes its own area in every segment. The areas are adjacent and share pages. A seed determines a rank's
 * operations, so every other rank can repeat them in its own memory and compare. */
#include "check.h"

#define OPERATIONS 120

static size_t area_bytes;
static unsigned char *model;
static unsigned char *buffer;

static void *area(vgasnet_node_t target, vgasnet_node_t writer, size_t offset) {
    return at(target, writer * area_bytes + offset);
}

/* Puts through one of the put functions. */
static void put_somehow(uint64_t *state, vgasnet_node_t target, vgasnet_node_t writer, size_t offset, size_t len) {
    vgasnet_register_value_t value = 0;
    void *there = area(target, writer, offset);
    if (len >= 1 && len <= 8 && random_below(state, 2) == 0) {
        for (size_t i = len; i-- > 0;) value = value << 8 | model[offset + i];
        vgasnet_put_val(target, there, value, len);
    } else if (random_below(state, 2) == 0) {
        vgasnet_put(target, there, model + offset, len);
    } else {
        vgasnet_put_bulk(target, there, model + offset, len);
    }
}

static void get_and_compare(vgasnet_node_t target, vgasnet_node_t writer, size_t offset, size_t len) {
    memset(buffer, 0xee, len + 1);
    if (len % 2 == 0) {
        vgasnet_get(buffer, target, area(target, writer, offset), len);
    } else {
        vgasnet_get_bulk(buffer, target, area(target, writer, offset), len);
    }
    check_bytes(buffer, model + offset, len, "get");
    CHECK_EQ(buffer[len], 0xee);
}

/* Repeats all operations of the writer on its area of the target: in the model, and at the writer in the segment,
 * too. */
static void play(vgasnet_node_t target, vgasnet_node_t writer, int for_real) {
    uint64_t content = mixed(1, target, writer), choice = content + 1, other = content + 2;
    memset(model, 0, area_bytes);
    for (int i = 0; i < OPERATIONS; ++i) {
        size_t len = random_length(&choice, area_bytes / 2);
        size_t offset = (size_t)random_below(&choice, area_bytes - len + 1);
        random_bytes(&content, model + offset, len);
        if (!for_real) continue;
        put_somehow(&other, target, writer, offset, len);
        if (random_below(&other, 3) == 0) get_and_compare(target, writer, offset, len);
    }
}

/* Every length up to 20 at every place around a page border that lies inside the writer's area. */
static void around_a_border(vgasnet_node_t target, vgasnet_node_t writer) {
    size_t page = page_bytes();
    size_t border = page - writer * area_bytes % page;
    uint64_t state = mixed(2, target, writer);
    memset(model, 0, area_bytes);
    for (size_t len = 1; len <= 20; ++len) {
        for (size_t offset = border - len - 1; offset <= border + 1; ++offset) {
            random_bytes(&state, model + offset, len);
            put_somehow(&state, target, writer, offset, len);
            get_and_compare(target, writer, offset - 1, len + 2);
        }
    }
}

int main(int argc, char **argv) {
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) return 1;
    area_bytes = 2 * page_bytes() + 4321;
    CHECK(vgasnet_attach(NULL, 0, vgasnet_nodes() * area_bytes, 0) == VGASNET_OK);
    vgasnet_node_t me = vgasnet_mynode(), ranks = vgasnet_nodes();
    model = (unsigned char *)allocate(area_bytes);
    buffer = (unsigned char *)allocate(area_bytes);
    for (vgasnet_node_t i = 0; i < ranks; ++i) {
        around_a_border((me + i) % ranks, me);
        vgasnet_memset((me + i) % ranks, area((me + i) % ranks, me, 0), 0, area_bytes);
        play((me + i) % ranks, me, 1);
    }
    barrier();
    for (vgasnet_node_t target = 0; target < ranks; ++target) {
        for (vgasnet_node_t i = 0; i < ranks; ++i) {
            play(target, (me + i) % ranks, 0);
            get_and_compare(target, (me + i) % ranks, 0, area_bytes);
        }
    }
    return finish();
}
