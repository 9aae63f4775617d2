"""The facts of an ONNX file: producer, inputs and outputs, operators, weights."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Facts = dict[str, Any]
"""JSON: the facts of one object."""


def model_facts(path: Path) -> Facts:
    """The facts of a model file; its weights are not read. Raises UsageError and ConfigError as import does."""
    from tilec.api.header import as_text, read_header
    from tilec.importer.loader import load_structure

    structure = load_structure(path)
    proto, header = structure.proto, read_header(path)
    operators = Counter(_operators(proto.graph.node))
    for function in proto.functions:
        operators.update(_operators(function.node))
    weights = [tensor for tensor, _ in structure.tensors]
    about = header.metadata
    ports = {
        name: [{"name": p.name, "type": p.type, "shape": list(p.shape) if p.shape is not None else None} for p in each]
        for name, each in (
            ("inputs", header.inputs),
            ("optional_inputs", header.overridable),
            ("outputs", header.outputs),
        )
    }
    return {
        "file": path.name,
        "bytes": path.stat().st_size,
        "ir_version": proto.ir_version,
        "opsets": {as_text(entry.domain) or "ai.onnx": entry.version for entry in proto.opset_import},
        "producer": f"{about.producer_name} {as_text(proto.producer_version)}".strip(),
        "graph": about.graph_name,
        "version": about.version,
        "description": about.description,
        "metadata": dict(about.custom_metadata_map),
        **ports,
        "symbols": list(header.symbols),
        "nodes": sum(operators.values()),
        "operators": dict(sorted(operators.items(), key=lambda item: (-item[1], item[0]))),
        "functions": [
            f"{as_text(function.domain)}.{as_text(function.name)}".lstrip(".") for function in proto.functions
        ],
        "parameters": sum(_elements(tensor) for tensor in weights),
        "parameter_bytes": sum(-(-_elements(tensor) * _bits(tensor.data_type) // 8) for tensor in weights),
        "external_data": [{"file": name, "bytes": size_of(path.parent / name)} for name in header.external],
    }


def _operators(nodes: Any) -> Iterator[str]:
    """Operators of nodes and of the graphs inside them; those of other domains with their domain."""
    from tilec.api.header import as_text

    for node in nodes:
        domain, operator = as_text(node.domain), as_text(node.op_type)
        yield operator if domain in ("", "ai.onnx") else f"{domain}.{operator}"
        for attribute in node.attribute:
            yield from _operators(attribute.g.node)
            for graph in attribute.graphs:
                yield from _operators(graph.node)


_PACKED = {"uint4": 4, "int4": 4, "float4e2m1": 4, "uint2": 2, "int2": 2}
"""Bits of types whose elements share bytes."""


def _elements(tensor: Any) -> int:
    total = 1
    for extent in tensor.dims:
        total *= extent
    return total


def _bits(data_type: int) -> int:
    """Bits of one element; 0 for text."""
    from tilec.api.elements import dtype_named, type_name

    name = type_name(data_type)
    if name in _PACKED:
        return _PACKED[name]
    try:
        return 0 if name == "string" else 8 * dtype_named(name).itemsize
    except KeyError:
        return 0


def size_of(path: Path) -> int | None:
    """Bytes of a file; None when it is not there."""
    try:
        return path.stat().st_size
    except OSError:
        return None
