"""Indices outside of what they index: every operator that takes indices refuses what onnxruntime refuses, and computes
the rest as it does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, RuntimeException

from tests.importer.reference import normal, onnxruntime, run, single
from tilec.abi.manifest import IndexSpec, TensorSpec
from tilec.errors import ConfigError, UsageError
from tilec.importer import import_model
from tilec.ir.expr import constant_value
from tilec.ir.graph import Graph
from tilec.runtime.feeds import check_indices

CONTRIB = "com.microsoft"


def indices(*values: Any, dtype: str = "int64") -> NDArray[Any]:
    return np.array(values, dtype)


@dataclass(frozen=True)
class Case:
    """An operator with valid operands; the first element of operand `which` (or that at `column` of its last dimension)
    takes values around the ends of 0 to `extent` - 1."""

    kind: str
    operands: tuple[NDArray[Any] | None, ...]
    which: int
    extent: int
    column: int | None = None
    known: tuple[int, ...] = ()
    outputs: int = 1
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def with_index(self, value: int) -> tuple[NDArray[Any] | None, ...]:
        changed = np.array(self.operands[self.which])
        changed[(*(0,) * (changed.ndim - 1), self.column or 0)] = value
        return (*self.operands[: self.which], changed, *self.operands[self.which + 1 :])

    def model(self, folder: Path, known: tuple[int, ...]) -> tuple[Path, dict[str, NDArray[Any]]]:
        """A model of the operator and feeds for it."""
        opset = 24 if self.kind in ("TensorScatter", "RotaryEmbedding") else 20
        options = {"opset": opset, "known": known, "outputs": self.outputs, **self.attributes}
        return single(folder, self.kind, *self.operands, **options)


def case(kind: str, which: int, extent: int, *operands: NDArray[Any] | None, **options: Any) -> Case:
    own = {name: options.pop(name) for name in ("column", "known", "outputs") if name in options}
    return Case(kind, operands, which, extent, attributes=options, **own)


PAIRS = indices([0, 1], [1, 2])
TABLES = normal(6, 8), normal(6, 8)
CACHE = normal(2, 2, 6, 16), normal(2, 2, 6, 16, seed=1)
TOKENS = tuple(normal(2, 1, 32, seed=seed) for seed in range(3))
EMBEDDED = (
    indices([0, 1, 2], dtype="int32"),
    indices([0, 1, 0], dtype="int32"),
    *(normal(n, 4) for n in (5, 6, 2)),
    normal(4),
    normal(4),
)
CASES = {
    "Gather": case("Gather", 1, 4, normal(4, 5), indices([0, 1], dtype="int32")),
    "GatherElements": case("GatherElements", 1, 4, normal(4, 5), PAIRS),
    "ScatterElements": case("ScatterElements", 1, 4, normal(4, 5), PAIRS, normal(2, 2)),
    "GatherND 0": case("GatherND", 1, 4, normal(4, 5, 2), PAIRS, column=0),
    "GatherND 1": case("GatherND", 1, 5, normal(4, 5, 2), PAIRS, column=1),
    "GatherND shared": case("GatherND", 1, 6, normal(2, 5, 6), PAIRS[:, None], column=1, batch_dims=1),
    "ScatterND 0": case("ScatterND", 1, 4, normal(4, 5, 2), PAIRS, normal(2, 2), column=0),
    "ScatterND 1": case("ScatterND", 1, 5, normal(4, 5, 2), PAIRS, normal(2, 2), column=1, reduction="add"),
    "OneHot": case("OneHot", 0, 5, indices(0, 1, 2), indices(5), normal(2), known=(1,)),
    "loss": case("NegativeLogLikelihoodLoss", 1, 5, normal(3, 5), indices(0, 1, 2), normal(5)),
    "loss without": case(
        "NegativeLogLikelihoodLoss", 1, 5, normal(3, 5), indices(0, 1, 2, dtype="int32"), ignore_index=-100
    ),
    "entropy": case("SoftmaxCrossEntropyLoss", 1, 5, normal(3, 5), indices(0, 1, 2), reduction="none"),
    "MaxUnpool": case(
        "MaxUnpool", 1, 16, normal(1, 1, 2, 2), indices([[[0, 3], [9, 15]]]), kernel_shape=[2, 2], strides=[2, 2]
    ),
    "RoiAlign": case(
        "RoiAlign",
        2,
        2,
        normal(2, 1, 4, 4),
        np.array([[0, 0, 2, 2], [1, 1, 3, 3]], "f4"),
        indices(0, 1),
        sampling_ratio=2,
    ),
    "ReverseSequence": case("ReverseSequence", 1, 5, normal(4, 3), indices(1, 2, 4)),
    "TensorScatter": case("TensorScatter", 2, 5, normal(2, 1, 6, 3), normal(2, 1, 2, 3), indices(0, 4), axis=2),
    "RotaryEmbedding": case(
        "RotaryEmbedding", 3, 6, normal(2, 3, 32), *TABLES, indices([0, 1, 2], [1, 2, 3]), num_heads=2
    ),
    "offset": case("RotaryEmbedding", 1, 4, normal(2, 3, 32), indices(2), *TABLES, num_heads=2, domain=CONTRIB),
    "positions": case(
        "RotaryEmbedding",
        1,
        6,
        normal(2, 3, 32),
        PAIRS @ indices([1, 1, 0], [0, 1, 1]),
        *TABLES,
        num_heads=2,
        domain=CONTRIB,
    ),
    "words": case("EmbedLayerNormalization", 0, 5, *EMBEDDED, outputs=2, domain=CONTRIB),
    "segments": case("EmbedLayerNormalization", 1, 2, *EMBEDDED, outputs=2, domain=CONTRIB),
    "lengths": case(
        "GroupQueryAttention",
        *(5, 6, *TOKENS, *CACHE, indices(3, 5, dtype="int32"), indices(6, dtype="int32")[0]),
        known=(6,),
        outputs=3,
        num_heads=2,
        kv_num_heads=2,
        domain=CONTRIB,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_onnxruntime_refuses_is_refused(tmp_path: Path, name: str) -> None:
    tested = CASES[name]
    path, feeds = tested.model(tmp_path, tested.known)
    imported = import_model(path)
    assert not imported.graph.calls
    for index in (-1, 0, 1, 100, -100, 2**31 - 1, -(2**31)):
        for value in {index, tested.extent + index, -tested.extent + index}:
            given = tested.with_index(value) if abs(value) < 2**31 else tested.operands
            feeds = {key: np.asarray(given[int(key[1:])]) for key in feeds}
            expected = _reference(path, feeds)
            try:
                _check(imported.graph, feeds)
            except UsageError:
                assert expected is None, value
                continue
            assert expected is not None, value
            for a, b in zip(run(imported, tmp_path, feeds), expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_known_indices_are_refused_at_import(tmp_path: Path, name: str) -> None:
    tested = CASES[name]
    for value in (-tested.extent - 1, -1, 0, tested.extent - 1, tested.extent):
        path, feeds = replace(tested, operands=tested.with_index(value)).model(tmp_path, (*tested.known, tested.which))
        if _reference(path, feeds) is None:
            with pytest.raises(ConfigError, match=r"index -?\d+ (lies outside a dimension of extent|is negative)"):
                import_model(path)
        else:
            import_model(path)


def _reference(path: Path, feeds: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]] | None:
    """The outputs of onnxruntime, None where it refuses the indices."""
    try:
        return onnxruntime(path, feeds)
    except (RuntimeException, InvalidArgument, Fail):
        return None


def _check(graph: Graph, feeds: Mapping[str, NDArray[Any]]) -> None:
    """Compare inputs with the ranges of a graph, as a session does."""
    numbers = [port.tensor for port in graph.inputs]
    ports = [TensorSpec(p.name, graph.tensors[p.tensor].ttype, feeds[p.name].shape) for p in graph.inputs]
    ranges = []
    for each in graph.ranges:
        extent = constant_value(each.extent)
        assert extent is not None
        ranges.append(IndexSpec(numbers.index(each.tensor), extent, each.node, each.column, each.wraps, each.besides))
    check_indices(ranges, ports, [feeds[port.name] for port in graph.inputs])
