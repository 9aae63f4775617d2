"""Planned transactions: by hand, and against the runs that a walk over all positions finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.examples import SLOW
from tests.lower.cases import CASES, CPU, DRAM, L2, LANES, REG, SHARED, Case
from tests.lower.runs import Walk
from tests.random_graphs import Case as Random
from tests.random_plans import cases
from tilec.ir.expr import Expr, Var
from tilec.ir.plan import Plan
from tilec.ir.program import Program
from tilec.ir.reads import reads
from tilec.lower.checks.plan_errors import PlanError
from tilec.lower.counts.transactions import transactions
from tilec.lower.lowering import lower

SIZES = {"host": 64, "dram": 32, "l2": 16, "shared": 16, "reg": 4}
LONG = {"convolution with epilogue", "four levels", "threads keep accumulators", "layouts and copies", "attention"}
ONE = (DRAM, REG)
"""Nothing but memory and registers: every read of memory is one of the tile."""


def sized(case: Case, sizes: Mapping[str, int] = SIZES) -> Program:
    return replace(case, levels=tuple(replace(level, transaction=sizes[level.name]) for level in case.levels)).program()


def copied(text: str, inputs: Mapping[str, Sequence[int]], tile: Mapping[str, int], **more: object) -> Case:
    """One node that copies to the cache and computes there, tile by tile."""
    extents: dict[str, int | Expr] = {"m": 12, "n": 20, **more.pop("extents", {})}  # type: ignore[dict-item]
    case = Case([text], extents, inputs, {"l2": {"Y": tile}}, levels=(DRAM, L2))
    return replace(case, **more)  # type: ignore[arg-type]


COPY = "Y[m, n] = X[m, n] * 2.0"
TRANSPOSE = "Y[m, n] = X[n, m] * 2.0"


@pytest.mark.feature("W22")
@pytest.mark.parametrize(
    ("case", "count"),
    [
        # 4 rows of 80 bytes without a gap are one run of 10 transactions; so is what is stored.
        pytest.param(copied(COPY, {"X": (12, 20)}, {"m": 4}), 3 * (10 + 10), id="whole rows are one run"),
        # 5 columns are 20 bytes, one transaction each row.
        pytest.param(copied(COPY, {"X": (12, 20)}, {"n": 5}), 4 * (12 + 12), id="parts of rows are a run each"),
        # Tiles of 9, 9 and 2 columns are 36, 36 and 8 bytes.
        pytest.param(
            copied(COPY, {"X": (12, 20)}, {"n": 9}, more={"tails": {"l2": {"Y": "clip"}}}),
            2 * 12 * (2 + 2 + 1),
            id="a clipped tail is a shorter run",
        ),
        # A row of Y reads a column of X: 20 elements, each of which brings a transaction.
        pytest.param(copied(TRANSPOSE, {"X": (20, 12)}, {"m": 1}), 12 * (20 + 3), id="columns are not coalesced"),
        # Stored the other way round, the column is one run.
        pytest.param(
            copied(TRANSPOSE, {"X": (20, 12)}, {"m": 1}, more={"layouts": {"dram": {"X": (1, 0)}}}),
            12 * (3 + 3),
            id="a layout decides what is innermost",
        ),
        pytest.param(copied(COPY, {"X": (12, 20)}, {}, extents={"n": 0, "m": 12}), 0, id="nothing takes nothing"),
        pytest.param(
            Case(["Y[()] = X[()] * 2.0"], {}, {"X": ()}, levels=(DRAM, L2)), 1 + 1, id="a scalar takes a transaction"
        ),
    ],
)
def test_runs_are_rounded_up(case: Case, count: int) -> None:
    assert sized(case).levels[0].transaction == 32
    assert transactions(sized(case))["dram"] == count


GATHER = {"s": 6, "c": 20}


@pytest.mark.feature("W22")
@pytest.mark.parametrize(
    ("text", "shape", "count"),
    [
        ("Y[s, c] = T[I[s], c]", (7, 20), 6 * 3),  # a row of 80 bytes for each index
        ("Y[s, c] = T[c, I[s]]", (20, 7), 6 * 20),  # an element for each pair
        ("Y[s, c] = T[I[s], 3, c]", (7, 4, 20), 6 * 3),
        ("Y[s, c] = T[3, I[s], c]", (4, 7, 20), 6 * 3),
        ("Y[s, c] = T[I[s] + c, c]", (27, 20), 6 * 20),  # the row depends on the column
        ("Y[s, c] = T[c, I[s], c % 4]", (20, 7, 4), 6 * 20),
    ],
)
def test_data_dependent_reads_take_a_run_for_every_tuple_of_indices(
    text: str, shape: tuple[int, ...], count: int
) -> None:
    case = Case(
        [text], GATHER, {"T": shape, "I": (6,)}, {"l2": {"Y": {"s": 2}}}, levels=(DRAM, L2), ttypes={"I": "i64"}
    )
    read_in_place = sized(replace(case, more={"loads": {"T": (), "I": ()}}))
    indices = 3 * 1  # two of 8 bytes a tile
    assert transactions(read_in_place)["dram"] == count + indices + 3 * 5


def test_a_tile_reads_the_hull_of_its_accesses_once() -> None:
    case = Case(
        ["Y[m] = X[m] + X[m + 1] + X[m + 2] * X[m]"],
        {"m": 24},
        {"X": (26,)},
        {"reg": {"Y": {"m": 8}}},
        levels=ONE,
        more={"loads": {"X": ()}},
    )
    assert transactions(sized(case))["dram"] == 3 * (2 + 1)


@pytest.mark.feature("W22")
def test_units_of_a_core_work_in_step() -> None:
    """Of 16 threads beside each other, four words a transaction; a row that all of them read is read once."""
    case = Case(
        ["Y[m, n] = X[m, n] + b[m]"],
        {"m": 2, "n": 16},
        {"X": (2, 16), "b": (2,)},
        {"shared": {"Y": {"m": 1}}, "reg": {"Y": {"n": 1}}},
        levels=(DRAM, SHARED, LANES),
    )
    # Each of two blocks reads a row in 16 words, one word of b, and stores 16 words into shared memory, from which
    # they are stored on.
    loaded = 2 * (4 + 1)
    assert transactions(sized(case)) == {"dram": 2 * (2 + 1) + 2 * 2, "shared": loaded + 2 * 4, "reg": 0}
    alone = replace(case, levels=(DRAM, replace(SHARED, units=1, scope="block"), LANES))
    assert transactions(sized(alone))["shared"] == 2 * (16 + 16) + 2 * 16


def test_threads_that_read_with_gaps_take_a_transaction_each_where_that_is_less() -> None:
    case = Case(
        ["Y[n] = X[n * 8]"],
        {"n": 4},
        {"X": (32,)},
        {"reg": {"Y": {"n": 1}}},
        levels=(DRAM, SHARED, LANES),
    )
    stored = 1
    assert transactions(sized(case))["shared"] == 4 + stored
    assert transactions(sized(case, {**SIZES, "shared": 64}))["shared"] == 2 + stored


@pytest.mark.feature("W22")
@pytest.mark.parametrize("name", sorted(CASES.keys() - LONG))
def test_a_walk_finds_the_same_runs(name: str) -> None:
    program = sized(CASES[name])
    assert transactions(program) == Walk(program).counts


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=SLOW)
@given(cases(operators=3), st.lists(st.sampled_from((1, 4, 12, 32, 64)), min_size=6, max_size=6))
def test_random_plans_take_no_less_than_a_walk_finds(case: Random, sizes: list[int]) -> None:
    """Rows that are sometimes whole are runs of their own; empty branches may widen a hull."""
    assume(all(None not in read.index for node in case.group.nodes for read in reads(node.expr)))
    program = _program(case, sizes)
    assume(len(program.levels) == 1 or program.levels[-2].units == 1)
    counts, found = transactions(program), Walk(program).counts
    assert all(counts[level] >= found[level] for level in found)


def _program(case: Random, sizes: Sequence[int]) -> Program:
    levels = tuple(replace(level, transaction=n) for level, n in zip(case.plan.levels, sizes, strict=False))
    plan: Plan = replace(case.plan, levels=levels)
    try:
        return lower(case.group, case.variant, plan)
    except PlanError:
        assume(False)
        raise


@pytest.mark.feature("B06")
def test_symbols_need_values() -> None:
    case = Case(["Y[m] = X[m] * 2.0"], {"m": Var("M")}, {"X": (Var("M"),)}, levels=CPU, symbols=("M",))
    assert transactions(sized(case), {"M": 10})["dram"] == 4
    with pytest.raises(KeyError, match="M"):
        transactions(sized(case))


def test_a_large_grid_takes_milliseconds() -> None:
    case = Case(
        ["Y[a, b, c] = X[a, b, c] * 2.0"],
        {"a": 4096, "b": 4096, "c": 64},
        {"X": (4096, 4096, 64)},
        {"l2": {"Y": {"a": 8, "b": 8}}, "reg": {"Y": {"a": 1, "b": 1}}},
    )
    assert transactions(sized(case))["dram"] == 2 * 4096 * 4096 * 64 * 4 // 32
