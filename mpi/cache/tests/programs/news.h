/* Ways, besides windows, by which the reader learns of the write. All ranks call each of them when the write is
 * complete; when it returns at the reader, the reader has been told. */
#include "common.h"
#include <unistd.h>

enum { OWNER, THIRD, READER };

struct way {
    const char *name;
    void (*tell)(int writer);
};

static MPI_Comm ring, graph;
static MPI_File file;
static int number, tens[3], threes[9], counts[3] = {1, 1, 1}, places[3] = {0, 1, 2}, bytes[3] = {0, 4, 8};
static MPI_Datatype types[3];

/* ---- messages ---- */
#define SENT(hear)                                                                                   \
    do {                                                                                             \
        if (rank == writer) MPI_Send(&number, 1, MPI_INT, READER, 1, MPI_COMM_WORLD);                \
        if (rank == READER) {                                                                        \
            MPI_Request request = MPI_REQUEST_NULL;                                                  \
            int flag = 0, done = 0, at[1];                                                           \
          (void)flag, (void)done, (void)at, (void)request;                                                        \
            hear;                                                                                    \
        }                                                                                            \
    } while (0)
static MPI_Status status_of_one;
#define IRECV MPI_Irecv(&number, 1, MPI_INT, writer, 1, MPI_COMM_WORLD, &request)
#define NONE MPI_STATUS_IGNORE
#define NONES &status_of_one

static void recv_(int writer) { SENT(MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, NONE)); }
static void wait_(int writer) { SENT(IRECV; MPI_Wait(&request, NONE)); }
static void waitall_(int writer) { SENT(IRECV; MPI_Waitall(1, &request, NONES)); }
static void waitany_(int writer) { SENT(IRECV; MPI_Waitany(1, &request, &done, NONE)); }
static void waitsome_(int writer) { SENT(IRECV; MPI_Waitsome(1, &request, &done, at, NONES)); }
static void test_(int writer) { SENT(IRECV; while (!flag) MPI_Test(&request, &flag, NONE)); }
static void testall_(int writer) { SENT(IRECV; while (!flag) MPI_Testall(1, &request, &flag, NONES)); }
static void testany_(int writer) { SENT(IRECV; while (!flag) MPI_Testany(1, &request, &done, &flag, NONE)); }
static void testsome_(int writer) { SENT(IRECV; while (done < 1) MPI_Testsome(1, &request, &done, at, NONES)); }
static void persistent(int writer) {
    SENT(MPI_Recv_init(&number, 1, MPI_INT, writer, 1, MPI_COMM_WORLD, &request); MPI_Start(&request); MPI_Wait(&request, NONE);
         MPI_Request_free(&request));
}

/* For these, the message itself is received later. */
static MPI_Request left = MPI_REQUEST_NULL;
static MPI_Message message = MPI_MESSAGE_NULL;
static int is_left;
static void status_(int writer) {
    SENT(IRECV; while (!flag) MPI_Request_get_status(request, &flag, NONE); left = request);
}
#if MPI_VERSION < 4 || (MPI_VERSION == 4 && MPI_SUBVERSION < 1)
/* Of MPI 4.1, in the tool. */
int MPI_Request_get_status_all(int count, const MPI_Request requests[], int *flag, MPI_Status statuses[]);
int MPI_Request_get_status_any(int count, const MPI_Request requests[], int *index, int *flag, MPI_Status *status);
int MPI_Request_get_status_some(int count, const MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]);
#endif
static void status_all_(int writer) {
    SENT(IRECV; while (!flag) MPI_Request_get_status_all(1, &request, &flag, NONES); left = request);
}
static void status_any_(int writer) {
    SENT(IRECV; while (!flag) MPI_Request_get_status_any(1, &request, &done, &flag, NONE); left = request);
}
static void status_some_(int writer) {
    SENT(IRECV; while (done < 1) MPI_Request_get_status_some(1, &request, &done, at, NONES); left = request);
}
static void probe_(int writer) { SENT(MPI_Probe(writer, 1, MPI_COMM_WORLD, NONE); is_left = 1); }
static void iprobe_(int writer) { SENT(while (!flag) MPI_Iprobe(writer, 1, MPI_COMM_WORLD, &flag, NONE); is_left = 1); }
static void mprobe_(int writer) { SENT(MPI_Mprobe(writer, 1, MPI_COMM_WORLD, &message, NONE)); }
static void improbe_(int writer) { SENT(while (!flag) MPI_Improbe(writer, 1, MPI_COMM_WORLD, &flag, &message, NONE)); }
static void mrecv_(int writer) {
    SENT(MPI_Mprobe(writer, 1, MPI_COMM_WORLD, &message, NONE); MPI_Mrecv(&number, 1, MPI_INT, &message, NONE));
}

/* Both send and receive. */
static void sendrecv_(int writer) {
    int other = rank == READER ? writer : READER;
    if (rank == READER || rank == writer)
        MPI_Sendrecv(&number, 1, MPI_INT, other, 2, &tens[0], 1, MPI_INT, other, 2, MPI_COMM_WORLD, NONE);
}
static void sendrecv_replace_(int writer) {
    int other = rank == READER ? writer : READER;
    if (rank == READER || rank == writer) MPI_Sendrecv_replace(&number, 1, MPI_INT, other, 2, other, 2, MPI_COMM_WORLD, NONE);
}
/* The writer's receive, which begins after the write, completes the reader's send. */
static void ssend_(int writer) {
    if (rank == writer) MPI_Recv(&number, 1, MPI_INT, READER, 3, MPI_COMM_WORLD, NONE);
    if (rank == READER) MPI_Ssend(&number, 1, MPI_INT, writer, 3, MPI_COMM_WORLD);
}
static void issend_(int writer) {
    MPI_Request request;
    if (rank == writer) MPI_Recv(&number, 1, MPI_INT, READER, 3, MPI_COMM_WORLD, NONE);
    if (rank == READER) MPI_Issend(&number, 1, MPI_INT, writer, 3, MPI_COMM_WORLD, &request), MPI_Wait(&request, NONE);
}

/* ---- collectives: each carries something from the writer to the reader ---- */
#define WORLD MPI_COMM_WORLD
#define ONE &number, 1, MPI_INT
#define EACH tens, 1, MPI_INT
#define EACHV tens, counts, places, MPI_INT
#define EACHW tens, counts, bytes, types
#define OUTV threes, counts, places, MPI_INT
#define OUTW threes, counts, bytes, types
#define COLLECTIVE(name, call) \
    static void name(int writer) { (void)writer; call; }
#define LATER(name, call)                 \
    static void name(int writer) {        \
        MPI_Request request;              \
        (void)writer;                     \
        call;                             \
        MPI_Wait(&request, NONE);         \
    }
COLLECTIVE(barrier_, MPI_Barrier(WORLD))
COLLECTIVE(bcast_, MPI_Bcast(ONE, writer, WORLD))
COLLECTIVE(gather_, MPI_Gather(ONE, EACH, READER, WORLD))
COLLECTIVE(gatherv_, MPI_Gatherv(ONE, EACHV, READER, WORLD))
COLLECTIVE(scatter_, MPI_Scatter(EACH, ONE, writer, WORLD))
COLLECTIVE(scatterv_, MPI_Scatterv(EACHV, ONE, writer, WORLD))
COLLECTIVE(allgather_, MPI_Allgather(ONE, EACH, WORLD))
COLLECTIVE(allgatherv_, MPI_Allgatherv(ONE, EACHV, WORLD))
COLLECTIVE(alltoall_, MPI_Alltoall(threes, 1, MPI_INT, EACH, WORLD))
COLLECTIVE(alltoallv_, MPI_Alltoallv(OUTV, EACHV, WORLD))
COLLECTIVE(alltoallw_, MPI_Alltoallw(OUTW, EACHW, WORLD))
COLLECTIVE(reduce_, MPI_Reduce(&number, tens, 1, MPI_INT, MPI_SUM, READER, WORLD))
COLLECTIVE(allreduce_, MPI_Allreduce(&number, tens, 1, MPI_INT, MPI_SUM, WORLD))
COLLECTIVE(reduce_scatter_, MPI_Reduce_scatter(threes, tens, counts, MPI_INT, MPI_SUM, WORLD))
COLLECTIVE(reduce_scatter_block_, MPI_Reduce_scatter_block(threes, tens, 1, MPI_INT, MPI_SUM, WORLD))
COLLECTIVE(scan_, MPI_Scan(&number, tens, 1, MPI_INT, MPI_SUM, WORLD))
COLLECTIVE(exscan_, MPI_Exscan(&number, tens, 1, MPI_INT, MPI_SUM, WORLD))
COLLECTIVE(neighbor_allgather_, MPI_Neighbor_allgather(ONE, threes, 1, MPI_INT, ring))
COLLECTIVE(neighbor_alltoall_, MPI_Neighbor_alltoall(tens, 1, MPI_INT, threes, 1, MPI_INT, ring))
COLLECTIVE(neighbor_allgatherv_, MPI_Neighbor_allgatherv(ONE, OUTV, graph))
COLLECTIVE(neighbor_alltoallv_, MPI_Neighbor_alltoallv(OUTV, EACHV, graph))
LATER(ibarrier_, MPI_Ibarrier(WORLD, &request))
LATER(ibcast_, MPI_Ibcast(ONE, writer, WORLD, &request))
LATER(igather_, MPI_Igather(ONE, EACH, READER, WORLD, &request))
LATER(iallreduce_, MPI_Iallreduce(&number, tens, 1, MPI_INT, MPI_SUM, WORLD, &request))
LATER(ialltoallw_, MPI_Ialltoallw(OUTW, EACHW, WORLD, &request))
LATER(ineighbor_allgather_, MPI_Ineighbor_allgather(ONE, threes, 1, MPI_INT, ring, &request))

/* ---- communicators: creating one involves all ranks ---- */
#define MADE(name, call)                  \
    static void name(int writer) {        \
        MPI_Comm made;                    \
        (void)writer;                     \
        call;                             \
        MPI_Comm_free(&made);             \
    }
MADE(comm_dup_, MPI_Comm_dup(WORLD, &made))
MADE(comm_split_, MPI_Comm_split(WORLD, 0, rank, &made))
MADE(comm_split_type_, MPI_Comm_split_type(WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made))

/* ---- files ---- */
static void file_read_all(int writer) {
    (void)writer;
    MPI_File_read_at_all(file, 0, tens, 1, MPI_INT, NONE);
    MPI_File_read_ordered(file, tens, 1, MPI_INT, NONE);
}

/* The writer makes the file longer. Its completion may need the reader in MPI, which finds no message there. */
static void file_seek_(int writer) {
    int is_found;
    static MPI_Offset bytes_before = 4;
    MPI_Offset bytes_now = 0;
    if (rank == writer) MPI_File_write_at(file, bytes_before, &number, 1, MPI_INT, NONE);
    bytes_before += 4;
    while (rank == READER && bytes_now < bytes_before) {
        MPI_File_seek(file, 0, MPI_SEEK_END);
        MPI_File_get_position(file, &bytes_now);
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &is_found, NONE);
    }
}

#define WAY(name) {#name, name}
static const struct way ways[] = {
    WAY(recv_), WAY(wait_), WAY(waitall_), WAY(waitany_), WAY(waitsome_), WAY(test_), WAY(testall_), WAY(testany_), WAY(testsome_),
    WAY(persistent), WAY(status_), WAY(status_all_), WAY(status_any_), WAY(status_some_), WAY(probe_), WAY(iprobe_), WAY(mprobe_), WAY(improbe_), WAY(mrecv_), WAY(sendrecv_),
    WAY(sendrecv_replace_), WAY(ssend_), WAY(issend_), WAY(barrier_), WAY(bcast_), WAY(gather_), WAY(gatherv_), WAY(scatter_),
    WAY(scatterv_), WAY(allgather_), WAY(allgatherv_), WAY(alltoall_), WAY(alltoallv_), WAY(alltoallw_), WAY(reduce_), WAY(allreduce_),
    WAY(reduce_scatter_), WAY(reduce_scatter_block_), WAY(scan_), WAY(exscan_), WAY(neighbor_allgather_), WAY(neighbor_alltoall_),
    WAY(neighbor_allgatherv_), WAY(neighbor_alltoallv_), WAY(ibarrier_), WAY(ibcast_), WAY(igather_), WAY(iallreduce_),
    WAY(ialltoallw_), WAY(ineighbor_allgather_), WAY(comm_dup_), WAY(comm_split_), WAY(comm_split_type_), WAY(file_read_all), WAY(file_seek_)};
enum { WAYS = sizeof ways / sizeof *ways };

static void prepare_ways(const char *path) {
    int all = 3, is_ring = 1, others[2] = {(rank + 1) % 3, (rank + 2) % 3};
    for (int i = 0; i < 3; ++i) types[i] = MPI_INT;
    MPI_Cart_create(WORLD, 1, &all, &is_ring, 0, &ring);
    MPI_Dist_graph_create_adjacent(WORLD, 2, others, counts, 2, others, counts, MPI_INFO_NULL, 0, &graph);
    CHECK(MPI_File_open(WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file) == MPI_SUCCESS);
    MPI_File_set_size(file, 0);
    number = 0;
    if (rank == 0) MPI_File_write_at(file, 0, &number, 1, MPI_INT, NONE);
    MPI_File_sync(file);
}

/* Receives the messages left by a way. */
static void end_way(int writer) {
    if (rank != READER) return;
    if (left != MPI_REQUEST_NULL) MPI_Wait(&left, NONE);
    if (message != MPI_MESSAGE_NULL) MPI_Mrecv(&number, 1, MPI_INT, &message, NONE);
    if (is_left) MPI_Recv(&number, 1, MPI_INT, writer, 1, WORLD, NONE);
    is_left = 0;
}

static void end_ways(void) {
    MPI_File_close(&file);
    MPI_Comm_free(&ring);
    MPI_Comm_free(&graph);
}
