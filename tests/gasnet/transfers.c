/* Chapter "Extended API": transfers in all forms, their syncs, and access regions. */
#include "client.h"

enum { COUNT = 60, MOST = 3000 };

static unsigned char out[COUNT][MOST], in[COUNT][MOST];
static gasnet_handle_t handles[COUNT];

static size_t length(unsigned i) { return i % 7 == 6 ? MOST - i : (i * 97) % 400; }

/* The place of the i-th block in a node's segment: spread over all of it, at any alignment. */
static uintptr_t offset(gasnet_node_t node, unsigned i) { return (segments[node].size - MOST) / COUNT * i + i % 5; }

static void fill_all(unsigned salt) {
    unsigned i;
    for (i = 0; i < COUNT; ++i) fill(out[i], length(i), me, i + salt);
}

/* This node's puts to its neighbour have arrived. */
static void verify(unsigned salt) {
    unsigned i;
    for (i = 0; i < COUNT; ++i) {
        memset(in[i], 0xaa, MOST);
        gasnet_get_bulk(in[i], next_node(), at(next_node(), offset(next_node(), i)), length(i));
        compare(in[i], length(i), me, i + salt);
        CHECK(in[i][length(i)] == 0xaa);
    }
}

static void *there(unsigned i) { return at(next_node(), offset(next_node(), i)); }

static void blocking(void) {
    unsigned i;
    unsigned char value;
    fill_all(1);
    for (i = 0; i < COUNT; ++i) {
        if (i % 2) gasnet_put(next_node(), there(i), out[i], length(i));
        else gasnet_put_bulk(next_node(), there(i), out[i], length(i));
    }
    verify(1);
    gasnet_memset(next_node(), there(3), 0x1ff, 100);
    gasnet_get(&value, next_node(), (char *)there(3) + 99, 1);
    CHECK(value == 0xff);
}

/* Explicit handles, synced in all ways. */
static void explicit_handles(void) {
    unsigned i;
    fill_all(2);
    for (i = 0; i < COUNT; ++i) {
        handles[i] = i % 2 ? gasnet_put_nb(next_node(), there(i), out[i], length(i))
                           : gasnet_put_nb_bulk(next_node(), there(i), out[i], length(i));
        if (i % 2) memset(out[i], 0, MOST); /* put_nb has copied them */
    }
    for (i = 0; i < 10; ++i) gasnet_wait_syncnb(handles[i]), handles[i] = GASNET_INVALID_HANDLE;
    for (; i < 20; ++i) {
        while (gasnet_try_syncnb(handles[i]) != GASNET_OK) continue;
        handles[i] = GASNET_INVALID_HANDLE;
    }
    for (; i < 30; ++i) {
        while (gasnet_try_syncnb_nopoll(handles[i]) == GASNET_ERR_NOT_READY) gasnet_AMPoll();
        handles[i] = GASNET_INVALID_HANDLE;
    }
    gasnet_wait_syncnb_some(handles, COUNT);
    while (gasnet_try_syncnb_some(handles + 30, 10) != GASNET_OK) continue;
    while (gasnet_try_syncnb_some_nopoll(handles + 30, 10) != GASNET_OK) gasnet_AMPoll();
    while (gasnet_try_syncnb_all(handles, 50) != GASNET_OK) continue;
    while (gasnet_try_syncnb_all_nopoll(handles, 55) != GASNET_OK) gasnet_AMPoll();
    gasnet_wait_syncnb_all(handles, COUNT);
    for (i = 0; i < COUNT; ++i) CHECK(handles[i] == GASNET_INVALID_HANDLE);
    gasnet_wait_syncnb_all(NULL, 0);
    gasnet_wait_syncnb(GASNET_INVALID_HANDLE);
    CHECK(gasnet_try_syncnb(GASNET_INVALID_HANDLE) == GASNET_OK && gasnet_try_syncnb_all(handles, 3) == GASNET_OK);
    fill_all(2);
    verify(2);
    for (i = 0; i < COUNT; ++i) {
        memset(in[i], 0, MOST);
        handles[i] = i % 2 ? gasnet_get_nb(in[i], next_node(), there(i), length(i))
                           : gasnet_get_nb_bulk(in[i], next_node(), there(i), length(i));
    }
    gasnet_wait_syncnb_all(handles, COUNT);
    for (i = 0; i < COUNT; ++i) compare(in[i], length(i), me, i + 2);
    gasnet_wait_syncnb(gasnet_memset_nb(next_node(), there(5), 7, 10));
    gasnet_get(in[0], next_node(), there(5), 10);
    for (i = 0; i < 10; ++i) CHECK(in[0][i] == 7);
}

static void implicit_handles(void) {
    unsigned i;
    fill_all(3);
    for (i = 0; i < COUNT; ++i) {
        if (i % 2) gasnet_put_nbi(next_node(), there(i), out[i], length(i));
        else gasnet_put_nbi_bulk(next_node(), there(i), out[i], length(i));
    }
    gasnet_wait_syncnbi_puts();
    verify(3);
    for (i = 0; i < COUNT; ++i) {
        if (i % 2) gasnet_get_nbi(in[i], next_node(), there(i), length(i));
        else gasnet_get_nbi_bulk(in[i], next_node(), there(i), length(i));
    }
    while (gasnet_try_syncnbi_gets() != GASNET_OK) continue;
    CHECK(gasnet_try_syncnbi_gets_nopoll() == GASNET_OK && gasnet_try_syncnbi_puts_nopoll() == GASNET_OK);
    for (i = 0; i < COUNT; ++i) compare(in[i], length(i), me, i + 3);
    gasnet_memset_nbi(next_node(), there(8), 9, 20);
    while (gasnet_try_syncnbi_puts() != GASNET_OK) continue;
    while (gasnet_try_syncnbi_all_nopoll() != GASNET_OK) gasnet_AMPoll();
    CHECK(gasnet_try_syncnbi_all() == GASNET_OK);
    gasnet_wait_syncnbi_gets();
    gasnet_wait_syncnbi_all();
    gasnet_get(in[0], next_node(), there(8), 20);
    for (i = 0; i < 20; ++i) CHECK(in[0][i] == 9);
}

static void regions(void) {
    unsigned i;
    gasnet_handle_t region, other;
    fill_all(4);
    gasnet_begin_nbi_accessregion();
    for (i = 0; i < COUNT; ++i) gasnet_put_nbi_bulk(next_node(), there(i), out[i], length(i));
    other = gasnet_get_nb_bulk(in[0], next_node(), there(0), 8);
    region = gasnet_end_nbi_accessregion();
    gasnet_wait_syncnbi_all();
    gasnet_wait_syncnb(region);
    gasnet_wait_syncnb(other);
    verify(4);
    gasnet_begin_nbi_accessregion();
    gasnet_wait_syncnb(gasnet_end_nbi_accessregion());
}

/* More than a client may rely on. */
static void many(void) {
    enum { IN_FLIGHT = 70000 };
    gasnet_handle_t *lots = (gasnet_handle_t *)calloc(IN_FLIGHT, sizeof *lots);
    unsigned i;
    CHECK(lots != NULL);
    for (i = 0; i < IN_FLIGHT; ++i) lots[i] = gasnet_get_nb_bulk(in[0], next_node(), there(i % COUNT), 1);
    gasnet_wait_syncnb_all(lots, IN_FLIGHT);
    free(lots);
}

int main(int argc, char **argv) {
    start(&argc, &argv, NULL, 0);
    blocking();
    explicit_handles();
    implicit_handles();
    regions();
    many();
    return finish();
}
