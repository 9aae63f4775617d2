"""Loads with a fill, compiled: every way a window can leave its tensor."""

import itertools

import numpy as np
import pytest

from tests.codegen.cpu.running import AVX2, Batch
from tests.programs import buffer, compute, loop, tensor, whole
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Allocate, LoadTiles, Program, StoreTiles

LEVELS = (PlanLevel("dram", None), PlanLevel("l2", None, 2, "implicit", "core"))


def shifted(shape: tuple[int, int], width: tuple[int, int], at: tuple[str, str], count: int) -> Program:
    """Y[p, a, b] = X[a + at0, b + at1], staged with 7.0 outside of X, for p in range(count)."""
    inside = ", ".join(f"{o}:{o} + {n}" for o, n in zip(at, width, strict=True))
    body = tensor("Y[p, a, b] = X[a + {}, b + {}]".format(*at), {"p": count, "a": width[0], "b": width[1]})
    statements = (
        *(Allocate(buffer("X_l2", "l2", f"X[{inside}]")), LoadTiles("X_l2", "X", 7.0)),
        Allocate(buffer("Y_l2", "l2", f"Y[p:p + 1, 0:{width[0]}, 0:{width[1]}]")),
        *(compute(body, "Y_l2", "_l2", p="p:p + 1"), StoreTiles("Y", "Y_l2")),
    )
    parameters = (whole("X", shape), whole("Y", (count, *width)))
    return Program("k", LEVELS, (), parameters, ("Y",), (loop("p", count, *statements, scope="core"),))


CASES = [
    *(((5, 20), width, at, 1) for width, at in itertools.product([(5, 20), (9, 30)], [("0", "0"), ("-2", "-3")])),
    ((5, 20), (3, 4), ("4", "18"), 1),
    ((5, 20), (3, 4), ("9", "2"), 1),
    ((5, 20), (3, 4), ("0 - 7", "2"), 1),
    ((12, 20), (6, 22), ("p*4 - 1", "-1"), 3),
    ((12, 20), (4, 9), ("0", "p*7 - 3"), 4),
]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    batch = Batch()
    for shape, width, at, count in CASES:
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        batch.add(shifted(shape, width, at, count), {"X": x}, AVX2)
    return batch.run(tmp_path_factory.mktemp("copies"))


@pytest.mark.parametrize("number", range(len(CASES)))
def test_inside_is_copied_and_outside_filled(results, number):
    shape, width, at, count = CASES[number]
    padded = np.pad(np.arange(np.prod(shape), dtype=np.float32).reshape(shape), 40, constant_values=7.0)
    for p in range(count):
        first, second = (eval(text, {"p": p}) + 40 for text in at)
        expected = padded[first : first + width[0], second : second + width[1]]
        assert np.array_equal(results[number]["Y"][p], expected), p
