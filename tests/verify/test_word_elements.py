"""Words are compared by their elements: NaN of any sign, flips of single elements."""

import ml_dtypes
import numpy as np

from tests.lower.cases import Case
from tilec.ir.dots import DOTS
from tilec.verify.groups import check_group

BF16 = Case(
    ["W[m, k] = word(X[m, 2*k], X[m, 2*k + 1])"],
    {"m": 3, "k": 5},
    {"X": (3, 10)},
    ttypes={"X": "bf16", "W": "u32"},
)
U8 = Case(
    ["W[m, k] = bitxor(word(X[m, 4*k], X[m, 4*k + 1], X[m, 4*k + 2], X[m, 4*k + 3]), 2155905152)"],
    {"m": 3, "k": 5},
    {"X": (3, 20)},
    ttypes={"X": "u8", "W": "u32"},
)


def test_elements_are_compared_by_their_type() -> None:
    plan = BF16.plan()
    x = np.random.default_rng(0).standard_normal((3, 10)).astype(ml_dtypes.bfloat16)
    x[1, 2] = np.nan
    words = x.view(np.uint32).copy()
    words[1, 1] ^= 1 << 15  # another sign of the NaN
    assert check_group(plan.groups[0], plan, {"X": x, "W": words}, {}).passed
    words[2, 3] ^= 1 << 22
    check = check_group(plan.groups[0], plan, {"X": x, "W": words}, {})
    assert not check.passed
    assert "[2, 3, 1]" in check.worst.reason


def test_moved_integers_are_compared_exactly() -> None:
    plan = U8.plan()
    x = np.random.default_rng(0).integers(0, 256, (3, 20)).astype(np.uint8)
    words = (x ^ 0x80).view(np.uint32).copy()
    assert check_group(plan.groups[0], plan, {"X": x, "W": words}, {}).passed
    words[0, 4] ^= 1 << 24
    check = check_group(plan.groups[0], plan, {"X": x, "W": words}, {})
    assert "[0, 4, 3]" in check.worst.reason


def test_sums_over_words_have_rounding_errors() -> None:
    """A sum on the other side of a boundary of bf16 is right, whoever adds the products up in another order."""
    (function,) = (dot for dot in DOTS.values() if dot.accumulator == "f32")
    case = Case(
        [f"Y[m, n] = sum(k, {function.name}(X[m, k], W[n, k]))"],
        {"m": 200, "n": 50, "k": 64},
        {"X": (200, 64), "W": (50, 64)},
        ttypes={"X": "u32", "W": "u32", "Y": "bf16"},
    )
    plan = case.plan()
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal((n, 128)).astype(ml_dtypes.bfloat16) for n in (200, 50))
    products = x.astype(np.float32)[:, None] * w.astype(np.float32)[None]
    total = np.zeros((200, 50), np.float32)
    for k in range(127, -1, -1):
        total += products[..., k]
    operands = {"X": x.view(np.uint32), "W": w.view(np.uint32)}
    assert check_group(plan.groups[0], plan, {**operands, "Y": total.astype(ml_dtypes.bfloat16)}, {}).passed
    wrong = total.copy()
    wrong[7, 7] += 8
    assert not check_group(plan.groups[0], plan, {**operands, "Y": wrong.astype(ml_dtypes.bfloat16)}, {}).passed
