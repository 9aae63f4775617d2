"""Functions: operators that a model or ONNX itself defines by other operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import onnx

from tilec.errors import ConfigError, UnsupportedError
from tilec.importer.check import OPSETS, OWN_DOMAINS, ordered
from tilec.importer.context import FunctionKey, Functions
from tilec.importer.control.region import Region
from tilec.importer.element_types import ELEMENT_TYPES
from tilec.importer.named_values import NamedValue
from tilec.importer.value import Value
from tilec.ir.expr import constant_value
from tilec.ir.text import text_of
from tilec.ir.types import TTYPES

_CODES = {ttype: code for code, ttype in ELEMENT_TYPES.items()}
assert set(_CODES) <= set(TTYPES)


MAX_NODES = 1 << 20
"""Maximal number of nodes that a function may unfold to; a few lines can exceed any limit, so larger ones are refused,
also for the fallback."""


def functions_of(functions: Iterable[Any], file: str) -> Functions:
    """A model's own functions by key.

    Raises ConfigError for two of one name, for one that calls itself, and for one that unfolds to too many nodes.
    """
    by_key: dict[FunctionKey, Any] = {}
    for function in functions:
        key = (_domain(function.domain), function.name, function.overload)
        if key in by_key:
            raise ConfigError(f"function {function.name!r} is defined twice", file, "Give one another overload.")
        by_key[key] = function
    callees = {key: [key_of(n) for n in _inner(f.node) if key_of(n) in by_key] for key, f in by_key.items()}
    sizes: dict[FunctionKey, int] = {}
    for key in by_key:
        _measure(key, callees, sizes, file)
    return by_key


def _measure(
    first: FunctionKey, callees: Mapping[FunctionKey, Sequence[FunctionKey]], sizes: dict[FunctionKey, int], file: str
) -> None:
    """Record the number of calls that a function and its callees unfold to."""
    path: dict[FunctionKey, None] = {}
    pending = [first]
    while pending:
        key = pending[-1]
        if key not in path:
            path[key] = None
        open_ = [callee for callee in callees[key] if callee not in sizes]
        if key in sizes or not open_:
            pending.pop()
            path.pop(key, None)
            sizes[key] = 1 + sum(sizes[callee] for callee in callees[key])
            if sizes[key] > MAX_NODES:
                raise ConfigError(f"the function unfolds to {sizes[key]} calls", _place(file, key), _LOOP)
            continue
        if open_[0] in path:
            names = list(path)
            chain = " -> ".join(name for _, name, _ in (*names[names.index(open_[0]) :], open_[0]))
            raise ConfigError(f"the function calls itself: {chain}", _place(file, open_[0]), _LOOP)
        pending.append(open_[0])


_LOOP = "Write the repetition as a Loop."


def _place(file: str, key: FunctionKey) -> str:
    return f"{file}: function {key[1]!r}"


def _inner(nodes: Iterable[Any]) -> Iterator[Any]:
    """Nodes including those in their bodies."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        yield node
        for attribute in node.attribute:
            pending += [inner for graph in (attribute.g, *attribute.graphs) for inner in graph.node]


def key_of(node: Any) -> FunctionKey:
    """The key of the function that a node calls."""
    return _domain(node.domain), node.op_type, node.overload


def _domain(name: str) -> str:
    return "" if name in OWN_DOMAINS else name


def function_of(region: Region) -> Any | None:
    """The FunctionProto of a node: the model's own, or ONNX's definition of the operator; None without one."""
    node = region.node
    own_function = region.context.functions.get(key_of(node))
    if own_function is not None:
        return own_function
    try:
        schema: Any = onnx.defs.get_schema(node.op_type, region.context.opset, _domain(node.domain))
    except onnx.defs.SchemaError:
        return None
    if schema.has_function:
        return schema.function_body
    if schema.has_context_dependent_function:
        types = [_type_of(value).SerializeToString() for value in region.inputs]
        body = schema.get_context_dependent_function(node.SerializeToString(), types)
        function = onnx.FunctionProto()
        function.ParseFromString(body)
        return function if function.node else None
    return None


def _type_of(value: NamedValue) -> Any:
    if not isinstance(value, Value):
        return onnx.TypeProto()
    shape = [text_of(extent) if (size := constant_value(extent)) is None else size for extent in value.shape]
    return onnx.helper.make_tensor_type_proto(_CODES[value.ttype], shape)


def called(region: Region, function: Any) -> list[NamedValue]:
    """The outputs of a function for a node's inputs.

    Raises ConfigError for a function with fewer parameters than the node has or whose nodes read undefined names;
    UnsupportedError when one of its nodes cannot be translated.
    """
    node, context, place = region.node, region.context, region.origin.place
    for kind, given, taken in (("inputs", node.input, function.input), ("outputs", node.output, function.output)):
        if len(given) > len(taken):
            raise region.invalid(f"{len(given)} {kind}, the function {function.name!r} has {len(taken)}")
    nodes = ordered(instantiated(function, node, context.opset), function.input, place)
    scope: dict[str, NamedValue] = dict.fromkeys(function.input)
    scope |= dict(zip(function.input, region.inputs, strict=False))
    results = dict(zip(function.output, node.output, strict=False))
    inside = region.inside(region.path, results, function_opset(function, context.opset))
    with region.translator.builder.sizes.defining(key_of(node) not in context.functions):
        region.translator.body(nodes, scope, inside, region.origin)
    for name, wanted in results.items():
        if wanted and name not in scope:
            raise region.invalid(f"output {name!r} of the function {function.name!r} is defined nowhere")
    return [scope.get(name) for name in results]


def instantiated(function: Any, node: Any, opset: int) -> list[Any]:
    """The function's nodes with references to its attributes replaced by the values of `node`."""
    given = {a.name: a for a in (*function.attribute_proto, *node.attribute)}
    values = {**_defaults(node, opset), **given}
    return [_with_attributes(inner, values) for inner in function.node]


def _defaults(node: Any, opset: int) -> dict[str, Any]:
    """The defaults of an operator's attributes; none for a function of the model."""
    try:
        schema: Any = onnx.defs.get_schema(node.op_type, opset, _domain(node.domain))
    except onnx.defs.SchemaError:
        return {}
    return {name: a.default_value for name, a in schema.attributes.items() if a.default_value.name}


def _with_attributes(node: Any, values: Mapping[str, Any]) -> Any:
    if not any(a.ref_attr_name or a.type in _GRAPHS for a in node.attribute):
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    for attribute in node.attribute:
        if attribute.ref_attr_name and attribute.ref_attr_name not in values:
            continue
        value = copy.attribute.add()
        value.CopyFrom(values[attribute.ref_attr_name] if attribute.ref_attr_name else attribute)
        value.name = attribute.name
        for graph in (value.g, *value.graphs) if value.type in _GRAPHS else ():
            _fill(graph.node, values)
    return copy


def _fill(nodes: Any, values: Mapping[str, Any]) -> None:
    filled: Sequence[Any] = [_with_attributes(node, values) for node in nodes]
    del nodes[:]
    nodes.extend(filled)


_GRAPHS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


def function_opset(function: Any, opset: int) -> int:
    """The opset of ONNX's own domain for a function's nodes. Raises UnsupportedError if it is not in `OPSETS`."""
    versions = [entry.version for entry in function.opset_import if entry.domain in OWN_DOMAINS]
    version = int(versions[0]) if versions else opset
    if version not in OPSETS:
        raise UnsupportedError(
            f"the function {function.name!r} uses opset {version}", hint=f"Write it for opset {opset}."
        )
    return version
