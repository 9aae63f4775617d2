"""The plan: what `schedule` writes, people review and `lower` turns into tile programs (W15-W18, B09).

A plan fixes everything that code generation needs.  It is self-contained: tensors, constants and the nodes'
expressions come with it.  An edge is written `tensor->node`; a node is named by the tensor it defines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tilec.ir.decision_forms import (
    COUNT,
    HALF,
    ITERATOR,
    LEVEL,
    NODE,
    PLAIN,
    REDUCE,
    SPATIAL,
    TENSOR,
    Dimensions,
    Form,
    Items,
    Members,
    Name,
    Record,
    Scalar,
    Table,
    decides,
    holds,
)
from tilec.ir.expr import Const, Expr
from tilec.ir.graph import Call, Constant, Node, Opaque, Placement, Port, Tensor

Sizes = Mapping[str, int]
"""Iterator -> tile size or reduce step."""

Tail = Literal["shift", "clip"]
"""What the last tile does when a tile size does not divide the extent: move back so that it ends with the
tensor (pure tiles only), or become narrower."""


PrefetchKind = Literal["step", "task", "both"]
"""Who fetches a tensor ahead: the reductions that read it, while they compute the step before; the longest reduction of
a task, for the next one; both."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Capacity that explicit levels share. The pool stands beside each instance of the highest of them; a buffer of a
    lower one lies in `instances` pools, a share of it in each. `capacity` in bytes of one pool."""

    name: str
    capacity: int
    instances: int = 1

    def __post_init__(self) -> None:
        if self.capacity < 0 or self.instances < 1:
            raise ValueError(f"pool {self.name} has {self.capacity} bytes, {self.instances} of it hold a level")

    def share(self, size: int) -> int:
        """Bytes that a buffer of `size` bytes takes of each pool."""
        return -(-size // self.instances)


@dataclass(frozen=True, slots=True)
class PlanLevel:
    """A memory level as far as a plan depends on it. `capacity` in bytes of one instance (None: unbounded),
    `units` instances under one instance of the level below, `scope` names the units of a spread loop, `transaction`
    bytes move at once; `pool` where it shares its capacity with other levels."""

    name: str
    capacity: int | None
    units: int = 1
    managed: Literal["explicit", "implicit"] = "explicit"
    scope: str = ""
    transaction: int = 1
    pool: Pool | None = None


@dataclass(frozen=True, slots=True)
class Shared:
    """A reduction in a reduce loop that several share, the result of one being read while it still grows.

    loop       the node whose reduce steps make the loop, the last of those that share it; itself for that node
    iterators  reduce iterator -> reduce iterator of `loop` that moves it
    rescale    what the partial result becomes when partial results that it depends on change, in the node's spatial
               iterators: its own element, `X[m]` as it is now and `before(X[m])` as it was; alone the own element when
               nothing has to be done
    """

    loop: str = field(metadata=holds(NODE))
    iterators: Mapping[str, str] = field(metadata=holds(Table(REDUCE, Name("reduce", of="loop"))))
    rescale: Expr = field(metadata=holds(Scalar()))


def _tables(subject: Name, item: Form) -> Table:
    """Level -> node or tensor -> value."""
    return Table(LEVEL, Table(subject, item))


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run a group, taken when `guard` (over symbols) holds; the last guard of a group is `True`.

    Fields with metadata are decisions. A further one is a further field: renaming, diff, the names of kernels and the
    checks follow its form (`tilec.ir.decisions`), `lower` or a code generator obeys it.

    levels       levels that hold tiles, lowest first; the first holds whole tensors
    tiles        level -> node -> iterator -> tile size (absent: the whole box of the level below)
    steps        level -> node -> reduce iterator -> reduce step (absent: the whole extent)
    order        level -> node -> tile loops, outermost first (absent: order of the spatial iterators)
    tails        level -> node -> tail policy (absent: shift where legal, else clip)
    loads        tensor -> levels at which it is copied on its way up (absent: every level above its home, but not for a
                 node that indexes it by data, which reads it where it lies)
    units        node -> compute unit of the device (absent: scalar or vector by stride analysis)
    copies       level -> tensor -> pipeline depth (absent: 1)
    layouts      level -> tensor -> order of its dimensions in storage there, outermost first (absent: row-major);
                 a load into another layout is a transforming copy
    shared       reductions that run in one reduce loop though one reads another's result, by node
    wide         half precision tensors that stay inside the group and are held as f32 there, in which they are computed
    vectors      node -> iterator that vectors run along ("": scalar code); a variant without any leaves this and the
                 four decisions that follow to the rules of the back end, as does a node that is absent
    unroll       node -> iterator -> points that one body of its innermost loops covers (absent: 1, or one vector along
                 the vector iterator); iterators between which no access leaves a gap run as one, the innermost
    accumulators node -> partial results of a point, which are combined at the end (absent: 1)
    prefetch     tensor -> who fetches it ahead (absent: nobody); of an output the lines to be written are fetched
    streamed     outputs that are stored past the caches
    kernel       name of the kernel that runs it; groups with equal kernels share it (W41)
    """

    guard: Expr
    levels: tuple[str, ...]
    tiles: Mapping[str, Mapping[str, Sizes]] = field(
        metadata=decides("tile", "tile", _tables(NODE, Table(SPATIAL, COUNT)), "part", always_signed=True)
    )
    steps: Mapping[str, Mapping[str, Sizes]] = field(
        metadata=decides("step", "reduce step", _tables(NODE, Table(REDUCE, COUNT)), "reduce loop", always_signed=True)
    )
    kernel: str
    order: Mapping[str, Mapping[str, tuple[str, ...]]] = field(
        default_factory=dict,
        metadata=decides(
            "order", "order of loops", _tables(NODE, Items(SPATIAL, distinct=True)), "part", always_signed=True
        ),
    )
    tails: Mapping[str, Mapping[str, Tail]] = field(
        default_factory=dict,
        metadata=decides("tail", "tail policy", _tables(NODE, PLAIN), "part", always_signed=True),
    )
    loads: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict,
        metadata=decides("load", "levels of copies", Table(TENSOR, Items(LEVEL)), always_signed=True),
    )
    layouts: Mapping[str, Mapping[str, tuple[int, ...]]] = field(
        default_factory=dict,
        metadata=decides("layout", "layout", _tables(TENSOR, Dimensions()), "buffer", always_signed=True),
    )
    units: Mapping[str, str] = field(
        default_factory=dict, metadata=decides("unit", "compute unit", Table(NODE, PLAIN), always_signed=True)
    )
    copies: Mapping[str, Mapping[str, int]] = field(
        default_factory=dict, metadata=decides("copies", "number of copies", _tables(TENSOR, COUNT), "buffer")
    )
    shared: Mapping[str, Shared] = field(
        default_factory=dict, metadata=decides("shared", "shared loop", Table(NODE, Record(Shared)), "shared loop")
    )
    wide: tuple[str, ...] = field(default=(), metadata=decides("wide", "type in a buffer", Members(HALF, "f32")))
    vectors: Mapping[str, str] = field(
        default_factory=dict, metadata=decides("vector", "vector", Table(NODE, Name("iterator", optional=True)))
    )
    unroll: Mapping[str, Sizes] = field(
        default_factory=dict, metadata=decides("unroll", "unrolling", Table(NODE, Table(ITERATOR, COUNT)))
    )
    accumulators: Mapping[str, int] = field(
        default_factory=dict, metadata=decides("accumulators", "number of accumulators", Table(NODE, COUNT))
    )
    prefetch: Mapping[str, PrefetchKind] = field(
        default_factory=dict, metadata=decides("prefetch", "prefetch", Table(TENSOR, PLAIN))
    )
    streamed: tuple[str, ...] = field(
        default=(), metadata=decides("streamed", "streamed store", Members(TENSOR, "past the caches"))
    )


@dataclass(frozen=True, slots=True)
class Cost:
    """What a group moves and computes: bytes read and written per level (from the level below), the footprint of
    one instance per level, and floating-point operations; integer expressions.

    `transactions` is the number of those that loads from a level and stores to it take, each `PlanLevel.transaction`
    bytes of that level (W22); `picoseconds` the predicted time of the group.
    """

    read: Mapping[str, Expr]
    written: Mapping[str, Expr]
    footprint: Mapping[str, Expr]
    flops: Expr = Const(0)
    transactions: Mapping[str, Expr] = field(default_factory=dict)
    picoseconds: int = 0


@dataclass(frozen=True, slots=True)
class Bound:
    """How few bytes can move between a level and the one below: `least` at least, by proof, `known` by a mapping that
    is known (None: none fits)."""

    least: int
    known: int | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes that run together. `connect` gives the level of every edge inside (the tensor on it never goes below
    that level); `outputs` are the tensors that leave it. `bounds` has the levels at which all that the group moves is
    counted."""

    name: str
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    connect: Mapping[str, str]
    variants: tuple[Variant, ...]
    cost: Cost
    bounds: Mapping[str, Bound] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an edge was not connected: a code of the closed list, with its numbers."""

    edge: str
    code: str
    numbers: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """Groups in execution order, and the nodes that are evaluated once at code generation (`prepared`: packed
    and converted weights, W43) instead of at every run. `calls` and `opaque` are those of the graph; a group runs
    behind the last call that it depends on. `bounds` are those of all groups together, each at the capacity of its
    level: bytes in one instance and in all that is above it."""

    name: str
    device: str
    levels: tuple[PlanLevel, ...]
    symbols: tuple[str, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    tensors: Mapping[str, Tensor]
    constants: Mapping[str, Constant]
    prepared: tuple[Node, ...]
    groups: tuple[Group, ...]
    refusals: tuple[Refusal, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    placement: Placement = Placement(0, 0)
    unfused_traffic: Expr = Const(0)
    calls: tuple[Call, ...] = ()
    opaque: Mapping[str, Opaque] = field(default_factory=dict)
    capacities: Mapping[str, int] = field(default_factory=dict)
    bounds: Mapping[str, Bound] = field(default_factory=dict)
