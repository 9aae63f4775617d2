import math

import numpy as np
import pytest
from tvm import tirx
from tvm.tirx.script.builder import ir as I  # noqa: N812

from tests.codegen.cpu.running import Batch
from tilec.codegen.cpu.emit import transcendental as functions
from tilec.codegen.cpu.emit.kernel_function import Operand, kernel_function
from tilec.codegen.cpu.emit.vector_ops import int64, ramp

SPECIAL = np.array(
    [
        *(0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1.1754942e-38, 1.17549435e-38, 3.4e38, -3.4e38, 88.7),
        *(88.73, -87.3, -88, -103.9, -104, -105, -1e9, 1e9, 1, -1, 2, 0.5, 8.9, 9.0, 9.01, 9.02, -9.02, 3.9),
        *(3.92, 3.93, -3.93),
    ],
    np.float32,
)
LIMITS = {"exp": 1.1, "log": 1.0, "tanh": 6.0, "erf": 6.0, "sigmoid": 3.0}
"""Units in the last place that the docstrings promise, and a little."""


def exact(name: str, x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        if name == "erf":
            return np.array([math.erf(v) for v in wide.tolist()])
        if name == "sigmoid":
            small = np.exp(-np.abs(wide))
            return np.where(wide >= 0, 1 / (1 + small), small / (1 + small)) + np.where(np.isnan(wide), np.nan, 0)
        return np.asarray(getattr(np, name)(wide))


def arguments(name: str) -> np.ndarray:
    """Special values, all magnitudes, and the range where the function is interesting."""
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 1 << 32, 6000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    spans = [rng.uniform(-a, a, 12000).astype(np.float32) for a in (0.01, 1, 10, 110)]
    near_one = rng.uniform(0.5, 2, 6000).astype(np.float32)
    x = np.concatenate([SPECIAL, bits, *spans, near_one])
    return x[: len(x) // 16 * 16]


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Distance in units in the last place of the exact result; 0 where both are the same NaN or infinity."""
    with np.errstate(all="ignore"):
        rounded = want.astype(np.float32)
        unit = np.spacing(np.abs(np.where(np.isfinite(rounded), rounded, 1))).astype(np.float64)
        error = np.abs(got.astype(np.float64) - want) / unit
    error[(np.isnan(got) & np.isnan(want)) | (got == rounded)] = 0
    return error


def kernel(name: str, symbol: str, elements: int, lanes: int):
    def body(buffers, scratch, task):
        index = ramp(tirx.Mul(task, int64(lanes)), 1, lanes)
        value = getattr(functions, name)(tirx.BufferLoad(buffers["x"], [index]), lanes)
        I.buffer_store(buffers["y"], value, [index])

    function = kernel_function(symbol, [Operand("x", "float32", elements), Operand("y", "float32", elements)], body)
    return function.with_attr("tilec.printed", True)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    batch, table = Batch(), {}
    for name in LIMITS:
        x = arguments(name)
        for lanes in (16, 4, 1):
            operands = [("x", "f32", x.shape), ("y", "f32", x.shape)]
            table[name, lanes] = len(batch.jobs), x
            function = kernel(name, f"k{len(batch.jobs)}", len(x), lanes)
            batch.add_function(function, len(x) // lanes, operands, {"x": x})
    made = batch.run(tmp_path_factory.mktemp("math"))
    return {key: (x, made[number]["y"]) for key, (number, x) in table.items()}


@pytest.mark.parametrize("lanes", [16, 4, 1])
@pytest.mark.parametrize("name", sorted(LIMITS))
def test_error_in_units_in_the_last_place(results, name, lanes):
    x, y = results[name, lanes]
    error = ulps(y, exact(name, x))
    worst = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
    assert error[worst] <= LIMITS[name], f"{name}({x[worst]}) = {y[worst]}, exactly {exact(name, x[[worst]])[0]}"


@pytest.mark.parametrize("name", sorted(LIMITS))
def test_special_values(results, name):
    """NaN stays NaN, infinities have their limits, -0 stays -0 where the function is odd."""
    x, y = results[name, 16]
    at = {repr(float(v)): float(r) for v, r in zip(x[: len(SPECIAL)], y[: len(SPECIAL)], strict=True)}
    assert math.isnan(at["nan"])
    ends = {"exp": (0, math.inf), "tanh": (-1, 1), "erf": (-1, 1), "sigmoid": (0, 1)}
    if name in ends:
        assert (at["-inf"], at["inf"]) == ends[name]
    if name == "log":
        assert math.isnan(at["-inf"])
        assert at["inf"] == math.inf
        assert at["0.0"] == at["-0.0"] == -math.inf
    if name in ("tanh", "erf"):
        assert math.copysign(1, at["-0.0"]) == -1


@pytest.mark.parametrize("name", ["tanh", "erf", "sigmoid"])
def test_bounds_are_never_exceeded(results, name):
    x, y = results[name, 16]
    low = 0 if name == "sigmoid" else -1
    assert np.all((y[~np.isnan(x)] >= low) & (y[~np.isnan(x)] <= 1))
