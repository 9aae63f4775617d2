"""Lowering context: the nodes, tensors, levels and decisions of one group, constant while it is lowered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isinf

from tilec.ir.algebra import linear_form, simplify
from tilec.ir.expr import NEUTRAL, Const, Expr, Scalar, TensorExpr, Var, constant_value, operands
from tilec.ir.graph import Tensor
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.plan import Group, Plan, PlanLevel, Variant, tile_levels
from tilec.ir.reads import at_least_zero
from tilec.ir.sizes import algebra_ranges
from tilec.ir.types import TTYPES
from tilec.lower.promote_halves import PROMOTED_TTYPE, promote_halves, read_wide, reads_rounded, rounded
from tilec.lower.shared_loops import SharedLoop, present, previous_tensors, shared_loops
from tilec.lower.symbolic_bounds import SymbolicBounds

Interval = tuple[Expr, Expr]
"""`[lo, hi)` of an iterator or a dimension."""
Box = dict[str, Interval]
"""Iterator -> interval."""
Window = tuple[Interval, ...]
"""An interval per dimension of a tensor."""


@dataclass(slots=True)
class Names:
    """A generator of unique names."""

    taken: set[str] = field(default_factory=set)

    def new(self, wish: str) -> str:
        """`wish` itself, or `wish` with the first free number."""
        name, number = wish, 1
        while name in self.taken:
            number += 1
            name = f"{wish}_{number}"
        self.taken.add(name)
        return name


@dataclass(frozen=True, slots=True)
class LoweringContext:
    """One group under one variant.

    `nodes` are in topological order, `operands` the tensors that each of them reads, `readers` the nodes that read a
    tensor, to compute or to rescale their own; `shared` are shared loops by leader. `sizes` has the ranges of the
    symbols that the variant's guard implies and of every loop so far; `filled` maps buffers to the constant outside
    their tensor.
    """

    nodes: Mapping[str, TensorExpr]
    operands: Mapping[str, tuple[str, ...]]
    readers: Mapping[str, Sequence[str]]
    tensors: Mapping[str, Tensor]
    shapes: Mapping[str, tuple[Expr, ...]]
    outputs: tuple[str, ...]
    connect: Mapping[str, str]
    variant: Variant
    levels: tuple[PlanLevel, ...]
    names: Names
    sizes: SymbolicBounds
    filled: dict[str, Scalar]
    shared: Mapping[str, SharedLoop]

    @property
    def top(self) -> int:
        """Position of the highest level, where tiles are computed."""
        return len(self.levels) - 1

    def spread(self, level: int) -> bool:
        """Whether a level has several instances under one of the level below."""
        return level <= self.top and self.levels[level].units > 1

    def spread_above(self, level: int) -> bool:
        """Whether several units of some higher level share an instance of a level."""
        return any(self.spread(higher) for higher in range(level + 1, self.top + 1))

    def scope(self, level: int) -> str:
        """The name of the units of a level."""
        return self.levels[level].scope or self.levels[level].name

    def copied(self, tensor: str, level: int) -> bool:
        """Whether a tensor has a buffer at a level on its way up."""
        levels = self.variant.loads.get(tensor)
        return levels is None or self.levels[level].name in levels

    def ttype(self, tensor: str, level: int) -> str:
        """The type in which a tensor is stored at a level: that of the highest level up to it that the plan names."""
        ttype = self.tensors[tensor].ttype
        for each in self.levels[: level + 1]:
            ttype = self.variant.held.get(each.name, {}).get(tensor, ttype)
        return ttype

    def consumers(self, tensor: str, part: Sequence[str]) -> list[str]:
        """Nodes of a part that read a tensor, in the order of the part."""
        names = [name for name in self.readers.get(tensor, ()) if name in part]
        return sorted(names, key=part.index) if len(names) > 1 else names


def lowering_context(group: Group, variant: Variant, plan: Plan) -> LoweringContext:
    """The lowering context of a group, one of its variants and the plan."""
    held = {tensor for tensors in variant.held.values() for tensor in tensors}
    ttypes = {name: tensor.ttype for name, tensor in plan.tensors.items()} if held else {}
    wide = read_wide(group, variant)
    nodes = {node.name: promote_halves(node.expr, wide | ({node.name} & held), ttypes) for node in group.nodes}
    nodes |= {
        name: rounded(nodes[name], ttypes[name]) for name in group.outputs if name in held and not nodes[name].reduce
    }
    for name, expr in nodes.items():
        above = {t for t in operands(expr) if group.connect.get(f"{t}->{name}") == variant.levels[-1]}
        nodes[name] = reads_rounded(expr, above.intersection(held - wide), ttypes)
    inside = wide.intersection(nodes).difference(group.outputs)
    promoted = {name: replace(plan.tensors[name], ttype=PROMOTED_TTYPE) for name in inside}
    read = {name: operands(expr) for name, expr in nodes.items()}
    readers: dict[str, list[str]] = {}
    for name, tensors_read in read.items():
        for tensor in tensors_read:
            readers.setdefault(tensor, []).append(name)
    shared = shared_loops(variant.shared, nodes)
    for loop in shared.values():
        for name, rescale in loop.rescale.items():
            for tensor in operands(present(rescale)):
                if name not in readers.setdefault(tensor, []) and tensor != name:
                    readers[tensor].append(name)
    taken = set(plan.symbols) | set(plan.tensors) | {i for expr in nodes.values() for i in expr.iterators}
    names = Names(taken)
    before = {tensor: names.new(f"{tensor}_before") for tensor in previous_tensors(shared.values())}
    tensors = {**plan.tensors, **promoted}
    tensors |= {name: tensors[tensor] for tensor, name in before.items()}
    loads = {name: variant.loads[tensor] for tensor, name in before.items() if tensor in variant.loads}
    return LoweringContext(
        nodes=nodes,
        operands=read,
        readers=readers,
        tensors=tensors,
        shapes={name: tensor.shape for name, tensor in tensors.items()},
        outputs=group.outputs,
        connect=group.connect,
        variant=replace(variant, loads={**variant.loads, **loads}) if loads else variant,
        levels=tile_levels(plan.levels, variant.levels),
        names=names,
        sizes=symbolic_bounds(plan, variant.guard),
        filled={},
        shared={leader: replace(loop, before=before) for leader, loop in shared.items()},
    )


def symbolic_bounds(plan: Plan, guard: Expr) -> SymbolicBounds:
    """Facts about symbols where a guard holds: the ends of their ranges, and what guard and constraints compare."""
    ranges = dict(algebra_ranges(plan.symbols, plan.symbol_ranges))
    assumed: list[Expr] = []
    for condition in (guard, *(constraint.holds for constraint in plan.constraints)):
        for known in at_least_zero(condition):
            terms, constant = linear_form(known)
            match list(terms.items()):
                case [(Var(name), 1)]:
                    low, high = ranges[name]
                    ranges[name] = (max(low, Const(-constant), key=_number), high)
                case [(Var(name), -1)]:
                    low, high = ranges[name]
                    ranges[name] = (low, min(high, Const(constant), key=_number))
                case _:
                    assumed.append(simplify(known))
    return SymbolicBounds(KnownRanges(ranges), frozenset(plan.symbols), tuple(assumed))


def _number(end: Expr) -> float:
    """The end of a range as a number; a symbol's own upper end has no limit."""
    number = constant_value(end)
    return inf if number is None else number


def neutral(reducer: str, ttype: str) -> Scalar:
    """The neutral element of a reduction in the range of its type."""
    value = NEUTRAL[reducer]
    kind = TTYPES[ttype]
    if kind.kind == "float":
        return value
    if kind.kind == "bool":
        return value > 0 if isinf(value) else bool(value)
    if not isinf(value):
        return int(value)
    unsigned = kind.kind == "uint"
    low, high = (0, 2**kind.bits - 1) if unsigned else (-(2 ** (kind.bits - 1)), 2 ** (kind.bits - 1) - 1)
    return low if value == -inf else high
