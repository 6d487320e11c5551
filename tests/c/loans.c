/* Loads of pages held by neighbours, mapped in place. loans PART
 *   seen     writers' bytes and stored bytes are seen
 *   stopped  a stopped rank with such pages mapped delays no other page
 *   pinned   the same, with pinned pages at the lender
 *   killed   the rank is killed
 *   fork     its children have none of the mappings */
#define _DEFAULT_SOURCE
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local.h"

#define ROUNDS 40

static vgasnet_node_t me, ranks;
static size_t pages;

static uint64_t borrowed(void) {
    vgasnet_stats_t stats;
    return vgasnet_stats(&stats, sizeof stats) == VGASNET_OK ? stats.fault_borrowed : 0;
}

static uint64_t *word_in(vgasnet_node_t rank, size_t page) {
    return (uint64_t *)at(rank, page * page_bytes() + page * 4160 % page_bytes() / 8 * 8);
}

static void put_word(vgasnet_node_t rank, size_t page, uint64_t word) {
    vgasnet_put(rank, word_in(rank, page), &word, sizeof word);
}

/* Some rank writes every page, then all load theirs, unless evicted from the neighbour. */
static void write_all(vgasnet_node_t writer, uint64_t round) {
    for (size_t page = 0; page < pages; ++page)
        if (me == writer)
            for (vgasnet_node_t rank = 0; rank < ranks; ++rank) put_word(rank, page, mixed(rank, page, round));
}

static void check_all(uint64_t round) {
    for (size_t page = 0; page < pages; ++page) CHECK_EQ(load_word(word_in(me, page)), mixed(me, page, round));
}

static void check_seen(void) {
    for (uint64_t round = 0; round < ROUNDS; ++round) {
        vgasnet_node_t writer = (vgasnet_node_t)(round / 2 % ranks);
        write_all(writer, round);
        barrier();
        check_all(round), check_all(round);
        barrier();
        /* A store takes the page from the neighbour, and the neighbour sees the store. */
        size_t page = (size_t)round % pages;
        store_word(word_in(me, page), round);
        barrier();
        vgasnet_node_t next = (me + 1) % ranks;
        uint64_t got;
        vgasnet_get(&got, next, word_in(next, page), sizeof got);
        CHECK_EQ(got, round);
        CHECK_EQ(load_word(word_in(me, page)), round);
        barrier();
    }
}

/* Rank 0 loads rank 1's pages, and sends its process number. */
static pid_t borrow_from_1(size_t lent) {
    pid_t pid = getpid();
    if (me == 1)
        for (size_t page = 0; page < lent; ++page) put_word(0, page, mixed(0, page, 99));
    barrier();
    if (me == 0) {
        for (size_t page = 0; page < lent; ++page) CHECK_EQ(load_word(word_in(0, page)), mixed(0, page, 99));
        CHECK(getenv("VGASNET_STATS") == NULL || borrowed() > 0);
        vgasnet_put(1, at(1, (pages - 1) * page_bytes()), &pid, sizeof pid);
    }
    barrier();
    if (me == 1) vgasnet_get(&pid, 1, at(1, (pages - 1) * page_bytes()), sizeof pid);
    return pid;
}

/* Pages of the segments of all ranks but 0, more than a pool has. */
static void use_others(void) {
    for (uint64_t round = 0; round < 3; ++round)
        for (vgasnet_node_t rank = 1; rank < ranks; ++rank)
            for (size_t page = 0; page + 1 < pages; ++page) {
                uint64_t got, word = mixed(rank, page, round);
                put_word(rank, page, word);
                if (rank == me) CHECK_EQ(load_word(word_in(rank, page)), word);
                vgasnet_get(&got, rank, word_in(rank, page), sizeof got);
                CHECK_EQ(got, word);
            }
}

/* Whether all threads of a process are stopped or have ended. */
static bool has_stopped(pid_t pid) {
    bool is_running = false;
    char name[64], state;
    snprintf(name, sizeof name, "/proc/%d/task", (int)pid);
    DIR *threads = opendir(name);
    CHECK(threads != NULL);
    for (struct dirent *thread; !is_running && (thread = readdir(threads)) != NULL;) {
        if (thread->d_name[0] == '.') continue;
        snprintf(name, sizeof name, "/proc/%d/task/%.16s/stat", (int)pid, thread->d_name);
        FILE *stat = fopen(name, "r");
        if (stat == NULL) continue;
        is_running = fscanf(stat, "%*d (%*[^)]) %c", &state) == 1 && strchr("TtZX", state) == NULL;
        fclose(stat);
    }
    closedir(threads);
    return !is_running;
}

/* Stops a rank. kill does not wait, and a running rank still returns frames. */
static void stop(pid_t pid) {
    CHECK(kill(pid, SIGSTOP) == 0);
    while (!has_stopped(pid)) usleep(1000);
}

/* The others work while rank 0 is stopped, without waiting for it. */
static void check_stopped(void) {
    size_t lent = pool_pages() / 2;
    pid_t pid = borrow_from_1(lent);
    if (me == 1) {
        alarm(60);
        stop(pid);
        use_others();
        CHECK(kill(pid, SIGCONT) == 0);
        alarm(0);
    }
    barrier();
    for (size_t page = 0; page < lent && me == 1; ++page) put_word(0, page, mixed(0, page, 100));
    barrier();
    for (size_t page = 0; page < lent && me == 0; ++page)
        CHECK_EQ(load_word(word_in(0, page)), mixed(0, page, 100));
}

/* Pins and loans together leave frames for others, in any order. */
static void check_pinned(void) {
    size_t half = pool_pages() / 2 * page_bytes();
    pid_t pid;
    if (me == 1) CHECK(vgasnet_pin(at(1, 0), half, VGASNET_PIN_READ) == VGASNET_OK);
    barrier();
    pid = borrow_from_1(pool_pages() / 2);
    if (me == 1) {
        alarm(60);
        stop(pid);
        use_others();
        CHECK(kill(pid, SIGCONT) == 0);
        CHECK(vgasnet_unpin(at(1, 0), half) == VGASNET_OK);
        alarm(0);
    }
    barrier();
    (void)borrow_from_1(pool_pages() / 2);
    if (me == 1) {
        CHECK(vgasnet_pin(at(1, 0), half, VGASNET_PIN_READ) == VGASNET_OK);
        use_others();
        CHECK(vgasnet_unpin(at(1, 0), half) == VGASNET_OK);
    }
    barrier();
}

static void check_killed(void) {
    pid_t pid = borrow_from_1(pool_pages() / 2);
    if (me == 1) {
        CHECK(kill(pid, SIGKILL) == 0);
        for (;;) use_others();
    }
    for (;;) pause();
}

static void check_fork(void) {
    int status;
    (void)borrow_from_1(2);
    if (me == 0) {
        pid_t child = fork();
        if (child == 0) {
            close(STDERR_FILENO);
            _exit((int)load_word(word_in(0, 1)) & 1);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
        CHECK_EQ(load_word(word_in(0, 1)), mixed(0, 1, 99));
    }
    barrier();
}

int main(int argc, char **argv) {
    const char *part = argc > 1 ? argv[1] : "seen";
    pages = 2 * pool_pages();
    start(&argc, &argv, pages * page_bytes());
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    if (strcmp(part, "seen") == 0) check_seen();
    if (strcmp(part, "stopped") == 0) check_stopped();
    if (strcmp(part, "pinned") == 0) check_pinned();
    if (strcmp(part, "killed") == 0) check_killed();
    if (strcmp(part, "fork") == 0) check_fork();
    return finish();
}
