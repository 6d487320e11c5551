/* vgasnet: error codes. See "Errors" in vgasnet.h. */
#ifndef VGASNET_ERRORS_H
#define VGASNET_ERRORS_H


#ifdef __cplusplus
extern "C" {
#endif

#define VGASNET_OK 0
/* The call came too early, or once too often. */
#define VGASNET_ERR_NOT_INIT 10001
/* The machine lacks something: disk space, memory, threads. */
#define VGASNET_ERR_RESOURCE 10002
/* An argument or an environment variable makes no sense. */
#define VGASNET_ERR_BAD_ARG 10003
/* Not complete yet. This is no error: nothing is printed. */
#define VGASNET_ERR_NOT_READY 10004
/* The ranks came to the barrier with different ids. */
#define VGASNET_ERR_BARRIER_MISMATCH 10005
/* The file system has refused to open, read or write a shared file. */
#define VGASNET_ERR_IO 10006

/* The name of a code, such as "VGASNET_ERR_BAD_ARG", and its meaning. A number that is no code gets a string that says
 * so. The strings are constants. Never fails. */
const char *vgasnet_ErrorName(int errval);
const char *vgasnet_ErrorDesc(int errval);

/* The line of the calling thread's last call that has returned an error, without "vgasnet: ", once: another call returns ""
 * until there is a new line, and so does the first if another rank has printed it. The string is valid until the thread
 * gets its next error. For bindings that hand errors on. Never fails. */
const char *vgasnet_ErrorLine(void);

#ifdef __cplusplus
}
#endif

#endif
