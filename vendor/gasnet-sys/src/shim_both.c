/* The part of the shim that is the same over GASNet-EX and GASNet-1. */
#include <gasnet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "internal.h"

vgasnet_gn_deliver_t vgasnet_gn_deliver_to;

int vgasnet_gn_attach_both(void *table, int count, size_t segment_bytes, size_t min_heap_offset,
                           vgasnet_gn_deliver_t deliver) {
    gasnet_handlerentry_t *handlers;
    size_t callers_bytes = whole_pages(segment_bytes), most;
    int error;
    if (!vgasnet_gn_is_initialised()) return VGASNET_GN_NOT_STARTED;
    most = gasnet_getMaxLocalSegmentSize();
    if (callers_bytes >= most) return GASNET_ERR_RESOURCE;
    if (!(handlers = calloc(count + 1, sizeof *handlers))) return GASNET_ERR_RESOURCE;
    if (count) memcpy(handlers, table, count * sizeof *handlers);
    handlers[count].fnptr = (void (*)())vgasnet_gn_on_message;
    vgasnet_gn_deliver_to = deliver;
    error = gasnet_attach(handlers, count + 1, most, min_heap_offset);
    if (!error) {
        if (count) memcpy(table, handlers, count * sizeof *handlers);
        vgasnet_gn_take_attached(handlers[count].index, callers_bytes);
    }
    free(handlers);
    return error;
}

int vgasnet_gn_poll(void) {
    return gasnet_AMPoll();
}

#if GASNET_CONDUIT_UDP
/* Of AMUDP, which is below this conduit: the connection to its launcher. */
extern int AMUDP_SPMDControlSocket __attribute__((weak));
#endif

int vgasnet_gn_connection(void) {
#if GASNET_CONDUIT_UDP
    if (&AMUDP_SPMDControlSocket) return AMUDP_SPMDControlSocket;
#endif
    return -1;
}

void vgasnet_gn_hear_launcher(int hears) {
#if GASNET_CONDUIT_UDP
    /* The launcher's connection, and one on which nothing ever comes. */
    static int real = -1, quiet[2] = {-1, -1};
    if (vgasnet_gn_connection() == -1) return;
    if (hears && real != -1) {
        AMUDP_SPMDControlSocket = real;
    } else if (!hears && (quiet[0] != -1 || !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, quiet))) {
        if (real == -1) real = AMUDP_SPMDControlSocket;
        AMUDP_SPMDControlSocket = quiet[0];
    }
#else
    (void)hears;
#endif
}

void vgasnet_gn_exit(int status) {
    gasnet_exit(status);
}

void vgasnet_gn_flush(void) {
    fflush(NULL);
}

const char *vgasnet_gn_error(int code) {
    return gasnet_ErrorName(code);
}

const char *vgasnet_gn_conduit(void) {
    return GASNET_CORE_NAME_STR;
}
