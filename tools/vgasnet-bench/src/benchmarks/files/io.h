/* File operations for the patterns of vgasnet-bench files, implemented in by_vgasnet.c, by_mpi.c and by_locks.c. A rank
 * has one file open at a time. A failing call prints a line and ends the job. */
#ifndef IO_H
#define IO_H

#include <stddef.h>
#include <stdint.h>

#define IO_READ 1
#define IO_WRITE 2
#define IO_NEW 4 /* create the file */
#define IO_ATOMIC 8 /* each call is atomic, if there is such a mode */

/* A row of an array: its offsets in the file and in memory, and its length, in bytes. */
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

/* Independent. */
void io_write_at(uint64_t offset, const void *from, size_t len);
void io_read_at(uint64_t offset, void *to, size_t len);

/* Collective: one piece of each rank. */
void io_write_all(uint64_t offset, const void *from, size_t len);

/* Declares this rank's rows in the open file, in ascending order. They repeat every `extent` bytes of the file. */
void io_view(size_t count, const struct io_row rows[], uint64_t extent);

/* Collective: the nth occurrence of all rows in the view. */
void io_write_view(uint64_t nth, const void *memory);
void io_read_view(uint64_t nth, void *memory);

/* Ends the job. */
void io_fail(const char *what);

#endif
