/* Atomic operations. Each thread uses all of them in all forms on its own words. Many threads and ranks use the same
 * words, between gets and puts of adjacent bytes. Pages are in pools and on disks: the segments are four pools long. */
#include <pthread.h>
#include <sched.h>

#include "numbers.h"

#define THREADS 2
#define PENDING 8
#define OWN_OPERATIONS 200
#define SHARED_OPERATIONS 100
#define COUNTS 20
#define LOCK_TURNS 6

static vgasnet_node_t me, ranks;

typedef struct {
    size_t number; /* among the threads of all ranks */
    uint64_t state;
    uint64_t *model; /* of its own words */
    /* For each block: uses of the shared words, bounds of two of them, and counts made. */
    uint64_t *uses, *sums, *leasts, *counts;
} Worker;

/* An operation in flight on an own number: its kind, and where the result goes: to `room`, to the own segment, or
 * nowhere. */
typedef struct {
    vgasnet_handle_t handle;
    size_t word, len;
    uint64_t was, room;
    void *old;
} Pending;

/* A thread's own words: three in each block. */
static size_t own_words(void) { return 3 * block_count(); }

static Word own_word(const Worker *worker, size_t word) {
    static const size_t groups[] = {FIRST, MIDDLE, LAST};
    return word_at(word / 3, groups[word % 3], worker->number);
}

static void wait_for(Pending *pending, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        if (i % 2 == 0) while (vgasnet_try_syncnb(pending[i].handle) == VGASNET_ERR_NOT_READY) continue;
        else vgasnet_wait_syncnb(pending[i].handle);
    }
    if (count % 2 == 0) vgasnet_wait_syncnbi_puts();
    else vgasnet_wait_syncnbi_all();
    for (size_t i = 0; i < count; ++i) {
        uint64_t is = 0;
        if (pending[i].old == NULL) continue;
        if (pending[i].old == &pending[i].room) memcpy(&is, &pending[i].room, pending[i].len);
        else is = vgasnet_get_val(me, pending[i].old, pending[i].len);
        CHECK_EQ(is, pending[i].was);
    }
}

static void *draw_old(Worker *worker, Pending *pending, size_t index, int form) {
    uint64_t which = random_below(&worker->state, 6);
    size_t of_rank = block_count() / ranks, block = me * of_rank + (size_t)random_below(&worker->state, of_rank);
    if (which == 0) return NULL;
    if (which > 1 || form == 0) return &pending->room;
    return word_at(block, OLDS + worker->number % THREADS, index).place;
}

static void begin_on_own(Worker *worker, Pending *one, size_t index, size_t word) {
    int form = (int)random_below(&worker->state, 3), op = (int)random_below(&worker->state, OPS);
    /* The middle word of a block is two numbers. */
    size_t len = word % 3 == 1 ? 4 : 8, half = len == 4 ? 4 * (size_t)random_below(&worker->state, 2) : 0;
    uint64_t mask = len == 4 ? UINT32_MAX : UINT64_MAX, old = 0;
    uint64_t operand = draw_number(&worker->state) & mask, compare = draw_number(&worker->state) & mask;
    unsigned char *model = (unsigned char *)&worker->model[word] + half;
    Word there = own_word(worker, word);
    there.place += half;
    memcpy(&old, model, len);
    if (random_below(&worker->state, 2) == 0) compare = old;
    uint64_t now = applied(op, old, operand, compare, len);
    memcpy(model, &now, len);
    one->was = old, one->len = len, one->word = word, one->old = draw_old(worker, one, index, form);
    one->handle = operate(form, one->old, there, op, operand, compare, len);
}

static void use_own(Worker *worker) {
    Pending pending[PENDING];
    size_t count = 0;
    for (int i = 0; i < OWN_OPERATIONS; ++i) {
        size_t word = (size_t)random_below(&worker->state, own_words());
        int must_wait = count == PENDING;
        for (size_t j = 0; j < count; ++j) must_wait |= pending[j].word == word;
        if (must_wait) wait_for(pending, count), count = 0;
        begin_on_own(worker, &pending[count], count, word);
        ++count;
    }
    wait_for(pending, count);
    for (size_t word = 0; word < own_words(); ++word) {
        uint64_t is;
        Word there = own_word(worker, word);
        vgasnet_get(&is, there.rank, there.place, sizeof is);
        CHECK_EQ(is, worker->model[word]);
    }
}

/* Words used by all threads, in all blocks. Two numbers in one word count separately. */
enum { SUM, HALVES, LEAST, MOST, SIGNED, TOGGLED, COUNTED, LOCKED };

static Word shared_word(size_t block, size_t which) { return word_at(block, SHARED, which); }

/* A thread's addend in a turn, and its block. Other threads compute them, too. Sums do not wrap, halves do. */
static uint64_t addend(size_t thread, uint64_t turn) { return mixed(81, thread, turn) & UINT32_MAX; }
static uint64_t candidate(size_t thread, uint64_t turn) { return mixed(82, thread, turn); }
static size_t block_of(size_t thread, uint64_t turn) { return (size_t)(mixed(83, thread, turn) % block_count()); }

/* Bytes next to the shared words, written only by this thread. */
static void use_adjacent_bytes(Worker *worker, size_t block, uint64_t turn) {
    Word there = word_at(block, ADJACENT, worker->number);
    size_t len = 1 + (size_t)random_below(&worker->state, 8);
    uint64_t bytes = mixed(84, worker->number, turn), is = 0;
    if (turn % 2 == 0) vgasnet_put(there.rank, there.place, &bytes, len);
    else vgasnet_wait_syncnb(vgasnet_put_nb_bulk(there.rank, there.place, &bytes, len));
    if (turn % 3 == 0) is = vgasnet_get_val(there.rank, there.place, len);
    else vgasnet_get(&is, there.rank, there.place, len);
    check_bytes((unsigned char *)&is, (unsigned char *)&bytes, len, "bytes beside a number");
}

/* The numbers of all threads on shared words. Other threads change them, too: a sum never falls, the least number
 * never grows, and the thread's own bit stays as left. */
static void use_shared(Worker *worker) {
    for (uint64_t turn = 0; turn < SHARED_OPERATIONS; ++turn) {
        size_t block = block_of(worker->number, turn);
        uint64_t add = addend(worker->number, turn), number = candidate(worker->number, turn);
        uint64_t bit = UINT64_C(1) << worker->number, sum, least_number, toggled;
        int form = (int)(turn % 3);
        vgasnet_handle_t handles[6];
        Word half = shared_word(block, HALVES);
        half.place += turn % 2 * 4;
        handles[0] = operate(form, &sum, shared_word(block, SUM), VGASNET_ATOMIC_ADD, add, 0, 8);
        handles[1] = operate(form, NULL, half, VGASNET_ATOMIC_ADD, add, 0, 4);
        handles[2] = operate(form, &least_number, shared_word(block, LEAST), VGASNET_ATOMIC_MIN, number, 0, 8);
        handles[3] = operate(form, NULL, shared_word(block, MOST), VGASNET_ATOMIC_MAX, number, 0, 8);
        handles[4] = operate(form, NULL, shared_word(block, SIGNED), VGASNET_ATOMIC_IMIN, number, 0, 8);
        handles[5] = operate(form, &toggled, shared_word(block, TOGGLED), VGASNET_ATOMIC_XOR, bit, 0, 8);
        if (turn % 4 == 0) use_adjacent_bytes(worker, block, turn);
        vgasnet_wait_syncnb_all(handles, 6);
        vgasnet_wait_syncnbi_all();
        CHECK(sum >= worker->sums[block] && least_number <= worker->leasts[block]);
        CHECK_EQ((toggled & bit) != 0, worker->uses[block] % 2);
        worker->sums[block] = sum + add, ++worker->uses[block];
        worker->leasts[block] = number < least_number ? number : least_number;
    }
}

/* Counts by compare-and-swap, half of the counts on the own rank's words. */
static void count(Worker *worker) {
    for (uint64_t turn = 0; turn < COUNTS; ++turn) {
        size_t block = block_of(turn % 2 == 0 ? me * THREADS : worker->number, turn);
        Word word = shared_word(block, COUNTED);
        uint64_t seen = vgasnet_get_val(word.rank, word.place, 8), was;
        while ((was = vgasnet_atomic_cas_u64(word.rank, word.place, seen, seen + 1)) != seen) seen = was;
        ++worker->counts[block];
    }
}

/* A lock with numbers in its own page and in a page of another rank. The numbers are not atomic. */
static void lock(void) {
    Word word = shared_word(0, LOCKED), near = word_at(0, TALLY, 0), far = word_at(block_count() - 1, TALLY, 1);
    for (int turn = 0; turn < LOCK_TURNS; ++turn) {
        while (vgasnet_atomic_swap_u32(word.rank, word.place, 1) != 0) sched_yield();
        uint64_t number = vgasnet_get_val(near.rank, near.place, 8);
        CHECK_EQ(vgasnet_get_val(far.rank, far.place, 8), number);
        vgasnet_put_val(near.rank, near.place, number + 1, 8);
        vgasnet_wait_syncnb(vgasnet_put_nb_val(far.rank, far.place, number + 1, 8));
        CHECK_EQ(vgasnet_atomic_swap_u32(word.rank, word.place, 0), 1);
    }
}

static uint64_t word_of(size_t block, size_t which) {
    Word word = shared_word(block, which);
    return vgasnet_get_val(word.rank, word.place, 8);
}

/* Checks the result of all threads in the words of a block. */
static void check_shared(size_t block) {
    uint64_t sum = 0, toggled = 0, least_number = UINT64_MAX, most = 0;
    uint32_t halves[2] = {0, 0};
    int64_t least_signed = 0;
    for (size_t thread = 0; thread < ranks * THREADS; ++thread)
        for (uint64_t turn = 0; turn < SHARED_OPERATIONS; ++turn) {
            uint64_t number = candidate(thread, turn);
            if (block_of(thread, turn) != block) continue;
            sum += addend(thread, turn), halves[turn % 2] += (uint32_t)addend(thread, turn);
            toggled ^= UINT64_C(1) << thread;
            if (number < least_number) least_number = number;
            if (number > most) most = number;
            if ((int64_t)number < least_signed) least_signed = (int64_t)number;
        }
    uint64_t both;
    memcpy(&both, halves, sizeof both);
    CHECK_EQ(word_of(block, SUM), sum);
    CHECK_EQ(word_of(block, HALVES), both);
    CHECK_EQ(word_of(block, LEAST), least_number);
    CHECK_EQ(word_of(block, MOST), most);
    CHECK_EQ(word_of(block, SIGNED), least_signed);
    CHECK_EQ(word_of(block, TOGGLED), toggled);
}

static void check_counts(const Worker *workers) {
    uint64_t turns = (uint64_t)ranks * THREADS * LOCK_TURNS, counted = 0;
    Word near = word_at(0, TALLY, 0);
    CHECK_EQ(vgasnet_get_val(near.rank, near.place, 8), turns);
    for (size_t block = 0; block < block_count(); ++block) {
        /* At least this rank's count. Other ranks have counted, too. */
        uint64_t own = 0, of_all = word_of(block, COUNTED);
        for (size_t i = 0; i < THREADS; ++i) own += workers[i].counts[block];
        CHECK(of_all >= own);
        counted += of_all;
    }
    CHECK_EQ(counted, (uint64_t)ranks * THREADS * COUNTS);
}

static void *work(void *argument) {
    Worker *worker = (Worker *)argument;
    use_own(worker);
    use_shared(worker);
    count(worker);
    lock();
    use_own(worker);
    return NULL;
}

static void prepare(Worker *worker, size_t number) {
    worker->number = number, worker->state = mixed(80, number, 0);
    worker->model = (uint64_t *)allocate(own_words() * sizeof *worker->model);
    uint64_t **tables[] = {&worker->uses, &worker->sums, &worker->leasts, &worker->counts};
    for (int i = 0; i < 4; ++i) *tables[i] = (uint64_t *)allocate(block_count() * sizeof **tables[i]);
    memset(worker->leasts, 0xff, block_count() * sizeof *worker->leasts);
}

int main(int argc, char **argv) {
    start(&argc, &argv, 4 * pool_bytes());
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    pthread_t threads[THREADS];
    Worker workers[THREADS];
    for (size_t block = me; block < block_count(); block += ranks) {
        Word word = shared_word(block, LEAST);
        vgasnet_put_val(word.rank, word.place, UINT64_MAX, 8);
    }
    barrier();
    for (size_t i = 0; i < THREADS; ++i) prepare(&workers[i], me * THREADS + i);
    for (size_t i = 0; i < THREADS; ++i) CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    for (size_t i = 0; i < THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
    barrier();
    for (size_t block = 0; block < block_count(); ++block) check_shared(block);
    check_counts(workers);
    return finish();
}
