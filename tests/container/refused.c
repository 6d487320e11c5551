/* Runs a program as a container does by default: refused PROGRAM [ARGUMENT]...
 *
 * A seccomp filter answers as Docker's default profile does to a process without capabilities. It permits the calls
 * in permitted.h, and socket, clone and personality with some arguments. All other calls, io_uring's among them,
 * fail with EPERM. clone3 fails with ENOSYS, so that the C library uses clone instead. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "permitted.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "this architecture's number for filters is not here"
#endif

#ifndef SYS_clone3
#define SYS_clone3 435
#endif

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF_EQUAL(value, then, otherwise) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (then), (otherwise))
#define ANSWER(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define PERMIT BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

enum { PERMITTED = sizeof permitted / sizeof *permitted };

static const unsigned personalities[] = {0x0, 0x8, 0x20000, 0x20008, 0xffffffff};
enum { PERSONALITIES = sizeof personalities / sizeof *personalities };

static struct sock_filter filter[32 + 2 * PERMITTED + 2 * PERSONALITIES];
static unsigned short length;

static void add(struct sock_filter step) { filter[length++] = step; }

/* Permits these values of the loaded number or argument. */
static void add_permitted(const unsigned *values, int count) {
    for (int i = 0; i < count; i++) {
        add((struct sock_filter)IF_EQUAL(values[i], 0, 1));
        add((struct sock_filter)PERMIT);
    }
}

static void build(void) {
    add((struct sock_filter)LOAD(arch));
    add((struct sock_filter)IF_EQUAL(ARCHITECTURE, 1, 0));
    add((struct sock_filter)ANSWER(EPERM));
    add((struct sock_filter)LOAD(nr));
    add_permitted(permitted, PERMITTED);
    add((struct sock_filter)IF_EQUAL(SYS_clone3, 0, 1));
    add((struct sock_filter)ANSWER(ENOSYS));
    /* Sockets of these two families reach the host. */
    add((struct sock_filter)IF_EQUAL(SYS_socket, 0, 5));
    add((struct sock_filter)LOAD(args[0]));
    add((struct sock_filter)IF_EQUAL(AF_ALG, 1, 0));
    add((struct sock_filter)IF_EQUAL(AF_VSOCK, 0, 1));
    add((struct sock_filter)ANSWER(EPERM));
    add((struct sock_filter)PERMIT);
    /* Flags of clone for new namespaces. */
    add((struct sock_filter)IF_EQUAL(SYS_clone, 0, 4));
    add((struct sock_filter)LOAD(args[0]));
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x7e020000, 0, 1));
    add((struct sock_filter)ANSWER(EPERM));
    add((struct sock_filter)PERMIT);
    add((struct sock_filter)IF_EQUAL(SYS_personality, 1, 0));
    add((struct sock_filter)ANSWER(EPERM));
    add((struct sock_filter)LOAD(args[0]));
    add_permitted(personalities, PERSONALITIES);
    add((struct sock_filter)ANSWER(EPERM));
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: refused PROGRAM [ARGUMENT]...\n");
        return 2;
    }
    build();
    struct sock_fprog program = {length, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        fprintf(stderr, "refused: this kernel takes no filter: %s\n", strerror(errno));
        return 3;
    }
    execvp(argv[1], argv + 1);
    fprintf(stderr, "refused: %s: %s\n", argv[1], strerror(errno));
    return 127;
}
