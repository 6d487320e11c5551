/* A tool of MPI's profiling interface. It counts. On request it refuses gets of MPI_BYTE or the words of a target, makes
 * gets, parts of gets (the library asks for these as MPI_BYTE) or words slow, holds gets back until a completion, and
 * answers gets of a target without MPI: the longs of make_window. Then completions of the target need no MPI either.
 * It also has functions of MPI 4.1, for older MPIs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

int tool_gets, tool_rgets, tool_flushes, tool_allocates, tool_dups, tool_atoms, tool_refuses;
int tool_words, tool_refused_target = -1, tool_parts, tool_holds, tool_instant_target = -1000;
long tool_get_ns, tool_part_ns, tool_word_ns;
void (*tool_on_allocated)(void);

static void spend(long ns) {
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec < ns);
}

/* Operations held back: gets, and fetching operations. */
enum { HELD_MAX = 4096 };
static struct held {
    const void *operand;
    void *to;
    int count, target, target_count;
    MPI_Datatype type, target_type;
    MPI_Aint at;
    MPI_Op op;
    MPI_Win win;
} held[HELD_MAX];
static int helds;

static int hold(struct held operation) {
    if (helds == HELD_MAX) return MPI_ERR_OTHER;
    held[helds++] = operation;
    return MPI_SUCCESS;
}

/* Much faster than a get of the library may be. */
__attribute__((optimize("O3"))) static void answer(long *to, int count, MPI_Datatype type, int target, MPI_Aint at) {
    int longs = type == MPI_BYTE ? count / (int)sizeof *to : count;
    for (int i = 0; i < longs; ++i) to[i] = 1000L * target + at + i;
}

static void issue(const struct held *of) {
    if (of->target == tool_instant_target) answer(of->to, of->count, of->type, of->target, of->at);
    else if (of->operand != NULL) PMPI_Fetch_and_op(of->operand, of->to, of->type, of->target, of->at, of->op, of->win);
    else PMPI_Get(of->to, of->count, of->type, of->target, of->at, of->target_count, of->target_type, of->win);
}

/* Before a completion of a window. In passive epochs its held operations come after all others. */
static void release(MPI_Win win, int is_passive) {
    int left = 0;
    for (int i = 0; i < helds; ++i) {
        int is_other = held[i].win != win;
        if (is_passive && !is_other && left == i && tool_instant_target < 0) PMPI_Win_flush_all(win);
        if (is_other) held[left++] = held[i];
        else issue(&held[i]);
    }
    helds = left;
}

/* Gets of these tests are cached even if MPI maps the memory: the cache is under test. */
__attribute__((constructor)) static void cache_what_is_near(void) {
    setenv("VGASNET_TEST_MPI_CACHE_NEAR", "1", 0);
}

int MPI_Get(void *origin, int count, MPI_Datatype type, int target, MPI_Aint at, int target_count, MPI_Datatype target_type,
            MPI_Win win) {
    __atomic_add_fetch(&tool_gets, 1, __ATOMIC_RELAXED);
    if (tool_refuses && type == MPI_BYTE) return MPI_ERR_OTHER;
    if (tool_holds)
        return hold((struct held){.to = origin, .count = count, .type = type, .target = target, .at = at,
                                  .target_count = target_count, .target_type = target_type, .win = win});
    if (type == MPI_BYTE) {
        __atomic_add_fetch(&tool_parts, 1, __ATOMIC_RELAXED);
        if (tool_part_ns) spend(tool_part_ns);
    }
    if (tool_get_ns) spend(tool_get_ns);
    if (target == tool_instant_target) return answer(origin, count, type, target, at), MPI_SUCCESS;
    return PMPI_Get(origin, count, type, target, at, target_count, target_type, win);
}

int MPI_Rget(void *origin, int count, MPI_Datatype type, int target, MPI_Aint at, int target_count, MPI_Datatype target_type,
             MPI_Win win, MPI_Request *request) {
    __atomic_add_fetch(&tool_rgets, 1, __ATOMIC_RELAXED);
    return PMPI_Rget(origin, count, type, target, at, target_count, target_type, win, request);
}

int MPI_Win_flush(int target, MPI_Win win) {
    __atomic_add_fetch(&tool_flushes, 1, __ATOMIC_RELAXED);
    release(win, 1);
    return target == tool_instant_target ? MPI_SUCCESS : PMPI_Win_flush(target, win);
}

int MPI_Win_flush_local(int target, MPI_Win win) {
    __atomic_add_fetch(&tool_flushes, 1, __ATOMIC_RELAXED);
    release(win, 1);
    return target == tool_instant_target ? MPI_SUCCESS : PMPI_Win_flush_local(target, win);
}

int MPI_Win_flush_all(MPI_Win win) {
    __atomic_add_fetch(&tool_flushes, 1, __ATOMIC_RELAXED);
    release(win, 1);
    return PMPI_Win_flush_all(win);
}

int MPI_Win_flush_local_all(MPI_Win win) {
    __atomic_add_fetch(&tool_flushes, 1, __ATOMIC_RELAXED);
    release(win, 1);
    return PMPI_Win_flush_local_all(win);
}

int MPI_Win_fence(int assert, MPI_Win win) {
    release(win, 0);
    return tool_instant_target >= 0 ? MPI_SUCCESS : PMPI_Win_fence(assert, win);
}

int MPI_Win_unlock_all(MPI_Win win) {
    release(win, 1);
    return PMPI_Win_unlock_all(win);
}

int MPI_Get_accumulate(const void *origin, int origin_count, MPI_Datatype origin_type, void *result, int result_count,
                       MPI_Datatype result_type, int target, MPI_Aint at, int count, MPI_Datatype type, MPI_Op op, MPI_Win win) {
    __atomic_add_fetch(&tool_atoms, 1, __ATOMIC_RELAXED);
    return PMPI_Get_accumulate(origin, origin_count, origin_type, result, result_count, result_type, target, at, count, type, op, win);
}

/* Words are read and raised so. */
int MPI_Fetch_and_op(const void *origin, void *result, MPI_Datatype type, int target, MPI_Aint at, MPI_Op op, MPI_Win win) {
    if (op == MPI_NO_OP) {
        __atomic_add_fetch(&tool_words, 1, __ATOMIC_RELAXED);
        if (tool_word_ns) spend(tool_word_ns);
    }
    if (tool_holds) return hold((struct held){.operand = origin, .to = result, .type = type, .target = target, .at = at, .op = op, .win = win});
    return PMPI_Fetch_and_op(origin, result, type, target, at, op, win);
}

int MPI_Accumulate(const void *origin, int origin_count, MPI_Datatype origin_type, int target, MPI_Aint at, int count,
                   MPI_Datatype type, MPI_Op op, MPI_Win win) {
    /* The words come first in the hidden window. Behind them are numbers of another use. */
    if (target == tool_refused_target && at < 1024) return MPI_ERR_OTHER;
    return PMPI_Accumulate(origin, origin_count, origin_type, target, at, count, type, op, win);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy) {
    __atomic_add_fetch(&tool_dups, 1, __ATOMIC_RELAXED);
    return PMPI_Comm_dup(comm, copy);
}

int MPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win) {
    __atomic_add_fetch(&tool_allocates, 1, __ATOMIC_RELAXED);
    int error = PMPI_Win_allocate(size, unit, info, comm, base, win);
    if (tool_on_allocated) tool_on_allocated();
    return error;
}

#if MPI_VERSION < 4 || (MPI_VERSION == 4 && MPI_SUBVERSION < 1)
/* MPI's own function: these calls do not reach the library by another of MPI's names. */
static int status_of(MPI_Request request, int *flag) {
    int (*own)(MPI_Request, int *, MPI_Status *) = (int (*)(MPI_Request, int *, MPI_Status *))dlsym(RTLD_NEXT, "PMPI_Request_get_status");
    return own(request, flag, MPI_STATUS_IGNORE);
}

int MPI_Request_get_status_all(int count, const MPI_Request requests[], int *flag, MPI_Status statuses[]) {
    int error = MPI_SUCCESS, is_complete;
    (void)statuses;
    *flag = 1;
    for (int i = 0; i < count && !error; ++i) error = status_of(requests[i], &is_complete), *flag = *flag && is_complete;
    return error;
}

int MPI_Request_get_status_any(int count, const MPI_Request requests[], int *index, int *flag, MPI_Status *status) {
    int error = MPI_SUCCESS;
    (void)status;
    *flag = 0;
    for (int i = 0; i < count && !error && !*flag; ++i) error = status_of(requests[i], flag), *index = i;
    return error;
}

int MPI_Request_get_status_some(int count, const MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]) {
    int error = MPI_SUCCESS, is_complete;
    (void)statuses;
    *done = 0;
    for (int i = 0; i < count && !error; ++i) {
        error = status_of(requests[i], &is_complete);
        if (is_complete) indices[(*done)++] = i;
    }
    return error;
}
#endif
