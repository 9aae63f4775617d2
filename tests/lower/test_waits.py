"""Waits for asynchronous loads, and what the verifier and the machine say of loads that nobody waits for."""

import numpy as np
import pytest

from tests.programs import buffer, compute, copy_program, load, loop, rewrite, tensor, without
from tilec.ir.lifetimes import statements
from tilec.ir.program import Allocate, LoadTiles, StoreTiles, Wait
from tilec.ir.verify.program import check_program
from tilec.lower.waits import with_waits
from tilec.machine import MachineError, execute


def problems(program):
    return check_program(program, {p.tensor: p.shape for p in program.parameters}, {"N": 19})


@pytest.mark.feature("L22")
def test_one_wait_stands_in_front_of_the_first_use_in_a_serial_loop() -> None:
    x, w, y = (buffer(f"{t}_s", "shared", f"{t}[i1*4 : i1*4 + 4]", copies=2) for t in "xwy")
    tile = compute(tensor("y[i] = x[i] * w[i]", {"i": 8}), "y_s", "_s", i="i1*4 : i1*4 + 4")
    body = (*load(x, stages=2), *load(w, stages=2), Allocate(y), tile, StoreTiles("y", "y_s"))
    (made,) = with_waits((loop("i1", 2, *body),), ("x", "w"))
    kinds = [type(each).__name__ for each in made.body]
    assert kinds == ["Allocate", "LoadTiles", "Allocate", "LoadTiles", "Allocate", "Wait", "ComputeTile", "StoreTiles"]
    assert made.body[5] == Wait(("x_s", "w_s"))
    for plain in (
        with_waits((loop("i1", 2, *body, scope="block"),), ("x", "w")),  # no iteration is earlier
        with_waits((loop("i1", 2, *body),), ()),  # made by the program
    ):
        assert [each.stages for each in statements(plain) if isinstance(each, LoadTiles)] == [1, 1]


def test_what_is_loaded_asynchronously_is_undefined_until_a_wait() -> None:
    right = copy_program(copies=2, capacity=96)
    x = np.arange(19, dtype=np.float32)
    assert problems(right) == ()
    np.testing.assert_array_equal(execute(right, {"X": x}, {"N": 19}).outputs["Y"], x)
    never = without(right, lambda s: isinstance(s, Wait))
    assert any("nothing waits for it" in each for each in problems(never))
    with pytest.raises(MachineError, match="X_s"):
        execute(never, {"X": x}, {"N": 19})


def test_the_verifier_says_which_loads_cannot_be_asynchronous() -> None:
    right = copy_program(copies=2, capacity=96)
    once = rewrite(right, lambda s: LoadTiles(s.target, s.source) if isinstance(s, LoadTiles) else s)
    assert any("no asynchronous load of X_s stands in front of it" in each for each in problems(once))
    deep = rewrite(right, lambda s: LoadTiles(s.target, s.source, stages=3) if isinstance(s, LoadTiles) else s)
    assert any("X_s has 2 copies in this loop" in each for each in problems(deep))
