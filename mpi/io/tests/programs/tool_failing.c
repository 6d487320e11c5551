/* A tool loaded after the library: MPI opens a file, but the last rank is told that it has failed. */
#include <mpi.h>
#include <stdlib.h>

int MPI_File_open(MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *file) {
    int code = PMPI_File_open(comm, name, mode, info, file), rank, ranks;
    PMPI_Comm_rank(comm, &rank), PMPI_Comm_size(comm, &ranks);
    if (getenv("FAILS") == NULL || ranks == 1 || rank < ranks - 1) return code;
    *file = MPI_FILE_NULL;
    return MPI_ERR_IO;
}
