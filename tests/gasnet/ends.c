/* How a job ends: gasnet_exit from main, a thread or a handler, and the signal to the other nodes. The argument
 * selects the node and its way to end. A node with a handler of SIGQUIT prints a line and exits. */
#include "client.h"

#include <signal.h>

enum { EXIT = 200 };

static void on_exit_request(gasnet_token_t token, gasnet_handlerarg_t status) {
    (void)token;
    gasnet_exit(status);
}

static void on_quit(int number) {
    static const char text[] = "told to quit\n";
    ssize_t written = write(1, text, sizeof text - 1);
    gasnet_exit(number == SIGQUIT && written > 0 ? 77 : 78);
}

#ifdef GASNET_PAR
static void *exit_thread(void *argument) {
    gasnet_exit(5);
    return argument;
}
#endif

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {HANDLER(EXIT, on_exit_request)};
    const char *how = argc > 1 ? argv[1] : "";
    if (strstr(how, "handled") != NULL) signal(SIGQUIT, on_quit);
    start(&argc, &argv, table, 1);
    barrier();
    if (me == nodes - 1) {
        if (strncmp(how, "main", 4) == 0) gasnet_exit(3);
        if (strncmp(how, "handler", 7) == 0) CHECK(gasnet_AMRequestShort1(0, EXIT, 4) == GASNET_OK);
        if (strncmp(how, "crash", 5) == 0) abort();
        if (strncmp(how, "fatal", 5) == 0) gasneti_fatalerror("node %u of %s", (unsigned)gasneti_mynode, gasneti_gethostname());
#ifdef GASNET_PAR
        if (strncmp(how, "thread", 6) == 0) {
            pthread_t id;
            CHECK(pthread_create(&id, NULL, exit_thread, NULL) == 0);
        }
#endif
    }
    if (strncmp(how, "signal", 6) == 0) {
        /* The launcher is the parent of this process. */
        if (me == 0) kill(getppid(), SIGTERM);
    }
    if (strncmp(how, "quietly", 7) == 0) return finish();
    /* Half of the nodes poll, and half of them compute. */
    for (;;) {
        if (me % 2) gasnet_AMPoll();
        else usleep(1000);
        if (strncmp(how, "handler", 7) == 0) gasnet_AMPoll();
    }
}
