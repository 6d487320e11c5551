/* A UPC++ program with a shared heap larger than memory. Each rank has an array in its heap; the argument is its size
 * in MiB. The ranks access the arrays by local pointers, rget, rput, rpc and atomics, and compare the results by
 * collectives. Rank 0 prints the seconds of each part. A rank that finds a wrong number prints a line and ends the job.
 *
 *     upcxx -O -network=udp examples/upcxx/larger_than_memory.cpp -o larger_than_memory
 *     VGASNET_POOL_SIZE=64M upcxx-run -n 2 -shared-heap 640M larger_than_memory 512
 */
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <upcxx/upcxx.hpp>
#include <vector>

using upcxx::global_ptr;
using Clock = std::chrono::steady_clock;

/* Words in a block of 4 KiB. */
constexpr uint64_t BLOCK = 512;
/* Operations in flight per rank, at most. */
constexpr int WINDOW = 64;

static uint64_t words, blocks;
static int me, ranks;
static std::vector<global_ptr<uint64_t>> arrays, counters;

static uint64_t mix(uint64_t number) {
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
    return number ^ number >> 31;
}

/* The initial value of a word. */
static uint64_t word_of(int rank, uint64_t at) {
    return (static_cast<uint64_t>(rank) << 40) + at * 3;
}

/* Whether a block is overwritten later: one in eight is, by one rank. */
static bool is_written(int rank, uint64_t block) {
    return mix(block * static_cast<uint64_t>(ranks) + static_cast<uint64_t>(rank)) % 8 == 0;
}

static uint64_t word_after_writing(int rank, uint64_t at) {
    return word_of(rank, at) + (is_written(rank, at / BLOCK) ? 1 : 0);
}

static void check(bool is_right, const char *what) {
    if (is_right) return;
    std::fprintf(stderr, "rank %d: wrong numbers: %s\n", me, what);
    std::abort();
}

/* Pseudorandom numbers, with a separate sequence for each rank and part. */
struct Draws {
    uint64_t state;
    explicit Draws(uint64_t part) : state(mix(part * 1000 + static_cast<uint64_t>(me) + 1)) {}
    uint64_t below(uint64_t limit) {
        state += UINT64_C(0x9e3779b97f4a7c15);
        return mix(state) % limit;
    }
    int rank() { return static_cast<int>(below(static_cast<uint64_t>(ranks))); }
};

static void store_all() {
    uint64_t *own = arrays[me].local();
    for (uint64_t at = 0; at < words; ++at) own[at] = word_of(me, at);
}

static void get_words() {
    Draws draws(1);
    uint64_t got[WINDOW], wanted[WINDOW];
    for (int round = 0; round < 200; ++round) {
        upcxx::promise<> all;
        for (int at = 0; at < WINDOW; ++at) {
            int rank = draws.rank();
            uint64_t index = draws.below(words);
            wanted[at] = word_of(rank, index);
            upcxx::rget(arrays[rank] + index, got + at, 1, upcxx::operation_cx::as_promise(all));
        }
        all.finalize().wait();
        for (int at = 0; at < WINDOW; ++at) check(got[at] == wanted[at], "rget");
    }
}

/* Each rank overwrites some blocks of the next rank, in an order that scatters them. */
static void put_blocks() {
    int to = (me + 1) % ranks;
    std::vector<uint64_t> sources(WINDOW * BLOCK);
    upcxx::promise<> all;
    int in_flight = 0;
    for (uint64_t nth = 0; nth < blocks; ++nth) {
        uint64_t block = nth * UINT64_C(2654435761) % blocks;
        if (!is_written(to, block)) continue;
        uint64_t *source = &sources[static_cast<uint64_t>(in_flight) * BLOCK];
        for (uint64_t at = 0; at < BLOCK; ++at) source[at] = word_of(to, block * BLOCK + at) + 1;
        upcxx::rput(source, arrays[to] + block * BLOCK, BLOCK, upcxx::operation_cx::as_promise(all));
        if (++in_flight < WINDOW) continue;
        all.finalize().wait();
        all = upcxx::promise<>();
        in_flight = 0;
    }
    all.finalize().wait();
}

static void sum_blocks_of_others() {
    Draws draws(2);
    for (int nth = 0; nth < 1000; ++nth) {
        int rank = draws.rank();
        uint64_t first = draws.below(blocks) * BLOCK, wanted = 0;
        for (uint64_t at = 0; at < BLOCK; ++at) wanted += word_after_writing(rank, first + at);
        uint64_t sum = upcxx::rpc(rank, [](global_ptr<uint64_t> from) {
            const uint64_t *own = from.local();
            uint64_t sum = 0;
            for (uint64_t at = 0; at < BLOCK; ++at) sum += own[at];
            return sum;
        }, arrays[rank] + first).wait();
        check(sum == wanted, "rpc");
    }
}

static uint64_t load_all() {
    const uint64_t *own = arrays[me].local();
    uint64_t sum = 0;
    for (uint64_t at = 0; at < words; ++at) {
        check(own[at] == word_after_writing(me, at), "loads");
        sum += own[at];
    }
    return sum;
}

constexpr uint64_t COUNTED = 10000;

static void count() {
    upcxx::atomic_domain<uint64_t> domain({upcxx::atomic_op::fetch_add, upcxx::atomic_op::add});
    Draws draws(3);
    for (uint64_t nth = 0; nth < COUNTED; nth += WINDOW) {
        upcxx::promise<> all;
        for (uint64_t at = nth; at < nth + WINDOW && at < COUNTED; ++at) {
            global_ptr<uint64_t> counter = counters[draws.rank()] + draws.below(words / 8);
            domain.add(counter, 1, std::memory_order_relaxed, upcxx::operation_cx::as_promise(all));
        }
        all.finalize().wait();
    }
    upcxx::barrier();
    domain.destroy();
}

static void compare(uint64_t sum) {
    const uint64_t *own = counters[me].local();
    uint64_t counted = 0, wanted = 0;
    for (uint64_t at = 0; at < words / 8; ++at) counted += own[at];
    counted = upcxx::reduce_all(counted, upcxx::op_fast_add).wait();
    check(counted == COUNTED * static_cast<uint64_t>(ranks), "atomics");
    for (int rank = 0; rank < ranks; ++rank)
        for (uint64_t block = 0; block < blocks; ++block)
            wanted += BLOCK * (word_of(rank, block * BLOCK) + is_written(rank, block)) + 3 * (BLOCK * (BLOCK - 1) / 2);
    check(upcxx::reduce_all(sum, upcxx::op_fast_add).wait() == wanted, "sums of all ranks");
    std::vector<uint64_t> block(BLOCK);
    if (me == ranks - 1)
        for (uint64_t at = 0; at < BLOCK; ++at) block[at] = arrays[me].local()[at];
    upcxx::broadcast(block.data(), BLOCK, ranks - 1).wait();
    for (uint64_t at = 0; at < BLOCK; ++at) check(block[at] == word_after_writing(ranks - 1, at), "broadcast");
}

template<typename Work>
static void timed(const char *what, Work work) {
    upcxx::barrier();
    Clock::time_point begun = Clock::now();
    work();
    upcxx::barrier();
    double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    if (me == 0) std::printf("%-12s %9.3f s\n", what, seconds);
}

int main(int argc, char **argv) {
    upcxx::init();
    me = upcxx::rank_me();
    ranks = upcxx::rank_n();
    words = std::strtoull(argc > 1 ? argv[1] : "64", nullptr, 10) << 17;
    blocks = words / BLOCK;
    if (blocks == 0) {
        if (me == 0) std::fprintf(stderr, "usage: %s [MiB of each rank]\n", argv[0]);
        upcxx::finalize();
        return 2;
    }
    upcxx::dist_object<global_ptr<uint64_t>> own(upcxx::new_array<uint64_t>(words)), counts(upcxx::new_array<uint64_t>(words / 8));
    for (int rank = 0; rank < ranks; ++rank) {
        arrays.push_back(own.fetch(rank).wait());
        counters.push_back(counts.fetch(rank).wait());
    }
    uint64_t sum = 0;
    timed("stores", store_all);
    timed("rget", get_words);
    timed("rput", put_blocks);
    timed("rpc", sum_blocks_of_others);
    timed("loads", [&] { sum = load_all(); });
    timed("atomics", count);
    timed("collectives", [&] { compare(sum); });
    if (me == 0) std::printf("all numbers are right\n");
    upcxx::barrier();
    upcxx::delete_array(*own);
    upcxx::delete_array(*counts);
    upcxx::finalize();
    return 0;
}
