"""Windows that take a constant outside, loaded and computed: every way a window can leave its tensor, compiled."""

import itertools
from dataclasses import replace
from math import prod

import numpy as np
import pytest

from tests.codegen.cpu.running import AVX2, Batch
from tests.programs import buffer, compute, loop, rewrite, tensor, whole
from tilec.codegen.cpu.kernel_ir import tiles
from tilec.codegen.cpu.passes.assign_storage import assign_storage
from tilec.ir.expr import Const
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Allocate, ComputeTile, Fill, LoadTiles, Program, Statement, StoreTiles

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
    return program(shape, width, count, *statements)


def program(shape: tuple[int, int], width: tuple[int, int], count: int, *statements: Statement) -> Program:
    parameters = (whole("X", shape), whole("Y", (count, *width)))
    return Program("k", LEVELS, (), parameters, ("Y",), (loop("p", count, *statements, scope="core"),))


def computed(shape: tuple[int, int], width: tuple[int, int], at: tuple[str, str], count: int) -> Program:
    """Y[p, a, b] = H[a + at0, b + at1], where H is computed from X inside of a window with 7.0 outside of H."""
    window = [(o, f"{o} + {n}") for o, n in zip(at, width, strict=True)]
    inside = [
        f"minimum(maximum({lo}, 0), {n}):maximum(minimum({hi}, {n}), 0)"
        for (lo, hi), n in zip(window, shape, strict=True)
    ]
    hidden = tensor("H[i, j] = X[i, j] + X[i, j]", {"i": shape[0], "j": shape[1]})
    result = tensor("Y[p, a, b] = H[a + {}, b + {}]".format(*at), {"p": count, "a": width[0], "b": width[1]})
    return program(
        *(shape, width, count, Allocate(buffer("H_l2", "l2", f"H[{', '.join(f'{lo}:{hi}' for lo, hi in window)}]"))),
        *(Fill("H_l2", 7.0), compute(hidden, "H_l2", "", i=inside[0], j=inside[1])),
        Allocate(buffer("Y_l2", "l2", f"Y[p:p + 1, 0:{width[0]}, 0:{width[1]}]")),
        *(compute(result, "Y_l2", "_l2", p="p:p + 1"), StoreTiles("Y", "Y_l2")),
    )


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
        for made in (shifted, computed):
            batch.add(made(shape, width, at, count), {"X": x}, AVX2)
    return batch.run(tmp_path_factory.mktemp("copies"))


@pytest.mark.parametrize("way", ["copied", "computed"])
@pytest.mark.parametrize("number", range(len(CASES)))
def test_outside_is_filled(results, number, way):
    shape, width, at, count = CASES[number]
    inside = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) * (1 if way == "copied" else 2)
    padded = np.pad(inside, 40, constant_values=7.0)
    for p in range(count):
        first, second = (eval(text, {"p": p}) + 40 for text in at)
        expected = padded[first : first + width[0], second : second + width[1]]
        assert np.array_equal(results[2 * number + (way == "computed")]["Y"][p], expected), p


def filled(program: Program) -> list[int | None]:
    """How many elements each tile fills that does; None where that depends on the task."""
    sizes = [
        [dim.size for dim in tile.dims]
        for tile in tiles(assign_storage(program, AVX2).nests[0].body)
        if isinstance(tile.value, Const)
    ]
    return [None if None in each else prod(n for n in each if n is not None) for each in sizes]


def test_what_is_computed_afterwards_is_not_filled():
    """A row above and a column on each side of 12 x 20, in three tasks: never the 132 elements of the window."""
    fills = filled(computed((12, 20), (6, 22), ("p*4 - 1", "-1"), 3))
    assert fills
    assert all(n is None or n <= 22 for n in fills)
    assert filled(computed((12, 20), (4, 20), ("p*4", "0"), 3)) == []


def test_what_is_added_to_is_filled_everywhere():
    added = rewrite(
        computed((12, 20), (4, 20), ("p*4", "0"), 3),
        lambda s: replace(s, accumulate=True) if isinstance(s, ComputeTile) and s.target == "H_l2" else s,
    )
    assert filled(added) == [80]
