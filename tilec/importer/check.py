"""Structural checks of a model: opset, names, order and operators, before anything is built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

import onnx

from tilec.errors import ConfigError, UnsupportedError, did_you_mean
from tilec.importer.element_types import ELEMENT_TYPES, element_type_name
from tilec.ir.node_labels import label

OPSETS = range(7, 27)
"""Opsets of ONNX's own domain that import translates; models of older ones are put into the terms of the first."""

OWN_DOMAINS = ("", "ai.onnx")

_TTYPES = {f"tensor({element_type_name(code).lower()})": ttype for code, ttype in ELEMENT_TYPES.items()}
"""Type of a tensor in the notation of ONNX's operator definitions -> tType."""

_DAMAGED = "The model is damaged; export it again."


def opset_of(proto: Any) -> int:
    """The opset of ONNX's own domain; the newest supported one when the model has only operators of other domains."""
    versions = [entry.version for entry in proto.opset_import if entry.domain in OWN_DOMAINS]
    return int(max(versions, default=OPSETS.stop - 1))


def opset_of_domain(proto: Any, domain: str) -> int | None:
    """The opset of a domain that a model asks for; None for one that it does not import."""
    if not domain:
        return opset_of(proto)
    return next((int(entry.version) for entry in proto.opset_import if entry.domain == domain), None)


def check_opset(opset: int, file: str) -> None:
    """Raise UnsupportedError for an opset outside of `OPSETS`."""
    if opset not in OPSETS:
        raise UnsupportedError(
            f"the model uses opset {opset}; tilec reads opsets up to {OPSETS.stop - 1}",
            file,
            "Convert it with onnx.version_converter.convert_version, or export it for another opset.",
        )


def domain_of(node: Any) -> str:
    """A node's domain; ONNX's own is the empty one, by either of its names."""
    return "" if node.domain in OWN_DOMAINS else str(node.domain)


def place_of(file: str, name: str, kind: str) -> str:
    """A node's designation in messages."""
    return f"{file}: node {name!r} ({kind})"


def needs(node: Any) -> Iterator[str]:
    """Names of the tensors that a node reads, including those that its subgraphs read from outside."""
    yield from (name for name in node.input if name)
    for graph in bodies(node):
        inner = {i.name for i in graph.input} | {t.name for t in graph.initializer}
        inner |= {name for n in graph.node for name in n.output}
        yield from (name for n in graph.node for name in needs(n) if name not in inner)
        yield from (o.name for o in graph.output if o.name not in inner)


def bodies(node: Any) -> Iterator[Any]:
    """The graphs among a node's attributes: branches and bodies of loops."""
    for attribute in node.attribute:
        if attribute.type in (_GRAPH, _GRAPHS):
            yield from (attribute.g,) if attribute.type == _GRAPH else attribute.graphs


_GRAPH, _GRAPHS = onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS


def ordered(nodes: Sequence[Any], given: Iterable[str], file: str) -> tuple[tuple[int, Any], ...]:
    """(number in the file, node) in topological order, in the file's order where that is one.

    Raises ConfigError for a tensor that is defined twice, one that nothing defines, and a cycle.
    """
    available = set(given)
    maker = _makers(nodes, available, file)
    for number, node in enumerate(nodes):
        for name in needs(node):
            if name not in available and name not in maker:
                near = did_you_mean(name, available | set(maker))
                place = place_of(file, label(node, number), node.op_type)
                hint = f"Did you mean {near!r}?" if near else _DAMAGED
                raise ConfigError(f"input {name!r} is defined nowhere", place, hint)
    missing = {number: {name for name in needs(node) if name not in available} for number, node in enumerate(nodes)}
    readers: dict[str, list[int]] = {}
    for number, names in missing.items():
        for name in names:
            readers.setdefault(name, []).append(number)
    ready = [number for number, names in missing.items() if not names]
    heapify(ready)
    result: list[tuple[int, Any]] = []
    while ready:
        number = heappop(ready)
        result.append((number, nodes[number]))
        for name in nodes[number].output:
            for reader in readers.get(name, ()):
                missing[reader].discard(name)
                if not missing[reader]:
                    heappush(ready, reader)
    if len(result) < len(nodes):
        raise _cycle(nodes, {number: names for number, names in missing.items() if names}, maker, file)
    return tuple(result)


def _makers(nodes: Sequence[Any], given: set[str], file: str) -> dict[str, int]:
    maker: dict[str, int] = {}
    for number, node in enumerate(nodes):
        for name in filter(None, node.output):
            if name in maker or name in given:
                other = (
                    "an input or initializer" if name in given else f"node {label(nodes[maker[name]], maker[name])!r}"
                )
                message = f"tensor {name!r} is also defined by {other}"
                raise ConfigError(message, place_of(file, label(node, number), node.op_type), "Rename one of the two.")
            maker[name] = number
    return maker


def _cycle(nodes: Sequence[Any], missing: Mapping[int, set[str]], maker: Mapping[str, int], file: str) -> ConfigError:
    """The error for nodes that depend on each other; names one cycle."""
    path: list[int] = []
    number = min(missing)
    while number not in path:
        path.append(number)
        number = maker[min(missing[number])]
    cycle = path[path.index(number) :][::-1]
    names = " -> ".join(label(nodes[n], n) for n in [*cycle, cycle[0]])
    first = nodes[cycle[0]]
    return ConfigError(
        f"the graph has a cycle: {names}",
        place_of(file, label(first, cycle[0]), first.op_type),
        "A model must not read what it has not computed yet; export it again.",
    )


def check_types(node: Any, opset: int, types: Sequence[str], place: str) -> None:
    """Raise ConfigError for an input (its ONNX type; empty where it is absent or not known) of a type that the operator
    does not accept, or that has to be of the same type as another one and is not."""
    schema = schema_of(node, opset)
    if schema is None:
        return
    first_uses: dict[str, tuple[int, str]] = {}
    for position, given in enumerate(types):
        if not given or not schema.inputs:
            continue
        parameter = schema.inputs[min(position, len(schema.inputs) - 1)]
        shown = _TTYPES.get(given, given)
        if given not in parameter.types and not (shown == "bf16" and _takes_bf16(node, position)):
            taken = ", ".join(sorted(_TTYPES.get(name, name) for name in parameter.types)[:MOST_TYPES])
            more = ", ..." if len(parameter.types) > MOST_TYPES else ""
            raise ConfigError(
                f"input {position} ({parameter.name}) is {shown}", place, f"It must be one of {taken}{more}."
            )
        other, wanted = first_uses.setdefault(parameter.type_str, (position, shown))
        if parameter.is_homogeneous and wanted != shown:
            message = f"input {position} ({parameter.name}) is {shown}, input {other} is {wanted}"
            raise ConfigError(message, place, "Both must be of one type; insert a Cast.")


MOST_TYPES = 12
"""The most types that a message lists."""


def schema_of(node: Any, opset: int) -> Any:
    """ONNX's definition of a node's operator at an opset of its domain; None where it has none."""
    try:
        return onnx.defs.get_schema(node.op_type, opset, domain_of(node))
    except onnx.defs.SchemaError:
        return None


def _takes_bf16(node: Any, position: int) -> bool:
    """Whether the newest definition of an operator accepts bf16 at an input.

    Exporters write bf16 at any opset, and ONNX added it to most operators late without changing their meaning.
    """
    newest: Any = onnx.defs.get_schema(node.op_type, OPSETS.stop - 1, domain_of(node))
    return "tensor(bfloat16)" in newest.inputs[min(position, len(newest.inputs) - 1)].types


def attributes_of(node: Any, opset: int, place: str) -> dict[str, Any]:
    """The attributes of a node as Python values.

    Raises ConfigError for an unknown or missing attribute, one of another kind, and a wrong number of inputs or
    outputs; an operator that ONNX does not define at this opset is not checked.
    """
    names = [attribute.name for attribute in node.attribute]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigError(f"the attribute {twice!r} is given twice", place, "Remove one of the two.")
    schema = schema_of(node, opset)
    if schema is None:
        return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    for attribute in node.attribute:
        declared = schema.attributes.get(attribute.name)
        if declared is None:
            near = did_you_mean(attribute.name, schema.attributes)
            known = ", ".join(sorted(schema.attributes)) or "none"
            hint = f"Did you mean {near!r}?" if near else f"Opset {opset} knows: {known}."
            raise ConfigError(f"unknown attribute {attribute.name!r}", place, hint)
        if declared.type.value != attribute.type:
            found = onnx.AttributeProto.AttributeType.Name(attribute.type)
            raise ConfigError(
                f"the attribute {attribute.name!r} is of kind {found}",
                place,
                f"It must be of kind {declared.type.name}.",
            )
    values = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    for name, declared in schema.attributes.items():
        if declared.required and name not in values:
            raise ConfigError(f"the attribute {name!r} is missing", place, "The operator requires it.")
    if not schema.min_input <= len(node.input) <= schema.max_input:
        wanted = (
            f"{schema.min_input} to {schema.max_input}" if schema.min_input != schema.max_input else schema.min_input
        )
        raise ConfigError(f"{len(node.input)} inputs, the operator takes {wanted}", place, _DAMAGED)
    if not schema.min_output <= len(node.output) <= schema.max_output:
        raise ConfigError(f"{len(node.output)} outputs, the operator has {schema.max_output}", place, _DAMAGED)
    for position, name in enumerate(node.output[: schema.min_output]):
        if not name:
            raise ConfigError(f"output {position} has no name", place, "Only optional outputs may be left out.")
    return values
