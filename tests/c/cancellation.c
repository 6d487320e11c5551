/* A thread with a pending cancellation: no call, handler, load or store of the library is a cancellation point. */
#include <pthread.h>

#include "local.h"

enum { ASK = 200, ANSWER };

static vgasnet_node_t me, ranks;
static size_t size;
static pthread_barrier_t cancelled;
static volatile int answers;
static int is_through;

static void on_ask(vgasnet_token_t token) {
    pthread_testcancel();
    CHECK(vgasnet_AMReplyShort0(token, ANSWER) == VGASNET_OK);
}

static void on_answer(vgasnet_token_t token) {
    (void)token;
    ++answers;
}

static void access_all_pages(void) {
    vgasnet_node_t next = (me + 1) % ranks;
    for (size_t from = 0; from < size; from += page_bytes()) {
        uint64_t word = mixed(me, from, 1), got = 0;
        store_word(at(me, from), word);
        CHECK_EQ(load_word(at(me, from)), word);
        word = mixed(me, from, 2);
        vgasnet_put(next, at(next, from + 8), &word, sizeof word);
        vgasnet_get(&got, next, at(next, from + 8), sizeof got);
        CHECK_EQ(got, word);
        vgasnet_wait_syncnb(vgasnet_put_nb(next, at(next, from + 16), &word, sizeof word));
    }
}

static void *use_everything(void *unused) {
    int before;
    (void)unused;
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before) == 0);
    pthread_barrier_wait(&cancelled);
    pthread_barrier_wait(&cancelled);
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before) == 0);
    barrier();
    access_all_pages();
    for (vgasnet_node_t to = 0; to < ranks; ++to) CHECK(vgasnet_AMRequestShort0(to, ASK) == VGASNET_OK);
    while (answers < (int)ranks) CHECK(vgasnet_AMPoll() == VGASNET_OK);
    barrier();
    is_through = 1;
    pthread_testcancel();
    CHECK(!"the request is still pending");
    return NULL;
}

int main(int argc, char **argv) {
    vgasnet_handlerentry_t table[] = {{ASK, (void (*)(void))on_ask}, {ANSWER, (void (*)(void))on_answer}};
    pthread_t thread;
    void *result = NULL;
    size = 3 * pool_pages() * page_bytes();
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) exit(1);
    CHECK(vgasnet_attach(table, 2, size, 0) == VGASNET_OK);
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    (void)at(0, 0);
    CHECK(pthread_barrier_init(&cancelled, NULL, 2) == 0);
    CHECK(pthread_create(&thread, NULL, use_everything, NULL) == 0);
    pthread_barrier_wait(&cancelled);
    CHECK(pthread_cancel(thread) == 0);
    pthread_barrier_wait(&cancelled);
    CHECK(pthread_join(thread, &result) == 0);
    CHECK(result == PTHREAD_CANCELED && is_through);
    access_all_pages();
    return finish();
}
