/* Collectives of several images a node. Images are threads. The arguments are the numbers of images of the nodes,
 * repeated from the first one as needed. Without arguments each node has as many as the thread mode permits, at most
 * 2. */
#include "client.h"

#include <gasnet_coll.h>
#include <gasnet_tools.h>

enum { SLOTS = 4, ROUNDS = 30, IMAGES_MAX = 64, LIMITS = GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_ALLSYNC };
enum { BROADCAST, SCATTER, GATHER, GATHER_ALL, EXCHANGE, REDUCE, KINDS };

#ifdef GASNET_PAR
enum { DEFAULT_IMAGES = 2 };
#else
enum { DEFAULT_IMAGES = 1 };
#endif

static gasnet_image_t images[IMAGES_MAX], first[IMAGES_MAX + 1];
/* For each image: a part of its node's segment, and memory of the same size. */
static size_t area_bytes;
static unsigned char *heap[IMAGES_MAX];

/* A collective, drawn identically by all images. */
typedef struct {
    int kind, flags, is_list, is_in_segment;
    gasnet_image_t root;
    size_t len;
    uint64_t seed;
    unsigned slot;
    gasnet_coll_handle_t handle;
} Collective;

/* The state of an image. */
typedef struct {
    gasnet_image_t image, nth;
    uint64_t random;
    unsigned char *bytes;
} Image;

static uint64_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static gasnet_node_t node_of(gasnet_image_t image) {
    gasnet_node_t node = 0;
    while (first[node + 1] <= image) ++node;
    return node;
}

static size_t half_bytes(void) { return area_bytes / SLOTS / 2 / 16 * 16; }

/* The source (0) or destination (1) of an image. The address is known for images of this node, or in segments. */
static unsigned char *place(const Collective *its, gasnet_image_t image, int side) {
    gasnet_node_t node = node_of(image);
    size_t offset = ((size_t)its->slot * 2 + (size_t)side) * half_bytes();
    if (its->is_in_segment) return (unsigned char *)at(node, (image - first[node]) * area_bytes + offset);
    return node == me ? heap[image - first[node]] + offset : NULL;
}

/* The bytes from an image to another one. Elements of a reduction are maps x -> a x + b, which do not commute. */
static void block(const Collective *its, gasnet_image_t from, gasnet_image_t to, unsigned char *bytes) {
    uint64_t state = its->seed + from * 1000003u + (its->kind == SCATTER || its->kind == EXCHANGE ? to : 0) * 7919u;
    size_t i;
    for (i = 0; i < its->len; ++i) bytes[i] = (unsigned char)(next_random(&state) >> 3);
}

static void compose(void *results, size_t result_count, const void *left_operands, size_t left_count,
                    const void *right_operands, size_t elem_size, int flags, int arg) {
    size_t i;
    CHECK(elem_size == 8 && result_count == left_count && flags == 5 && arg == -3);
    for (i = 0; i < result_count; ++i) {
        uint32_t f[2], g[2], both[2];
        memcpy(f, (const char *)left_operands + 8 * i, 8);
        memcpy(g, (const char *)right_operands + 8 * i, 8);
        both[0] = f[0] * g[0];
        both[1] = f[0] * g[1] + f[1];
        memcpy((char *)results + 8 * i, both, 8);
    }
}

static int has_source(const Collective *its, gasnet_image_t image) {
    return image == its->root || (its->kind != BROADCAST && its->kind != SCATTER);
}
static int has_destination(const Collective *its, gasnet_image_t image) {
    return image == its->root || (its->kind != GATHER && its->kind != REDUCE);
}

/* Fills bytes with the source of an image, or with the expected content of its destination. Returns their number. */
static size_t source_of(const Collective *its, gasnet_image_t image, unsigned char *bytes) {
    gasnet_image_t to, blocks = its->kind == SCATTER || its->kind == EXCHANGE ? first[nodes] : 1;
    for (to = 0; to < blocks; ++to) block(its, image, to, bytes + to * its->len);
    return has_source(its, image) ? blocks * its->len : 0;
}
static size_t expected_of(const Collective *its, gasnet_image_t image, unsigned char *bytes) {
    gasnet_image_t from;
    size_t blocks = 1;
    if (its->kind == BROADCAST || its->kind == SCATTER) {
        block(its, its->root, image, bytes);
    } else if (its->kind == REDUCE) {
        unsigned char *right = (unsigned char *)malloc(its->len + 1);
        CHECK(right != NULL);
        block(its, 0, 0, bytes);
        for (from = 1; from < first[nodes]; ++from) {
            block(its, from, 0, right);
            compose(bytes, its->len / 8, bytes, its->len / 8, right, 8, 5, -3);
        }
        free(right);
    } else {
        for (from = 0; from < first[nodes]; ++from) block(its, from, image, bytes + from * its->len);
        blocks = first[nodes];
    }
    return has_destination(its, image) ? blocks * its->len : 0;
}

static void copy_out(const Collective *its, gasnet_image_t image, int side, const unsigned char *bytes, size_t len) {
    if (its->is_in_segment) gasnet_put_bulk(node_of(image), place(its, image, side), (void *)(uintptr_t)bytes, len);
    else memcpy(place(its, image, side), bytes, len);
}
static void copy_in(const Collective *its, gasnet_image_t image, int side, unsigned char *bytes, size_t len) {
    if (its->is_in_segment) gasnet_get_bulk(bytes, node_of(image), place(its, image, side), len);
    else memcpy(bytes, place(its, image, side), len);
}

static Collective draw(uint64_t *random, unsigned slot) {
    const int in[] = {GASNET_COLL_IN_NOSYNC, GASNET_COLL_IN_MYSYNC, GASNET_COLL_IN_ALLSYNC};
    const int out[] = {GASNET_COLL_OUT_NOSYNC, GASNET_COLL_OUT_MYSYNC, GASNET_COLL_OUT_ALLSYNC};
    Collective its;
    size_t most;
    memset(&its, 0, sizeof its);
    its.kind = (int)(next_random(random) % KINDS);
    its.root = (gasnet_image_t)(next_random(random) % first[nodes]);
    its.slot = slot;
    its.is_list = (int)(next_random(random) % 2);
    its.is_in_segment = (int)(next_random(random) % 2);
    its.flags = in[next_random(random) % 3] | out[next_random(random) % 3];
    its.flags |= its.is_list && its.is_in_segment && next_random(random) % 2 ? GASNET_COLL_SINGLE : GASNET_COLL_LOCAL;
    most = its.kind == BROADCAST || its.kind == REDUCE ? half_bytes() : half_bytes() / first[nodes];
    its.len = (size_t)(next_random(random) % (next_random(random) % 4 == 0 ? most + 1 : most / 40 + 1));
    if (its.kind == REDUCE) its.len = its.len / 8 * 8;
    its.seed = next_random(random);
    return its;
}

static void begin(Image *self, Collective *its) {
    void *lists[2][IMAGES_MAX], *src = place(its, self->image, 0), *dst = place(its, self->image, 1);
    const gasnet_team_handle_t all = GASNET_TEAM_ALL;
    const int is_single = (its->flags & GASNET_COLL_SINGLE) != 0, f = its->flags;
    gasnet_image_t i, begin = is_single ? 0 : first[me], end = is_single ? first[nodes] : first[me + 1];
    for (i = begin; i < end; ++i) lists[0][i - begin] = place(its, i, 0), lists[1][i - begin] = place(its, i, 1);
#define BEGIN_(name, ...) \
    its->handle = gasnet_coll_##name##_nb(__VA_ARGS__); \
    break
    if (its->is_list) {
        switch (its->kind) {
        case BROADCAST: BEGIN_(broadcastM, all, lists[1], its->root, src, its->len, f);
        case SCATTER: BEGIN_(scatterM, all, lists[1], its->root, src, its->len, f);
        case GATHER: BEGIN_(gatherM, all, its->root, dst, lists[0], its->len, f);
        case GATHER_ALL: BEGIN_(gather_allM, all, lists[1], lists[0], its->len, f);
        case EXCHANGE: BEGIN_(exchangeM, all, lists[1], lists[0], its->len, f);
        default: BEGIN_(reduceM, all, its->root, dst, lists[0], 0, 0, 8, its->len / 8, 0, -3, f);
        }
        return;
    }
    switch (its->kind) {
    case BROADCAST: BEGIN_(broadcast, all, dst, its->root, src, its->len, f);
    case SCATTER: BEGIN_(scatter, all, dst, its->root, src, its->len, f);
    case GATHER: BEGIN_(gather, all, its->root, dst, src, its->len, f);
    case GATHER_ALL: BEGIN_(gather_all, all, dst, src, its->len, f);
    case EXCHANGE: BEGIN_(exchange, all, dst, src, its->len, f);
    default: BEGIN_(reduce, all, its->root, dst, src, 0, 0, 8, its->len / 8, 0, -3, f);
    }
}

static int barrier_of_images(int id, int flags) {
    return gasnet_coll_barrier(GASNET_TEAM_ALL, id, flags | GASNET_BARRIERFLAG_IMAGES);
}

/* Writes the source of an image, and fills its destination with other bytes than expected. */
static void prepare(Image *self, const Collective *its, gasnet_image_t image) {
    size_t len = expected_of(its, image, self->bytes), i;
    for (i = 0; i < len; ++i) self->bytes[i] = (unsigned char)~self->bytes[i];
    copy_out(its, image, 1, self->bytes, len);
    copy_out(its, image, 0, self->bytes, source_of(its, image, self->bytes));
}

static void verify(Image *self, const Collective *its, gasnet_image_t image) {
    size_t len = expected_of(its, image, self->bytes);
    copy_in(its, image, 1, self->bytes + half_bytes(), len);
    CHECK(memcmp(self->bytes, self->bytes + half_bytes(), len) == 0);
}

/* Some collectives at once. With full synchronisation at both ends, other images prepare and verify the memory of
 * each image. */
static void several(Image *self) {
    Collective all[SLOTS];
    gasnet_image_t count = first[nodes], next = (self->image + 1) % count, image;
    unsigned slot;
    for (slot = 0; slot < SLOTS; ++slot) {
        Collective *its = &all[slot];
        *its = draw(&self->random, slot);
        image = its->is_in_segment && (its->flags & GASNET_COLL_IN_ALLSYNC) ? next : self->image;
        prepare(self, its, image);
        begin(self, its);
    }
    for (slot = SLOTS; slot-- > 0;) {
        if (self->image % 2) gasnet_coll_wait_sync(all[slot].handle);
        else while (gasnet_coll_try_sync(all[slot].handle) == GASNET_ERR_NOT_READY) gasnet_AMPoll();
        image = all[slot].is_in_segment && (all[slot].flags & GASNET_COLL_OUT_ALLSYNC) ? next : self->image;
        if (all[slot].flags & (GASNET_COLL_OUT_MYSYNC | GASNET_COLL_OUT_ALLSYNC)) verify(self, &all[slot], image);
    }
    CHECK(barrier_of_images((int)self->random, 0) == GASNET_OK);
    for (slot = 0; slot < SLOTS; ++slot) verify(self, &all[slot], self->image);
    CHECK(barrier_of_images(0, GASNET_BARRIERFLAG_ANONYMOUS) == GASNET_OK);
}

/* Every image notifies and waits, and all learn whether the names match. */
static void barriers(Image *self) {
    const int by_images = GASNET_BARRIERFLAG_IMAGES, last = self->image + 1 == first[nodes];
    const int anonymous = GASNET_BARRIERFLAG_ANONYMOUS | by_images;
    int result, expected = first[nodes] > 1 ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK;
    CHECK(barrier_of_images(last ? 6 : 5, 0) == expected);
    CHECK(barrier_of_images(5, last ? GASNET_BARRIERFLAG_MISMATCH : 0) == GASNET_ERR_BARRIER_MISMATCH);
    gasnet_coll_barrier_notify(GASNET_TEAM_ALL, 9, last ? by_images : anonymous);
    CHECK(gasnet_coll_barrier_wait(GASNET_TEAM_ALL, 9, by_images) == GASNET_OK);
    gasnet_coll_barrier_notify(GASNET_TEAM_ALL, 8, by_images);
    while ((result = gasnet_coll_barrier_try(GASNET_TEAM_ALL, last ? 7 : 8, by_images)) == GASNET_ERR_NOT_READY) gasnet_AMPoll();
    CHECK(result == (last ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK));
}

/* A blocking collective of each kind, with the usual flags of clients. */
static void blocking(Image *self) {
    gasnet_image_t count = first[nodes], root = count - 1, i;
    uint64_t mine = self->image, *all = (uint64_t *)calloc(count, sizeof *all), *theirs = (uint64_t *)calloc(count, sizeof *all);
    const int flags = LIMITS | GASNET_COLL_LOCAL;
    CHECK(all != NULL && theirs != NULL);
    gasnet_coll_gather(GASNET_TEAM_ALL, root, all, &mine, sizeof mine, flags);
    for (i = 0; self->image == root && i < count; ++i) CHECK(all[i] == i);
    gasnet_coll_broadcast(GASNET_TEAM_ALL, all, root, all, count * sizeof mine, flags);
    for (i = 0; i < count; ++i) CHECK(all[i] == i);
    for (i = 0; i < count; ++i) all[i] = self->image * 1000 + i;
    gasnet_coll_exchange(GASNET_TEAM_ALL, theirs, all, sizeof mine, flags);
    for (i = 0; i < count; ++i) CHECK(theirs[i] == i * 1000 + self->image);
    gasnet_coll_scatter(GASNET_TEAM_ALL, &mine, root, theirs, sizeof mine, flags);
    CHECK(mine == self->image * 1000 + root);
    /* In place: an image's source is its own block. */
    all[self->image] = self->image + 7;
    gasnet_coll_gather_all(GASNET_TEAM_ALL, all, &all[self->image], sizeof mine, flags);
    for (i = 0; i < count; ++i) CHECK(all[i] == i + 7);
    free(all);
    free(theirs);
}

static void *run(void *argument) {
    Image *self = (Image *)argument;
    gasnet_coll_fn_entry_t functions[] = {{compose, 5}};
    int i;
    gasnet_coll_init(images, self->image, functions, 1, 0);
    blocking(self);
    for (i = 0; i < ROUNDS; ++i) several(self);
    barriers(self);
    return NULL;
}

int main(int argc, char **argv) {
    Image own[IMAGES_MAX];
#ifdef GASNET_PAR
    pthread_t threads[IMAGES_MAX];
#endif
    gasnet_team_handle_t half;
    gasnet_image_t i, most = 1;
    gasnet_node_t node;
    start(&argc, &argv, NULL, 0);
    for (node = 0; node < nodes; ++node) {
        images[node] = DEFAULT_IMAGES;
        if (argc > 1) images[node] = (gasnet_image_t)atoi(argv[1 + node % (gasnet_node_t)(argc - 1)]);
        first[node + 1] = first[node] + images[node];
        if (images[node] > most) most = images[node];
    }
    CHECK(first[nodes] <= IMAGES_MAX);
    area_bytes = segment_bytes() / most / 64 * 64;
    for (i = 0; i < images[me]; ++i) {
        own[i].image = first[me] + i, own[i].nth = i, own[i].random = number_from_environment("CHECK_SEED");
        heap[i] = (unsigned char *)malloc(area_bytes);
        own[i].bytes = (unsigned char *)malloc(2 * half_bytes());
        CHECK(heap[i] != NULL && own[i].bytes != NULL);
    }
#ifdef GASNET_PAR
    for (i = 1; i < images[me]; ++i) CHECK(pthread_create(&threads[i], NULL, run, &own[i]) == 0);
    run(&own[0]);
    for (i = 1; i < images[me]; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
#else
    CHECK(most == 1);
    run(&own[0]);
#endif
    /* Teams of nodes have one image a node, even if the nodes have several in the team of all. */
    half = gasnet_coll_team_split(GASNET_TEAM_ALL, me % 2, me, NULL);
    gasnet_coll_broadcast(half, &i, 0, &me, sizeof i, GASNET_COLL_LOCAL | LIMITS);
    CHECK(i == me % 2 && gasnet_coll_team_size(GASNET_TEAM_ALL) == nodes);
    for (i = 0; i < images[me]; ++i) free(heap[i]), free(own[i].bytes);
    return finish();
}
