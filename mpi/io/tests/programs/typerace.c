/* Threads that use a new datatype concurrently all find its layout, and none loses it to another. typerace FILE,
 * with late_attributes.c */
#include "common.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { NUMBERS = 500 };

static MPI_File file;
static MPI_Datatype type;
static atomic_int ended;
static void (*arm)(void), (*second_has_ended)(void);

static void *use(void *nothing) {
    int numbers[2 * NUMBERS] = {0};
    OK(MPI_File_read_at(file, 0, numbers, 1, type, MPI_STATUS_IGNORE));
    for (int i = 0; i < NUMBERS; ++i) EQUAL(numbers[2 * i], i), EQUAL(numbers[2 * i + 1], 0);
    if (++ended == 2) second_has_ended();
    return nothing;
}

int main(int argc, char **argv) {
    pthread_t threads[3];
    int numbers[NUMBERS], given, i;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(argc == 2 && ranks == 1);
    arm = (void (*)(void))dlsym(RTLD_DEFAULT, "late_attributes_arm");
    second_has_ended = (void (*)(void))dlsym(RTLD_DEFAULT, "late_attributes_second_has_ended");
    CHECK(arm != NULL && second_has_ended != NULL);
    file = opened(argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR);
    for (i = 0; i < NUMBERS; ++i) numbers[i] = i;
    OK(MPI_File_write_at(file, 0, numbers, NUMBERS, MPI_INT, MPI_STATUS_IGNORE));
    MPI_Type_vector(NUMBERS, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    arm();
    for (i = 0; i < 2; ++i) CHECK(pthread_create(&threads[i], NULL, use, NULL) == 0);
    while (ended < 1) sched_yield();
    CHECK(pthread_create(&threads[2], NULL, use, NULL) == 0);
    for (i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
    MPI_Type_free(&type);
    OK(MPI_File_close(&file));
    finish();
    return 0;
}
