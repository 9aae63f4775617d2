"""Elementwise operators at the ends of their types: no step overflows, or is NaN, where the float64 result is not."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.importer.reference import helper, run, save
from tilec.errors import ConfigError
from tilec.importer import import_model
from tilec.importer.check import check_types
from tilec.importer.onnx_types import tensor_text
from tilec.importer.ops.activation import ACTIVATIONS
from tilec.importer.ops.contrib.activation import FORMS
from tilec.importer.ops.elementwise import BINARY, UNARY, VARIADIC

Array = NDArray[Any]

TYPES = {"f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
TOLERANCE = {"f32": 2e-5, "f16": 4e-3, "bf16": 3e-2}

OPSET = 24


def sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1 + small)


def softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def gelu(x: Array) -> Array:
    return x * (0.5 * (np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2)) + 1))


def fast_gelu(x: Array) -> Array:
    return x * (0.5 * (np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)) + 1))


def single(number: float) -> float:
    """An attribute, which is an f32."""
    return float(np.float32(number))


REFERENCES: dict[str, Callable[..., Array]] = {
    **{
        name: getattr(np, name.lower())
        for name in ("Cos", "Cosh", "Exp", "Floor", "Ceil", "Log", "Sign", "Sin", "Sinh")
    },
    **{name: getattr(np, "arc" + name[1:].lower()) for name in ("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh")},
    **{
        name: getattr(np, name.lower())
        for name in ("Sqrt", "Tan", "Tanh", "IsNaN", "IsInf", "Equal", "Less", "Greater")
    },
    "Abs": np.abs,
    "Add": np.add,
    "Celu": lambda x: np.maximum(x, 0) + np.minimum(np.expm1(x), 0),
    "Clip": lambda x: x,
    "Div": np.divide,
    "Elu": lambda x: np.where(x < 0, np.expm1(x), x),
    "Erf": np.vectorize(math.erf, otypes=[float]),
    "FastGelu": fast_gelu,
    "Gelu": gelu,
    "Gelu tanh": fast_gelu,
    "GreaterOrEqual": np.greater_equal,
    "HardSigmoid": lambda x: np.clip(single(0.2) * x + 0.5, 0, 1),
    "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "LeakyRelu": lambda x: np.where(x < 0, single(0.01) * x, x),
    "LessOrEqual": np.less_equal,
    "Max": np.maximum,
    "Min": np.minimum,
    "Mish": lambda x: x * np.tanh(softplus(x)),
    "Mod": np.fmod,
    "Mul": np.multiply,
    "Neg": np.negative,
    "PRelu": lambda x, slope: np.where(x < 0, slope * x, x),
    "Pow": np.power,
    "QuickGelu": lambda x: x * sigmoid(single(1.702) * x),
    "Reciprocal": np.reciprocal,
    "Relu": lambda x: np.maximum(x, 0),
    "Round": np.round,
    "Selu": lambda x: single(1.05070102) * np.where(x > 0, x, single(1.67326324) * np.expm1(x)),
    "Shrink": lambda x: np.where(np.abs(x) > 0.5, x, 0.0),
    "Sigmoid": sigmoid,
    "Softplus": softplus,
    "Softsign": lambda x: x / (np.abs(x) + 1),
    "Sub": np.subtract,
    "Sum": np.add,
    "Swish": lambda x: x * sigmoid(x),
    "ThresholdedRelu": lambda x: np.where(x > 1, x, 0),
}
"""Operator (and form) -> what it computes, in float64."""

UNTESTED = {"And", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Not", "Or", "Xor", "Mean", "BiasGelu"}
"""Operators of integers and booleans; the mean, whose sum overflows in ONNX's reference too; GELU with a bias."""

ATTRIBUTES = {"Gelu tanh": {"approximate": "tanh"}, "Mod": {"fmod": 1}}
TWO = {"Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min", "Sum", "PRelu", *(n for n in BINARY if n in REFERENCES)}


def extremes(ttype: str) -> Array:
    """The ends of a type, where powers and products of it end, where exponentials do, and ordinary numbers."""
    about = ml_dtypes.finfo(TYPES[ttype])
    largest, tiny = float(about.max), float(about.tiny)
    ends = [largest, largest / 1.5, largest / 2, largest / 3, largest / 6, math.sqrt(largest), math.cbrt(largest)]
    powers = [
        1.01 * ends[-2],
        1.01 * ends[-1],
        4 * ends[-1],
        tiny,
        tiny / 2,
        1.5 * tiny,
        float(about.smallest_subnormal),
    ]
    exponents = [math.log(largest) * factor for factor in (0.5, 0.999, 1, 1.001, 2)]
    ordinary = [0.0, 0.5, 1, 1.5, 2, 2.5, 3, 6, 10, 20, 50, math.pi, 1e-3, 1e-7, math.inf, math.nan]
    magnitudes = np.array([*ends, *powers, *exponents, *ordinary])
    return np.concatenate([magnitudes, -magnitudes]).astype(TYPES[ttype])


def test_every_operator_is_tested() -> None:
    known = {*UNARY, *BINARY, *VARIADIC, *ACTIVATIONS, *FORMS}
    assert known - UNTESTED <= REFERENCES.keys()


@pytest.mark.parametrize("ttype", TYPES)
def test_results_overflow_only_where_they_are_too_large(tmp_path: Path, ttype: str) -> None:
    x = extremes(ttype)
    a, b = (each.ravel() for each in np.meshgrid(x, x))
    names = [name for name in REFERENCES if _takes(name, ttype)]
    assert len(names) > 40
    nodes = [
        helper.make_node(
            name.split()[0],
            ["a", "b"] if name in TWO else ["x"],
            [f"y{number}"],
            domain=_domain(name),
            **ATTRIBUTES.get(name, {}),
        )
        for number, name in enumerate(names)
    ]
    inputs = {"x": (TYPES[ttype], x.shape), "a": (TYPES[ttype], a.shape), "b": (TYPES[ttype], b.shape)}
    outputs = [f"y{number}" for number in range(len(names))]
    path = save(tmp_path / "m.onnx", nodes, inputs, outputs, opset=OPSET)
    with np.errstate(all="ignore"):
        found = run(import_model(path), tmp_path, {"x": x, "a": a, "b": b})
        faults = [
            f"{name}{operands}: {result}, not {wanted}"
            for name, results in zip(names, found, strict=True)
            for operands, result, wanted in _faults(name, (a, b) if name in TWO else (x,), results, ttype)
        ]
    assert not faults, "\n".join(faults[:20])


def _faults(name: str, operands: tuple[Array, ...], results: Array, ttype: str) -> list[tuple[Any, ...]]:
    """The operands, result and reference of every element that is off."""
    wanted = np.asarray(REFERENCES[name](*(each.astype(np.float64) for each in operands)), np.float64)
    got, rounded = results.astype(np.float64), wanted.astype(TYPES[ttype]).astype(np.float64)
    largest, part = float(ml_dtypes.finfo(TYPES[ttype]).max), TOLERANCE[ttype]
    close = np.abs(got - wanted) <= part * np.maximum(np.abs(wanted), 1)
    equal = (got == rounded) | (np.isnan(got) & np.isnan(wanted))
    at_the_end = (np.abs(wanted) >= largest * (1 - part)) & (np.abs(got) >= largest * (1 - part))
    good = equal | close | (at_the_end & np.isfinite(wanted) & (np.sign(got) == np.sign(wanted)))
    return [
        (tuple(float(each[i]) for each in operands), float(got[i]), float(wanted[i])) for i in np.flatnonzero(~good)
    ]


def _takes(name: str, ttype: str) -> bool:
    """Whether an operator takes a type."""
    node = helper.make_node(name.split()[0], ["x", "x"] if name in TWO else ["x"], ["y"], domain=_domain(name))
    try:
        check_types(node, OPSET, [tensor_text(ttype)] * len(node.input), "")
    except ConfigError:
        return False
    return True


def _domain(name: str) -> str:
    return "com.microsoft" if name in chain(FORMS, ["QuickGelu"]) and name != "Gelu" else ""
