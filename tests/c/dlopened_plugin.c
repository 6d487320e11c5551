/* A shared library for dlopened.c: it installs a handler of SIGSEGV, on request or when it is loaded. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

typedef void (*handler_function)(int, siginfo_t *, void *);

#ifdef __cplusplus
extern "C"
#endif
void plugin_install(handler_function handler);

void plugin_install(handler_function handler) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_flags = SA_SIGINFO | SA_ONSTACK, action.sa_sigaction = handler;
    if (sigaction(SIGSEGV, &action, NULL) != 0) abort();
}

__attribute__((constructor)) static void install_when_loaded(void) {
    const char *text = getenv("PLUGIN_HANDLER");
    if (text == NULL) return;
    uintptr_t address = (uintptr_t)strtoull(text, NULL, 10);
    handler_function handler;
    memcpy(&handler, &address, sizeof handler);
    plugin_install(handler);
}
