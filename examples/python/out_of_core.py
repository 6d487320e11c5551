#!/usr/bin/env python3
"""NumPy arrays larger than the pool, filled and summed in place. Ranks get and put blocks of neighbours, send messages,
reduce a sum, and share a file. Everything is checked.

usage: out_of_core.py FILE [MIB]

MIB (64) is the size of each rank's array. FILE is created, and removed at the end.
"""
import os
import sys

import numpy as np

import vgasnet

BLOCK = 4096  # words
greetings = []
answers = []


@vgasnet.medium
def greet(message, sender):
    """Runs at the receiver: records the message and answers."""
    greetings.append((sender, int(message.array(np.int64).sum())))
    message.reply(answer, sender)


@vgasnet.short
def answer(message, sender):
    answers.append((message.source, sender))


def words_of(rank, start, count):
    """The initial words of a rank's array, starting at a place."""
    return rank * 1_000_000_007 + np.arange(start, start + count, dtype=np.int64)


def sum_of(rank, count):
    return count * rank * 1_000_000_007 + count * (count - 1) // 2


def check(what, value, expected):
    if value != expected:
        sys.exit(f"out_of_core.py: rank {vgasnet.rank()}: {what} is {value} and should be {expected}")


def get_and_put(mine, rank, next_rank):
    """Gets the next rank's last block while computing a sum, puts a block to its first words, and increments a shared word."""
    there, count = vgasnet.segment(next_rank), mine.size
    block = np.empty(BLOCK, np.int64)
    with there.get_nb(mine.nbytes - block.nbytes, block):
        check("the sum", int(mine.sum()), sum_of(rank, count))
    check("the last block of the next rank", bool((block == words_of(next_rank, count - BLOCK, BLOCK)).all()), True)
    first = there.get(0, BLOCK, np.int64)
    vgasnet.barrier()

    there.put(0, -first)
    vgasnet.barrier()
    check("a word that was put", int(mine[1]), -int(words_of(rank, 1, 1)[0]))
    mine[:BLOCK] *= -1
    last = mine.nbytes - 8
    vgasnet.segment(0).fetch_add(last, 1)
    vgasnet.barrier()
    if rank == 0:
        check("the number that all count up", int(mine[-1]), int(words_of(0, count - 1, 1)[0]) + vgasnet.size())
        mine[-1] -= vgasnet.size()
    vgasnet.barrier()


def share_file(path, mine, rank, next_rank):
    """Writes a block of this rank's segment to the file, and reads the next rank's block."""
    block = mine[:BLOCK]
    with vgasnet.File(path, "w+") as file:
        file.write_at(rank * block.nbytes, block)
        vgasnet.barrier()
        got = np.frombuffer(file.read_at(next_rank * block.nbytes, block.nbytes), np.int64)
        check("what the next rank has written", bool((got == words_of(next_rank, 0, BLOCK)).all()), True)
        check("the size of the file", file.size(), vgasnet.size() * block.nbytes)
    if rank == 0:
        os.remove(path)


def main():
    words = sys.argv[1:]
    mib = words[1] if len(words) == 2 else "64"
    if not 1 <= len(words) <= 2 or words[0] == "--help" or not mib.isdecimal() or int(mib) == 0:
        sys.exit(__doc__)
    vgasnet.start(int(mib) << 20, [greet, answer])
    rank, ranks = vgasnet.rank(), vgasnet.size()
    next_rank = (rank + 1) % ranks

    mine = vgasnet.array(np.int64)
    part = 1 << 16
    for start in range(0, mine.size, part):
        mine[start : start + part] = words_of(rank, start, part)
    vgasnet.barrier()
    get_and_put(mine, rank, next_rank)

    vgasnet.request(next_rank, greet, rank, payload=words_of(rank, 0, 16))
    vgasnet.wait_until(lambda: greetings and answers)
    previous = (rank - 1) % ranks
    check("the greeting", greetings, [(previous, sum_of(previous, 16))])
    check("the answer", answers, [(next_rank, rank)])

    total = vgasnet.WORLD.reduce_all(np.array([mine.sum(), 1]))
    check("the sum over all ranks", total.tolist(), [sum(sum_of(each, mine.size) for each in range(ranks)), ranks])
    share_file(words[0], mine, rank, next_rank)
    if rank == 0:
        print(f"{ranks} ranks, {mib} MiB each: all is right")


main()
