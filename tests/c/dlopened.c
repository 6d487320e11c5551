/* A program without a link to the library, which loads it by dlopen and handles SIGSEGV: out-of-core loads and
 * stores work, and wild ones reach the program's handler.
 *   dlopened LIBRARY HOW PLUGIN
 * HOW selects the object and the way to install the handler. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "vgasnet.h"

#define CHECK(condition) \
    do { \
        if (!(condition)) failed(__LINE__, #condition); \
    } while (0)

typedef int (*sigaction_function)(int, const struct sigaction *, struct sigaction *);

/* A name of the C library's function that the library does not interpose. */
extern int __sigaction(int, const struct sigaction *, struct sigaction *);

static struct {
    int (*init)(int *, char ***);
    int (*attach)(vgasnet_handlerentry_t *, int, uintptr_t, uintptr_t);
    vgasnet_node_t (*mynode)(void);
    int (*get_segments)(vgasnet_seginfo_t *, int);
    void (*notify)(int, int);
    int (*wait)(int, int);
    void (*exit)(int);
} library;

/* Tables of functions, as in SQLite: one writable, one constant. */
static volatile sigaction_function table[] = {sigaction};
static const volatile sigaction_function fixed_table[] = {sigaction, NULL};

static uint64_t *segment;
static size_t words, step;
static sigjmp_buf back;
static void *volatile faulted_at;
static volatile sig_atomic_t faults, found_faults;
static volatile char *closed;
static struct sigaction found;

static void failed(int line, const char *what) {
    fprintf(stderr, "dlopened.c:%d: %s does not hold\n", line, what);
    exit(1);
}

/* A function is no object in C, but dlsym returns both as one. */
static void look_up(void *object, const char *name, void *function) {
    void *address = dlsym(object, name);
    CHECK(address != NULL);
    memcpy(function, &address, sizeof address);
}

static void load_library(const char *path, int is_apart) {
    void *object = is_apart ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW) : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) fprintf(stderr, "%s\n", dlerror());
    CHECK(object != NULL);
    look_up(object, "vgasnet_init", &library.init);
    look_up(object, "vgasnet_attach", &library.attach);
    look_up(object, "vgasnet_mynode", &library.mynode);
    look_up(object, "vgasnet_getSegmentInfo", &library.get_segments);
    look_up(object, "vgasnet_barrier_notify", &library.notify);
    look_up(object, "vgasnet_barrier_wait", &library.wait);
    look_up(object, "vgasnet_exit", &library.exit);
}

static void barrier(void) {
    library.notify(0, VGASNET_BARRIERFLAG_ANONYMOUS);
    CHECK(library.wait(0, VGASNET_BARRIERFLAG_ANONYMOUS) == VGASNET_OK);
}

static void attach(int *argc, char ***argv) {
    size_t page = (size_t)strtoull(getenv("CHECK_PAGE_BYTES"), NULL, 10);
    size_t bytes = 3 * (size_t)strtoull(getenv("CHECK_POOL_BYTES"), NULL, 10);
    vgasnet_seginfo_t segments[64];
    CHECK(library.init(argc, argv) == VGASNET_OK);
    CHECK(library.attach(NULL, 0, bytes, 0) == VGASNET_OK);
    CHECK(library.get_segments(segments, 64) == VGASNET_OK);
    segment = (uint64_t *)segments[library.mynode()].addr;
    words = bytes / sizeof *segment, step = page / sizeof *segment;
    closed = (volatile char *)mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(closed != MAP_FAILED);
}

/* Stores to all pages, more than the pool has, and loads from them. */
static void use_segment(uint64_t round) {
    volatile uint64_t *word = segment;
    for (size_t at = 0; at < words; at += step) word[at] = round + at;
    for (size_t at = 0; at < words; at += step) CHECK(word[at] == round + at);
}

static void jump(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    faulted_at = info->si_addr;
    ++faults;
    siglongjmp(back, 1);
}

/* Leaves all faults to the previous handler. */
static void pass_on(int signal, siginfo_t *info, void *context) {
    ++found_faults;
    found.sa_sigaction(signal, info, context);
}

static void jump_simply(int signal) {
    (void)signal;
    ++faults;
    siglongjmp(back, 1);
}

static struct sigaction action_of(void (*handler)(int, siginfo_t *, void *)) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_flags = SA_SIGINFO | SA_ONSTACK, action.sa_sigaction = handler;
    return action;
}

/* A wild store reaches the handler every time. */
static void wild(int tells_address) {
    for (int i = 0; i < 3; ++i) {
        int before = faults;
        if (sigsetjmp(back, 1) == 0) {
            closed[i] = 1;
            CHECK(!"a wild store");
        }
        CHECK(faults == before + 1);
        CHECK(!tells_address || faulted_at == (void *)(uintptr_t)&closed[i]);
    }
}

static void by_sigaction(sigaction_function function) {
    struct sigaction action = action_of(jump), now;
    sigset_t all;
    CHECK(function(SIGSEGV, &action, NULL) == 0);
    CHECK(function(SIGSEGV, NULL, &now) == 0 && now.sa_sigaction == jump);
    sigfillset(&all);
    CHECK(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
}

static void (*load_plugin(const char *path))(void (*)(int, siginfo_t *, void *)) {
    void (*install)(void (*)(int, siginfo_t *, void *));
    void *plugin = dlopen(path, RTLD_LAZY);
    if (plugin == NULL) fprintf(stderr, "%s\n", dlerror());
    CHECK(plugin != NULL);
    look_up(plugin, "plugin_install", &install);
    return install;
}

/* The library does not see this call and notices the handler at a barrier. Faults that the handler passes on end as
 * without the library. */
static void unseen(void) {
    struct sigaction before = action_of(jump), action = action_of(pass_on);
    CHECK(sigaction(SIGSEGV, &before, NULL) == 0);
    CHECK(__sigaction(SIGSEGV, &action, &found) == 0);
    CHECK(found.sa_sigaction != jump);
    barrier();
    use_segment(1);
    CHECK(found_faults == 0);
    wild(1);
    CHECK(found_faults == 3);
    CHECK(sigaction(SIGSEGV, &found, &before) == 0 && before.sa_sigaction == pass_on);
}

/* Reading and writing calls accept the segment's addresses here, too. */
static void write_and_read(void) {
    FILE *file = tmpfile();
    CHECK(file != NULL);
    use_segment(1);
    CHECK(fwrite(segment, sizeof *segment, words, file) == words);
    use_segment(2);
    rewind(file);
    CHECK(fread(segment, sizeof *segment, words, file) == words && fclose(file) == 0);
    for (size_t at = 0; at < words; at += step) CHECK(segment[at] == 1 + at);
    by_sigaction(sigaction);
}

static void install(const char *how, char *plugin) {
    sigaction_function function;
    if (strcmp(how, "sigaction") == 0) by_sigaction(sigaction);
    else if (strcmp(how, "files") == 0) write_and_read();
    else if (strcmp(how, "table") == 0) by_sigaction(table[0]);
    else if (strcmp(how, "fixed-table") == 0) by_sigaction(fixed_table[0]);
    else if (strcmp(how, "signal") == 0) CHECK(signal(SIGSEGV, jump_simply) != SIG_ERR);
    else if (strcmp(how, "lookup") == 0) {
        look_up(RTLD_DEFAULT, "sigaction", &function);
        by_sigaction(function);
    } else if (strcmp(how, "plugin") == 0) load_plugin(plugin)(jump);
    else if (strcmp(how, "constructor") == 0) {
        void (*handler)(int, siginfo_t *, void *) = jump;
        char text[32];
        uintptr_t address;
        memcpy(&address, &handler, sizeof address);
        snprintf(text, sizeof text, "%" PRIuPTR, address);
        CHECK(setenv("PLUGIN_HANDLER", text, 1) == 0);
        load_plugin(plugin);
    } else if (strcmp(how, "many-plugins") == 0) {
        for (int i = 0; i < 50; ++i) {
            void *object = dlopen(plugin, RTLD_LAZY);
            CHECK(object != NULL && dlclose(object) == 0);
        }
        load_plugin(plugin)(jump);
    } else if (strcmp(how, "unseen") == 0) unseen();
    else CHECK(strcmp(how, "apart") == 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    const char *how = argv[2];
    char *plugin = argv[3];
    int is_apart = strcmp(how, "apart") == 0;
    load_library(argv[1], is_apart);
    attach(&argc, &argv);
    use_segment(0);
    install(how, plugin);
    for (uint64_t round = 1; round < 4; ++round) {
        use_segment(round);
        if (!is_apart) wild(strcmp(how, "signal") != 0);
    }
    barrier();
    library.exit(0);
    return 1;
}
