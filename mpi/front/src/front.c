/* Finds next definitions, and converts Fortran's handles. */
#include "front.h"
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#ifdef OPEN_MPI
_Static_assert(sizeof(MPI_Win) == 8 && sizeof(MPI_Request) == 8 && sizeof(MPI_Datatype) == 8, "handles are pointers");
#pragma weak PMPI_Comm_f2c
#pragma weak PMPI_Group_f2c
#pragma weak PMPI_Info_f2c
#pragma weak PMPI_Op_f2c
#pragma weak PMPI_Request_c2f
#pragma weak PMPI_Request_f2c
#pragma weak PMPI_Type_f2c
#pragma weak PMPI_Win_f2c
#else
_Static_assert(sizeof(MPI_Win) == 4 && sizeof(MPI_Request) == 4 && sizeof(MPI_Datatype) == 4, "handles are integers");
#endif
#pragma weak PMPI_File_c2f
#pragma weak PMPI_File_f2c
_Static_assert(sizeof(MPI_File) == 8, "the handle of a file is a pointer");

/* Paths of the loaded MPI libraries. */
enum { PATHS = 8 };
struct paths {
    int count;
    char of[PATHS][4096];
};

static int note_path(struct dl_phdr_info *info, size_t size, void *argument) {
    struct paths *paths = argument;
    const char *slash = strrchr(info->dlpi_name, '/'), *file = slash == NULL ? info->dlpi_name : slash + 1;
    (void)size;
    if (strncmp(file, "libmpi", 6) == 0 && paths->count < PATHS && strlen(info->dlpi_name) < sizeof paths->of[0])
        strcpy(paths->of[paths->count++], info->dlpi_name);
    return 0;
}

/* Looks a name up in libraries that were loaded without global visibility, as Python loads them. */
static void *find_in_libraries(const char *name) {
    static struct paths paths;
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    void *found = NULL;
    pthread_mutex_lock(&mutex);
    paths.count = 0;
    dl_iterate_phdr(note_path, &paths);
    for (int i = 0; i < paths.count && found == NULL; ++i) {
        void *library = dlopen(paths.of[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library == NULL) continue;
        found = dlsym(library, name);
        dlclose(library);
    }
    pthread_mutex_unlock(&mutex);
    return found;
}

#ifdef OPEN_MPI
void *vgasnet_mpi_front_variable(void *linked, const char *name) {
    return linked != NULL ? linked : find_in_libraries(name);
}
#endif

void *vgasnet_mpi_front_find(const char *name, const char *other_name) {
    void *function = dlsym(RTLD_NEXT, name);
    /* A tool loaded after the library has only the first name of a function MPI has by the second, and would call
     * the library again. */
    if (function == NULL) function = find_in_libraries(name);
    if (function == NULL) function = dlsym(RTLD_NEXT, other_name);
    return function != NULL ? function : find_in_libraries(other_name);
}

/* Whether a tool is loaded after the library: one library has a function's first name, and another has the second.
 * Every tool is assumed to wrap one of these functions. */
int vgasnet_mpi_front_has_tool(void) {
    static const char *const names[] = {"PMPI_Init", "PMPI_Finalize", "PMPI_Get", "PMPI_Rget", "PMPI_Put", "PMPI_Accumulate",
        "PMPI_Fetch_and_op", "PMPI_Compare_and_swap", "PMPI_Win_allocate", "PMPI_Win_free", "PMPI_Win_flush", "PMPI_Win_flush_local",
        "PMPI_Win_lock_all", "PMPI_Win_unlock_all", "PMPI_Wait", "PMPI_Test", "PMPI_File_open", "PMPI_File_close", "PMPI_Barrier",
        "PMPI_Allreduce", "PMPI_Comm_dup", "PMPI_Recv", "PMPI_Iprobe"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        Dl_info first, second;
        void *of_first = vgasnet_mpi_front_find(names[i] + 1, names[i]), *of_second = vgasnet_mpi_front_find(names[i], names[i] + 1);
        if (of_first == of_second || !dladdr(of_first, &first) || !dladdr(of_second, &second)) continue;
        if (first.dli_fbase != second.dli_fbase) return 1;
    }
    return 0;
}

/* Whether the process has the MPI for which the library was built. Handles differ between MPIs. */
int vgasnet_mpi_front_is_its_mpi(void) {
    /* Longer than the text of any MPI. */
    static char text[16384];
    int bytes;
    int (*version)(char *, int *) =
        (int (*)(char *, int *))vgasnet_mpi_front_find("MPI_Get_library_version", "PMPI_Get_library_version");
    if (version == NULL || version(text, &bytes) != 0) return 1;
#ifdef OPEN_MPI
    return strstr(text, "Open MPI") != NULL;
#else
    return strstr(text, "Open MPI") == NULL;
#endif
}

/* Returns whether the info has the key; its value is cut to `bytes`. */
int vgasnet_mpi_front_info(uint64_t info, const char *key, char *value, int bytes) {
    __typeof__(MPI_Info_get) *get = (__typeof__(MPI_Info_get) *)vgasnet_mpi_front_find("MPI_Info_get", "PMPI_Info_get");
    int found = 0;
    char whole[MPI_MAX_INFO_VAL + 1];
    if (get == NULL || TO_HANDLE(MPI_Info, info) == MPI_INFO_NULL) return 0;
    if (get(TO_HANDLE(MPI_Info, info), key, MPI_MAX_INFO_VAL, whole, &found) || !found) return 0;
    strncpy(value, whole, bytes - 1);
    value[bytes - 1] = '\0';
    return 1;
}

/* Handles of Fortran are integers. */
uint64_t vgasnet_mpi_front_win_of(int handle) { return FROM_HANDLE(PMPI_Win_f2c(handle)); }
uint64_t vgasnet_mpi_front_file_of(int handle) { return FROM_HANDLE(PMPI_File_f2c(handle)); }
uint64_t vgasnet_mpi_front_type_of(int handle) { return FROM_HANDLE(PMPI_Type_f2c(handle)); }
uint64_t vgasnet_mpi_front_comm_of(int handle) { return FROM_HANDLE(PMPI_Comm_f2c(handle)); }
uint64_t vgasnet_mpi_front_info_of(int handle) { return FROM_HANDLE(PMPI_Info_f2c(handle)); }
uint64_t vgasnet_mpi_front_group_of(int handle) { return FROM_HANDLE(PMPI_Group_f2c(handle)); }
uint64_t vgasnet_mpi_front_op_of(int handle) { return FROM_HANDLE(PMPI_Op_f2c(handle)); }
uint64_t vgasnet_mpi_front_request_of(int handle) { return FROM_HANDLE(PMPI_Request_f2c(handle)); }
int vgasnet_mpi_front_file_to(uint64_t handle) { return PMPI_File_c2f(TO_HANDLE(MPI_File, handle)); }
int vgasnet_mpi_front_request_to(const void *place) { return PMPI_Request_c2f(*(const MPI_Request *)place); }

int vgasnet_mpi_front_complete(MPI_Request request, int (*test)(MPI_Request *, int *, MPI_Status *), void (*on_late)(void)) {
    time_t start = time(NULL);
    for (;;) {
        int is_complete = 0, error = test(&request, &is_complete, MPI_STATUS_IGNORE);
        if (error || is_complete) return error;
        sched_yield();
        if (on_late != NULL && time(NULL) - start > 10) {
            on_late();
            on_late = NULL;
        }
    }
}
