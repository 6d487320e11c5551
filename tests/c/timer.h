/* A timer that raises SIGALRM, for programs with handlers that interrupt their work. */
#ifndef TIMER_H
#define TIMER_H

#include <sys/time.h>

#include "check.h"

/* The period in microseconds. 0 stops it. */
static inline void set_timer(long period_us) {
    struct itimerval every;
    memset(&every, 0, sizeof every);
    every.it_interval.tv_usec = every.it_value.tv_usec = period_us;
    CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
}

#endif
