"""A random quantised model so far: its tensors with the numbers that are known of them, and its nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import onnx
from fuzz.choices import Choices
from fuzz.reference import NoReference
from fuzz.sketch import Model
from onnx import NodeProto, helper, numpy_helper

from quantised.judge import Judgement, evaluate
from quantised.known import Array, Known, dtype_of, limits

T = TypeVar("T")

CONTRIB = "com.microsoft"
SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 24, 31, 32, 33)
LONG = (15, 31, 32, 33, 48, 63, 64, 65, 96, 100, 127, 130)
BYTES = ("u8", "i8")
SMALL = ("u8", "i8", "u16", "i16", "u4", "i4", "u2", "i2")
SINCE = {"u4": 21, "i4": 21, "u16": 21, "i16": 21, "u2": 25, "i2": 25}
MOST = 1 << 14
"""Elements of a tensor at most."""

UNKNOWN = 0.2
"""Share of integers of a tensor that rounding may move, beyond which it proves too little."""


class NothingFits(Exception):
    """No tensor is what an operator asks for, or nothing can be said of its result."""


@dataclass
class Sketch(Choices):
    """The model so far."""

    opset: int
    dyadic: bool
    """Whether scales are powers of two."""
    nodes: list[NodeProto] = field(default_factory=list)
    feeds: dict[str, Array] = field(default_factory=dict)
    weights: dict[str, Array] = field(default_factory=dict)
    judged: Judgement = field(init=False)

    def __post_init__(self) -> None:
        self.judged = Judgement(self.opset)

    # choices

    def size(self) -> int:
        return self.choice(SIZES)

    def types(self, names: Sequence[str] = SMALL) -> list[str]:
        """Those of some types that the opset has."""
        return [name for name in names if SINCE.get(name, 10) <= self.opset]

    # tensors

    def kind(self, name: str) -> str:
        return self.judged.known[name].kind

    def dims(self, name: str) -> tuple[int, ...]:
        return self.judged.known[name].numbers.shape

    def numbers(self, name: str) -> Array:
        return self.judged.known[name].numbers

    def pick(self, kinds: Sequence[str], fits: Callable[[tuple[int, ...]], bool], shape: Callable[[], Any]) -> str:
        """A tensor of a type and shape: mostly one that a node made, else a new input or constant."""
        made = [
            name for node in self.nodes for name in node.output if self.kind(name) in kinds and fits(self.dims(name))
        ]
        if made and self.chance(0.85):
            return made[-1 - min(int(self.rng.exponential(1.0)), len(made) - 1)]
        return self.new(self.choice(kinds), shape(), fed=self.chance(0.85))

    def new(self, kind: str, shape: Sequence[int], fed: bool = False) -> str:
        """A tensor of drawn numbers: floats that are fourths in dyadic models, integers of all the range, its ends
        more often."""
        if kind == "f32":
            x = self.rng.standard_normal(shape) * self.choice((1, 3, 8))
            return self.given(kind, np.rint(4 * x) / 4 if self.dyadic else x, fed)
        low, high = limits(kind) if kind != "i32" else (-4000, 4000)
        x = self.rng.integers(low, high + 1, shape)
        ends = self.rng.choice([low, high], shape)
        return self.given(kind, np.where(self.rng.random(shape) < self.choice((0.02, 0.3)), ends, x), fed)

    def given(self, kind: str, numbers: Any, fed: bool = False) -> str:
        """An input (`fed`) or a constant with these numbers."""
        name = f"x{len(self.feeds)}" if fed else f"w{len(self.weights)}"
        array = np.asarray(numbers).astype(dtype_of(kind))
        (self.feeds if fed else self.weights)[name] = array
        self.judged.known[name] = Known.read(array)
        return name

    def zeros(self, kind: str, shape: Sequence[int]) -> str:
        """Zero points: at the ends of the range, in its middle, anywhere."""
        low, high = limits(kind)
        style = self.integer(0, 4)
        if style < 4:
            return self.given(kind, np.full(shape, (low, high, (low + high + 1) // 2, 0)[style]))
        return self.given(kind, self.rng.integers(low, high + 1, shape))

    def scales(self, shape: Sequence[int], near: float = 0.03) -> str:
        """Scales around a number."""
        if self.dyadic:
            return self.given("f32", 2.0 ** (np.rint(np.log2(near)) + self.rng.integers(-1, 2, shape)))
        return self.given("f32", near * self.rng.uniform(0.5, 2.0, shape))

    def scale_for(self, real: Array, kind: str) -> str:
        """A scale with which numbers fill a range, or more than it."""
        low, high = limits(kind)
        most = float(np.abs(real).max(initial=0.0)) or 1.0
        return self.scales((), max(most / (high - low) * self.choice((0.5, 1.0, 2.0, 4.0)), 2.0**-20))

    # nodes

    def node(
        self, kind: str, inputs: Sequence[str], outputs: int = 1, domain: str = "", **attributes: Any
    ) -> list[str]:
        """Add a node and return its outputs. Raises NothingFits if too little can be said of them."""
        names = [f"t{len(self.nodes)}" + (f"_{k}" if outputs > 1 else "") for k in range(outputs)]
        node = helper.make_node(kind, list(inputs), names, domain=domain, **attributes)
        try:
            self.judged.run(node)
        except NoReference:
            raise NothingFits from None
        known = [self.judged.known[name] for name in names]
        if any(each.numbers.size > MOST or not _telling(each) for each in known):
            raise NothingFits
        self.nodes.append(node)
        return names

    def finish(self) -> Model:
        """The model: what nothing reads is an output, and some of the rest."""
        read = {name for node in self.nodes for name in node.input}
        made = [name for node in self.nodes for name in node.output]
        outputs = [name for name in made if name not in read or self.chance(0.15)]
        feeds, weights = ({n: a for n, a in given.items() if n in read} for given in (self.feeds, self.weights))
        infos = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in feeds.items()
        ]
        ports = [onnx.ValueInfoProto(name=name) for name in outputs]
        tensors = [numpy_helper.from_array(a, n) for n, a in weights.items()]
        graph = helper.make_graph(self.nodes, "g", infos, ports, tensors)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(CONTRIB, 1)]
        return Model(helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds, evaluate)


def _telling(known: Known) -> bool:
    if known.kind == "f32":
        most = float(np.abs(known.numbers).max(initial=0.0))
        return bool(np.isfinite(known.numbers).all() and most < 1e8 and known.error.max(initial=0.0) <= 0.01 * most)
    return bool((known.error > 0).mean() <= UNKNOWN) if known.error.size else True
