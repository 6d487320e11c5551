/* A job ends early while another handle comes: its rescue cuts off nothing that the other has written. rescued FILE
 * Rank 0 has the file cached, and calls MPI_Abort. In the middle of the rescue, where the file is to get its size, rank 1
 * opens the file, and writes behind the end as soon as it may. The C library's ftruncate is replaced for this. */
#define _DEFAULT_SOURCE
#include "common.h"
#include <sys/syscall.h>
#include <unistd.h>

enum { FAR = 1 << 20 };

static volatile int *shared;
static int is_ending;

static void say(const char *what) { CHECK(write(STDOUT_FILENO, what, strlen(what)) == (ssize_t)strlen(what)); }

int ftruncate(int fd, off_t size) {
    if (__atomic_exchange_n(&is_ending, 0, __ATOMIC_SEQ_CST)) {
        say("cuts\n");
        shared[0] = 1;
        /* Rank 1 is to wait for the end of this. */
        for (int i = 0; i < 1000 && !shared[1]; ++i) usleep(1000);
    }
    return (int)syscall(SYS_ftruncate, fd, size);
}

int ftruncate64(int fd, off_t size) { return ftruncate(fd, size); }

static void open_it(const char *name, MPI_File *file) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "vgasnet_cache", "enable");
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, info, file));
    MPI_Info_free(&info);
}

int main(int argc, char **argv) {
    MPI_File file;
    MPI_Win win;
    MPI_Aint size;
    int unit;
    void *memory;
    start(&argc, &argv);
    CHECK(argc == 2 && ranks == 2);
    MPI_Win_allocate_shared(rank == 0 ? 4096 : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_shared_query(win, 0, &size, &unit, &memory);
    shared = memory;
    if (rank == 0) {
        shared[0] = shared[1] = 0;
        open_it(argv[1], &file);
        EQUAL(is_cached(file), is_expected());
        OK(MPI_File_write_at(file, 0, "ten bytes.", 10, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        is_ending = 1;
        MPI_Abort(MPI_COMM_WORLD, 7);
    }
    while (!shared[0]) usleep(1000);
    open_it(argv[1], &file);
    OK(MPI_File_write_at(file, FAR, "far away", 8, MPI_BYTE, MPI_STATUS_IGNORE));
    say("written\n");
    shared[1] = 1;
    for (;;) pause();
}
