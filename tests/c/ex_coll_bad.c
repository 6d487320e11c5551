/* GASNet-EX: errors of teams and collectives, selected by name. Each ends the job with a line. */
#include "ex_check.h"

#include <gasnet_coll.h>

static struct ex_job job;
static uint64_t from[4], to[4];
static gex_EP_Location_t list[4];

static void combine(const void *left, void *right, size_t count, const void *cdata) { (void)left, (void)right, (void)count, (void)cdata; }

static void reduce(gex_TM_t tm, gex_Rank_t root, gex_DT_t type, size_t size, size_t count, gex_OP_t operation, gex_Coll_ReduceFn_t function) {
    gex_Event_Wait(gex_Coll_ReduceToOneNB(tm, root, to, from, type, size, count, operation, function, NULL, 0));
}

static gex_TM_t made(void) {
    gex_TM_t tm = GEX_TM_INVALID;
    gex_TM_Split(&tm, job.tm, 0, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    return tm;
}

static void create(size_t new_count, size_t count, gex_Flags_t flags) {
    gex_TM_t tm;
    gex_TM_Create(&tm, new_count, job.tm, list, count, NULL, 0, flags);
}

static void teams(const char *what) {
    gex_TM_t tm = GEX_TM_INVALID;
    if (strcmp(what, "gone") == 0) {
        tm = made();
        gex_TM_Destroy(tm, NULL, 0);
        gex_Coll_BarrierNB(tm, 0);
    } else if (strcmp(what, "gone-twice") == 0) {
        tm = made();
        gex_TM_Destroy(tm, NULL, 0);
        gex_TM_Destroy(tm, NULL, 0);
    } else if (strcmp(what, "all") == 0) {
        gex_TM_Destroy(job.tm, NULL, 0);
    } else if (strcmp(what, "under-way") == 0) {
        tm = made();
        if (job.me == 0) {
            gex_Coll_BarrierNB(tm, 0);
            gex_TM_Destroy(tm, NULL, 0);
        }
        GASNET_BLOCKUNTIL(0);
    } else if (strcmp(what, "color") == 0) {
        gex_TM_Split(&tm, job.tm, -5, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    } else if (strcmp(what, "pair") == 0) {
        gex_TM_Split(&tm, gex_TM_Pair(job.ep, 0), 0, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    } else if (strcmp(what, "scratch") == 0) {
        gex_TM_Split(&tm, job.tm, 0, 0, to, sizeof to, 0);
    } else if (strcmp(what, "twice") == 0) {
        create(1, 2, GEX_FLAG_TM_NO_SCRATCH);
    } else if (strcmp(what, "outside") == 0) {
        list[1].gex_rank = job.ranks;
        create(1, 2, GEX_FLAG_TM_NO_SCRATCH);
    } else if (strcmp(what, "no-rank") == 0) {
        list[0].gex_rank = job.me;
        list[1].gex_rank = 99;
        create(1, 2, GEX_FLAG_TM_NO_SCRATCH | GEX_FLAG_RANK_IS_JOBRANK);
    } else if (strcmp(what, "endpoint") == 0) {
        list[0].gex_ep_index = 7;
        create(1, 1, GEX_FLAG_TM_NO_SCRATCH);
    } else if (strcmp(what, "places") == 0) {
        list[0].gex_rank = job.me;
        create(3, 1, GEX_FLAG_TM_NO_SCRATCH);
    } else if (strcmp(what, "kinds") == 0) {
        list[0].gex_rank = job.me;
        create(1, 1, GEX_FLAG_TM_NO_SCRATCH | GEX_FLAG_TM_LOCAL_SCRATCH);
    } else if (strcmp(what, "lists") == 0) {
        list[0].gex_rank = job.me;
        list[1].gex_rank = 1 - job.me;
        create(1, 2, GEX_FLAG_TM_NO_SCRATCH);
    }
}

static void collectives(const char *what) {
    if (strcmp(what, "root") == 0) {
        gex_Coll_BroadcastNB(job.tm, job.ranks, to, from, 8, 0);
    } else if (strcmp(what, "null") == 0) {
        gex_Coll_BroadcastNB(job.tm, 0, NULL, from, 8, 0);
    } else if (strcmp(what, "of-pair") == 0) {
        gex_Coll_BarrierNB(gex_TM_Pair(job.ep, 0), 0);
    } else if (strcmp(what, "reduce-root") == 0) {
        reduce(job.tm, 9, GEX_DT_U64, 8, 1, GEX_OP_ADD, NULL);
    } else if (strcmp(what, "type") == 0) {
        reduce(job.tm, 0, GEX_DT_U64 | GEX_DT_DBL, 8, 1, GEX_OP_ADD, NULL);
    } else if (strcmp(what, "size") == 0) {
        reduce(job.tm, 0, GEX_DT_U64, 4, 1, GEX_OP_ADD, NULL);
    } else if (strcmp(what, "no-size") == 0) {
        reduce(job.tm, 0, GEX_DT_USER, 0, 1, GEX_OP_USER, combine);
    } else if (strcmp(what, "much") == 0) {
        reduce(job.tm, 0, GEX_DT_U64, 8, (size_t)1 << 62, GEX_OP_ADD, NULL);
    } else if (strcmp(what, "operation") == 0) {
        reduce(job.tm, 0, GEX_DT_U64, 8, 1, GEX_OP_FADD, NULL);
    } else if (strcmp(what, "bits") == 0) {
        reduce(job.tm, 0, GEX_DT_DBL, 8, 1, GEX_OP_XOR, NULL);
    } else if (strcmp(what, "user-type") == 0) {
        reduce(job.tm, 0, GEX_DT_USER, 8, 1, GEX_OP_ADD, NULL);
    } else if (strcmp(what, "function") == 0) {
        reduce(job.tm, 0, GEX_DT_U64, 8, 1, GEX_OP_USER, NULL);
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    job = ex_start();
    ex_attach(&job, 1, NULL, 0);
    ex_barrier(&job);
    teams(argv[1]);
    collectives(argv[1]);
    ex_barrier(&job);
    return 0;
}
