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
 *
 * In a collective call all ranks of the file's team call, with the same arguments. A file that is not open on one rank, or
 * NULL there, is refused there alone, and the others wait. Calls of several threads about different files may come in any
 * order. Calls before which operations are synced wait for those that are not; a rank says so once for a file.
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

/** A file that the ranks of a team have open. */
typedef struct vgasnet_file *vgasnet_file_t;

#define VGASNET_FILE_READ 1 /* the file is read */
#define VGASNET_FILE_WRITE 2 /* the file is written */
#define VGASNET_FILE_CREATE 4 /* the file is made if there is none, with the permissions mode less the process's mask */
#define VGASNET_FILE_EXCLUSIVE 8 /* it is an error if there is one */
#define VGASNET_FILE_TRUNCATE 16 /* the file is emptied */
#define VGASNET_FILE_ATOMIC 32 /* each read and write, lists included, is one step to all others */

/** Options of vgasnet_file_open. 0 in a field, or no structure, stands for the default. */
typedef struct {
    size_t struct_bytes; /* sizeof(vgasnet_file_options_t) */
    size_t stripe_bytes; /* a home has so many bytes side by side; a multiple of the page size. 4M, or a page */
    vgasnet_node_t io_ranks; /* so many ranks do I/O, the first of the team that see the file. All of them */
    unsigned flags; /* 0 */
} vgasnet_file_options_t;

/* ---- collective calls ---- */

/**
 * Opens a regular file for the ranks of a team.
 *
 * Collective over the team: one thread of each rank calls, with the same arguments, and the call fails on all ranks or
 * on none. The team may be freed once the file is open.
 *
 * A file is open for writing once at a time: a second time, by a rank, another team or another job, is VGASNET_ERR_IO
 * with EBUSY. Teams and jobs do not know of each other if the file system has no locks, or if another program has
 * locked the file for reading; then they write over each other's pages. On several hosts a file that is opened for
 * writing gets a new time of change, so that copies of it are told apart, and then its old one back if this user owns
 * it; copies that are only read are told apart by number, size and time.
 *
 * @param team the ranks that use the file; null for all ranks. Each rank's pool has at least two pages
 * @param path the file's path; not null
 * @param flags VGASNET_FILE_READ, VGASNET_FILE_WRITE or both, and others of VGASNET_FILE_
 * @param mode permissions of a file that is made, less the process's mask
 * @param options stripes and ranks that do I/O; null for the defaults
 * @param file receives the file; not null
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG for arguments that make no sense or differ between ranks, and for a file of 2^32 pages or
 *     more
 * @retval VGASNET_ERR_IO if the file cannot be opened on some rank; then none is made, emptied or changed, with the
 *     system's number in errno
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_file_close, vgasnet_file_read_at, vgasnet_file_write_at, docs/reference/files.md
 */
int vgasnet_file_open(vgasnet_team_handle_t team, const char *path, int flags, unsigned mode,
    const vgasnet_file_options_t *options, vgasnet_file_t *file);

/**
 * Brings all that was written to the file to the disk, with the file's size.
 *
 * Collective over the file's team: one thread of each rank calls, with the same arguments, and the call fails on all
 * ranks or on none. Other threads may write and operations may be under way meanwhile: what they write is kept, and may
 * be on the disk or not.
 *
 * A file that was opened without VGASNET_FILE_WRITE is from now on as the file system has it, whoever has written it.
 * Then reads by other threads of the rank end before or wait, and operations are synced before.
 *
 * @param file the file, from vgasnet_file_open
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG for a file that is not open, or if ranks call different functions or give different
 *     arguments; nothing changes
 * @retval VGASNET_ERR_IO if something could not be written; it stays in the pools, and the call may be made again, with
 *     the system's number in errno
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_file_flush, vgasnet_file_close
 */
int vgasnet_file_sync(vgasnet_file_t file);

/**
 * Cuts the file to a size, or adds zeros up to it.
 *
 * Collective over the file's team: one thread of each rank calls, with the same arguments, and the call fails on all
 * ranks or on none. Non-blocking operations are synced before. Reads, writes and the like by other threads of the rank
 * end before, or wait for it. If some of the file could not be written it is cut first, so that there is room for the
 * rest.
 *
 * @param file the file, from vgasnet_file_open
 * @param size the new size in bytes, less than 2^32 pages
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG for a file that is not open, or if ranks call different functions or give different
 *     arguments; nothing changes
 * @retval VGASNET_ERR_IO if the file system refuses, with the system's number in errno
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_file_extend, vgasnet_file_preallocate, vgasnet_file_size
 */
int vgasnet_file_set_size(vgasnet_file_t file, uint64_t size);

/**
 * Sets whether each read and write is one step to all others, as with VGASNET_FILE_ATOMIC.
 *
 * Collective over the file's team: one thread of each rank calls, with the same arguments, and the call fails on all
 * ranks or on none. Non-blocking operations are synced before. Reads, writes and the like by other threads of the rank
 * end before, or wait for it.
 *
 * @param file the file, from vgasnet_file_open
 * @param atomic 0 for no, another number for yes
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG for a file that is not open, or if ranks call different functions or give different
 *     arguments; nothing changes
 * @retval VGASNET_ERR_IO if the file system refuses, with the system's number in errno
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_file_open
 */
int vgasnet_file_set_atomic(vgasnet_file_t file, int atomic);

/**
 * Sets the file's shared pointer.
 *
 * Collective over the file's team: one thread of each rank calls, with the same arguments, and the call fails on all
 * ranks or on none. Non-blocking operations are synced before.
 *
 * @param file the file, from vgasnet_file_open
 * @param value the new value, any number
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG for a file that is not open, or if ranks call different functions or give different
 *     arguments; nothing changes
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_file_take
 */
int vgasnet_file_set_pointer(vgasnet_file_t file, uint64_t value);

/**
 * Reserves space in the file system for the first bytes of the file, which has at least so many from now on.
 *
 * Collective over the file's team: one thread of each rank calls, with the same arguments, and the call fails on all
 * ranks or on none. Non-blocking operations are synced before. Reads, writes and the like by other threads of the rank
 * end before, or wait for it. Bytes that the file has stay as they are. If space cannot be reserved, zeros are written
 * where nothing is.
 *
 * @param file the file, from vgasnet_file_open
 * @param size number of bytes, less than 2^32 pages
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG for a file that is not open, or if ranks call different functions or give different
 *     arguments; nothing changes
 * @retval VGASNET_ERR_IO if the file system refuses, with the system's number in errno
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_file_set_size, vgasnet_file_extend
 */
int vgasnet_file_preallocate(vgasnet_file_t file, uint64_t size);

/**
 * Closes the file: other programs see all that was written, and its size.
 *
 * Collective over the file's team: one thread of each rank calls, with the same arguments, and the call fails on all
 * ranks or on none. Non-blocking operations are synced before.
 *
 * @param file the file, from vgasnet_file_open; not used afterwards
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG for a file that is not open, or if ranks call different functions; then the file stays
 *     open
 * @retval VGASNET_ERR_IO if something could not be written; the file is closed, and those bytes are lost, with the
 *     system's number in errno
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_file_open, vgasnet_file_sync
 */
int vgasnet_file_close(vgasnet_file_t file);

/* ---- calls of one rank ---- */

/**
 * Reads bytes of the file, as far as it has them.
 *
 * Not collective, any thread.
 *
 * @param file the file, from vgasnet_file_open
 * @param offset first byte in the file, counted from 0
 * @param dest local address that receives the bytes, in the segment or not
 * @param nbytes number of bytes, 0 or more, no maximum
 * @param nread receives the number of bytes that were read, which is less than asked for only at the end of the file;
 *     may be null
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG for a file that is not open, that is not open for reading, or for a null address
 * @retval VGASNET_ERR_IO if the file system could not read them, with the system's number in errno
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_file_read_at_nb, vgasnet_file_readv_at, vgasnet_file_write_at
 */
int vgasnet_file_read_at(vgasnet_file_t file, uint64_t offset, void *dest, size_t nbytes, size_t *nread);

/**
 * Writes bytes to the file, and makes it longer if they lie behind its end; between are zeros.
 *
 * Every rank reads the bytes from then on. The file system has them after vgasnet_file_flush, vgasnet_file_sync or
 * vgasnet_file_close. Not collective, any thread.
 *
 * @param file the file, from vgasnet_file_open
 * @param offset first byte in the file, counted from 0
 * @param src local address of the bytes, in the segment or not
 * @param nbytes number of bytes, 0 or more, no maximum
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG for a file that is not open, that is not open for writing, or for a null address
 * @retval VGASNET_ERR_IO if the file system could not take them; some may have been written, and the file is as long as
 *     if all had been. If earlier bytes could not be written, the write is refused and changes nothing, with the
 *     system's number in errno
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_file_write_at_nb, vgasnet_file_writev_at, vgasnet_file_sync
 */
int vgasnet_file_write_at(vgasnet_file_t file, uint64_t offset, const void *src, size_t nbytes);

/**
 * Makes the file at least as long as a size; what nobody has written is zeros.
 *
 * Bytes that the file has stay as they are, whoever writes meanwhile. In the file system it is so long after this
 * rank's vgasnet_file_flush, if there is room for a block, and after vgasnet_file_sync. Not collective, any thread.
 *
 * @param file the file, from vgasnet_file_open
 * @param size least size in bytes, less than 2^32 pages
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG for a file that is not open, that is not open for writing, or for too large a size
 * @retval VGASNET_ERR_IO if earlier bytes could not be written, with the system's number in errno
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_file_set_size, vgasnet_file_preallocate
 */
int vgasnet_file_extend(vgasnet_file_t file, uint64_t size);

/** A run of bytes of a file. */
typedef struct {
    uint64_t offset; /* in bytes */
    uint64_t len;
} vgasnet_file_run_t;

/**
 * Reads many places of the file into many pieces of memory.
 *
 * The bytes of all runs, one behind the other, are those of all pieces. As many bytes are moved as the shorter side
 * has. It ends at the first byte that the file does not have. Not collective, any thread.
 *
 * @param file the file, from vgasnet_file_open
 * @param runs number of runs of the file
 * @param run the runs, as offset and length in bytes
 * @param pieces number of pieces of memory
 * @param piece the pieces, as local address and length in bytes
 * @param nread receives the number of bytes that were read; may be null
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG for a file that is not open, that is not open for reading, or for a null pointer
 * @retval VGASNET_ERR_IO if the file system could not read them, with the system's number in errno
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_file_read_at, vgasnet_file_writev_at
 */
int vgasnet_file_readv_at(vgasnet_file_t file, size_t runs, const vgasnet_file_run_t run[], size_t pieces,
    vgasnet_memvec_t const piece[], size_t *nread);

/**
 * Writes many pieces of memory to many places of the file.
 *
 * The bytes of all runs, one behind the other, are those of all pieces. As many bytes are moved as the shorter side
 * has. Not collective, any thread.
 *
 * @param file the file, from vgasnet_file_open
 * @param runs number of runs of the file
 * @param run the runs, as offset and length in bytes
 * @param pieces number of pieces of memory
 * @param piece the pieces, as local address and length in bytes
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG for a file that is not open, that is not open for writing, or for a null pointer
 * @retval VGASNET_ERR_IO if the file system could not take them; some may have been written, and the file is as long as
 *     if all had been. If earlier bytes could not be written, the write is refused and changes nothing, with the
 *     system's number in errno
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_file_write_at, vgasnet_file_readv_at
 */
int vgasnet_file_writev_at(vgasnet_file_t file, size_t runs, const vgasnet_file_run_t run[], size_t pieces,
    vgasnet_memvec_t const piece[]);

/**
 * Starts to read bytes of the file.
 *
 * An error of the file system is noted with the file: vgasnet_file_error_count has changed then. Not collective, any
 * thread.
 *
 * Fatal: a file that is not open or not open for this, a null address where there are bytes, a call before
 * vgasnet_attach.
 *
 * @param file the file, from vgasnet_file_open
 * @param offset first byte in the file, counted from 0
 * @param dest local address that receives the bytes, in the segment or not; undefined until completion
 * @param nbytes number of bytes, 0 or more, no maximum
 * @param nread receives the number of bytes that were read, which is less than asked for only at the end of the file;
 *     may be null. It is set when the call returns
 * @return a handle to be synced exactly once; VGASNET_INVALID_HANDLE if the operation is complete already
 * @see vgasnet_wait_syncnb, vgasnet_file_error, vgasnet_file_read_at
 */
vgasnet_handle_t vgasnet_file_read_at_nb(vgasnet_file_t file, uint64_t offset, void *dest, size_t nbytes, size_t *nread);

/**
 * Starts to write bytes to the file.
 *
 * An error of the file system is noted with the file: vgasnet_file_error_count has changed then. Not collective, any
 * thread.
 *
 * Fatal: a file that is not open or not open for this, a null address where there are bytes, a call before
 * vgasnet_attach.
 *
 * @param file the file, from vgasnet_file_open
 * @param offset first byte in the file, counted from 0
 * @param src local address of the bytes, in the segment or not, which must not change until completion
 * @param nbytes number of bytes, 0 or more, no maximum
 * @return a handle to be synced exactly once; VGASNET_INVALID_HANDLE if the operation is complete already
 * @see vgasnet_wait_syncnb, vgasnet_file_error, vgasnet_file_write_at
 */
vgasnet_handle_t vgasnet_file_write_at_nb(vgasnet_file_t file, uint64_t offset, const void *src, size_t nbytes);

/**
 * Locks bytes, and waits until no other lock of any of them is in the way.
 *
 * A shared lock is in the way of exclusive ones, and an exclusive lock of all. Ranks that wait get their turns in
 * order. Reads and writes do not look at locks, and other teams and jobs do not see them.
 *
 * Locks of one rank are in each other's way, too: a thread that locks bytes which it has locked may wait for ever. Not
 * collective, any thread.
 *
 * @param file the file, from vgasnet_file_open
 * @param offset first byte in the file, counted from 0
 * @param len number of bytes, which the file need not have
 * @param exclusive 0 for a shared lock, another number for an exclusive one
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG for a file that is not open, or for a range that makes no sense
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_file_unlock
 */
int vgasnet_file_lock(vgasnet_file_t file, uint64_t offset, uint64_t len, int exclusive);

/**
 * Gives back a lock of the calling rank.
 *
 * vgasnet_file_close gives back all. Not collective, any thread.
 *
 * @param file the file, from vgasnet_file_open
 * @param offset as for vgasnet_file_lock
 * @param len as for vgasnet_file_lock, in bytes
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG for a file that is not open, or without such a lock
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_file_lock
 */
int vgasnet_file_unlock(vgasnet_file_t file, uint64_t offset, uint64_t len);

/**
 * Adds to the file's shared pointer, and tells what it was.
 *
 * The pointer is a number that is 0 at first and is in no file. Ranks that take as many bytes as they write append to
 * the file in any order, and none writes over another. It costs one message to the team's first rank, and its answer.
 * Not collective, any thread.
 *
 * @param file the file, from vgasnet_file_open
 * @param amount what is added
 * @param before receives what the pointer was; may be null
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG for a file that is not open
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_file_set_pointer, vgasnet_file_write_at
 */
int vgasnet_file_take(vgasnet_file_t file, uint64_t amount, uint64_t *before);

/**
 * Brings what this rank has written to the file system, whichever rank has the pages by now.
 *
 * The file's size may be a multiple of a block until vgasnet_file_sync or vgasnet_file_close. Not collective, any
 * thread.
 *
 * @param file the file, from vgasnet_file_open
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG for a file that is not open
 * @retval VGASNET_ERR_IO if something could not be written, with the system's number in errno
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_file_sync
 */
int vgasnet_file_flush(vgasnet_file_t file);

/**
 * Gives a hint how bytes of the file will be used.
 *
 * It changes no byte. Not collective, any thread.
 *
 * @param file the file, from vgasnet_file_open
 * @param offset first byte in the file, counted from 0
 * @param len number of bytes
 * @param advice VGASNET_ADVISE_WILLNEED, VGASNET_ADVISE_DONTNEED, VGASNET_ADVISE_SEQUENTIAL or
 *     VGASNET_ADVISE_READMOSTLY
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG for a file that is not open, or for unknown advice
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_advise
 */
int vgasnet_file_advise(vgasnet_file_t file, uint64_t offset, uint64_t len, int advice);

/**
 * Tells the size of the file, with all that any rank has written.
 *
 * It asks the other ranks. Not collective, any thread.
 *
 * @param file the file, from vgasnet_file_open
 * @param size receives the size in bytes; not null
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG for a file that is not open, or for a null pointer
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_file_set_size, vgasnet_file_extend
 */
int vgasnet_file_size(vgasnet_file_t file, uint64_t *size);

/**
 * Tells the first error of the file on this rank since it was opened.
 *
 * Not collective, any thread.
 *
 * @param file the file, from vgasnet_file_open
 * @param errno_value receives the system's number of the error, or 0; may be null
 * @retval VGASNET_OK if there was none
 * @retval VGASNET_ERR_IO if there was one
 * @retval VGASNET_ERR_BAD_ARG for a file that is not open
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_file_error_count
 */
int vgasnet_file_error(vgasnet_file_t file, int *errno_value);

/**
 * Tells how many errors the file has had on this rank since it was opened.
 *
 * A non-blocking operation has not failed if the number is the one from before its start. Not collective, any thread.
 *
 * @param file the file, from vgasnet_file_open
 * @param errors receives the number; not null
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG for a file that is not open, or for a null pointer
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_file_error, vgasnet_file_read_at_nb
 */
int vgasnet_file_error_count(vgasnet_file_t file, uint64_t *errors);

#ifdef __cplusplus
}
#endif

#endif
