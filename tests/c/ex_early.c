/* GASNet-EX: barriers, messages, collectives and teams of a client without a segment. Later it attaches one and uses
 * it. */
#include "ex_check.h"

#include <gasnet_coll.h>

enum { NOTE = 160, ANSWER = 161, PUT = 162 };

static volatile int notes, answers, arrived;

static void on_note(gex_Token_t token, void *buf, size_t nbytes) {
    CHECK(nbytes == 5 && memcmp(buf, "early", 5) == 0);
    ++notes;
    CHECK(gex_AM_ReplyShort(token, ANSWER, 0) == 0);
}

static void on_answer(gex_Token_t token) {
    (void)token;
    ++answers;
}

static void on_put(gex_Token_t token, void *buf, size_t nbytes) {
    (void)token;
    CHECK(nbytes == sizeof(uint64_t) && buf != NULL);
    ++arrived;
}

static void collect(const struct ex_job *job) {
    gex_TM_t half = GEX_TM_INVALID;
    uint32_t mine = job->me + 1, sum = 0;
    gex_Event_Wait(gex_Coll_ReduceToAllNB(job->tm, &sum, &mine, GEX_DT_U32, sizeof sum, 1, GEX_OP_ADD, NULL, NULL, 0));
    CHECK(sum == job->ranks * (job->ranks + 1) / 2);
    CHECK(gex_TM_Split(&half, job->tm, job->me % 2, job->me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH) == 0);
    CHECK(half != GEX_TM_INVALID && gex_TM_QuerySize(half) == (job->ranks + 1 - job->me % 2) / 2);
    gex_Event_Wait(gex_Coll_BarrierNB(half, 0));
}

/* Each rank has a segment of its own size, of several pools. The next rank writes there, and all bytes are right. */
static void attach(struct ex_job *job) {
    const uintptr_t sizes[2] = {GASNET_PAGESIZE, (uintptr_t)1 << 60};
    const unsigned pools = 4;
    const uint64_t at_once = 0x1122334455667788;
    const gex_Rank_t next = (job->me + 1) % job->ranks;
    char *base;
    uintptr_t size, at, step = 12288;
    CHECK(gasnet_getMaxLocalSegmentSize() > 0);
    /* One rank asks for too much, so none gets a segment. */
    CHECK(gex_Segment_Attach(&job->segment, job->tm, sizes[job->me == 0]) == GASNET_ERR_RESOURCE);
    CHECK(gex_EP_QuerySegment(job->ep) == GEX_SEGMENT_INVALID);
    /* Or one rank asks for nothing. */
    CHECK(gex_Segment_Attach(&job->segment, job->tm, job->me == 0 ? 0 : GASNET_PAGESIZE) ==
          (job->me == 0 ? GASNET_ERR_BAD_ARG : GASNET_ERR_RESOURCE));
    CHECK(gex_EP_QuerySegment(job->ep) == GEX_SEGMENT_INVALID);
    ex_attach(job, pools + job->me, NULL, 0);
    CHECK(gex_Segment_Attach(&job->segment, job->tm, GASNET_PAGESIZE) == GASNET_ERR_NOT_INIT);
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(job->tm, next, (void **)&base, NULL, &size, 0));
    CHECK(size / (pools + next) == job->size / (pools + job->me));
    /* No rank waits for the one that has just attached. */
    CHECK(gex_AM_RequestLong(job->tm, next, PUT, (void *)&at_once, sizeof at_once, base + size - sizeof at_once, GEX_EVENT_NOW, 0) == 0);
    GASNET_BLOCKUNTIL(arrived == 1);
    CHECK(*(uint64_t *)(job->base + job->size - sizeof at_once) == at_once);
    for (at = 0; at < size - sizeof at_once; at += step) {
        const uint64_t value = at * 7 + next;
        CHECK(gex_RMA_PutBlocking(job->tm, next, base + at, (void *)&value, sizeof value, 0) == 0);
    }
    ex_barrier(job);
    for (at = 0; at < job->size - sizeof at_once; at += step) CHECK(*(uint64_t *)(job->base + at) == at * 7 + job->me);
    ex_barrier(job);
}

int main(int argc, char **argv) {
    struct ex_job job = ex_start();
    gex_AM_Entry_t table[] = {
        {NOTE, (gex_AM_Fn_t)on_note, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
        {ANSWER, (gex_AM_Fn_t)on_answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, NULL},
        {PUT, (gex_AM_Fn_t)on_put, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
    };
    gex_Rank_t rank;
    if (argc > 1 && strcmp(argv[1], "nothing") == 0) return 0;
    CHECK(gex_EP_RegisterHandlers(job.ep, table, 3) == GASNET_OK);
    /* Also named barriers, and by two calls. */
    CHECK(gasnet_barrier(0, GASNET_BARRIERFLAG_UNNAMED) == GASNET_OK);
    gasnet_barrier_notify(7, 0);
    CHECK(gasnet_barrier_wait(7, 0) == GASNET_OK);
    gasnet_barrier_notify((int)job.me, 0);
    CHECK(gasnet_barrier_wait((int)job.me, 0) == (job.ranks > 1 ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK));
    ex_barrier(&job);
    /* Only one rank sends at first, and the others wait for its messages. */
    if (job.me == 0) {
        for (rank = 0; rank < job.ranks; ++rank) {
            CHECK(gex_AM_RequestMedium(job.tm, rank, NOTE, "early", 5, GEX_EVENT_NOW, 0) == 0);
        }
        GASNET_BLOCKUNTIL(answers == (int)job.ranks);
    }
    GASNET_BLOCKUNTIL(notes == 1);
    ex_barrier(&job);
    CHECK(gex_EP_QuerySegment(job.ep) == GEX_SEGMENT_INVALID);
    collect(&job);
    if (argc > 1 && strcmp(argv[1], "put") == 0) gex_RMA_PutBlocking(job.tm, 1 - job.me, &job, &rank, sizeof rank, 0);
    if (argc > 1 && strcmp(argv[1], "none") == 0) return 0;
    attach(&job);
    return 0;
}
