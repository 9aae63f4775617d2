"""Every element of what leaves a part is stored once, whatever the windows of its tiles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.lower.cases import ATTENTION, CASES, MATMUL, POOLED, Case, check
from tilec.ir.expr import Var
from tilec.ir.lifetimes import statements
from tilec.ir.program import StoreTiles
from tilec.ir.text import parse_expr
from tilec.ir.types import numpy_dtype

OVERLAPPING = {
    "shifted tails": MATMUL,
    "halos": replace(POOLED, outputs=("P", "L", "C")),
    "loops that do not move an output": CASES["intermediates are outputs"],
    "a stride leaves gaps": Case(
        ["A[i] = X[i] * 2.0", "Y[j] = A[j*3] + 1.0"],
        {"i": 20, "j": 7},
        {"X": (20,)},
        {"l2": {"Y": {"j": 2}}, "reg": {"Y": {"j": 1}}},
        outputs=("Y", "A"),
    ),
    "two loops move one dimension": Case(
        ["A[q] = X[q] * 2.0", "Y[u, v] = A[u*4 + v] + 1.0"],
        {"q": 12, "u": 3, "v": 4},
        {"X": (12,)},
        {"l2": {"Y": {"u": 1, "v": 2}}},
        outputs=("A", "Y"),
    ),
    "one loop moves two dimensions": Case(
        ["A[i, j] = X[i, j] * 2.0", "Y[i] = A[i, i] + 1.0"],
        {"i": 6, "j": 6},
        {"X": (6, 6)},
        {"l2": {"Y": {"i": 4}}},
        outputs=("A", "Y"),
    ),
    "reversed": Case(
        ["A[i] = X[i] * 2.0", "Y[i] = A[10 - i] + 1.0"],
        {"i": 11},
        {"X": (11,)},
        {"l2": {"Y": {"i": 4}}, "reg": {"Y": {"i": 3}}},
        outputs=("A", "Y"),
    ),
    "scalar": CASES["scalar output"],
}


@pytest.mark.feature("W06")
@pytest.mark.parametrize("name", OVERLAPPING)
def test_each_element_is_written_once(name: str) -> None:
    case = OVERLAPPING[name]
    program, result = check(case)
    size = sum(result.outputs[o].size * numpy_dtype("f32").itemsize for o in program.outputs)
    assert result.moved["l2"].written == size


@pytest.mark.parametrize("rows", [3, 5, 7])
def test_tiles_in_shifted_tiles_store_their_own_rows(rows: int) -> None:
    """The last tile of 3 rows begins where the one before has rows, whatever their number is."""
    case = Case(
        ["Y[m, n] = X[m, n] * 2.0"],
        {"m": Var("M"), "n": 4},
        {"X": (Var("M"), 4)},
        {"l2": {"Y": {"m": 3}}, "reg": {"Y": {"m": 1}}},
        symbols=("M",),
        guard=parse_expr("M >= 3"),
        more={"loads": {"Y": ()}},
    )
    program, result = check(case, M=rows)
    assert any(isinstance(each, StoreTiles) and each.lo for each in statements(program.body))
    assert result.moved["reg"].written == result.outputs["Y"].size * numpy_dtype("f32").itemsize


def test_whole_windows_are_stored_without_ends() -> None:
    stores = [s for s in statements(ATTENTION.program().body) if isinstance(s, StoreTiles) and s.target == "S_l2"]
    assert [(s.lo, s.hi) for s in stores] == [((), ())]


@pytest.mark.feature("W06")
def test_sinks_follow_the_final_nodes_loops() -> None:
    """B has no column loop, so its rows are moved by the row loop of D alone."""
    _, result = check(CASES["further sinks"])
    assert np.asarray(result.moved["l2"].read) == 10 * 12 * 4 + 2 * 12 * 4
