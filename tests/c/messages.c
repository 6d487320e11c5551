/* Messages through segments: a put of data, then a put of a flag. A rank that gets the flag must get the data. Each
 * rank sends to the next. The places of data and flag and the kind of put change with each round. */
#include <sched.h>

#include "check.h"

#define ROUNDS 40

static vgasnet_node_t me, ranks;
static size_t room;
static unsigned char *bytes, *got;

/* Homes, places and contents of a sender's message in a round. */
struct message {
    vgasnet_node_t data_home, flag_home, reader_flag_home;
    uintptr_t data, flag, reader_flag;
    size_t len;
    uint64_t content;
};

static struct message message_of(vgasnet_node_t sender, uint64_t round) {
    struct message message;
    uint64_t state = mixed(6, sender, round);
    uintptr_t area = sender * room;
    message.data_home = (vgasnet_node_t)random_below(&state, ranks);
    message.flag_home = (vgasnet_node_t)random_below(&state, ranks);
    message.reader_flag_home = (vgasnet_node_t)random_below(&state, ranks);
    message.len = random_length(&state, room - 64);
    message.data = area + (size_t)random_below(&state, room - 64 - message.len + 1);
    /* A flag's value is the number of the round. Each round has its own flag in each of four places of an area. */
    message.flag = area + room - 64 + 8 * (round % 4);
    message.reader_flag = area + room - 32 + 8 * (round % 4);
    message.content = random_word(&state);
    return message;
}

static void await(vgasnet_node_t home, uintptr_t flag, uint64_t round) {
    /* Ranks may outnumber cores. */
    for (int polls = 1; vgasnet_get_val(home, at(home, flag), 8) != round; ++polls)
        if (polls % 1000 == 0) sched_yield();
}

static void send(uint64_t round) {
    struct message message = message_of(me, round);
    uint64_t state = message.content;
    void *there = at(message.data_home, message.data);
    random_bytes(&state, bytes, message.len);
    if (round % 3 == 0) vgasnet_put(message.data_home, there, bytes, message.len);
    if (round % 3 == 1) vgasnet_wait_syncnb(vgasnet_put_nb_bulk(message.data_home, there, bytes, message.len));
    if (round % 3 == 2) {
        vgasnet_put_nbi(message.data_home, there, bytes, message.len);
        vgasnet_wait_syncnbi_puts();
    }
    vgasnet_put_val(message.flag_home, at(message.flag_home, message.flag), round, 8);
}

static void receive(vgasnet_node_t sender, uint64_t round) {
    struct message message = message_of(sender, round);
    uint64_t state = message.content;
    await(message.flag_home, message.flag, round);
    vgasnet_get(got, message.data_home, at(message.data_home, message.data), message.len);
    random_bytes(&state, bytes, message.len);
    check_bytes(got, bytes, message.len, "message");
    vgasnet_put_val(message.reader_flag_home, at(message.reader_flag_home, message.reader_flag), round, 8);
}

int main(int argc, char **argv) {
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) return 1;
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    room = page_bytes() + 5000;
    CHECK(vgasnet_attach(NULL, 0, ranks * room, 0) == VGASNET_OK);
    bytes = (unsigned char *)allocate(room);
    got = (unsigned char *)allocate(room);
    for (uint64_t round = 1; round <= ROUNDS; ++round) {
        send(round);
        receive((me + ranks - 1) % ranks, round);
        struct message own = message_of(me, round);
        await(own.reader_flag_home, own.reader_flag, round);
    }
    return finish();
}
