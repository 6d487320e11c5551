/* Chapter "Job Control Interface": versions and constants, init, attach, sizes, environment, handler indices. */
#include "client.h"

#if GASNET_SPEC_VERSION_MAJOR != 1 || GASNET_SPEC_VERSION_MINOR != 8 || GASNET_VERSION != 1
#error specification
#endif
#if GASNET_RELEASE_VERSION_MAJOR != 1 || GASNET_RELEASE_VERSION_MINOR < 24 || GASNET_RELEASE_VERSION_PATCH < 0
#error release
#endif
#if GASNET_PAGESIZE % 4096 || GASNET_MAXNODES < 1 || SIZEOF_GASNET_REGISTER_VALUE_T != 8
#error constants
#endif
#if defined(GASNET_SEGMENT_FAST) + defined(GASNET_SEGMENT_LARGE) + defined(GASNET_SEGMENT_EVERYTHING) != 1
#error segments
#endif
#if defined(GASNET_DEBUG) == defined(GASNET_NDEBUG) || !defined(GASNET_PSHM) || GASNET_NULL_ARGV_OK != 1
#error configuration
#endif
#if (GASNET_ALIGNED_SEGMENTS != 0 && GASNET_ALIGNED_SEGMENTS != 1) || !defined(_INCLUDED_GASNET_H)
#error identification
#endif

#ifndef EXPECTED_CONDUIT
#define EXPECTED_CONDUIT "SMP"
#if !GASNET_CONDUIT_SMP
#error conduit
#endif
#endif

/* Larger than any segment here: it limits only the offered size. */
#ifdef __cplusplus
extern "C" {
#endif
uint64_t gasnet_max_segsize = UINT64_C(1) << 30;
#ifdef __cplusplus
}
#endif

static void *hook_base;
static uintptr_t hook_size;
static void attach_hook(void *base, uintptr_t size) { hook_base = base, hook_size = size; }

static void handler(gasnet_token_t token) { (void)token; }

/* The host of a node. The harness gives the number of hosts, with the nodes in order and evenly spread. */
static gasnet_node_t host_of(gasnet_node_t node) {
    gasnet_node_t hosts = getenv("CHECK_HOSTS") != NULL ? (gasnet_node_t)atoi(getenv("CHECK_HOSTS")) : 1;
    return node / ((nodes + hosts - 1) / hosts);
}

/* Legal between init and attach. */
static void before_attach(void) {
    gasnet_nodeinfo_t *info = (gasnet_nodeinfo_t *)calloc(nodes + 1, sizeof *info);
    gasnet_seginfo_t none;
    uintptr_t local = gasnet_getMaxLocalSegmentSize(), global = gasnet_getMaxGlobalSegmentSize();
    gasnet_node_t node;
    CHECK(nodes == number_from_environment("CHECK_RANKS") && me < nodes);
    CHECK(local % GASNET_PAGESIZE == 0 && global <= local && global >= segment_bytes() && local <= gasnet_max_segsize);
    CHECK(gasnet_getenv("CHECK_NO_SUCH_VARIABLE") == NULL);
    CHECK(info != NULL);
    info[nodes].host = 12345;
    CHECK(gasnet_getNodeInfo(info, (int)nodes + 1) == GASNET_OK && info[nodes].host == 12345);
    for (node = 0; node < nodes; ++node) CHECK(info[node].host == host_of(node) && info[node].supernode < nodes);
    CHECK(gasnet_getNodeInfo(NULL, 0) == GASNET_OK && gasnet_getNodeInfo(NULL, 1) == GASNET_ERR_BAD_ARG);
    CHECK(gasnet_getSegmentInfo(&none, 1) == GASNET_ERR_NOT_INIT);
    free(info);
}

#if defined(GASNET_SEQ)
#define EXPECTED_MODE ",THREADMODEL=SEQ"
#elif defined(GASNET_PARSYNC)
#define EXPECTED_MODE ",THREADMODEL=PARSYNC"
#else
#define EXPECTED_MODE ",THREADMODEL=PAR"
#endif
#if GASNET_SEQ + GASNET_PARSYNC + GASNET_PAR != 1
#error mode
#endif

/* The library's configuration, and the thread mode of this client. */
static void configuration(void) {
    size_t of_library = strlen(vgasnet_config_string());
    CHECK(strncmp(GASNET_CONFIG_STRING, vgasnet_config_string(), of_library) == 0);
    CHECK(strcmp(&GASNET_CONFIG_STRING[of_library], EXPECTED_MODE) == 0);
    CHECK(gasneti_nodes == gasnet_nodes() && gasneti_mynode == gasnet_mynode());
}

static void codes(void) {
    const int all[] = {GASNET_OK, GASNET_ERR_NOT_INIT, GASNET_ERR_RESOURCE, GASNET_ERR_BAD_ARG, GASNET_ERR_NOT_READY,
                       GASNET_ERR_BARRIER_MISMATCH};
    const char *names[] = {"GASNET_OK", "GASNET_ERR_NOT_INIT", "GASNET_ERR_RESOURCE", "GASNET_ERR_BAD_ARG",
                           "GASNET_ERR_NOT_READY", "GASNET_ERR_BARRIER_MISMATCH"};
    size_t i;
    CHECK(GASNET_OK == 0);
    CHECK(strcmp(GASNET_CONDUIT_NAME_STR, EXPECTED_CONDUIT) == 0 && strcmp(GASNET_CORE_NAME_STR, EXPECTED_CONDUIT) == 0);
    for (i = 0; i < sizeof all / sizeof *all; ++i) {
        CHECK(strcmp(gasnet_ErrorName(all[i]), names[i]) == 0 && strlen(gasnet_ErrorDesc(all[i])) > 0);
    }
    CHECK(strlen(gasnet_ErrorName(-77)) > 0);
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {HANDLER(0, handler), HANDLER(200, handler), HANDLER(0, handler), HANDLER(128, handler)};
    gasnet_handle_t zero;
    gasnet_node_t node;
    int no_arguments = argc > 1 && strcmp(argv[1], "null") == 0;
    if ((no_arguments ? gasnet_init(NULL, NULL) : gasnet_init(&argc, &argv)) != GASNET_OK) return 1;
    me = gasnet_mynode(), nodes = gasnet_nodes();
    codes();
    configuration();
    before_attach();
    gasnet_client_attach_hook = attach_hook;
    CHECK(gasnet_attach(table, 4, segment_bytes(), (uintptr_t)1 << 20) == GASNET_OK);
    CHECK(table[0].index == 129 && table[1].index == 200 && table[2].index == 130 && table[3].index == 128);

    segments = (gasnet_seginfo_t *)calloc(nodes + 1, sizeof *segments);
    CHECK(segments != NULL);
    CHECK(gasnet_getSegmentInfo(segments, (int)nodes + 1) == GASNET_OK);
    CHECK(segments[nodes].addr == NULL);
    for (node = 0; node < nodes; ++node) {
        CHECK(segments[node].size >= segment_bytes() && segments[node].size % GASNET_PAGESIZE == 0);
        CHECK((uintptr_t)segments[node].addr % GASNET_PAGESIZE == 0);
        CHECK(!GASNET_ALIGNED_SEGMENTS || segments[node].addr == segments[0].addr);
    }
    CHECK(hook_base == segments[me].addr && hook_size == segments[me].size);
    CHECK(gasnet_init(&argc, &argv) != GASNET_OK && gasnet_attach(NULL, 0, 0, 0) != GASNET_OK);

    memset(&zero, 0, sizeof zero);
    CHECK(zero == GASNET_INVALID_HANDLE);
    CHECK((gasnet_node_t)-1 > 0 && (gasnet_handler_t)-1 == 255 && sizeof(gasnet_handlerarg_t) == 4);
    CHECK((gasnet_handlerarg_t)-1 < 0 && (gasnet_register_value_t)-1 > 0 && sizeof(gasnet_register_value_t) == 8);
    CHECK(GASNET_MAXNODES <= (gasnet_node_t)-1 && sizeof(gasnet_threadinfo_t) == sizeof(void *));
    return finish();
}
