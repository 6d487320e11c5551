/* The common part of the test programs of GASNet-EX: the job, in addition to the common checks. Valid as C99 and as
 * C++11. */
#ifndef EX_CHECK_H
#define EX_CHECK_H

#include <gasnetex.h>

#include "checks.h"

/* The initial objects of the job, and their properties. */
struct ex_job {
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    gex_Segment_t segment;
    gex_Rank_t me, ranks;
    char *base;
    uintptr_t size;
};

/* Starts the job. */
static inline struct ex_job ex_start(void) {
    struct ex_job job = {0, 0, 0, 0, 0, 0, 0, 0};
    CHECK(gex_Client_Init(&job.client, &job.ep, &job.tm, "CHECK", NULL, NULL, 0) == GASNET_OK);
    job.me = gex_TM_QueryRank(job.tm);
    job.ranks = gex_TM_QuerySize(job.tm);
    return job;
}

static inline void ex_barrier(const struct ex_job *job) { gex_Event_Wait(gex_Coll_BarrierNB(job->tm, 0)); }

/* Attaches a segment of this many pools, and registers handlers first. No rank returns before the handlers of all
 * ranks can use the segment: messages of attached ranks run at ranks that still attach. */
static inline void ex_attach(struct ex_job *job, unsigned pools, gex_AM_Entry_t *table, size_t entries) {
    const char *pool = getenv("CHECK_POOL_BYTES");
    CHECK(pool != NULL);
    CHECK(gex_EP_RegisterHandlers(job->ep, table, entries) == GASNET_OK);
    CHECK(gex_Segment_Attach(&job->segment, job->tm, (uintptr_t)(pools * strtoull(pool, NULL, 10))) == GASNET_OK);
    job->base = (char *)gex_Segment_QueryAddr(job->segment);
    job->size = gex_Segment_QuerySize(job->segment);
    ex_barrier(job);
}

/* The first address of a rank's segment. */
static inline char *ex_base(gex_TM_t tm, gex_Rank_t rank) {
    void *base = NULL;
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(tm, rank, &base, NULL, NULL, 0));
    return (char *)base;
}

#endif
