/* Explicit handles: more than 65,535 operations in flight, synced in any order by all sync functions. */
#include "check.h"

#define IN_FLIGHT 70000
#define STRIPES 16

static uint64_t words[IN_FLIGHT];
static uint64_t got[IN_FLIGHT];
static vgasnet_handle_t handles[IN_FLIGHT];
static vgasnet_node_t me, ranks;
static uint64_t state;

/* The place of word i of this rank. Words of all ranks are adjacent. The words of one rank are spread over the
 * segments and their pages, so that hardly any finds its page in a small pool. */
static vgasnet_node_t rank_of(size_t i) { return (vgasnet_node_t)((i + me) % ranks); }
static uintptr_t stripe_bytes(void) {
    uintptr_t least = (IN_FLIGHT / STRIPES + 1) * (uintptr_t)ranks * 8;
    return (least + page_bytes() - 1) / page_bytes() * page_bytes();
}
static void *place_of(size_t i) {
    return at(rank_of(i), i % STRIPES * stripe_bytes() + (i / STRIPES * ranks + me) * 8);
}

static size_t valid(const vgasnet_handle_t *array, size_t count) {
    size_t found = 0;
    for (size_t i = 0; i < count; ++i) found += array[i] != VGASNET_INVALID_HANDLE;
    return found;
}

/* Syncs a part of the array by a random function. Handles of incomplete operations stay in the array. */
static void sync_some(vgasnet_handle_t *array, size_t count) {
    size_t before = valid(array, count), one = (size_t)random_below(&state, count);
    int answer;
    switch (random_below(&state, 6)) {
    case 0:
        vgasnet_wait_syncnb(array[one]);
        array[one] = VGASNET_INVALID_HANDLE;
        break;
    case 1:
        answer = vgasnet_try_syncnb(array[one]);
        CHECK(answer == VGASNET_OK || (answer == VGASNET_ERR_NOT_READY && array[one] != VGASNET_INVALID_HANDLE));
        if (answer == VGASNET_OK) array[one] = VGASNET_INVALID_HANDLE;
        break;
    case 2:
        vgasnet_wait_syncnb_all(array, count);
        CHECK_EQ(valid(array, count), 0);
        break;
    case 3:
        answer = vgasnet_try_syncnb_all(array, count);
        CHECK_EQ(answer, valid(array, count) == 0 ? VGASNET_OK : VGASNET_ERR_NOT_READY);
        break;
    case 4:
        vgasnet_wait_syncnb_some(array, count);
        CHECK(before == 0 || valid(array, count) < before);
        break;
    default:
        answer = vgasnet_try_syncnb_some(array, count);
        CHECK_EQ(answer, before == 0 || valid(array, count) < before ? VGASNET_OK : VGASNET_ERR_NOT_READY);
    }
}

/* Arrays with many invalid handles, until all are invalid. */
static void sync_all_in_any_order(void) {
    for (int i = 0; i < 2000; ++i) {
        size_t count = 1 + (size_t)random_below(&state, i % 50 == 0 ? 5000 : 30);
        sync_some(handles + random_below(&state, IN_FLIGHT - count + 1), count);
    }
    for (size_t i = 0; i < IN_FLIGHT; i += 2) {
        size_t other = (size_t)random_below(&state, IN_FLIGHT);
        vgasnet_wait_syncnb(handles[other]);
        handles[other] = VGASNET_INVALID_HANDLE;
    }
    vgasnet_wait_syncnb_all(handles, IN_FLIGHT);
    CHECK_EQ(valid(handles, IN_FLIGHT), 0);
}

/* Handles of no operation. */
static void nothing_to_sync(void) {
    vgasnet_handle_t none[3] = {VGASNET_INVALID_HANDLE, VGASNET_INVALID_HANDLE, VGASNET_INVALID_HANDLE};
    unsigned char zeros[sizeof none] = {0};
    CHECK(memcmp(none, zeros, sizeof none) == 0);
    vgasnet_wait_syncnb(VGASNET_INVALID_HANDLE);
    CHECK(vgasnet_try_syncnb(VGASNET_INVALID_HANDLE) == VGASNET_OK);
    for (size_t count = 0; count <= 3; count += 3) {
        vgasnet_handle_t *array = count == 0 ? NULL : none;
        vgasnet_wait_syncnb_all(array, count);
        vgasnet_wait_syncnb_some(array, count);
        CHECK(vgasnet_try_syncnb_all(array, count) == VGASNET_OK);
        CHECK(vgasnet_try_syncnb_some(array, count) == VGASNET_OK);
    }
}

static vgasnet_handle_t start_put(size_t i) {
    switch (random_below(&state, 3)) {
    case 0:
        return vgasnet_put_nb_bulk(rank_of(i), place_of(i), &words[i], 8);
    case 1:
        return vgasnet_put_nb(rank_of(i), place_of(i), &words[i], 8);
    default:
        return vgasnet_put_nb_val(rank_of(i), place_of(i), words[i], 8);
    }
}

static vgasnet_handle_t start_get(size_t i) {
    return i % 2 == 0 ? vgasnet_get_nb_bulk(&got[i], rank_of(i), place_of(i), 8)
                      : vgasnet_get_nb(&got[i], rank_of(i), place_of(i), 8);
}

int main(int argc, char **argv) {
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) return 1;
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    CHECK(vgasnet_attach(NULL, 0, STRIPES * stripe_bytes(), 0) == VGASNET_OK);
    state = mixed(3, me, ranks);
    nothing_to_sync();
    random_bytes(&state, (unsigned char *)words, sizeof words);
    for (size_t i = 0; i < IN_FLIGHT; ++i) handles[i] = start_put(i);
    sync_all_in_any_order();
    for (size_t i = IN_FLIGHT; i-- > 0;) handles[i] = start_get(i);
    sync_all_in_any_order();
    CHECK(memcmp(got, words, sizeof got) == 0);
    return finish();
}
