/* Rank 1 is late for the exchange of a window's creation, until rank 0 has printed a line about it. Errors of rank 0 go to
 * the file of the argument first. */
#include "common.h"
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

static const char *path;
static char text[4096];

static void read_lines(void) {
    int file = open(path, O_RDONLY);
    ssize_t bytes = file < 0 ? 0 : read(file, text, sizeof text - 1);
    text[bytes > 0 ? bytes : 0] = 0;
    if (file >= 0) close(file);
}

/* MPI has made the window. */
static void wait_for_line(void) {
    time_t start = time(NULL);
    tool_on_allocated = NULL;
    do {
        usleep(10000);
        read_lines();
        CHECK(time(NULL) - start < 60);
    } while (strstr(text, "waits for all ranks") == NULL || strchr(text, '\n') == NULL);
}

int main(int argc, char **argv) {
    long *memory, value = -1;
    int errors = dup(2), file;
    start(&argc, &argv);
    path = argv[1];
    if (rank == 0) {
        file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
        CHECK(errors >= 0 && file >= 0 && dup2(file, 2) == 2 && close(file) == 0);
    }
    /* The file of an earlier run is gone. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) tool_on_allocated = wait_for_line;
    MPI_Win win = make_window(&memory, 8, NULL);
    if (rank == 0) {
        dup2(errors, 2);
        read_lines();
        fputs(text, stderr);
    }
    /* The window is cached. */
    MPI_Win_lock_all(0, win);
    tool_gets = 0;
    for (int i = 0; i < 2; ++i) {
        MPI_Get(&value, 1, MPI_LONG, 1 - rank, 3, 1, MPI_LONG, win);
        MPI_Win_flush(1 - rank, win);
        EQUAL(value, 1000 * (1 - rank) + 3);
    }
    EQUAL(tool_gets, 1);
    /* An unlock tells of stores. */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
