/* An exception in a function called by the library: caught there it is harmless, otherwise it ends the rank at the
 * throw.
 *   handler | reduction  the exception leaves this function
 *   caught               both functions catch their exceptions
 * C has no exceptions, and handlers continue. */
#include "ex_check.h"

#include <gasnet_coll.h>

enum { ASK = 200 };

static struct ex_job job;
static volatile int asked;
static int leaves;

#ifdef __cplusplus
#include <stdexcept>
static void throw_one(void) { throw std::runtime_error("thrown on purpose"); }
static void maybe_throw(void) {
    if (leaves) throw_one();
    try {
        throw_one();
    } catch (const std::exception &) {
    }
}
#else
static void maybe_throw(void) {}
#endif

static void on_ask(gex_Token_t token) {
    (void)token;
    /* A load that misses, so the frames of a fault are above the handler's. */
    CHECK(job.base[job.size - 1] == 0);
    maybe_throw();
    ++asked;
}

static void add(const void *left, void *right, size_t count, const void *cdata) {
    size_t at;
    (void)cdata;
    maybe_throw();
    for (at = 0; at < count; ++at) ((uint64_t *)right)[at] += ((const uint64_t *)left)[at];
}

int main(int argc, char **argv) {
    gex_AM_Entry_t table[] = {{ASK, (gex_AM_Fn_t)on_ask, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL}};
    uint64_t one = 1, sum = 0;
    CHECK(argc == 2);
    job = ex_start();
    ex_attach(&job, 2, table, 1);
    leaves = strcmp(argv[1], "caught") != 0;
    if (strcmp(argv[1], "reduction") != 0) {
        CHECK(gex_AM_RequestShort0(job.tm, (job.me + 1) % job.ranks, ASK, 0) == 0);
        GASNET_BLOCKUNTIL(asked == 1);
    }
    gex_Event_Wait(gex_Coll_ReduceToAllNB(job.tm, &sum, &one, GEX_DT_USER, sizeof one, 1, GEX_OP_USER, add, NULL, 0));
    CHECK(sum == job.ranks);
    return 0;
}
