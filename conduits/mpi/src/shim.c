/* MPI for Rust, which cannot call it by itself: handles and constants differ between implementations. Functions with
 * neither in their arguments are called directly.
 *
 * MPI is called by its profiling names: a tool interposed before it may not have started yet when this library does,
 * and would be called by threads unknown to it.
 *
 * Every function returns an MPI error code. A request is 8 bytes of the caller's memory, whatever its type in MPI. */
#include <mpi.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(MPI_Request) <= 8, "a request is larger than its place in ffi.rs");

struct vgasnet_mpi_started {
    int rank;
    int ranks;
    int tag_max;
    /* MPI_THREAD_ constants, as 0 to 3. */
    int threads;
    /* Whether the program had initialised MPI. */
    int was_there;
};

/* Messages and pages have a communicator each, so that each has all tags. */
static MPI_Comm messages = MPI_COMM_NULL;
static MPI_Comm pages = MPI_COMM_NULL;

/* A program that finds MPI's own MPI_Init first asks for no threads. So MPI's default is changed while the program is
 * loaded, unless the user has set one. MPI_Init_thread of MPICH has no default. */
__attribute__((constructor)) static void ask_for_threads(void) {
#if defined OPEN_MPI
    setenv("OMPI_MPI_THREAD_LEVEL", "3", 0);
#elif defined MPICH_NUMVERSION
    setenv("MPIR_CVAR_DEFAULT_THREAD_LEVEL", "MPI_THREAD_MULTIPLE", 0);
#endif
}

/* Whether this library started MPI. */
static int is_started;
static int provided_level;

static int level(int constant) {
    switch (constant) {
    case MPI_THREAD_SINGLE: return 0;
    case MPI_THREAD_FUNNELED: return 1;
    case MPI_THREAD_SERIALIZED: return 2;
    default: return 3;
    }
}

int vgasnet_mpi_start(struct vgasnet_mpi_started *started) {
    int provided, found, error;
    int *tag_max;
    if ((error = PMPI_Initialized(&started->was_there))) return error;
    error = started->was_there ? PMPI_Query_thread(&provided)
                               : PMPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    if (error) return error;
    is_started = !started->was_there;
    provided_level = provided;
    started->threads = level(provided);
    if ((error = PMPI_Comm_rank(MPI_COMM_WORLD, &started->rank))) return error;
    if ((error = PMPI_Comm_size(MPI_COMM_WORLD, &started->ranks))) return error;
    if ((error = PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_max, &found))) return error;
    started->tag_max = found ? *tag_max : 32767;
    return MPI_SUCCESS;
}

/* Starts MPI for the program. The library's threads call MPI, too, so the level is the highest. */
int vgasnet_mpi_init(int *argc, char ***argv, int *provided) {
    int ignored;
    if (provided == NULL) provided = &ignored;
    if (!is_started) return PMPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, provided);
    *provided = provided_level;
    return MPI_SUCCESS;
}

static void (*before_end)(void);

static int on_end(MPI_Comm self, int key, void *value, void *extra) {
    (void)self, (void)key, (void)value, (void)extra;
    before_end();
    return MPI_SUCCESS;
}

/* MPI_Finalize begins with the attributes of MPI_COMM_SELF (MPI 3.1, section 8.7.1). */
int vgasnet_mpi_call_before_end(void (*function)(void)) {
    int key, error;
    before_end = function;
    if ((error = PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_end, &key, NULL))) return error;
    return PMPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
}

/* Collective. Not part of the start, because the caller may want to refuse it. */
int vgasnet_mpi_make_communicators(void) {
    int error;
    if ((error = PMPI_Comm_dup(MPI_COMM_WORLD, &messages))) return error;
    if ((error = PMPI_Comm_dup(MPI_COMM_WORLD, &pages))) return error;
    if ((error = PMPI_Comm_set_errhandler(messages, MPI_ERRORS_RETURN))) return error;
    return PMPI_Comm_set_errhandler(pages, MPI_ERRORS_RETURN);
}

int vgasnet_mpi_barrier(void *request) {
    return PMPI_Ibarrier(messages, request);
}

int vgasnet_mpi_receive_init(void *buffer, int bytes, void *request) {
    return PMPI_Recv_init(buffer, bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, messages, request);
}

int vgasnet_mpi_send(const void *buffer, int bytes, int to, int tag, void *request) {
    return PMPI_Isend(buffer, bytes, MPI_BYTE, to, tag, messages, request);
}

int vgasnet_mpi_send_page(const void *buffer, int bytes, int to, int tag, void *request) {
    return PMPI_Isend(buffer, bytes, MPI_BYTE, to, tag, pages, request);
}

int vgasnet_mpi_receive_page(void *buffer, int bytes, int from, int tag, void *request) {
    return PMPI_Irecv(buffer, bytes, MPI_BYTE, from, tag, pages, request);
}

/* Source, tag and bytes are set for receives that are done. */
int vgasnet_mpi_test(void *request, int *done, int *source, int *tag, int *bytes) {
    MPI_Status status;
    int error = PMPI_Test(request, done, &status);
    if (error || !*done) return error;
    *source = status.MPI_SOURCE;
    *tag = status.MPI_TAG;
    return PMPI_Get_count(&status, MPI_BYTE, bytes);
}

/* Cancels a receive without a message. */
int vgasnet_mpi_cancel(void *request) {
    MPI_Request *its = request;
    int error;
    if ((error = PMPI_Cancel(its))) return error;
    if ((error = PMPI_Wait(its, MPI_STATUS_IGNORE))) return error;
    return *its == MPI_REQUEST_NULL ? MPI_SUCCESS : PMPI_Request_free(its);
}

int vgasnet_mpi_abort(int status) {
    return PMPI_Abort(MPI_COMM_WORLD, status);
}

/* Writes at most `bytes` bytes and no terminator; returns their number. */
int vgasnet_mpi_describe(int code, char *text, int bytes) {
    char whole[MPI_MAX_ERROR_STRING];
    int length = 0, at;
    if (PMPI_Error_string(code, whole, &length) != MPI_SUCCESS) return 0;
    for (at = 0; at < length && at < bytes; ++at) text[at] = whole[at] == '\n' ? ' ' : whole[at];
    return at;
}

/* Lets MPI progress its sends. */
int vgasnet_mpi_poll(void) {
    int is_there;
    return PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, messages, &is_there, MPI_STATUS_IGNORE);
}

/* Whether this is an MPICH using PMI-1 with its launcher, as it does unless built otherwise. */
int vgasnet_mpi_talks_pmi1(void) {
#ifdef MPICH_NUMVERSION
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    if (PMPI_Get_library_version(version, &length) != MPI_SUCCESS) return 0;
    return !strstr(version, "--with-pmi=pmi2") && !strstr(version, "--with-pmi=pmix") && !strstr(version, "--with-pmix");
#else
    return 0;
#endif
}
