/* Vector, indexed and strided transfers of random shapes in all forms, compared with copies byte by byte. Also empty
 * transfers, and messages to the target of a put. */
#include "ex_check.h"

#include <gasnet_vis.h>

enum { AREA = 192 << 10, LEVELS_MAX = 4, ELEMENTS_MAX = 1024, ROUNDS = 60, TOLD = 210, TOLD_PUTS = 12 };

/* How a transfer is made and synced. */
enum { BLOCKING, EXPLICIT, IMPLICIT, LEAF, SOURCES, FORMS };
enum { VECTOR, INDEXED, STRIDED, KINDS };

static uint64_t state;
static struct ex_job job;
/* The bytes written by this rank to its area in each segment, and its own memory outside of the segment. */
static unsigned char *model[4], *heap, *got;

static size_t below(size_t end) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)((state >> 33) % end);
}

static void fill(unsigned char *bytes, size_t length) {
    size_t i;
    for (i = 0; i < length; ++i) bytes[i] = (unsigned char)below(256);
}

static unsigned char *allocate(size_t length) {
    unsigned char *bytes = (unsigned char *)calloc(length, 1);
    CHECK(bytes != NULL);
    return bytes;
}

/* This rank's area in a rank's segment, and the one for local memory in the own segment. */
static unsigned char *area(gex_Rank_t rank) { return (unsigned char *)ex_base(job.tm, rank) + (size_t)job.me * AREA; }
static unsigned char *local_area(void) { return (unsigned char *)job.base + 4 * (size_t)AREA; }

/* Elements at regular distances in an area. */
typedef struct {
    ptrdiff_t base;
    ptrdiff_t strides[LEVELS_MAX];
} Side;

typedef struct {
    size_t bytes, levels, elements;
    size_t count[LEVELS_MAX];
} Shape;

static Shape random_shape(void) {
    Shape shape;
    size_t i;
    memset(&shape, 0, sizeof shape);
    shape.levels = below(LEVELS_MAX + 1);
    shape.bytes = 1 + below(shape.levels < 2 ? 40000 : 24);
    shape.elements = 1;
    for (i = 0; i < shape.levels; ++i) {
        shape.count[i] = 1 + below(4);
        shape.elements *= shape.count[i];
    }
    return shape;
}

/* A side with disjoint elements: levels in any order, some of them backwards. */
static Side random_side(const Shape *shape) {
    Side side;
    size_t extent = shape->bytes, order[LEVELS_MAX], i;
    memset(&side, 0, sizeof side);
    for (i = 0; i < shape->levels; ++i) {
        size_t other = below(i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    for (i = 0; i < shape->levels; ++i) {
        size_t level = order[i], stride = extent + (below(2) ? below(30) : 0);
        extent += stride * (shape->count[level] - 1);
        side.strides[level] = (ptrdiff_t)stride;
        if (below(3) == 0) {
            side.base += (ptrdiff_t)(stride * (shape->count[level] - 1));
            side.strides[level] = -(ptrdiff_t)stride;
        }
    }
    CHECK(extent <= AREA);
    side.base += (ptrdiff_t)below(AREA - extent + 1);
    return side;
}

/* The offset of an element in its area. Elements of the first level come first. */
static ptrdiff_t offset(const Shape *shape, const Side *side, size_t element) {
    ptrdiff_t at = side->base;
    size_t level;
    for (level = 0; level < shape->levels; ++level) {
        at += side->strides[level] * (ptrdiff_t)(element % shape->count[level]);
        element /= shape->count[level];
    }
    return at;
}

static void copy(const Shape *shape, unsigned char *to, const Side *to_side, const unsigned char *from, const Side *from_side) {
    size_t i;
    for (i = 0; i < shape->elements; ++i) {
        memcpy(to + offset(shape, to_side, i), from + offset(shape, from_side, i), shape->bytes);
    }
}

/* The elements as a vector, some of them in two parts, and as addresses of parts of the same length. */
static size_t as_vector(const Shape *shape, const Side *side, unsigned char *bytes, gex_Memvec_t *list) {
    size_t i, used = 0;
    for (i = 0; i < shape->elements; ++i) {
        unsigned char *at = bytes + offset(shape, side, i);
        size_t first = below(3) == 0 ? below(shape->bytes + 1) : shape->bytes;
        list[used].gex_addr = at;
        list[used++].gex_len = first;
        if (first == shape->bytes) continue;
        list[used].gex_addr = at + first;
        list[used++].gex_len = shape->bytes - first;
    }
    return used;
}

static size_t as_addresses(const Shape *shape, const Side *side, unsigned char *bytes, void **list, size_t parts) {
    size_t i, part;
    for (i = 0; i < shape->elements; ++i) {
        for (part = 0; part < parts; ++part) {
            list[i * parts + part] = bytes + offset(shape, side, i) + part * (shape->bytes / parts);
        }
    }
    return shape->elements * parts;
}

static gex_Memvec_t vector_to[2 * ELEMENTS_MAX], vector_from[2 * ELEMENTS_MAX];
static void *addresses_to[2 * ELEMENTS_MAX], *addresses_from[2 * ELEMENTS_MAX];

/* Calls one of three functions. `finish` syncs the result. */
#define START(name, ...) \
    do { \
        if (form == BLOCKING) CHECK(gex_VIS_##name##Blocking(__VA_ARGS__, 0) == 0); \
        if (form == EXPLICIT) event = gex_VIS_##name##NB(__VA_ARGS__, 0); \
        if (form == IMPLICIT) CHECK(gex_VIS_##name##NBI(__VA_ARGS__, 0) == 0); \
        if (form == LEAF) event = gex_VIS_##name##NB(__VA_ARGS__, GEX_FLAG_ENABLE_LEAF_LC); \
        if (form == SOURCES) CHECK(gex_VIS_##name##NBI(__VA_ARGS__, GEX_FLAG_ENABLE_LEAF_LC) == 0); \
    } while (0)

/* Waits for a transfer. Its source is overwritten as soon as allowed. */
static void finish(int form, gex_Event_t event, gex_EC_t category, unsigned char *source) {
    if (form == LEAF) {
        gex_Event_t leaf = gex_Event_QueryLeaf(event, GEX_EC_LC);
        gex_Event_Wait(leaf);
        memset(source, 0xee, AREA);
    }
    if (form == SOURCES) {
        gex_NBI_Wait(GEX_EC_LC, 0);
        memset(source, 0xee, AREA);
    }
    if (form == EXPLICIT || form == LEAF) gex_Event_Wait(event);
    if (form == IMPLICIT || form == SOURCES) gex_NBI_Wait(category, 0);
}

/* Puts elements to a rank's area, and gets the whole area. */
static void put(int kind, int form, gex_Rank_t rank, unsigned char *local) {
    const Shape shape = random_shape();
    const Side there = random_side(&shape), here = random_side(&shape);
    const size_t parts = shape.bytes % 2 == 0 ? 2 : 1;
    unsigned char *remote = area(rank);
    gex_Event_t event = GEX_EVENT_INVALID;
    fill(local, AREA);
    copy(&shape, model[rank], &there, local, &here);
    if (kind == VECTOR) {
        size_t to = as_vector(&shape, &there, remote, vector_to), from = as_vector(&shape, &here, local, vector_from);
        START(VectorPut, job.tm, rank, to, vector_to, from, vector_from);
    }
    if (kind == INDEXED) {
        size_t to = as_addresses(&shape, &there, remote, addresses_to, parts);
        size_t from = as_addresses(&shape, &here, local, addresses_from, 1);
        START(IndexedPut, job.tm, rank, to, addresses_to, shape.bytes / parts, from, addresses_from, shape.bytes);
    }
    if (kind == STRIDED) {
        START(StridedPut, job.tm, rank, remote + there.base, there.strides, local + here.base, here.strides, shape.bytes, shape.count,
              shape.levels);
    }
    finish(form, event, GEX_EC_PUT, local);
    CHECK(gex_RMA_GetBlocking(job.tm, got, rank, remote, AREA, 0) == 0);
    CHECK(memcmp(got, model[rank], AREA) == 0);
}

/* Gets elements of a rank's area into memory. The other bytes there must not change. */
static void get(int kind, int form, gex_Rank_t rank, unsigned char *local) {
    const Shape shape = random_shape();
    const Side there = random_side(&shape), here = random_side(&shape);
    const size_t parts = shape.bytes % 2 == 0 ? 2 : 1;
    unsigned char *remote = area(rank);
    gex_Event_t event = GEX_EVENT_INVALID;
    fill(local, AREA);
    memcpy(got, local, AREA);
    copy(&shape, got, &here, model[rank], &there);
    if (kind == VECTOR) {
        size_t to = as_vector(&shape, &here, local, vector_to), from = as_vector(&shape, &there, remote, vector_from);
        START(VectorGet, job.tm, to, vector_to, rank, from, vector_from);
    }
    if (kind == INDEXED) {
        size_t to = as_addresses(&shape, &here, local, addresses_to, 1);
        size_t from = as_addresses(&shape, &there, remote, addresses_from, parts);
        START(IndexedGet, job.tm, to, addresses_to, shape.bytes, rank, from, addresses_from, shape.bytes / parts);
    }
    if (kind == STRIDED) {
        START(StridedGet, job.tm, local + here.base, here.strides, rank, remote + there.base, there.strides, shape.bytes, shape.count,
              shape.levels);
    }
    finish(form, event, GEX_EC_GET, local);
    CHECK(memcmp(got, local, AREA) == 0);
}

/* Nothing to move: the library ignores the other arguments. */
static void nothing(void) {
    const size_t none[2] = {3, 0}, some[2] = {3, 2};
    const ptrdiff_t strides[2] = {1, 4};
    const gex_Rank_t nobody = job.ranks + 7;
    char byte = 1, other = 2;
    gex_Memvec_t empty[2] = {{NULL, 0}, {NULL, 0}};
    CHECK(gex_VIS_StridedPutBlocking(job.tm, nobody, NULL, strides, NULL, strides, 8, none, 2, 0) == 0);
    CHECK(gex_VIS_StridedGetNBI(job.tm, NULL, strides, nobody, NULL, strides, 8, none, 2, 0) == 0);
    CHECK(gex_VIS_StridedPutNB(job.tm, nobody, NULL, NULL, NULL, NULL, 0, some, 2, 0) == GEX_EVENT_INVALID);
    CHECK(gex_VIS_VectorPutBlocking(job.tm, job.me, 0, NULL, 0, NULL, 0) == 0);
    CHECK(gex_VIS_VectorGetNB(job.tm, 2, empty, job.me, 0, NULL, 0) == GEX_EVENT_INVALID);
    CHECK(gex_VIS_IndexedPutNBI(job.tm, job.me, 0, NULL, 9, 0, NULL, 3, 0) == 0);
    CHECK(gex_VIS_IndexedPutBlocking(job.tm, job.me, 3, NULL, 0, 3, NULL, 0, 0) == 0);
    CHECK(gex_VIS_IndexedGetNB(job.tm, 1, NULL, 0, job.me, 5, NULL, 0, 0) == GEX_EVENT_INVALID);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    CHECK(gex_Event_QueryLeaf(GEX_EVENT_INVALID, GEX_EC_LC) == GEX_EVENT_INVALID);
    /* No levels: one element, and the library ignores the lists. */
    CHECK(gex_VIS_StridedPutBlocking(job.tm, job.me, area(job.me), NULL, &byte, NULL, 1, NULL, 0, 0) == 0);
    CHECK(gex_VIS_StridedGetBlocking(job.tm, &other, NULL, job.me, area(job.me), NULL, 1, NULL, 0, 0) == 0);
    CHECK(other == byte);
    model[job.me][0] = (unsigned char)byte;
}

static volatile int told, told_empty;

/* A put to this rank is complete: its bytes are here. */
static void on_told(gex_Token_t token, void *payload, size_t length) {
    gex_Token_Info_t info;
    CHECK_EQ(gex_Token_Info(token, &info, GEX_TI_ALL), GEX_TI_ALL);
    CHECK_EQ(info.gex_srcrank, (job.me + job.ranks - 1) % job.ranks);
    CHECK(!info.gex_is_req && !info.gex_is_long && info.gex_ep == job.ep);
    CHECK(info.gex_entry->gex_index == TOLD && info.gex_entry->gex_cdata == &told);
    if (length == 0) {
        ++told_empty;
        return;
    }
    CHECK_EQ(length, GEX_VIS_MAX_PEERCOMPLETION);
    {
        unsigned char round = *(unsigned char *)payload;
        const unsigned char *there = (unsigned char *)job.base + (size_t)info.gex_srcrank * AREA + 2 * round;
        CHECK_EQ(there[0], round);
        CHECK_EQ(there[1], 255 - round);
    }
    ++told;
}

static void peers_are_told(void) {
    const gex_Rank_t next = (job.me + 1) % job.ranks;
    unsigned char payload[127], bytes[2];
    unsigned round;
    memset(payload, 7, sizeof payload);
    for (round = 0; round < TOLD_PUTS; ++round) {
        void *to = area(next) + 2 * round, *from = bytes;
        gex_Memvec_t to_list, from_list;
        const size_t count = 2;
        const ptrdiff_t stride = 1;
        to_list.gex_addr = to, from_list.gex_addr = from;
        to_list.gex_len = from_list.gex_len = 2;
        bytes[0] = payload[0] = (unsigned char)round;
        bytes[1] = (unsigned char)(255 - round);
        gex_VIS_SetPeerCompletionHandler(TOLD, payload, sizeof payload, 0);
        if (round % 3 == 0) gex_Event_Wait(gex_VIS_VectorPutNB(job.tm, next, 1, &to_list, 1, &from_list, GEX_FLAG_ENABLE_LEAF_LC));
        if (round % 3 == 1) CHECK(gex_VIS_IndexedPutBlocking(job.tm, next, 1, &to, 2, 1, &from, 2, 0) == 0);
        if (round % 3 == 2) {
            CHECK(gex_VIS_StridedPutNBI(job.tm, next, to, &stride, from, &stride, 1, &count, 1, 0) == 0);
            gex_NBI_Wait(GEX_EC_PUT, 0);
        }
        model[next][2 * round] = bytes[0];
        model[next][2 * round + 1] = bytes[1];
    }
    /* A put of nothing is complete, too. Without a handler no message is sent. */
    gex_VIS_SetPeerCompletionHandler(TOLD, NULL, 0, 0);
    CHECK(gex_VIS_StridedPutBlocking(job.tm, next, NULL, NULL, NULL, NULL, 0, NULL, 0, 0) == 0);
    gex_VIS_SetPeerCompletionHandler(TOLD, NULL, 0, 0);
    gex_VIS_SetPeerCompletionHandler(0, NULL, 0, 0);
    CHECK(gex_VIS_VectorPutBlocking(job.tm, next, 0, NULL, 0, NULL, 0) == 0);
    GASNET_BLOCKUNTIL(told == TOLD_PUTS && told_empty == 1);
    ex_barrier(&job);
    CHECK(told == TOLD_PUTS && told_empty == 1);
}

int main(void) {
    gex_AM_Entry_t table[] = {{TOLD, (gex_AM_Fn_t)on_told, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 0, (const void *)&told, "told"}};
    gex_Rank_t rank;
    int round;
    job = ex_start();
    CHECK(job.ranks <= 4);
    ex_attach(&job, 2, table, 1);
    CHECK(job.size >= 5 * (uintptr_t)AREA);
    state = job.me + 1;
    heap = allocate(AREA);
    got = allocate(AREA);
    for (rank = 0; rank < job.ranks; ++rank) model[rank] = allocate(AREA);
    ex_barrier(&job);
    nothing();
    for (round = 0; round < ROUNDS; ++round) {
        const int kind = round % KINDS, form = round / KINDS % FORMS;
        unsigned char *local = round % 4 == 3 ? local_area() : heap;
        rank = (gex_Rank_t)below(job.ranks);
        put(kind, form, rank, local);
        get(kind, form == LEAF ? EXPLICIT : form == SOURCES ? IMPLICIT : form, rank, local);
    }
    ex_barrier(&job);
    peers_are_told();
    return 0;
}
