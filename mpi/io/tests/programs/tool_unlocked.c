/* Has locks of open files fail with an error number, as a full lock table does. fail_locks(0) has them succeed. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>

static int error = -1;

void fail_locks(int with) { error = with; }

int fcntl(int file, int command, ...) {
    int (*next)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl");
    va_list arguments;
    void *argument;
    va_start(arguments, command);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    if (error < 0) error = getenv("LOCKS_FAIL") != NULL ? atoi(getenv("LOCKS_FAIL")) : 0;
    if (error > 0 && (command == F_OFD_SETLK || command == F_OFD_SETLKW)) {
        errno = error;
        return -1;
    }
    return next(file, command, argument);
}
