/* Stands between the library and MPI, and gives MPI another name. */
#include <mpi.h>
#include <stdio.h>

int MPI_Get_library_version(char *text, int *bytes) {
#ifdef OPEN_MPI
    *bytes = snprintf(text, MPI_MAX_LIBRARY_VERSION_STRING, "MPICH Version: 9");
#else
    *bytes = snprintf(text, MPI_MAX_LIBRARY_VERSION_STRING, "Open MPI v9");
#endif
    return MPI_SUCCESS;
}
