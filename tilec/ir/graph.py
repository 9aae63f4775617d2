"""The graph: the artifact that `import` writes and `schedule` reads.

Nodes are tensor expressions, one output tensor each, in topological order. Every tensor has a shape (integer
expressions, symbols allowed) and a tType; constants are references into weight files or small inline values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tilec.artifact.filenames import require_inside
from tilec.ir.expr import Expr, Scalar, TensorExpr, operands
from tilec.ir.sizes import Constraint, Scenario, SymbolRange, SymbolValue


@dataclass(frozen=True, slots=True)
class Tensor:
    """Shape (integer expressions) and tType of a tensor."""

    shape: tuple[Expr, ...]
    ttype: str


@dataclass(frozen=True, slots=True)
class WeightRef:
    """A constant in a file: `offset` and `size` in bytes, little-endian, row-major. The file name is relative: to the
    model's folder, or, for weights that import itself wrote (`owned`), to the artifact's folder."""

    file: str
    offset: int
    size: int
    owned: bool = False

    def __post_init__(self) -> None:
        require_inside(self.file)
        if self.offset < 0 or self.size < 0:
            raise ValueError(f"{self.size} bytes at byte {self.offset} of {self.file}")


@dataclass(frozen=True, slots=True)
class Inline:
    """A small constant: its elements in row-major order."""

    values: tuple[Scalar, ...]


Constant = WeightRef | Inline


@dataclass(frozen=True, slots=True)
class Node:
    """One tensor expression. `op` is the operator it came from and `origin` lists the model's nodes behind it; both are
    for people and reports, no decision reads them."""

    expr: TensorExpr
    op: str = ""
    origin: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the node: that of the tensor it defines."""
        return self.expr.tensor


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of the model: its `name` there and the `tensor` of the graph that carries it."""

    name: str
    tensor: str


@dataclass(frozen=True, slots=True)
class IndexRange:
    """Range of the elements of an input that `node` of the model takes as indices: below `extent`, and from -extent on
    where they count from the end (`wraps`), else from 0 on.

    `column` are a dimension and a place: the elements there, instead of all. `besides` is one more value that is valid.
    """

    tensor: str
    extent: Expr
    node: str
    column: tuple[int, int] | None = None
    wraps: bool = True
    besides: int | None = None


@dataclass(frozen=True, slots=True)
class Default:
    """An input of the model whose value has been compiled in, because an initializer gives it one: its type, shape and
    the sha256 of its bytes ("" for large ones, which are weights)."""

    name: str
    ttype: str
    shape: tuple[int, ...]
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that only onnxruntime reads and writes: its ONNX type (`seq(tensor(float))`, `tensor(string)`, or a
    plain tensor whose shape depends on data; empty when unknown) and its extents (None: unknown), None for an
    unknown rank."""

    type: str
    shape: tuple[int | str | None, ...] | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """An input or output with room for more rows than the model's has, or than are valid: along dimension `dim` the
    first `rows` are the model's. The length of `told_by`, an input that the model does not have, is the number of valid
    rows before a call."""

    tensor: str
    dim: int
    rows: Expr
    told_by: str


@dataclass(frozen=True, slots=True)
class RoundedState:
    """A state, before or after a call, of which the model has the numbers in `ttype`: `codes` times `scales`, of which
    one belongs to every `group` elements along the last dimension."""

    codes: str
    scales: str
    group: int
    ttype: str


LoopPart = Literal["", "start", "end"]
"""The part that a call has in a serial loop: none, the start of a step, the end of a step."""


@dataclass(frozen=True, slots=True)
class Update:
    """Rows that are written into a state in place. `state` is an input of the model, and an output is the state
    afterwards, in the same memory: element `iterators` of the tensor `rows` becomes the element `place` of it, all
    others stay. A place may read tensors at iterators."""

    rows: str
    state: str
    iterators: tuple[str, ...]
    place: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A cluster of the model's nodes that onnxruntime runs (fallback as in BladeDISC's plugin mode). `file` is the ONNX
    file with the nodes, `inputs` and `outputs` pair names there with tensors and opaque values of the graph; `data` are
    files that `file` refers to. `symbols` are sizes that depend on data: the shapes of its results report them (B01).

    Two calls that follow each other are the ends of a serial loop, whose body is the segment between them; `file` is
    only their name then. The `start` reads the initial values of `carried` tensors, then tensors whose elements along
    the first dimension the steps take in turn, as many as there are steps; its outputs are these values of one step.
    The `end` reads the next values of the carried tensors, then tensors that are stacked along a new first dimension;
    its outputs are the last values and the stacks.

    A call with `updates`, one for each of its outputs, is compiled: it writes rows into states in place, and whoever
    reads these runs behind it. `file` is only its name, too.
    """

    file: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    data: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    loop: LoopPart = ""
    carried: int = 0
    updates: tuple[Update, ...] = ()

    def __post_init__(self) -> None:
        for name in (self.file, *self.data):
            require_inside(name)
        if self.updates and len(self.updates) != len(self.outputs):
            raise ValueError(f"{self.file} updates {len(self.updates)} states and has {len(self.outputs)} outputs")

    @property
    def updated(self) -> tuple[tuple[Update, str], ...]:
        """The updates, each with the tensor that is the state afterwards."""
        return tuple((update, port.tensor) for update, port in zip(self.updates, self.outputs, strict=False))


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A node that is not compiled, with the reason and a remedy."""

    node: str
    op: str
    reason: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """Number of the model's nodes in total and compiled; `fallback` lists the others, which onnxruntime runs."""

    total: int
    compiled: int
    fallback: tuple[Unsupported, ...] = ()


@dataclass(frozen=True, slots=True)
class Retyped:
    """A weight that import rounded to a format: bytes before and after, and its rms and largest error, of the weight's
    rms and largest magnitude."""

    format: str
    before: int
    after: int
    rms: float
    largest: float


@dataclass(frozen=True, slots=True)
class Rounding:
    """How the activations of a product may be rounded: `compute` is a8 or a15, integers of 8 bits or of 15 bits and a
    sign. A plan says what came of it: the elements of a block that share a scale and the compute unit, or the reason
    why the product is exact."""

    compute: str
    block: int = 0
    unit: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """A model as tensor expressions.

    `symbols` are the unbound sizes in order of first appearance, `symbol_ranges` what is known of each alone and
    `constraints` what is known of them together (B06); `symbol_values` are further sizes of the model, which equal
    expressions of the symbols; `scenarios` are sizes that occur together, by name. `tensors` has every tensor, outputs
    of nodes included; `constants` those with known values. `files` maps weight files to their sha256. `calls` run in
    their order; a node runs behind the last call that it depends on. `opaque` are the values that only calls, inputs
    and outputs of the model touch. `ranges` are those of inputs that are used as indices. `elements` are the coded
    types of inputs and outputs whose tensors hold one code a byte, `retyped` the weights that import rounded to
    formats, `roundings` the products whose activations may be rounded. `defaults` are inputs that the model has values
    for, `rooms` inputs and outputs with room for more rows, `rounded` those that hold fewer bits than the model's.
    """

    name: str
    symbols: tuple[str, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    tensors: Mapping[str, Tensor]
    constants: Mapping[str, Constant]
    nodes: tuple[Node, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    placement: Placement = Placement(0, 0)
    calls: tuple[Call, ...] = ()
    opaque: Mapping[str, Opaque] = field(default_factory=dict)
    ranges: tuple[IndexRange, ...] = ()
    symbol_ranges: Mapping[str, SymbolRange] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()
    symbol_values: Mapping[str, SymbolValue] = field(default_factory=dict)
    elements: Mapping[str, str] = field(default_factory=dict)
    retyped: Mapping[str, Retyped] = field(default_factory=dict)
    roundings: Mapping[str, Rounding] = field(default_factory=dict)
    defaults: tuple[Default, ...] = ()
    rooms: tuple[Room, ...] = ()
    rounded: tuple[RoundedState, ...] = ()
    scenarios: Mapping[str, Scenario] = field(default_factory=dict)

    @property
    def ttypes(self) -> dict[str, str]:
        """Tensor -> tType."""
        return {name: tensor.ttype for name, tensor in self.tensors.items()}

    @property
    def names(self) -> frozenset[str]:
        """The names of all tensors and sizes, which a new tensor may not have."""
        return frozenset((*self.tensors, *self.symbols, *self.symbol_values))

    def consumers(self) -> dict[str, tuple[Node, ...]]:
        """Tensor -> nodes that read it, in topological order."""
        readers: dict[str, list[Node]] = {name: [] for name in self.tensors}
        for node in self.nodes:
            for tensor in operands(node.expr):
                readers[tensor].append(node)
        return {name: tuple(nodes) for name, nodes in readers.items()}
