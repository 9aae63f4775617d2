"""How units share a nest that has barriers: in rounds where there are more iterations than units."""

import numpy as np
import pytest

from tests.codegen.gpu.kernels import emulated, program
from tests.emulator.kernels import needs_compiler
from tests.programs import buffer, compute, load, loop, tensor, whole
from tilec.ir.program import Allocate, Fill, StoreTiles


@needs_compiler
@pytest.mark.parametrize("rows", [8, 33, 64])
def test_units_go_through_steps_together_as_often_as_it_takes(rows):
    """A block has 32 warps at most; each has a row, and all copy what they read of `w`."""
    node = tensor("y[m, n] = sum(k, x[m, k] * w[k, n])", {"m": rows, "n": 32, "k": 12})
    held, m = buffer("y_r", "reg", "y[u : u + 1, 0:32]"), "u : u + 1"
    tiles = [*load(buffer("w_r", "shared", "w[0:12, 0:32]")), *load(buffer("x_r", "reg", f"x[{m}, 0:12]"))]
    sums = (Fill("y_r", 0.0), compute(node, "y_r", "_r", True, m=m))
    body = loop("u", rows, Allocate(held), *tiles, *sums, StoreTiles("y", "y_r"), scope="warp")
    parameters = (whole("x", (rows, 12)), whole("w", (12, 32)), whole("y", (rows, 32)))
    x, w = (np.random.default_rng(0).integers(-4, 5, shape).astype("f4") for shape in ((rows, 12), (12, 32)))
    found, text = emulated(program("rows", parameters, ("y",), (body,)), {"x": x, "w": w}, 32)
    np.testing.assert_array_equal(found["y"], x @ w)
    assert (f"u < {-(-rows // 32)};" in text) == (rows > 32)
