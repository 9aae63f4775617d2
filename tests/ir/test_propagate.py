"""Propagate against the sets of elements that a direct evaluation touches."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from work import calls

from tilec.ir.expr import Access, Binary, Call, Const, Expr, TensorExpr, Var, as_expr
from tilec.ir.propagate import NUMPY, SYMBOLIC, Candidates, Symbolic, propagate
from tilec.ir.text import parse_expr, parse_tensor

Shapes = Mapping[str, tuple[int, ...]]

PAD = "0 <= h*2+r-1 and h*2+r-1 < 9 and 0 <= w*2+s-1 and w*2+s-1 < 8"
OPERATORS: dict[str, tuple[str, dict[str, int], Shapes, bool]] = {
    # name: text, extents, shapes of what is read, whether the window is the exact hull of what is read
    "matmul": ("C[m, n] = sum(k, A[m, k] * B[k, n])", {"m": 6, "n": 5, "k": 7}, {"A": (6, 7), "B": (7, 5)}, True),
    "row max": ("M[m] = max(n, S[m, n])", {"m": 6, "n": 9}, {"S": (6, 9)}, True),
    "row statistics": ("E[m, n] = exp(S[m, n] - M[m])", {"m": 6, "n": 9}, {"S": (6, 9), "M": (6,)}, True),
    "convolution": (
        f"Y[n, o, h, w] = sum(c, r, s, where({PAD}, X[n, c, h*2+r-1, w*2+s-1], 0.0) * W[o, c, r, s])",
        {"n": 1, "o": 3, "h": 5, "w": 4, "c": 2, "r": 3, "s": 3},
        {"X": (1, 2, 9, 8), "W": (3, 2, 3, 3)},
        False,
    ),
    "valid convolution": (
        "Y[o, h] = sum(c, r, X[c, h+r*2] * W[o, c, r])",
        {"o": 3, "h": 5, "c": 2, "r": 3},
        {"X": (2, 9), "W": (3, 2, 3)},
        True,
    ),
    "pooling": (
        f"Y[c, h, w] = max(r, s, where({PAD}, X[c, h*2+r-1, w*2+s-1], -1e38))",
        {"c": 2, "h": 5, "w": 4, "r": 3, "s": 3},
        {"X": (2, 9, 8)},
        False,
    ),
    "dilated depthwise": (
        "Y[c, h] = sum(r, where(0 <= h+r*2-2 and h+r*2-2 < 7, X[c, h+r*2-2], 0.0) * W[c, r])",
        {"c": 3, "h": 7, "r": 3},
        {"X": (3, 7), "W": (3, 3)},
        False,
    ),
    "transpose": ("Y[a, b, c] = X[c, a, b]", {"a": 3, "b": 4, "c": 5}, {"X": (5, 3, 4)}, True),
    "split heads": ("Y[h, s, d] = X[s, h*4+d]", {"h": 3, "s": 5, "d": 4}, {"X": (5, 12)}, True),
    "merge heads": ("Y[s, c] = X[s, c//4, c%4]", {"s": 5, "c": 12}, {"X": (5, 3, 4)}, False),
    "reshape": ("Y[a, b] = X[(a*6+b)//4, (a*6+b)%4]", {"a": 4, "b": 6}, {"X": (6, 4)}, False),
    "concat": ("Y[i, j] = where(i < 4, A[i, j], B[i-4, j])", {"i": 9, "j": 3}, {"A": (4, 3), "B": (5, 3)}, True),
    "guards on multiples": ("Y[i] = where(3*i >= 7 and 2*i < 13, X[i], 0.0)", {"i": 9}, {"X": (9,)}, True),
    "concat of slices": (
        "Y[i] = where(i < 3, X[i+5], X[i-3])",
        {"i": 8},
        {"X": (8,)},
        True,
    ),
    "concat behind a reshape": (
        "Y[f] = where(f//6 < 2, A[f//6, f%6], B[f//6-2, f%6])",
        {"f": 24},
        {"A": (2, 6), "B": (2, 6)},
        False,
    ),
    "guard on the far side": ("Y[i] = where(not (i >= 3 or 7 < i), A[i], 0.0)", {"i": 9}, {"A": (3,)}, True),
    "gather": ("Y[i, j] = T[I[i], j]", {"i": 6, "j": 5}, {"T": (8, 5), "I": (6,)}, False),
    "reversed slice": ("Y[i] = X[9-2*i]", {"i": 5}, {"X": (10,)}, False),
    "broadcast": ("Y[i, j] = A[i, 0] + B[j]", {"i": 4, "j": 5}, {"A": (4, 1), "B": (5,)}, True),
    "nearest resize": ("Y[h, w] = X[h//2, w//2]", {"h": 8, "w": 6}, {"X": (4, 3)}, True),
    "depth to space": (
        "Y[c, h, w] = X[(h%2*2+w%2)*3+c, h//2, w//2]",
        {"c": 3, "h": 4, "w": 6},
        {"X": (12, 2, 3)},
        False,
    ),
    "two accesses": ("Y[i] = X[i] + X[i+3]", {"i": 5}, {"X": (8,)}, False),
    "diagonal": ("Y[i] = X[i, i]", {"i": 5}, {"X": (5, 5)}, True),
    "triangular mask": ("Y[s, t] = where(t <= s, X[s, t], -1e30)", {"s": 6, "t": 6}, {"X": (6, 6)}, False),
    "clamped index": ("Y[i] = X[maximum(minimum(i-2, 4), 0)]", {"i": 9}, {"X": (5,)}, True),
    "scalar": ("Y[] = sum(k, A[k] * S[])", {"k": 4}, {"A": (4,), "S": ()}, True),
}


def operator(name: str) -> tuple[TensorExpr, dict[str, tuple[Expr, ...]]]:
    text, extents, shapes, _ = OPERATORS[name]
    if name == "scalar":
        body = parse_expr("sum(k, A[k])")
        return TensorExpr("Y", (), ("k",), (Const(4),), body), {"A": (Const(4),)}
    return parse_tensor(text, extents), {t: tuple(map(as_expr, s)) for t, s in shapes.items()}


def value(expr: Expr, point: Mapping[str, int], touched: dict[str, set[tuple[int, ...]]]) -> float:
    """Evaluates with branches, noting the elements read; every tensor holds its first index modulo 5."""
    match expr:
        case Var(name):
            return point[name]
        case Const(constant):
            return constant
        case Call("where", (condition, yes, no)):
            return value(yes if value(condition, point, touched) else no, point, touched)
        case Access(tensor, index):
            element = tuple(int(value(i, point, touched)) for i in index)
            touched.setdefault(tensor, set()).add(element)
            return element[0] % 5 if element else 0
        case Binary("and", left, right):
            return value(left, point, touched) and value(right, point, touched)
        case Binary("or", left, right):
            return value(left, point, touched) or value(right, point, touched)
        case Binary(op, left, right):
            a, b = value(left, point, touched), value(right, point, touched)
            return eval(f"a {op} b", {"a": a, "b": b})
        case Call("maximum" | "minimum" as fn, (left, right)):
            pair = value(left, point, touched), value(right, point, touched)
            return max(pair) if fn == "maximum" else min(pair)
        case Call("not", (operand,)):
            return not value(operand, point, touched)
        case Call(_, args):
            return sum(value(a, point, touched) for a in args)
    raise AssertionError(expr)


def touched_by(expr: TensorExpr, box: Mapping[str, tuple[int, int]]) -> dict[str, set[tuple[int, ...]]]:
    touched: dict[str, set[tuple[int, ...]]] = {}
    for point in itertools.product(*(range(*box[i]) for i in expr.iterators)):
        value(expr.value, dict(zip(expr.iterators, point, strict=True)), touched)
    return touched


def check(
    expr: TensorExpr, shapes: Mapping[str, tuple[Expr, ...]], box: dict[str, tuple[int, int]], exact: bool
) -> None:
    touched = touched_by(expr, box)
    arrays = {i: (np.asarray(lo), np.asarray(hi)) for i, (lo, hi) in box.items()}
    symbols = {i: (as_expr(lo), as_expr(hi)) for i, (lo, hi) in box.items()}
    by_number = propagate(expr, arrays, shapes, NUMPY, clip=True)
    by_symbol = propagate(expr, symbols, shapes, SYMBOLIC, clip=True)
    for tensor, window in by_number.items():
        ends = [(int(lo), int(hi)) for lo, hi in window]
        elements = touched.get(tensor, set())
        for element in elements:
            assert all(lo <= x < hi for x, (lo, hi) in zip(element, ends, strict=True)), (tensor, element, ends)
        assert [(as_expr(lo), as_expr(hi)) for lo, hi in ends] == list(by_symbol[tensor])
        if exact:
            hull = [(min(e), max(e) + 1) for e in zip(*elements, strict=True)] if elements else [(0, 0)] * len(ends)
            assert ends == hull


boxes = st.data()


@pytest.mark.feature("W04", "W05")
@pytest.mark.parametrize("name", OPERATORS)
@given(data=boxes)
@settings(max_examples=40, deadline=None)
def test_covers_what_is_read(name: str, data: st.DataObject) -> None:
    expr, shapes = operator(name)
    box = {}
    for iterator, extent in OPERATORS[name][1].items():
        lo = data.draw(st.integers(0, extent))
        box[iterator] = (lo, data.draw(st.integers(lo, extent)))
    check(expr, shapes, box, OPERATORS[name][3])


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_affine_accesses_with_each_iterator_once_are_exact(data: st.DataObject) -> None:
    """Random scales (negative too), offsets and orders: the corners of the window are read."""
    names = data.draw(st.permutations(["i", "j", "k", "l"]))
    sizes = {i: data.draw(st.integers(1, 4)) for i in names}
    cut = data.draw(st.integers(1, 3))
    index, shape = [], []
    for group in (names[:cut], names[cut:]):
        scales = [data.draw(st.integers(-3, 3)) for _ in group]
        low = sum(min(0, s * (sizes[i] - 1)) for s, i in zip(scales, group, strict=True))
        high = sum(max(0, s * (sizes[i] - 1)) for s, i in zip(scales, group, strict=True))
        terms = " + ".join(f"{s}*{i}" for s, i in zip(scales, group, strict=True))
        index.append(f"{terms} - ({low})")
        shape.append(Const(high - low + 1))
    expr = parse_tensor(f"Y[i, j, k, l] = X[{index[0]}, {index[1]}]", sizes)
    box = {}
    for i in names:
        lo = data.draw(st.integers(0, sizes[i]))
        box[i] = (lo, data.draw(st.integers(lo, sizes[i])))
    check(expr, {"X": tuple(shape)}, box, exact=True)


def test_unclipped_window_shows_the_padding() -> None:
    expr, shapes = operator("convolution")
    box = {i: (Const(0), Const(n)) for i, n in OPERATORS["convolution"][1].items()}
    window = propagate(expr, box, shapes, SYMBOLIC)["X"]
    assert window[2:] == ((Const(-1), Const(10)), (Const(-1), Const(8)))


def test_windows_of_tiles_are_affine_in_loop_variables() -> None:
    expr = parse_tensor(
        "Y[m, o] = sum(c, X[m, c] * P[o//32, c, o%32])", {"m": as_expr(197), "o": as_expr(128), "c": as_expr(64)}
    )
    shapes = {"X": (Const(197), Const(64)), "P": (Const(4), Const(64), Const(32))}
    numbers = Symbolic({"t": (Const(0), Const(3))})
    box = {
        "m": (Const(0), Const(14)),
        "o": (parse_expr("32*t"), parse_expr("32*t + 32")),
        "c": (Const(0), Const(64)),
    }
    window = propagate(expr, box, shapes, numbers)
    assert window["P"] == (
        (Var("t"), parse_expr("t + 1")),
        (Const(0), Const(64)),
        (Const(0), Const(32)),
    )


@pytest.mark.feature("B06")
def test_symbols_stay_in_the_result_and_have_values_as_candidates() -> None:
    expr = parse_tensor("Y[f] = X[f // seq, f % seq]", {"f": parse_expr("batch*seq")})
    shapes = {"X": (Var("batch"), Var("seq"))}
    whole = propagate(expr, {"f": (Const(0), parse_expr("batch*seq"))}, shapes, SYMBOLIC, clip=True)
    assert whole["X"] == ((Const(0), Var("batch")), (Const(0), Var("seq")))
    numbers = Candidates({"batch": 3, "seq": np.asarray([4, 8])})
    part = propagate(expr, {"f": (np.asarray(2), np.asarray(7))}, shapes, numbers)["X"]
    assert [(list(np.broadcast_to(lo, 2)), list(np.broadcast_to(hi, 2))) for lo, hi in part] == [
        ([0, 0], [2, 1]),
        ([0, 2], [4, 7]),
    ]


def test_an_unknown_symbol_is_named() -> None:
    expr = parse_tensor("Y[i] = X[i + seq]", {"i": 4})
    with pytest.raises(KeyError, match="seq"):
        propagate(expr, {"i": (np.asarray(0), np.asarray(4))}, {"X": (Const(9),)}, NUMPY)


def test_ten_thousand_candidates_are_quick() -> None:
    expr, shapes = operator("convolution")
    rng = np.random.default_rng(0)
    box = {
        i: (np.zeros(10_000, np.int64), rng.integers(1, n + 1, 10_000)) for i, n in OPERATORS["convolution"][1].items()
    }
    assert calls(lambda: propagate(expr, box, shapes, NUMPY, clip=True)) < 50_000  # as many for one
