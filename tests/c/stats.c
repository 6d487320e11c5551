/* The results of vgasnet_stats after accesses of known kinds, and jobs for the reports at their end. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static vgasnet_node_t me;
static volatile sig_atomic_t signals;
static int handled;

static char *own(size_t page) { return (char *)at(me, page * page_bytes()); }

/* Gets and puts one byte at a time. */
static void get(vgasnet_node_t rank, size_t page) {
    char byte;
    vgasnet_get(&byte, rank, at(rank, page * page_bytes()), 1);
}
static void put(size_t page) { vgasnet_put(me, own(page), &me, 1); }

static void check_off(void) {
    vgasnet_stats_t stats;
    memset(&stats, 7, sizeof stats);
    CHECK(vgasnet_stats(&stats, sizeof stats) == VGASNET_ERR_NOT_READY);
    CHECK_EQ(stats.size_bytes, UINT64_C(0x0707070707070707));
}

static void check_sizes(void) {
    struct { vgasnet_stats_t stats; uint64_t later; } longer;
    uint64_t words[3] = {0, 0, 42};
    CHECK(vgasnet_stats((vgasnet_stats_t *)words, 2 * sizeof *words) == VGASNET_OK);
    CHECK(words[0] == 2 * sizeof *words && words[1] > 0 && words[2] == 42);
    longer.later = 42;
    CHECK(vgasnet_stats(&longer.stats, sizeof longer) == VGASNET_OK);
    CHECK(longer.stats.size_bytes == sizeof longer.stats && longer.later == 42);
    CHECK_EQ(longer.stats.page_size, page_bytes());
    CHECK_EQ(longer.stats.pool_size, pool_bytes());
    CHECK(vgasnet_stats(NULL, sizeof longer) == VGASNET_ERR_BAD_ARG);
    CHECK(vgasnet_stats(&longer.stats, 7) == VGASNET_ERR_BAD_ARG);
}

/* Pages never written, hits, and the right to write. */
static void check_hits(void) {
    vgasnet_stats_t before = statistics();
    put(0);
    vgasnet_stats_t after = statistics();
    CHECK_EQ(after.miss_zeros.count - before.miss_zeros.count, 1);
    CHECK_EQ(after.hit_puts, before.hit_puts);
    for (int i = 0; i < 100; ++i) put(0), get(me, 0), get(me, 0);
    vgasnet_stats_t last = statistics();
    CHECK_EQ(last.hit_puts - after.hit_puts, 100);
    CHECK_EQ(last.hit_gets - after.hit_gets, 200);
    CHECK_EQ(last.put_bytes - before.put_bytes, 101);
    CHECK_EQ(last.get_bytes - before.get_bytes, 200);
    CHECK_EQ(last.miss_zeros.count, after.miss_zeros.count);
}

/* Puts of whole pages: pages in the pool lack only the right to write, the others are neither read nor sent. */
static void check_whole(void) {
    char *bytes = (char *)calloc(1, page_bytes());
    CHECK(bytes != NULL);
    for (size_t page = 0; page < 8; page += 2) get(me, page);
    vgasnet_stats_t before = statistics();
    for (size_t page = 0; page < 12; page += 2) vgasnet_put(me, own(page), bytes, page_bytes());
    vgasnet_stats_t after = statistics();
    CHECK_EQ(after.miss_right.count - before.miss_right.count, 4);
    CHECK_EQ(after.overwritten - before.overwritten, 2);
    free(bytes);
}

/* More pages than the pool has, from the disk. Every other page, so there is no stream. */
static void check_disk(void) {
    size_t pages = 4 * pool_bytes() / page_bytes();
    for (size_t page = 0; page < pages; ++page) put(page);
    vgasnet_stats_t before = statistics();
    for (size_t page = 0; page < pages; page += 2) get(me, page);
    vgasnet_stats_t after = statistics();
    uint64_t read = after.miss_own_disk.count - before.miss_own_disk.count;
    CHECK(read >= pages / 4 && read <= pages / 2);
    CHECK(after.disk_read_bytes - before.disk_read_bytes >= read * page_bytes());
    CHECK_EQ(after.disk_read_bytes, after.disk_read.count * page_bytes());
    CHECK(after.evicted_dirty > 0 && after.disk_write.count > 0 && after.disk_busy > 0);
    CHECK(after.miss_own_disk.p50_ns > 0 && after.miss_own_disk.p50_ns <= after.miss_own_disk.p99_ns);
    CHECK(after.miss_own_disk.p99_ns <= after.miss_own_disk.max_ns);
    /* A thread that reads a page itself waits, too. */
    CHECK(after.wait_page.count > before.wait_page.count);
    CHECK(after.wait_page.sum_ns >= after.wait_page.max_ns && after.threads == 1);
    /* The pages evicted last. */
    CHECK(after.refetched_4 > before.refetched_4 && after.refetched_4 >= after.refetched_2);
}

/* A stream is read ahead. Read-ahead pages neither used nor evicted are in neither row. */
static void check_ahead(void) {
    size_t pages = 4 * pool_bytes() / page_bytes();
    /* Pages of zeros are fetched ahead, without the right to write. */
    for (size_t page = 0; page < pages; ++page) put(page);
    vgasnet_stats_t before = statistics();
    CHECK(before.ahead_fetched > 0 && before.zeros_came >= before.ahead_fetched && before.zeros_came >= before.miss_zeros.count);
    /* A page may be evicted just before its use. */
    CHECK(before.miss_right.count > 0 && before.ahead_wasted <= before.ahead_fetched / 4);
    for (size_t page = 0; page < pages; ++page) get(me, page);
    vgasnet_stats_t after = statistics();
    uint64_t fetched = after.ahead_fetched - before.ahead_fetched;
    CHECK(fetched > 0 && after.ahead_used > before.ahead_used);
    CHECK(after.ahead_used + after.ahead_wasted <= after.ahead_fetched);
}

/* Gets that wait for a page requested by an earlier one. */
/* One list requests all of its pieces before it waits. */
static void check_joined(void) {
    char bytes[8];
    vgasnet_memvec_t to[8], from[8];
    size_t pages = 4 * pool_bytes() / page_bytes();
    for (size_t i = 0; i < 8; ++i) {
        to[i].addr = bytes + i, from[i].addr = own(0) + 2 * i;
        to[i].len = from[i].len = 1;
    }
    for (size_t page = 0; page < pages; ++page) put(page);
    vgasnet_stats_t before = statistics();
    vgasnet_getv_bulk(8, to, me, 8, from);
    vgasnet_stats_t after = statistics();
    CHECK_EQ(after.miss_own_disk.count - before.miss_own_disk.count, 1);
    CHECK_EQ(after.miss_joined - before.miss_joined, 7);
}

static void check_faults(void) {
    volatile char *byte = own(1);
    vgasnet_stats_t before = statistics();
    *byte = 1;
    vgasnet_stats_t after = statistics();
    CHECK_EQ(after.fault_write - before.fault_write, 1);
    CHECK(after.wait_fault.count > before.wait_fault.count);
    CHECK(*byte == 1);
    CHECK_EQ(statistics().fault_read, after.fault_read);
}

static void sleep_1_ms(void) {
    struct timespec time = {0, 1000000};
    nanosleep(&time, NULL);
}

/* The barrier lasts until this thread has seen it counted. */
static void *watch_barrier(void *seen) {
    uint64_t before = statistics().wait_barrier.sum_ns;
    for (int i = 0; i < 30000 && statistics().wait_barrier.sum_ns == before; ++i) sleep_1_ms();
    *(int *)seen = statistics().wait_barrier.sum_ns > before;
    vgasnet_put_val(1, at(1, 0), 1, 1);
    return NULL;
}

static void check_unfinished_wait(void) {
    pthread_t watcher;
    int seen = 0;
    if (me == 1) vgasnet_put_val(1, own(0), 0, 1);
    barrier();
    if (me == 0) CHECK(pthread_create(&watcher, NULL, watch_barrier, &seen) == 0);
    if (me == 1) while (vgasnet_get_val(1, own(0), 1) == 0) sleep_1_ms();
    barrier();
    if (me == 0) CHECK(pthread_join(watcher, NULL) == 0 && seen);
}

static void on_message(vgasnet_token_t token) { (void)token, ++handled; }

static void check_messages(void) {
    vgasnet_stats_t before = statistics();
    barrier();
    if (me == 0) {
        for (int i = 0; i < 10; ++i) CHECK(vgasnet_AMRequestShort0(1, 200) == VGASNET_OK);
        CHECK_EQ(statistics().active_sent - before.active_sent, 10);
    } else if (me == 1) {
        while (handled < 10) vgasnet_AMPoll();
        CHECK_EQ(statistics().active_received - before.active_received, 10);
    }
    barrier();
    vgasnet_stats_t after = statistics();
    /* Ranks with shared memory meet without messages. */
    const char *peer_memory = getenv("VGASNET_PEER_MEMORY");
    if (peer_memory != NULL && strcmp(peer_memory, "0") == 0)
        CHECK(after.protocol_sent > before.protocol_sent && after.protocol_received > before.protocol_received);
}

/* Rank 0 reads rank 1's pages. Rank 1's program may have ended. */
static int serve(void) {
    size_t pages = 16;
    if (me == 1) for (size_t page = 0; page < pages; ++page) put(page);
    barrier();
    if (me == 0) {
        for (size_t page = 0; page < pages; page += 2) get(1, page);
        for (size_t page = 1; page < pages; page += 2) get(1, page);
    }
    return 0;
}

/* Rank 1 ends first, and has exited when the programs of the others end. */
static int leave_late(void) {
    pid_t pid = getpid();
    if (me == 1) vgasnet_put(0, at(0, 0), &pid, sizeof pid);
    barrier();
    if (me == 1) vgasnet_exit(0);
    vgasnet_get(&pid, 0, at(0, 0), sizeof pid);
    const struct timespec pause = {0, 1000000};
    while (kill(pid, 0) == 0) nanosleep(&pause, NULL);
    printf("rank %d is through\n", (int)me);
    return 0;
}

static void count_signal(int signal) { (void)signal, ++signals; }

/* The table is read from stderr. */
static void check_signal(void) {
    char text[4096];
    size_t len = 0;
    int ends[2];
    CHECK(pipe(ends) == 0 && dup2(ends[1], 2) == 2);
    CHECK(raise(SIGUSR2) == 0);
    do {
        ssize_t more = read(ends[0], text + len, sizeof text - 1 - len);
        if (more <= 0) exit(1);
        len += (size_t)more;
        text[len] = 0;
    } while (strstr(text, "% of the time") == NULL);
    if (strstr(text, "vgasnet: statistics of rank ") != text) exit(1);
}

/* Tells the test that all ranks are attached, and waits until it closes the input of rank 0. */
static void wait_for_test(void) {
    barrier();
    if (me == 0) {
        printf("ready\n"), fflush(stdout);
        while (getchar() != EOF) continue;
    }
    barrier();
}

int main(int argc, char **argv) {
    const char *part = argc > 1 ? argv[1] : "";
    vgasnet_handlerentry_t table[1] = {{200, (void (*)())on_message}};
    if (strncmp(part, "handler", strlen("handler")) == 0) signal(SIGUSR2, count_signal);
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) return 1;
    CHECK(vgasnet_attach(table, 1, 4 * pool_bytes() + page_bytes(), 0) == VGASNET_OK);
    me = vgasnet_mynode();
    if (strcmp(part, "off") == 0) check_off();
    if (strcmp(part, "sizes") == 0) check_sizes();
    if (strcmp(part, "hits") == 0) check_hits();
    if (strcmp(part, "whole") == 0) check_whole();
    if (strcmp(part, "disk") == 0) check_disk();
    if (strcmp(part, "ahead") == 0) check_ahead();
    if (strcmp(part, "joined") == 0) check_joined();
    if (strcmp(part, "faults") == 0) check_faults();
    if (strcmp(part, "under-way") == 0) check_unfinished_wait();
    if (strcmp(part, "messages") == 0) check_messages();
    if (strcmp(part, "signal") == 0) check_signal();
    if (strcmp(part, "handler") == 0) CHECK(raise(SIGUSR2) == 0 && signals == 1);
    if (strcmp(part, "launcher") == 0 || strcmp(part, "handler-launcher") == 0) wait_for_test();
    if (strcmp(part, "handler-launcher") == 0) while (signals == 0) vgasnet_AMPoll();
    if (strcmp(part, "serve") == 0) return serve();
    if (strcmp(part, "late") == 0) return leave_late();
    barrier();
    if (strcmp(part, "fail") == 0) vgasnet_exit(3);
    if (strcmp(part, "return") == 0) return 0;
    if (strcmp(part, "early") == 0 && me > 0) pause();
    vgasnet_exit(0);
    return 1;
}
