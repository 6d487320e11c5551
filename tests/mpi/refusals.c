/* A call of MPI that cannot take an address in the segment, selected by the argument: the job ends with a line. */
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#include "check_mpi.h"

static int has_no_memory;

/* Replaces the C library's function: the system reports almost no memory left. */
int open64(const char *path, int flags, ...) {
    static const char told[] = "MemAvailable:       1024 kB\n";
    int ends[2], mode;
    va_list more;
    va_start(more, flags);
    mode = flags & O_CREAT ? va_arg(more, int) : 0;
    va_end(more);
    if (!has_no_memory || strcmp(path, "/proc/meminfo") != 0) return openat(AT_FDCWD, path, flags, mode);
    if (pipe(ends) != 0 || write(ends[1], told, sizeof told - 1) < 0) return -1;
    close(ends[1]);
    return ends[0];
}

static MPI_Request request;
static MPI_Win window;
static int zero;

static void refused(const char *call, char *in) {
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Datatype type;
    MPI_Aint address;
    int one = 1;
    char *ordinary = (char *)allocate(4096);
#define CALLS(name, ...) if (strcmp(call, #name) == 0) name(__VA_ARGS__)
    CALLS(MPI_Isend, in, 1, MPI_INT, 0, 1, world, &request);
    CALLS(MPI_Issend, in, 1, MPI_INT, 0, 1, world, &request);
    CALLS(MPI_Ibsend, in, 1, MPI_INT, 0, 1, world, &request);
    CALLS(MPI_Irsend, in, 1, MPI_INT, 0, 1, world, &request);
    CALLS(MPI_Irecv, in, 1, MPI_INT, 0, 1, world, &request);
    CALLS(MPI_Send_init, in, 1, MPI_INT, 0, 1, world, &request);
    CALLS(MPI_Recv_init, in, 1, MPI_INT, 0, 1, world, &request);
    CALLS(MPI_Ibcast, in, 1, MPI_INT, 0, world, &request);
    CALLS(MPI_Igather, ordinary, 1, MPI_INT, in, 1, MPI_INT, 0, world, &request);
    CALLS(MPI_Iallgatherv, in, 1, MPI_INT, ordinary, &one, &zero, MPI_INT, world, &request);
    CALLS(MPI_Ialltoallw, ordinary, &one, &zero, &type, in, &one, &zero, &type, world, &request);
    CALLS(MPI_Ireduce, ordinary, in, 1, MPI_INT, MPI_SUM, 0, world, &request);
    CALLS(MPI_Iallreduce, in, ordinary, 1, MPI_INT, MPI_SUM, world, &request);
    CALLS(MPI_Neighbor_alltoall, in, 1, MPI_INT, ordinary, 1, MPI_INT, world);
    CALLS(MPI_Buffer_attach, in, 1024);
    CALLS(MPI_File_iread_at, MPI_FILE_NULL, 0, in, 1, MPI_INT, &request);
    CALLS(MPI_Win_create, in, 64, 1, MPI_INFO_NULL, world, &window);
    /* Refused before MPI sees the missing window: with threads, Open MPI has none. */
    CALLS(MPI_Put, in, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_WIN_NULL);
    CALLS(MPI_Get, in, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_WIN_NULL);
    CALLS(MPI_Accumulate, in, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, MPI_WIN_NULL);
    CALLS(MPI_Fetch_and_op, ordinary, in, MPI_INT, 0, 0, MPI_SUM, MPI_WIN_NULL);
#undef CALLS
    if (strcmp(call, "bottom") == 0) {
        MPI_Get_address(in, &address);
        MPI_Type_create_hindexed(1, &one, &address, MPI_INT, &type);
        MPI_Type_commit(&type);
        MPI_Isend(MPI_BOTTOM, 1, type, 0, 1, world, &request);
    }
}

int main(int argc, char **argv) {
    const char *call = argv[1];
    char *in;
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) return 1;
    CHECK(vgasnet_attach(NULL, 0, strcmp(call, "memory") == 0 ? 64 << 20 : 1 << 20, 0) == VGASNET_OK);
    in = (char *)at(vgasnet_mynode(), 4096);
    printf("address %p\n", (void *)in);
    fflush(stdout);
    if (strcmp(call, "partly") == 0) MPI_Send(in + (1 << 20) - 8192, 4096, MPI_INT, 0, 1, MPI_COMM_SELF);
    if (strcmp(call, "memory") == 0) {
        MPI_Bcast(in, 1 << 20, MPI_CHAR, 0, MPI_COMM_SELF);
        has_no_memory = 1;
        MPI_Bcast(in, 32 << 20, MPI_CHAR, 0, MPI_COMM_SELF);
    }
    refused(call, in);
    printf("the call returned\n");
    vgasnet_exit(0);
    return 0;
}
