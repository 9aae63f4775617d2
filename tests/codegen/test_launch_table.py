from dataclasses import replace

import pytest

from tilec.codegen.launch_table import Argument, Launch, PointerTable, waits


def launch(reads, writes, space="arena"):
    """A launch that reads and writes the byte ranges (start, end) of the arena."""
    return Launch(
        "k",
        tuple(Argument(space, 0, lo, hi - lo) for lo, hi in reads)
        + tuple(Argument(space, 0, lo, hi - lo, True) for lo, hi in writes),
        8,
    )


def test_reads_after_writes_wait():
    assert waits([launch([], [(0, 64)]), launch([(32, 64)], [(64, 128)])]) == [(), (0,), (1,)]


def test_writes_after_reads_and_after_writes_wait():
    reader, writer = launch([(0, 64)], [(64, 128)]), launch([], [(0, 64)])
    assert waits([reader, writer])[1] == (0,)
    assert waits([writer, writer])[1] == (0,)


def test_independent_launches_run_side_by_side():
    a, b = launch([(0, 64)], [(64, 128)]), launch([(0, 64)], [(128, 192)])
    assert waits([a, b]) == [(), (), (1, 0)]


def test_touching_ranges_do_not_overlap():
    assert waits([launch([], [(0, 64)]), launch([(64, 128)], [(128, 192)])])[1] == ()


def test_other_tensors_and_spaces_do_not_conflict():
    writer = Launch("k", (Argument("output", 0, 0, 64, True),), 1)
    assert not Launch("k", (Argument("output", 1, 0, 64),), 1).depends_on(writer)
    assert not Launch("k", (Argument("input", 0, 0, 64),), 1).depends_on(writer)


def test_what_another_wait_implies_is_left_out():
    chain = [launch([], [(0, 64)]), launch([(0, 64)], [(64, 128)]), launch([(0, 64), (64, 128)], [(128, 192)])]
    assert waits(chain) == [(), (0,), (1,), (2,)]


def test_end_waits_for_every_launch_that_nobody_waited_for():
    assert waits([launch([], [(64 * k, 64 * k + 64)]) for k in range(3)])[-1] == (2, 1, 0)
    assert waits([]) == [()]


@pytest.mark.parametrize(("tasks", "grain", "width"), [(8, 1, 8), (8, 3, 2), (2, 3, 1), (0, 1, 1)])
def test_width_counts_pieces_of_a_grain(tasks, grain, width):
    assert replace(launch([], []), tasks=tasks, grain=grain).width == width


def test_table_entries_follow_inputs_outputs_constants_arena():
    table = PointerTable(inputs=2, outputs=3, constants=4)
    spaces = [("input", 1), ("output", 2), ("constant", 3), ("arena", 0)]
    assert [table.entry(Argument(space, i, 0, 0)) for space, i in spaces] == [1, 4, 8, 9]
