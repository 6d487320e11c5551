/* Collectives of more bytes than a rank reads at a time, from and to the stack, the heap and the own segment, which
 * is larger than the pool. */
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

enum { SPARE = 64 << 10, STACK_BYTES = 1 << 20, PLACES = 3 };

static size_t len;
static vgasnet_node_t me, ranks;
static const int flags[] = {VGASNET_COLL_IN_NOSYNC | VGASNET_COLL_OUT_NOSYNC, VGASNET_COLL_IN_MYSYNC | VGASNET_COLL_OUT_MYSYNC,
                            VGASNET_COLL_IN_ALLSYNC | VGASNET_COLL_OUT_ALLSYNC};

/* The bytes from a rank for a rank. */
static void block(vgasnet_node_t from, vgasnet_node_t to, int round, unsigned char *bytes) {
    uint64_t state = mixed((uint64_t)round, from, to);
    random_bytes(&state, bytes, len);
}

static unsigned char *fresh(size_t size) {
    unsigned char *bytes = (unsigned char *)allocate(size);
    memset(bytes, 0xdd, size);
    return bytes;
}

/* Broadcast and exchange with both sides at these addresses. */
static void both(unsigned char *src, unsigned char *dst, int in_segment, int round) {
    unsigned char *bytes = fresh(ranks * len), *expected = fresh(ranks * len);
    vgasnet_node_t root = (vgasnet_node_t)round % ranks;
    int f = flags[round % 3] | VGASNET_COLL_LOCAL;
    for (int exchange = 0; exchange < 2; ++exchange) {
        size_t all = exchange ? ranks * len : len;
        for (vgasnet_node_t i = 0; i < (exchange ? ranks : 1); ++i) {
            block(me, exchange ? i : 0, round, bytes + i * len);
            block(exchange ? i : root, exchange ? me : 0, round, expected + i * len);
        }
        if (in_segment) vgasnet_put(me, src, bytes, all);
        else memcpy(src, bytes, all);
        vgasnet_barrier_notify(0, VGASNET_BARRIERFLAG_ANONYMOUS);
        CHECK(vgasnet_barrier_wait(0, VGASNET_BARRIERFLAG_ANONYMOUS) == VGASNET_OK);
        if (exchange) vgasnet_coll_exchange(VGASNET_TEAM_ALL, dst, src, len, f);
        else vgasnet_coll_broadcast(VGASNET_TEAM_ALL, dst, root, src, len, f);
        /* A source belongs to the client again when all have called, with any flags. */
        vgasnet_barrier_notify(0, VGASNET_BARRIERFLAG_ANONYMOUS);
        CHECK(vgasnet_barrier_wait(0, VGASNET_BARRIERFLAG_ANONYMOUS) == VGASNET_OK);
        if (in_segment) vgasnet_get(bytes, me, dst, all);
        else memcpy(bytes, dst, all);
        check_bytes(bytes, expected, all, exchange ? "exchange" : "broadcast");
    }
    free(bytes), free(expected);
}

static void on_the_stack(int round) {
    unsigned char src[STACK_BYTES], dst[STACK_BYTES];
    both(src, dst, 0, round);
}

/* Memory with this protection for all but the first page. */
static unsigned char *protect(int protection) {
    void *bytes;
    CHECK(posix_memalign(&bytes, 4096, len) == 0);
    CHECK(mprotect((char *)bytes + 4096, len - 4096, protection) == 0);
    return (unsigned char *)bytes;
}

static unsigned char *guarded;
static volatile int faults;

static void allow(int number, siginfo_t *info, void *context) {
    uintptr_t page = (uintptr_t)info->si_addr & ~(uintptr_t)4095;
    (void)number, (void)context;
    if (page < (uintptr_t)guarded || page >= (uintptr_t)(guarded + len)) _exit(3);
    ++faults;
    if (mprotect((void *)page, 4096, PROT_READ | PROT_WRITE) != 0) _exit(4);
}

/* Memory managed by the program: its handler of SIGSEGV makes pages accessible, once each. */
static void check_managed(int of_source) {
    struct sigaction action;
    unsigned char *expected;
    vgasnet_node_t root = 1;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = allow, action.sa_flags = SA_SIGINFO;
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    len = 1 << 20, expected = fresh(len);
    block(root, 0, 0, expected);
    unsigned char *other = fresh(len);
    guarded = protect(PROT_READ | PROT_WRITE);
    memcpy(of_source ? guarded : other, expected, len);
    CHECK(mprotect(guarded + 4096, len - 4096, of_source ? PROT_NONE : PROT_READ) == 0);
    vgasnet_coll_broadcast(VGASNET_TEAM_ALL, of_source ? other : guarded, root, of_source ? guarded : other, len,
                           flags[2] | VGASNET_COLL_LOCAL);
    check_bytes(of_source ? other : guarded, expected, len, "managed memory");
    CHECK_EQ(faults, of_source && me != root ? 0 : (int)(len / 4096) - 1);
    free(expected), free(other);
}

int main(int argc, char **argv) {
    size_t segment_bytes = 8u << 20;
    start(&argc, &argv, segment_bytes);
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    if (argc > 1 && strncmp(argv[1], "managed", 7) == 0) {
        check_managed(strcmp(argv[1], "managed-source") == 0);
        return finish();
    }
    if (argc > 1) {
        int is_source = strcmp(argv[1], "unreadable") == 0;
        unsigned char *bytes, *other;
        len = 1 << 20, bytes = protect(is_source ? PROT_NONE : PROT_READ), other = fresh(len);
        if (is_source) vgasnet_coll_broadcast(VGASNET_TEAM_ALL, other, 1, bytes, len, flags[1] | VGASNET_COLL_LOCAL);
        else vgasnet_coll_broadcast(VGASNET_TEAM_ALL, me == 1 ? other : bytes, 1, fresh(len), len, flags[1] | VGASNET_COLL_LOCAL);
        return finish();
    }
    for (int round = 0; round < 3; ++round) {
        unsigned char *src, *dst;
        len = STACK_BYTES / ranks - 100 * (size_t)round;
        on_the_stack(round);
        len = (segment_bytes - SPARE) / 2 / ranks - 100 * (size_t)round;
        src = fresh(ranks * len), dst = fresh(ranks * len);
        both(src, dst, 0, round);
        free(src), free(dst);
        both((unsigned char *)at(me, 24), (unsigned char *)at(me, segment_bytes / 2 + 7), 1, round);
    }
    return finish();
}
