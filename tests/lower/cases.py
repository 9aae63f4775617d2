"""Groups and plans in a few lines, and one check of a lowered program against NumPy and the tile machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilec.ir.evaluate import evaluate
from tilec.ir.expr import Const, Expr, TensorExpr, as_expr, operands
from tilec.ir.graph import Node, Tensor
from tilec.ir.plan import Cost, Group, Plan, PlanLevel, Variant
from tilec.ir.program import Program
from tilec.ir.text import parse_tensor
from tilec.lower.lowering import lower

DRAM = PlanLevel("dram", None)
SHARED = PlanLevel("shared", None, 4, "explicit", "block")
L2 = PlanLevel("l2", None, 2, "implicit", "core")
REG = PlanLevel("reg", None)
LANES = PlanLevel("reg", None, 32, "explicit", "thread")
CPU = (DRAM, L2, REG)
GPU = (DRAM, SHARED, LANES)
HOST = (PlanLevel("host", None), PlanLevel("dram", None), L2, REG)


@dataclass
class Case:
    """Texts of the nodes, extents of their iterators, shapes of what they read, and the plan's decisions."""

    texts: Sequence[str]
    extents: Mapping[str, int | Expr]
    inputs: Mapping[str, Sequence[int | Expr]]
    tiles: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    steps: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    connect: Mapping[str, str] = field(default_factory=dict)
    levels: tuple[PlanLevel, ...] = CPU
    outputs: Sequence[str] = ()
    more: Mapping[str, object] = field(default_factory=dict)
    ttypes: Mapping[str, str] = field(default_factory=dict)
    symbols: tuple[str, ...] = ()
    guard: Expr = Const(True)

    def parsed(self) -> tuple[TensorExpr, ...]:
        """The nodes' expressions."""
        return tuple(parse_tensor(text, self.extents) for text in self.texts)

    def plan(self) -> Plan:
        """A plan of one group with one variant; edges without a level are connected at the second."""
        exprs = self.parsed()
        names = [e.tensor for e in exprs]
        outputs = tuple(self.outputs) or (names[-1],)
        connect = {f"{t}->{e.tensor}": self.levels[1].name for e in exprs for t in operands(e) if t in names}
        tensors = {t: Tensor(tuple(map(as_expr, s)), self.ttypes.get(t, "f32")) for t, s in self.inputs.items()}
        tensors |= {e.tensor: Tensor(e.shape, self.ttypes.get(e.tensor, "f32")) for e in exprs}
        levels = tuple(level.name for level in self.levels)
        variant = Variant(self.guard, levels, self.tiles, self.steps, "kernel", **self.more)  # type: ignore[arg-type]
        group = Group("g", tuple(map(Node, exprs)), outputs, {**connect, **self.connect}, (variant,), Cost({}, {}, {}))
        return Plan("p", "d", self.levels, self.symbols, (), (), tensors, {}, (), (group,), ())

    def program(self) -> Program:
        """The lowered group."""
        plan = self.plan()
        return lower(plan.groups[0], plan.groups[0].variants[0], plan)

    def arrays(self, seed: int = 0) -> dict[str, np.ndarray]:
        """Random inputs; integer ones hold small indices."""
        rng = np.random.default_rng(seed)
        made = {}
        for name, tensor in self.plan().tensors.items():
            if name in self.inputs:
                shape = tuple(int(n.value) for n in tensor.shape if isinstance(n, Const))
                integer = tensor.ttype.startswith("i")
                made[name] = (
                    rng.integers(0, 3, shape).astype(np.int64)
                    if integer
                    else rng.standard_normal(shape).astype(np.float32)
                )
        return made


def reference(case: Case, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Every node over whole tensors."""
    known = dict(arrays)
    for expr in case.parsed():
        known[expr.tensor] = np.asarray(evaluate(expr, known))
    return known
