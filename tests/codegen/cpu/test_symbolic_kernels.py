"""Kernels with open sizes, each compiled once: right at every size that its symbols may have, and as decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
import pytest

from tests.codegen.cpu.running import AVX2, AVX512, NEON, close
from tests.codegen.cpu.symbolic import Compiled, compiled, load
from tests.lower.cases import Case
from tests.scheduler.graphs import make_graph, values_of
from tests.scheduler.running import device
from tilec.codegen.cpu.check_decisions import check_decisions
from tilec.codegen.cpu.decide import decided_variant, lowered_kernel, variant_ranges
from tilec.codegen.cpu.decisions import Decisions
from tilec.codegen.cpu.emit.emit_kernel import emit_lowered
from tilec.codegen.cpu.kernel_ir import For, If, Step, Tile
from tilec.codegen.cpu.kernel_text import kernel_text
from tilec.codegen.cpu.pipeline import KernelContext, lower_kernel
from tilec.codegen.cpu.target import CpuTarget
from tilec.ir.evaluate import evaluate, integer
from tilec.ir.expr import Const, Expr, Var, as_expr, variables
from tilec.ir.graph import Graph, Inline
from tilec.ir.plan import Plan
from tilec.ir.program import Buffer, Program
from tilec.ir.sizes import SymbolRange
from tilec.ir.text import parse_expr
from tilec.ir.types import numpy_dtype
from tilec.lower.lowering import lower
from tilec.machine import execute
from tilec.scheduler.schedule import schedule

Array = np.ndarray
M, N, K, H, W = (Var(name) for name in "MNKHW")
BATCH, SEQ = Var("batch"), Var("seq")
SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 24, 31, 32, 33, 40, 48, 49, 63, 64, 65, 80, 100, 130)


@dataclass(frozen=True)
class Open:
    """A case with the ranges of its symbols, and bounds of inputs that are indices."""

    case: Case
    ranges: Mapping[str, SymbolRange] = field(default_factory=dict)
    below: Mapping[str, str | int] = field(default_factory=dict)

    def sizes(self) -> Iterator[dict[str, int]]:
        """Sizes of all symbols that are allowed: all of them for one symbol, a seventh of the pairs."""
        symbols = self.case.symbols
        for number, combination in enumerate(product(SIZES, repeat=len(symbols))):
            sizes = dict(zip(symbols, combination, strict=True))
            allowed = all(self.ranges.get(s, SymbolRange()).holds(n) for s, n in sizes.items())
            if allowed and (len(symbols) == 1 or (number % 7 == 0 and np.prod(combination) < 4000)):
                yield sizes

    def arrays(self, program: Program, sizes: Mapping[str, int]) -> dict[str, Array]:
        """Random inputs of some sizes."""
        rng = np.random.default_rng(sum(sizes.values()))
        made: dict[str, Array] = {}
        for p in program.parameters:
            if p.name in program.outputs:
                continue
            shape = [integer(as_expr(n), sizes) for n in p.shape]
            if p.name in self.below:
                limit = integer(parse_expr(str(self.below[p.name])), sizes)
                made[p.name] = rng.integers(0, max(1, limit), shape).astype(np.int64)
            elif p.ttype.startswith("i"):
                made[p.name] = rng.integers(-5, 6, shape).astype(numpy_dtype(p.ttype))
            else:
                made[p.name] = rng.standard_normal(shape).astype(numpy_dtype(p.ttype))
        return made

    def reference(self, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> dict[str, Array]:
        """Every node in NumPy, real numbers in double precision."""
        known = {n: a.astype(np.float64) if a.dtype == np.float32 else a for n, a in arrays.items()}
        for expr in self.case.bound(**sizes).nodes():
            known[expr.tensor] = np.asarray(evaluate(expr, known))
        return known


def gemm(
    m: int | Expr, n: int | Expr, k: int | Expr, task: dict, reg: dict, step: int = 0, guard: str = "True"
) -> Case:
    """A product with bias and rectifier."""
    return Case(
        ["C[m, n] = sum(k, A[m, k] * B[k, n])", "Y[m, n] = maximum(C[m, n] + b[n], 0.0)"],
        {"m": m, "n": n, "k": k},
        {"A": (m, k), "B": (k, n), "b": (n,)},
        {"l2": {"Y": task}, "reg": {"Y": reg}},
        {"l2": {"C": {"k": step}}} if step else {},
        connect={"C->Y": "reg"},
        symbols=tuple(sorted({v.name for v in (m, n, k) if isinstance(v, Var)})),
        guard=parse_expr(guard),
    )


def attention(batch: int | Expr) -> Case:
    return Case(
        [
            "S[b, m, n] = sum(k, Q[b, m, k] * K[b, n, k])",
            "X[b, m] = max(n, S[b, m, n])",
            "E[b, m, n] = exp(S[b, m, n] - X[b, m])",
            "Z[b, m] = sum(n, E[b, m, n])",
            "O[b, m, d] = sum(n, E[b, m, n] * V[b, n, d])",
            "R[b, m, d] = O[b, m, d] / Z[b, m]",
        ],
        {"b": batch, "m": SEQ, "k": 24, "n": SEQ, "d": 20},
        {"Q": (batch, SEQ, 24), "K": (batch, SEQ, 24), "V": (batch, SEQ, 20)},
        {
            "l2": {"R": {"b": 1, "m": 6}},
            "reg": {"S": {"m": 3, "n": 16}, "X": {"m": 4}, "E": {"m": 1}, "Z": {"m": 4}, "R": {"m": 3, "d": 16}},
        },
        connect={"O->R": "reg"},
        symbols=("batch", "seq") if isinstance(batch, Var) else ("seq",),
    )


def layer_norm() -> Case:
    return Case(
        [
            "U[s] = sum(c, X[s, c] / 40.0)",
            "V[s] = sum(c, (X[s, c] - U[s]) * (X[s, c] - U[s]) / 40.0)",
            "Y[s, c] = (X[s, c] - U[s]) / sqrt(V[s] + 0.001)",
        ],
        {"s": SEQ, "c": 40},
        {"X": (SEQ, 40)},
        {"l2": {"Y": {"s": 6}}, "reg": {"U": {"s": 4}, "V": {"s": 4}, "Y": {"s": 2, "c": 16}}},
        symbols=("seq",),
    )


def guarded(place: str, h: str, w: str) -> str:
    """A read of a padded image."""
    return f"where(0 <= {h} and {h} < H and 0 <= {w} and {w} < W, {place}, 0.0)"


def one(text: str, extents: dict, inputs: dict, task: dict | None = None, reg: dict | None = None, **more) -> Case:
    """A single node with tiles of its own."""
    name = text[: text.index("[")]
    found = {v for e in (*extents.values(), *(n for s in inputs.values() for n in s)) for v in variables(as_expr(e))}
    tiles = {level: {name: sizes} for level, sizes in (("l2", task), ("reg", reg)) if sizes}
    return Case([text], extents, inputs, tiles, symbols=tuple(sorted(found)), **more)


IMAGE = {"H": SymbolRange(1, 130), "W": SymbolRange(1, 130)}
SAME = guarded("X[h + r - 1, w + s - 1, c]", "h + r - 1", "w + s - 1")
STRIDED = guarded("X[c, h*2 + r - 1, w*2 + s - 1]", "h*2 + r - 1", "w*2 + s - 1")

CASES = {
    "gemm, rows": Open(gemm(M, 64, 48, {"m": 16}, {"m": 8, "n": 32}, 16)),
    "gemm, rows from a tile on": Open(
        gemm(M, 64, 48, {"m": 16}, {"m": 8, "n": 32}, 16, "M >= 16"), {"M": SymbolRange(16)}
    ),
    "gemm, rows in multiples": Open(gemm(M, 64, 48, {"m": 16}, {"m": 8, "n": 32}), {"M": SymbolRange(0, None, 8)}),
    "gemm, rows in odd tiles": Open(gemm(M, 50, 36, {"m": 10}, {"m": 4, "n": 32}, 12)),
    "gemm, sum in steps": Open(gemm(19, 50, K, {"m": 10}, {"m": 5, "n": 32}, 16)),
    "gemm, sum in one": Open(gemm(19, 50, K, {"m": 10}, {"m": 5, "n": 32}), {"K": SymbolRange(0, 500)}),
    "gemm, columns": Open(gemm(12, N, 20, {"n": 64}, {"m": 4, "n": 32}, 10)),
    "gemm, columns in one": Open(gemm(12, N, 20, {"m": 4}, {"m": 4}), {"N": SymbolRange(1, 300)}),
    "gemm, rows and columns": Open(gemm(M, N, 24, {"m": 8, "n": 32}, {"m": 4, "n": 32}, 8)),
    "gemm, rows and columns in stripes": Open(
        replace(gemm(M, N, 24, {"m": 8, "n": 32}, {"m": 4, "n": 32}, 8), more={"raster": {"l2": {"Y": 3}}})
    ),
    "gemm, rows and sum": Open(gemm(M, 48, K, {"m": 12}, {"m": 6, "n": 48}, 32)),
    "attention": Open(attention(2), {"seq": SymbolRange(1, 200)}),
    "attention, batch": Open(attention(BATCH), {"seq": SymbolRange(1, 200)}),
    "normalisation": Open(layer_norm()),
    "elementwise": Open(one("Y[i, j] = exp(X[i, j]) * 2.0", {"i": M, "j": N}, {"X": (M, N)})),
    "broadcast": Open(one("Y[i, j] = X[i] + Z[j]", {"i": M, "j": N}, {"X": (M,), "Z": (N,)}, {"i": 4})),
    "transpose": Open(one("Y[j, i] = X[i, j]", {"j": N, "i": M}, {"X": (M, N)}, {"j": 32, "i": 32})),
    "transpose of rows": Open(one("Y[j, i, k] = X[i, j, k]", {"j": 12, "i": M, "k": 8}, {"X": (M, 12, 8)}, {"j": 4})),
    "concat": Open(
        one("Y[i] = where(i < M, A[i], Z[i - M])", {"i": parse_expr("M + N")}, {"A": (M,), "Z": (N,)}, {"i": 48})
    ),
    "concat of rows": Open(
        one(
            "Y[j, i] = where(i < M, A[j, i], Z[j, i - M])",
            {"j": 5, "i": parse_expr("M + 7")},
            {"A": (5, M), "Z": (5, 7)},
            {"j": 2},
        )
    ),
    "gather": Open(
        one("Y[i, j] = X[I[i], j]", {"i": M, "j": N}, {"X": (9, N), "I": (M,)}, {"i": 4}, ttypes={"I": "i64"}),
        below={"I": 9},
    ),
    "gather from an open table": Open(
        one("Y[i] = X[I[i]]", {"i": 20}, {"X": (N,), "I": (20,)}, ttypes={"I": "i64"}),
        {"N": SymbolRange(1)},
        {"I": "N"},
    ),
    "sum": Open(one("Y[i] = sum(j, X[i, j])", {"i": M, "j": N}, {"X": (M, N)}, {"i": 8}, {"i": 4})),
    "maximum of columns": Open(
        one("Y[j] = max(i, X[i, j])", {"j": N, "i": M}, {"X": (M, N)}, {"j": 32}), {"M": SymbolRange(1)}
    ),
    "every other": Open(one("Y[i] = X[i*2 + 1]", {"i": parse_expr("M//2")}, {"X": (M,)}, {"i": 40})),
    "strided slice": Open(
        one(
            "Y[i, j] = X[i*2, j*3]",
            {"i": parse_expr("(M + 1)//2"), "j": parse_expr("(N + 2)//3")},
            {"X": (M, N)},
            {"i": 4},
        )
    ),
    "reverse": Open(one("Y[i] = X[M - 1 - i]", {"i": M}, {"X": (M,)})),
    "reshape": Open(one("Y[i] = X[i // N, i % N] + 1.0", {"i": parse_expr("M*N")}, {"X": (M, N)}, {"i": 64})),
    "int8 product": Open(
        one(
            "Y[m, n] = sum(k, i32(A[m, k]) * i32(B[k, n]))",
            {"m": M, "n": 24, "k": K},
            {"A": (M, K), "B": (K, 24)},
            {"m": 8},
            {"m": 4},
            ttypes={"A": "i8", "B": "i8", "Y": "i32"},
        )
    ),
    "to f16": Open(one("Y[i, j] = f16(X[i, j])", {"i": M, "j": 30}, {"X": (M, 30)}, ttypes={"Y": "f16"})),
    "from bf16": Open(one("Y[i] = f32(X[i]) + 1.0", {"i": M}, {"X": (M,)}, ttypes={"X": "bf16"})),
    "depthwise convolution": Open(
        one(
            f"Y[h, w, c] = sum(r, s, {SAME} * D[r, s, c])",
            {"h": H, "w": W, "c": 24, "r": 3, "s": 3},
            {"X": (H, W, 24), "D": (3, 3, 24)},
            {"h": 4},
            {"h": 1, "w": 4, "c": 16},
        ),
        IMAGE,
    ),
    "convolution with stride": Open(
        one(
            f"Y[n, h, w] = sum(c, r, s, {STRIDED} * D[n, c, r, s])",
            {"n": 6, "h": parse_expr("(H + 1)//2"), "w": parse_expr("(W + 1)//2"), "c": 5, "r": 3, "s": 3},
            {"X": (5, H, W), "D": (6, 5, 3, 3)},
            {"h": 4},
            {"n": 2, "h": 1, "w": 16},
        ),
        IMAGE,
    ),
    "convolution": Open(
        one(
            f"Y[h, w, n] = sum(c, r, s, {SAME} * D[r, s, c, n])",
            {"h": H, "w": W, "n": 32, "c": 8, "r": 3, "s": 3},
            {"X": (H, W, 8), "D": (3, 3, 8, 32)},
            {"h": 4},
            {"h": 1, "w": 6, "n": 32},
        ),
        IMAGE,
    ),
    "pooling": Open(
        one(
            "Y[c, h, w] = max(r, s, X[c, h*2 + r, w*2 + s])",
            {"c": 3, "h": parse_expr("(H - 3)//2 + 1"), "w": parse_expr("(W - 3)//2 + 1"), "r": 3, "s": 3},
            {"X": (3, H, W)},
            {"c": 1, "h": 4},
        ),
        {"H": SymbolRange(3), "W": SymbolRange(3)},
    ),
    "stitched convolutions": Open(
        Case(
            [
                f"T[h, w, c] = sum(r, s, {SAME} * D[r, s, c])",
                "G[h, w, c] = maximum(T[h, w, c], 0.0)",
                "Y[h, w, n] = sum(c, G[h, w, c] * P[c, n])",
            ],
            {"h": H, "w": W, "c": 24, "r": 3, "s": 3, "n": 20},
            {"X": (H, W, 24), "D": (3, 3, 24), "P": (24, 20)},
            {"l2": {"Y": {"h": 4}}, "reg": {"G": {"h": 1, "w": 5, "c": 16}, "Y": {"h": 1, "w": 4, "n": 16}}},
            connect={"T->G": "reg"},
            symbols=("H", "W"),
        ),
        IMAGE,
    ),
}
TARGETS = (AVX512, AVX2, NEON)


def agree(made: Array, wanted: Array) -> bool:
    if made.dtype.kind in "iu":
        return bool(np.array_equal(made, wanted))
    return close(made, wanted, 2e-2 if made.dtype.itemsize == 2 else 1e-4)


@pytest.mark.quick_cases(
    "gemm, rows from a tile on",
    "gemm, sum in one",
    "gemm, columns in one",
    "elementwise",
    "broadcast",
    "transpose of rows",
    "concat",
    "concat of rows",
    "gather",
    "gather from an open table",
    "maximum of columns",
    "every other",
    "strided slice",
    "reverse",
    "reshape",
    "to f16",
    "from bf16",
)
@pytest.mark.feature("B06")
@pytest.mark.parametrize("name", CASES)
def test_one_kernel_is_right_at_every_size(name: str) -> None:
    right_at_every_size(CASES[name], TARGETS[list(CASES).index(name) % len(TARGETS)])


LIMITED = [name for name, tested in CASES.items() if any(entry.high for entry in tested.ranges.values())]


@pytest.mark.quick_cases("gemm, sum in one", "gemm, columns in one", "attention")
@pytest.mark.feature("B06")
@pytest.mark.parametrize("name", LIMITED)
def test_working_memory_grows_with_sizes_that_have_no_limit(name: str) -> None:
    tested = CASES[name]
    ranges = {symbol: replace(entry, high=None) for symbol, entry in tested.ranges.items()}
    right_at_every_size(replace(tested, ranges=ranges), AVX512)


def right_at_every_size(tested: Open, target: CpuTarget) -> None:
    program = tested.case.program()
    kernel = compiled(program, tested.ranges, target)
    assert kernel.kernel.symbols == tested.case.symbols
    count = 0
    for number, sizes in enumerate(tested.sizes()):
        arrays = tested.arrays(program, sizes)
        made = kernel(arrays, sizes, ranges=1 + number % 3)
        wanted = tested.reference(arrays, sizes)
        for output in program.outputs:
            assert agree(made[output], np.asarray(wanted[output])), sizes
        if max(sizes.values()) in (1, 9, 17):
            machine = execute(program, arrays, sizes).outputs
            assert all(agree(made[o], np.asarray(machine[o])) for o in program.outputs), sizes
        count += 1
    assert count > 8


def spans(steps: Sequence[Step]) -> Iterator[Tile]:
    for step in steps:
        match step:
            case For():
                yield from spans(step.body)
            case If():
                yield from spans((*step.yes, *step.no))
            case Tile():
                yield step


@pytest.mark.parametrize("rows", [16, 128, 512])
def test_full_tiles_are_those_of_a_bound_program(rows: int) -> None:
    """The hot loop of a product with open rows is the one of a product with a multiple of its tile of rows."""
    tiles = {"m": 16}, {"m": 8, "n": 32}
    open_rows = lower_kernel(KernelContext(gemm(M, 64, 48, *tiles).program(), AVX512))
    bound = lower_kernel(KernelContext(gemm(rows, 64, 48, *tiles).program(), AVX512))
    (nest,) = open_rows.nests
    (branch,) = nest.body
    assert isinstance(branch, If)
    (expected,) = bound.nests
    names = {array.name: array.name.partition(".")[0] for array in (*open_rows.memories, *bound.memories)}
    found, wanted = (
        [(tuple(d.extent for d in t.dims), t.blocking, names[t.target.tensor]) for t in spans(body)]
        for body in (branch.yes, expected.body)
    )
    assert found == wanted
    local = {array.name for array in open_rows.memories if array.pieces}
    assert {t.target.tensor for t in spans(branch.yes)} <= local | {"Y"}


def test_no_rest_where_the_guard_says_so() -> None:
    """Tasks that may be moved back have one version; a rest is cut in powers of two, never masked."""
    moved = gemm(M, 64, 48, {"m": 16}, {"m": 8, "n": 32}, guard="M >= 16")
    (nest,) = lower_kernel(KernelContext(moved.program(), AVX512, symbol_ranges={"M": SymbolRange(16)})).nests
    assert not any(isinstance(step, If) for step in nest.body)
    cut = lower_kernel(KernelContext(gemm(M, 64, 48, {"m": 16}, {"m": 8, "n": 32}).program(), AVX512))
    tails = [t for n in cut.nests for t in spans(n.body) if t.reduce and any(d.size is None for d in t.spatial)]
    tails += [t for part in cut.parts for t in spans(part.body) if t.reduce and any(d.size is None for d in t.spatial)]
    assert tails
    for tail in tails:
        assert tail.blocking is not None
        (rows,) = (d.name for d in tail.spatial if d.size is None)
        assert [strip.width for strip in tail.blocking.runs[rows]] == [4, 2, 1]


Choices = list[tuple[Expr, Compiled]]
"""The variants of a group: guards and kernels, the first that holds runs."""


def scheduled(plan: Plan, name: str) -> list[Choices]:
    """The kernels of a plan's groups as they are decided."""
    target = CpuTarget.of(device(name))
    groups: list[Choices] = []
    for group in plan.groups:
        choices: Choices = []
        for planned in group.variants:
            program = lower(group, planned, plan)
            variant = decided_variant(device(name), plan, [group], program)
            assert variant.vectors
            ranges = variant_ranges(plan, variant)
            context = KernelContext(program, target, decisions=Decisions.of(variant, program), symbol_ranges=ranges)
            made = lowered_kernel(context)
            assert check_decisions(made, group, variant, plan, context) == ()
            large = frozenset(program.outputs) & made.kernel.nontemporal
            rules = lowered_kernel(KernelContext(program, target, large, symbol_ranges=ranges))
            assert kernel_text(made.kernel) == kernel_text(rules.kernel)
            choices.append((variant.guard, load(program, emit_lowered(made.kernel, target))))
        groups.append(choices)
    return groups


def encoder() -> Graph:
    """A layer of an encoder with open batch and length."""
    return replace(
        make_graph(
            {"X": ("batch", "seq", 64)},
            [
                ("U[b, s, n] = sum(k, X[b, s, k] * Wq[k, n])", {"b": "batch", "s": "seq", "n": 64, "k": 64}),
                ("Q[b, s, n] = U[b, s, n] + bq[n]", {"b": "batch", "s": "seq", "n": 64}),
                ("K[b, s, n] = sum(k, X[b, s, k] * Wk[k, n])", {"b": "batch", "s": "seq", "n": 64, "k": 64}),
                (
                    "S[b, h, m, n] = sum(k, Q[b, m, h*16 + k] * K[b, n, h*16 + k])",
                    {"b": "batch", "h": 4, "m": "seq", "n": "seq", "k": 16},
                ),
                ("T[b, h, m] = max(n, S[b, h, m, n])", {"b": "batch", "h": 4, "m": "seq", "n": "seq"}),
                (
                    "E[b, h, m, n] = exp(S[b, h, m, n] - T[b, h, m])",
                    {"b": "batch", "h": 4, "m": "seq", "n": "seq"},
                ),
                ("Z[b, h, m] = sum(n, E[b, h, m, n])", {"b": "batch", "h": 4, "m": "seq", "n": "seq"}),
                (
                    "O[b, m, h, d] = sum(n, E[b, h, m, n] * X[b, n, h*16 + d])",
                    {"b": "batch", "m": "seq", "h": 4, "d": 16, "n": "seq"},
                ),
                (
                    "Y[b, m, h, d] = O[b, m, h, d] / Z[b, h, m] + X[b, m, h*16 + d]",
                    {"b": "batch", "m": "seq", "h": 4, "d": 16},
                ),
            ],
            ["Y"],
            {"Wq": (64, 64), "Wk": (64, 64), "bq": (64,)},
            ["batch", "seq"],
        ),
        symbol_ranges={"batch": SymbolRange(0, 8, likely=(1,)), "seq": SymbolRange(1, 160, likely=(128, 32))},
    )


def image_network() -> Graph:
    """Convolutions over an image of open height."""
    inside = "0 <= h + r - 1 and h + r - 1 < high and 0 <= w + s - 1 and w + s - 1 < 24"
    sizes: dict[str, int | str] = {"h": "high", "w": 24}
    return replace(
        make_graph(
            {"X": (3, "high", 24)},
            [
                (
                    f"C[n, h, w] = sum(c, r, s, where({inside}, X[c, h + r - 1, w + s - 1], 0.0) * F[n, c, r, s])",
                    {"n": 16, **sizes, "c": 3, "r": 3, "s": 3},
                ),
                ("R[n, h, w] = maximum(C[n, h, w], 0.0)", {"n": 16, **sizes}),
                (
                    f"D[n, h, w] = sum(r, s, where({inside}, R[n, h + r - 1, w + s - 1], 0.0) * G[n, r, s])",
                    {"n": 16, **sizes, "r": 3, "s": 3},
                ),
                ("P[n, h, w] = sum(c, D[c, h, w] * L[n, c])", {"n": 8, **sizes, "c": 16}),
                ("Y[n] = sum(h, w, P[n, h, w])", {"n": 8, **sizes}),
            ],
            ["P", "Y"],
            {"F": (16, 3, 3, 3), "G": (16, 3, 3), "L": (8, 16)},
            ["high"],
        ),
        symbol_ranges={"high": SymbolRange(1, 100, likely=(48,))},
    )


@pytest.mark.quick_cases("image network")
@pytest.mark.feature("B06")
@pytest.mark.parametrize(
    ("graph", "sizes", "name"),
    [
        (
            encoder(),
            [{"batch": b, "seq": s} for b, s in ((0, 9), (1, 1), (1, 16), (2, 17), (3, 64), (1, 129), (8, 5))],
            "neon",
        ),
        (
            replace(encoder(), symbol_ranges={"seq": SymbolRange(likely=(128, 32))}),
            [{"batch": b, "seq": s} for b, s in ((1, 0), (1, 1), (9, 16), (2, 17), (3, 64), (1, 300))],
            "zen5-avx512",
        ),
        (image_network(), [{"high": n} for n in (1, 2, 3, 7, 8, 16, 17, 31, 48, 100)], "avx2"),
    ],
    ids=["encoder", "encoder of any size", "image network"],
)
def test_kernels_of_a_plan_are_right_as_they_are_decided(graph: Graph, sizes: list[dict[str, int]], name: str) -> None:
    plan = schedule(graph, device(name))
    kernels = scheduled(plan, name)
    for each in sizes:
        known: dict[str, Array] = dict(values_of(replace(graph, outputs=graph.inputs), each))
        constants = {n: np.asarray(c.values, np.float32) for n, c in plan.constants.items() if isinstance(c, Inline)}
        for tensor, values in constants.items():
            known[tensor] = values.reshape([integer(e, each) for e in plan.tensors[tensor].shape])
        for node in plan.prepared:
            known[node.name] = evaluate(node.expr, known, each, plan.tensors[node.name].ttype)
        for choices in kernels:
            kernel = next(kernel for guard, kernel in choices if guard == Const(True) or integer(guard, each))
            known |= kernel({p.name: known[p.name] for p in inputs_of(kernel.program)}, each)
        for tensor, wanted in values_of(graph, each).items():
            assert agree(known[tensor], np.asarray(wanted)), (tensor, each)


def inputs_of(program: Program) -> list[Buffer]:
    return [p for p in program.parameters if p.name not in program.outputs]
