/* A rank that lives and ends as its argument says. Started by tests/cluster_launcher.rs and tests/c_interface. */
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../c/check.h"

static vgasnet_node_t me, ranks;

static int is(const char *text, const char *should) { return strcmp(text, should) == 0; }

/* The handler uses a part of the grace time. */
static void on_quit(int number) {
    static const char text[] = "told to quit\n";
    struct timespec part = {0, 200000000};
    ssize_t written;
    (void)number;
    nanosleep(&part, NULL);
    written = write(1, text, sizeof text - 1);
    _exit(written > 0 ? 0 : 1);
}

/* The end of a copy of a rank, in any way, must end nothing of the job. */
static int copies_end(int how) {
    int status = -1;
    pid_t copy = fork();
    if (copy == 0) {
        if (how) vgasnet_exit(5);
        _exit(5);
    }
    CHECK(waitpid(copy, &status, 0) == copy);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    barrier();
    return 0;
}

/* No file or socket of the library or of MPI has become a standard stream. */
static int streams_are_harmless(void) {
    for (int stream = 0; stream < 3; ++stream) {
        struct stat is, null;
        CHECK(fstat(stream, &is) == 0 && stat("/dev/null", &null) == 0);
        CHECK(is.st_rdev == null.st_rdev);
    }
    barrier();
    return 0;
}

static void await(const sigset_t *told) {
    int number;
    printf("pid %ld\n", (long)getpid());
    fflush(stdout);
    CHECK(sigwait(told, &number) == 0 && number == SIGUSR1);
}

/* Asks all ranks for a page on a signal. */
static void asks(const sigset_t *told) {
    await(told);
    for (vgasnet_node_t rank = 0; rank < ranks; ++rank)
        if (rank != me) vgasnet_get_nbi_bulk(at(me, 8 * rank), rank, at(rank, 3 * page_bytes()), 8);
    vgasnet_wait_syncnbi_gets();
}

/* Pages move from rank to rank until the job ends. */
static void goes_on(void) {
    for (uint64_t round = 0;; ++round) {
        vgasnet_put_val((me + 1) % ranks, at((me + 1) % ranks, 8 * me), round, 8);
        barrier();
        if (round == 0) {
            printf("pid %ld\n", (long)getpid());
            fflush(stdout);
        }
    }
}

static int is_tcp(int descriptor) {
    struct sockaddr_storage peer;
    socklen_t bytes = sizeof peer;
    return getpeername(descriptor, (struct sockaddr *)&peer, &bytes) == 0 && peer.ss_family == AF_INET;
}

#define DESCRIPTORS 256
static int was_tcp[DESCRIPTORS];

/* Ends the connections made by MPI, except connections inherited from its launcher. */
static void break_network(void) {
    for (int at = 0; at < DESCRIPTORS; ++at)
        if (is_tcp(at) && !was_tcp[at]) CHECK(shutdown(at, SHUT_RDWR) == 0);
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "";
    const char *number = getenv("PMI_RANK") != NULL ? getenv("PMI_RANK") : getenv("PMIX_RANK");
    if (is(way, "skips") && number != NULL && is(number, "1")) return 0;
    if (is(way, "told")) signal(SIGQUIT, on_quit);
    sigset_t told;
    sigemptyset(&told);
    sigaddset(&told, SIGUSR1);
    if (is(way, "leaves") || is(way, "asks")) sigprocmask(SIG_BLOCK, &told, NULL);
    for (int at = 0; at < DESCRIPTORS; ++at) was_tcp[at] = is_tcp(at);
    start(&argc, &argv, 4 * page_bytes());
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    barrier();
    if (is(way, "returns")) return 7;
    if (is(way, "mute")) return streams_are_harmless();
    if (is(way, "copies")) return copies_end(0) + copies_end(1);
    if (me == 1 && is(way, "exits")) vgasnet_exit(7);
    if (me == 1 && (is(way, "aborts") || is(way, "told"))) abort();
    if (is(way, "leaves")) return await(&told), 0;
    if (is(way, "asks")) asks(&told);
    if (me == 1 && is(way, "breaks")) break_network();
    if (is(way, "goes on") || is(way, "breaks")) goes_on();
    if (is(way, "waits")) {
        printf("pid %ld\n", (long)getpid());
        fflush(stdout);
        if (argc > 2) barrier();
        if (argc > 2 && me == 1) vgasnet_exit(7);
    }
    for (;;) pause();
}
