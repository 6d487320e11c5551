/* GASNet-EX: the objects of a job and their properties, the places of ranks, and absent features. */
#include <gasnet_mk.h>

#include "ex_check.h"

/* Clients rely on these numbers, some of them in the preprocessor. */
#if GASNET_RELEASE_VERSION_MAJOR < 2025 || GEX_SPEC_VERSION_MAJOR != 0 || GEX_SPEC_VERSION_MINOR != 19 || GASNET_MAXEPS != 1
#error version
#endif
#if GEX_OP_CSWAP != 0x4000000 || GEX_DT_U64 != 8 || GEX_FLAG_AM_MEDLONG != 6 || GASNET_HIDDEN_AM_CONCURRENCY_LEVEL != 0
#error values
#endif
#if defined GASNET_CONDUIT_SMP || defined GASNET_PSHM || (!GASNET_CONDUIT_UDP && !GASNET_CONDUIT_MPI)
#error conduit
#endif
enum { ADD = GEX_OP_ADD, LAST = GEX_OP_GET };

static void no_handler(gex_Token_t token) { (void)token; }

static void check_cdata(const struct ex_job *job) {
    int client, ep, tm, segment;
    CHECK(gex_Client_QueryCData(job->client) == NULL && gex_EP_QueryCData(job->ep) == NULL);
    CHECK(gex_TM_QueryCData(job->tm) == NULL && gex_Segment_QueryCData(job->segment) == NULL);
    gex_Client_SetCData(job->client, &client);
    gex_EP_SetCData(job->ep, &ep);
    gex_TM_SetCData(job->tm, &tm);
    gex_Segment_SetCData(job->segment, &segment);
    CHECK(gex_Client_QueryCData(job->client) == &client && gex_EP_QueryCData(job->ep) == &ep);
    CHECK(gex_TM_QueryCData(job->tm) == &tm && gex_Segment_QueryCData(job->segment) == &segment);
}

static void check_ranks(const struct ex_job *job) {
    gex_TM_t pair = gex_TM_Pair(job->ep, 0);
    gex_Rank_t rank;
    CHECK_EQ(gex_System_QueryJobRank(), job->me);
    CHECK_EQ(gex_System_QueryJobSize(), job->ranks);
    CHECK(pair != GEX_TM_INVALID && pair != job->tm && pair == gex_TM_Pair(job->ep, 0));
    for (rank = 0; rank < job->ranks; ++rank) {
        void *owner = NULL, *local = NULL, *by_pair = NULL;
        uintptr_t size = 0, again = 0;
        gex_EP_Location_t location = gex_TM_TranslateRankToEP(job->tm, rank, 0);
        CHECK(location.gex_rank == rank && location.gex_ep_index == 0);
        CHECK_EQ(gex_TM_TranslateRankToJobrank(job->tm, rank), rank);
        CHECK_EQ(gex_TM_TranslateJobrankToRank(job->tm, rank), rank);
        CHECK(gex_EP_QueryBoundSegmentNB(job->tm, rank, &owner, &local, &size, GEX_FLAG_IMMEDIATE) == GEX_EVENT_INVALID);
        /* Each rank has asked for another size. */
        CHECK_EQ(size, (rank + 1) * (uintptr_t)GASNET_PAGESIZE);
        CHECK(owner != NULL && local == (rank == job->me ? owner : NULL));
        CHECK(gex_Segment_QueryBound(pair, rank, &by_pair, NULL, &again) == 0);
        CHECK(by_pair == owner && again == size);
        gex_Event_Wait(gex_EP_QueryBoundSegmentNB(pair, rank, NULL, NULL, NULL, 0));
    }
    CHECK_EQ(gex_TM_TranslateJobrankToRank(job->tm, job->ranks), GEX_RANK_INVALID);
}

static void check_places(const struct ex_job *job) {
    gex_RankInfo_t *info = NULL;
    gex_Rank_t count = 0, me = 99, nbrhds = 0, nbrhd = 99, hosts = 0, host = 99, at;
    gex_System_QueryNbrhdInfo(&info, &count, &me);
    CHECK(count == 1 && me == 0 && info[0].gex_jobrank == job->me);
    gex_System_QueryHostInfo(&info, &count, &me);
    CHECK(count >= 1 && count <= job->ranks && me < count && info[me].gex_jobrank == job->me);
    for (at = 1; at < count; ++at) CHECK(info[at - 1].gex_jobrank < info[at].gex_jobrank);
    gex_System_QueryMyPosition(&nbrhds, &nbrhd, &hosts, &host);
    CHECK(nbrhds == job->ranks && nbrhd == job->me && hosts >= 1 && host < hosts);
    gex_System_QueryNbrhdInfo(NULL, NULL, NULL);
    gex_System_QueryHostInfo(NULL, NULL, NULL);
    gex_System_QueryMyPosition(NULL, NULL, NULL, NULL);
    CHECK(gex_System_QueryMaxThreads() >= 1 && gex_System_QueryHiddenAMConcurrencyLevel() == 0);
}

/* The values by which clients recognise absent features, first with a line and then without. */
static void check_absent(const struct ex_job *job) {
    gex_EP_t ep = GEX_EP_INVALID;
    gex_Segment_t segment = GEX_SEGMENT_INVALID;
    gex_MK_t kind = GEX_MK_INVALID;
    gex_MK_Create_args_t args;
    memset(&args, 0, sizeof args);
    CHECK(gex_System_GetVerboseErrors() == 1);
    CHECK(gex_EP_Create(&ep, job->client, GEX_EP_CAPABILITY_ALL, 0) == GASNET_ERR_RESOURCE);
    gex_System_SetVerboseErrors(0);
    CHECK(gex_System_GetVerboseErrors() == 0);
    CHECK(gex_EP_Create(&ep, job->client, GEX_EP_CAPABILITY_RMA, 0) == GASNET_ERR_RESOURCE && ep == GEX_EP_INVALID);
    CHECK(gex_EP_Create(&ep, job->client, 0, 0) == GASNET_ERR_BAD_ARG);
    CHECK(gex_Segment_Create(&segment, job->client, NULL, 4096, GEX_MK_HOST, 0) == GASNET_ERR_RESOURCE);
    CHECK(segment == GEX_SEGMENT_INVALID);
    CHECK(gex_EP_BindSegment(job->ep, job->segment, 0) == GASNET_ERR_BAD_ARG);
    CHECK(gex_MK_Create(&kind, job->client, &args, 0) == GASNET_ERR_BAD_ARG && kind == GEX_MK_INVALID);
    ep = job->ep;
    CHECK(gex_EP_PublishBoundSegment(job->tm, NULL, 0, 0) == GASNET_OK);
    CHECK(gex_EP_PublishBoundSegment(job->tm, &ep, 1, 0) == GASNET_OK);
}

int main(int argc, char **argv) {
    struct ex_job job = {0, 0, 0, 0, 0, 0, 0, 0};
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)no_handler, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQREP, 0, NULL, NULL},
        {255, (gex_AM_Fn_t)no_handler, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQUEST, 16, &job, "second"},
        {0, (gex_AM_Fn_t)no_handler, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY, 3, NULL, NULL},
    };
    unsigned int threads = 7;
    const gex_ProgressThreadInfo_t *info = NULL;
    uintptr_t size = 99;
    CHECK(sizeof(gex_TM_t) == sizeof(uintptr_t) && sizeof(gex_Event_t) == sizeof(uintptr_t) && ADD == 8 && LAST == 1 << 27);
    CHECK(sizeof(gex_Memvec_t) == 16 && offsetof(gex_AM_Entry_t, gex_cdata) == 24);
    CHECK(gex_Client_Init(&job.client, &job.ep, &job.tm, "upcxx", &argc, &argv, GEX_FLAG_DEFER_THREADS) == GASNET_OK);
    job.me = gex_TM_QueryRank(job.tm);
    job.ranks = gex_TM_QuerySize(job.tm);
    CHECK(strcmp(gex_Client_QueryName(job.client), "upcxx") == 0);
    CHECK_EQ(gex_Client_QueryFlags(job.client), GEX_FLAG_DEFER_THREADS);
    CHECK(gex_System_QueryProgressThreads(job.client, &threads, &info, 0) == GASNET_OK && threads == 0);
    CHECK(gasnet_getMaxLocalSegmentSize() >= gasnet_getMaxGlobalSegmentSize() && gasnet_getMaxGlobalSegmentSize() > 0);
    CHECK(gex_EP_QuerySegment(job.ep) == GEX_SEGMENT_INVALID);
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(job.tm, job.me, NULL, NULL, &size, 0));
    CHECK(size == 0 && gex_Segment_QueryBound(job.tm, job.me, NULL, NULL, &size) != 0);
    /* Barriers need no segment. */
    ex_barrier(&job);
    CHECK(gasnet_barrier(3, 0) == GASNET_OK && gasnet_AMPoll() == GASNET_OK);
    /* Sizes are rounded up to GASNET_PAGESIZE. */
    CHECK(gex_Segment_Attach(&job.segment, job.tm, (job.me + 1) * (uintptr_t)GASNET_PAGESIZE - 1) == GASNET_OK);
    CHECK(gex_EP_QuerySegment(job.ep) == job.segment && gex_Segment_QueryClient(job.segment) == job.client);
    CHECK(gex_EP_QueryClient(job.ep) == job.client && gex_TM_QueryClient(job.tm) == job.client);
    CHECK(gex_TM_QueryEP(job.tm) == job.ep && gex_EP_QueryIndex(job.ep) == 0);
    CHECK(gex_TM_QueryFlags(job.tm) == 0 && gex_EP_QueryFlags(job.ep) == 0 && gex_Segment_QueryFlags(job.segment) == 0);
    CHECK_EQ(gex_Segment_QuerySize(job.segment), (job.me + 1) * (uintptr_t)GASNET_PAGESIZE);
    CHECK(gex_Segment_QueryAddr(job.segment) == (void *)ex_base(job.tm, job.me));
    CHECK(gex_EP_RegisterHandlers(job.ep, table, 3) == GASNET_OK);
    CHECK(table[0].gex_index == 254 && table[1].gex_index == 255 && table[2].gex_index == 253);
    check_cdata(&job);
    check_ranks(&job);
    check_places(&job);
    check_absent(&job);
    ex_barrier(&job);
    return 0;
}
