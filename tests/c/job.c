/* Job control: the results of init, attach, exit and the queries. The first argument selects the part. */
#include "check.h"

static int is_text(const char *is, const char *should) { return strcmp(is, should) == 0; }

static void names_of_codes(void) {
    CHECK(is_text(vgasnet_ErrorName(VGASNET_OK), "VGASNET_OK"));
    CHECK(is_text(vgasnet_ErrorName(VGASNET_ERR_NOT_INIT), "VGASNET_ERR_NOT_INIT"));
    CHECK(is_text(vgasnet_ErrorName(VGASNET_ERR_RESOURCE), "VGASNET_ERR_RESOURCE"));
    CHECK(is_text(vgasnet_ErrorName(VGASNET_ERR_BAD_ARG), "VGASNET_ERR_BAD_ARG"));
    CHECK(is_text(vgasnet_ErrorName(VGASNET_ERR_NOT_READY), "VGASNET_ERR_NOT_READY"));
    CHECK(is_text(vgasnet_ErrorName(VGASNET_ERR_BARRIER_MISMATCH), "VGASNET_ERR_BARRIER_MISMATCH"));
    for (int code = -2; code < 20000; ++code) {
        CHECK(vgasnet_ErrorName(code)[0] != '\0');
        CHECK(vgasnet_ErrorDesc(code)[0] != '\0');
    }
    CHECK(is_text(vgasnet_ErrorName(1), vgasnet_ErrorName(-1)));
}

/* Calls that come too early return an error, and do no harm to later calls. */
static void before_attach(void) {
    vgasnet_handlerentry_t handlers[1];
    vgasnet_seginfo_t segment;
    CHECK(vgasnet_getSegmentInfo(&segment, 1) == VGASNET_ERR_NOT_INIT);
    CHECK(vgasnet_try_syncnb(VGASNET_INVALID_HANDLE) == VGASNET_ERR_NOT_INIT);
    CHECK(vgasnet_try_syncnb_all(NULL, 0) == VGASNET_ERR_NOT_INIT);
    CHECK(vgasnet_try_syncnb_some(NULL, 0) == VGASNET_ERR_NOT_INIT);
    CHECK(vgasnet_try_syncnbi_gets() == VGASNET_ERR_NOT_INIT);
    CHECK(vgasnet_try_syncnbi_puts() == VGASNET_ERR_NOT_INIT);
    CHECK(vgasnet_try_syncnbi_all() == VGASNET_ERR_NOT_INIT);
    CHECK(vgasnet_barrier_wait(0, 0) == VGASNET_ERR_NOT_INIT);
    CHECK(vgasnet_barrier_try(0, 0) == VGASNET_ERR_NOT_INIT);
    memset(handlers, 0, sizeof handlers);
    CHECK(vgasnet_attach(NULL, 1, page_bytes(), 0) == VGASNET_ERR_BAD_ARG);
    CHECK(vgasnet_attach(handlers, -1, page_bytes(), 0) == VGASNET_ERR_BAD_ARG);
}

static void check_sizes(void) {
    uintptr_t local = vgasnet_getMaxLocalSegmentSize(), global = vgasnet_getMaxGlobalSegmentSize();
    CHECK(global > 0 && global <= local);
    CHECK(local % VGASNET_PAGESIZE == 0 && global % VGASNET_PAGESIZE == 0);
    CHECK(local % page_bytes() == 0 && global % page_bytes() == 0);
    CHECK(vgasnet_mynode() < vgasnet_nodes());
    CHECK(vgasnet_nodes() == number_from_environment("CHECK_RANKS"));
    CHECK(vgasnet_nodes() <= VGASNET_MAXNODES);
    CHECK(is_text(vgasnet_getenv("CHECK_SEED"), getenv("CHECK_SEED")));
    CHECK(vgasnet_getenv("CHECK_NO_SUCH_VARIABLE") == NULL);
}

/* The queries fill one entry per rank, but no more than asked for, with one base and whole pages. */
static void check_segments(void) {
    vgasnet_node_t ranks = vgasnet_nodes();
    vgasnet_seginfo_t *table = (vgasnet_seginfo_t *)allocate((ranks + 1) * sizeof *table);
    for (vgasnet_node_t count = 0; count <= ranks + 1; ++count) {
        memset(table, 0xee, (ranks + 1) * sizeof *table);
        CHECK(vgasnet_getSegmentInfo(table, (int)count) == VGASNET_OK);
        for (vgasnet_node_t rank = 0; rank < ranks + 1; ++rank) {
            if (rank < count && rank < ranks) {
                CHECK_EQ(table[rank].size, 2 * page_bytes());
                CHECK_EQ((uintptr_t)table[rank].addr, (uintptr_t)table[0].addr);
                CHECK_EQ((uintptr_t)table[rank].addr % VGASNET_PAGESIZE, 0);
            } else {
                CHECK_EQ(table[rank].size, UINTPTR_MAX / 255 * 0xee);
            }
        }
    }
    CHECK(vgasnet_getSegmentInfo(NULL, 0) == VGASNET_OK);
    CHECK(vgasnet_getSegmentInfo(NULL, 1) == VGASNET_ERR_BAD_ARG);
    CHECK(vgasnet_getSegmentInfo(table, -1) == VGASNET_ERR_BAD_ARG);
    CHECK(vgasnet_try_syncnb_all(NULL, 1) == VGASNET_ERR_BAD_ARG);
    CHECK(vgasnet_try_syncnb_some(NULL, 1) == VGASNET_ERR_BAD_ARG);
    free(table);
}

static int answers(int *argc, char ***argv) {
    vgasnet_seginfo_t segment;
    CHECK(vgasnet_getSegmentInfo(&segment, 1) == VGASNET_ERR_NOT_INIT);
    CHECK(vgasnet_attach(NULL, 0, page_bytes(), 0) == VGASNET_ERR_NOT_INIT);
    names_of_codes();
    if (vgasnet_init(argc, argv) != VGASNET_OK) return 1;
    CHECK(vgasnet_init(argc, argv) == VGASNET_ERR_NOT_INIT);
    before_attach();
    check_sizes();
    CHECK(vgasnet_attach(NULL, 0, page_bytes() + 1, 0) == VGASNET_OK);
    CHECK(vgasnet_attach(NULL, 0, page_bytes() + 1, 0) == VGASNET_ERR_NOT_INIT);
    CHECK(vgasnet_init(argc, argv) == VGASNET_ERR_NOT_INIT);
    check_segments();
    names_of_codes();
    return finish();
}

/* Every third rank has no segment. The others have segments of different sizes. */
static uintptr_t size_of(vgasnet_node_t rank) { return rank % 3 == 0 ? 0 : rank * page_bytes() + 100; }

static int different_sizes(void) {
    if (vgasnet_init(NULL, NULL) != VGASNET_OK) return 1;
    vgasnet_node_t me = vgasnet_mynode(), ranks = vgasnet_nodes();
    CHECK(vgasnet_attach(NULL, 0, size_of(me), 0) == VGASNET_OK);
    vgasnet_seginfo_t *table = (vgasnet_seginfo_t *)allocate(ranks * sizeof *table);
    CHECK(vgasnet_getSegmentInfo(table, (int)ranks) == VGASNET_OK);
    for (vgasnet_node_t rank = 0; rank < ranks; ++rank) {
        uintptr_t pages = (size_of(rank) + page_bytes() - 1) / page_bytes();
        CHECK_EQ(table[rank].size, pages * page_bytes());
        CHECK((table[rank].addr == NULL) == (pages == 0));
        for (uintptr_t page = 0; page < pages; ++page)
            vgasnet_put_val(rank, at(rank, page * page_bytes() + 8 * me), mixed(me, rank, page), 8);
        vgasnet_get(NULL, rank, table[rank].addr, 0);
    }
    barrier();
    for (vgasnet_node_t rank = 0; rank < ranks; ++rank)
        for (uintptr_t page = 0; page < table[rank].size / page_bytes(); ++page)
            for (vgasnet_node_t writer = 0; writer < ranks; ++writer) {
                void *there = at(rank, page * page_bytes() + 8 * writer);
                CHECK_EQ(vgasnet_get_val(rank, there, 8), mixed(writer, rank, page));
            }
    free(table);
    return finish();
}

/* Rank 0 ends, by return or by exit, while the others still use its segment and its pages. */
static int one_leaves(void) {
    start(NULL, NULL, 4 * page_bytes());
    unsigned char *bytes = (unsigned char *)allocate(4 * page_bytes());
    unsigned char *got = (unsigned char *)allocate(4 * page_bytes());
    uint64_t state = mixed(10, 0, 0);
    random_bytes(&state, bytes, 4 * page_bytes());
    if (vgasnet_mynode() == 0) vgasnet_put(0, at(0, 0), bytes, 4 * page_bytes());
    barrier();
    if (vgasnet_mynode() == 0) exit(0);
    for (int i = 0; i < 20; ++i) {
        vgasnet_get(got, 0, at(0, 0), 4 * page_bytes());
        check_bytes(got, bytes, 4 * page_bytes(), "segment of a rank that is through");
    }
    free(bytes);
    free(got);
    return 0;
}

/* The last rank ends the job while the others wait for it. */
static int ends_with(int status, int returns) {
    start(NULL, NULL, page_bytes());
    printf("out of %u\n", vgasnet_mynode());
    if (vgasnet_mynode() == vgasnet_nodes() - 1) {
        if (returns) return status;
        vgasnet_exit(status);
    }
    barrier();
    return 1;
}

/* All ranks end. */
static int all_end_well(int returns) {
    start(NULL, NULL, page_bytes());
    printf("out of %u\n", vgasnet_mynode());
    if (!returns) vgasnet_exit(0);
    return 0;
}

int main(int argc, char **argv) {
    int status = argc > 2 ? atoi(argv[2]) : 0;
    if (argc < 2) return 1;
    if (is_text(argv[1], "answers")) return answers(&argc, &argv);
    if (is_text(argv[1], "different-sizes")) return different_sizes();
    if (is_text(argv[1], "one-leaves")) return one_leaves();
    if (is_text(argv[1], "returns")) return status == 0 ? all_end_well(1) : ends_with(status, 1);
    if (is_text(argv[1], "exits")) return status == 0 ? all_end_well(0) : ends_with(status, 0);
    return 1;
}
