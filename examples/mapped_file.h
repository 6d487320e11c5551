/* A mapped file, which the examples that compare themselves with the kernel's paging use in place of a segment. */
#ifndef MAPPED_FILE_H
#define MAPPED_FILE_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Maps a new file of zeros in the directory where vgasnet has its own. It has no name, and goes with the process. Its
 * blocks are reserved, as those of a segment, and nothing is read ahead in it. Null, and a line, if that fails. */
static void *mapped_file(size_t bytes) {
    const char *storage = getenv("VGASNET_STORAGE_DIR"), *temporary = getenv("TMPDIR");
    const char *directory = storage != NULL ? storage : temporary != NULL ? temporary : "/var/tmp";
    char name[4096];
    int file = -1;
    void *memory = MAP_FAILED;
    if ((size_t)snprintf(name, sizeof name, "%s/mapped-XXXXXX", directory) < sizeof name) file = mkstemp(name);
    if (file >= 0) {
        unlink(name);
        if (posix_fallocate(file, 0, (off_t)bytes) == 0)
            memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        close(file);
    }
    /* What Linux calls MADV_RANDOM. */
    if (memory != MAP_FAILED && posix_madvise(memory, bytes, POSIX_MADV_RANDOM) == 0) return memory;
    fprintf(stderr, "no file of %zu bytes can be mapped in %s; set VGASNET_STORAGE_DIR to a directory with room\n",
            bytes, directory);
    return NULL;
}

#endif
