"""A random model with open sizes from a seed: operators of fixed ones and of computed shapes, and sizes to try."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import NodeProto

from fuzz import elementwise, movement, reducing, windows  # noqa: F401  (they register their operators)
from fuzz.draw import _scratch
from fuzz.open_model import OpenModel, opened
from fuzz.open_shapes import OPEN_TABLE, NothingTaken
from fuzz.reference import Array
from fuzz.sketch import SIZES, NothingFits, Sketch, model_of
from fuzz.table import TABLE
from tilec.errors import TilecError
from tilec.importer import import_model
from tilec.importer.convert import Imported
from tilec.ir.evaluate import integer
from tilec.ir.expr import variables
from tilec.ir.sizes import broken_constraints

OPSETS = (13, 17, 18, 20, 22)
TRIES = 6
NAMES = ("n", "m", "batch", "s0", "k1", "length")
"""Names of sizes: some that passes give to iterators, some that tensors get as well."""


@dataclass
class OpenSketch(Sketch):
    """A sketch some of whose extents stand for sizes: `open_sizes` has the extent of each, and `extents` those of sums,
    products and parts of them as well; no constant extent is one of these."""

    open_sizes: dict[str, int] = field(default_factory=dict)

    @property
    def extents(self) -> tuple[int, ...]:
        """Extents that vary with the sizes."""
        base = list(self.open_sizes.values())
        return (*base, *(n + 1 for n in base), *(2 * n for n in base), sum(base) if len(base) > 1 else 3 * base[0])

    def size(self) -> int:
        if self.chance(0.5):
            return self.choice(self.extents) if self.chance(0.25) else self.choice(tuple(self.open_sizes.values()))
        return self.choice([n for n in SIZES if n <= 9 and n not in self.extents])

    def given(self, array: Array, fed: bool = False) -> str:
        return super().given(array, fed or any(n in self.extents for n in array.shape))


def draw_open(seed: int, index: int, most: int = 14) -> OpenModel:
    """Model number `index` of a sequence, of up to `most` nodes; the same numbers give the same model."""
    rng = np.random.default_rng([seed, index, 43])
    count = int(rng.integers(1, 4))
    bases = [int(n) for n in rng.permutation([11, 13, 17])[:count]]
    names = [str(name) for name in rng.permutation(NAMES)[:count]]
    mixed = bool(rng.random() < 0.1)
    sketch = OpenSketch(
        rng,
        int(rng.choice(OPSETS)),
        False,
        False,
        False,
        mixed,
        _takes,
        open_sizes=dict(zip(names, bases, strict=True)),
    )
    table = [*((weight * 0.5, drawing) for weight, drawing in TABLE), *((2 * w, drawing) for w, drawing in OPEN_TABLE)]
    weights = np.array([weight for weight, _ in table])
    length = int(rng.integers(2, most + 1))
    for _ in range(5 * length):
        if len(sketch.nodes) >= length:
            break
        drawing: Callable[[Sketch], object] = table[int(rng.choice(len(table), p=weights / weights.sum()))][1]
        with suppress(NothingFits, NothingTaken):
            drawing(sketch)
    if not sketch.nodes or not any(n in sketch.extents for a in sketch.feeds.values() for n in a.shape):
        return draw_open(seed, index + 1_000_000, most)
    return _tried(sketch)


def _takes(node: NodeProto, sketch: Sketch) -> bool:
    """Whether the importer takes a node, at more sizes than those that were drawn."""
    assert isinstance(sketch, OpenSketch)
    nodes = [*sketch.nodes, node]
    try:
        imported = _imported(_open_proto(nodes, sketch, list(node.output)))
    except TilecError:
        return False
    except Exception:
        return True
    graph = imported.graph
    if graph.placement.compiled < graph.placement.total and not sketch.mixed:
        return False
    return len(_legal_sizes(imported, sketch, 3)) >= 3


def _imported(proto: onnx.ModelProto) -> Imported:
    path = Path(_scratch().name) / "open.onnx"
    path.write_bytes(proto.SerializeToString())
    return import_model(path, fallback="allow")


def _open_proto(nodes: list[NodeProto], sketch: OpenSketch, outputs: list[str]) -> onnx.ModelProto:
    read = {name for node in nodes for name in node.input} | set(outputs)
    feeds = {name: array for name, array in sketch.feeds.items() if name in read}
    weights = {name: array for name, array in sketch.weights.items() if name in read}
    proto = model_of(nodes, feeds, weights, outputs, sketch.opset)
    sizes = _sizes_of(sketch, [sketch.open_sizes, {s: n + k + 2 for k, (s, n) in enumerate(sketch.open_sizes.items())}])
    opened(proto, [_fed(feeds, sketch, {s: v[k] for s, v in sizes.items()}) for k in range(2)], sizes)
    return proto


def _sizes_of(sketch: OpenSketch, tries: list[Mapping[str, int]]) -> dict[str, list[int]]:
    return {name: [sizes[name] for sizes in tries] for name in sketch.open_sizes}


def _fed(feeds: Mapping[str, Array], sketch: OpenSketch, sizes: Mapping[str, int]) -> dict[str, Array]:
    """Inputs at some sizes: the drawn elements, as often as there are places."""
    base = OpenSketch(sketch.rng, 0, False, False, False, False, _takes, open_sizes=dict(sizes))
    there = dict(zip(sketch.extents, base.extents, strict=True))
    made = {}
    for name, array in feeds.items():
        shape = tuple(there.get(n, n) for n in array.shape)
        made[name] = array if shape == array.shape else np.resize(array, shape)
    return made


def _legal_sizes(imported: Imported, sketch: OpenSketch, count: int) -> list[dict[str, int]]:
    """The drawn sizes and others that the graph's facts allow, small and large, odd, 1 and 0."""
    rng = np.random.default_rng(len(sketch.nodes))
    names, graph = list(sketch.open_sizes), imported.graph
    proposed = [dict(sketch.open_sizes), dict.fromkeys(names, 1), {s: 33 + 2 * k for k, s in enumerate(names)}]
    # onnxruntime leaves an empty dimension where a reduction of nothing keeps one of extent 1.
    if not any(node.op_type.startswith("Reduce") for node in sketch.nodes):
        proposed += [{**sketch.open_sizes, str(rng.choice(names)): 0}]
    proposed += [{s: int(rng.choice((2, 3, 5, 6, 7, 8, 12, 16, 19, 21, 24, 40))) for s in names} for _ in range(24)]
    legal = []
    for sizes in proposed:
        known = {s: sizes[s] for s in graph.symbols if s in sizes}
        constraints = [c for c in graph.constraints if variables(c.holds) <= known.keys()]
        values = {
            s: v.value for s, v in graph.symbol_values.items() if s in sizes and variables(v.value) <= known.keys()
        }
        equal = all(integer(value, known) == sizes[symbol] for symbol, value in values.items())
        if equal and not broken_constraints(constraints, graph.symbol_ranges, known):
            legal.append(sizes)
        if len(legal) == count:
            break
    return legal


def _tried(sketch: OpenSketch) -> OpenModel:
    model = sketch.finish()
    renamed = _renamed(model.proto, sketch)
    outputs = [port.name for port in model.proto.graph.output]
    imported = _imported(_open_proto(list(sketch.nodes), sketch, [o for o in outputs if o not in sketch.weights]))
    tries = _legal_sizes(imported, sketch, TRIES)
    sizes = _sizes_of(sketch, list(tries))
    feeds = [{renamed.get(n, n): a for n, a in _fed(model.feeds, sketch, each).items()} for each in tries]
    proto = _with_names(model.proto, renamed)
    opened(proto, feeds, sizes)
    return OpenModel(proto, feeds, sizes)


def _renamed(proto: onnx.ModelProto, sketch: OpenSketch) -> dict[str, str]:
    """Some tensors with the names of sizes."""
    tensors = [p.name for p in (*proto.graph.input, *proto.graph.initializer)] + [
        o for n in sketch.nodes for o in n.output
    ]
    return {str(sketch.choice(tensors)): name for name in sketch.open_sizes if sketch.chance(0.3)}


def _with_names(proto: onnx.ModelProto, names: Mapping[str, str]) -> onnx.ModelProto:
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    for port in (*made.graph.input, *made.graph.output, *made.graph.initializer):
        port.name = names.get(port.name, port.name)
    for node in made.graph.node:
        for ports in (node.input, node.output):
            ports[:] = [names.get(name, name) for name in ports]
    return made
