/* GASNet-EX: no rank gets its segment, and each ends at once, rank 0 last. ex_refused BYTES */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE
#endif
#include <sys/resource.h>

#include "ex_check.h"

int main(int argc, char **argv) {
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    gex_Segment_t segment;
    CHECK(argc == 2);
    CHECK(gex_Client_Init(&client, &ep, &tm, "refused", &argc, &argv, 0) == GASNET_OK);
    if (gex_TM_QueryRank(tm) == 0) CHECK(setpriority(PRIO_PROCESS, 0, 19) == 0);
    CHECK(gex_Segment_Attach(&segment, tm, (uintptr_t)strtoull(argv[1], NULL, 0)) != GASNET_OK);
    _exit(1);
}
