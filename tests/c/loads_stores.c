/* Segments of eight pools: each rank loads from and stores to its own, while the others get from it and put to it.
 * Segments are cut into chunks that share pages. A seed determines the writer of each chunk in a round, so every
 * rank knows the bytes of all chunks. In a round a chunk has one writer, or any readers. */
#include "local.h"

#define ROUNDS 6

static vgasnet_node_t me, ranks;
static size_t chunk_bytes, chunks;
/* The round of the last write to a chunk. 0: never written, so it is zeros. */
static uint64_t *written_in;
static unsigned char *model;
/* A place in the own segment, after all chunks, as the local side of gets and puts. */
static unsigned char *scratch;

static unsigned char *chunk_at(vgasnet_node_t target, size_t chunk) {
    return (unsigned char *)at(target, chunk * chunk_bytes);
}

/* The writer of a chunk in a round. Values from `ranks` on mean none. */
static vgasnet_node_t writer_of(vgasnet_node_t target, size_t chunk, uint64_t round) {
    return (vgasnet_node_t)(mixed(20 + target, chunk, round) % (2 * ranks));
}

static void model_chunk(vgasnet_node_t target, size_t chunk, uint64_t round) {
    uint64_t state = mixed(40 + target, chunk, round);
    memset(model, 0, chunk_bytes);
    if (round > 0) random_bytes(&state, model, chunk_bytes);
}

/* Stores a chunk in pieces of all sizes: a random half of them first, then the others. */
static void store_chunk(uint64_t *state, unsigned char *chunk) {
    for (uint64_t half = 0, seed = *state; half < 2; ++half) {
        *state = seed;
        for (size_t offset = 0, len; offset < chunk_bytes; offset += len) {
            uint64_t choice = random_word(state);
            int is_long = choice % 64 == 0;
            len = least(is_long ? random_length(state, chunk_bytes) + 1 : 1 + choice / 64 % PIECE_MAX,
                        chunk_bytes - offset);
            if ((choice >> 32) % 2 != half) continue;
            if (!is_long) copy_piece(chunk + offset, model + offset, len);
            if (is_long && choice >> 63 == 0) memcpy(chunk + offset, model + offset, len);
            if (is_long && choice >> 63 == 1) memmove(chunk + offset, model + offset, len);
        }
    }
}

static void load_chunk(uint64_t *state, const unsigned char *chunk) {
    unsigned char piece[PIECE_MAX];
    if (random_below(state, 2) == 0) {
        check_bytes(chunk, model, chunk_bytes, "loaded by memcmp");
        return;
    }
    for (size_t offset = 0, len; offset < chunk_bytes; offset += len) {
        len = least(1 + (size_t)random_below(state, PIECE_MAX), chunk_bytes - offset);
        copy_piece(piece, chunk + offset, len);
        check_bytes(piece, model + offset, len, "loaded in pieces");
    }
}

/* From ordinary memory, or from the own segment. */
static void put_chunk(uint64_t *state, vgasnet_node_t target, size_t chunk) {
    uint64_t form = random_below(state, 3);
    if (form == 0) {
        vgasnet_put(target, chunk_at(target, chunk), model, chunk_bytes);
        return;
    }
    memcpy(scratch, model, chunk_bytes);
    if (form == 1) vgasnet_put_bulk(target, chunk_at(target, chunk), scratch, chunk_bytes);
    if (form == 2) vgasnet_wait_syncnb(vgasnet_put_nb(target, chunk_at(target, chunk), scratch, chunk_bytes));
}

static void get_chunk(uint64_t *state, vgasnet_node_t target, size_t chunk) {
    uint64_t form = random_below(state, 2);
    memset(scratch, 0xee, chunk_bytes);
    if (form == 0) vgasnet_get(scratch, target, chunk_at(target, chunk), chunk_bytes);
    if (form == 1) {
        vgasnet_get_nbi_bulk(scratch, target, chunk_at(target, chunk), chunk_bytes);
        vgasnet_wait_syncnbi_gets();
    }
    check_bytes(scratch, model, chunk_bytes, "got into the own segment");
}

static void visit(uint64_t *state, vgasnet_node_t target, size_t chunk, uint64_t round) {
    vgasnet_node_t writer = writer_of(target, chunk, round);
    if (writer == me) {
        model_chunk(target, chunk, round);
        if (target == me) store_chunk(state, chunk_at(target, chunk));
        if (target != me) put_chunk(state, target, chunk);
    } else if (writer >= ranks && random_below(state, 2) == 0) {
        model_chunk(target, chunk, written_in[target * chunks + chunk]);
        if (target == me) load_chunk(state, chunk_at(target, chunk));
        if (target != me) get_chunk(state, target, chunk);
    }
}

static void play_round(uint64_t *state, uint64_t round) {
    for (vgasnet_node_t i = 0; i < ranks; ++i) {
        vgasnet_node_t target = (me + i) % ranks;
        size_t first = (size_t)random_below(state, chunks);
        for (size_t j = 0; j < chunks; ++j) visit(state, target, (first + j) % chunks, round);
    }
    barrier();
    for (vgasnet_node_t target = 0; target < ranks; ++target)
        for (size_t chunk = 0; chunk < chunks; ++chunk)
            if (writer_of(target, chunk, round) < ranks) written_in[target * chunks + chunk] = round;
}

/* Every length at every place around some page borders, with the adjacent bytes. */
static void around_borders(uint64_t *state) {
    unsigned char is[PIECE_MAX + 2], should[PIECE_MAX + 2];
    for (size_t border = page_bytes(); border < 8 * pool_bytes(); border += 3 * page_bytes()) {
        for (size_t len = 1; len <= PIECE_MAX; ++len) {
            for (size_t offset = border - len - 1; offset <= border + 1; ++offset) {
                unsigned char *place = (unsigned char *)at(me, offset);
                memcpy(should, place - 1, len + 2);
                random_bytes(state, should + 1, len);
                copy_piece(place, should + 1, len);
                copy_piece(is + 1, place, len);
                is[0] = place[-1], is[len + 1] = place[len];
                check_bytes(is, should, len + 2, "around a border");
            }
        }
    }
    memset(at(me, 0), 0, 8 * pool_bytes());
}

int main(int argc, char **argv) {
    chunk_bytes = page_bytes() * 2 / 3 + 123, chunks = 8 * pool_bytes() / chunk_bytes;
    start(&argc, &argv, 8 * pool_bytes() + chunk_bytes);
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    scratch = (unsigned char *)at(me, 8 * pool_bytes());
    model = (unsigned char *)allocate(chunk_bytes);
    written_in = (uint64_t *)allocate(ranks * chunks * sizeof *written_in);
    uint64_t state = mixed(20, me, 0);
    around_borders(&state);
    barrier();
    for (uint64_t round = 1; round <= ROUNDS; ++round) play_round(&state, round);
    /* Written by any rank, then read by the segment's own rank, then by the next one. */
    for (vgasnet_node_t i = 0; i < 2 && i < ranks; ++i) {
        vgasnet_node_t target = (me + i) % ranks;
        for (size_t chunk = 0; chunk < chunks; ++chunk) {
            model_chunk(target, chunk, written_in[target * chunks + chunk]);
            if (i == 0) load_chunk(&state, chunk_at(target, chunk));
            if (i == 1) get_chunk(&state, target, chunk);
        }
    }
    return finish();
}
