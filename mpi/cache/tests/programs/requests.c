/* MPI_Rget: misses are filed by any call that completes their request; hits have completed requests. Modes always
 * and phase. */
#include "common.h"

static long *memory;
static MPI_Win win;
static int other;

static MPI_Request rget(long *to, int at) {
    MPI_Request request;
    MPI_Rget(to, 1, MPI_LONG, other, at, 1, MPI_LONG, win, &request);
    return request;
}

/* Completes two requests. */
static void complete(int how, MPI_Request *requests) {
    int flag = 0, index, count = 0, indices[2];
    MPI_Status statuses[2];
    switch (how) {
    case 0: MPI_Wait(&requests[0], &statuses[0]); MPI_Wait(&requests[1], MPI_STATUS_IGNORE); break;
    case 1: MPI_Waitall(2, requests, statuses); break;
    case 2:
        MPI_Waitany(2, requests, &index, &statuses[0]);
        MPI_Waitany(2, requests, &index, &statuses[0]);
        break;
    case 3:
        for (int done = 0; done < 2; done += count) MPI_Waitsome(2, requests, &count, indices, statuses);
        break;
    case 4:
        for (int i = 0; i < 2; ++i)
            for (flag = 0; !flag;) MPI_Test(&requests[i], &flag, &statuses[0]);
        break;
    case 5:
        while (!flag) MPI_Testall(2, requests, &flag, statuses);
        break;
    case 6:
        for (int i = 0; i < 2; ++i)
            for (flag = 0; !flag;) MPI_Testany(2, requests, &index, &flag, &statuses[0]);
        break;
    case 7:
        for (int done = 0; done < 2; done += count > 0 ? count : 0) MPI_Testsome(2, requests, &count, indices, statuses);
        break;
    }
    CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    other = 1 - rank;
    win = make_window(&memory, 64, argv[1]);
    MPI_Win_lock_all(0, win);
    for (int how = 0; how < 8; ++how) {
        long values[2] = {-1, -1}, again[2] = {-1, -1};
        int at = 2 * how;
        MPI_Request requests[2] = {rget(&values[0], at), rget(&values[1], at + 1)};
        complete(how, requests);
        EQUAL(values[0], 1000 * other + at);
        EQUAL(values[1], 1000 * other + at + 1);
        tool_rgets = tool_gets = 0;
        MPI_Get(&again[0], 1, MPI_LONG, other, at, 1, MPI_LONG, win);
        EQUAL(again[0], values[0]);
        EQUAL(tool_gets, 0);
        MPI_Request hits[2] = {rget(&again[0], at), rget(&again[1], at + 1)};
        EQUAL(again[1], values[1]);
        EQUAL(tool_rgets, 0);
        complete(how, hits);
    }
    /* Freed requests. MPICH 4.0 does not free requests of its own gets. */
    long value = -1, joined = -1;
    MPI_Request request = rget(&value, 40);
    MPI_Win_flush(other, win);
    EQUAL(value, 1000 * other + 40);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    value = -1;
    request = rget(&value, 40);
    EQUAL(value, 1000 * other + 40);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL);
    /* The program has its buffer back as soon as it is told so, although the request is yet to be freed. */
    long looked = -1;
    request = rget(&looked, 50);
    for (int flag = 0; !flag;) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    EQUAL(looked, 1000 * other + 50);
    looked = -777;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EQUAL(looked, -777);
    MPI_Get(&looked, 1, MPI_LONG, other, 50, 1, MPI_LONG, win);
    MPI_Win_flush(other, win);
    EQUAL(looked, 1000 * other + 50);
    /* Many gets to one place, and many requests waited for one by one. */
    enum { MANY = 20000 };
    static MPI_Request many[MANY / 10];
    for (int i = 0; i < MANY; ++i) MPI_Get(&looked, 1, MPI_LONG, other, 55, 1, MPI_LONG, win);
    MPI_Win_flush(other, win);
    EQUAL(looked, 1000 * other + 55);
    static long places[MANY / 10];
    for (int i = 0; i < MANY / 10; ++i) many[i] = rget(&places[i], 56 + i % 8);
    for (int i = 0, index; i < MANY / 10; ++i) MPI_Waitany(MANY / 10, many, &index, MPI_STATUS_IGNORE);
    for (int i = 0; i < MANY / 10; ++i) EQUAL(places[i], 1000 * other + 56 + i % 8);
    /* Completed by a flush before the wait. */
    request = rget(&value, 41);
    MPI_Win_flush(other, win);
    EQUAL(value, 1000 * other + 41);
    value = 7;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    request = rget(&value, 41);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EQUAL(value, 1000 * other + 41);
    /* A request joins a get in flight. */
    MPI_Get(&value, 1, MPI_LONG, other, 42, 1, MPI_LONG, win);
    request = rget(&joined, 42);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EQUAL(joined, 1000 * other + 42);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
