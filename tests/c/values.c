/* Values of 1 to 8 bytes and memsets, in all forms. */
#include "check.h"

#define GETS 1000

static vgasnet_node_t me, ranks;

/* The low-order bytes of a value. */
static uint64_t low(uint64_t value, size_t len) { return len == 8 ? value : value & ((UINT64_C(1) << 8 * len) - 1); }

/* A value between two bytes that must not change. */
static void put_one(uint64_t form, vgasnet_node_t target, uintptr_t offset, uint64_t value, size_t len) {
    unsigned char around[10];
    vgasnet_memset(target, at(target, offset - 1), 0xaa, len + 2);
    if (form == 0) vgasnet_put_val(target, at(target, offset), value, len);
    if (form == 1) vgasnet_wait_syncnb(vgasnet_put_nb_val(target, at(target, offset), value, len));
    if (form == 2) {
        vgasnet_put_nbi_val(target, at(target, offset), value, len);
        vgasnet_wait_syncnbi_puts();
    }
    vgasnet_get(around, target, at(target, offset - 1), len + 2);
    CHECK_EQ(around[0], 0xaa);
    CHECK_EQ(around[len + 1], 0xaa);
    CHECK_EQ(vgasnet_get_val(target, at(target, offset), len), low(value, len));
    CHECK_EQ(vgasnet_wait_syncnb_valget(vgasnet_get_nb_val(target, at(target, offset), len)), low(value, len));
}

/* The bytes equal an integer of this size. */
static void native_integers(uintptr_t base) {
    uint16_t two = 0x1234;
    uint32_t four = 0x12345678;
    vgasnet_put(me, at(me, base), &two, sizeof two);
    CHECK_EQ(vgasnet_get_val(me, at(me, base), sizeof two), two);
    vgasnet_put_val(me, at(me, base), UINT64_C(0xffffffff9abcdef0), sizeof four);
    vgasnet_get(&four, me, at(me, base), sizeof four);
    CHECK_EQ(four, 0x9abcdef0);
}

static void memsets(uint64_t *state, vgasnet_node_t target, uintptr_t base, size_t len) {
    unsigned char *model = (unsigned char *)allocate(len), *got = (unsigned char *)allocate(len);
    vgasnet_memset(target, at(target, base), 0, len);
    for (int i = 0; i < 60; ++i) {
        size_t part = random_length(state, len);
        size_t offset = (size_t)random_below(state, len - part + 1);
        /* Only the low-order byte counts, as for memset. */
        int value = (int)random_below(state, 1000) - 500;
        memset(model + offset, value, part);
        if (i % 3 == 0) vgasnet_memset(target, at(target, base + offset), value, part);
        if (i % 3 == 1) vgasnet_wait_syncnb(vgasnet_memset_nb(target, at(target, base + offset), value, part));
        if (i % 3 == 2) {
            vgasnet_memset_nbi(target, at(target, base + offset), value, part);
            vgasnet_wait_syncnbi_puts();
        }
    }
    vgasnet_get(got, target, at(target, base), len);
    check_bytes(got, model, len, "memset");
    free(model);
    free(got);
}

/* Many gets by value in flight, synced in another order. */
static void many_gets(uint64_t *state, vgasnet_node_t target, uintptr_t base, size_t len) {
    vgasnet_valget_handle_t handles[GETS];
    uint64_t expected[GETS];
    size_t sizes[GETS];
    unsigned char *model = (unsigned char *)allocate(len);
    random_bytes(state, model, len);
    vgasnet_put(target, at(target, base), model, len);
    for (size_t i = 0; i < GETS; ++i) {
        size_t offset = (size_t)random_below(state, len - 8);
        sizes[i] = 1 + (size_t)random_below(state, 8);
        memcpy(&expected[i], model + offset, 8);
        expected[i] = low(expected[i], sizes[i]);
        handles[i] = vgasnet_get_nb_val(target, at(target, base + offset), sizes[i]);
    }
    for (size_t i = GETS; i-- > 0;) {
        size_t other = (size_t)random_below(state, i + 1);
        CHECK_EQ(vgasnet_wait_syncnb_valget(handles[other]), expected[other]);
        handles[other] = handles[i];
        expected[other] = expected[i];
    }
    free(model);
}

int main(int argc, char **argv) {
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) return 1;
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    size_t area = page_bytes() + 1000;
    CHECK(vgasnet_attach(NULL, 0, (ranks + 1) * area, 0) == VGASNET_OK);
    CHECK_EQ(SIZEOF_VGASNET_REGISTER_VALUE_T, sizeof(vgasnet_register_value_t));
    uint64_t state = mixed(5, me, 0);
    for (vgasnet_node_t i = 0; i < ranks; ++i) {
        vgasnet_node_t target = (me + i) % ranks;
        uintptr_t base = me * area, border = (base / page_bytes() + 1) * page_bytes();
        for (size_t len = 1; len <= 8; ++len)
            for (uint64_t form = 0; form < 3; ++form)
                for (size_t before = 0; before <= len; ++before)
                    put_one(form, target, border - before, random_word(&state), len);
        memsets(&state, target, base, area);
        many_gets(&state, target, base, area);
    }
    native_integers(me * area);
    return finish();
}
