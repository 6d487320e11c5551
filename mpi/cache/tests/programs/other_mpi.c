#include "../../../io/tests/programs/other_mpi.c"
