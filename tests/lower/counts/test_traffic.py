"""Planned bytes: the paper's figures, exactness at borders, and the time it takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from work import calls

from tests.lower.cases import CPU, DRAM, GPU, MATMUL, POOLED, SHARED, SOFTMAX, Case
from tilec.ir.expr import Var
from tilec.ir.lifetimes import statements
from tilec.ir.program import LoadTiles
from tilec.ir.traffic import Traffic
from tilec.lower.counts.traffic import traffic
from tilec.machine import execute


def toy(rows: int) -> Case:
    """Matmul and softmax of 98304 x 64 x 128 in shared memory (Welder, section 2)."""
    return Case(
        ["S[m, n] = sum(k, A[m, k] * B[k, n])", *SOFTMAX],
        {"m": 98304, "k": 64, "n": 128},
        {"A": (98304, 64), "B": (64, 128)},
        {"shared": {"R": {"m": rows}}},
        {"shared": {"S": {"k": 16}}},
        levels=(DRAM, SHARED),
    )


@pytest.mark.feature("W07")
@pytest.mark.parametrize(("rows", "mebibytes"), [(4, 840), (16, 264)])
def test_the_papers_toy(rows: int, mebibytes: int) -> None:
    moved = traffic(toy(rows).program())["shared"]
    assert moved.read + moved.written == mebibytes << 20
    assert moved.written == 98304 * 128 * 4


@pytest.mark.feature("W07")
def test_a_large_convolution_takes_milliseconds() -> None:
    inside = "0 <= h+r-1 and h+r-1 < 8192 and 0 <= w+s-1 and w+s-1 < 8192"
    case = Case(
        [f"C[h, w, f] = sum(r, s, c, where({inside}, I[h+r-1, w+s-1, c], 0.0) * W[r, s, c, f])"],
        {"h": 8192, "w": 8192, "f": 64, "r": 3, "s": 3, "c": 64},
        {"I": (8192, 8192, 64), "W": (3, 3, 64, 64)},
        {"l2": {"C": {"h": 16, "w": 128}}, "reg": {"C": {"h": 1, "w": 14, "f": 32}}},
        {"reg": {"C": {"r": 1, "s": 1}}},
    )
    program = case.program()
    assert calls(lambda: traffic(program)) < 20_000
    moved = traffic(program)["l2"]
    tiles = 512 * 64
    # Every tile reads its rows and columns with a halo of one on each side, except at the four borders.
    rows, columns = 512 * 18 - 2, 64 * 130 - 2
    assert moved == Traffic((rows * columns * 64 + tiles * 3 * 3 * 64 * 64) * 4, 8192 * 8192 * 64 * 4)


def test_outputs_are_written_once() -> None:
    """Whatever overlaps: shifted tails, halos of intermediate outputs, loops that do not move an output."""
    case = replace(POOLED, outputs=("P", "L", "C"))
    assert traffic(case.program())["l2"].written == (7 * 7 * 16 + 2 * 13 * 13 * 16) * 4
    assert traffic(MATMUL.program())["l2"].written == 50 * 40 * 4


@pytest.mark.feature("W05", "W07")
def test_what_data_index_is_read_where_it_lies() -> None:
    """Rows of a table: index tuples x run; the machine counts less where rows repeat."""
    case = Case(
        ["Y[b, s, c] = T[I[b, s] + 1, c // 2, c % 2] * V[s, I[b, s]]"],
        {"b": 2, "s": 6, "c": 8},
        {"T": (40, 4, 2), "V": (6, 9), "I": (2, 6)},
        {"l2": {"Y": {"s": 3}}, "reg": {"Y": {"s": 1}}},
        ttypes={"I": "i64"},
    )
    program = case.program()
    loaded = {s.target for s in statements(program.body) if isinstance(s, LoadTiles)}
    assert loaded == {"I_l2", "I_reg"}
    planned = traffic(program)
    # In registers a tile is two rows of one s: two tuples for V; two tuples and a run of (4, 2) for T.
    assert planned["l2"].read == 12 * 8 + 6 * (2 * 8 + 2) * 4
    arrays = {**case.arrays(), "I": np.zeros((2, 6), np.int64)}
    arrays["I"][1, 3:] = 1
    moved = execute(program, arrays).moved
    assert moved["reg"].read < planned["reg"].read
    assert moved["l2"].written == planned["l2"].written
    # Two rows are one where the indices of both agree.
    assert moved["l2"].read == 12 * 8 + (3 * (8 + 1) + 3 * 2 * (8 + 1)) * 4


def test_a_tile_behind_the_end_of_a_clipped_one_reads_nothing() -> None:
    """Six columns of which the second tile has three: three of its tiles of a column compute nothing."""
    case = Case(
        ["Y[s, r] = A[s, r] - X[s]"],
        {"s": 5, "r": 9},
        {"A": (5, 9), "X": (5,)},
        {"shared": {"Y": {"s": 1, "r": 6}}, "reg": {"Y": {"s": 1, "r": 1}}},
        levels=GPU,
        more={"tails": {"shared": {"Y": "clip"}}, "loads": {"X": ("shared",)}},
    )
    planned = traffic(case.program())
    assert planned == execute(case.program(), case.arrays()).moved
    assert planned["reg"].read == 5 * 9 * 2 * 4


@pytest.mark.feature("B06")
def test_symbols_need_values() -> None:
    case = Case(["Y[m] = X[m] * 2.0"], {"m": Var("M")}, {"X": (Var("M"),)}, levels=CPU, symbols=("M",))
    assert traffic(case.program(), {"M": 10})["l2"] == Traffic(40, 40)
    with pytest.raises(KeyError, match="M"):
        traffic(case.program())


def test_what_units_do_together_counts_once() -> None:
    """Four blocks of one thread level: loads of shared memory are not multiplied by the threads."""
    case = replace(
        MATMUL,
        texts=MATMUL.texts[:1],
        connect={},
        tiles={"shared": {"C": {"m": 25}}, "reg": {"C": {"m": 5, "n": 8}}},
        steps={"shared": {"C": {"k": 5}}},
        levels=(DRAM, SHARED, replace(SHARED, name="reg", scope="thread")),
    )
    moved = traffic(case.program())
    assert moved["shared"].read == (50 * 20 + 2 * 20 * 40) * 4
    assert moved["reg"].read == 2 * 5 * 5 * (5 * 20 + 20 * 8) * 4


def test_what_passes_an_explicit_level_counts_there() -> None:
    """Threads load A and store C themselves; B waits in shared memory."""
    case = replace(
        MATMUL,
        texts=MATMUL.texts[:1],
        connect={},
        tiles={"shared": {"C": {"m": 25}}, "reg": {"C": {"m": 5, "n": 8}}},
        steps={"reg": {"C": {"k": 20}}},
        more={"loads": {"A": ("reg",), "C": ()}},
        levels=(DRAM, SHARED, replace(SHARED, name="reg", scope="thread")),
    )
    program = case.program()
    moved = traffic(program)
    assert moved["reg"].read == 2 * 5 * 5 * (5 * 20 + 20 * 8) * 4
    assert moved["shared"].read == 2 * 5 * 5 * 5 * 20 * 4 + 2 * 20 * 40 * 4
    assert moved["shared"].written == moved["reg"].written == 50 * 40 * 4
    draw = np.random.default_rng(0)
    arrays = {name: draw.random(shape, np.float32) for name, shape in case.inputs.items()}
    assert execute(program, arrays, {}).moved == moved
