"""Programs of all ranks: each checks its results, and ends with status 0."""

import pytest

from conftest import conduit

RANKS = [1, 4] if conduit() == "smp" else [2]


@pytest.mark.parametrize("ranks", RANKS)
def test_arrays_larger_than_the_pool(run, ranks):
    run("arrays.py", ranks=ranks)


@pytest.mark.parametrize("ranks", RANKS)
def test_transfers(run, ranks):
    run("transfers.py", ranks=ranks)


def test_transfers_between_ranks_that_do_not_share_memory(run):
    run("transfers.py", ranks=3, VGASNET_PEER_MEMORY="0")


def test_active_messages(run):
    run("messages.py", ranks=3)


def test_messages_that_come_when_the_interpreter_has_gone(run):
    ended = run("late_messages.py", ranks=3)
    assert ended.stderr == ""


def test_threads_that_fault_get_and_handle_messages(run):
    run("threads.py", ranks=2)


def test_a_wait_that_a_signal_ends_can_be_done_again(run):
    run("interrupted.py", ranks=2)


@pytest.mark.parametrize("ranks", [1, 4])
def test_collectives(run, ranks):
    run("collectives.py", ranks=ranks)


def test_shared_files(run, tmp_path):
    run("files.py", str(tmp_path / "shared"), ranks=3)


def test_statistics(run):
    ended = run("counters.py", ranks=2, VGASNET_STATS="1")
    assert "hit" in ended.stderr + ended.stdout
    run("counters.py", ranks=1)


@pytest.mark.parametrize("ranks", [1, 2, 4] if conduit() == "smp" else [2])
def test_the_example(run, ranks, tmp_path):
    ended = run("examples/python/out_of_core.py", str(tmp_path / "shared"), "8", ranks=ranks)
    assert ended.stdout == f"{ranks} ranks, 8 MiB each: all is right\n"
    assert not (tmp_path / "shared").exists()


@pytest.mark.parametrize("ranks", [1, 2] if conduit() == "smp" else [2])
def test_the_example_of_an_array_larger_than_memory(run, ranks):
    ended = run("examples/python/larger_than_memory.py", "32", ranks=ranks)
    lines = sorted(ended.stdout.splitlines())
    assert [line.split(";")[0] for line in lines] == [
        f"rank {rank}: numpy array of 32 MiB, sum 12570624 is right" for rank in range(ranks)
    ]
