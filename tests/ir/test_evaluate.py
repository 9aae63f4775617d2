"""NumPy evaluation: against plain NumPy, element by element, on awkward types and sizes."""

from math import erf, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilec.ir import evaluate as module
from tilec.ir.evaluate import Points, TensorWindow, evaluate, evaluate_box, exactly_rounded, integer, literal_value
from tilec.ir.expr import TensorExpr
from tilec.ir.text import parse_expr, parse_tensor
from tilec.ir.types import TTYPES, numpy_dtype

RNG = np.random.default_rng(7)


def tensor(text: str, **extents: int) -> TensorExpr:
    return parse_tensor(text, extents)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def scalar(text: str, ttype: str = "f32", **values: object) -> np.ndarray:
    """`text` over one iterator i of the arrays given."""
    arrays = {name: np.asarray(v, numpy_dtype(ttype)) for name, v in values.items()}
    (n,) = {a.size for a in arrays.values()}
    body = text
    for name in arrays:
        body = body.replace(name, f"{name}[i]")
    return evaluate(tensor(f"T[i] = {body}", i=n), arrays)


class TestReductions:
    def test_matrix_product(self) -> None:
        a, b = normal(5, 7), normal(7, 3)
        c = evaluate(tensor("C[m, n] = sum(k, A[m, k] * B[k, n])", m=5, n=3, k=7), {"A": a, "B": b})
        np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-6)

    def test_infinities_meet_every_term(self) -> None:
        """inf * 1 + inf * -2 is NaN, though inf * (1 - 2) is not."""
        expr = tensor("C[m, n] = sum(k, A[m] * B[k, n])", m=2, n=2, k=2)
        b = np.float32([[1, 1], [-2, 3]])
        result = evaluate(expr, {"A": np.float32([np.inf, 2]), "B": b})
        np.testing.assert_array_equal(result, [[np.nan, np.inf], [-2, 8]])

    def test_batched_and_transposed_product_with_scale(self) -> None:
        q, k = normal(2, 6, 12), normal(2, 5, 12)
        expr = tensor("S[b,h,s,t] = sum(d, Q[b,s,h*4+d] * 0.5 * K[b,t,h*4+d])", b=2, h=3, s=6, t=5, d=4)
        expected = 0.5 * np.einsum("bshd,bthd->bhst", q.reshape(2, 6, 3, 4), k.reshape(2, 5, 3, 4))
        np.testing.assert_allclose(evaluate(expr, {"Q": q, "K": k}), expected, rtol=1e-4, atol=1e-5)

    def test_product_whose_factors_do_not_share_all_reduce_axes(self) -> None:
        a, b = normal(3, 4), normal(5)
        expr = tensor("C[m] = sum(k, j, l, A[m, k] * B[j])", m=3, k=4, j=5, l=6)
        np.testing.assert_allclose(evaluate(expr, {"A": a, "B": b}), a.sum(1) * b.sum() * 6, rtol=1e-4)

    @pytest.mark.parametrize("stride", [1, 2])
    def test_convolution_with_padding(self, stride: int) -> None:
        x, w = normal(1, 3, 9, 7), normal(4, 3, 3, 3)
        h, v = (9 - 1) // stride + 1, (7 - 1) // stride + 1
        guard = f"0 <= h*{stride}+r-1 < 9 and 0 <= w*{stride}+s-1 < 7"
        text = f"where({guard}, X[n,c,h*{stride}+r-1,w*{stride}+s-1], 0.0)"
        expr = tensor(f"Y[n,f,h,w] = sum(c, r, s, {text} * W[f,c,r,s])", n=1, f=4, h=h, w=v, c=3, r=3, s=3)
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::stride, ::stride]
        expected = np.einsum("nchwrs,fcrs->nfhw", windows, w)
        np.testing.assert_allclose(evaluate(expr, {"X": x, "W": w}), expected, rtol=1e-4, atol=1e-5)

    def test_maximum_propagates_nan_and_minus_infinity_is_neutral(self) -> None:
        a = np.array([[1, nan, 2], [3, 2, 1], [-np.inf] * 3], np.float32)
        result = evaluate(tensor("M[i] = max(k, A[i, k])", i=3, k=3), {"A": a})
        np.testing.assert_array_equal(result, np.array([nan, 3, -np.inf], np.float32))

    @pytest.mark.parametrize(
        ("op", "ttype", "expected"),
        [("sum", "f32", 0), ("prod", "i32", 1), ("max", "f32", -np.inf), ("min", "i8", 127), ("max", "u8", 0)],
    )
    def test_an_empty_reduction_is_its_neutral_element(self, op: str, ttype: str, expected: float) -> None:
        a = np.zeros((2, 0), numpy_dtype(ttype))
        result = evaluate(tensor(f"R[i] = {op}(k, A[i, k])", i=2, k=0), {"A": a})
        assert result.dtype == numpy_dtype(ttype)
        np.testing.assert_array_equal(result, [expected] * 2)

    def test_integer_sums_wrap_in_their_type(self) -> None:
        a = np.full((1, 3), 100, np.int8)
        result = evaluate(tensor("R[i] = sum(k, A[i, k])", i=1, k=3), {"A": a})
        assert result.dtype == np.int8
        assert result[0] == np.int64(300).astype(np.int8)

    def test_half_precision_is_summed_in_single_and_rounded_once(self) -> None:
        a = np.full((1, 4096), 0.1, np.float16)
        result = evaluate(tensor("R[i] = sum(k, A[i, k])", i=1, k=4096), {"A": a})
        assert result.dtype == np.float16
        assert result[0] == np.float16(a.astype(np.float64).sum())

    def test_reducing_what_does_not_depend_on_the_iterator_counts_it(self) -> None:
        a = np.array([2.0, 3.0], np.float32)
        assert evaluate(tensor("R[i] = sum(k, A[i])", i=2, k=5), {"A": a}).tolist() == [10, 15]
        assert evaluate(tensor("R[i] = prod(k, A[i])", i=2, k=3), {"A": a}).tolist() == [8, 27]


class TestSizes:
    def test_rank_zero(self) -> None:
        arrays = {"A": normal(4)}
        result = evaluate(tensor("R[()] = sum(k, A[k])", k=4), arrays)
        assert result.shape == ()
        np.testing.assert_allclose(result, arrays["A"].sum(), rtol=1e-6)
        assert evaluate(tensor("S[()] = 2 + 3"), {}).tolist() == 5

    def test_zero_size(self) -> None:
        result = evaluate(
            tensor("C[m, n] = sum(k, A[m, k] * B[k, n])", m=0, n=3, k=2), {"A": normal(0, 2), "B": normal(2, 3)}
        )
        assert result.shape == (0, 3)
        assert evaluate(tensor("T[i] = A[i + 5]", i=0), {"A": normal(0)}).shape == (0,)

    def test_symbols_are_bound_in_extents_and_bodies(self) -> None:
        expr = parse_tensor("M[i] = sum(k, A[i, k]) ".strip(), {"i": 2, "k": parse_expr("seq * 2")})
        mean = parse_tensor("D[i] = M[i] / f32(seq * 2)", {"i": 2})
        a = normal(2, 6)
        total = evaluate(expr, {"A": a}, {"seq": 3})
        np.testing.assert_allclose(evaluate(mean, {"M": total}, {"seq": 3}), a.mean(1), rtol=1e-5)
        with pytest.raises(KeyError):
            evaluate(expr, {"A": a})

    def test_memory_stays_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        seen: list[int] = []
        original = module.scalar_value

        def spy(expr: object, points: Points) -> object:
            value = original(expr, points)  # type: ignore[arg-type]
            seen.append(np.size(value))
            return value

        monkeypatch.setattr(module, "MAX_ELEMENTS", 64)
        monkeypatch.setattr(module, "scalar_value", spy)
        a, b = normal(9, 30), normal(30, 11)
        product = evaluate(tensor("C[m, n] = sum(k, exp(A[m, k]) * B[k, n])", m=9, n=11, k=30), {"A": a, "B": b})
        np.testing.assert_allclose(product, np.exp(a) @ b, rtol=1e-4, atol=1e-4)
        distance = tensor("C[m, n] = max(k, abs(A[m, k] - B[k, n]))", m=9, n=11, k=30)
        np.testing.assert_array_equal(evaluate(distance, {"A": a, "B": b}), np.abs(a[:, :, None] - b).max(1))
        long = tensor("R[i] = sum(k, exp(A[i, k]))", i=1, k=270)
        np.testing.assert_allclose(evaluate(long, {"A": a.reshape(1, 270)}), [np.exp(a).sum()], rtol=1e-5)
        views = {9 * 30, 30 * 11, 270}
        assert max(n for n in seen if n not in views) <= 64

    def test_a_box_of_windows(self) -> None:
        a, b = normal(8, 6), normal(6, 5)
        expr = tensor("C[m, n] = sum(k, A[m, k] * B[k, n])", m=8, n=5, k=6)
        points = Points(
            {"n": (1, 3), "m": (2, 5), "k": (3, 6)},
            {"A": TensorWindow(a[2:7, 3:], (2, 3)), "B": TensorWindow(b[3:, 1:], (3, 1))},
        )
        np.testing.assert_allclose(evaluate_box(expr, points), a[2:5, 3:] @ b[3:, 1:3], rtol=1e-4, atol=1e-5)


class TestMovement:
    @pytest.mark.parametrize("ttype", [name for name, each in TTYPES.items() if not each.coded])
    def test_every_type_moves_bit_by_bit(self, ttype: str) -> None:
        dtype = numpy_dtype(ttype)
        if ttype == "bool":
            x = RNG.integers(0, 2, (3, 4)).astype(bool)
        else:
            x = RNG.integers(0, 256, 3 * 4 * dtype.itemsize, np.uint8).view(dtype).reshape(3, 4)
        turned = evaluate(tensor("T[i, j] = X[j, 3 - i]", i=4, j=3), {"X": x})
        assert turned.tobytes() == np.ascontiguousarray(x[:, ::-1].T).tobytes()
        fill = "False" if ttype == "bool" else "0"
        padded = evaluate(tensor(f"T[i, j] = where(1 <= i < 4, X[i-1, j], {fill})", i=5, j=4), {"X": x})
        assert padded[1:4].tobytes() == x.tobytes()
        assert not padded[0].astype(bool).any()

    def test_reshape_gather_concat(self) -> None:
        x, y = normal(6, 4), normal(3, 4)
        reshaped = evaluate(tensor("T[a, b] = X[(a*3 + b)//4, (a*3 + b)%4]", a=8, b=3), {"X": x})
        np.testing.assert_array_equal(reshaped, x.reshape(8, 3))
        rows = np.array([5, 0, 3], np.int32)
        np.testing.assert_array_equal(evaluate(tensor("T[i, j] = X[I[i], j]", i=3, j=4), {"X": x, "I": rows}), x[rows])
        joined = evaluate(tensor("T[i, j] = where(i < 6, X[i, j], Y[i - 6, j])", i=9, j=4), {"X": x, "Y": y})
        np.testing.assert_array_equal(joined, np.concatenate([x, y]))
        np.testing.assert_array_equal(evaluate(tensor("T[i] = X[i*2 + 1, 0]", i=3), {"X": x}), x[1::2, 0])
        np.testing.assert_array_equal(evaluate(tensor("T[i] = X[i, i]", i=4), {"X": x}), np.diag(x))

    def test_a_guard_over_an_empty_operand(self) -> None:
        expr = tensor("T[i] = where(i < 0, X[i], Y[i])", i=2)
        y = np.array([1, 2], np.float32)
        np.testing.assert_array_equal(evaluate(expr, {"X": np.zeros(0, np.float32), "Y": y}), y)


class TestScalars:
    def test_erf_and_sigmoid_are_accurate(self) -> None:
        x = np.linspace(-7, 7, 2001)
        assert scalar("erf(X)", "f64", X=x).tolist() == [erf(v) for v in x]
        exact = 1 / (1 + np.exp(-np.longdouble(x)))
        np.testing.assert_allclose(scalar("sigmoid(X)", "f64", X=x), exact.astype(float), rtol=1e-15)
        assert scalar("sigmoid(X)", X=[-1000, 1000, -np.inf, np.inf]).tolist() == [0, 1, 0, 1]
        assert np.isnan(scalar("sigmoid(X)", X=[nan])[0])

    @pytest.mark.parametrize(
        ("text", "a", "b", "expected"),
        [
            ("A // B", -7, 2, -4),
            ("A % B", -7, 2, 1),
            ("truncdiv(A, B)", -7, 2, -3),
            ("fmod(A, B)", -7, 2, -1),
            ("pow(A, B)", -2, 3, -8),
            ("pow(A, B)", 2, -1, 0),
            ("pow(A, B)", -1, -3, -1),
            ("A * B", 2**30, 4, 0),
            ("shl(A, B)", 3, 2, 12),
            ("maximum(A, B)", -3, 2, 2),
            ("where(A < B, 1, 2)", -3, 2, 1),
        ],
    )
    def test_integer_semantics(self, text: str, a: int, b: int, expected: int) -> None:
        result = scalar(text, "i32", A=[a], B=[b])
        assert result.dtype in (np.int32, np.int64)
        assert result.tolist() == [expected]

    def test_nan_propagates_through_maximum_and_minimum(self) -> None:
        assert np.isnan(scalar("maximum(A, 0.0)", A=[nan])[0])
        assert np.isnan(scalar("minimum(0.0, A)", A=[nan])[0])

    def test_literals_take_the_type_they_meet(self) -> None:
        assert scalar("A * 2 + 0.5", "f64", A=[0.1]).dtype == np.float64
        assert scalar("A + 1", "u8", A=[255]).tolist() == [0]
        assert evaluate(tensor("T[i] = 1.0 / 0.0", i=2), {}).tolist() == [np.inf] * 2
        assert evaluate(tensor("T[i] = 3", i=2), {}, ttype="f16").dtype == np.float16

    def test_casts(self) -> None:
        x = np.array([1.9, -1.9, nan, 1e30, -1e30], np.float32)
        cast = evaluate(tensor("T[i] = i32(X[i])", i=5), {"X": x})
        assert cast.tolist() == [1, -1, 0, 2**31 - 1, -(2**31)]
        wide = evaluate(tensor("T[i] = i64(X[i])", i=5), {"X": x})
        assert wide.tolist() == [1, -1, 0, 2**63 - 1, -(2**63)]
        assert evaluate(tensor("T[i] = u8(X[i])", i=2), {"X": np.array([300, -1], np.int32)}).tolist() == [44, 255]
        assert evaluate(tensor("T[i] = bool(X[i])", i=2), {"X": np.array([0.5, 0], np.float32)}).tolist() == [
            True,
            False,
        ]
        narrow = evaluate(tensor("T[i] = f32(f16(X[i]))", i=1), {"X": np.array([0.1], np.float32)})
        assert narrow[0] == np.float32(np.float16(0.1))

    def test_integer_division_by_zero_is_no_error(self) -> None:
        assert scalar("where(B != 0, A // B, 7)", "i32", A=[4], B=[0]).tolist() == [7]

    def test_bad_bodies_are_type_errors(self) -> None:
        with pytest.raises(TypeError, match="meets"):
            evaluate(tensor("T[i] = A[i] + B[i]", i=1), {"A": np.zeros(1, np.float32), "B": np.zeros(1, np.int32)})
        with pytest.raises(KeyError):
            evaluate(tensor("T[i] = A[i]", i=1), {})


@given(st.integers(-50, 50), st.integers(-9, 9).filter(bool), st.integers(0, 20))
@settings(max_examples=50, deadline=None)
def test_integer_expressions_follow_python(a: int, b: int, c: int) -> None:
    text = "where(a < b, a // b, a % b) + minimum(c, 3) * maximum(a, -c)"
    expected = (a // b if a < b else a % b) + min(c, 3) * max(a, -c)
    assert integer(parse_expr(text), {"a": a, "b": b, "c": c}) == expected
    grid = integer(parse_expr(text), {"a": np.array([a, a + 1]), "b": b, "c": c})
    assert grid[0] == expected


class TestExactlyRounded:
    @pytest.mark.parametrize(
        "text", ["X[i + 1]", "X[i] * 2.0 + sqrt(X[i])", "where(i < 3, f16(X[i]), 0.0)", "i64(X[i]) // 3", "round(X[i])"]
    )
    def test_exact(self, text: str) -> None:
        assert exactly_rounded(parse_expr(text))

    @pytest.mark.parametrize(
        "text", ["exp(X[i])", "sum(k, X[k])", "max(k, X[k])", "pow(X[i], 2.0)", "maximum(X[i], 0.0)"]
    )
    def test_inexact(self, text: str) -> None:
        assert not exactly_rounded(parse_expr(text), {"X": "f32"})

    @pytest.mark.parametrize(
        "text", ["sum(k, X[k])", "prod(k, X[k])", "pow(X[i], 2)", "maximum(X[i], 0)", "max(k, X[k])"]
    )
    def test_integer_reductions_are_exact(self, text: str) -> None:
        assert exactly_rounded(parse_expr(text), {"X": "i64"})
        assert not exactly_rounded(parse_expr(text))


def test_arithmetic_of_literals_rounds_in_the_type_that_they_adopt() -> None:
    """The scales of a quantised convolution."""
    scales = [np.float32(x) for x in (0.02912256494164467, 0.002619819948449731, 0.024803517386317253)]
    a, b, c = (float(x) for x in scales)
    single = (scales[0] * scales[1]) / scales[2]
    assert np.float32(a * b / c) != single
    assert scalar(f"x * ({a!r} * {b!r} / {c!r})", x=[1.0])[0] == single
    assert scalar(f"x * ({a!r} * {b!r} / {c!r})", "f64", x=[1.0])[0] == a * b / c


def test_scales_that_are_literals_are_multiplied_in_single_precision() -> None:
    a, b, c = 0.030532851815223694, 0.004857896361500025, 0.0123456789
    single = np.float32(a) * np.float32(b) / np.float32(c)
    assert literal_value(parse_expr(f"{a} * {b} / {c}"), "f32") == single
    assert literal_value(parse_expr(f"{a} * {b} / {c}"), "f16") == single
    assert literal_value(parse_expr(f"{a} * {b} / {c}"), "f64") == a * b / c
    assert literal_value(parse_expr("exp(1.0)"), "f32") == np.float32(np.exp(1.0))


class TestGather:
    """Reads whose indices are clipped: behind guards, and where data says."""

    @pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, numpy_dtype("bf16")])
    def test_indices_along_axes_of_their_own_are_taken_dimension_by_dimension(self, dtype: type) -> None:
        a = (RNG.normal(size=(3, 5, 7)) * 9).astype(dtype)
        first, rows, columns = np.array([2, 0]), np.array([[4, 4, 0], [1, 2, 3]]), np.arange(7)[::-1]
        parts = [first.reshape(2, 1, 1, 1), rows.reshape(1, 2, 1, 3), columns.reshape(1, 1, 7, 1)]
        taken = module._taken(a, parts)
        assert taken is not None
        assert taken.dtype == a.dtype
        np.testing.assert_array_equal(taken, a[tuple(parts)])
        one = [np.asarray(1), parts[1], np.asarray(2).reshape(1, 1, 1, 1)]
        np.testing.assert_array_equal(module._taken(a, one), a[tuple(one)])

    def test_indices_that_share_an_axis_are_not(self) -> None:
        i = np.arange(3)
        assert module._taken(normal(4, 4), [i, i]) is None
        result = evaluate(tensor("T[i] = where(i < 2, A[i, i + 1], 0.0)", i=3), {"A": np.arange(9.0).reshape(3, 3)})
        assert result.tolist() == [1, 5, 0]
