/* The program locks whole files that it has open by MPI, as Open MPI does on NFS. Such a lock waits for other locks of
 * the program, and for no claim. locked FILE enable|disable */
#define _GNU_SOURCE
#include "common.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

enum { BYTES = 8 };

static struct flock of(int kind, int whence, off_t from, off_t bytes) {
    struct flock lock;
    memset(&lock, 0, sizeof lock);
    lock.l_type = (short)kind, lock.l_whence = (short)whence, lock.l_start = from, lock.l_len = bytes;
    return lock;
}

/* All ways to lock the whole of a file, or from a place on, or up to the last place. */
enum { WAYS = 9 };

static int lock_whole(int file, int way, int is_unlock) {
    int kind = is_unlock ? F_UNLCK : F_WRLCK;
    struct flock lock;
    CHECK(lseek(file, 0, SEEK_SET) == 0);
    switch (way) {
    case 0: return lockf(file, is_unlock ? F_ULOCK : F_LOCK, 0);
    case 1: return lockf64(file, is_unlock ? F_ULOCK : F_LOCK, 0);
    case 2: lock = of(kind, SEEK_SET, 0, 0); return fcntl(file, F_SETLKW, &lock);
    case 3: lock = of(kind, SEEK_SET, 0, 0); return fcntl64(file, F_OFD_SETLKW, &lock);
    case 4: lock = of(kind, SEEK_CUR, 0, 0); return fcntl(file, F_SETLKW, &lock);
    case 5: lock = of(kind, SEEK_END, -(off_t)ranks * BYTES, 0); return fcntl(file, F_SETLKW, &lock);
    case 6: lock = of(kind, SEEK_SET, 0, INT64_MAX); return fcntl(file, F_SETLKW, &lock);
    case 7: lock = of(is_unlock ? F_UNLCK : F_RDLCK, SEEK_SET, 0, 0); return fcntl(file, F_SETLKW, &lock);
    default: return lockf(file, is_unlock ? F_ULOCK : F_TLOCK, INT64_MAX);
    }
}

/* Rank 0 has the lock. The others see it, unless they are alone. */
static void expect_excluded(int file, int way) {
    struct flock lock = of(F_WRLCK, SEEK_SET, 0, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank > 0) {
        CHECK(lockf(file, F_TLOCK, 0) == -1 && (errno == EAGAIN || errno == EACCES));
        if (way != 7) CHECK(lockf(file, F_TEST, 0) == -1);
        CHECK(fcntl(file, F_GETLK, &lock) == 0);
        EQUAL(lock.l_type, way == 7 ? F_RDLCK : F_WRLCK);
        lock = of(F_WRLCK, SEEK_SET, 3, 1);
        CHECK(fcntl(file, F_GETLK, &lock) == 0);
        EQUAL(lock.l_type, way == 7 ? F_RDLCK : F_WRLCK);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void expect_free(int file) {
    struct flock lock = of(F_WRLCK, SEEK_SET, 0, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(fcntl(file, F_GETLK, &lock) == 0);
    EQUAL(lock.l_type, F_UNLCK);
    EQUAL(lock.l_len, 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    char bytes[BYTES], all[4 * BYTES];
    int plain;
    MPI_File file, other;
    MPI_Info info;
    start(&argc, &argv);
    CHECK(argc == 3 && ranks <= 4);
    alarm(60); /* for a lock that waits for ever */
    MPI_Info_create(&info);
    MPI_Info_set(info, "vgasnet_cache", argv[2]);
    OK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
    if (is_expected()) EQUAL(is_cached(file), strcmp(argv[2], "enable") == 0);
    memset(bytes, 'a' + rank, BYTES);
    OK(MPI_File_write_at_all(file, rank * BYTES, bytes, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK((plain = open(argv[1], O_RDWR)) >= 0);
    for (int way = 0; way < WAYS; ++way) {
        if (rank == 0) CHECK(lock_whole(plain, way, 0) == 0);
        expect_excluded(plain, way);
        if (rank == 0) CHECK(lock_whole(plain, way, 1) == 0);
        expect_free(plain);
    }
    /* Nothing has ended the claim: another handle is seen. */
    if (is_expected()) EQUAL(is_cached(file), strcmp(argv[2], "enable") == 0);
    MPI_Info_set(info, "vgasnet_cache", "enable");
    OK(MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_RDWR, info, &other));
    OK(MPI_File_write_at(other, rank * BYTES, bytes, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    if (is_expected() && strcmp(argv[2], "disable") == 0) EQUAL(is_cached(other), 0);
    OK(MPI_File_close(&other));
    OK(MPI_File_read_at(file, rank * BYTES, all, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    EQUAL(memcmp(all, bytes, BYTES), 0);
    close(plain);
    MPI_Info_free(&info);
    OK(MPI_File_close(&file));
    finish();
    return 0;
}
