"""Groups and plans in a few lines, and one check of a lowered program against NumPy and the tile machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tilec.ir.evaluate import evaluate
from tilec.ir.expr import Const, Expr, TensorExpr, as_expr, operands, substitute
from tilec.ir.graph import Node, Tensor
from tilec.ir.plan import Cost, Group, Plan, PlanLevel, Variant
from tilec.ir.program import Loop, Program, Statement
from tilec.ir.text import parse_tensor
from tilec.ir.verify.program import check_program
from tilec.lower.counts.footprint import footprint
from tilec.lower.counts.traffic import traffic
from tilec.lower.lowering import lower
from tilec.lower.lowering_context import LoweringContext, lowering_context
from tilec.machine import Result, execute

DRAM = PlanLevel("dram", None)
SHARED = PlanLevel("shared", None, 4, "explicit", "block", alignment=16)
L2 = PlanLevel("l2", None, 2, "implicit", "core")
REG = PlanLevel("reg", None)
LANES = PlanLevel("reg", None, 32, "explicit", "thread")
CPU = (DRAM, L2, REG)
GPU = (DRAM, SHARED, LANES)
HOST = (PlanLevel("host", None, alignment=64), PlanLevel("dram", None, alignment=64), L2, REG)

Sizes = Mapping[str, Mapping[str, Mapping[str, int]]]


@dataclass(frozen=True)
class Case:
    """Texts of the nodes, extents of their iterators, shapes of what they read, and the plan's decisions.

    Edges without a level are connected at the second level.
    """

    texts: Sequence[str]
    extents: Mapping[str, int | Expr]
    inputs: Mapping[str, Sequence[int | Expr]]
    tiles: Sizes = field(default_factory=dict)
    steps: Sizes = field(default_factory=dict)
    connect: Mapping[str, str] = field(default_factory=dict)
    levels: tuple[PlanLevel, ...] = CPU
    outputs: Sequence[str] = ()
    more: Mapping[str, object] = field(default_factory=dict)
    ttypes: Mapping[str, str] = field(default_factory=dict)
    symbols: tuple[str, ...] = ()
    guard: Expr = Const(True)

    def nodes(self) -> tuple[TensorExpr, ...]:
        return tuple(parse_tensor(text, self.extents) for text in self.texts)

    def plan(self) -> Plan:
        exprs = self.nodes()
        names = [e.tensor for e in exprs]
        outputs = tuple(self.outputs) or (names[-1],)
        connect = {f"{t}->{e.tensor}": self.levels[1].name for e in exprs for t in operands(e) if t in names}
        tensors = {t: Tensor(tuple(map(as_expr, s)), self.ttypes.get(t, "f32")) for t, s in self.inputs.items()}
        tensors |= {e.tensor: Tensor(e.shape, self.ttypes.get(e.tensor, "f32")) for e in exprs}
        levels = tuple(level.name for level in self.levels)
        variant = Variant(self.guard, levels, self.tiles, self.steps, "kernel", **self.more)  # type: ignore[arg-type]
        group = Group("g", tuple(map(Node, exprs)), outputs, {**connect, **self.connect}, (variant,), Cost({}, {}, {}))
        return Plan("p", "d", self.levels, self.symbols, (), (), tensors, {}, (), (group,), ())

    def setting(self) -> LoweringContext:
        plan = self.plan()
        return lowering_context(plan.groups[0], plan.groups[0].variants[0], plan)

    def program(self) -> Program:
        plan = self.plan()
        return lower(plan.groups[0], plan.groups[0].variants[0], plan)

    def bound(self, **symbols: int) -> Case:
        """The same with sizes for its symbols."""
        values = {name: Const(size) for name, size in symbols.items()}

        def bind(sizes: Sequence[int | Expr]) -> list[Expr]:
            return [Const(int(evaluated(substitute(as_expr(n), values)))) for n in sizes]

        extents = dict(zip(self.extents, bind(list(self.extents.values())), strict=True))
        texts = [replace_words(text, symbols) for text in self.texts]
        return replace(
            self, texts=texts, extents=extents, inputs={t: bind(s) for t, s in self.inputs.items()}, symbols=()
        )

    def arrays(self, seed: int = 0) -> dict[str, np.ndarray]:
        """Random inputs; integer ones hold small indices."""
        rng = np.random.default_rng(seed)
        made: dict[str, np.ndarray] = {}
        for name, shape in self.inputs.items():
            sizes = [int(evaluated(as_expr(n))) for n in shape]
            if self.ttypes.get(name, "f32").startswith("i"):
                made[name] = rng.integers(0, 3, sizes).astype(np.int64)
            else:
                made[name] = rng.standard_normal(sizes).astype(np.float32)
        return made

    def reference(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Every node over whole tensors."""
        known = dict(arrays)
        for expr in self.nodes():
            known[expr.tensor] = np.asarray(evaluate(expr, known))
        return known


def evaluated(expr: Expr) -> int:
    from tilec.ir.intervals import NUMPY

    return int(NUMPY.size(expr))


def replace_words(text: str, values: Mapping[str, int]) -> str:
    import re

    return re.sub(r"\w+", lambda m: str(values.get(m.group(), m.group())), text)


def check(case: Case, **symbols: int) -> tuple[Program, Result]:
    """Lower, verify, run; compare with NumPy, the planned bytes with the moved ones, the footprint with the peak."""
    program = case.program()
    bound = case.bound(**symbols)
    shapes = {name: tensor.shape for name, tensor in case.plan().tensors.items()}
    assert check_program(program, shapes, symbols) == ()
    arrays = bound.arrays()
    result = execute(program, arrays, symbols)
    reference = bound.reference(arrays)
    for name in program.outputs:
        np.testing.assert_allclose(result.outputs[name], reference[name], rtol=1e-4, atol=1e-4)
    assert traffic(program, symbols) == dict(result.moved)
    if not symbols:
        assert footprint(program) == {level: Const(size) for level, size in result.peak.items()}
    return program, result


def loops(body: Sequence[Statement]) -> list[Loop]:
    """All loops, outer ones first."""
    found = []
    for statement in body:
        if isinstance(statement, Loop):
            found += [statement, *loops(statement.body)]
    return found


def _inside(extent: str, *indices: str) -> str:
    return " and ".join(f"0 <= {i} and {i} < {extent}" for i in indices)


MATMUL = Case(
    ["C[m, n] = sum(k, A[m, k] * B[k, n])", "Y[m, n] = maximum(C[m, n] + b[n], 0.0)"],
    {"m": 50, "n": 40, "k": 20},
    {"A": (50, 20), "B": (20, 40), "b": (40,)},
    {"l2": {"Y": {"m": 25}}, "reg": {"Y": {"m": 14, "n": 16}}},
    {"reg": {"C": {"k": 6}}},
    {"C->Y": "reg"},
)

SOFTMAX = [
    "X[m] = max(n, S[m, n])",
    "E[m, n] = exp(S[m, n] - X[m])",
    "Z[m] = sum(n, E[m, n])",
    "R[m, n] = E[m, n] / Z[m]",
]

ATTENTION = Case(
    [
        "S[b, m, n] = sum(k, Q[b, m, k] * KT[b, k, n])",
        "X[b, m] = max(n, S[b, m, n])",
        "E[b, m, n] = exp(S[b, m, n] - X[b, m])",
        "Z[b, m] = sum(n, E[b, m, n])",
        "R[b, m, n] = E[b, m, n] / Z[b, m]",
        "O[b, m, d] = sum(n, R[b, m, n] * V[b, n, d])",
    ],
    {"b": 2, "m": 20, "k": 16, "n": 48, "d": 16},
    {"Q": (2, 20, 16), "KT": (2, 16, 48), "V": (2, 48, 16)},
    {
        "l2": {"O": {"b": 1, "m": 8}},
        "reg": {
            "S": {"m": 4, "n": 16},
            "X": {"m": 4},
            "E": {"m": 1, "n": 16},
            "Z": {"m": 4},
            "R": {"m": 1, "n": 16},
            "O": {"m": 4, "d": 16},
        },
    },
    {"l2": {"O": {"n": 24}}, "reg": {"S": {"k": 4}, "O": {"n": 8}, "X": {"n": 16}, "Z": {"n": 16}}},
)

CONVOLUTION = (
    f"C[h, w, f] = sum(r, s, c, where({_inside('13', 'h+r-1', 'w+s-1')}, I[h+r-1, w+s-1, c], 0.0) * W[r, s, c, f])"
)
POOLED = Case(
    [
        CONVOLUTION,
        "L[h, w, f] = maximum(C[h, w, f], 0.0)",
        f"P[a, b, f] = max(r, s, where({_inside('13', 'a*2+r-1', 'b*2+s-1')}, L[a*2+r-1, b*2+s-1, f], -inf))",
    ],
    {"h": 13, "w": 13, "a": 7, "b": 7, "f": 16, "r": 3, "s": 3, "c": 8},
    {"I": (13, 13, 8), "W": (3, 3, 8, 16)},
    {"l2": {"P": {"a": 3, "b": 4, "f": 8}}, "reg": {"L": {"w": 4, "f": 8}, "P": {"b": 2, "f": 8}}},
    {"reg": {"C": {"c": 4}}},
    {"C->L": "reg", "L->P": "l2"},
)

MLP = Case(
    [
        "H[m, h] = sum(k, A[m, k] * W1[k, h])",
        "G[m, h] = maximum(H[m, h], 0.0)",
        "Y[m, n] = sum(h, G[m, h] * W2[h, n])",
    ],
    {"m": 20, "h": 32, "k": 8, "n": 12},
    {"A": (20, 8), "W1": (8, 32), "W2": (32, 12)},
    {"l2": {"Y": {"m": 8}}, "reg": {"H": {"m": 4, "h": 8}, "G": {"m": 4, "h": 8}, "Y": {"m": 4, "n": 4}}},
    {"l2": {"Y": {"h": 12}}},
    {"H->G": "reg"},
)

GPU_MATMUL = replace(
    MATMUL,
    texts=[*MATMUL.texts[:1], "D[m, n] = C[m, n] + b[n]", "Y[m, n] = maximum(D[m, n] + T[m, n], 0.0)"],
    inputs={**MATMUL.inputs, "T": (50, 40)},
    tiles={"shared": {"Y": {"m": 32, "n": 16}}, "reg": {"Y": {"m": 8, "n": 4}}},
    steps={"shared": {"C": {"k": 8}}, "reg": {"C": {"k": 2}}},
    connect={"C->D": "reg", "D->Y": "reg"},
    levels=GPU,
)

RESIDUAL = Case(
    [
        f"C[h, w] = sum(r, s, where({_inside('11', 'h+r-1', 'w+s-1')}, X[h+r-1, w+s-1], 0.0) * K[r, s])",
        f"D[h, w] = sum(r, s, where({_inside('11', 'h+r-1', 'w+s-1')}, C[h+r-1, w+s-1], 0.0) * M[r, s])",
        "Y[h, w] = maximum(D[h, w] + C[h, w], 0.0)",
    ],
    {"h": 11, "w": 11, "r": 3, "s": 3},
    {"X": (11, 11), "K": (3, 3), "M": (3, 3)},
    {"l2": {"Y": {"h": 4, "w": 5}}, "reg": {"C": {"h": 3}, "D": {"w": 2}}},
)

CASES: dict[str, Case] = {
    "matmul with epilogue": MATMUL,
    "convolution with epilogue": replace(
        POOLED,
        texts=POOLED.texts[:2],
        tiles={"l2": {"L": {"h": 4}}, "reg": {"L": {"h": 1, "w": 7, "f": 8}}},
        steps={"reg": {"C": {"r": 1, "s": 1, "c": 4}}},
        connect={"C->L": "reg"},
    ),
    "convolution, ReLU and pooling with halo": POOLED,
    "cached operands are read in place": replace(POOLED, more={"loads": {"I": ("l2",), "W": ("l2",), "L": ()}}),
    "guards stay without staging": replace(POOLED, more={"loads": {"I": (), "W": (), "L": ()}}),
    "four levels": replace(
        POOLED,
        tiles={
            "dram": {"P": {"a": 4}},
            "l2": {"L": {"h": 5, "w": 6}, "P": {"a": 2, "b": 3}},
            "reg": {"L": {"w": 3, "f": 4}, "P": {"b": 2, "f": 4}},
        },
        steps={"reg": {"C": {"c": 2}}},
        connect={"C->L": "reg", "L->P": "dram"},
        levels=HOST,
    ),
    "attention": ATTENTION,
    "softmax": Case(
        SOFTMAX, {"m": 10, "n": 37}, {"S": (10, 37)}, {"l2": {"R": {"m": 4}}, "reg": {"E": {"n": 16}, "R": {"n": 16}}}
    ),
    "hidden layer in chunks": MLP,
    "hidden layer in registers": replace(
        MLP,
        tiles={"l2": {"Y": {"m": 8}}, "reg": {"Y": {"m": 4, "n": 4}}},
        steps={"reg": {"Y": {"h": 8}}},
        connect={"H->G": "reg", "G->Y": "reg"},
    ),
    "hidden layer on threads": replace(
        MLP,
        tiles={"shared": {"Y": {"m": 8}}, "reg": MLP.tiles["reg"]},
        steps={"shared": {"Y": {"h": 12}}},
        levels=GPU,
    ),
    "threads keep accumulators": GPU_MATMUL,
    "accumulators go through the cache": replace(
        MATMUL,
        texts=MATMUL.texts[:1],
        tiles={"l2": {"C": {"m": 30}}, "reg": {"C": {"m": 7}}},
        steps={"l2": {"C": {"k": 8}}},
        connect={},
    ),
    "concat": Case(
        ["C[i, j] = where(i < 5, A[i, j], B[i-5, j])", "Y[i, j] = maximum(C[i, j], 0.0)"],
        {"i": 14, "j": 6},
        {"A": (5, 6), "B": (9, 6)},
        {"l2": {"Y": {"i": 4}}, "reg": {"Y": {"i": 2}}},
    ),
    "split and merge heads": Case(
        [
            "O[h, s, d] = Q[s, h*4+d] * 2.0",
            "M[s, c] = O[c//4, s, c%4]",
            "Y[s, n] = sum(c, M[s, c] * W[c, n])",
        ],
        {"h": 3, "s": 6, "d": 4, "c": 12, "n": 10},
        {"Q": (6, 12), "W": (12, 10)},
        {"l2": {"Y": {"s": 3}}, "reg": {"Y": {"s": 1, "n": 5}}},
        {"l2": {"Y": {"c": 4}}},
    ),
    "reshape that does not align": Case(
        ["R[a, b] = X[(a*6+b)//4, (a*6+b)%4]", "Y[a, b] = R[a, b] + R[a, b]"],
        {"a": 6, "b": 6},
        {"X": (9, 4)},
        {"l2": {"Y": {"a": 2, "b": 3}}, "reg": {"Y": {"a": 1}}},
    ),
    "gather and normalisation": Case(
        [
            "E[s, c] = T[I[s], c]",
            "U[s] = sum(c, E[s, c] / 8.0)",
            "V[s] = sum(c, (E[s, c] - U[s]) * (E[s, c] - U[s]) / 8.0)",
            "N[s, c] = (E[s, c] - U[s]) / sqrt(V[s] + 0.001) * W[c]",
        ],
        {"s": 10, "c": 8},
        {"T": (7, 8), "I": (10,), "W": (8,)},
        {"l2": {"N": {"s": 4}}, "reg": {"N": {"s": 1}}},
        more={"loads": {"T": ("l2", "reg")}},
        ttypes={"I": "i64"},
    ),
    "residual with halo": RESIDUAL,
    "softmax over a fused axis": Case(
        [
            "S[a, q] = X[a, q//4, q%4] * 0.5",
            "M[a] = max(q, S[a, q])",
            "E[a, q] = exp(S[a, q] - M[a])",
            "Z[a] = sum(q, E[a, q])",
            "Y[a, u, v] = E[a, u*4+v] / Z[a]",
        ],
        {"a": 6, "q": 12, "u": 3, "v": 4},
        {"X": (6, 3, 4)},
        {"l2": {"Y": {"a": 2, "u": 1}}, "reg": {"Y": {"v": 2}, "S": {"q": 4}}},
    ),
    "packed weights": Case(
        ["D[k, n] = (P[n//8, k, n%8] - 8.0) * Sc[k//4, n]", "Y[m, n] = sum(k, A[m, k] * D[k, n])"],
        {"k": 16, "n": 24, "m": 10},
        {"P": (3, 16, 8), "Sc": (4, 24), "A": (10, 16)},
        {"l2": {"Y": {"m": 5}}, "reg": {"Y": {"m": 5, "n": 8}}},
        {"reg": {"Y": {"k": 4}}},
        {"D->Y": "reg"},
    ),
    "layouts and copies": replace(
        ATTENTION,
        more={
            "layouts": {"l2": {"KT": (0, 2, 1), "S": (1, 0, 2)}, "dram": {"O": (2, 1, 0)}},
            "copies": {"l2": {"V": 2}, "reg": {"V": 3}},
        },
    ),
    "clipped tails": replace(MATMUL, more={"tails": {"l2": {"Y": "clip"}, "reg": {"Y": "clip"}}}),
    "intermediates are outputs": replace(
        ATTENTION,
        tiles={"l2": {"O": {"b": 1, "m": 8, "d": 8}}, "reg": {"S": {"m": 4, "n": 16}, "O": {"m": 4, "d": 16}}},
        steps={},
        outputs=("O", "X", "R", "S"),
    ),
    "outputs with halo": replace(POOLED, outputs=("P", "L", "C")),
    "further sinks": Case(
        [
            "A[m, n] = X[m, n] * 2.0",
            "B[m] = max(n, A[m, n])",
            "C[m, n] = exp(A[m, n])",
            "D[m, n] = A[m, n] + C[m, n]",
        ],
        {"m": 10, "n": 12},
        {"X": (10, 12)},
        {"l2": {"D": {"m": 4}}, "reg": {"D": {"n": 8, "m": 1}}},
        outputs=("B", "C", "D"),
    ),
    "scalar output": Case(
        ["T[()] = sum(i, X[i])".replace("[()]", "[()]"), "Y[i] = X[i] / T[()]"],
        {"i": 10},
        {"X": (10,)},
        {"l2": {"Y": {"i": 4}}},
        {"reg": {"T": {"i": 3}}},
        outputs=("T", "Y"),
    ),
}
