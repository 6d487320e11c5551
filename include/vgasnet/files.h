/*
 * vgasnet: shared files. The ranks of a team open a file together, and their pools cache its pages as those of segments.
 *
 * A write that has returned is what every rank reads from then on: no sync, no lock, no barrier is needed in between but what tells
 * the reader that the write has returned. A page is in as many pools as read it, and in one that writes it; a few bytes of a page
 * that others use go to the page. The file system sees what was written when pages are given up, and all of it after
 * vgasnet_file_sync and vgasnet_file_close.
 *
 * The pages of a file have homes, a stripe each, in turns; a home does all I/O on its pages, so each part of the file is written by one
 * client of the file system. Ranks whose host does not see the same file under the path are no homes, and read and write it through
 * those that are; a line says so. Pages have the size of those of the segment, and their frames are those of the same pool.
 *
 * An error of the file system is an answer: VGASNET_ERR_IO with the system's number in errno, and one line on stderr, and the job goes on.
 * Lines about what could not be written name its bytes; it stays in the pools. Later writes to the file by a rank that knows are refused
 * until vgasnet_file_sync has written all; the first of them gets a line.
 *
 * While a team has a file open, nobody else changes it, and no rank of the team by other means.
 */
#ifndef VGASNET_FILES_H
#define VGASNET_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <vgasnet/collectives.h>
#include <vgasnet/lists.h>
#include <vgasnet/nonblocking.h>
#include <vgasnet/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vgasnet_file *vgasnet_file_t;

#define VGASNET_FILE_READ 1
#define VGASNET_FILE_WRITE 2
#define VGASNET_FILE_CREATE 4 /* the file is made if there is none, with the permissions mode less the process's mask */
#define VGASNET_FILE_EXCLUSIVE 8 /* it is an error if there is one */
#define VGASNET_FILE_TRUNCATE 16 /* the file is emptied */
#define VGASNET_FILE_ATOMIC 32 /* each read and write, lists included, is one step to all others */

/* 0 in a field, or no structure, stands for the default. */
typedef struct {
    size_t struct_bytes; /* sizeof(vgasnet_file_options_t) */
    size_t stripe_bytes; /* a home has so many bytes side by side; a multiple of the page size. 4M, or a page */
    vgasnet_node_t io_ranks; /* so many ranks do I/O, the first of the team that see the file. All of them */
    unsigned flags; /* 0 */
} vgasnet_file_options_t;

/* These seven are collective over the file's team: all of its ranks call, with the same arguments, and a call fails on all of them or on
 * none. One thread of a rank calls; a file that is not open on one rank, or NULL there, is refused there alone, and the others wait.
 * Ranks that call different ones, or with different arguments, get VGASNET_ERR_BAD_ARG, and nothing changes.
 * Calls of several threads about different files may come in any order. The team may be freed once the file is open. Calls before which
 * operations are synced wait for those that are not; a rank says so once for a file.
 *
 * open: opens a regular file. Each rank's pool has at least two pages. A file is open to be written once at a time: a second
 * time, by a rank, another team or another job, is VGASNET_ERR_IO with EBUSY. Where the file system has no locks, or where another program has locked the file for reading, teams and jobs do
 * not know of each other, and write over each other's pages. Returns VGASNET_ERR_BAD_ARG for arguments that make no sense or differ, and
 * for a file of 2^32 pages or more, VGASNET_ERR_IO if the file cannot be opened on some rank: then none is made, emptied or changed. On
 * several hosts a file that is opened to be written gets a new time of change, so that copies of it are told apart, and then its old one
 * back if this user owns it; copies that are only read are told apart by number, size and time.
 * sync: all that was written before is on the disk, and the file has its size. Other threads may write meanwhile, and operations be under
 * way: what they write is kept, and may be on the disk or not. After VGASNET_ERR_IO it may be called again. A file that was opened without
 * VGASNET_FILE_WRITE is from now on what the file system has, whoever has written that; reads by other threads of the rank end before,
 * or wait, and operations are synced before.
 * set_size: cuts the file, or adds zeros. Where some of the file could not be written it is cut first, so that there is room for the rest.
 * Reads, writes and the like by other threads of the rank end before, or wait for it. Operations
 * are synced before.
 * set_atomic: from now on each read and write is one step to all others, as with VGASNET_FILE_ATOMIC, or not. Other threads and
 * operations: as for set_size.
 * set_pointer: sets the file's shared pointer (vgasnet_file_take).
 * preallocate: the file system has space for the first size bytes of the file, which has at least so many; what it has stays as it is.
 * Where space cannot be reserved, zeros are written where nothing is. Other threads and operations: as for set_size.
 * close: other programs see all that was written, and the file has its size. The file is closed, unless ranks call different ones;
 * after VGASNET_ERR_IO what could not be written is lost. Operations are synced before. */
int vgasnet_file_open(vgasnet_team_handle_t team, const char *path, int flags, unsigned mode,
    const vgasnet_file_options_t *options, vgasnet_file_t *file);
int vgasnet_file_sync(vgasnet_file_t file);
int vgasnet_file_set_size(vgasnet_file_t file, uint64_t size);
int vgasnet_file_set_atomic(vgasnet_file_t file, int atomic);
int vgasnet_file_set_pointer(vgasnet_file_t file, uint64_t value);
int vgasnet_file_preallocate(vgasnet_file_t file, uint64_t size);
int vgasnet_file_close(vgasnet_file_t file);

/* All others are of the calling rank alone, from any thread.
 *
 * read_at reads nbytes from offset on, as far as the file has them. nread may be NULL, else it gets their number, which is less than
 * nbytes only at the end of the file. write_at writes nbytes, and makes the file longer if they lie behind its end; between are zeros.
 * Memory may be in the segment. A write that fails may have written some of its bytes; the file is then as long as if it
 * had written all. One that is refused beforehand, since others cannot be written, changes nothing. */
int vgasnet_file_read_at(vgasnet_file_t file, uint64_t offset, void *dest, size_t nbytes, size_t *nread);
int vgasnet_file_write_at(vgasnet_file_t file, uint64_t offset, const void *src, size_t nbytes);

/* The file has at least size bytes from now on; what nobody has written is zeros. What it has stays as it is, whoever writes meanwhile. In
 * the file system it is so long after this rank's vgasnet_file_flush, if that finds room for a block, and after vgasnet_file_sync. */
int vgasnet_file_extend(vgasnet_file_t file, uint64_t size);

/* read_at and write_at for many places: the bytes of all runs of the file, one behind the other, are those of all pieces of memory. As many
 * bytes are moved as the shorter side has. readv_at ends at the first byte that the file does not have. */
typedef struct {
    uint64_t offset; /* in bytes */
    uint64_t len;
} vgasnet_file_run_t;

int vgasnet_file_readv_at(vgasnet_file_t file, size_t runs, const vgasnet_file_run_t run[], size_t pieces,
    vgasnet_memvec_t const piece[], size_t *nread);
int vgasnet_file_writev_at(vgasnet_file_t file, size_t runs, const vgasnet_file_run_t run[], size_t pieces,
    vgasnet_memvec_t const piece[]);

/* The same without waiting, but as nonblocking.h says. The handles are those of gets and puts, and so are the syncs. *nread is set at
 * once. If the file could not be read or written, vgasnet_file_error tells; arguments that make no sense are fatal. */
vgasnet_handle_t vgasnet_file_read_at_nb(vgasnet_file_t file, uint64_t offset, void *dest, size_t nbytes, size_t *nread);
vgasnet_handle_t vgasnet_file_write_at_nb(vgasnet_file_t file, uint64_t offset, const void *src, size_t nbytes);

/* Locks bytes, which the file need not have, and waits until no other lock of any of them is in the way: a shared lock is in the way of
 * exclusive ones, an exclusive lock of all. Locks are for those who ask for them: reads and writes do not look at them. Who waits gets
 * its turn in order. A lock is given back by unlock with the same offset and len, or by close. Locks of one rank are in each other's
 * way, too: a thread that locks bytes which it has locked may wait for ever. Other teams and jobs do not see them. */
int vgasnet_file_lock(vgasnet_file_t file, uint64_t offset, uint64_t len, int exclusive);
int vgasnet_file_unlock(vgasnet_file_t file, uint64_t offset, uint64_t len);

/* An open file has a shared pointer, a number that is 0 at first and is in no file. take adds to it, and *before, unless it is NULL, gets
 * what it was: ranks that take as many bytes as they write append to the file in any order, and none writes over another. One message to
 * the team's first rank, and its answer. */
int vgasnet_file_take(vgasnet_file_t file, uint64_t amount, uint64_t *before);

/* What this rank has written has reached the file system, whichever rank has the page by now. The file's size may be that of whole
 * blocks until sync or close. */
int vgasnet_file_flush(vgasnet_file_t file);

/* A hint about bytes of the file, one of VGASNET_ADVISE_ (residency.h). */
int vgasnet_file_advise(vgasnet_file_t file, uint64_t offset, uint64_t len, int advice);

/* The size of the file in bytes, with all that any rank has written. Asks the other ranks. */
int vgasnet_file_size(vgasnet_file_t file, uint64_t *size);

/* The first error of the file on this rank since it was opened: VGASNET_OK, or VGASNET_ERR_IO with the number of the system's error in
 * *errno_value, which may be NULL. */
int vgasnet_file_error(vgasnet_file_t file, int *errno_value);

/* How many errors the file has had on this rank since it was opened. If it is what it was when an operation without waiting began, that has
 * not failed. */
int vgasnet_file_error_count(vgasnet_file_t file, uint64_t *errors);

#ifdef __cplusplus
}
#endif

#endif
