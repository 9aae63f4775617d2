"""A model that is being drawn: tensors with their values so far, and the ways to add inputs, constants and nodes.

Values are known while the model grows, so a node is kept only when its result says something: finite numbers of a
moderate size that rounding does not turn upside down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
import onnx
from onnx import NodeProto, helper, numpy_helper

from fuzz.choices import Choices
from fuzz.reference import BF16, Array, NoReference, Trace, evaluate, is_float

T = TypeVar("T")

DTYPES = {
    **{f"f{bits}": np.dtype(f"float{bits}") for bits in (64, 32, 16)},
    **{f"i{bits}": np.dtype(f"int{bits}") for bits in (64, 32, 16, 8)},
    **{f"u{bits}": np.dtype(f"uint{bits}") for bits in (64, 32, 16, 8)},
    "bf16": BF16,
    "bool": np.dtype(np.bool_),
}
FLOATS = ("f64", "f32", "f16", "bf16")
SIGNED = ("i64", "i32", "i16", "i8")
UNSIGNED = ("u64", "u32", "u16", "u8")
NUMBERS = FLOATS + SIGNED + UNSIGNED
ALL = (*NUMBERS, "bool")

SIZES = (1, 1, 2, 2, 3, 3, 4, 5, 5, 7, 8, 9, 11, 13, 16, 17, 19, 24, 31, 32, 33)
LARGE = (48, 64, 65, 96, 100, 127, 128, 130)
MOST_ELEMENTS = 1 << 14
LARGEST = {"f16": 2e3, "bf16": 1e4, "f32": 1e5, "f64": 1e6}
"""Values beyond these lead nowhere."""

WORST = {"f16": 0.1, "bf16": 0.3, "f32": 1e-3, "f64": 1e-6}
"""Slack of a float tensor relative to its largest value beyond which a comparison proves nothing."""


def name_of(dtype: np.dtype[Any]) -> str:
    return next(name for name, known in DTYPES.items() if known == dtype)


class NothingFits(Exception):
    """No tensor is what an operator asks for."""


class Judged(Protocol):
    """Every tensor of a model on its inputs."""

    def __getitem__(self, name: str) -> Array: ...

    def difference(self, name: str, found: Array) -> str:
        """What is wrong with an output; nothing when it is right."""


Judge = Callable[[onnx.ModelProto, Mapping[str, Array]], Judged]
"""Evaluates a model on its inputs."""


@dataclass(frozen=True)
class Model:
    """A drawn model, the inputs it is tried with, and what judges it."""

    proto: onnx.ModelProto
    feeds: dict[str, Array]
    evaluate: Judge = evaluate


@dataclass
class Sketch(Choices):
    """The model so far."""

    opset: int
    special: bool
    """Whether inputs hold NaN and infinities; such models keep to operators on whose NaN everybody agrees."""
    zeros: bool
    """Whether sizes may be 0."""
    large: bool
    """Whether sizes are those of real layers, of few nodes."""
    mixed: bool
    """Whether nodes that are left to onnxruntime may stand beside compiled ones."""
    accepts: Callable[[NodeProto, Sketch], bool]
    """Whether the compiler takes a node at all."""
    nodes: list[NodeProto] = field(default_factory=list)
    feeds: dict[str, Array] = field(default_factory=dict)
    weights: dict[str, Array] = field(default_factory=dict)
    trace: Trace = field(init=False)

    def __post_init__(self) -> None:
        self.trace = Trace({}, self.opset)

    # choices

    def permutation(self, count: int) -> list[int]:
        return [int(i) for i in self.rng.permutation(count)]

    def size(self) -> int:
        if self.zeros and self.chance(0.06):
            return 0
        return self.choice(LARGE) if self.chance(0.4 if self.large else 0.05) else self.choice(SIZES)

    @property
    def most(self) -> int:
        """Elements that a tensor may have."""
        return MOST_ELEMENTS << (4 * self.large)

    def shape(self, least: int = 0, most: int = 4) -> tuple[int, ...]:
        """Sizes that keep the tensor small."""
        while True:
            shape = tuple(self.size() for _ in range(self.integer(least, most)))
            if np.prod(shape) <= self.most:
                return shape

    # tensors

    def value(self, name: str) -> Array:
        return self.trace[name]

    def dims(self, name: str) -> tuple[int, ...]:
        return self.trace[name].shape

    def rank(self, name: str) -> int:
        return self.trace[name].ndim

    def type(self, name: str) -> str:
        return name_of(self.trace[name].dtype)

    def pick(
        self, types: Sequence[str], least: int = 0, most: int = 5, where: Callable[[str], bool] = lambda _: True
    ) -> str:
        """A tensor of one of these types and ranks: mostly one that is there, recent ones preferred."""
        fits = [
            name
            for name in self.trace.copies
            if self.type(name) in types and least <= self.rank(name) <= most and where(name)
        ]
        if fits and not self.chance(0.2):
            return fits[-1 - min(int(self.rng.exponential(3.0)), len(fits) - 1)]
        for _ in range(20):
            made = self.new(self.choice(types), self.shape(least, min(most, 4)))
            if where(made):
                return made
        raise NothingFits

    def like(self, name: str) -> str:
        """Another tensor, or the same, that broadcasts with this one."""
        shape, kind = self.dims(name), self.type(name)
        fits = [n for n in self.trace.copies if self.type(n) == kind and _broadcasts(self.dims(n), shape, self.most)]
        if self.chance(0.6):
            return self.choice(fits or [name])
        return self.new(kind, self.partner(shape))

    def partner(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts with this one."""
        sizes = [1 if self.chance(0.25) else self.size() if n == 1 and self.chance(0.2) else n for n in shape]
        sizes = sizes[self.integer(0, len(sizes)) if self.chance(0.3) else 0 :]
        if np.prod(np.broadcast_shapes(tuple(sizes), tuple(shape))) > self.most:
            return tuple(shape)
        return tuple(sizes)

    def new(self, kind: str, shape: Sequence[int]) -> str:
        """An input or a weight with drawn values."""
        return self.given(self._values(kind, tuple(shape)), fed=self.chance(0.6))

    def given(self, array: Array, fed: bool = False) -> str:
        """An input (`fed`), a weight or a Constant with these values."""
        name = f"x{len(self.feeds)}" if fed else f"w{len(self.weights)}"
        (self.feeds if fed else self.weights)[name] = array
        self.trace.copies[name] = Trace({name: array}, self.opset).copies[name]
        return name

    def numbers(self, *values: int, kind: str = "i64") -> str:
        """A weight of whole numbers: axes, shapes, indices."""
        return self.given(np.array(values, DTYPES[kind]))

    def numbers_scalar(self, value: int, kind: str = "i64") -> str:
        """A weight of one whole number without dimensions."""
        return self.given(np.array(value, DTYPES[kind]))

    def _values(self, kind: str, shape: tuple[int, ...]) -> Array:
        dtype = DTYPES[kind]
        if kind == "bool":
            return np.asarray(self.rng.random(shape) < self.choice((0.1, 0.5, 0.9)))
        if is_float(dtype):
            style = self.integer(0, 3)
            x = self.rng.standard_normal(shape)
            if style == 1:
                x = self.rng.integers(-12, 13, shape) / 4
            elif style == 2:
                x = self.rng.uniform(0.1, 2.0, shape)
            elif style == 3:
                x = x * 3 + 1
            if self.special and self.chance(0.5):
                drawn = self.rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], shape)
                x = np.where(self.rng.random(shape) < 0.15, drawn, x)
            return np.asarray(x, dtype)
        limits = np.iinfo(dtype)
        if self.chance(0.15):
            return np.asarray(self.rng.integers(limits.min, limits.max, shape, dtype, endpoint=True))
        return np.asarray(self.rng.integers(max(limits.min, -9), 12, shape), dtype)

    # nodes

    def node(self, kind: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any) -> list[str]:
        """Add a node unless nothing can be said about its results; returns its outputs or nothing."""
        names = [f"t{len(self.nodes)}" + (f"_{k}" if outputs > 1 else "") for k in range(outputs)]
        node = helper.make_node(kind, list(inputs), names, **attributes)
        try:
            self.trace.run(node)
        except NoReference:
            return []
        if not all(self._telling(name, inputs) for name in names) or not self.accepts(node, self):
            for name in names:
                del self.trace.copies[name]
            return []
        self.nodes.append(node)
        return names

    def _telling(self, name: str, inputs: Sequence[str]) -> bool:
        value = self.trace[name]
        if value.size > 2 * self.most or value.ndim > 7 or bool(self.trace.unstable(name).any()):
            return False
        if not is_float(value.dtype):
            return True
        kind, wide = name_of(value.dtype), np.abs(value.astype(np.float64))
        finite = np.isfinite(wide)
        if not finite.all() and (not self.special or not any(_has_special(self.trace[n]) for n in inputs if n)):
            return False
        largest = wide.max(initial=0.0, where=finite)
        slack = self.trace.slack(name).max(initial=0.0, where=finite)
        return bool(largest <= LARGEST[kind] and slack <= WORST[kind] * max(largest, 1e-30))

    def finish(self) -> Model:
        """The model: what nothing reads is an output, and some of the rest."""
        read = {name for node in self.nodes for name in node.input}
        made = [name for node in self.nodes for name in node.output]
        dead = 0.05 if len(made) > 4 else 0.0
        outputs = [name for name in made if not self.chance(0.85 if name in read else dead)] or made[-1:]
        if self.chance(0.1):
            outputs.append(self.choice([*self.feeds, *self.weights]))
        used = {*read, *outputs, *([self.choice(list(self.feeds))] if self.feeds and self.chance(0.1) else [])}
        feeds, weights = ({n: a for n, a in given.items() if n in used} for given in (self.feeds, self.weights))
        return Model(model_of(self.nodes, feeds, weights, outputs, self.opset), feeds)


def model_of(
    nodes: Sequence[NodeProto], feeds: dict[str, Array], weights: dict[str, Array], outputs: Sequence[str], opset: int
) -> onnx.ModelProto:
    """A model of these nodes; inputs have fixed shapes."""
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()
    ]
    ports = [onnx.ValueInfoProto(name=name) for name in outputs]
    tensors = [numpy_helper.from_array(a, n) for n, a in weights.items()]
    graph = helper.make_graph(list(nodes), "g", infos, ports, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def _broadcasts(a: Sequence[int], b: Sequence[int], most: int) -> bool:
    try:
        return bool(np.prod(np.broadcast_shapes(tuple(a), tuple(b))) <= most)
    except ValueError:
        return False


def _has_special(x: Array) -> bool:
    return is_float(x.dtype) and not np.isfinite(x.astype(np.float64)).all()
