/* Chapter "Job Control Interface", segments: a node's own loads and stores at any address of a segment larger than
 * its memory, next to other nodes' transfers and to handlers' loads and stores. */
#include "client.h"

enum { SUM = 200, SUM_REPLY, BLOCKS = 40 };

static gasnet_hsl_t lock = GASNET_HSL_INITIALIZER;
static uint64_t sums, answers;

/* The handler reads the bytes itself. They may not be in memory. */
static void on_sum(gasnet_token_t token, gasnet_handlerarg_t offset, gasnet_handlerarg_t len) {
    const unsigned char *bytes = (const unsigned char *)at(me, (uintptr_t)offset);
    gasnet_handlerarg_t sum = 0, i;
    for (i = 0; i < len; ++i) sum += bytes[i];
    CHECK(gasnet_AMReplyShort1(token, SUM_REPLY, sum) == GASNET_OK);
}

static void on_sum_reply(gasnet_token_t token, gasnet_handlerarg_t sum) {
    (void)token;
    gasnet_hsl_lock(&lock);
    sums += (uint64_t)sum;
    ++answers;
    gasnet_hsl_unlock(&lock);
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {HANDLER(SUM, on_sum), HANDLER(SUM_REPLY, on_sum_reply)};
    uintptr_t size, step, i, block;
    uint64_t expected = 0;
    unsigned char *mine, buffer[100];
    start(&argc, &argv, table, 2);
    size = segments[me].size, step = size / BLOCKS / 8 * 8;
    mine = (unsigned char *)at(me, 0);

    for (i = 0; i < size; i += 4093) CHECK(mine[i] == 0);
    barrier();
    for (i = 0; i < size; ++i) mine[i] = byte_of(me, i);
    barrier();
    for (block = 0; block < BLOCKS; ++block) {
        uintptr_t offset = block * step;
        gasnet_get(buffer, next_node(), at(next_node(), offset), sizeof buffer);
        compare(buffer, sizeof buffer, next_node(), offset);
        CHECK(gasnet_AMRequestShort2(previous_node(), SUM, (gasnet_handlerarg_t)offset, (int)sizeof buffer) == GASNET_OK);
        for (i = 0; i < sizeof buffer; ++i) expected += byte_of(previous_node(), offset + i);
    }
    GASNET_BLOCKUNTIL(answers == BLOCKS);
    CHECK(sums == expected);
    barrier();

    /* Loads see another node's puts, and the adjacent bytes are unchanged. */
    for (block = 0; block < BLOCKS; ++block) {
        fill(buffer, sizeof buffer, me, block);
        gasnet_put_bulk(next_node(), at(next_node(), block * step + 1), buffer, sizeof buffer);
    }
    barrier();
    for (block = 0; block < BLOCKS; ++block) {
        compare(mine + block * step + 1, sizeof buffer, previous_node(), block);
        CHECK(mine[block * step] == byte_of(me, block * step));
        CHECK(mine[block * step + 101] == byte_of(me, block * step + 101));
    }
    return finish();
}
