/* What the patterns of vgasnet-bench files do with a file, for each way to do it: by_vgasnet.c, by_mpi.c and by_locks.c. A rank has one
 * file open at a time. A call that fails ends the job with a line. */
#ifndef IO_H
#define IO_H

#include <stddef.h>
#include <stdint.h>

#define IO_READ 1
#define IO_WRITE 2
#define IO_NEW 4 /* the file is made */
#define IO_ATOMIC 8 /* each call is one step to all others, where there is such a mode */

/* A row of an array: where it is in the file, and in memory, as bytes from the begin of either. */
struct io_row {
    uint64_t in_file, in_memory, len;
};

void io_start(int *argc, char ***argv);
void io_end(int status);
int io_rank(void);
int io_ranks(void);
void io_barrier(void);
double io_now(void);

/* Collective. */
void io_open(const char *path, int flags);
void io_sync(void);
void io_close(void);

/* Of this rank alone. */
void io_write_at(uint64_t offset, const void *from, size_t len);
void io_read_at(uint64_t offset, void *to, size_t len);

/* One piece of each rank; collective. */
void io_write_all(uint64_t offset, const void *from, size_t len);

/* Declares the rows of this rank in the open file, in ascending order. They come again each `extent` bytes of the file. */
void io_view(size_t count, const struct io_row rows[], uint64_t extent);

/* All rows of the view for the nth time; collective. */
void io_write_view(uint64_t nth, const void *memory);
void io_read_view(uint64_t nth, void *memory);

/* Ends the job. */
void io_fail(const char *what);

#endif
