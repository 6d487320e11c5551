/* Invalid atomic operations and transfers between lists. Each ends the job. The argument selects one, and the last
 * rank calls it. */
#include "ex_check.h"

#include <gasnet_ratomic.h>
#include <gasnet_vis.h>

static struct ex_job job;
static gex_AD_t ad;
static int32_t result;

static void one(gex_Rank_t rank, void *address, gex_OP_t op, gex_Flags_t flags) {
    gex_Event_Wait(gex_AD_OpNB_I32(ad, &result, rank, address, op, 1, 2, flags));
}

static void domain(gex_DT_t type, gex_OP_t ops, gex_Flags_t flags) {
    gex_AD_t other;
    gex_AD_Create(&other, job.tm, type, ops, flags);
}

static void atomics(const char *what) {
    float single;
    if (!strcmp(what, "operation")) one(0, job.base, GEX_OP_FSUB, 0);
    if (!strcmp(what, "operations")) one(0, job.base, GEX_OP_FADD | GEX_OP_SET, 0);
    if (!strcmp(what, "type")) gex_AD_OpNBI_FLT(ad, &single, 0, job.base, GEX_OP_FADD, 1, 0, 0);
    if (!strcmp(what, "rank")) one(job.ranks, job.base, GEX_OP_SET, 0);
    if (!strcmp(what, "jobrank")) one(job.ranks, job.base, GEX_OP_SET, GEX_FLAG_RANK_IS_JOBRANK);
    if (!strcmp(what, "not-mine")) one((job.me + 1) % job.ranks, job.base, GEX_OP_SET, GEX_FLAG_AD_MY_RANK);
    if (!strcmp(what, "crooked")) one(job.me, job.base + 2, GEX_OP_SET, 0);
    if (!strcmp(what, "outside")) one(job.me, job.base + job.size, GEX_OP_SET, 0);
    if (!strcmp(what, "no-result")) gex_AD_OpNBI_I32(ad, NULL, job.me, job.base, GEX_OP_FADD, 1, 0, 0);
    if (!strcmp(what, "no-domain")) gex_AD_OpNBI_I32(GEX_AD_INVALID, &result, job.me, job.base, GEX_OP_FADD, 1, 0, 0);
    if (!strcmp(what, "destroyed")) {
        gex_AD_Destroy(ad);
        one(job.me, job.base, GEX_OP_SET, 0);
    }
    if (!strcmp(what, "destroyed-twice")) {
        gex_AD_Destroy(ad);
        gex_AD_Destroy(ad);
    }
    if (!strcmp(what, "no-place")) gex_AD_Create(NULL, job.tm, GEX_DT_I32, GEX_OP_GET, 0);
    if (!strcmp(what, "no-team")) gex_AD_Create(&ad, GEX_TM_INVALID, GEX_DT_I32, GEX_OP_GET, 0);
    if (!strcmp(what, "pair")) gex_AD_Create(&ad, gex_TM_Pair(job.ep, 0), GEX_DT_I32, GEX_OP_GET, 0);
    if (!strcmp(what, "user-type")) domain(GEX_DT_USER, GEX_OP_GET, 0);
    if (!strcmp(what, "two-types")) domain(GEX_DT_I32 | GEX_DT_I64, GEX_OP_GET, 0);
    if (!strcmp(what, "no-operations")) domain(GEX_DT_I32, 0, 0);
    if (!strcmp(what, "user-operation")) domain(GEX_DT_I32, GEX_OP_USER, 0);
    if (!strcmp(what, "bits-of-doubles")) domain(GEX_DT_DBL, GEX_OP_FXOR | GEX_OP_GET, 0);
    if (!strcmp(what, "two-favors")) domain(GEX_DT_I32, GEX_OP_GET, GEX_FLAG_AD_FAVOR_MY_RANK | GEX_FLAG_AD_FAVOR_REMOTE);
}

static void lists(const char *what) {
    char bytes[16];
    void *here = bytes, *there = job.base;
    gex_Memvec_t of_8, of_9, at_null;
    const ptrdiff_t stride = -8;
    const size_t count = 2, huge[2] = {(size_t)1 << 40, (size_t)1 << 40};
    const ptrdiff_t strides[2] = {1, 1};
    memset(bytes, 0, sizeof bytes);
    of_8.gex_addr = here, of_9.gex_addr = there, at_null.gex_addr = NULL;
    of_8.gex_len = at_null.gex_len = 8, of_9.gex_len = 9;
    if (!strcmp(what, "lengths")) gex_VIS_VectorPutBlocking(job.tm, job.me, 1, &of_9, 1, &of_8, 0);
    if (!strcmp(what, "no-list")) gex_VIS_VectorGetNBI(job.tm, 1, &of_8, job.me, 2, NULL, 0);
    if (!strcmp(what, "null-region")) {
        of_9.gex_len = 8;
        gex_VIS_VectorPutBlocking(job.tm, job.me, 1, &of_9, 1, &at_null, 0);
    }
    if (!strcmp(what, "addresses")) gex_VIS_IndexedPutNBI(job.tm, job.me, 1, &there, 8, 1, &here, 4, 0);
    if (!strcmp(what, "no-rank")) gex_VIS_IndexedGetBlocking(job.tm, 1, &here, 8, job.ranks, 1, &there, 8, 0);
    if (!strcmp(what, "no-team")) gex_VIS_IndexedGetBlocking(GEX_TM_INVALID, 1, &here, 8, job.me, 1, &there, 8, 0);
    if (!strcmp(what, "before")) {
        gex_VIS_StridedGetBlocking(job.tm, bytes + 8, &stride, 0, ex_base(job.tm, 0), &stride, 8, &count, 1, 0);
    }
    if (!strcmp(what, "no-strides")) gex_VIS_StridedPutBlocking(job.tm, job.me, there, NULL, here, &stride, 8, &count, 1, 0);
    if (!strcmp(what, "no-counts")) gex_VIS_StridedPutBlocking(job.tm, job.me, there, &stride, here, &stride, 8, NULL, 1, 0);
    if (!strcmp(what, "huge")) gex_VIS_StridedPutBlocking(job.tm, job.me, there, strides, here, strides, 1, huge, 2, 0);
    if (!strcmp(what, "handler")) gex_VIS_SetPeerCompletionHandler(127, NULL, 0, 0);
    if (!strcmp(what, "payload")) gex_VIS_SetPeerCompletionHandler(200, bytes, GEX_VIS_MAX_PEERCOMPLETION + 1, 0);
    if (!strcmp(what, "no-payload")) gex_VIS_SetPeerCompletionHandler(200, NULL, 1, 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    job = ex_start();
    ex_attach(&job, 1, NULL, 0);
    ex_barrier(&job);
    if (!strcmp(argv[1], "atomic")) gex_AD_Create(&ad, job.tm, GEX_DT_I32, GEX_OP_FADD | GEX_OP_SET, 0);
    if (!strcmp(argv[1], "differ")) {
        gex_AD_Create(&ad, job.tm, GEX_DT_I64, GEX_OP_SET | (job.me == 0 && !strcmp(argv[2], "operations") ? GEX_OP_GET : 0),
                      job.me == 0 && !strcmp(argv[2], "flags") ? GEX_FLAG_AD_FAVOR_REMOTE : 0);
        return 0;
    }
    if (job.me == job.ranks - 1) {
        if (!strcmp(argv[1], "atomic")) atomics(argv[2]);
        if (!strcmp(argv[1], "list")) lists(argv[2]);
        CHECK(!"the call has returned");
    }
    ex_barrier(&job);
    return 0;
}
