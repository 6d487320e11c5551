/* Locks in the segment: threads wait for them while their pages leave the pool. locks PART */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define THREADS 4
#define ROUNDS 400

static vgasnet_node_t me;
static size_t sweep_start, sweep_len;
static int running;

/* Each object has a page of its own. */
static void *on_page(int page) { return at(me, (size_t)page * page_bytes()); }

#define MUTEX(page) ((pthread_mutex_t *)on_page(page))
#define CONDITION(page) ((pthread_cond_t *)on_page(page))
#define RWLOCK(page) ((pthread_rwlock_t *)on_page(page))
#define SEMAPHORE(page) ((sem_t *)on_page(page))
#define BARRIER(page) ((pthread_barrier_t *)on_page(page))
#define PAGES 8

/* Takes every page out of the pool. */
static void evict(void) {
    for (size_t offset = 0; offset < sweep_len; offset += page_bytes())
        ++*(volatile uint64_t *)at(me, sweep_start + offset);
}

struct thread {
    pthread_t thread;
    int number;
    void (*run)(int number);
};

static void handle(int signal_number) { (void)signal_number; }

static void *run(void *argument) {
    struct thread *thread = (struct thread *)argument;
    thread->run(thread->number);
    __atomic_fetch_sub(&running, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* What the main thread does between two evictions. */
static void (*meanwhile)(void);

static void in_threads(void (*function)(int)) {
    struct thread threads[THREADS];
    running = THREADS;
    for (int i = 0; i < THREADS; ++i) {
        threads[i].number = i;
        threads[i].run = function;
        CHECK(pthread_create(&threads[i].thread, NULL, run, &threads[i]) == 0);
    }
    /* A wait that a signal interrupts begins again in the kernel. */
    while (__atomic_load_n(&running, __ATOMIC_ACQUIRE) > 0) {
        evict();
        if (meanwhile != NULL) meanwhile();
        for (int i = 0; i < THREADS; ++i) {
            int error = pthread_kill(threads[i].thread, SIGUSR1);
            CHECK(error == 0 || error == ESRCH || error == EAGAIN);
        }
    }
    for (int i = 0; i < THREADS; ++i) CHECK(pthread_join(threads[i].thread, NULL) == 0);
}

static struct timespec from_now(clockid_t clock, long ms) {
    struct timespec time;
    CHECK(clock_gettime(clock, &time) == 0);
    time.tv_nsec += ms * 1000000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

/* A turn that takes long enough for others to wait, and sometimes to be interrupted. */
static void take_turn(volatile uint64_t *count) {
    uint64_t seen = *count;
    thrd_yield();
    if (seen % 32 == 31) evict();
    *count = seen + 1;
}

/* Mutexes, by each function that takes one. */
static volatile uint64_t counted;

static void lock_by(int way, pthread_mutex_t *mutex) {
    struct timespec real = from_now(CLOCK_REALTIME, 60000), monotonic = from_now(CLOCK_MONOTONIC, 60000);
    if (way % 4 == 0) CHECK(pthread_mutex_lock(mutex) == 0);
    if (way % 4 == 1) CHECK(pthread_mutex_timedlock(mutex, &real) == 0);
    if (way % 4 == 2) CHECK(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &monotonic) == 0);
    if (way % 4 == 3) CHECK(mtx_lock((mtx_t *)mutex) == thrd_success);
}

static void use_mutex(int number) {
    for (int i = 0; i < ROUNDS; ++i) {
        lock_by(number + i, MUTEX(0));
        take_turn(&counted);
        if (i % 2 == 0)
            CHECK(pthread_mutex_unlock(MUTEX(0)) == 0);
        else
            CHECK(mtx_unlock((mtx_t *)MUTEX(0)) == thrd_success);
    }
}

static void make_mutex(int page, int type) {
    pthread_mutexattr_t attributes;
    CHECK(pthread_mutexattr_init(&attributes) == 0 && pthread_mutexattr_settype(&attributes, type) == 0);
    CHECK(pthread_mutex_init(MUTEX(page), &attributes) == 0);
}

static void *take_for_long(void *unused) {
    struct timespec soon = from_now(CLOCK_REALTIME, 20), never = {0, -1};
    (void)unused;
    CHECK(pthread_mutex_timedlock(MUTEX(0), &soon) == ETIMEDOUT);
    CHECK(pthread_mutex_timedlock(MUTEX(0), &never) == EINVAL);
    CHECK(mtx_timedlock((mtx_t *)MUTEX(0), &soon) == thrd_timedout);
    return NULL;
}

static void mutexes(void) {
    const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_RECURSIVE,
                         PTHREAD_MUTEX_ADAPTIVE_NP};
    for (int i = 0; i < 4; ++i) {
        pthread_t other;
        make_mutex(0, types[i]);
        counted = 0;
        in_threads(use_mutex);
        CHECK_EQ(counted, THREADS * ROUNDS);
        CHECK(pthread_mutex_lock(MUTEX(0)) == 0);
        if (types[i] == PTHREAD_MUTEX_ERRORCHECK) CHECK(pthread_mutex_lock(MUTEX(0)) == EDEADLK);
        if (types[i] == PTHREAD_MUTEX_RECURSIVE) CHECK(pthread_mutex_lock(MUTEX(0)) == 0);
        if (types[i] == PTHREAD_MUTEX_RECURSIVE) CHECK(pthread_mutex_unlock(MUTEX(0)) == 0);
        CHECK(pthread_create(&other, NULL, take_for_long, NULL) == 0 && pthread_join(other, NULL) == 0);
        CHECK(pthread_mutex_unlock(MUTEX(0)) == 0);
        if (types[i] == PTHREAD_MUTEX_ERRORCHECK) CHECK(pthread_mutex_unlock(MUTEX(0)) == EPERM);
        CHECK(pthread_mutex_destroy(MUTEX(0)) == 0);
    }
}

/* Condition variables: the threads take turns by one, in the segment or not, with a mutex in the segment or not. */
static pthread_mutex_t mutex_outside = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition_outside = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t *mutex;
static pthread_cond_t *condition;
static clockid_t its_clock;

static void wait_by(int way) {
    struct timespec own = from_now(its_clock, 60000), monotonic = from_now(CLOCK_MONOTONIC, 60000);
    if (way % 4 == 0) CHECK(pthread_cond_wait(condition, mutex) == 0);
    if (way % 4 == 1) CHECK(pthread_cond_timedwait(condition, mutex, &own) == 0);
    if (way % 4 == 2) CHECK(pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, &monotonic) == 0);
    if (way % 4 == 3) CHECK(cnd_wait((cnd_t *)condition, (mtx_t *)mutex) == thrd_success);
}

static void use_condition(int number) {
    for (int i = 0; i < ROUNDS / 4; ++i) {
        CHECK(pthread_mutex_lock(mutex) == 0);
        while (counted % THREADS != (uint64_t)number) wait_by(i);
        take_turn(&counted);
        if (i % 2 == 0) CHECK(pthread_cond_broadcast(condition) == 0);
        if (i % 2 == 1) CHECK(cnd_broadcast((cnd_t *)condition) == thrd_success);
        CHECK(pthread_mutex_unlock(mutex) == 0);
    }
}

/* One thread at a time waits, and is woken by one signal. */
static void use_signal(int number) {
    if (number >= 2) return;
    for (int i = 0; i < ROUNDS / 4; ++i) {
        CHECK(pthread_mutex_lock(mutex) == 0);
        while (counted % 2 != (uint64_t)number) wait_by(i);
        take_turn(&counted);
        if (i % 2 == 0) CHECK(pthread_cond_signal(condition) == 0);
        if (i % 2 == 1) CHECK(cnd_signal((cnd_t *)condition) == thrd_success);
        CHECK(pthread_mutex_unlock(mutex) == 0);
    }
}

/* As with a condition, by waits without a limit. */
static uint64_t turns;

static void take_turns(int number) {
    for (int i = 0; i < ROUNDS / 4; ++i) {
        CHECK(pthread_mutex_lock(mutex) == 0);
        while (turns % THREADS != (uint64_t)number) CHECK(pthread_cond_wait(condition, mutex) == 0);
        ++turns;
        CHECK(pthread_cond_broadcast(condition) == 0);
        CHECK(pthread_mutex_unlock(mutex) == 0);
    }
}

static void use_both(void) {
    struct timespec soon = from_now(its_clock, 20), never = {0, 1000000000};
    counted = 0;
    in_threads(use_condition);
    CHECK_EQ(counted, THREADS * (ROUNDS / 4));
    in_threads(use_signal);
    CHECK_EQ(counted, (THREADS + 2) * (ROUNDS / 4));
    CHECK(pthread_mutex_lock(mutex) == 0);
    CHECK(pthread_cond_timedwait(condition, mutex, &soon) == ETIMEDOUT);
    CHECK(pthread_cond_timedwait(condition, mutex, &never) == EINVAL);
    CHECK(pthread_mutex_unlock(mutex) == 0);
}

static void conditions(void) {
    pthread_condattr_t attributes;
    CHECK(pthread_condattr_init(&attributes) == 0);
    make_mutex(0, PTHREAD_MUTEX_ERRORCHECK);
    for (int way = 0; way < 6; ++way) {
        its_clock = way % 2 == 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
        mutex = way / 2 == 1 ? &mutex_outside : MUTEX(0);
        condition = way / 2 == 2 ? &condition_outside : CONDITION(1);
        CHECK(pthread_condattr_setclock(&attributes, its_clock) == 0 && pthread_cond_init(condition, &attributes) == 0);
        use_both();
        CHECK(pthread_cond_destroy(condition) == 0);
    }
    make_mutex(0, PTHREAD_MUTEX_NORMAL);
    mutex = MUTEX(0);
    condition = CONDITION(1);
    its_clock = CLOCK_REALTIME;
    /* Memory of a condition variable with the other clock that nobody destroyed. */
    CHECK(pthread_cond_init(condition, &attributes) == 0);
    memset(condition, 0, sizeof *condition);
    use_both();
    CHECK(cnd_init((cnd_t *)condition) == thrd_success);
    use_both();
}

/* Read-write locks: one thread of the four writes both words, and the others find them equal. */
static volatile uint64_t words[2];

static void use_rwlock(int number) {
    for (int i = 0; i < ROUNDS; ++i) {
        struct timespec real = from_now(CLOCK_REALTIME, 60000), monotonic = from_now(CLOCK_MONOTONIC, 60000);
        if (number == i % THREADS) {
            if (i / THREADS % 3 == 0) CHECK(pthread_rwlock_wrlock(RWLOCK(0)) == 0);
            if (i / THREADS % 3 == 1) CHECK(pthread_rwlock_timedwrlock(RWLOCK(0), &real) == 0);
            if (i / THREADS % 3 == 2) CHECK(pthread_rwlock_clockwrlock(RWLOCK(0), CLOCK_MONOTONIC, &monotonic) == 0);
            take_turn(&words[0]);
            take_turn(&words[1]);
        } else {
            if (i % 3 == 0) CHECK(pthread_rwlock_rdlock(RWLOCK(0)) == 0);
            if (i % 3 == 1) CHECK(pthread_rwlock_timedrdlock(RWLOCK(0), &real) == 0);
            if (i % 3 == 2) CHECK(pthread_rwlock_clockrdlock(RWLOCK(0), CLOCK_MONOTONIC, &monotonic) == 0);
            CHECK_EQ(words[0], words[1]);
        }
        CHECK(pthread_rwlock_unlock(RWLOCK(0)) == 0);
    }
}

static void rwlocks(void) {
    struct timespec never = {0, -1};
    const int kinds[] = {PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP};
    for (int i = 0; i < 2; ++i) {
        pthread_rwlockattr_t attributes;
        CHECK(pthread_rwlockattr_init(&attributes) == 0 && pthread_rwlockattr_setkind_np(&attributes, kinds[i]) == 0);
        CHECK(pthread_rwlock_init(RWLOCK(0), &attributes) == 0);
        words[0] = words[1] = 0;
        in_threads(use_rwlock);
        CHECK_EQ(words[0], ROUNDS);
        CHECK(pthread_rwlock_wrlock(RWLOCK(0)) == 0);
        CHECK(pthread_rwlock_rdlock(RWLOCK(0)) == EDEADLK && pthread_rwlock_wrlock(RWLOCK(0)) == EDEADLK);
        CHECK(pthread_rwlock_unlock(RWLOCK(0)) == 0);
        CHECK(pthread_rwlock_rdlock(RWLOCK(0)) == 0 && pthread_rwlock_rdlock(RWLOCK(0)) == 0);
        CHECK(pthread_rwlock_timedwrlock(RWLOCK(0), &never) == EINVAL);
        CHECK(pthread_rwlock_unlock(RWLOCK(0)) == 0 && pthread_rwlock_unlock(RWLOCK(0)) == 0);
        CHECK(pthread_rwlock_destroy(RWLOCK(0)) == 0);
    }
}

/* Semaphores pass a token around. */
static void use_semaphore(int number) {
    for (int i = 0; i < ROUNDS / 4; ++i) {
        struct timespec real = from_now(CLOCK_REALTIME, 60000), monotonic = from_now(CLOCK_MONOTONIC, 60000);
        if (i % 3 == 0) CHECK(sem_wait(SEMAPHORE(number)) == 0);
        while (i % 3 == 1 && sem_timedwait(SEMAPHORE(number), &real) != 0) CHECK(errno == EINTR);
        while (i % 3 == 2 && sem_clockwait(SEMAPHORE(number), CLOCK_MONOTONIC, &monotonic) != 0) CHECK(errno == EINTR);
        take_turn(&counted);
        CHECK(sem_post(SEMAPHORE((number + 1) % THREADS)) == 0);
    }
}

/* Two tokens for all: none is lost between threads that arrive and threads that wait. */
static void share_semaphore(int number) {
    (void)number;
    for (int i = 0; i < ROUNDS; ++i) {
        CHECK(sem_wait(SEMAPHORE(THREADS)) == 0);
        thrd_yield();
        CHECK(sem_post(SEMAPHORE(THREADS)) == 0);
    }
}

static void semaphores(void) {
    int value = -1;
    struct timespec soon = from_now(CLOCK_REALTIME, 20), never = {0, -1};
    for (int i = 0; i < THREADS; ++i) CHECK(sem_init(SEMAPHORE(i), 0, i == 0) == 0);
    counted = 0;
    in_threads(use_semaphore);
    CHECK_EQ(counted, THREADS * (ROUNDS / 4));
    CHECK(sem_init(SEMAPHORE(THREADS), 0, 2) == 0);
    in_threads(share_semaphore);
    CHECK(sem_getvalue(SEMAPHORE(THREADS), &value) == 0 && value == 2);
    CHECK(sem_timedwait(SEMAPHORE(1), &soon) == -1 && errno == ETIMEDOUT);
    CHECK(sem_timedwait(SEMAPHORE(1), &never) == -1 && errno == EINVAL);
}

/* Barriers and once-flags. */
static pthread_once_t *once;
static uint64_t in_round, last_of_round, called;

static void initialise(void) {
    for (int i = 0; i < 20; ++i) thrd_yield();
    ++called;
}

static void use_barrier(int number) {
    for (int i = 0; i < ROUNDS / 4; ++i) {
        if (i % 8 == 7 && number == 0) evict();
        uint64_t arrived = __atomic_add_fetch(&in_round, 1, __ATOMIC_RELAXED);
        CHECK(arrived > (uint64_t)i * THREADS && arrived <= (uint64_t)(i + 1) * THREADS);
        int answer = pthread_barrier_wait(BARRIER(0));
        CHECK(answer == 0 || answer == PTHREAD_BARRIER_SERIAL_THREAD);
        if (answer != 0) __atomic_add_fetch(&last_of_round, 1, __ATOMIC_RELAXED);
        CHECK(pthread_barrier_wait(BARRIER(0)) == 0 || number >= 0);
        if ((number + i) % 2 == 0)
            CHECK(pthread_once(&once[i], initialise) == 0);
        else
            call_once((once_flag *)&once[i], initialise);
        CHECK(called >= (uint64_t)i + 1);
    }
}

static void barriers(void) {
    once = (pthread_once_t *)on_page(1);
    memset(once, 0, ROUNDS / 4 * sizeof *once);
    CHECK(pthread_barrier_init(BARRIER(0), NULL, 0) == EINVAL);
    CHECK(pthread_barrier_init(BARRIER(0), NULL, THREADS) == 0);
    in_threads(use_barrier);
    CHECK_EQ(last_of_round, ROUNDS / 4);
    CHECK_EQ(called, ROUNDS / 4);
    CHECK(pthread_barrier_destroy(BARRIER(0)) == 0);
}

/* A lock by the system call: 0 is free, 1 taken, 2 with threads that wait. */
#define WORD ((int *)on_page(0))

static void use_word(int number) {
    for (int i = 0; i < ROUNDS; ++i) {
        struct timespec second = {1, 0};
        while (__atomic_exchange_n(WORD, 2, __ATOMIC_ACQUIRE) != 0)
            if (syscall(SYS_futex, WORD, (number + i) % 2 == 0 ? FUTEX_WAIT_PRIVATE : FUTEX_WAIT, 2, i % 3 == 0 ? &second : NULL) != 0)
                CHECK(errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT);
        take_turn(&counted);
        if (__atomic_exchange_n(WORD, 0, __ATOMIC_RELEASE) == 2) CHECK(syscall(SYS_futex, WORD, FUTEX_WAKE, 1) >= 0);
    }
}

static void futexes(void) {
    *WORD = 0;
    counted = 0;
    in_threads(use_word);
    CHECK_EQ(counted, THREADS * ROUNDS);
}

/* Waiting threads are cancelled: one at a condition, with its mutex locked, and one at a semaphore. */
static void release(void *unused) {
    (void)unused;
    CHECK(pthread_mutex_unlock(MUTEX(0)) == 0);
}

static void *wait_at_condition(void *unused) {
    CHECK(pthread_mutex_lock(MUTEX(0)) == 0);
    pthread_cleanup_push(release, unused);
    ++counted;
    for (;;) CHECK(pthread_cond_wait(CONDITION(1), MUTEX(0)) == 0);
    pthread_cleanup_pop(1);
    return NULL;
}

static void *wait_at_semaphore(void *unused) {
    (void)unused;
    CHECK(pthread_mutex_lock(MUTEX(0)) == 0);
    ++counted;
    CHECK(pthread_mutex_unlock(MUTEX(0)) == 0);
    for (;;) CHECK(sem_wait(SEMAPHORE(2)) == 0);
    return NULL;
}

static void cancel_another(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_at_semaphore, NULL) == 0);
    CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);
}

/* Waiters that are not cancelled keep their mutex and their turns. */
static void others_cancelled(void) {
    const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE};
    meanwhile = cancel_another;
    for (int i = 0; i < 2; ++i) {
        make_mutex(0, PTHREAD_MUTEX_ERRORCHECK);
        make_mutex(3, types[i]);
        CHECK(pthread_cond_init(CONDITION(1), NULL) == 0 && sem_init(SEMAPHORE(2), 0, 0) == 0);
        mutex = MUTEX(3);
        condition = CONDITION(1);
        turns = 0;
        in_threads(take_turns);
        CHECK_EQ(turns, THREADS * (ROUNDS / 4));
    }
    meanwhile = NULL;
}

static void cancelled(void) {
    others_cancelled();
    make_mutex(0, PTHREAD_MUTEX_ERRORCHECK);
    CHECK(pthread_cond_init(CONDITION(1), NULL) == 0 && sem_init(SEMAPHORE(2), 0, 0) == 0);
    for (int i = 0; i < 2 * THREADS; ++i) {
        pthread_t thread;
        void *result = NULL;
        counted = 0;
        CHECK(pthread_create(&thread, NULL, i % 2 == 0 ? wait_at_condition : wait_at_semaphore, NULL) == 0);
        while (counted == 0) evict();
        CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
        CHECK(pthread_mutex_lock(MUTEX(0)) == 0 && pthread_mutex_unlock(MUTEX(0)) == 0);
    }
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"mutexes", mutexes},       {"conditions", conditions}, {"rwlocks", rwlocks},
                 {"semaphores", semaphores}, {"barriers", barriers},     {"cancelled", cancelled},
                 {"futexes", futexes}};
    struct sigaction action;
    int have_run = 0;
    sweep_start = PAGES * page_bytes();
    sweep_len = (pool_bytes() / page_bytes() + 2) * page_bytes();
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) return 1;
    CHECK(argc > 1);
    me = vgasnet_mynode();
    CHECK(vgasnet_attach(NULL, 0, sweep_start + sweep_len, 0) == VGASNET_OK);
    (void)at(0, 0);
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    action.sa_flags = SA_RESTART;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    barrier();
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; ++i) {
        if (strcmp(argv[1], parts[i].name) == 0) {
            parts[i].run();
            ++have_run;
        }
    }
    CHECK(have_run == 1);
    return finish();
}
