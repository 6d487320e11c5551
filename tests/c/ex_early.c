/* GASNet-EX: a client without a segment, which has barriers and messages all the same. */
#include "ex_check.h"

enum { NOTE = 160, ANSWER = 161 };

static volatile int notes, answers;

static void on_note(gex_Token_t token, void *buf, size_t nbytes) {
    CHECK(nbytes == 5 && memcmp(buf, "early", 5) == 0);
    ++notes;
    CHECK(gex_AM_ReplyShort(token, ANSWER, 0) == 0);
}

static void on_answer(gex_Token_t token) {
    (void)token;
    ++answers;
}

int main(int argc, char **argv) {
    struct ex_job job = ex_start();
    gex_AM_Entry_t table[] = {
        {NOTE, (gex_AM_Fn_t)on_note, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
        {ANSWER, (gex_AM_Fn_t)on_answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, NULL},
    };
    gex_Rank_t rank;
    if (argc > 1 && strcmp(argv[1], "nothing") == 0) return 0;
    CHECK(gex_EP_RegisterHandlers(job.ep, table, 2) == GASNET_OK);
    /* Named barriers, too, and by two calls. */
    CHECK(gasnet_barrier(0, GASNET_BARRIERFLAG_UNNAMED) == GASNET_OK);
    gasnet_barrier_notify(7, 0);
    CHECK(gasnet_barrier_wait(7, 0) == GASNET_OK);
    gasnet_barrier_notify((int)job.me, 0);
    CHECK(gasnet_barrier_wait((int)job.me, 0) == (job.ranks > 1 ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK));
    ex_barrier(&job);
    /* Only one rank sends at first; the others wait for that. */
    if (job.me == 0) {
        for (rank = 0; rank < job.ranks; ++rank) {
            CHECK(gex_AM_RequestMedium(job.tm, rank, NOTE, "early", 5, GEX_EVENT_NOW, 0) == 0);
        }
        GASNET_BLOCKUNTIL(answers == (int)job.ranks);
    }
    GASNET_BLOCKUNTIL(notes == 1);
    ex_barrier(&job);
    CHECK(gex_EP_QuerySegment(job.ep) == GEX_SEGMENT_INVALID);
    /* It is too late for one now. */
    CHECK(gex_Segment_Attach(&job.segment, job.tm, GASNET_PAGESIZE) == GASNET_ERR_NOT_INIT);
    ex_barrier(&job);
    return 0;
}
