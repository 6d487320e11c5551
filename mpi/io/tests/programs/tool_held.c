/* A tool loaded after the library. Rank 1 is held between MPI's open of a file and the library's next step, until
 * another handle caches the file, and then until other ranks of its own have written the file, or a second is over. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "waiting.inc"

int MPI_File_open(MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *file) {
    int code = PMPI_File_open(comm, name, mode, info, file), rank, ranks;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank), PMPI_Comm_size(comm, &ranks);
    if (rank == 1 && (mode & MPI_MODE_CREATE)) {
        if (!wait_for_mark(name, ".owned", 60)) abort();
        wait_for_mark(name, ".written", 1);
    }
    return code;
}
