/* Vector, indexed and strided transfers of random shapes, in all forms, compared with copies byte by byte. */
#include "check.h"

enum { REGIONS_MAX = 40, LEVELS_MAX = 4, ROUNDS = 40 };

static uint64_t state;
static vgasnet_node_t me, ranks;
/* Each rank has an area of this size in every segment, and a model of its bytes. */
static size_t area;
static unsigned char **model;
static unsigned char *local;

/* Regions of one side, as offsets in the area or in local memory. */
typedef struct {
    size_t count;
    size_t at[REGIONS_MAX];
    size_t len[REGIONS_MAX];
} List;

static unsigned char *remote(vgasnet_node_t rank, size_t offset) { return (unsigned char *)at(rank, me * area + offset); }

/* Distinct regions in order, with `total` bytes, with or without gaps. */
static void random_list(List *list, size_t total, size_t count) {
    size_t slack = area - total, place = 0;
    list->count = count;
    for (size_t i = 0; i < count; ++i) {
        size_t gap = random_below(&state, 3) == 0 ? 0 : (size_t)random_below(&state, slack / count + 1);
        size_t len = i + 1 == count ? total : random_below(&state, 4) == 0 ? 0 : (size_t)random_below(&state, total + 1);
        if (random_below(&state, 8) == 0) gap = 0;
        place += gap;
        list->at[i] = place;
        list->len[i] = len;
        place += len;
        total -= len;
    }
}

/* Does the transfer byte by byte, in the models. */
static void copy_lists(const List *to, unsigned char *destination, const List *from, const unsigned char *source) {
    size_t i = 0, done = 0;
    for (size_t j = 0; j < from->count; ++j) {
        for (size_t k = 0; k < from->len[j]; ++k) {
            while (done == to->len[i]) ++i, done = 0;
            destination[to->at[i] + done++] = source[from->at[j] + k];
        }
    }
}

/* Starts a transfer in one of the three forms, and syncs it soon. */
static void sync(int form, vgasnet_handle_t handle) {
    if (form == 1) vgasnet_wait_syncnb(handle);
    if (form == 2) vgasnet_wait_syncnbi_all();
}

static void vectors(vgasnet_node_t rank, int put, int form) {
    size_t total = random_length(&state, area / 2);
    List here, there;
    vgasnet_memvec_t a[REGIONS_MAX], b[REGIONS_MAX];
    vgasnet_handle_t handle = VGASNET_INVALID_HANDLE;
    size_t least = total > 0;
    random_list(&here, total, least + (size_t)random_below(&state, REGIONS_MAX - 1));
    random_list(&there, total, least + (size_t)random_below(&state, REGIONS_MAX - 1));
    for (size_t i = 0; i < here.count; ++i) a[i].addr = local + here.at[i], a[i].len = here.len[i];
    for (size_t i = 0; i < there.count; ++i) b[i].addr = remote(rank, there.at[i]), b[i].len = there.len[i];
    if (put) {
        random_bytes(&state, local, area);
        copy_lists(&there, model[rank], &here, local);
        if (form == 0) vgasnet_putv_bulk(rank, there.count, b, here.count, a);
        if (form == 1) handle = vgasnet_putv_nb_bulk(rank, there.count, b, here.count, a);
        if (form == 2) vgasnet_putv_nbi_bulk(rank, there.count, b, here.count, a);
        sync(form, handle);
    } else {
        unsigned char *expected = (unsigned char *)allocate(area);
        memcpy(expected, local, area);
        copy_lists(&here, expected, &there, model[rank]);
        if (form == 0) vgasnet_getv_bulk(here.count, a, rank, there.count, b);
        if (form == 1) handle = vgasnet_getv_nb_bulk(here.count, a, rank, there.count, b);
        if (form == 2) vgasnet_getv_nbi_bulk(here.count, a, rank, there.count, b);
        sync(form, handle);
        check_bytes(local, expected, area, "getv");
        free(expected);
    }
}

static void random_indices(List *list, size_t count, size_t len) {
    list->count = count;
    for (size_t i = 0; i < count; ++i) {
        list->len[i] = len;
        list->at[i] = i * (area / count) + (size_t)random_below(&state, area / count - len + 1);
    }
}

static void indexed(vgasnet_node_t rank, int put, int form) {
    /* One side has a regions of b times `unit` bytes, the other b regions of a times `unit` bytes. */
    size_t a = 1 + (size_t)random_below(&state, 6), b = 1 + (size_t)random_below(&state, 6);
    size_t unit = random_length(&state, area / 40), here_len = b * unit, there_len = a * unit;
    List here, there;
    void *h[REGIONS_MAX], *t[REGIONS_MAX];
    vgasnet_handle_t handle = VGASNET_INVALID_HANDLE;
    if (random_below(&state, 12) == 0) {
        vgasnet_puti_bulk(rank, 0, NULL, 5, 0, NULL, 7);
        vgasnet_geti_bulk(0, NULL, 0, rank, 0, NULL, 0);
    }
    random_indices(&here, a, here_len);
    random_indices(&there, b, there_len);
    for (size_t i = 0; i < a; ++i) h[i] = local + here.at[i];
    for (size_t i = 0; i < b; ++i) t[i] = remote(rank, there.at[i]);
    if (put) {
        random_bytes(&state, local, area);
        copy_lists(&there, model[rank], &here, local);
        if (form == 0) vgasnet_puti_bulk(rank, b, t, there_len, a, h, here_len);
        if (form == 1) handle = vgasnet_puti_nb_bulk(rank, b, t, there_len, a, h, here_len);
        if (form == 2) vgasnet_puti_nbi_bulk(rank, b, t, there_len, a, h, here_len);
        sync(form, handle);
    } else {
        unsigned char *expected = (unsigned char *)allocate(area);
        memcpy(expected, local, area);
        copy_lists(&here, expected, &there, model[rank]);
        if (form == 0) vgasnet_geti_bulk(a, h, here_len, rank, b, t, there_len);
        if (form == 1) handle = vgasnet_geti_nb_bulk(a, h, here_len, rank, b, t, there_len);
        if (form == 2) vgasnet_geti_nbi_bulk(a, h, here_len, rank, b, t, there_len);
        sync(form, handle);
        check_bytes(local, expected, area, "geti");
        free(expected);
    }
}

/* Strides of blocks of `count` within an area, in C's order of loops. */
static int random_strides(size_t *strides, const size_t *count, size_t levels) {
    size_t extent = count[0];
    for (size_t i = 0; i < levels; ++i) {
        strides[i] = extent + (random_below(&state, 2) == 0 ? 0 : (size_t)random_below(&state, extent + 9));
        extent = count[i + 1] == 0 ? 0 : strides[i] * (count[i + 1] - 1) + extent;
    }
    return extent <= area;
}

static void copy_strided(unsigned char *to, const size_t *to_strides, const unsigned char *from,
                         const size_t *from_strides, const size_t *count, size_t levels) {
    if (levels == 0) {
        memcpy(to, from, count[0]);
        return;
    }
    for (size_t i = 0; i < count[levels]; ++i) {
        copy_strided(to + i * to_strides[levels - 1], to_strides, from + i * from_strides[levels - 1], from_strides,
                     count, levels - 1);
    }
}

static void strided(vgasnet_node_t rank, int put, int form) {
    size_t levels = (size_t)random_below(&state, LEVELS_MAX + 1);
    size_t count[LEVELS_MAX + 1], here[LEVELS_MAX], there[LEVELS_MAX];
    vgasnet_handle_t handle = VGASNET_INVALID_HANDLE;
    do {
        count[0] = random_length(&state, area / 2);
        for (size_t i = 1; i <= levels; ++i) {
            count[i] = random_below(&state, 20) == 0 ? 0 : 1 + (size_t)random_below(&state, i == 1 ? 30 : 4);
        }
    } while (!random_strides(here, count, levels) || !random_strides(there, count, levels));
    if (put) {
        random_bytes(&state, local, area);
        copy_strided(model[rank], there, local, here, count, levels);
        if (form == 0) vgasnet_puts_bulk(rank, remote(rank, 0), there, local, here, count, levels);
        if (form == 1) handle = vgasnet_puts_nb_bulk(rank, remote(rank, 0), there, local, here, count, levels);
        if (form == 2) vgasnet_puts_nbi_bulk(rank, remote(rank, 0), there, local, here, count, levels);
        sync(form, handle);
    } else {
        unsigned char *expected = (unsigned char *)allocate(area);
        memcpy(expected, local, area);
        copy_strided(expected, here, model[rank], there, count, levels);
        if (form == 0) vgasnet_gets_bulk(local, here, rank, remote(rank, 0), there, count, levels);
        if (form == 1) handle = vgasnet_gets_nb_bulk(local, here, rank, remote(rank, 0), there, count, levels);
        if (form == 2) vgasnet_gets_nbi_bulk(local, here, rank, remote(rank, 0), there, count, levels);
        sync(form, handle);
        check_bytes(local, expected, area, "gets");
        free(expected);
    }
}

/* The local side is in the own segment, after the areas: a matrix of the peer becomes a column here, and goes back. */
static void own_segment(vgasnet_node_t rank) {
    size_t rows = area / 64, count[2], here = 16, there = 48;
    unsigned char *own = (unsigned char *)at(me, ranks * area), *back = (unsigned char *)allocate(rows * 16);
    vgasnet_memvec_t whole, mine;
    count[0] = 16, count[1] = rows;
    vgasnet_gets_bulk(own, &here, rank, remote(rank, 0), &there, count, 1);
    vgasnet_get(back, me, own, rows * 16);
    for (size_t i = 0; i < rows; ++i) check_bytes(back + 16 * i, model[rank] + 48 * i, 16, "gets to the own segment");
    whole.addr = remote(rank, 7), whole.len = rows * 16;
    mine.addr = own, mine.len = rows * 16;
    vgasnet_wait_syncnb(vgasnet_putv_nb_bulk(rank, 1, &whole, 1, &mine));
    memcpy(model[rank] + 7, back, rows * 16);
    free(back);
}

/* Several transfers in flight at once, inside and outside an access region, with more pieces than are fetched
 * together. */
static void many(vgasnet_node_t rank) {
    size_t half = area / 2, count[2], one = 1, three = 3;
    vgasnet_handle_t handles[2];
    random_bytes(&state, local, area);
    count[0] = 1, count[1] = half / 3;
    vgasnet_begin_nbi_accessregion();
    vgasnet_puts_nbi_bulk(rank, remote(rank, 0), &three, local, &one, count, 1);
    handles[0] = vgasnet_end_nbi_accessregion();
    handles[1] = vgasnet_puts_nb_bulk(rank, remote(rank, half), &one, local + half, &three, count, 1);
    for (size_t i = 0; i < half / 3; ++i) {
        model[rank][3 * i] = local[i];
        model[rank][half + i] = local[half + 3 * i];
    }
    vgasnet_wait_syncnb_all(handles, 2);
}

/* Each of these ends the job. */
static void misuse(const char *what) {
    vgasnet_memvec_t here, there;
    void *address = at(0, 0), *word = local;
    size_t count[3] = {8, 1, 1}, stride = 8;
    here.addr = local, here.len = 8, there.addr = at(0, 0), there.len = 9;
    if (strcmp(what, "unequal") == 0) vgasnet_putv_bulk(0, 1, &there, 1, &here);
    if (strcmp(what, "endless") == 0) vgasnet_geti_bulk(SIZE_MAX, &word, 2, 0, SIZE_MAX, &address, 2);
    if (strcmp(what, "no-list") == 0) vgasnet_wait_syncnb(vgasnet_getv_nb_bulk(1, &here, 0, 2, NULL));
    if (strcmp(what, "no-rank") == 0) vgasnet_putv_nbi_bulk(ranks, 0, NULL, 0, NULL);
    if (strcmp(what, "outside") == 0) vgasnet_puts_bulk(0, (char *)address - 8, &stride, local, &stride, count, 1);
    if (strcmp(what, "null-local") == 0) vgasnet_gets_bulk(NULL, &stride, 0, address, &stride, count, 1);
    count[1] = SIZE_MAX;
    if (strcmp(what, "huge") == 0) vgasnet_gets_bulk(local, &stride, 0, address, &stride, count, 1);
}

int main(int argc, char **argv) {
    size_t segment;
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) return 1;
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    /* Several pools together, and not a multiple of a page. */
    area = 3 * pool_bytes() / ranks + 1000;
    if (area > 400000) area = 400000;
    segment = (ranks + 1) * area;
    CHECK(vgasnet_attach(NULL, 0, segment, 0) == VGASNET_OK);
    state = mixed(1, me, 0);
    local = (unsigned char *)allocate(area);
    if (argc > 1) {
        if (me == 0) misuse(argv[1]);
        return finish();
    }
    model = (unsigned char **)allocate(ranks * sizeof *model);
    for (vgasnet_node_t i = 0; i < ranks; ++i) model[i] = (unsigned char *)allocate(area);
    for (int round = 0; round < ROUNDS; ++round) {
        vgasnet_node_t rank = (vgasnet_node_t)random_below(&state, ranks);
        int put = (int)random_below(&state, 2), form = (int)random_below(&state, 3);
        if (round % 3 == 0) vectors(rank, put, form);
        if (round % 3 == 1) indexed(rank, put, form);
        if (round % 3 == 2) strided(rank, put, form);
        if (round % 10 == 9) own_segment(rank);
        if (round % 20 == 5) many(rank);
    }
    for (vgasnet_node_t i = 0; i < ranks; ++i) {
        vgasnet_get(local, i, remote(i, 0), area);
        check_bytes(local, model[i], area, "an area at the end");
    }
    return finish();
}
