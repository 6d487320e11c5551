/* A mapped file: some examples can use one instead of a segment, to compare vgasnet with the kernel's paging. */
#ifndef MAPPED_FILE_H
#define MAPPED_FILE_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Maps a new file of zeros in vgasnet's storage directory. The file has no name and disappears with the process. As
 * with a segment, its blocks are reserved. The kernel does no read-ahead in it. On failure prints a line and returns
 * NULL. */
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
    /* MADV_RANDOM on Linux: no read-ahead. */
    if (memory != MAP_FAILED && posix_madvise(memory, bytes, POSIX_MADV_RANDOM) == 0) return memory;
    fprintf(stderr, "no file of %zu bytes can be mapped in %s; set VGASNET_STORAGE_DIR to a directory with room\n",
            bytes, directory);
    return NULL;
}

#endif
