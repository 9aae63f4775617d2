"""Kernels of real operators, lowered from plans, compiled and run: right on the tile sizes that hurt."""

import itertools
from functools import cache

import numpy as np
import pytest

from tests.codegen.cpu.patterns import GUARD, attention, depthwise_pointwise, layer_norm_matmul, relayed_gelu
from tests.codegen.cpu.running import AVX2, AVX512, NEON, Batch, close
from tests.lower.cases import DRAM, L2, Case
from tilec.codegen.cpu.compile.compile_tir import compile_function
from tilec.codegen.cpu.emit.emit_kernel import emit, emit_kernel
from tilec.ir.expr import Var, as_expr
from tilec.ir.sizes import SymbolRange
from tilec.ir.text import text_of
from tilec.machine import execute
from tilec.spec.device import Target


def gemm(m: int, n: int, k: int, tile: tuple[int, int], block: tuple[int, int], **more: object) -> Case:
    """Packed weights in panels as wide as the register tile."""
    panel = tile[1]
    return Case(
        [f"C[m, n] = sum(k, A[m, k] * B[n // {panel}, k, n % {panel}])"],
        {"m": m, "n": n, "k": k},
        {"A": (m, k), "B": (-(-n // panel), k, panel)},
        {"l2": {"C": {"m": block[0], "n": block[1]}}, "reg": {"C": {"m": tile[0], "n": tile[1]}}},
        **more,  # type: ignore[arg-type]
    )


def convolution(n: int, c: int, o: int, rows: int, width: int) -> Case:
    guarded = GUARD.format(n=n, x="h + r - 1, w + s - 1, c", fill="0.0")
    return Case(
        [f"Y[h, w, o] = sum(r, s, c, {guarded} * W[o // 16, r, s, c, o % 16])"],
        {"h": n, "w": n, "o": o, "r": 3, "s": 3, "c": c},
        {"X": (n, n, c), "W": (o // 16, 3, 3, c, 16)},
        {"l2": {"Y": {"h": rows}}, "reg": {"Y": {"h": 1, "w": width, "o": 16}}},
    )


def pooling(n: int, c: int) -> Case:
    guarded = GUARD.format(n=n, x="h + r - 1, w + s - 1, c", fill="-inf").replace("-inf", "-1e30")
    return Case(
        [f"Y[h, w, c] = max(r, s, {guarded})"],
        {"h": n, "w": n, "c": c, "r": 3, "s": 3},
        {"X": (n, n, c)},
        {"l2": {"Y": {"h": 4}}, "reg": {"Y": {"h": 1, "w": 3}}},
    )


def plain(text: str, extents: dict[str, int], inputs: dict[str, tuple[int, ...]], **more: object) -> Case:
    """One node, tiled at l2 only or not at all."""
    return Case([text], extents, inputs, levels=(DRAM, L2), **more)  # type: ignore[arg-type]


KERNELS = {
    "gemm": gemm(28, 64, 20, (14, 32), (14, 64)),
    "gemm shifted": gemm(30, 64, 20, (14, 32), (20, 64)),
    "gemm clipped": gemm(30, 50, 17, (4, 16), (13, 32), more={"tails": {"reg": {"C": "clip"}, "l2": {"C": "clip"}}}),
    "gemm steps": gemm(12, 32, 40, (6, 16), (12, 32), steps={"l2": {"C": {"k": 8}}, "reg": {"C": {"k": 4}}}),
    "gemm one": gemm(1, 1, 1, (1, 1), (1, 1)),
    "convolution": convolution(9, 6, 32, 4, 5),
    "convolution one row": convolution(5, 1, 16, 1, 5),
    "pooling": pooling(11, 20),
    "depthwise, pointwise": depthwise_pointwise(),
    "layer norm, matmul": layer_norm_matmul(),
    "attention": attention(layout=True),
    "attention without staging": attention(layout=False),
    "gelu epilogue": relayed_gelu(),
    "row sums": plain("Y[m] = sum(n, X[m, n])", {"m": 5, "n": 103}, {"X": (5, 103)}),
    "row maxima": plain("Y[m] = max(n, X[m, n])", {"m": 5, "n": 31}, {"X": (5, 31)}),
    "column sums": plain("Y[n] = sum(m, X[m, n])", {"m": 21, "n": 37}, {"X": (21, 37)}),
    "all": plain("Y[()] = sum(m, n, X[m, n])", {"m": 21, "n": 37}, {"X": (21, 37)}),
    "product": plain("Y[m] = prod(n, X[m, n])", {"m": 3, "n": 19}, {"X": (3, 19)}),
    "transposed product": plain(
        "Y[m, n] = sum(k, A[m, k] * B[n, k])", {"m": 7, "n": 9, "k": 53}, {"A": (7, 53), "B": (9, 53)}
    ),
    "strided": plain("Y[h, c] = X[h * 2 + 1, c * 3]", {"h": 5, "c": 21}, {"X": (10, 61)}),
    "strided sum": plain(
        "Y[o, w] = sum(s, X[w * 2 + s] * W[o, s])", {"o": 6, "w": 20, "s": 3}, {"X": (41,), "W": (6, 3)}
    ),
    "transpose": plain("Y[c, h, w] = X[h, w, c]", {"c": 37, "h": 5, "w": 7}, {"X": (5, 7, 37)}),
    "transpose back": plain("Y[h, w, c] = X[c, h, w]", {"c": 37, "h": 5, "w": 7}, {"X": (37, 5, 7)}),
    "transpose of halves": plain(
        "Y[b, a] = X[a, b]", {"a": 70, "b": 35}, {"X": (70, 35)}, ttypes={"X": "i64", "Y": "i64"}
    ),
    "reversed": plain("Y[i] = X[36 - i]", {"i": 37}, {"X": (37,)}),
    "broadcast": plain("Y[a, b, c] = X[a, c] + Z[b]", {"a": 3, "b": 4, "c": 19}, {"X": (3, 19), "Z": (4,)}),
    "concat": plain("Y[i, j] = where(j < 13, A[i, j], B[i, j - 13])", {"i": 4, "j": 40}, {"A": (4, 13), "B": (4, 27)}),
    "concat of parts": plain(
        "Y[i, j] = where(j < 16, A[i, j], where(j < 24, B[i, j - 16], where(j < 56, C[i, j - 24], A[i, j - 56])))",
        {"i": 5, "j": 72},
        {"A": (5, 16), "B": (5, 8), "C": (5, 32)},
    ),
    "concat of rows": plain(
        "Y[i, j] = where(i < 3, A[i, j], where(i < 4, B[i - 3, j], C[i - 4, j]))",
        {"i": 9, "j": 21},
        {"A": (3, 21), "B": (1, 21), "C": (5, 21)},
    ),
    "causal": plain("Y[i, j] = where(j <= i, X[i, j], -1000000000.0)", {"i": 21, "j": 21}, {"X": (21, 21)}),
    "padded": plain(
        "Y[i] = sum(r, where(0 <= i + r - 2 and i + r - 2 < 33, X[i + r - 2], 0.0) * W[r])",
        {"i": 33, "r": 5},
        {"X": (33,), "W": (5,)},
    ),
    "shuffled channels": plain("Y[h, c] = X[h, c % 2, c // 2]", {"h": 3, "c": 58}, {"X": (3, 2, 29)}),
    "doubled pixels": plain("Y[h, w] = X[h // 2, w // 2] + Z[h, w]", {"h": 4, "w": 37}, {"X": (2, 19), "Z": (4, 37)}),
    "depth to space": plain("Y[h, w] = X[h // 2, w // 2, h % 2 * 2 + w % 2]", {"h": 6, "w": 34}, {"X": (3, 17, 4)}),
    "every fourth": plain("Y[i] = X[i * 4 + 3] * X[i * 5]", {"i": 50}, {"X": (260,)}),
    "guarded rows": plain(
        "Y[h, w] = where(0 <= h - 2 and h - 2 < 5, X[h - 2, w], 1.0)", {"h": 9, "w": 20}, {"X": (5, 20)}
    ),
    "guarded gather": plain(
        "Y[i] = where(i < 5, T[I[i]], 0.0)", {"i": 19}, {"T": (7,), "I": (5,)}, ttypes={"I": "i64"}
    ),
    "reshape across rows": plain("Y[a, b] = X[(a * 6 + b) // 4, (a * 6 + b) % 4]", {"a": 6, "b": 6}, {"X": (9, 4)}),
    "gather": plain("Y[s, c] = T[I[s], c]", {"s": 9, "c": 21}, {"T": (5, 21), "I": (9,)}, ttypes={"I": "i64"}),
    "gather along": plain("Y[s, c] = T[s, I[c]]", {"s": 3, "c": 40}, {"T": (3, 7), "I": (40,)}, ttypes={"I": "i32"}),
    "wrapped gather": plain(
        "Y[s] = T[where(I[s] < 0, I[s] + 5, I[s])]", {"s": 9}, {"T": (5,), "I": (9,)}, ttypes={"I": "i64"}
    ),
    "gather between": plain("Y[s] = T[i64(floor(F[s] * 2.0 + 2.0))]", {"s": 21}, {"T": (5,), "F": (21,)}),
    "argument": plain("Y[i] = i * 3 % 7", {"i": 40}, {}, ttypes={"Y": "i64"}),
    "few": plain("Y[i] = exp(X[i])", {"i": 3}, {"X": (3,)}),
    "one": plain("Y[()] = exp(X[()])", {}, {"X": ()}),
    "nothing": plain("Y[i, j] = exp(X[i, j])", {"i": 0, "j": 3}, {"X": (0, 3)}),
    "sum of nothing": plain("Y[i] = sum(j, X[i, j])", {"i": 3, "j": 0}, {"X": (3, 0)}),
}
ON_ALL = ("gemm shifted", "attention", "transpose", "concat", "concat of parts", "gather along")
TARGETS = {"64 bytes": AVX512, "32 bytes": AVX2, "16 bytes": NEON}


def arrays_of(case: Case) -> dict[str, np.ndarray]:
    made = case.arrays(3)
    return {name: a.astype(np.int32) if case.ttypes.get(name) == "i32" else a for name, a in made.items()}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """For a kernel the results of its half of all, (kernel, target) -> tensors: a half is built at once."""
    halves = [list(KERNELS.items())[half::2] for half in range(2)]

    @cache
    def ran(half):
        batch, names = Batch(), []
        for number, (name, case) in enumerate(halves[half]):
            for target in TARGETS if name in ON_ALL else [list(TARGETS)[number % 3]]:
                names.append((name, target))
                batch.add(case.program(), arrays_of(case), TARGETS[target])
        return dict(zip(names, batch.run(tmp_path_factory.mktemp("kernels")), strict=True))

    return lambda name: ran(next(half for half in range(2) if name in dict(halves[half])))


@pytest.mark.feature("W31")
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_agree_with_numpy(results, name):
    case = KERNELS[name]
    arrays = arrays_of(case)
    wanted = case.reference(arrays)
    found = [(target, made) for (kernel, target), made in results(name).items() if kernel == name]
    assert found
    for target, made in found:
        for tensor, array in made.items():
            assert close(array, wanted[tensor]), (target, np.abs(array - wanted[tensor]).max(initial=0))


def test_nan_comes_through_reductions_and_infinities_stay(tmp_path):
    """Row and column maxima, minima and sums, in vectors, in pieces and folded."""
    x = np.random.default_rng(5).standard_normal((7, 53)).astype(np.float32)
    x[1, 0], x[2, 52], x[3, 20], x[4, 3] = np.nan, np.nan, np.inf, -np.inf
    batch, wanted = Batch(), []
    for fn, axis in itertools.product(("max", "min", "sum"), (0, 1)):
        text = f"Y[n] = {fn}(m, X[m, n])" if axis == 0 else f"Y[m] = {fn}(n, X[m, n])"
        batch.add(plain(text, {"m": 7, "n": 53}, {"X": x.shape}).program(), {"X": x}, AVX512)
        wanted.append(getattr(np, fn)(x, axis=axis))
    for made, want in zip(batch.run(tmp_path), wanted, strict=True):
        assert close(made["Y"], want)


def test_indices_out_of_range_never_leave_the_tensor(tmp_path):
    """As in the reference they are clipped; what lies around the tensor is not read."""
    case = plain("Y[s, c] = T[I[s], c]", {"s": 6, "c": 21}, {"T": (5, 21), "I": (6,)}, ttypes={"I": "i64"})
    table = np.random.default_rng(5).standard_normal((5, 21)).astype(np.float32)
    arrays = {"T": table, "I": np.array([0, 4, 5, 1 << 40, -1, -(1 << 40)])}
    batch = Batch()
    batch.add(case.program(), arrays, AVX512)
    (made,) = batch.run(tmp_path)
    assert np.array_equal(made["Y"], table[[0, 4, 4, 4, 0, 0]])


def test_results_do_not_depend_on_threads(tmp_path):
    """Tasks in any grouping, other scratch: the same bits."""
    batch = Batch()
    for name in ("gemm shifted", "attention", "convolution"):
        batch.add(KERNELS[name].program(), arrays_of(KERNELS[name]), AVX512)
    alone, together = batch.run(tmp_path, threads=1), batch.run(tmp_path, threads=2)
    for one, two in zip(alone, together, strict=True):
        assert all(np.array_equal(one[tensor], two[tensor]) for tensor in one)


@pytest.mark.parametrize(
    ("target", "triple", "processor"),
    [(AVX2, "x86_64-unknown-linux-gnu", "haswell"), (NEON, "aarch64-unknown-linux-gnu", "neoverse-n1")],
    ids=["avx2", "neon"],
)
def test_other_processors(target, triple, processor):
    kernel = emit(KERNELS["attention"].program(), target)
    data = compile_function(kernel.function, Target(backend="cpu", triple=triple, processor=processor))
    machine = {"x86_64": b"\x3e", "aarch64": b"\xb7"}[triple.split("-")[0]]
    assert data[:4] == b"\x7fELF"
    assert data[18:19] == machine


def test_tasks_are_the_iterations_of_the_outermost_spread_loops():
    kernel = emit(KERNELS["attention"].program(), AVX512, "symbol")
    assert kernel.tasks == 4
    assert kernel.scratch_bytes % 64 == 0
    assert kernel.function.attrs["global_symbol"] == "symbol"
    assert emit_kernel(KERNELS["gemm one"].program(), AVX512).attrs["global_symbol"] == "kernel"


def test_nothing_is_staged_where_a_view_does():
    assert emit(KERNELS["gemm shifted"].program(), AVX512).scratch_bytes == 0
    assert emit(KERNELS["convolution"].program(), AVX512).scratch_bytes > 0


def test_working_memory_without_a_largest_size_is_an_expression():
    rows = Var("rows")
    case = Case(
        ["S[i] = sum(r, X[i, r])", "Y[j] = max(i, exp(S[i] * W[j]))"],
        {"i": rows, "r": 4, "j": 8},
        {"X": (rows, 4), "W": (8,)},
        {"l2": {"Y": {"j": 4}}, "reg": {"S": {"i": 4}, "Y": {"j": 1}}},
        symbols=("rows",),
    )
    assert text_of(as_expr(emit(case.program(), AVX512).scratch_bytes)) == "(maximum(rows, 1) + 15) // 16 * 64"
    large = emit(case.program(), AVX512, symbol_ranges={"rows": SymbolRange(0, 1 << 20)})
    assert text_of(as_expr(large.scratch_bytes)) == "(maximum(rows, 1) + 15) // 16 * 64"
    assert emit(case.program(), AVX512, symbol_ranges={"rows": SymbolRange(1, 100)}).scratch_bytes == 448


def test_code_stays_small():
    """The reduce loop of a register tile is unrolled twice at most."""
    text = emit(gemm(28, 64, 512, (14, 32), (28, 64)).program(), AVX512).function.script()
    assert text.count("\n") < 400


def test_a_literal_that_its_type_cannot_hold_wraps(tmp_path):
    padded = "Y[i] = max(r, where(0 <= i + r - 1 and i + r - 1 < 5, X[i + r - 1], -1000))"
    case = plain(padded, {"i": 5, "r": 3}, {"X": (5,)}, ttypes={"X": "i8", "Y": "i8"})
    arrays = {"X": np.arange(-5, 0, dtype=np.int8)}
    batch = Batch()
    batch.add(case.program(), arrays)
    (made,) = batch.run(tmp_path)
    assert made["Y"].tolist() == case.reference(arrays)["Y"].tolist() == [24, -3, -2, -1, 24]
    assert execute(case.program(), arrays).outputs["Y"].tolist() == made["Y"].tolist()
