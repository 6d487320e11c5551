/* R8: in mode told a reader sees all writes of which it was told, by any way to write; and it hits if nobody wrote. */
#include "common.h"

static long *memory;
static MPI_Win win;
static long now;

enum { AT = 3, LONGS = 32 };

static void tell(int to) { MPI_Send(NULL, 0, MPI_BYTE, to, 1, MPI_COMM_WORLD); }
static void hear(int from) { MPI_Recv(NULL, 0, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }

static void get(long *to, int target, int at, int count) {
    MPI_Get(to, count, MPI_LONG, target, at, count, MPI_LONG, win);
}

/* Rank 1 writes to rank 0, in each way, and tells rank 2, which reads; then rank 2 hits. */
static void read_all(int how) {
    long value = -1, again = -1;
    if (how & 1) MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win); else MPI_Win_lock_all(0, win);
    get(&value, 0, AT, 1);
    MPI_Win_flush(0, win);
    EQUAL(value, now);
    tool_gets = 0;
    get(&again, 0, AT, 1);
    MPI_Win_flush(0, win);
    get(&again, 0, AT, 1);
    MPI_Win_flush_local(0, win);
    EQUAL(again, now);
    EQUAL(tool_gets, 0);
    if (how & 1) MPI_Win_unlock(0, win); else MPI_Win_unlock_all(win);
}

static void write_one(int how) {
    long one = 1, result, value = now;
    MPI_Request request;
    int is_all = how == 1 || how == 2 || how == 8;
    if (is_all) MPI_Win_lock_all(0, win); else MPI_Win_lock(how == 3 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, win);
    switch (how) {
    default: MPI_Put(&value, 1, MPI_LONG, 0, AT, 1, MPI_LONG, win); break;
    case 4: MPI_Accumulate(&one, 1, MPI_LONG, 0, AT, 1, MPI_LONG, MPI_SUM, win); break;
    case 5: MPI_Fetch_and_op(&one, &result, MPI_LONG, 0, AT, MPI_SUM, win); break;
    case 6: MPI_Get_accumulate(&one, 1, MPI_LONG, &result, 1, MPI_LONG, 0, AT, 1, MPI_LONG, MPI_SUM, win); break;
    case 7:
        MPI_Rput(&value, 1, MPI_LONG, 0, AT, 1, MPI_LONG, win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    }
    if (how == 0) MPI_Win_flush(0, win);
    if (how == 1) MPI_Win_flush_all(win);
    if (how == 2) {
        MPI_Win_flush_local(0, win);
        MPI_Win_flush(0, win);
    }
    /* The flush alone tells. */
    if (how < 3) {
        tell(2);
        hear(2);
    }
    if (is_all) MPI_Win_unlock_all(win); else MPI_Win_unlock(0, win);
    if (how >= 3) {
        tell(2);
        hear(2);
    }
}

static void passive(void) {
    for (int how = 0; how < 9; ++how) {
        ++now;
        if (rank == 1) {
            write_one(how);
        } else if (rank == 2) {
            hear(1);
            read_all(how);
            tell(1);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A completion ends a reader's knowledge within an epoch, whether it calls MPI or is saved. */
static void within_an_epoch(void) {
    long value = -1;
    if (rank != 0) MPI_Win_lock_all(0, win);
    for (int round = 0; round < 6; ++round) {
        if (rank == 1) {
            hear(2);
            ++now;
            MPI_Put(&now, 1, MPI_LONG, 0, AT, 1, MPI_LONG, win);
            MPI_Win_flush(0, win);
            tell(2);
        } else if (rank == 2) {
            for (int i = 0; i <= round % 2; ++i) {
                get(&value, 0, AT, 1);
                if (round < 4) MPI_Win_flush(0, win); else MPI_Win_flush_local_all(win);
                EQUAL(value, now);
            }
            tell(1);
            hear(1);
            ++now;
        }
    }
    if (rank != 0) MPI_Win_unlock_all(win);
    if (rank == 0) now += 6;
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The owner's stores: told by sync, by unlocking itself, or by unlocking all. */
static void stores(void) {
    for (int twice = 0; twice < 6; ++twice) {
        int how = twice / 2;
        ++now;
        if (rank == 0) {
            if (how == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win); else MPI_Win_lock_all(0, win);
            memory[AT] = now;
            if (how == 0) {
                MPI_Win_sync(win);
                tell(2);
                hear(2);
            }
            if (how == 1) MPI_Win_unlock(0, win); else MPI_Win_unlock_all(win);
            if (how != 0) {
                tell(2);
                hear(2);
            }
        } else if (rank == 2) {
            hear(0);
            read_all(how);
            tell(0);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Puts and stores between fences. */
static void fences(void) {
    long value;
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    for (int how = 0; how < 4; ++how) {
        int is_put = how % 2 == 0;
        value = -1;
        if (rank == 2) get(&value, 0, AT, 1);
        MPI_Win_fence(how == 2 ? MPI_MODE_NOSTORE : 0, win);
        if (rank == 2) EQUAL(value, now);
        ++now;
        if (rank == 1 && is_put) MPI_Put(&now, 1, MPI_LONG, 0, AT, 1, MPI_LONG, win);
        if (rank == 0 && !is_put) memory[AT] = now;
        MPI_Win_fence(is_put ? MPI_MODE_NOSTORE : 0, win);
    }
    /* A fence may come with writes by any rank: nothing is kept. */
    value = -1;
    if (rank == 2) get(&value, 0, AT, 1);
    MPI_Win_fence(MPI_MODE_NOSTORE, win);
    if (rank == 2) EQUAL(value, now);
    tool_gets = 0;
    if (rank == 2) get(&value, 0, AT, 1);
    EQUAL(tool_gets, rank == 2);
    MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOSUCCEED, win);
}

/* Rank 0 is the target of an origin's puts, and stores before it posts. */
static void groups(void) {
    MPI_Group world, zero, readers, writer;
    int of_zero = 0, of_reader = 2, of_writer = 1;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &of_zero, &zero);
    MPI_Group_incl(world, 1, &of_reader, &readers);
    MPI_Group_incl(world, 1, &of_writer, &writer);
    for (int round = 0; round < 3; ++round) {
        long value = -1;
        ++now;
        if (rank == 0) {
            /* Rank 1 puts, and this rank tells of the put; or this rank stores, and rank 2 sees the store when it
             * starts. */
            if (round == 1) {
                memory[AT] = now;
            } else {
                MPI_Win_post(writer, MPI_MODE_NOSTORE, win);
                if (round == 0) MPI_Win_wait(win);
                for (int is_over = round == 0; !is_over;) MPI_Win_test(win, &is_over);
                tell(2);
            }
            MPI_Win_post(readers, round == 1 ? 0 : MPI_MODE_NOSTORE | MPI_MODE_NOPUT, win);
            MPI_Win_wait(win);
        } else if (rank == 1 && round != 1) {
            MPI_Win_start(zero, 0, win);
            MPI_Put(&now, 1, MPI_LONG, 0, AT, 1, MPI_LONG, win);
            MPI_Win_complete(win);
        } else if (rank == 2) {
            if (round != 1) hear(0);
            MPI_Win_start(zero, 0, win);
            get(&value, 0, AT, 1);
            MPI_Win_complete(win);
            EQUAL(value, now);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Group_free(&zero);
    MPI_Group_free(&readers);
    MPI_Group_free(&writer);
    MPI_Group_free(&world);
}

/* A counter under a lock: only the lock tells of writes. */
static void counter(void) {
    enum { ROUNDS = 60 };
    for (int round = 0; round < ROUNDS; ++round) {
        long value;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        get(&value, 0, LONGS - 1, 1);
        MPI_Win_flush(0, win);
        if (rank == 0) {
            memory[LONGS - 1] = value + 1;
        } else {
            ++value;
            MPI_Put(&value, 1, MPI_LONG, 0, LONGS - 1, 1, MPI_LONG, win);
        }
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        EQUAL(memory[LONGS - 1], LONGS - 1 + ROUNDS * (long)ranks);
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK(ranks == 3);
    win = make_window(&memory, LONGS, argv[1]);
    /* The library's window and the program's. */
    EQUAL(tool_allocates, 2);
    now = AT;
    passive();
    within_an_epoch();
    stores();
    fences();
    groups();
    counter();
    MPI_Win_free(&win);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
