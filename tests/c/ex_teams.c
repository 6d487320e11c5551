/* GASNet-EX: teams by color and by list, their properties, traffic in them, and the state after their destruction. */
#include "ex_check.h"

/* The content of a place that the call must leave unchanged. */
#define UNTOUCHED ((gex_TM_t)(uintptr_t)0x5a5a5a50)

static struct ex_job job;

static void barrier(gex_TM_t tm) { gex_Event_Wait(gex_Coll_BarrierNB(tm, 0)); }

/* Checks that a team has these ranks of the job, in this order, and this rank among them. */
static void check_members(gex_TM_t tm, const gex_Rank_t *jobranks, gex_Rank_t size) {
    gex_Rank_t rank;
    CHECK_EQ(gex_TM_QuerySize(tm), size);
    CHECK_EQ(jobranks[gex_TM_QueryRank(tm)], job.me);
    CHECK(gex_TM_QueryClient(tm) == job.client && gex_TM_QueryEP(tm) == job.ep);
    for (rank = 0; rank < job.ranks; ++rank) {
        gex_Rank_t place = 0;
        while (place < size && jobranks[place] != rank) ++place;
        CHECK_EQ(gex_TM_TranslateJobrankToRank(tm, rank), place < size ? place : GEX_RANK_INVALID);
    }
    for (rank = 0; rank < size; ++rank) {
        gex_EP_Location_t location = gex_TM_TranslateRankToEP(tm, rank, 0);
        CHECK_EQ(gex_TM_TranslateRankToJobrank(tm, rank), jobranks[rank]);
        CHECK_EQ(location.gex_rank, jobranks[rank]);
        CHECK_EQ(location.gex_ep_index, 0);
    }
}

/* Each member puts its number in the job to the next one. */
static void check_traffic(gex_TM_t tm, const gex_Rank_t *jobranks, gex_Rank_t size) {
    gex_Rank_t rank = gex_TM_QueryRank(tm), next = (rank + 1) % size, got = GEX_RANK_INVALID;
    gex_RMA_PutBlocking(tm, next, ex_base(tm, next) + 128, &job.me, sizeof job.me, 0);
    barrier(tm);
    gex_RMA_GetBlocking(tm, &got, rank, job.base + 128, sizeof got, 0);
    CHECK_EQ(got, jobranks[(rank + size - 1) % size]);
    gex_Event_Wait(gex_RMA_GetNB(tm, &got, next, ex_base(tm, next) + 128, sizeof got, 0));
    CHECK_EQ(got, job.me);
    barrier(tm);
}

/* Even ranks and odd ones, each in reverse order. The colors between them have no members. */
static void by_color(void) {
    int color = (int)(job.me % 2) * 1000;
    gex_TM_t tm = UNTOUCHED, one = UNTOUCHED;
    gex_Memvec_t scratch = {&job, 77};
    gex_Rank_t jobranks[64], size = 0, rank = job.ranks;
    size_t scratch_size = gex_TM_Split(&tm, job.tm, color, 0, NULL, 0, GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED);
    CHECK(scratch_size > 0 && tm == UNTOUCHED);
    while (rank-- > 0) {
        if (rank % 2 == job.me % 2) jobranks[size++] = rank;
    }
    gex_TM_Split(&tm, job.tm, color, 2 - 3 * (int)job.me, job.base + 4096, scratch_size, 0);
    CHECK(tm != UNTOUCHED && tm != job.tm && gex_TM_QueryFlags(tm) == 0 && gex_TM_QueryCData(tm) == NULL);
    check_members(tm, jobranks, size);
    check_traffic(tm, jobranks, size);
    gex_TM_SetCData(tm, &scratch);
    CHECK(gex_TM_QueryCData(tm) == &scratch && gex_TM_QueryCData(job.tm) == NULL);

    /* From a new team: one team per rank, without scratch. */
    gex_TM_Split(&one, tm, (int)job.me, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    check_members(one, &job.me, 1);
    check_traffic(one, &job.me, 1);
    CHECK_EQ(gex_TM_QueryFlags(one), GEX_FLAG_TM_NO_SCRATCH);
    CHECK(gex_TM_Destroy(one, &scratch, 0) == 0 && scratch.gex_addr == &job && scratch.gex_len == 77);

    CHECK(gex_TM_Destroy(tm, &scratch, 0) == 1);
    CHECK(scratch.gex_addr == job.base + 4096);
    CHECK_EQ(scratch.gex_len, scratch_size);
}

/* Ranks without a place take part and get no team. With equal keys all are in the parent's order. */
static void without_some(void) {
    gex_TM_t tm = UNTOUCHED;
    gex_Rank_t jobranks[64], rank;
    int is_in = job.me > 0;
    CHECK_EQ(gex_TM_Split(NULL, job.tm, 0, 0, NULL, 0, GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED), 0);
    for (rank = 1; rank < job.ranks; ++rank) jobranks[rank - 1] = rank;
    gex_TM_Split(is_in ? &tm : NULL, job.tm, is_in ? 0 : -1, 5, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    CHECK((tm != UNTOUCHED) == is_in);
    if (is_in) {
        check_members(tm, jobranks, job.ranks - 1);
        check_traffic(tm, jobranks, job.ranks - 1);
        CHECK(gex_TM_Destroy(tm, NULL, GEX_FLAG_GLOBALLY_QUIESCED) == 0);
    }
    ex_barrier(&job);
}

/* The same members by their numbers in the parent and in the job. The last rank comes first. */
static void by_list(void) {
    const gex_Flags_t kinds[] = {GEX_FLAG_TM_LOCAL_SCRATCH, GEX_FLAG_TM_GLOBAL_SCRATCH, GEX_FLAG_TM_SYMMETRIC_SCRATCH,
                                 GEX_FLAG_TM_NO_SCRATCH};
    gex_TM_t backwards = UNTOUCHED, tm;
    gex_Rank_t jobranks[64], rank;
    gex_EP_Location_t list[64];
    gex_Addr_t scratch[64];
    unsigned kind, by_jobrank;
    memset(list, 0, sizeof list);
    gex_TM_Split(&backwards, job.tm, 0, -(int)job.me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    for (kind = 0; kind < 4; ++kind) {
        for (by_jobrank = 0; by_jobrank < 2; ++by_jobrank) {
            gex_Flags_t flags = kinds[kind] | (by_jobrank ? GEX_FLAG_RANK_IS_JOBRANK : 0) | (by_jobrank ? GEX_FLAG_SCRATCH_SEG_OFFSET : 0);
            uintptr_t offset = kinds[kind] == GEX_FLAG_TM_SYMMETRIC_SCRATCH && !by_jobrank ? 0 : 8192;
            gex_Memvec_t had = {NULL, 0};
            size_t size = gex_TM_Create(NULL, 1, backwards, NULL, job.ranks, NULL, 0, GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED);
            CHECK(size > 0);
            for (rank = 0; rank < job.ranks; ++rank) {
                gex_Rank_t place = (rank + job.ranks - 1) % job.ranks;
                jobranks[rank] = by_jobrank ? place : job.ranks - 1 - place;
                list[rank].gex_rank = place;
                scratch[rank] = by_jobrank ? (void *)offset : (void *)(ex_base(job.tm, jobranks[rank]) + offset);
            }
            if (kinds[kind] != GEX_FLAG_TM_GLOBAL_SCRATCH && !by_jobrank) scratch[0] = job.base + offset;
            tm = UNTOUCHED;
            gex_TM_Create(&tm, 1, backwards, list, job.ranks, scratch, size, flags);
            CHECK(tm != UNTOUCHED);
            CHECK_EQ(gex_TM_QueryFlags(tm), flags);
            check_members(tm, jobranks, job.ranks);
            check_traffic(tm, jobranks, job.ranks);
            CHECK_EQ(gex_TM_Destroy(tm, &had, 0), kinds[kind] != GEX_FLAG_TM_NO_SCRATCH);
            CHECK(kinds[kind] == GEX_FLAG_TM_NO_SCRATCH || (had.gex_addr == job.base + offset && had.gex_len == size));
        }
    }
    CHECK(gex_TM_Destroy(backwards, NULL, 0) == 0);
}

/* In one call each rank makes a team of its own. Then half of the ranks make one, and the others none. */
static void by_lists_of_some(void) {
    gex_TM_t tm = UNTOUCHED;
    gex_EP_Location_t list[64];
    gex_Rank_t jobranks[64], size = 0, rank;
    memset(list, 0, sizeof list);
    list[0].gex_rank = job.me;
    gex_TM_Create(&tm, 1, job.tm, list, 1, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    check_members(tm, &job.me, 1);
    check_traffic(tm, &job.me, 1);
    CHECK(gex_TM_Destroy(tm, NULL, 0) == 0);

    tm = UNTOUCHED;
    for (rank = 0; rank < job.ranks; rank += 2) {
        list[size].gex_rank = rank;
        jobranks[size++] = rank;
    }
    if (job.me % 2 == 1) {
        gex_TM_Create(NULL, 99, job.tm, NULL, 0, NULL, 0, 0);
        return;
    }
    gex_TM_Create(&tm, 1, job.tm, list, size, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    check_members(tm, jobranks, size);
    check_traffic(tm, jobranks, size);
    CHECK(gex_TM_Destroy(tm, NULL, 0) == 0);
}

/* Teams are created and destroyed. Messages of a new team may arrive before its rank knows it. */
static void again_and_again(void) {
    int turn;
    for (turn = 0; turn < 200; ++turn) {
        gex_TM_t tm = UNTOUCHED, other = UNTOUCHED;
        gex_TM_Split(&tm, job.tm, turn % 3, (int)job.me * (turn % 2 ? 1 : -1), NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
        gex_TM_Split(&other, tm, 0, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
        CHECK(tm != other);
        barrier(other);
        CHECK(gex_TM_Destroy(tm, NULL, 0) == 0);
        barrier(other);
        CHECK(gex_TM_Destroy(other, NULL, 0) == 0);
    }
}

int main(void) {
    job = ex_start();
    ex_attach(&job, 2, NULL, 0);
    ex_barrier(&job);
    by_color();
    without_some();
    by_list();
    by_lists_of_some();
    again_and_again();
    ex_barrier(&job);
    return 0;
}
