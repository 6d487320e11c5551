/* Chapter "Atomicity Control": no-interrupt sections and handler-safe locks, in handlers and in several threads. */
#include "client.h"

enum { ADD = 200, ADDED, EACH = 200, THREADS = 3 };

static gasnet_hsl_t fixed = GASNET_HSL_INITIALIZER, made;
/* Both are protected by the locks. */
static unsigned sum, added;

static void on_add(gasnet_token_t token, gasnet_handlerarg_t number) {
    gasnet_hsl_lock(&fixed);
    gasnet_hsl_lock(&made);
    sum += (unsigned)number;
    gasnet_hsl_unlock(&made);
    gasnet_hsl_unlock(&fixed);
    CHECK(gasnet_AMReplyShort0(token, ADDED) == GASNET_OK);
}

static void on_added(gasnet_token_t token) {
    (void)token;
    /* The handler tries once. The lock is never held for long, and the others count under it. */
    if (gasnet_hsl_trylock(&fixed) != GASNET_OK) gasnet_hsl_lock(&fixed);
    ++added;
    gasnet_hsl_unlock(&fixed);
}

static void *work(void *argument) {
    unsigned i;
    GASNET_BEGIN_FUNCTION();
    for (i = 0; i < EACH; ++i) {
        CHECK(gasnet_AMRequestShort1((me + i) % nodes, ADD, 2) == GASNET_OK);
        gasnet_hold_interrupts();
        gasnet_hsl_lock(&fixed);
        sum += 1;
        gasnet_hsl_unlock(&fixed);
        gasnet_resume_interrupts();
    }
    return argument;
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {HANDLER(ADD, on_add), HANDLER(ADDED, on_added)};
    unsigned threads = 1, total;
    gasnet_hsl_t unused;
    start(&argc, &argv, table, 2);
    gasnet_hsl_init(&made);
    gasnet_hsl_init(&unused);
    gasnet_hsl_destroy(&unused);
    CHECK(gasnet_hsl_trylock(&made) == GASNET_OK);
    gasnet_hsl_unlock(&made);
    barrier();
#ifdef GASNET_PAR
    {
        pthread_t ids[THREADS];
        gasnet_hsl_lock(&made);
        gasnet_hsl_unlock(&made);
        for (threads = 0; threads < THREADS; ++threads) CHECK(pthread_create(&ids[threads], NULL, work, NULL) == 0);
        for (threads = 0; threads < THREADS; ++threads) CHECK(pthread_join(ids[threads], NULL) == 0);
    }
#else
    CHECK(work(NULL) == NULL);
#endif
    total = threads * EACH;
    GASNET_BLOCKUNTIL(added == total);
    barrier();
    /* Every node has sent as many requests as it got. */
    CHECK(sum == total * 3);
    gasnet_hsl_destroy(&made);
    gasnet_hsl_destroy(&fixed);
    return finish();
}
