/* Children of a rank that only exit or execute another program, started while threads fault. */
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local.h"

#define CHILDREN 12
#define THREADS 2

extern char **environ;

static vgasnet_node_t me;
static size_t pages;
static int is_over;

struct worker {
    uint64_t number;
    uint64_t *model;
};

/* Each thread has a word in every page. */
static void use_segment(struct worker *worker, uint64_t *state, int times) {
    for (int i = 0; i < times; ++i) {
        size_t page = (size_t)random_below(state, pages);
        void *word = at(me, page * page_bytes() + 8 * worker->number);
        CHECK_EQ(load_word(word), worker->model[page]);
        store_word(word, worker->model[page] = random_word(state));
    }
}

static void *work(void *argument) {
    struct worker *worker = (struct worker *)argument;
    uint64_t state = mixed(28, me, worker->number);
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) use_segment(worker, &state, 10);
    return NULL;
}

static void expect(pid_t child, int status) {
    int is;
    CHECK(child > 0);
    CHECK(waitpid(child, &is, 0) == child);
    CHECK(WIFEXITED(is) && WEXITSTATUS(is) == status);
}

static void ends(int status) {
    pid_t child = fork();
    if (child == 0) _exit(status);
    expect(child, status);
}

/* Exits with 3 if it starts with the rank's blocked and ignored signals. Only signals 1 to 28 count, the last seven
 * digits: the C library reserves some of the others. */
static char script[400];

static void write_script(void) {
    char line[200], value[20], *end = script;
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status != NULL);
    while (fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "SigBlk: %16s", value) == 1 || sscanf(line, "SigIgn: %16s", value) == 1)
            end += sprintf(end, "grep -q '^%.6s:.*%s$' /proc/self/status && ", line, value + 9);
    fclose(status);
    CHECK(end != script);
    strcpy(end, "exit 3");
}

static void executes(void) {
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", script, (char *)NULL);
        _exit(1);
    }
    expect(child, 3);
}

static void is_spawned(void) {
    char shell[] = "sh", option[] = "-c", *arguments[4];
    pid_t child;
    arguments[0] = shell, arguments[1] = option, arguments[2] = script, arguments[3] = NULL;
    CHECK(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) == 0);
    expect(child, 3);
}

static void is_run(void) {
    int status = system("exit 5");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    char line[16];
    FILE *pipe = popen("echo here", "r");
    CHECK(pipe != NULL && fgets(line, sizeof line, pipe) != NULL && strcmp(line, "here\n") == 0);
    CHECK(pclose(pipe) == 0);
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    struct worker workers[THREADS + 1];
    write_script();
    pages = 3 * pool_pages();
    start(&argc, &argv, pages * page_bytes());
    me = vgasnet_mynode();
    for (uint64_t i = 0; i <= THREADS; ++i) {
        workers[i].number = i;
        workers[i].model = (uint64_t *)allocate(pages * sizeof(uint64_t));
        if (i < THREADS) CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    uint64_t state = mixed(28, me, THREADS);
    for (int i = 0; i < CHILDREN; ++i) {
        use_segment(&workers[THREADS], &state, 50);
        if (i % 4 == 0) ends(i);
        if (i % 4 == 1) executes();
        if (i % 4 == 2) is_spawned();
        if (i % 4 == 3) is_run();
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
    for (uint64_t i = 0; i <= THREADS; ++i)
        for (size_t page = 0; page < pages; ++page)
            CHECK_EQ(load_word(at(me, page * page_bytes() + 8 * i)), workers[i].model[page]);
    return finish();
}
