"""Every scalar function and type of the language against NumPy, in the emulator."""

import numpy as np
import pytest

from tests.codegen.gpu.kernels import emulated, rows_program
from tests.emulator.kernels import needs_compiler
from tilec.ir.evaluate import evaluate
from tilec.ir.scalars import FUNCTIONS
from tilec.ir.text import parse_tensor
from tilec.ir.types import numpy_dtype

pytestmark = needs_compiler

UNARY = [name for name, function in FUNCTIONS.items() if function.arity == 1 and function.returns == "same"]
BINARY = [name for name, function in FUNCTIONS.items() if function.arity == 2]
FLOATS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1.0, -1.5, 2.5, 88.0, -104.0, 3e9, -3e38, 1e-40]


def run(bodies, ttype, results, values):
    """Outputs of bodies over `a`, the value, and `b`, the next one in the row, beside NumPy's."""
    x = np.array([values, np.roll(values, 3)]).astype(numpy_dtype(ttype))
    n = x.shape[1]
    places = {"a": "x[m, n]", "b": f"x[m, (n + 1) % {n}]"}
    texts = [f"y{i}[m, n] = {body.format(**places)}" for i, body in enumerate(bodies)]
    types = {"x": ttype, **{f"y{i}": result for i, result in enumerate(results)}}
    found, _ = emulated(rows_program(texts, {"m": 2, "n": n}, types), {"x": x}, 1)
    for i, text in enumerate(texts):
        with np.errstate(all="ignore"):
            expected = evaluate(parse_tensor(text, {"m": 2, "n": n}), {"x": x}, ttype=results[i])
        yield bodies[i], found[f"y{i}"], expected


@pytest.mark.slow_cases("f64")
@pytest.mark.parametrize("ttype", ["f32", "f64"])
def test_functions_of_floats(ttype):
    unary = [f"{fn}({{a}})" for fn in UNARY if FUNCTIONS[fn].takes in ("float", "number")]
    binary = [f"{fn}({{a}}, {{b}})" for fn in BINARY if FUNCTIONS[fn].takes in ("any", "number")]
    operators = ["{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "where({a} < {b}, {a}, 2.0)"]
    bodies = [*unary, *binary, *operators]
    for body, found, expected in run(bodies, ttype, [ttype] * len(bodies), FLOATS):
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-38, err_msg=body)
    tests = ["isnan({a})", "isinf({a})", "{a} <= {b}", "{a} != {b}", "{a} < {b} and {b} > 0.0 or {a} == 1.0"]
    for body, found, expected in run(tests, ttype, ["bool"] * len(tests), FLOATS):
        np.testing.assert_array_equal(found, expected, err_msg=body)


@pytest.mark.slow_cases("i32", "i8")
@pytest.mark.parametrize("ttype", ["i8", "u16", "i32", "u64"])
def test_integers_wrap_floor_and_survive_zero(ttype):
    limits = np.iinfo(numpy_dtype(ttype))
    values = [limits.min, limits.max, limits.max - 1, 0, 1, 2, 3, 5, 7, 100, 0, limits.max, 1, limits.min, 9]
    if limits.min < 0:
        values = [*values, -1, -7, limits.min, -1, 3]
    unary = ["neg({a})", "abs({a})", "sign({a})", "bitnot({a})"]
    binary = [f"{fn}({{a}}, {{b}})" for fn in BINARY]
    operators = ["{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} // {b}", "{a} % {b}", "{a} // 3", "maximum({a}, 4) - 1"]
    bodies = [*unary, *binary, *operators]
    array = np.array(values, dtype=numpy_dtype(ttype))
    for body, found, expected in run(bodies, ttype, [ttype] * len(bodies), array):
        np.testing.assert_array_equal(found, expected, err_msg=body)


def test_casts_saturate_round_and_keep_bits():
    targets = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "bool", "f64", "f32"]
    bodies = [f"{target}({{a}})" for target in targets] + [
        "f16({a})",
        "bf16({a})",
        "bits_i32({a})",
        "bits_f32(bits_i32({a}))",
    ]
    results = [*targets, "f16", "bf16", "i32", "f32"]
    values = [*FLOATS, 127.6, -128.4, 255.5, 65504.0, 65520.0, 1.00390625, 2.0**31, 2.0**63, -(2.0**63)]
    for body, found, expected in run(bodies, "f32", results, values):
        np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64), err_msg=body)


@pytest.mark.parametrize("ttype", ["f16", "bf16"])
def test_a_sum_of_halves_is_rounded_where_a_body_says_so(ttype):
    """It is computed in f32: the cast to its own type rounds."""
    values = [4.0, 0.00390625, 1.0, 3e-4, 2047.0, 1.5, 0.333, 65000.0]
    bodies = [f"f32({ttype}({{a}} + {{b}})) * 3.0", f"f32({ttype}({{a}} * {{b}})) - 1.0", f"f32({ttype}({{a}}))"]
    for body, found, expected in run(bodies, ttype, ["f32"] * len(bodies), values):
        np.testing.assert_array_equal(found, expected, err_msg=body)
