/* Some ranks of a job have the library, and wait in MPI_Init for the others, which have not. partial FILE
 * Ranks with the library have the file as stderr. Those without end the job once there is a line. */
#include "common.h"
#include <unistd.h>

int main(int argc, char **argv) {
    char line[1000] = "";
    FILE *file;
    const int has_it = getenv("LD_PRELOAD") != NULL;
    if (argc != 2 || (has_it && freopen(argv[1], "a", stderr) == NULL)) return 2;
    start(&argc, &argv);
    CHECK(!has_it);
    while (strchr(line, '\n') == NULL) {
        usleep(10000);
        if ((file = fopen(argv[1], "r")) == NULL) continue;
        if (fgets(line, sizeof line, file) == NULL) line[0] = 0;
        fclose(file);
    }
    MPI_Abort(MPI_COMM_WORLD, 7);
}
