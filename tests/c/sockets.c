/* Pipes, sockets and the bytes of a segment: streams end at the same places, messages stay whole. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "local.h"

#define RECORDS 300

static unsigned char *segment;
static size_t size;

static void make_pair(int type, int ends[2]) { CHECK(socketpair(AF_UNIX, type, 0, ends) == 0); }

static void close_both(const int ends[2]) { CHECK(close(ends[0]) == 0 && close(ends[1]) == 0); }

static void fill(unsigned char *memory, size_t len, uint64_t seed) {
    uint64_t state = mixed(seed, vgasnet_mynode(), 3);
    unsigned char *bytes = (unsigned char *)allocate(len);
    random_bytes(&state, bytes, len);
    memcpy(memory, bytes, len);
    free(bytes);
}

/* A writer of records, each in one call. */
struct writer {
    int pipe_end;
    unsigned char *record;
    pthread_t thread;
};

static void *write_records(void *argument) {
    struct writer *writer = (struct writer *)argument;
    for (int i = 0; i < RECORDS; ++i) CHECK_EQ(write(writer->pipe_end, writer->record, PIPE_BUF), PIPE_BUF);
    return NULL;
}

/* Two writers, one of them from the segment: no record is torn. */
static void check_pipe_records(void) {
    int ends[2];
    unsigned char record[PIPE_BUF], plain[PIPE_BUF];
    struct writer writers[2];
    CHECK(pipe(ends) == 0);
    writers[0].record = plain;
    writers[1].record = segment + page_bytes() - PIPE_BUF / 2;
    for (int i = 0; i < 2; ++i) {
        memset(writers[i].record, i, PIPE_BUF);
        writers[i].pipe_end = ends[1];
        CHECK(pthread_create(&writers[i].thread, NULL, write_records, &writers[i]) == 0);
    }
    for (int i = 0; i < 2 * RECORDS; ++i) {
        size_t have = 0;
        while (have < sizeof record) {
            ssize_t len = read(ends[0], record + have, sizeof record - have);
            CHECK(len > 0);
            have += (size_t)len;
        }
        for (size_t at = 0; at < sizeof record; ++at) CHECK_EQ(record[at], record[0]);
    }
    for (int i = 0; i < 2; ++i) CHECK(pthread_join(writers[i].thread, NULL) == 0);
    close_both(ends);
}

/* A read takes the available bytes. A nonblocking write sends as many bytes as there is room for. */
static void check_short(void) {
    int ends[2], model[2];
    unsigned char *plain = (unsigned char *)allocate(size);
    CHECK(pipe2(ends, O_NONBLOCK) == 0 && pipe2(model, O_NONBLOCK) == 0);
    CHECK(read(ends[0], segment, size) == -1 && errno == EAGAIN);
    CHECK_EQ(write(ends[1], segment, size), write(model[1], plain, size));
    CHECK(write(ends[1], segment, size) == -1 && errno == EAGAIN);
    CHECK_EQ(read(ends[0], segment, size), read(model[0], plain, size));
    CHECK_EQ(write(ends[1], "12345", 5), 5);
    CHECK_EQ(read(ends[0], segment + size - 9, 9), 5);
    CHECK(memcmp(segment + size - 9, "12345", 5) == 0);
    CHECK(close(ends[1]) == 0);
    CHECK_EQ(read(ends[0], segment, 100), 0);
    CHECK(close(ends[0]) == 0);
    close_both(model);
    free(plain);
}

/* As in a program with signals: a call may end early if the disk has finished an operation. */
static void *send_all(void *argument) {
    size_t sent = 0;
    while (sent < size / 2) {
        ssize_t len = send(*(int *)argument, segment + sent, size / 2 - sent, MSG_NOSIGNAL);
        CHECK(len > 0);
        sent += (size_t)len;
    }
    return NULL;
}

static void receive_all(int socket) {
    size_t received = 0;
    while (received < size / 2) {
        ssize_t len = recv(socket, segment + size / 2 + received, size / 2 - received, MSG_WAITALL);
        CHECK(len > 0);
        received += (size_t)len;
    }
}

static void check_stream(void) {
    int ends[2];
    pthread_t other;
    fill(segment, size / 2, 11);
    make_pair(SOCK_STREAM, ends);
    CHECK(pthread_create(&other, NULL, send_all, &ends[0]) == 0);
    receive_all(ends[1]);
    CHECK(pthread_join(other, NULL) == 0);
    CHECK(memcmp(segment, segment + size / 2, size / 2) == 0);
    CHECK_EQ(send(ends[0], segment, 10, 0), 10);
    CHECK_EQ(recv(ends[1], segment + 100, 50, MSG_PEEK), 10);
    CHECK_EQ(recv(ends[1], segment + 200, 50, 0), 10);
    CHECK(memcmp(segment, segment + 100, 10) == 0 && memcmp(segment, segment + 200, 10) == 0);
    CHECK(close(ends[1]) == 0);
    CHECK(send(ends[0], segment, 10, MSG_NOSIGNAL) == -1 && errno == EPIPE);
    CHECK(close(ends[0]) == 0);
}

static void check_messages(int type) {
    int ends[2];
    size_t len = 50000;
    struct sockaddr name;
    socklen_t name_len = sizeof name;
    make_pair(type, ends);
    fill(segment, len, 12);
    CHECK_EQ(send(ends[0], segment, len, 0), len);
    CHECK_EQ(sendto(ends[0], segment, 0, 0, NULL, 0), 0);
    CHECK_EQ(write(ends[0], segment + 7, 999), 999);
    CHECK_EQ(send(ends[0], segment, 500, 0), 500);
    CHECK_EQ(recvfrom(ends[1], segment + len, size - len, 0, &name, &name_len), len);
    CHECK(memcmp(segment, segment + len, len) == 0);
    CHECK_EQ(recv(ends[1], segment + len, size - len, 0), 0);
    CHECK_EQ(read(ends[1], segment + len, size - len), 999);
    CHECK(memcmp(segment + 7, segment + len, 999) == 0);
    /* A truncated message reports its full length. */
    CHECK_EQ(recv(ends[1], segment + len, 100, MSG_TRUNC), 500);
    CHECK(memcmp(segment, segment + len, 100) == 0);
    close_both(ends);
}

/* Descriptors and bytes of the segment in one message. */
static void check_sendmsg(void) {
    int ends[2], sent = -1;
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr aligned;
    } control;
    struct iovec parts[3];
    struct msghdr message;
    char tail[5] = "tail";
    make_pair(SOCK_STREAM, ends);
    fill(segment + page_bytes() - 50, 100, 13);
    memset(&message, 0, sizeof message);
    memset(&control, 0, sizeof control);
    parts[0].iov_base = segment + page_bytes() - 50;
    parts[0].iov_len = 100;
    parts[1].iov_base = tail;
    parts[1].iov_len = sizeof tail;
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &ends[0], sizeof(int));
    CHECK_EQ(sendmsg(ends[0], &message, 0), 105);
    memset(&control, 0, sizeof control);
    message.msg_controllen = sizeof control.bytes;
    parts[0].iov_base = segment;
    parts[1].iov_len = 3;
    parts[2].iov_base = segment + 3 * page_bytes();
    parts[2].iov_len = 100;
    message.msg_iovlen = 3;
    CHECK_EQ(recvmsg(ends[1], &message, 0), 105);
    CHECK(memcmp(segment, segment + page_bytes() - 50, 100) == 0);
    CHECK(memcmp(tail, "tai", 3) == 0 && memcmp(segment + 3 * page_bytes(), "l", 2) == 0);
    header = CMSG_FIRSTHDR(&message);
    CHECK(header != NULL && header->cmsg_type == SCM_RIGHTS);
    memcpy(&sent, CMSG_DATA(header), sizeof sent);
    CHECK(sent >= 0 && close(sent) == 0);
    close_both(ends);
}

static void check_many_messages(void) {
    enum { COUNT = 3 };
    int ends[2];
    struct mmsghdr messages[COUNT];
    struct iovec parts[COUNT];
    make_pair(SOCK_DGRAM, ends);
    memset(messages, 0, sizeof messages);
    fill(segment, 1000, 14);
    for (int i = 0; i < COUNT; ++i) {
        parts[i].iov_base = segment + 10 * i;
        parts[i].iov_len = 20;
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    CHECK_EQ(sendmmsg(ends[0], messages, COUNT, 0), COUNT);
    for (int i = 0; i < COUNT; ++i) parts[i].iov_base = segment + 2 * page_bytes() + 20 * i;
    CHECK_EQ(recvmmsg(ends[1], messages, COUNT, MSG_WAITFORONE, NULL), COUNT);
    for (int i = 0; i < COUNT; ++i) {
        CHECK_EQ(messages[i].msg_len, 20);
        CHECK(memcmp(segment + 10 * i, segment + 2 * page_bytes() + 20 * i, 20) == 0);
    }
    CHECK_EQ(send(ends[0], segment, 5, 0), 5);
    CHECK_EQ(recvmmsg(ends[1], messages, COUNT, MSG_WAITFORONE, NULL), 1);
    close_both(ends);
}

static void make_tcp_pair(int ends[2]) {
    struct sockaddr_in name;
    socklen_t name_len = sizeof name;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    memset(&name, 0, sizeof name);
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(listener >= 0 && bind(listener, (struct sockaddr *)&name, sizeof name) == 0 && listen(listener, 1) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&name, &name_len) == 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(ends[0] >= 0 && connect(ends[0], (struct sockaddr *)&name, sizeof name) == 0);
    ends[1] = accept(listener, NULL, NULL);
    CHECK(ends[1] >= 0 && close(listener) == 0);
}

/* The ways to send the first bytes of the segment. */
static ssize_t send_by(int way, int socket, size_t len, int flags) {
    struct iovec part;
    struct mmsghdr message;
    part.iov_base = segment;
    part.iov_len = len;
    memset(&message, 0, sizeof message);
    message.msg_hdr.msg_iov = &part;
    message.msg_hdr.msg_iovlen = 1;
    switch (way) {
    case 0: return send(socket, segment, len, flags);
    case 1: return sendto(socket, segment, len, flags, NULL, 0);
    case 2: return sendmsg(socket, &message.msg_hdr, flags);
    default: return sendmmsg(socket, &message, 1, flags) == 1 ? (ssize_t)message.msg_len : -1;
    }
}

/* Receives the last bytes of the segment. */
static void receive(int socket, size_t len) {
    while (len > 0) {
        ssize_t got = recv(socket, segment + size - len, len, 0);
        CHECK(got > 0 || (got < 0 && errno == EINTR));
        len -= got > 0 ? (size_t)got : 0;
    }
}

/* Waits until the kernel releases the memory of a call. */
static void wait_until_sent(int socket) {
    struct pollfd ready;
    char control[200];
    struct msghdr message;
    ready.fd = socket, ready.events = 0, ready.revents = 0;
    while (poll(&ready, 1, -1) < 0) CHECK(errno == EINTR);
    CHECK(ready.revents & POLLERR);
    memset(&message, 0, sizeof message);
    message.msg_control = control, message.msg_controllen = sizeof control;
    CHECK(recvmsg(socket, &message, MSG_ERRQUEUE) == 0);
}

/* Afterwards the first page is not in memory. */
static void evict_first(void) {
    CHECK(vgasnet_advise(segment, page_bytes(), VGASNET_ADVISE_DONTNEED) == VGASNET_OK);
}

/* The kernel keeps using the segment's memory after the call. Unpinned memory is refused, and nothing is sent from a
 * temporary copy. */
static void check_kept(void) {
    enum { LEN = 100, WAYS = 4 };
    int ends[2], one = 1;
    make_tcp_pair(ends);
    for (int way = 0; way < WAYS; ++way) {
        for (size_t from = 0; from < size; from += page_bytes()) memset(segment + from, way + 1, LEN);
        evict_first();
        CHECK_EQ(send_by(way, ends[0], LEN, MSG_ZEROCOPY), LEN);
        receive(ends[1], LEN);
        for (size_t i = 0; i < LEN; ++i) CHECK_EQ(segment[size - LEN + i], way + 1);
    }
    if (setsockopt(ends[0], SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one) != 0) {
        printf("this system has no SO_ZEROCOPY\n");
        close_both(ends);
        return;
    }
    for (int way = 0; way < WAYS; ++way) {
        for (size_t from = 0; from < size; from += page_bytes()) memset(segment + from, way, LEN);
        evict_first();
        errno = 0;
        CHECK(send_by(way, ends[0], LEN, MSG_ZEROCOPY) == -1 && errno == EFAULT);
        /* A smaller pool permits no pin. */
        if (pool_pages() < 5) continue;
        CHECK(vgasnet_pin(segment, LEN, VGASNET_PIN_READ) == VGASNET_OK);
        CHECK_EQ(send_by(way, ends[0], LEN, MSG_ZEROCOPY), LEN);
        receive(ends[1], LEN);
        wait_until_sent(ends[0]);
        CHECK(vgasnet_unpin(segment, LEN) == VGASNET_OK);
        for (size_t i = 0; i < LEN; ++i) CHECK_EQ(segment[size - LEN + i], way);
    }
    close_both(ends);
}

static void *receive_for_ever(void *argument) {
    ssize_t len = recv(*(int *)argument, segment, 1000, 0);
    CHECK_EQ(len, 1);
    len = recv(*(int *)argument, segment, 1000, 0);
    return NULL;
}

/* A thread waiting for bytes can be cancelled. */
static void check_cancel(void) {
    int ends[2];
    pthread_t other;
    void *result = NULL;
    make_pair(SOCK_STREAM, ends);
    CHECK(pthread_create(&other, NULL, receive_for_ever, &ends[1]) == 0);
    CHECK_EQ(send(ends[0], segment, 1, 0), 1);
    CHECK(pthread_cancel(other) == 0);
    CHECK(pthread_join(other, &result) == 0);
    CHECK(result == PTHREAD_CANCELED);
    close_both(ends);
}

int main(int argc, char **argv) {
    size = pool_pages() * 4 * page_bytes();
    start(&argc, &argv, size);
    segment = (unsigned char *)at(vgasnet_mynode(), 0);
    check_pipe_records();
    check_short();
    check_stream();
    check_messages(SOCK_DGRAM);
    check_messages(SOCK_SEQPACKET);
    check_sendmsg();
    check_many_messages();
    check_kept();
    check_cancel();
    return finish();
}
