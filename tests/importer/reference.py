"""Runs imported graphs node by node with the NumPy evaluator, and models with onnxruntime."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tilec.importer import Imported, import_model
from tilec.ir.bind import bind
from tilec.ir.call_segments import segment_of
from tilec.ir.evaluate import evaluate
from tilec.ir.expr import operands
from tilec.ir.graph import Graph, Inline
from tilec.ir.types import TTYPES, numpy_dtype
from tilec.ir.verify.graph import check_graph
from tilec.ir.words import unpack_codes, word_type
from tilec.verify.execution_order import in_order

Arrays = Mapping[str, NDArray[Any]]


def constants(graph: Graph, folder: Path, owned: bytes = b"") -> dict[str, NDArray[Any]]:
    """The values of a graph's constants, read as code generation would read them."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, constant in graph.constants.items():
        tensor = graph.tensors[name]
        dtype, shape = numpy_dtype(tensor.ttype), [e.value for e in tensor.shape]
        if isinstance(constant, Inline):
            arrays[name] = np.array(constant.values, dtype).reshape(shape)
        else:
            data = owned if constant.owned else np.memmap(folder / constant.file, mode="r")
            part = bytes(data[constant.offset : constant.offset + constant.size])
            if TTYPES[tensor.ttype].coded:
                words = np.frombuffer(part, word_type(tensor.ttype).replace("u", "uint"))
                words = words.reshape(*shape[:-1], -1) if shape else words.reshape(())
                codes = unpack_codes(words, tensor.ttype, shape[-1] if shape else 1)
                arrays[name] = codes.astype(np.uint8).view(dtype)
            else:
                arrays[name] = np.frombuffer(part, dtype).reshape(shape)
    return arrays


def run(imported: Imported, folder: Path, feeds: Arrays, sizes: Mapping[str, int] | None = None) -> list[NDArray[Any]]:
    """The outputs of an imported model: bound, verified, every node evaluated, those of loops in every step."""
    graph = bind(imported.graph, sizes or {})
    assert check_graph(graph) == ()
    tensors = constants(graph, folder, b"".join(imported.weights))
    for port in graph.inputs:
        tensors[port.tensor] = feeds[port.name]
    left = Counter(name for node in graph.nodes for name in operands(node.expr))
    results = {node.name for node in graph.nodes} - {port.tensor for port in graph.outputs}
    there = segment_of(graph.nodes, graph.calls)
    segments = [there[node.name] for node in graph.nodes]
    for number in in_order(segments, graph.calls, [None] * len(graph.calls), tensors):
        node = graph.nodes[number]
        ttype = graph.tensors[node.name].ttype
        tensors[node.name] = evaluate(node.expr, tensors, ttype=ttype)
        assert tensors[node.name].dtype == numpy_dtype(ttype), node
        assert tensors[node.name].shape == tuple(e.value for e in graph.tensors[node.name].shape), node
        for name in operands(node.expr):
            left[name] -= 1
            if not left[name] and not graph.calls and name in results:  # of a big model all together take 9 GB
                del tensors[name]
    return [tensors[port.tensor] for port in graph.outputs]


def onnxruntime(path: Path, feeds: Arrays) -> list[NDArray[Any]]:
    """The outputs of the reference."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return [np.asarray(y) for y in session.run(None, dict(feeds))]


def save(
    path: Path,
    nodes: Sequence[Any],
    inputs: Mapping[str, tuple[str | type, Sequence[int | str | None]]],
    outputs: Sequence[str],
    weights: Arrays | None = None,
    opset: int = 20,
    **options: Any,
) -> Path:
    """Write a small model: inputs as name -> (NumPy type, shape), outputs by name."""
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.dtype(t)), list(s))
        for n, (t, s) in inputs.items()
    ]
    ports = [onnx.ValueInfoProto(name=name) for name in outputs]
    tensors = [numpy_helper.from_array(np.asarray(a), n) for n, a in (weights or {}).items()]
    graph = helper.make_graph(list(nodes), "g", infos, ports, tensors)
    domains = sorted({node.domain for node in graph.node} - {""})
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8, **options)
    path.write_bytes(model.SerializeToString())
    return path


def compare(
    path: Path, feeds: Arrays, sizes: Mapping[str, int] | None = None, rtol: float = 1e-5, atol: float = 1e-6
) -> Graph:
    """Import a model, run both, and demand equal outputs; the symbolic graph is returned."""
    imported = import_model(path)
    found = run(imported, path.parent, feeds, sizes)
    for a, b in zip(found, onnxruntime(path, feeds), strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    return imported.graph


def single(
    folder: Path,
    kind: str,
    *arrays: NDArray[Any] | None,
    known: Sequence[int] = (),
    outputs: int = 1,
    opset: int = 20,
    **attributes: Any,
) -> tuple[Path, dict[str, NDArray[Any]]]:
    """A model of one operator and feeds for it; inputs listed in `known` are initializers, None is an absent input."""
    arrays = tuple(None if a is None else np.asarray(a) for a in arrays)
    names = ["" if a is None else f"x{i}" for i, a in enumerate(arrays)]
    made = [f"y{i}" for i in range(outputs)]
    given = {n: a for n, a in zip(names, arrays, strict=True) if a is not None}
    weights = {f"x{i}": given[f"x{i}"] for i in known if f"x{i}" in given}
    feeds = {n: a for n, a in given.items() if n not in weights}
    node = helper.make_node(kind, names, made, **attributes)
    inputs = {n: (a.dtype, a.shape) for n, a in feeds.items()}
    path = save(folder / f"{kind}.onnx", [node], inputs, made, weights, opset)
    return path, feeds


def check(
    folder: Path,
    kind: str,
    *arrays: NDArray[Any] | None,
    known: Sequence[int] = (),
    outputs: int = 1,
    opset: int = 20,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    **attributes: Any,
) -> Graph:
    """Demand that one operator computes what the reference computes."""
    path, feeds = single(folder, kind, *arrays, known=known, outputs=outputs, opset=opset, **attributes)
    return compare(path, feeds, rtol=rtol, atol=atol)


def normal(*shape: int, seed: int = 0, dtype: str = "float32") -> NDArray[Any]:
    """Seeded normally distributed values."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


__all__ = ["TensorProto", "check", "compare", "constants", "helper", "normal", "onnxruntime", "run", "save", "single"]
