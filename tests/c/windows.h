/* Windows: ranges of segments divided among users, so that bytes of several users share pages and blocks of 4 KiB. A
 * user is a thread of a rank. A user's operations in a phase are drawn from the seed: each rank keeps a model of all
 * windows, and draws the others' operations again. */
#ifndef WINDOWS_H
#define WINDOWS_H

#include "local.h"

#define USERS_PER_RANK 2
/* Windows are in clusters, end to end. Each cluster has some windows shared by users, one of a single user, and in
 * some clusters a whole page. */
#define CLUSTERS 4
#define SHARED 3
#define WHOLE_CLUSTERS 2
#define WINDOWS_PER_RANK (CLUSTERS * (SHARED + 1) + WHOLE_CLUSTERS)
#define SHORT_MAX ((size_t)64 << 10)
/* The size of a shared window, or somewhat more. Together they have more blocks than a home keeps in memory. */
#define WINDOW_BYTES ((size_t)256 << 10)

typedef enum { PUT, SET, PUT_VALUE, PUT_STRIDED, PUT_VECTOR, STORE, GET, GET_VALUE, GET_STRIDED, GET_VECTOR, LOAD, ADVISE } Kind;

typedef struct {
    vgasnet_node_t target;
    uintptr_t start;
    size_t len;
    /* Stripes of this width belong to one user after the other, or all of them to `owner` if it is a user. */
    size_t width;
    unsigned owner;
    unsigned char *model;
} Window;

#define NO_USER (~0u)

/* `count` ranges of `len` bytes, `stride` bytes apart. The first one begins at `offset` of the window. */
typedef struct {
    Kind kind;
    unsigned form;
    const Window *window;
    size_t offset, len, stride, count;
    uint64_t seed;
} Operation;

static Window *windows;
static unsigned users, window_count;

static inline int is_write(const Operation *operation) { return operation->kind <= STORE; }
static inline void *there(const Window *window, size_t offset) { return at(window->target, window->start + offset); }

/* The user of this byte, and the length of its bytes from here on. */
static inline unsigned owner_of(const Window *window, size_t offset, size_t *more) {
    size_t stripe_end = (offset / window->width + 1) * window->width;
    *more = least(stripe_end, window->len) - offset;
    return window->owner != NO_USER ? window->owner : (unsigned)(offset / window->width % users);
}

static inline void add_window(vgasnet_node_t target, uintptr_t start, size_t len, size_t width, unsigned owner) {
    Window *window = &windows[window_count++];
    window->target = target, window->start = start, window->len = len, window->width = width, window->owner = owner;
    window->model = (unsigned char *)allocate(len);
}

/* A width at which each user has a stripe in `most` bytes. */
static inline size_t draw_width(uint64_t *state, size_t most) {
    static const size_t widths[] = {1, 7, 64, 500, 4096, 10000, SHORT_MAX};
    size_t width;
    do width = widths[random_below(state, sizeof widths / sizeof *widths)];
    while (width * users > most);
    return width;
}

/* The same windows on all ranks, in segments of this size: a multiple of CLUSTERS * 8 pages. */
static inline void lay_windows(vgasnet_node_t ranks, size_t segment_bytes) {
    uint64_t state = mixed(71, 0, 0);
    size_t area = segment_bytes / CLUSTERS, most = area / 6;
    users = ranks * USERS_PER_RANK, window_count = 0;
    windows = (Window *)allocate(ranks * WINDOWS_PER_RANK * sizeof *windows);
    for (vgasnet_node_t target = 0; target < ranks; ++target)
        for (unsigned cluster = 0; cluster < CLUSTERS; ++cluster) {
            /* First the next rank, then other ranks. */
            unsigned owner = (target + 1 + cluster) % ranks * USERS_PER_RANK + cluster % USERS_PER_RANK;
            uintptr_t start = cluster * area + (uintptr_t)random_below(&state, area / 8);
            for (int i = 0; i < SHARED; ++i) {
                size_t width = draw_width(&state, most), turn = width * users;
                size_t len = least((WINDOW_BYTES / turn + 1) * turn, most);
                add_window(target, start, len, width, NO_USER);
                start += len + random_below(&state, 50);
            }
            size_t len = least(SHORT_MAX, area / 12);
            add_window(target, start, len, len, owner);
            if (cluster < WHOLE_CLUSTERS)
                add_window(target, (cluster + 1) * area - page_bytes(), page_bytes(), page_bytes(), owner);
        }
}

/* A user's own first window, used much more often than others. */
static inline const Window *favourite(unsigned user) {
    for (unsigned i = 0; i < window_count; ++i)
        if (windows[i].owner == user) return &windows[i];
    return &windows[0];
}

/* A range within this user's bytes, or with `is_of_all` any range. The window has stripes of the user. */
static inline void draw_range(uint64_t *state, unsigned user, int is_of_all, size_t most, Operation *operation) {
    const Window *window = operation->window;
    size_t begin = 0, room = window->len, turn = window->width * users;
    operation->count = 1, operation->stride = 0;
    if (!is_of_all && window->owner == NO_USER) {
        size_t turns = window->len / turn, first = (size_t)random_below(state, turns);
        begin = first * turn + user * window->width, room = window->width;
        if (operation->kind == PUT_STRIDED || operation->kind == PUT_VECTOR || operation->kind == GET_STRIDED ||
            operation->kind == GET_VECTOR)
            operation->count = 1 + (size_t)random_below(state, least(turns - first, 32)), operation->stride = turn;
    }
    operation->len = 1 + random_length(state, least(room, most) - 1);
    operation->offset = begin + (size_t)random_below(state, room - operation->len + 1);
}

/* The next operation of a user. */
static inline Operation draw_operation(uint64_t *state, unsigned user) {
    static const Kind kinds[] = {PUT,   PUT, SET, PUT_VALUE, PUT_STRIDED, PUT_VECTOR, STORE,  STORE, GET,
                                 GET,   GET, GET_VALUE, GET_VALUE, GET_STRIDED, GET_VECTOR, LOAD, ADVISE};
    Operation operation;
    const Window *window;
    memset(&operation, 0, sizeof operation);
    do window = random_below(state, 3) == 0 ? favourite(user) : &windows[random_below(state, window_count)];
    while (window->owner != NO_USER && window->owner != user);
    operation.window = window, operation.form = (unsigned)random_below(state, 5), operation.seed = random_word(state);
    operation.kind = kinds[random_below(state, sizeof kinds / sizeof *kinds)];
    if (window->target != user / USERS_PER_RANK) {
        if (operation.kind == STORE) operation.kind = PUT;
        if (operation.kind == LOAD || operation.kind == ADVISE) operation.kind = GET;
    }
    int is_value = operation.kind == PUT_VALUE || operation.kind == GET_VALUE;
    int is_of_all = operation.kind == GET || operation.kind == GET_VALUE || operation.kind == ADVISE;
    int is_whole = operation.kind == PUT && window->len == page_bytes() && random_below(state, 4) == 0;
    draw_range(state, user, is_of_all, is_value ? 8 : SHORT_MAX, &operation);
    if (is_whole && window->owner == user) operation.offset = 0, operation.len = window->len;
    return operation;
}

/* Repeats the writes of the operation in the model. */
static inline void apply(const Operation *operation) {
    uint64_t state = operation->seed;
    for (size_t i = 0; i < operation->count; ++i) {
        unsigned char *to = operation->window->model + operation->offset + i * operation->stride;
        if (operation->kind == SET) memset(to, (int)(operation->seed & 0xff), operation->len);
        else random_bytes(&state, to, operation->len);
    }
}

#endif
