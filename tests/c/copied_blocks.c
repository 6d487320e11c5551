/* Loads of blocks that no pool has, beside puts and stores of all ranks: copies of the blocks are never old. Each word of
 * the hot ones has one writer, whose numbers rise. Threads load it and get it in turns, and no number ever falls; what
 * this rank has put is seen at once. copied_blocks [refused|counted]: the system refuses userfaultfd; statistics tell
 * which way loads went. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local.h"

#define HOT 300
#define LOADERS 3
#define WRITES 1500

static vgasnet_node_t me, ranks;
static size_t bytes;
static int is_over;
static uint64_t done[HOT]; /* what this rank has written to its own hot words */

/* Hot words lie anywhere, some in one block. */
static size_t hot_place(vgasnet_node_t rank, uint64_t hot) {
    return (size_t)(mixed(rank, hot / 2, 7) % (bytes / 4096)) * 4096 + (size_t)(hot % 2) * 8;
}
static vgasnet_node_t writer_of(vgasnet_node_t rank, uint64_t hot) { return (vgasnet_node_t)((rank + hot) % ranks); }

/* The first word of a block is hot or its place. The last one is always its place. */
static uint64_t last_word(size_t offset) { return (uint64_t)offset << 8 | 0xa5; }

static void refuse_userfaultfd(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

static void *load(void *thread) {
    uint64_t seen[HOT] = {0}, state = number_from_environment("CHECK_SEED") + me * 16 + (uint64_t)(uintptr_t)thread;
    for (uint64_t turn = 0; !__atomic_load_n(&is_over, __ATOMIC_ACQUIRE); ++turn) {
        uint64_t hot = random_below(&state, HOT);
        uint64_t least = __atomic_load_n(&done[hot], __ATOMIC_ACQUIRE), word;
        void *place = at(me, hot_place(me, hot));
        if (turn % 4 == 3) vgasnet_get(&word, me, place, sizeof word);
        else word = __atomic_load_n((uint64_t *)place, __ATOMIC_ACQUIRE);
        CHECK(word >= least && word >= seen[hot]);
        seen[hot] = word;
        size_t block = random_below(&state, bytes / 4096) * 4096;
        CHECK_EQ(load_word(at(me, block + 4088)), last_word(block));
    }
    return thread;
}

/* One number a word and a turn, in the three ways. */
static void write_hot(uint64_t *state, uint64_t number) {
    vgasnet_node_t rank = (vgasnet_node_t)random_below(state, ranks);
    uint64_t hot = random_below(state, HOT);
    if (writer_of(rank, hot) != me) return;
    uint64_t *place = (uint64_t *)at(rank, hot_place(rank, hot)), way = random_below(state, 3);
    if (way == 0 && rank == me) __atomic_store_n(place, number, __ATOMIC_RELEASE);
    else if (way == 1) vgasnet_wait_syncnb(vgasnet_put_nb(rank, place, &number, sizeof number));
    else vgasnet_put(rank, place, &number, sizeof number);
    if (rank == me) __atomic_store_n(&done[hot], number, __ATOMIC_RELEASE);
}

static sigjmp_buf place_to_go_on;
static volatile sig_atomic_t sent;

static void jump(int signal) {
    CHECK_EQ(signal, SIGBUS);
    siglongjmp(place_to_go_on, 1);
}
static void count(int signal) { sent += signal == SIGBUS; }

/* SIGBUS of a file that ends before its mapping, and SIGBUS that is sent, are the program's. */
static void handle_own_sigbus(void) {
    int file = open("/proc/self/exe", O_RDONLY);
    CHECK(file >= 0);
    volatile unsigned char *behind = (volatile unsigned char *)mmap(NULL, 1 << 30, PROT_READ, MAP_PRIVATE, file, 0);
    CHECK(behind != MAP_FAILED);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = jump;
    CHECK(sigaction(SIGBUS, &action, NULL) == 0);
    int has_jumped = sigsetjmp(place_to_go_on, 1);
    if (!has_jumped) {
        (void)behind[(1 << 30) - 1];
        CHECK(0);
    }
    action.sa_handler = count;
    CHECK(sigaction(SIGBUS, &action, NULL) == 0);
    CHECK(raise(SIGBUS) == 0 && sent == 1);
    CHECK(signal(SIGBUS, SIG_DFL) == count);
    munmap((void *)behind, 1 << 30);
    close(file);
}

/* Callbacks of timers begin with all signals blocked. Who unblocks SIGSEGV may load. */
static void *load_after_unblocking(void *unused) {
    uint64_t all = ~(uint64_t)0, state = me;
    sigset_t segv;
    CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, sizeof all) == 0);
    CHECK(sigemptyset(&segv) == 0 && sigaddset(&segv, SIGSEGV) == 0);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &segv, NULL) == 0);
    for (int i = 0; i < 100; ++i) {
        size_t block = random_below(&state, bytes / 4096) * 4096;
        CHECK_EQ(load_word(at(me, block + 4088)), last_word(block));
    }
    return unused;
}

/* A forked child has no copies either. */
static void load_in_child(void) {
    size_t block = bytes / 2;
    CHECK_EQ(load_word(at(me, block + 4088)), last_word(block));
    pid_t child = fork();
    if (child == 0) {
        close(2);
        _exit(load_word(at(me, block + 4088)) == last_word(block));
    }
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    pthread_t loaders[LOADERS];
    bytes = 8 * pool_bytes();
    if (strcmp(how, "refused") == 0) refuse_userfaultfd();
    start(&argc, &argv, bytes);
    me = vgasnet_mynode();
    ranks = vgasnet_nodes();
    for (size_t block = 0; block < bytes; block += 4096) store_word(at(me, block + 4088), last_word(block));
    barrier();
    handle_own_sigbus();
    uint64_t before = *how ? statistics().fault_copied : 0, state = number_from_environment("CHECK_SEED") + me;
    for (uintptr_t i = 0; i < LOADERS; ++i) CHECK(pthread_create(&loaders[i], NULL, load, (void *)i) == 0);
    for (uint64_t number = 1; number <= WRITES; ++number) write_hot(&state, number);
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
    for (size_t i = 0; i < LOADERS; ++i) CHECK(pthread_join(loaders[i], NULL) == 0);
    barrier();
    for (size_t i = 0; i < 1000; ++i) {
        size_t block = random_below(&state, bytes / 4096) * 4096;
        CHECK_EQ(load_word(at(me, block + 4088)), last_word(block));
    }
    uint64_t copied = *how ? statistics().fault_copied - before : 0;
    if (strcmp(how, "counted") == 0) CHECK(copied > 500);
    else CHECK_EQ(copied, 0);
    CHECK(pthread_create(&loaders[0], NULL, load_after_unblocking, NULL) == 0 && pthread_join(loaders[0], NULL) == 0);
    load_in_child();
    barrier();
    return finish();
}
