"""The plan: the artifact that `schedule` writes, people review and `lower` turns into tile programs (Welder, 3.2).

A plan fixes every decision that code generation needs. It is self-contained: tensors, constants and the nodes'
expressions come with it. An edge is written `tensor->node`; a node is named by the tensor it defines.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tilec.ir.decision_forms import (
    COUNT,
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
from tilec.ir.graph import (
    Call,
    Constant,
    Default,
    IndexRange,
    Node,
    Opaque,
    Placement,
    Port,
    Retyped,
    Room,
    RoundedState,
    Rounding,
    Tensor,
)
from tilec.ir.sizes import Constraint, Scenario, SymbolRange

Sizes = Mapping[str, int]
"""Iterator -> tile size or reduce step."""

Tail = Literal["shift", "clip"]
"""Treatment of the last tile where a tile size does not divide the extent: `shift` moves it back so that it ends with
the tensor (pure tiles only), `clip` makes it narrower."""


PrefetchKind = Literal["step", "task", "both"]
"""Who fetches a tensor ahead: the reductions that read it, while they compute the step before; the longest reduction of
a task, for the next one; both."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Capacity shared by explicit levels. The pool stands beside each instance of the highest of them; a buffer of a
    lower one lies in `instances` pools, an equal share in each. `capacity` is in bytes of one pool."""

    name: str
    capacity: int
    instances: int = 1

    def __post_init__(self) -> None:
        if self.capacity < 0 or self.instances < 1:
            raise ValueError(f"pool {self.name} has {self.capacity} bytes, {self.instances} of it hold a level")

    def share(self, size: int) -> int:
        """Bytes of each pool that a buffer of `size` bytes occupies."""
        return -(-size // self.instances)


@dataclass(frozen=True, slots=True)
class PlanLevel:
    """The properties of a memory level that a plan depends on. `capacity` is in bytes of one instance (None:
    unbounded), `units` the number of instances under one instance of the level below, `scope` the name of the units of
    a spread loop, `transaction` the bytes that move at once, `pool` the capacity that it shares with other levels. A
    cache with `write_allocate` fetches what is stored through it.

    `alignment` is what the addresses of buffers at the level are multiples of, in bytes. None: its buffers have no
    addresses; hardware decides where the lines of a cache lie, a compiler allocates registers.
    """

    name: str
    capacity: int | None
    units: int = 1
    managed: Literal["explicit", "implicit"] = "explicit"
    scope: str = ""
    transaction: int = 1
    pool: Pool | None = None
    alignment: int | None = None
    write_allocate: bool = False


def tile_levels(levels: Sequence[PlanLevel], names: Collection[str]) -> tuple[PlanLevel, ...]:
    """The levels of these names, lowest first, as if there were no others: units of levels between them multiply."""
    chosen: list[PlanLevel] = []
    units = 1
    for level in levels:
        units *= level.units
        if level.name in names:
            scope = level.scope or (level.name if units > 1 else "")
            chosen.append(replace(level, units=units, scope=scope))
            units = 1
    return tuple(chosen)


@dataclass(frozen=True, slots=True)
class Shared:
    """A reduction in a reduce loop shared by several, in which one reads another's partial result (online reductions).

    loop       the node whose reduce steps form the loop, the last of those that share it; itself for that node
    iterators  reduce iterator -> reduce iterator of `loop` that moves it
    rescale    update of the partial result when partial results that it depends on change, over the node's spatial
               iterators: its own element, `X[m]` the current and `before(X[m])` the previous partial result; the plain
               own element when no update is needed
    """

    loop: str = field(metadata=holds(NODE))
    iterators: Mapping[str, str] = field(metadata=holds(Table(REDUCE, Name("reduce", of="loop"))))
    rescale: Expr = field(metadata=holds(Scalar()))


def _tables(subject: Name, item: Form) -> Table:
    """Level -> node or tensor -> value."""
    return Table(LEVEL, Table(subject, item))


@dataclass(frozen=True, slots=True)
class Variant:
    """One implementation of a group, taken when `guard` (over symbols) holds; the last guard of a group is `True`.

    Fields with metadata are decisions. A further one is a further field: renaming, diff, the names of kernels and the
    checks follow its form (`tilec.ir.decisions`), `lower` or a code generator obeys it.

    levels       levels that hold tiles, lowest first; the first holds whole tensors
    tiles        level -> node -> iterator -> tile size (absent: the whole box of the level below)
    steps        level -> node -> reduce iterator -> reduce step (absent: the whole extent)
    order        level -> node -> tile loops, outermost first (absent: order of the spatial iterators)
    raster       level -> node -> tiles along the outermost tile loop that units take before the next tile along the
                 loops inside it, so that those that run side by side share more operands (absent: 1)
    tails        level -> node -> tail policy (absent: shift where legal, else clip)
    loads        tensor -> levels at which it is copied on its way up (absent: every level above its home; a node that
                 indexes the tensor by data reads it at its home)
    units        node -> compute unit of the device (absent: scalar or vector by stride analysis)
    copies       level -> tensor -> copies of its window there, so that the loads of a reduce loop begin as many
                 iterations ahead, less one, and are asynchronous (absent: 1)
    layouts      level -> tensor -> order of its dimensions in storage there, outermost first (absent: row-major);
                 a load into another layout is a transforming copy
    pads         level -> tensor -> elements that stay unused behind every row of its innermost dimension in storage
                 there, so that neighbouring rows begin in other banks (absent: 0)
    swizzles     level -> tensor -> bytes, 32, 64 or 128, of the panels that its rows are cut into in storage there; the
                 pieces of 16 bytes of a panel's row are permuted by the number of the row, so that those below one
                 another lie in other banks (absent: whole rows, in order)
    shared       reductions that run in one reduce loop though one reads another's result, by node
    held         level -> tensor -> type in which the tensor is stored from that level upward (absent: its own): f32, in
                 which half precision is computed, for operands that a load at the level converts, and for results of
                 the group, which are rounded where they go below that level, or where they leave the group, and not at
                 all if they do neither
    vectors      node -> iterator that vectors run along ("": scalar code); a variant without any leaves this and the
                 four decisions that follow to the rules of the back end, as does a node that is absent
    unroll       node -> iterator -> points that one body of its innermost loops covers (absent: 1, or one vector along
                 the vector iterator); iterators between which no access leaves a gap run as one, the innermost; on
                 GPUs a body of a lane, of a product of matrices the unrolled steps along its depth
    accumulators node -> partial results of a point, which are combined at the end (absent: 1)
    prefetch     tensor -> who fetches it ahead (absent: nobody); of an output the lines to be written are fetched
    streamed     outputs that are stored past the caches
    threads      level -> threads of a block there, on GPUs; a variant without any leaves this, `unroll` and the three
                 decisions that follow to the rules of the back end
    resident     level -> blocks that share a core, for which the compiler leaves registers (absent: 1)
    asynchronous level -> tensors whose loads there no thread waits for before it goes on (absent: none)
    fast         functions of f32 of which an approximation does: exp, erf, sigmoid, /
    kernel       name of the kernel that runs it; groups with equal kernels share it (sub-graph cache; Welder, 4.2)
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
    raster: Mapping[str, Mapping[str, int]] = field(
        default_factory=dict, metadata=decides("raster", "raster", _tables(NODE, COUNT), "task order")
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
    pads: Mapping[str, Mapping[str, int]] = field(
        default_factory=dict, metadata=decides("pad", "padding of rows", _tables(TENSOR, COUNT), "buffer")
    )
    swizzles: Mapping[str, Mapping[str, int]] = field(
        default_factory=dict, metadata=decides("swizzle", "swizzle of rows", _tables(TENSOR, COUNT), "buffer")
    )
    units: Mapping[str, str] = field(
        default_factory=dict, metadata=decides("unit", "compute unit", Table(NODE, PLAIN), always_signed=True)
    )
    copies: Mapping[str, Mapping[str, int]] = field(
        default_factory=dict,
        metadata=decides("copies", "number of copies", _tables(TENSOR, COUNT), "asynchronous load"),
    )
    shared: Mapping[str, Shared] = field(
        default_factory=dict, metadata=decides("shared", "shared loop", Table(NODE, Record(Shared)), "shared loop")
    )
    held: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict, metadata=decides("held", "type in a buffer", _tables(TENSOR, PLAIN), "buffer")
    )
    vectors: Mapping[str, str] = field(
        default_factory=dict, metadata=decides("vector", "vector", Table(NODE, Name("iterator", optional=True)), "code")
    )
    unroll: Mapping[str, Sizes] = field(
        default_factory=dict, metadata=decides("unroll", "unrolling", Table(NODE, Table(ITERATOR, COUNT)), "code")
    )
    accumulators: Mapping[str, int] = field(
        default_factory=dict, metadata=decides("accumulators", "number of accumulators", Table(NODE, COUNT), "code")
    )
    prefetch: Mapping[str, PrefetchKind] = field(
        default_factory=dict, metadata=decides("prefetch", "prefetch", Table(TENSOR, PLAIN), "code")
    )
    streamed: tuple[str, ...] = field(
        default=(), metadata=decides("streamed", "streamed store", Members(TENSOR, "past the caches"), "code")
    )
    threads: Mapping[str, int] = field(
        default_factory=dict, metadata=decides("threads", "number of threads", Table(LEVEL, COUNT), "code")
    )
    resident: Mapping[str, int] = field(
        default_factory=dict, metadata=decides("resident", "number of blocks", Table(LEVEL, COUNT), "code")
    )
    asynchronous: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict,
        metadata=decides("arrival", "arrival of loads", Table(LEVEL, Members(TENSOR, "later")), "code"),
    )
    fast: tuple[str, ...] = field(default=(), metadata=decides("fast", "approximate functions", Items(PLAIN), "code"))


@dataclass(frozen=True, slots=True)
class Cost:
    """Planned data movement and work of a group: bytes that every level reads from and writes to the level below it,
    the footprint of one instance per level in bytes, and floating-point operations; integer expressions.

    Bytes of levels that hold tiles are counted on the tile program. Those of a cache that the group's variants do not
    name are predicted: what is not in it from earlier groups, or from the group itself, comes from below.

    `transactions` is the number of transactions of loads from a level and stores to it, each of `PlanLevel.transaction`
    bytes of that level (penalty for uncoalesced access; Welder, 4.1); `picoseconds` is the predicted time of the group.
    """

    read: Mapping[str, Expr]
    written: Mapping[str, Expr]
    footprint: Mapping[str, Expr]
    flops: Expr = Const(0)
    transactions: Mapping[str, Expr] = field(default_factory=dict)
    picoseconds: int = 0


@dataclass(frozen=True, slots=True)
class Bound:
    """Data-movement bound in bytes between a level and the one below: `least` is a proven lower bound, `known` the
    traffic of the best known mapping (None: none fits), `parallel` that of the best known one in at least as many tasks
    as the level has instances (None where it has one, or none fits)."""

    least: int
    known: int | None = None
    parallel: int | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes that run together. `connect` gives the level of every inner edge (the tensor on it never goes below that
    level; SetConnect in Welder, 3.2); `outputs` are the tensors that leave the group. `bounds` has the levels at which
    all traffic of the group is counted."""

    name: str
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    connect: Mapping[str, str]
    variants: tuple[Variant, ...]
    cost: Cost
    bounds: Mapping[str, Bound] = field(default_factory=dict)

    def variant_of(self, kernel: str) -> Variant:
        """The variant that a kernel is the code of; the first where its name is not decided yet."""
        return next((each for each in self.variants if each.kernel == kernel), self.variants[0])


@dataclass(frozen=True, slots=True)
class SharedLaunch:
    """Groups that run side by side, by name in the order of the plan: none reads another one's results. `picoseconds`
    is the predicted time of all together."""

    groups: tuple[str, ...]
    picoseconds: int = 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why an edge was not connected: a code of the closed list, with its numbers."""

    edge: str
    code: str
    numbers: Mapping[str, int | str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Code and numbers in one line: `capacity bytes=262144 capacity=167936 level=smem`."""
        return " ".join((self.code, *(f"{name}={value}" for name, value in sorted(self.numbers.items()))))


@dataclass(frozen=True, slots=True)
class Plan:
    """Groups in execution order, and the nodes that are evaluated once at code generation instead of at every run
    (`prepared`: packed and converted weights). `levels` are all memories of the device, lowest first. `calls`,
    `opaque`, `ranges`, `symbol_ranges`, `constraints`, `elements`, `retyped`, `rooms`, `rounded` and `scenarios` are
    those of the graph, `roundings` what became of its; a group runs behind the last call that it depends on. `unfused`
    are the bytes that a level would move from and to the one below with a group for every node. `bounds` are those of
    all groups together, each at the capacity of its level: bytes of one instance and of everything above it. `launches`
    are those that several groups share, which stand behind each other."""

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
    unfused: Mapping[str, Expr] = field(default_factory=dict)
    calls: tuple[Call, ...] = ()
    opaque: Mapping[str, Opaque] = field(default_factory=dict)
    capacities: Mapping[str, int] = field(default_factory=dict)
    bounds: Mapping[str, Bound] = field(default_factory=dict)
    ranges: tuple[IndexRange, ...] = ()
    symbol_ranges: Mapping[str, SymbolRange] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()
    elements: Mapping[str, str] = field(default_factory=dict)
    retyped: Mapping[str, Retyped] = field(default_factory=dict)
    roundings: Mapping[str, Rounding] = field(default_factory=dict)
    launches: tuple[SharedLaunch, ...] = ()
    defaults: tuple[Default, ...] = ()
    rooms: tuple[Room, ...] = ()
    rounded: tuple[RoundedState, ...] = ()
    scenarios: Mapping[str, Scenario] = field(default_factory=dict)
