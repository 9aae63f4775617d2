"""A whole random model from a seed."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
from onnx import NodeProto

from fuzz import elementwise, movement, reducing, windows  # noqa: F401  (they register their operators)
from fuzz.sketch import Model, NothingFits, Sketch, model_of
from fuzz.table import TABLE
from tilec.errors import TilecError
from tilec.importer import import_model

OPSETS = (11, 12, 13, 17, 18, 19, 20, 21, 22)

refused: Counter[str] = Counter()
"""Operator -> how many drawn nodes the importer refused; a table that is refused proves nothing."""


def draw(seed: int, index: int, most: int = 30) -> Model:
    """Model number `index` of a sequence, of up to `most` nodes; the same numbers give the same model."""
    rng = np.random.default_rng([seed, index])
    special, zeros, large, mixed = (bool(rng.random() < share) for share in (0.12, 0.2, 0.1, 0.15))
    sketch = Sketch(rng, int(rng.choice(OPSETS)), special, zeros and not large, large, mixed, takes)
    weights = np.array([weight for weight, _ in TABLE])
    length = int(rng.integers(3, (most // 3 if large else most) + 1))
    for _ in range(6 * length):
        if len(sketch.nodes) >= length:
            break
        drawing: Callable[[Sketch], object] = TABLE[int(rng.choice(len(TABLE), p=weights / weights.sum()))][1]
        with suppress(NothingFits):
            drawing(sketch)
    return sketch.finish() if sketch.nodes else draw(seed, index + 1_000_000, most)


def takes(node: NodeProto, sketch: Sketch) -> bool:
    """Whether the importer translates a node, or may leave it to onnxruntime.

    Faults other than a refusal are for the whole model to show.
    """
    names = dict.fromkeys(name for name in node.input if name)
    given = {name: sketch.value(name) for name in names}
    fed = {name: array for name, array in given.items() if name in sketch.feeds or name not in sketch.weights}
    weights = {name: array for name, array in given.items() if name not in fed}
    proto = model_of([node], fed, weights, list(node.output), sketch.opset)
    path = Path(_scratch().name) / "node.onnx"
    path.write_bytes(proto.SerializeToString())
    try:
        import_model(path)
    except TilecError:
        refused[node.op_type] += 1
        return sketch.mixed and not sketch.trace.foreign
    except Exception:
        return True
    return True


@cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    """One folder for all, since making folders is slow."""
    return tempfile.TemporaryDirectory(prefix="tilec-fuzz-")
