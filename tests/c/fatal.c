/* Errors that end the job. The first argument names the error; the last rank makes it. */
#include "check.h"

#include <signal.h>
#include <unistd.h>

static char bytes[64] __attribute__((aligned(8)));

static void outside(void) { vgasnet_get(bytes, 0, at(0, 16 * page_bytes() - 4), 8); }
static void before_segment(void) { vgasnet_put_nb(0, (char *)at(0, 0) - 1, bytes, 1); }
static void too_long(void) { vgasnet_memset(0, at(0, 0), 0, SIZE_MAX); }
static void no_such_rank(void) { vgasnet_put_nbi_bulk(vgasnet_nodes(), at(0, 0), bytes, 8); }
static void null_destination(void) { vgasnet_get_nb_bulk(NULL, 0, at(0, 0), 8); }
static void null_source(void) { vgasnet_put(0, at(0, 0), NULL, 8); }
static void value_of_9(void) { vgasnet_put_val(0, at(0, 0), 1, 9); }
static void value_of_0(void) { vgasnet_get_nb_val(0, at(0, 0), 0); }
static void null_handles(void) { vgasnet_wait_syncnb_some(NULL, 3); }
static void null_valget(void) { vgasnet_wait_syncnb_valget((vgasnet_valget_handle_t)0); }
static void null_name(void) { vgasnet_getenv(NULL); }
static void unknown_flags(void) { vgasnet_barrier_notify(0, 4); }
static void wait_without_notify(void) { vgasnet_barrier_wait(0, 0); }
static void try_without_notify(void) { vgasnet_barrier_try(0, 0); }
static void end_without_begin(void) { vgasnet_end_nbi_accessregion(); }

/* To this rank itself, and to the first rank, which reports the error when it takes the message. */
static void no_handler(void) { vgasnet_AMRequestShort0(vgasnet_mynode(), 200); }
static void no_handler_there(void) { vgasnet_AMRequestShort0(0, 201); }

static void notify_twice(void) {
    vgasnet_barrier_notify(0, 0);
    vgasnet_barrier_notify(0, 0);
}

static void begin_twice(void) {
    vgasnet_begin_nbi_accessregion();
    vgasnet_begin_nbi_accessregion();
}

static void sync_in_region(void) {
    vgasnet_begin_nbi_accessregion();
    vgasnet_try_syncnbi_puts();
}

/* The parent, which watches this process, stops for a second when a byte is written here. */
static int stop_parent = -1;

/* Call this before init, so that the child has no descriptors of the network. */
static void prepare_slow_parent(void) {
    int ends[2];
    pid_t parent = getppid();
    if (pipe(ends) != 0) exit(3);
    stop_parent = ends[1];
    if (fork() != 0) return;
    close(ends[1]);
    for (int descriptor = 0; descriptor < 3; ++descriptor) close(descriptor);
    if (read(ends[0], bytes, 1) == 1) {
        kill(parent, SIGSTOP);
        sleep(1);
        kill(parent, SIGCONT);
    }
    _exit(0);
}

/* The messages of a barrier are in flight when this rank ends, and the parent reports the end late. */
static void slow_parent(void) {
    vgasnet_barrier_notify(0, VGASNET_BARRIERFLAG_ANONYMOUS);
    if (write(stop_parent, bytes, 1) == 1) value_of_9();
}

/* A synced handle, or made-up bits that belong to no operation. */
static void dead_handle(void) {
    vgasnet_handle_t handles[2];
    uintptr_t bits = 12345;
    handles[0] = VGASNET_INVALID_HANDLE;
    memcpy(&handles[1], &bits, sizeof bits);
    vgasnet_try_syncnb_all(handles, 2);
}

/* Pages on disk, more than the pool has room for: a get of all of them is hardly ever complete at once. */
static void twice_in_array(void) {
    vgasnet_handle_t handles[2];
    vgasnet_node_t me = vgasnet_mynode();
    vgasnet_memset(me, at(me, 0), 1, 16 * page_bytes());
    do {
        vgasnet_begin_nbi_accessregion();
        for (uintptr_t page = 0; page < 16; ++page) vgasnet_get_nbi(&bytes[page], me, at(me, page * page_bytes()), 1);
        handles[0] = handles[1] = vgasnet_end_nbi_accessregion();
    } while (handles[0] == VGASNET_INVALID_HANDLE);
    vgasnet_wait_syncnb_all(handles, 2);
}

static void atomic_misaligned(void) { vgasnet_atomic_u64(0, (char *)at(0, 0) + 4, VGASNET_ATOMIC_ADD, 1, 0); }
static void atomic_misaligned_half(void) { vgasnet_atomic_u32_nbi(NULL, 0, (char *)at(0, 0) + 2, VGASNET_ATOMIC_OR, 1, 0); }
static void atomic_unknown(void) { vgasnet_atomic_u64_nb(NULL, 0, at(0, 0), 10, 1, 0); }
static void atomic_no_such_rank(void) { vgasnet_atomic_u32(vgasnet_nodes(), at(0, 0), VGASNET_ATOMIC_SWAP, 1, 0); }
static void atomic_outside(void) { vgasnet_atomic_u64_nbi(NULL, 0, at(0, 16 * page_bytes()), VGASNET_ATOMIC_CAS, 1, 0); }

/* An address below the first that a system gives out. */
static void *wild(void) {
    uintptr_t address = 0x1000;
    return (void *)address;
}

/* The page is here, and its path open. */
static void wild_number(void) {
    vgasnet_put_val(0, at(0, 0), 1, 8);
    vgasnet_get(bytes, 0, at(0, 0), 8);
    vgasnet_get(wild(), 0, at(0, 0), 8);
}

static void wild_source(void) { vgasnet_put_nb_bulk(0, at(0, 0), wild(), 300); }
static void wild_table(void) { vgasnet_getSegmentInfo((vgasnet_seginfo_t *)wild(), (int)vgasnet_nodes()); }
static void wild_list(void) {
    vgasnet_memvec_t to;
    to.addr = at(0, 0), to.len = 8;
    vgasnet_putv_bulk(0, 1, &to, 3, (vgasnet_memvec_t const *)wild());
}
static void misaligned_handles(void) { vgasnet_try_syncnb_all((vgasnet_handle_t *)(void *)(bytes + 1), 2); }
static void short_handles(void) { vgasnet_wait_syncnb_all((vgasnet_handle_t *)(void *)bytes, SIZE_MAX); }

struct error {
    const char *name;
    void (*make)(void);
};

static const struct error errors[] = {
    {"outside", outside},
    {"wild-number", wild_number},
    {"wild-source", wild_source},
    {"wild-table", wild_table},
    {"wild-list", wild_list},
    {"misaligned-handles", misaligned_handles},
    {"short-handles", short_handles},
    {"before-segment", before_segment},
    {"too-long", too_long},
    {"no-such-rank", no_such_rank},
    {"null-destination", null_destination},
    {"null-source", null_source},
    {"value-of-9", value_of_9},
    {"value-of-0", value_of_0},
    {"null-handles", null_handles},
    {"null-valget", null_valget},
    {"null-name", null_name},
    {"unknown-flags", unknown_flags},
    {"wait-without-notify", wait_without_notify},
    {"try-without-notify", try_without_notify},
    {"end-without-begin", end_without_begin},
    {"no-handler", no_handler},
    {"no-handler-there", no_handler_there},
    {"notify-twice", notify_twice},
    {"begin-twice", begin_twice},
    {"sync-in-region", sync_in_region},
    {"dead-handle", dead_handle},
    {"twice-in-array", twice_in_array},
    {"slow-parent", slow_parent},
    {"atomic-misaligned", atomic_misaligned},
    {"atomic-misaligned-half", atomic_misaligned_half},
    {"atomic-unknown", atomic_unknown},
    {"atomic-no-such-rank", atomic_no_such_rank},
    {"atomic-outside", atomic_outside},
};

static void early(const char *name) {
    if (strcmp(name, "mynode-before-init") == 0) vgasnet_mynode();
    if (vgasnet_init(NULL, NULL) != VGASNET_OK) exit(3);
    if (strcmp(name, "put-before-attach") == 0) vgasnet_put_val(0, NULL, 0, 1);
    if (strcmp(name, "notify-before-attach") == 0) vgasnet_barrier_notify(0, 0);
    if (strcmp(name, "too-large") == 0) exit(vgasnet_attach(NULL, 0, UINTPTR_MAX, 0) == VGASNET_ERR_RESOURCE ? 4 : 5);
}

int main(int argc, char **argv) {
    if (argc < 2) return 3;
    if (strcmp(argv[1], "slow-parent") == 0) prepare_slow_parent();
    early(argv[1]);
    if (vgasnet_attach(NULL, 0, 16 * page_bytes(), 0) != VGASNET_OK) return 3;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; ++i)
        if (strcmp(argv[1], errors[i].name) == 0 && vgasnet_mynode() == vgasnet_nodes() - 1) errors[i].make();
    /* A rank that takes a message in a barrier may have let the others pass it. */
    if (strcmp(argv[1], "no-handler-there") == 0 && vgasnet_mynode() == 0) VGASNET_BLOCKUNTIL(0);
    /* For the error of a second notify, the last rank has notified once already. */
    barrier();
    barrier();
    return 5;
}
