/* Segments of 16 times the pool: written by all ranks, read back by all ranks, rewritten by others and read again. */
#include "check.h"

static uint64_t *buffer;
static size_t chunk_bytes;

static uint64_t first_word(vgasnet_node_t target, uint64_t chunk, uint64_t round) {
    return mixed(target, chunk, round);
}

static void write_chunk(vgasnet_node_t target, uint64_t chunk, uint64_t round) {
    uint64_t word = first_word(target, chunk, round);
    for (size_t i = 0; i < chunk_bytes / 8; ++i) buffer[i] = word + i * i;
    vgasnet_put_bulk(target, at(target, chunk * chunk_bytes), buffer, chunk_bytes);
}

static void check_chunk(vgasnet_node_t target, uint64_t chunk, uint64_t round) {
    uint64_t word = first_word(target, chunk, round);
    vgasnet_get_bulk(buffer, target, at(target, chunk * chunk_bytes), chunk_bytes);
    for (size_t i = 0; i < chunk_bytes / 8; ++i) CHECK_EQ(buffer[i], word + i * i);
}

int main(int argc, char **argv) {
    size_t segment_bytes = 16 * pool_bytes();
    start(&argc, &argv, segment_bytes);
    vgasnet_node_t me = vgasnet_mynode(), ranks = vgasnet_nodes();
    chunk_bytes = page_bytes() / 2;
    buffer = (uint64_t *)allocate(chunk_bytes);
    uint64_t chunks = segment_bytes / chunk_bytes;
    for (uint64_t round = 0; round < 2; ++round) {
        for (vgasnet_node_t target = 0; target < ranks; ++target)
            for (uint64_t chunk = (me + round) % ranks; chunk < chunks; chunk += ranks)
                write_chunk(target, chunk, round);
        barrier();
        for (vgasnet_node_t i = 0; i < ranks; ++i)
            for (uint64_t chunk = 0; chunk < chunks; ++chunk) check_chunk((me + i) % ranks, chunk, round);
        barrier();
    }
    return finish();
}
