/* Counts the directories that are synced. */
#include <dlfcn.h>
#include <sys/stat.h>

int synced_directories;

int fsync(int file) {
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    struct stat about;
    if (fstat(file, &about) == 0 && S_ISDIR(about.st_mode)) __atomic_add_fetch(&synced_directories, 1, __ATOMIC_RELAXED);
    return next(file);
}
