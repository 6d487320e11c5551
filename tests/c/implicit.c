/* Implicit handles, access regions, and sources that are used again at once. */
#include "check.h"

#define BLOCKS 300

static vgasnet_node_t me, ranks;
static size_t block_bytes;
static unsigned char *sent, *got, *source;

/* Block i of this rank is in the next rank's segment, at an odd address. */
static vgasnet_node_t target(void) { return (me + 1) % ranks; }
static void *place(size_t i) { return at(target(), 1 + i * block_bytes); }

static void new_blocks(uint64_t round) {
    uint64_t state = mixed(4, me, round);
    random_bytes(&state, sent, BLOCKS * block_bytes);
    memset(got, 0xee, BLOCKS * block_bytes);
}

static void compare(const char *what) { check_bytes(got, sent, BLOCKS * block_bytes, what); }

static void puts_and_gets(void) {
    new_blocks(1);
    for (size_t i = 0; i < BLOCKS; ++i) vgasnet_put_nbi_bulk(target(), place(i), sent + i * block_bytes, block_bytes);
    vgasnet_wait_syncnbi_gets();
    vgasnet_wait_syncnbi_puts();
    for (size_t i = 0; i < BLOCKS; ++i) {
        if (i % 2 == 0) {
            vgasnet_get_nbi(got + i * block_bytes, target(), place(i), block_bytes);
        } else {
            vgasnet_get_nbi_bulk(got + i * block_bytes, target(), place(i), block_bytes);
        }
    }
    vgasnet_wait_syncnbi_puts();
    vgasnet_wait_syncnbi_gets();
    compare("nbi");
}

/* Gets and puts in flight together, synced by tries. */
static void tries(void) {
    memset(got, 0xee, BLOCKS * block_bytes);
    for (size_t i = 0; i < BLOCKS; ++i) {
        vgasnet_get_nbi_bulk(got + i * block_bytes, target(), place(i), block_bytes);
        vgasnet_put_nbi_val(target(), at(target(), 1 + BLOCKS * block_bytes + i), i, 1);
    }
    while (vgasnet_try_syncnbi_gets() == VGASNET_ERR_NOT_READY) {}
    compare("nbi and try");
    while (vgasnet_try_syncnbi_puts() == VGASNET_ERR_NOT_READY) {}
    CHECK(vgasnet_try_syncnbi_all() == VGASNET_OK);
    for (size_t i = 0; i < BLOCKS; ++i)
        CHECK_EQ(vgasnet_get_val(target(), at(target(), 1 + BLOCKS * block_bytes + i), 1), i & 0xff);
    vgasnet_get_nbi_bulk(got, target(), place(0), block_bytes);
    vgasnet_put_nbi_val(target(), at(target(), 0), 1, 1);
    while (vgasnet_try_syncnbi_all() == VGASNET_ERR_NOT_READY) {}
}

/* The source is overwritten as soon as a put with this permission returns. The library has no room for copies of all
 * sources. */
static void sources_used_again(void) {
    vgasnet_handle_t handles[BLOCKS];
    new_blocks(2);
    for (size_t i = 0; i < BLOCKS; ++i) {
        memcpy(source, sent + i * block_bytes, block_bytes);
        handles[i] = VGASNET_INVALID_HANDLE;
        if (i % 2 == 0) {
            handles[i] = vgasnet_put_nb(target(), place(i), source, block_bytes);
        } else {
            vgasnet_put_nbi(target(), place(i), source, block_bytes);
        }
        memset(source, 0x55, block_bytes);
    }
    vgasnet_wait_syncnb_all(handles, BLOCKS);
    vgasnet_wait_syncnbi_all();
    vgasnet_get(got, target(), place(0), BLOCKS * block_bytes);
    compare("source used again");
}

/* The handle of a region syncs the operations of the region. The implicit syncs cover the operations from before it. */
static void regions(void) {
    vgasnet_handle_t handles[3];
    new_blocks(3);
    for (size_t i = 0; i < 10; ++i) vgasnet_put_nbi_bulk(target(), place(i), sent + i * block_bytes, block_bytes);
    for (size_t region = 0; region < 2; ++region) {
        vgasnet_begin_nbi_accessregion();
        for (size_t i = 10 + region; i < BLOCKS; i += 2)
            vgasnet_put_nbi_bulk(target(), place(i), sent + i * block_bytes, block_bytes);
        vgasnet_wait_syncnb(vgasnet_put_nb_val(target(), at(target(), 0), region, 1));
        handles[region] = vgasnet_end_nbi_accessregion();
    }
    vgasnet_begin_nbi_accessregion();
    handles[2] = vgasnet_end_nbi_accessregion();
    vgasnet_wait_syncnbi_all();
    vgasnet_wait_syncnb(handles[2]);
    handles[2] = VGASNET_INVALID_HANDLE;
    vgasnet_wait_syncnb_all(handles, 3);
    vgasnet_begin_nbi_accessregion();
    for (size_t i = 0; i < BLOCKS; ++i) vgasnet_get_nbi_bulk(got + i * block_bytes, target(), place(i), block_bytes);
    handles[0] = vgasnet_end_nbi_accessregion();
    while (vgasnet_try_syncnb(handles[0]) == VGASNET_ERR_NOT_READY) {}
    compare("region");
}

int main(int argc, char **argv) {
    block_bytes = 64 * 1024 + 77;
    start(&argc, &argv, (BLOCKS + 1) * block_bytes);
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    sent = (unsigned char *)allocate(BLOCKS * block_bytes);
    got = (unsigned char *)allocate(BLOCKS * block_bytes);
    source = (unsigned char *)allocate(block_bytes);
    CHECK(vgasnet_try_syncnbi_all() == VGASNET_OK);
    vgasnet_wait_syncnbi_all();
    puts_and_gets();
    tries();
    sources_used_again();
    regions();
    return finish();
}
