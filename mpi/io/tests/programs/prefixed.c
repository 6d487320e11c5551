/* A name with the prefix of a ROMIO file system, next to the name without the prefix: prefixed DIRECTORY NAME.
 * Prints both files' bytes. */
#include "common.h"
#include <unistd.h>

int main(int argc, char **argv) {
    MPI_File file;
    start(&argc, &argv);
    CHECK(argc == 3 && chdir(argv[1]) == 0);
    const char *other = strchr(argv[2], ':') + 1, *const names[2] = {argv[2], other};
    if (rank == 0) {
        unlink(argv[2]);
        FILE *made = fopen(other, "w");
        CHECK(made != NULL && fputs("PRECIOUS", made) >= 0 && fclose(made) == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_open(MPI_COMM_WORLD, argv[2], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    if (rank == 0) OK(MPI_File_write_at(file, 0, "NEWBYTES", 8, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    for (int which = 0; which < 2 && rank == 0; ++which) {
        char bytes[16] = "";
        FILE *plain = fopen(names[which], "r");
        if (plain != NULL && fgets(bytes, sizeof bytes, plain) != NULL) printf("%s: %s\n", names[which], bytes);
        if (plain != NULL) fclose(plain);
        unlink(names[which]);
    }
    finish();
    return 0;
}
