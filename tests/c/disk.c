/* Disks, and waits at the start and the end.
 *   disk offer DIR LEFT  attaches the offered size, after all but LEFT percent of the free space in DIR is taken
 *   disk full DIR        stores to the whole segment when the disk of DIR has just become full
 *   disk all FILE        attaches the offered size, and ends when FILE exists
 *   disk ticks           attaches with a timer running
 *   disk child FILE      forks a child that outlives the rank until FILE exists
 *   disk init|attach|exit FILE [RANK]  this rank is late there until FILE exists (default: rank 1) */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "timer.h"

static void take_space(const char *dir, unsigned percent_left) {
    char path[4096];
    struct statvfs stat;
    int file;
    snprintf(path, sizeof path, "%s/taken", dir);
    file = open(path, O_CREAT | O_EXCL | O_RDWR, 0600);
    CHECK(file >= 0 && unlink(path) == 0 && statvfs(dir, &stat) == 0);
    CHECK(posix_fallocate(file, 0, (off_t)(stat.f_bavail * stat.f_frsize / 100 * (100 - percent_left))) == 0);
    /* The file stays open. */
}

static void offer(const char *dir, unsigned percent_left) {
    uintptr_t offered;
    if (vgasnet_init(NULL, NULL) != VGASNET_OK) exit(1);
    offered = vgasnet_getMaxLocalSegmentSize();
    take_space(dir, percent_left);
    if (vgasnet_attach(NULL, 0, offered, 0) != VGASNET_OK) exit(3);
}

static void wait_for(const char *file) {
    while (access(file, F_OK) != 0) usleep(1000);
}

static void all(const char *file) {
    if (vgasnet_init(NULL, NULL) != VGASNET_OK) exit(1);
    if (vgasnet_attach(NULL, 0, vgasnet_getMaxGlobalSegmentSize(), 0) != VGASNET_OK) exit(3);
    barrier();
    if (vgasnet_mynode() == 0) fprintf(stderr, "attached\n");
    wait_for(file);
}

static int is_ticking;

static void on_tick(int signal) { (void)signal; }

/* Replaces the C library's function. As on a tmpfs under older kernels, it has no effect if a signal arrives. */
int fallocate(int file, int mode, off_t start, off_t len) {
    int (*call)(int, int, off_t, off_t);
    void *found = dlsym(RTLD_NEXT, "fallocate");
    sigset_t blocked;
    CHECK(found != NULL && pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0);
    if (is_ticking && !sigismember(&blocked, SIGALRM)) {
        errno = EINTR;
        return -1;
    }
    memcpy(&call, &found, sizeof call);
    return call(file, mode, start, len);
}

static void ticks(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_tick;
    action.sa_flags = SA_RESTART;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    if (vgasnet_init(NULL, NULL) != VGASNET_OK) exit(1);
    is_ticking = 1;
    set_timer(1000);
    if (vgasnet_attach(NULL, 0, 4 * pool_bytes(), 0) != VGASNET_OK) exit(3);
    set_timer(0);
    is_ticking = 0;
}

/* The child has all files of the rank open. */
static void child(const char *file) {
    start(NULL, NULL, 4 * pool_bytes());
    if (fork() == 0) {
        /* MPI's launchers wait for the output of ranks, and kill their process groups. */
        setsid();
        close(1), close(2);
        while (access(file, F_OK) == 0) usleep(1000);
        _exit(0);
    }
}

static void fill(const char *dir) {
    static char block[4096];
    char path[4096];
    int file;
    snprintf(path, sizeof path, "%s/filler", dir);
    file = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    CHECK(file >= 0);
    while (write(file, block, sizeof block) > 0) continue;
    close(file);
}

static void full(const char *dir) {
    size_t size = 4 * pool_bytes(), offset;
    start(NULL, NULL, size);
    if (vgasnet_mynode() == 0) fill(dir);
    barrier();
    for (offset = 0; offset < size; offset += 512) *(volatile size_t *)at(vgasnet_mynode(), offset) = offset + 1;
    for (offset = 0; offset < size; offset += 512) {
        CHECK_EQ(*(volatile size_t *)at(vgasnet_mynode(), offset), offset + 1);
    }
}

int main(int argc, char **argv) {
    const char *part = argc > 1 ? argv[1] : "";
    const char *job = getenv("VGASNET_SMP_JOB");
    int late = argc > 3 ? atoi(argv[3]) : 1, is_late;

    if (strcmp(part, "offer") == 0) {
        offer(argv[2], (unsigned)atoi(argv[3]));
        vgasnet_exit(0);
    } else if (strcmp(part, "all") == 0) {
        all(argv[2]);
        return finish();
    } else if (strcmp(part, "ticks") == 0) {
        ticks();
        return finish();
    } else if (strcmp(part, "child") == 0) {
        child(argv[2]);
        return finish();
    } else if (strcmp(part, "full") == 0) {
        full(argv[2]);
        return finish();
    }
    if (job != NULL && strncmp(job, "rank=1,", 7) == 0 && strcmp(part, "init") == 0) wait_for(argv[2]);
    if (vgasnet_init(NULL, NULL) != VGASNET_OK) return 1;
    is_late = (int)vgasnet_mynode() == late;
    if (is_late && strcmp(part, "attach") == 0) wait_for(argv[2]);
    if (vgasnet_attach(NULL, 0, page_bytes(), 0) != VGASNET_OK) return 1;
    barrier();
    if (is_late && strcmp(part, "exit") == 0) wait_for(argv[2]);
    return 0;
}
