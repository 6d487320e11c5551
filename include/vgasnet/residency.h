/*
 * vgasnet: loads and stores, pins, advice.
 *
 * A rank reads and writes its own segment through pointers, in any thread, while other ranks get from it and put to it.
 * The first access to a page that is not mapped raises SIGSEGV or SIGBUS. The library handles it: it fetches the page and
 * maps it, and the access goes on. The page takes a frame of the pool.
 *
 * Other ranks see stores like operations that are complete at once, and loads see their puts so, too. Atomic
 * instructions are atomic among the threads of the rank; against gets and puts, single bytes are.
 *
 * Signals. The library handles SIGSEGV and SIGBUS, and SIGTRAP for single steps, from vgasnet_attach on. Handlers that
 * the client installs before or after that, by sigaction or signal, get every fault outside the segment. SIGSEGV, SIGBUS,
 * SIGILL, SIGFPE and SIGTRAP are never blocked: sigprocmask, pthread_sigmask and their kin ignore them in a set. Callbacks
 * of timers and queues (SIGEV_THREAD) begin with them blocked and unblock SIGSEGV first. Stacks may lie in a
 * segment (docs/reference/programs.md); the program's code may not. A handler of these signals that is installed by a bare
 * system call takes the place of the library's. In a program that loads the library by dlopen, the next barrier puts the library's back in front of it.
 *
 * System calls raise neither: where the kernel meets a page that is not mapped, a call fails with EFAULT or
 * stops. The library interposes read, write, pread, pwrite, readv, writev and their kin, send, recv and their
 * kin, fread, fwrite, fputs and puts: they take segment addresses of any length, also more than the pool. Long ones are
 * carried out in pieces of at least 1 MiB, so that two that append to one file may mix; datagrams are never split. Calls
 * that the library cannot see need ordinary memory or a pinned range: those by syscall(2) but for SYS_futex, by io_uring or by a C library
 * from within, as aio_read, printf of long texts and setvbuf; paths, names and structures in other system calls; locks
 * and semaphores that other processes share; process_vm_readv, ptrace and vmsplice. So do devices. So does
 * send with MSG_ZEROCOPY on a socket with SO_ZEROCOPY: the kernel reads the memory after the call, so the range stays
 * pinned until the socket has told that it is done.
 *
 * A pin is not enough for MPI: it remembers memory that it has registered, and pinned pages leave again. In a library that is built with
 * MPI, blocking calls of MPI take addresses in the segment as they are; other calls need ordinary memory
 * (docs/reference/clusters.md).
 */
#ifndef VGASNET_RESIDENCY_H
#define VGASNET_RESIDENCY_H

#include <stddef.h>
#include <vgasnet/errors.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The pinned range is loaded from only. */
#define VGASNET_PIN_READ 1
/** The pinned range is loaded from and stored to. */
#define VGASNET_PIN_WRITE 2

/**
 * Makes pages of the caller's own segment resident and mapped until vgasnet_unpin.
 *
 * While a range is pinned to write, ranks of other hosts wait when they read or write it. While it is pinned to read,
 * ranks that write it wait, this rank's own stores and puts included. So pin briefly, and wait for no other rank
 * meanwhile.
 *
 * Pins add up: each needs its own unpin. A page counts once, however often it is pinned. Nothing is pinned after an
 * error. Not collective, any thread.
 *
 * @param addr first address of the range, in the caller's own segment
 * @param len length of the range in bytes, 0 or more
 * @param mode VGASNET_PIN_READ for loads only, VGASNET_PIN_WRITE for loads and stores
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG if the range leaves the segment, or the mode is unknown
 * @retval VGASNET_ERR_RESOURCE if more pages would be pinned at a time than three quarters of the pool, or than all but
 *     4 of its pages; or if another rank of the host, which is stopped, has too much of the pool mapped
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_unpin, vgasnet_advise
 */
int vgasnet_pin(void *addr, size_t len, int mode);

/**
 * Undoes one vgasnet_pin of the same range.
 *
 * Not collective, any thread.
 *
 * @param addr as for vgasnet_pin
 * @param len as for vgasnet_pin, in bytes
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG if some page of the range is not pinned; nothing is undone
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_pin
 */
int vgasnet_unpin(void *addr, size_t len);

/** The range will be read or written soon. Its first pages, up to half of the pool, are fetched in the background. */
#define VGASNET_ADVISE_WILLNEED 1
/** The range will not be used soon. Its pages leave the pool, and dirty ones are written back. Its bytes stay. */
#define VGASNET_ADVISE_DONTNEED 2
/** The range will be used in order, now, from its first page on. It is read ahead from the first access on, not from the
 * third. */
#define VGASNET_ADVISE_SEQUENTIAL 3
/** The range will be read much more often than written. Its dirty pages are written back in the background and stay in
 * the pool, so that they can leave it later without a write. */
#define VGASNET_ADVISE_READMOSTLY 4

/**
 * Gives a hint how a range of the caller's own segment will be used.
 *
 * It changes no byte and waits for nothing. Not collective, any thread.
 *
 * @param addr first address of the range, in the caller's own segment
 * @param len length of the range in bytes, 0 or more
 * @param advice VGASNET_ADVISE_WILLNEED, VGASNET_ADVISE_DONTNEED, VGASNET_ADVISE_SEQUENTIAL or
 *     VGASNET_ADVISE_READMOSTLY
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG if the range leaves the segment, or the advice is unknown
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_pin, vgasnet_file_advise
 */
int vgasnet_advise(void *addr, size_t len, int advice);

#ifdef __cplusplus
}
#endif

#endif
