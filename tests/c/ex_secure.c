/* GASNet-EX: the environment variables available from the library in a program that may have more rights than its
 * user. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE
#endif
#include <sys/auxv.h>

#include "ex_check.h"

#include <gasnet_tools.h>
#include <vgasnet.h>

static int knows(const char *name) { return vgasnet_getenv(name) != NULL; }

int main(void) {
    int is_secure = getauxval(AT_SECURE) != 0;
    struct ex_job job = ex_start();
    CHECK_EQ(job.ranks, 1);
    CHECK(knows("OF_NOBODY") && gasnett_getenv_withdefault("OF_NOBODY", NULL) != NULL);
    CHECK_EQ(knows("VGASNET_STATS_FILE"), !is_secure);
    CHECK_EQ(knows("GASNET_OF_USER"), !is_secure);
    CHECK_EQ(gasnett_getenv_withdefault("GASNET_OF_USER", NULL) != NULL, !is_secure);
    CHECK_EQ(gasnett_getenv_int_withdefault("GASNET_OF_USER", 5, 0), is_secure ? 5 : 7);
    CHECK_EQ(gasnett_getenv_yesno_withdefault("GASNET_OF_USER_ANSWER", 0), !is_secure);
    printf("secure %d\n", is_secure);
    return 0;
}
