/* vgasnet: error codes. See "Errors" in vgasnet.h. */
#ifndef VGASNET_ERRORS_H
#define VGASNET_ERRORS_H

#ifdef __cplusplus
extern "C" {
#endif

/** Success. */
#define VGASNET_OK 0
/** The call came too early, or once too often. */
#define VGASNET_ERR_NOT_INIT 10001
/** The machine lacks something: disk space, memory, threads. */
#define VGASNET_ERR_RESOURCE 10002
/** An argument or an environment variable makes no sense. */
#define VGASNET_ERR_BAD_ARG 10003
/** Not complete yet. This is no error: nothing is printed. */
#define VGASNET_ERR_NOT_READY 10004
/** The ranks came to the barrier with different ids. */
#define VGASNET_ERR_BARRIER_MISMATCH 10005
/** The file system has refused to open, read or write a shared file. */
#define VGASNET_ERR_IO 10006

/**
 * Returns the name of an error code, such as "VGASNET_ERR_BAD_ARG".
 *
 * May be called at any time, by any thread. Never fails.
 *
 * @param errval any number
 * @return a constant string; "unknown" for a number that is no code
 * @see vgasnet_ErrorDesc, vgasnet_ErrorLine
 */
const char *vgasnet_ErrorName(int errval);

/**
 * Returns the meaning of an error code, as half a sentence.
 *
 * May be called at any time, by any thread. Never fails.
 *
 * @param errval any number
 * @return a constant string; one that says so for a number that is no code
 * @see vgasnet_ErrorName, vgasnet_ErrorLine
 */
const char *vgasnet_ErrorDesc(int errval);

/**
 * Returns the line that explained the calling thread's last error, once.
 *
 * The line is the one on stderr without "vgasnet: ". Bindings of other languages put it into their exceptions. May be
 * called at any time, by any thread. Never fails.
 *
 * @return the line, valid until the thread's next error; "" if the line was asked for before, or if another rank has
 *     printed it
 * @see vgasnet_ErrorName, vgasnet_ErrorDesc
 */
const char *vgasnet_ErrorLine(void);

#ifdef __cplusplus
}
#endif

#endif
