/* Functions about the process that GASNet has for itself, and clients use, with gasnet.h and with gasnet_tools.h. GASNet's own
 * tools declare them, too, so their types are the same here. */
#ifndef GASNET_PROCESS_H
#define GASNET_PROCESS_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Prints the text in one line, and ends the process by SIGABRT, so that the job fails. @see vgasnet_exit */
__attribute__((__noreturn__, __unused__, __format__(__printf__, 1, 2))) static void
gasneti_fatalerror(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("*** FATAL ERROR: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

/** Returns the name of this machine. @see vgasnet_getNodeInfo */
__attribute__((__unused__)) static const char *gasneti_gethostname(void) {
    static __thread char name[256];
    /* gethostname is not declared in strict C. */
    FILE *file = fopen("/proc/sys/kernel/hostname", "r");
    if (file == NULL || fgets(name, sizeof name, file) == NULL) strcpy(name, "unknown");
    if (file != NULL) fclose(file);
    name[strcspn(name, "\n")] = '\0';
    return name;
}

#ifdef __cplusplus
}
#endif

#endif
