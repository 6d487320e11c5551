/* Collectives of random kinds, sizes, roots, flags and places, in teams of all shapes, compared with the expected
 * bytes. */
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include "check.h"

enum { BATCHES = 12, BATCH_MAX = 40, FUNCTIONS = 2 };

typedef enum { BROADCAST, SCATTER, GATHER, GATHER_ALL, EXCHANGE, REDUCE, KINDS } Kind;

/* A collective, drawn identically by every rank of the team, and this rank's memory for it. */
typedef struct {
    Kind kind;
    uint64_t seed;
    vgasnet_image_t root;
    size_t len;
    int flags, several;
    unsigned char *src, *dst, *expected;
    size_t src_len, dst_len;
    void *lists[2][64];
    vgasnet_coll_handle_t handle;
} Collective;

/* A team, with random numbers shared by its ranks, and random numbers of this rank's own. */
typedef struct {
    vgasnet_team_handle_t handle;
    vgasnet_image_t me, ranks;
    uint64_t shared, own;
    /* The part of the own segment for this team, and its used length. */
    uintptr_t base, size, used;
} Team;

static int is_in_segment(const unsigned char *memory, size_t size) {
    const unsigned char *first = (const unsigned char *)at(vgasnet_mynode(), 0);
    return memory >= first && memory < first + size;
}

static size_t segment_bytes;

/* Uses puts and gets for memory in the segment, so that a pool of one page is enough. */
static void write_to(unsigned char *memory, const unsigned char *from, size_t len) {
    if (is_in_segment(memory, segment_bytes)) vgasnet_put(vgasnet_mynode(), memory, (void *)(uintptr_t)from, len);
    else if (len > 0) memcpy(memory, from, len);
}

static unsigned char *obtain(Team *team, size_t len) {
    size_t rounded = len + 1 + (size_t)random_below(&team->own, 50);
    if (random_below(&team->own, 2) == 0 || team->used + rounded > team->size) return (unsigned char *)allocate(len);
    team->used += rounded;
    return (unsigned char *)at(vgasnet_mynode(), team->base + team->used - rounded);
}

static void release(unsigned char *memory) {
    if (!is_in_segment(memory, segment_bytes)) free(memory);
}

/* The bytes from rank `from` for rank `to`. The elements of a reduction are maps x -> a x + b, which do not commute. */
static void block(const Collective *its, vgasnet_image_t from, vgasnet_image_t to, unsigned char *bytes) {
    uint64_t state = its->seed ^ (((uint64_t)from << 20) + to) * UINT64_C(0x9e3779b97f4a7c15);
    random_bytes(&state, bytes, its->len);
}

static void compose(void *results, size_t result_count, const void *left, size_t left_count, const void *right,
                    size_t elem_size, int flags, int arg) {
    CHECK_EQ(result_count, left_count);
    CHECK_EQ(elem_size, 8);
    CHECK(flags == 77 && arg == -5);
    for (size_t i = 0; i < left_count; ++i) {
        uint32_t f[2], g[2], both[2];
        memcpy(f, (const char *)left + 8 * i, 8);
        memcpy(g, (const char *)right + 8 * i, 8);
        both[0] = f[0] * g[0];
        both[1] = f[0] * g[1] + f[1];
        memcpy((char *)results + 8 * i, both, 8);
    }
}

static void bad_function(void *results, size_t result_count, const void *left, size_t left_count, const void *right,
                         size_t elem_size, int flags, int arg) {
    (void)results, (void)result_count, (void)left, (void)left_count, (void)right, (void)elem_size, (void)flags, (void)arg;
    CHECK(!"the other function was asked for");
}

static void blocks(const Collective *its, unsigned char *bytes, vgasnet_image_t ranks, vgasnet_image_t mine, int from_all) {
    for (vgasnet_image_t i = 0; i < ranks; ++i) {
        if (from_all) block(its, i, mine, bytes + i * its->len);
        else block(its, mine, i, bytes + i * its->len);
    }
}

static void expect(const Team *team, Collective *its) {
    unsigned char *right = (unsigned char *)allocate(its->len);
    switch (its->kind) {
        case BROADCAST: block(its, its->root, 0, its->expected); break;
        case SCATTER: block(its, its->root, team->me, its->expected); break;
        case GATHER:
        case GATHER_ALL: blocks(its, its->expected, team->ranks, 0, 1); break;
        case EXCHANGE: blocks(its, its->expected, team->ranks, team->me, 1); break;
        default:
            block(its, 0, 0, its->expected);
            for (vgasnet_image_t i = 1; i < team->ranks; ++i) {
                block(its, i, 0, right);
                compose(its->expected, its->len / 8, its->expected, its->len / 8, right, 8, 77, -5);
            }
    }
    free(right);
}

static int random_flags(uint64_t *state) {
    int flags = 1 << random_below(state, 3) | 8 << random_below(state, 3);
    flags |= random_below(state, 2) == 0 ? VGASNET_COLL_SINGLE : VGASNET_COLL_LOCAL;
    if (random_below(state, 4) == 0) flags |= VGASNET_COLL_AGGREGATE;
    return flags;
}

static void prepare(Team *team, Collective *its, size_t most) {
    unsigned char *bytes;
    int is_root, has_src, has_dst;
    its->kind = (Kind)random_below(&team->shared, KINDS);
    its->seed = random_word(&team->shared);
    its->root = (vgasnet_image_t)random_below(&team->shared, team->ranks);
    its->flags = random_flags(&team->shared);
    its->several = (int)random_below(&team->shared, 2);
    its->len = random_length(&team->shared, random_below(&team->shared, 20) == 0 ? 3 * most : most / 4) / 8 * 8;
    if (its->kind != REDUCE && its->len > 0) its->len -= (size_t)random_below(&team->shared, 8);
    is_root = team->me == its->root;
    has_src = is_root || (its->kind != BROADCAST && its->kind != SCATTER);
    has_dst = is_root || (its->kind != GATHER && its->kind != REDUCE);
    its->src_len = its->kind == SCATTER || its->kind == EXCHANGE ? team->ranks * its->len : its->len;
    its->dst_len = its->kind == GATHER || its->kind == GATHER_ALL || its->kind == EXCHANGE ? team->ranks * its->len : its->len;
    if (!has_src) its->src_len = 0;
    if (!has_dst) its->dst_len = 0;
    its->src = obtain(team, its->src_len), its->dst = obtain(team, its->dst_len);
    its->expected = (unsigned char *)allocate(its->dst_len);
    bytes = (unsigned char *)allocate(its->src_len);
    if (has_src && its->src_len > its->len) blocks(its, bytes, team->ranks, team->me, 0);
    else if (has_src) block(its, team->me, 0, bytes);
    write_to(its->src, bytes, its->src_len);
    free(bytes);
    if (has_dst) expect(team, its);
    /* With SINGLE a list has every rank's entry, and only the own entry matters. */
    for (int i = 0; i < 64; ++i) its->lists[0][i] = its->lists[1][i] = NULL;
    its->lists[0][its->flags & VGASNET_COLL_SINGLE ? team->me : 0] = its->dst;
    its->lists[1][its->flags & VGASNET_COLL_SINGLE ? team->me : 0] = its->src;
}

static void start_it(const Team *team, Collective *its) {
    vgasnet_team_handle_t t = team->handle;
    void *src = its->src, *dst = its->dst, **dsts = its->lists[0], **srcs = its->lists[1];
    size_t n = its->len;
    vgasnet_image_t root = its->root;
    int f = its->flags, m = its->several;
    vgasnet_coll_handle_t h = VGASNET_COLL_INVALID_HANDLE;
    switch (its->kind) {
        case BROADCAST:
            h = m ? vgasnet_coll_broadcastM_nb(t, dsts, root, src, n, f) : vgasnet_coll_broadcast_nb(t, dst, root, src, n, f);
            break;
        case SCATTER:
            h = m ? vgasnet_coll_scatterM_nb(t, dsts, root, src, n, f) : vgasnet_coll_scatter_nb(t, dst, root, src, n, f);
            break;
        case GATHER:
            h = m ? vgasnet_coll_gatherM_nb(t, root, dst, srcs, n, f) : vgasnet_coll_gather_nb(t, root, dst, src, n, f);
            break;
        case GATHER_ALL:
            h = m ? vgasnet_coll_gather_allM_nb(t, dsts, srcs, n, f) : vgasnet_coll_gather_all_nb(t, dst, src, n, f);
            break;
        case EXCHANGE:
            h = m ? vgasnet_coll_exchangeM_nb(t, dsts, srcs, n, f) : vgasnet_coll_exchange_nb(t, dst, src, n, f);
            break;
        default:
            h = m ? vgasnet_coll_reduceM_nb(t, root, dst, srcs, 0, 0, 8, n / 8, 1, -5, f)
                  : vgasnet_coll_reduce_nb(t, root, dst, src, 0, 0, 8, n / 8, 1, -5, f);
    }
    its->handle = h;
}

static void do_it(const Team *team, Collective *its) {
    vgasnet_team_handle_t t = team->handle;
    void *src = its->src, *dst = its->dst, **dsts = its->lists[0], **srcs = its->lists[1];
    size_t n = its->len;
    vgasnet_image_t root = its->root;
    int f = its->flags;
    its->handle = VGASNET_COLL_INVALID_HANDLE;
    switch (its->kind + (its->several ? KINDS : 0)) {
        case BROADCAST: vgasnet_coll_broadcast(t, dst, root, src, n, f); break;
        case BROADCAST + KINDS: vgasnet_coll_broadcastM(t, dsts, root, src, n, f); break;
        case SCATTER: vgasnet_coll_scatter(t, dst, root, src, n, f); break;
        case SCATTER + KINDS: vgasnet_coll_scatterM(t, dsts, root, src, n, f); break;
        case GATHER: vgasnet_coll_gather(t, root, dst, src, n, f); break;
        case GATHER + KINDS: vgasnet_coll_gatherM(t, root, dst, srcs, n, f); break;
        case GATHER_ALL: vgasnet_coll_gather_all(t, dst, src, n, f); break;
        case GATHER_ALL + KINDS: vgasnet_coll_gather_allM(t, dsts, srcs, n, f); break;
        case EXCHANGE: vgasnet_coll_exchange(t, dst, src, n, f); break;
        case EXCHANGE + KINDS: vgasnet_coll_exchangeM(t, dsts, srcs, n, f); break;
        case REDUCE: vgasnet_coll_reduce(t, root, dst, src, 0, 0, 8, n / 8, 1, -5, f); break;
        default: vgasnet_coll_reduceM(t, root, dst, srcs, 0, 0, 8, n / 8, 1, -5, f);
    }
}

static void compare(Collective *its) {
    char what[80];
    unsigned char *is = its->dst;
    snprintf(what, sizeof what, "kind %d root %u of %zu bytes, flags %#x", (int)its->kind, its->root, its->len, (unsigned)its->flags);
    if (is_in_segment(is, segment_bytes)) {
        is = (unsigned char *)allocate(its->dst_len);
        vgasnet_get(is, vgasnet_mynode(), its->dst, its->dst_len);
    }
    check_bytes(is, its->expected, its->dst_len, what);
    if (is != its->dst) free(is);
    release(its->src), release(its->dst), free(its->expected);
}

/* All handles are synced in the end, by any of the functions. */
static void sync_all(Team *team, Collective *all, int count) {
    vgasnet_coll_handle_t handles[BATCH_MAX];
    int way = (int)random_below(&team->own, 5);
    for (int i = 0; i < count; ++i) handles[i] = all[i].handle;
    if (way == 0) vgasnet_coll_wait_sync_all(handles, (size_t)count);
    if (way == 1) while (vgasnet_coll_try_sync_all(handles, (size_t)count) != VGASNET_OK) {}
    if (way == 2) for (int i = count; i-- > 0;) vgasnet_coll_wait_sync(handles[i]);
    if (way == 3) for (int i = 0; i < count; ++i) while (vgasnet_coll_try_sync(handles[i]) != VGASNET_OK) vgasnet_AMPoll();
    if (way == 4) {
        for (int left = 1; left;) {
            if (random_below(&team->own, 2) == 0) vgasnet_coll_wait_sync_some(handles, (size_t)count);
            else (void)vgasnet_coll_try_sync_some(handles, (size_t)count);
            left = 0;
            for (int i = 0; i < count; ++i) left |= handles[i] != VGASNET_COLL_INVALID_HANDLE;
        }
    }
}

static void team_barrier(const Team *team, int id) {
    vgasnet_coll_barrier_notify(team->handle, id, 0);
    if (id % 2 == 0) {
        CHECK(vgasnet_coll_barrier_wait(team->handle, id, 0) == VGASNET_OK);
    } else {
        int result;
        while ((result = vgasnet_coll_barrier_try(team->handle, id, 0)) == VGASNET_ERR_NOT_READY) {}
        CHECK(result == VGASNET_OK);
    }
}

/* One after the other, or all at once: more than a team's limit of collectives in flight. */
static void batch(Team *team, int number) {
    static const size_t mosts[] = {600, 4000, 40000, 150000};
    size_t most = mosts[random_below(&team->shared, 4)] / (1 + team->ranks / 4);
    int count = 1 + (int)random_below(&team->shared, most < 5000 ? BATCH_MAX : 6), at_once = (int)random_below(&team->shared, 2);
    Collective *all = (Collective *)allocate((size_t)count * sizeof *all);
    team->used = 0;
    for (int i = 0; i < count; ++i) prepare(team, &all[i], most);
    team_barrier(team, 2 * number); /* for IN_NOSYNC */
    for (int i = 0; i < count; ++i) {
        if (random_below(&team->own, 16) == 0) for (int spin = 0; spin < 200; ++spin) sched_yield();
        if (at_once) start_it(team, &all[i]);
        else do_it(team, &all[i]);
    }
    sync_all(team, all, count);
    team_barrier(team, 2 * number + 1); /* for OUT_NOSYNC */
    for (int i = 0; i < count; ++i) compare(&all[i]);
    free(all);
}

static Team use(vgasnet_team_handle_t handle, uint64_t seed, uintptr_t base, uintptr_t size) {
    Team team;
    memset(&team, 0, sizeof team);
    team.handle = handle;
    team.ranks = vgasnet_coll_team_size(handle), team.me = vgasnet_coll_team_node2rank(handle, vgasnet_mynode());
    CHECK(vgasnet_coll_team_rank2node(handle, team.me) == vgasnet_mynode());
    team.shared = mixed(5, seed, team.ranks);
    team.own = mixed(6, seed, vgasnet_mynode());
    team.base = base, team.size = size;
    return team;
}

/* Puts before the call are complete before any bytes move, and after the call the bytes have arrived on all ranks. */
static void all_sync(const Team *all) {
    vgasnet_node_t me = vgasnet_mynode(), ranks = vgasnet_nodes();
    int flags = VGASNET_COLL_IN_ALLSYNC | VGASNET_COLL_OUT_ALLSYNC | VGASNET_COLL_SINGLE;
    for (uint64_t round = 1; round < 9; ++round) {
        uint64_t value = round * 1000 + me, seen;
        vgasnet_node_t root = (vgasnet_node_t)round % ranks;
        uintptr_t src = round * 1024, dst = (8 + round) * 1024;
        vgasnet_put(root, at(root, src + me * sizeof value), &value, sizeof value);
        vgasnet_coll_broadcast(all->handle, at(me, dst), root, at(me, src), ranks * sizeof value, flags);
        for (vgasnet_node_t i = 0; i < ranks; ++i) {
            vgasnet_get(&seen, (me + i) % ranks, at((me + i) % ranks, dst + i * sizeof seen), sizeof seen);
            CHECK_EQ(seen, round * 1000 + i);
        }
        team_barrier(all, 1);
    }
}

static void barrier_names(const Team *team) {
    vgasnet_coll_barrier_notify(team->handle, 5, team->me == 0 ? VGASNET_BARRIERFLAG_ANONYMOUS : 0);
    CHECK(vgasnet_coll_barrier_wait(team->handle, 5, team->me == 0 ? VGASNET_BARRIERFLAG_ANONYMOUS : 0) == VGASNET_OK);
    vgasnet_coll_barrier_notify(team->handle, team->me == 0, 0);
    CHECK(vgasnet_coll_barrier_wait(team->handle, team->me == 0, 0) ==
          (team->ranks == 1 ? VGASNET_OK : VGASNET_ERR_BARRIER_MISMATCH));
}

static void *in_thread(void *argument) {
    Team *team = (Team *)argument;
    for (int i = 0; i < 4; ++i) batch(team, i);
    return NULL;
}

/* Two threads, each with its own team of all ranks. */
static void threads(const Team *all) {
    vgasnet_team_handle_t handles[2];
    Team teams[2];
    pthread_t other;
    for (int i = 0; i < 2; ++i) {
        handles[i] = vgasnet_coll_team_split(all->handle, 3, vgasnet_nodes() - all->me, NULL);
        teams[i] = use(handles[i], 100 + (uint64_t)i, all->base + (uintptr_t)i * all->size / 2, all->size / 2);
        CHECK_EQ(teams[i].me, all->ranks - 1 - all->me);
    }
    CHECK(handles[0] != handles[1]);
    CHECK(pthread_create(&other, NULL, in_thread, &teams[0]) == 0);
    in_thread(&teams[1]);
    CHECK(pthread_join(other, NULL) == 0);
    for (int i = 0; i < 2; ++i) vgasnet_coll_team_free(handles[i]);
}

static void *broadcast_one(void *unused) {
    char byte = 0;
    vgasnet_coll_broadcast(VGASNET_TEAM_ALL, &byte, 0, &byte, 1, VGASNET_COLL_LOCAL);
    return unused;
}

static void *broadcast_as_image(void *images) {
    vgasnet_coll_init((const vgasnet_image_t *)images, 1, NULL, 0, 0);
    return broadcast_one(NULL);
}

static void run_in_thread(void *(*body)(void *), void *argument) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, body, argument) == 0 && pthread_join(thread, NULL) == 0);
}

/* Each of these ends the job. The first rank has images[0] images. */
static void misuse_of_images(const char *what, vgasnet_image_t images[]) {
    static char bytes[2][16 * 16];
    int flags = VGASNET_COLL_IN_NOSYNC | VGASNET_COLL_OUT_NOSYNC | VGASNET_COLL_LOCAL;
    if (strcmp(what, "image") == 0) vgasnet_coll_init(images, images[0], NULL, 0, 0);
    if (strcmp(what, "no-image") == 0) images[1] = 0;
    if (strcmp(what, "image-memory") == 0) images[0] = 1, images[1] = 2;
    vgasnet_coll_init(images, 0, NULL, 0, 0);
    if (strcmp(what, "image-thread") == 0) run_in_thread(broadcast_one, NULL);
    if (strcmp(what, "image-root") == 0) vgasnet_coll_broadcast(VGASNET_TEAM_ALL, bytes, 3, bytes, 1, flags);
    if (strcmp(what, "image-memory") == 0) {
        /* Limits the address space, since the system may allow any overcommit. */
        const struct rlimit one_tib = {(rlim_t)1 << 40, (rlim_t)1 << 40};
        CHECK(setrlimit(RLIMIT_AS, &one_tib) == 0);
        vgasnet_coll_exchange(VGASNET_TEAM_ALL, bytes[0], bytes[1], (size_t)1 << 40, flags);
    }
    (void)vgasnet_coll_gather_all_nb(VGASNET_TEAM_ALL, bytes[0], bytes[1], 1, flags);
    if (strcmp(what, "image-differs") == 0) run_in_thread(broadcast_as_image, images);
    if (strcmp(what, "images-change") == 0) vgasnet_coll_init(NULL, 0, NULL, 0, 0);
}

/* Each of these ends the job. */
static void misuse(const char *what) {
    vgasnet_image_t images[16];
    vgasnet_node_t ranks = vgasnet_nodes();
    char bytes[2][16 * 16];
    int flags = VGASNET_COLL_IN_NOSYNC | VGASNET_COLL_OUT_NOSYNC | VGASNET_COLL_LOCAL;
    for (vgasnet_node_t i = 0; i < 16; ++i) images[i] = i == 0 ? 2 : 1;
    if (strstr(what, "image") != NULL) misuse_of_images(what, images);
    if (strcmp(what, "no-team") == 0) vgasnet_coll_team_size((vgasnet_team_handle_t)bytes);
    if (strcmp(what, "no-root") == 0) vgasnet_coll_scatter(VGASNET_TEAM_ALL, bytes, ranks, bytes, 1, flags);
    if (strcmp(what, "flags") == 0) vgasnet_coll_gather_all(VGASNET_TEAM_ALL, bytes[0], bytes[1], 1, 1 << 9);
    if (strcmp(what, "function") == 0) vgasnet_coll_reduce(VGASNET_TEAM_ALL, 0, bytes[0], bytes[1], 0, 0, 8, 1, 7, 0, flags);
    if (strcmp(what, "null") == 0) vgasnet_coll_exchange(VGASNET_TEAM_ALL, bytes, NULL, 1, flags);
    if (strcmp(what, "list") == 0) vgasnet_coll_gatherM(VGASNET_TEAM_ALL, 0, bytes, NULL, 1, flags);
    if (strcmp(what, "free-all") == 0) vgasnet_coll_team_free(VGASNET_TEAM_ALL);
    if (strcmp(what, "wait") == 0) (void)vgasnet_coll_barrier_wait(VGASNET_TEAM_ALL, 0, 0);
}

int main(int argc, char **argv) {
    vgasnet_coll_fn_entry_t functions[FUNCTIONS] = {{bad_function, 1}, {compose, 77}};
    Team all, part, both;
    segment_bytes = 3 * pool_bytes() + 17 * 1024;
    if (segment_bytes < 700000) segment_bytes = 700000;
    if (segment_bytes > (64u << 20)) segment_bytes = 64u << 20;
    start(&argc, &argv, segment_bytes);
    vgasnet_coll_init(NULL, 0, functions, FUNCTIONS, 0);
    if (argc > 1) {
        if (vgasnet_mynode() == 0) misuse(argv[1]);
        return finish();
    }
    all = use(VGASNET_TEAM_ALL, 1, 17 * 1024, segment_bytes - 17 * 1024);
    CHECK(all.me == vgasnet_mynode() && all.ranks == vgasnet_nodes());
    all_sync(&all);
    for (int i = 0; i < BATCHES; ++i) batch(&all, i);
    part = use(vgasnet_coll_team_split(VGASNET_TEAM_ALL, all.me % 2, all.me, NULL), 2, all.base, all.size);
    CHECK_EQ(part.me, all.me / 2);
    barrier_names(&part);
    /* Both teams at the same time. */
    both = all, both.base += all.size / 2, both.size /= 2, part.size /= 2;
    for (int i = 0; i < 6; ++i) {
        batch(&part, i);
        if (i % 3 == 2) batch(&both, i);
    }
    barrier_names(&part);
    vgasnet_coll_team_free(part.handle);
    threads(&all);
    return finish();
}
