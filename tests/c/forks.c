/* Forked children act as programs of their own: nothing of the rank runs in them.
 *   forks [descriptors]
 * With `descriptors`, executed programs get no more descriptors than before. */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local.h"

static vgasnet_node_t me;
static size_t pages;

/* The stderr of a child. */
static char said[2000];

typedef void (*body_t)(void);

/* Runs the body in a child with stderr in `said`. Returns the status. */
static int status_of_child(body_t body, int is_known_to_libc) {
    int ends[2], status;
    size_t len = 0;
    ssize_t got;
    CHECK(pipe(ends) == 0);
    pid_t child = is_known_to_libc ? fork() : (pid_t)syscall(SYS_fork);
    if (child == 0) {
        alarm(20);
        dup2(ends[1], STDERR_FILENO);
        body();
        _exit(99);
    }
    CHECK(child > 0);
    close(ends[1]);
    while ((got = read(ends[0], said + len, sizeof said - 1 - len)) > 0) len += (size_t)got;
    said[len] = 0;
    close(ends[0]);
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

static int lines(const char *text) {
    int count = 0;
    for (; *text != 0; ++text) count += *text == '\n';
    return count;
}

static void expect_line(const char *part) {
    if (lines(said) == 1 && strncmp(said, "vgasnet: ", 9) == 0 && strstr(said, part) != NULL) return;
    printf("check: rank %u: a child said: %s\n", me, said);
    CHECK(!"it says one line");
}

static void exits(void) { exit(0); }
static void fails(void) { exit(3); }

static void ends(void) {
    int status = status_of_child(exits, 1);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0 && said[0] == 0);
    status = status_of_child(fails, 1);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3 && said[0] == 0);
}

static void asks(void) { (void)vgasnet_mynode(); }
static void fetches(void) {
    uint64_t word;
    vgasnet_get(&word, 0, at(0, 0), sizeof word);
}
static void initialises(void) { _exit(vgasnet_init(NULL, NULL) == VGASNET_ERR_NOT_INIT ? 40 : 41); }
static void waits(void) { _exit(vgasnet_barrier_try(0, 0) == VGASNET_ERR_NOT_INIT ? 40 : 41); }
static void leaves(void) { vgasnet_exit(0); }

static void calls(void) {
    static const struct {
        body_t body;
        const char *name;
        int status;
    } each[] = {{asks, "vgasnet_mynode", 1},
                {fetches, "vgasnet_get", 1},
                {initialises, "vgasnet_init", 40},
                {waits, "vgasnet_barrier_try", 40},
                {leaves, "vgasnet_exit", 1}};
    (void)at(0, 0);
    for (size_t i = 0; i < sizeof each / sizeof each[0]; ++i) {
        for (int is_known = 0; is_known < 2; ++is_known) {
            int status = status_of_child(each[i].body, is_known);
            char part[200];
            sprintf(part, "%s: this process was forked from rank %u", each[i].name, me);
            expect_line(part);
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == each[i].status);
        }
    }
}

static void loads(void) { (void)load_word(at(me, 0)); }
static void stores(void) { store_word(at(me, page_bytes()), 1); }
static void stores_later(void) { store_word(at(me, (pages - 1) * page_bytes()), 1); }

/* Pages mapped at the fork, and one unmapped page. */
static void accesses(void) {
    static const body_t each[] = {loads, stores, stores_later};
    for (size_t i = 0; i < pages; ++i) store_word(at(me, i * page_bytes()), i);
    (void)load_word(at(me, 0));
    store_word(at(me, page_bytes()), 1);
    for (size_t i = 0; i < sizeof each / sizeof each[0]; ++i) {
        int status = status_of_child(each[i], 1);
        expect_line("load or store at ");
        CHECK(strstr(said, "this process was forked from the rank") != NULL);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    }
    CHECK_EQ(load_word(at(me, page_bytes())), 1);
    CHECK_EQ(load_word(at(me, (pages - 1) * page_bytes())), pages - 1);
}

/* The mappings of shared memory. */
static int shared_mappings(void) {
    char line[1000];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    if (maps == NULL) return -1;
    while (fgets(line, sizeof line, maps) != NULL) count += strstr(line, "/memfd:vgasnet") != NULL;
    fclose(maps);
    return count;
}

static void has_no_memory(void) { _exit(shared_mappings() == 0 ? 40 : 41); }

static void memory(void) {
    CHECK(shared_mappings() > 0);
    int status = status_of_child(has_no_memory, 1);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 40);
}

/* The open descriptors of an executed program. */
static int open_descriptors(void) {
    int count = 0;
    for (int i = 0; i < 1024; ++i) count += fcntl(i, F_GETFD) != -1;
    return count;
}

static int inherited_descriptors(const char *program) {
    int status;
    pid_t child = vfork();
    if (child == 0) {
        execl(program, program, "count", (char *)NULL);
        _exit(255);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int is_over;

static void *ask_for_handlers(void *argument) {
    struct sigaction now;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) CHECK(sigaction(SIGUSR2, NULL, &now) == 0);
    return argument;
}

static void changes_handlers(void) {
    if (signal(SIGPIPE, SIG_DFL) != SIG_ERR) _exit(40);
}

/* Children of a thread, while another one asks for a handler. */
static void handlers(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, ask_for_handlers, NULL) == 0);
    for (int i = 0; i < 50; ++i) {
        int status = status_of_child(changes_handlers, 1);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 40);
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    CHECK(pthread_join(thread, NULL) == 0);
}

static volatile sig_atomic_t counted;

static void count_signal(int signal) { counted += signal == SIGUSR1; }
static void ignore_signal(int signal) { (void)signal; }

/* A child that borrows the memory may change its signal handling without effect on the rank. */
static void borrowed_memory(void) {
    struct sigaction now;
    int status;
    CHECK(signal(SIGUSR1, count_signal) == SIG_DFL && signal(SIGSEGV, count_signal) == SIG_DFL);
    pid_t child = vfork();
    if (child == 0) {
        int is_told = signal(SIGUSR1, ignore_signal) == count_signal && signal(SIGSEGV, SIG_DFL) == count_signal;
        _exit(is_told && signal(SIGUSR1, SIG_DFL) == ignore_signal ? 40 : 41);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 40);
    CHECK(sigaction(SIGUSR1, NULL, &now) == 0 && now.sa_handler == count_signal);
    CHECK(raise(SIGUSR1) == 0 && counted == 1);
    CHECK(signal(SIGSEGV, SIG_DFL) == count_signal && signal(SIGUSR1, SIG_DFL) == count_signal);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "count") == 0) return open_descriptors();
    int before = inherited_descriptors(argv[0]);
    pages = 3 * pool_pages();
    start(&argc, &argv, pages * page_bytes());
    me = vgasnet_mynode();
    barrier();
    ends();
    calls();
    accesses();
    memory();
    handlers();
    borrowed_memory();
    /* Networks leave some of their descriptors to executed programs. */
    int after = inherited_descriptors(argv[0]);
    CHECK(argc > 1 ? after == before : after >= 0);
    barrier();
    return finish();
}
