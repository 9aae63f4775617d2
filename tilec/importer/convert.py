"""Import of an ONNX file as a graph of tensor expressions; weights are referenced, not copied."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import onnx

from tilec.artifact import digest_file
from tilec.artifact.safetensors import pack
from tilec.errors import ConfigError, UnsupportedError, did_you_mean, several
from tilec.importer.builder import Builder, SerialLoop, files_of
from tilec.importer.cache_scenarios import with_cache_scenarios
from tilec.importer.check import (
    OPSETS,
    attributes_of,
    check_opset,
    check_types,
    domain_of,
    needs,
    opset_of,
    opset_of_domain,
    ordered,
    place_of,
)
from tilec.importer.clusters import Pieces, clusters_of
from tilec.importer.context import Context, Functions, Scope
from tilec.importer.declarations import defaults_of, require_ports, require_results, require_versions
from tilec.importer.fallback import Fallbacks, forced_by, is_defined
from tilec.importer.functions import functions_of, key_of
from tilec.importer.loader import Model, load_model
from tilec.importer.named_values import Items, Maybe, Outside, type_of_value
from tilec.importer.names import identifier
from tilec.importer.ports import InputPort, input_ports, readable, require_types
from tilec.importer.retype import Formats, format_of, retype
from tilec.importer.rounded_states import of_states, with_rounded_states
from tilec.importer.roundings import Compute, roundings_of
from tilec.importer.states import Pairs, with_states
from tilec.importer.translate import Translator
from tilec.importer.upgrade_opset import modern
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Var
from tilec.ir.graph import Call, Graph, Placement, Port, Tensor, Unsupported, WeightRef
from tilec.ir.node_labels import label
from tilec.ir.pivots import held_pivots, legal_pivots
from tilec.ir.scenarios import with_scenarios
from tilec.ir.size_facts import SizeFacts, settled

NO_SIZES: Mapping[str, int] = MappingProxyType({})
NO_FORMATS: Formats = MappingProxyType({})
NO_COMPUTE: Compute = MappingProxyType({})

Allowed = Literal["allow", "refuse"] | Collection[str]
"""Operators that may run on onnxruntime: all, none, or these."""


class UnsupportedModelError(UnsupportedError):
    """Some nodes of the model cannot be translated; `nodes` lists each with its remedy, `needed` as in `Imported`."""

    def __init__(self, file: str, nodes: Sequence[Unsupported], total: int, needed: Sequence[str] = ()) -> None:
        lines = [f"node {n.node!r} ({n.op}): {n.reason}" + (f"\n    {n.remedy}" if n.remedy else "") for n in nodes]
        message = (
            f"{len(nodes)} of {several(total, 'node')} {'is' if len(nodes) == 1 else 'are'} not supported"
            + "".join(f"\n  {line}" for line in lines)
        )
        super().__init__(message, file, "`tilec import --report` lists them without writing anything.")
        self.nodes = tuple(nodes)
        self.total = total
        self.needed = tuple(needed)


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of import: the graph, and the files to write beside it.

    `weights` is the content of `owned_file` (empty: there is none), in pieces to be written one after another; the file
    is named by its content, so that the graph does not depend on where it is written. `clusters` are the files that
    onnxruntime runs, by name. `needed` names inputs whose contents would let more nodes compile, `bound` the sizes that
    were bound from the start.
    """

    graph: Graph
    weights: tuple[bytes | memoryview, ...] = ()
    owned_file: str = ""
    clusters: Mapping[str, Pieces] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    bound: tuple[str, ...] = ()

    @property
    def files(self) -> dict[str, Pieces]:
        """All files to write: name -> content."""
        return {**({self.owned_file: self.weights} if self.weights else {}), **self.clusters}


def import_model(
    path: Path,
    *,
    name: str | None = None,
    sizes: Mapping[str, int] = NO_SIZES,
    fallback: Allowed = "refuse",
    types: Formats = NO_FORMATS,
    compute: Compute = NO_COMPUTE,
    state: Pairs = "separate",
) -> Imported:
    """Read an ONNX model as a graph of tensor expressions.

    The graph keeps the model's symbolic sizes; `tilec.ir.bind.bind` binds them afterwards. `sizes` binds some from the
    start, for models whose shapes cannot be decided otherwise. Nodes that cannot be translated go into clusters for
    onnxruntime where `fallback` allows their operators. `types` are formats that weights are rounded to, `compute` says
    how products with weights of few bits may be computed. `state` says which inputs and outputs share memory.

    Raises UsageError (no such file, no such symbol), ConfigError (not a valid ONNX model) and UnsupportedModelError
    with every node that cannot be translated and may not fall back.
    """
    model = load_model(path)
    require_versions(model)
    model = modern(model)
    opset = opset_of(model.proto)
    if fallback == "refuse":
        check_opset(opset, model.file)
    graph = model.proto.graph
    given = [info for info in graph.input if info.name not in model.initializers and info.name not in model.foreign]
    require_types(given, model.file)
    require_ports(model)
    cached = of_states(types, [info.name for info in given], list(model.initializers))
    types = {pattern: kind for pattern, kind in types.items() if pattern not in cached}
    tensors = [info for info in given if fallback == "refuse" or readable(info)]
    ports, symbols = input_ports(tensors, sizes, model.file)
    names = [info.name for info in given] + list(model.initializers) + list(model.foreign)
    nodes = ordered(graph.node, names, model.file)
    opaque = [info for info in given if info not in tensors]
    context = Context(model.file, opset, functions_of(model.proto.functions, model.file))
    builder, scope, fallbacks, asked = _placed(
        nodes, ports, opaque, SizeFacts(symbols), context, model, types, _states(state, ports)
    )
    require_results(model, nodes, scope)
    needed = tuple(port.name for port in ports if port.name in asked)
    refused = [each.why for each in fallbacks.fallen if not _may_fall_back(each.node, fallback, context.functions)]
    if refused:
        raise UnsupportedModelError(model.file, refused, len(nodes), needed)
    outputs = _outputs(builder, graph.output, scope, fallbacks, model.file)
    inputs = tuple(Port(p.name, _named(scope, p.name).name) for p in given)
    made = _assembled(
        name or path.stem, inputs, outputs, builder, fallbacks, scope, model, len(nodes), needed, types, compute
    )
    defaults = defaults_of(model, graph.input)
    graph = with_states(replace(made.graph, defaults=defaults), state, model.file)
    graph = with_rounded_states(graph, cached, model.file, same_inputs=state == "same-shape")
    graph = with_scenarios(with_cache_scenarios(graph))
    return replace(made, graph=graph, bound=tuple(sizes))


def _states(state: Pairs, ports: Sequence[InputPort]) -> frozenset[str]:
    """The tensors of the inputs that are updated in place where that is possible."""
    named = state if isinstance(state, Mapping) else {port.name for port in ports if state == "in-place"}
    return frozenset(identifier(name, "t") for name in named)


def _placed(
    nodes: Sequence[tuple[int, Any]],
    ports: Sequence[InputPort],
    opaque: Sequence[Any],
    facts: SizeFacts,
    context: Context,
    model: Model,
    types: Formats,
    states: Collection[str],
) -> tuple[Builder, Scope, Fallbacks, set[str]]:
    """All nodes translated or left to onnxruntime, and the inputs whose contents would have been required.

    Translation restarts when a sequence, which exists only during import, is read by a node that falls back or is an
    output: the nodes that create it have to fall back as well. It restarts when nodes demand that sizes are equal, with
    fewer symbols, or that one is repeated along another. Where nodes fell back it restarts with what later ones said of
    ranges, which may decide what they compute from sizes, as long as that leaves fewer of them.
    """
    forced: dict[int, Unsupported] = {}
    if context.opset not in OPSETS:
        reason = f"tilec reads opsets up to {OPSETS.stop - 1}, not {context.opset}"
        forced = {number: Unsupported(label(node, number), node.op_type, reason) for number, node in nodes}
    asked: set[str] = set()
    fewest: float = inf
    while True:
        builder = Builder((*facts.solvable, *facts.values), facts, states)
        scope = _scope(builder, [_reduced(port, facts) for port in ports], opaque, model, types)
        fallbacks = Fallbacks(builder, model)
        _translate(nodes, scope, context, forced, fallbacks)
        asked |= _asked(builder, ports, scope)
        outputs = model.proto.graph.output
        sequences = [info.name for info in outputs if isinstance(scope.get(info.name), Items | Maybe)]
        more = forced_by((*fallbacks.sequences, *sequences), nodes, scope) - set(forced)
        learnt = builder.sizes.facts.says_more_than(facts)
        if 0 < len(fallbacks.fallen) < fewest and builder.sizes.facts.limits_more_than(facts):
            fewest, learnt = len(fallbacks.fallen), True
        if not more and not learnt:
            return builder, scope, fallbacks, asked
        if learnt and not more:
            facts = builder.sizes.facts.without(builder.sizes.facts.reported)
            continue
        reason = "it makes a sequence or codes that leave the compiled part"
        forced |= {each.number: each.why for each in fallbacks.fallen}
        forced |= {n: Unsupported(label(node, n), node.op_type, reason) for n, node in nodes if n in more}


def _reduced(port: InputPort, facts: SizeFacts) -> InputPort:
    """An input without the symbols that equal expressions of others."""
    return replace(port, shape=tuple(simplify(facts.reduced(extent)) for extent in port.shape))


def _may_fall_back(node: Any, fallback: Allowed, functions: Functions) -> bool:
    """Whether a node may run on onnxruntime; one that neither ONNX, the model nor onnxruntime defines runs nowhere."""
    if key_of(node) not in functions and not is_defined(domain_of(node), node.op_type):
        return False
    return fallback != "refuse" and (fallback == "allow" or node.op_type in fallback)


def _translate(
    nodes: Sequence[tuple[int, Any]],
    scope: Scope,
    context: Context,
    forced: Mapping[int, Unsupported],
    fallbacks: Fallbacks,
) -> None:
    """Translate nodes in order; nodes that cannot be translated, that are `forced` or that read opaque values go to
    `fallbacks`."""
    translator = Translator(fallbacks.builder, fallbacks.model.files)
    for number, node in nodes:
        outside = {name: value for name in needs(node) if isinstance(value := scope.get(name), Outside)}
        if number in forced:
            why = forced[number]
        elif outside:
            name, value = next(iter(outside.items()))
            why = Unsupported(label(node, number), node.op_type, f"it reads {name!r}, {value.described}")
        else:
            translator.run([(number, node)], scope, context)
            if not translator.unsupported:
                continue
            why = translator.unsupported.pop()
        if key_of(node) not in context.functions:
            _check(number, node, scope, fallbacks.model)
        fallbacks.add(number, node, why, scope)


def _check(number: int, node: Any, scope: Scope, model: Model) -> None:
    """Raise ConfigError for a node that breaks the definition of its operator, which onnxruntime would refuse."""
    opset = opset_of_domain(model.proto, domain_of(node))
    if opset is not None:
        place = place_of(model.file, label(node, number), node.op_type)
        attributes_of(node, opset, place)
        check_types(node, opset, [type_of_value(scope.get(name)) for name in node.input], place)


def _scope(builder: Builder, ports: Sequence[InputPort], opaque: Sequence[Any], model: Model, types: Formats) -> Scope:
    scope: Scope = {}
    for port in ports:
        if port.name in scope:
            raise ConfigError(f"input {port.name!r} is defined twice", model.file, "Rename one of the two.")
        scope[port.name] = builder.input(identifier(port.name, "t"), port.shape, port.ttype)
    for info in opaque:
        scope[info.name] = Outside(builder.names.take(identifier(info.name, "t")), info.type)
    for name, stored in model.initializers.items():
        scope[name] = builder.constant(identifier(name, "t"), stored, folded=format_of(name, stored, types) is None)
    for name, tensor in model.foreign.items():
        kind = onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
        scope[name] = Outside(builder.names.take(identifier(name, "t")), kind)
    return scope


def _asked(builder: Builder, ports: Sequence[InputPort], scope: Scope) -> set[str]:
    """The inputs of the model whose contents translations require."""
    asked = builder.asked()
    return {port.name for port in ports if _named(scope, port.name).name in asked}


def _named(scope: Scope, name: str) -> Value | Outside:
    value = scope.get(name)
    assert isinstance(value, Value | Outside)
    return value


def _outputs(builder: Builder, infos: Sequence[Any], scope: Scope, fallbacks: Fallbacks, file: str) -> tuple[Port, ...]:
    """The model's outputs, each carried by a tensor of its own that a node or onnxruntime computes."""
    ports: list[Port] = []
    results = fallbacks.result_names | builder.loop_results
    for info in infos:
        value = scope.get(info.name)
        if value is None:
            near = did_you_mean(info.name, scope)
            hint = f"Did you mean {near!r}?" if near else "The model is damaged; export it again."
            raise ConfigError(f"output {info.name!r} is defined nowhere", file, hint)
        assert isinstance(value, Value | Outside)
        if isinstance(value, Outside) and value.name not in results:
            message = f"output {info.name!r}, {value.described}, is made by no node"
            raise UnsupportedError(message, file, "Take it out of the outputs.")
        mine = value.name in results or (isinstance(value, Value) and builder.computes(value.name))
        if isinstance(value, Value) and (not mine or any(port.tensor == value.name for port in ports)):
            value = builder.copy(info.name, value)
        ports.append(Port(info.name, value.name))
    if not ports:
        raise ConfigError(
            "the model has no outputs", file, "Declare an output: without one there is nothing to compute."
        )
    return tuple(ports)


def _assembled(
    name: str,
    inputs: tuple[Port, ...],
    outputs: tuple[Port, ...],
    builder: Builder,
    fallbacks: Fallbacks,
    scope: Scope,
    model: Model,
    total: int,
    needed: tuple[str, ...],
    types: Formats,
    compute: Compute,
) -> Imported:
    """The graph that the outputs need, and its files."""
    live, reached = fallbacks.live([port.tensor for port in outputs], scope)
    clusters = clusters_of(live, {port.name for port in outputs}, reached, scope, model)
    made = _with_loops(sorted({each.cluster for each in live}), clusters.calls, builder.loops(reached))
    ports = (*inputs, *outputs, *(port for call in made for port in (*call.inputs, *call.outputs)))
    opaque = {port.tensor: clusters.opaque[port.tensor] for port in ports if port.tensor in clusters.opaque}
    built = builder.finish([port.tensor for port in ports if port.tensor not in opaque])
    names = {name: value.name for name in model.initializers if isinstance(value := scope.get(name), Value)}
    built, retyped = retype(builder, built, types, names, model.file)
    called = {value: key for key, value in names.items()}
    weights = {
        name: called.get(name) or called.get(name.removesuffix("_codes"), name)
        for name in (*built.constants, *built.owned, *retyped)
    }
    roundings = roundings_of(built.nodes, weights, builder.roundings, compute, model.file)
    folder = model.path.parent
    files = {file: digest_file(folder / file) for file in files_of(built.constants)}
    constants = dict(built.constants)
    packed = pack(built.owned)
    owned_file = f"constants-{packed.sha256[:16]}.safetensors"
    for tensor, (offset, size) in packed.places.items():
        constants[tensor] = WeightRef(owned_file, offset, size, owned=True)
    if packed.pieces:
        files[owned_file] = packed.sha256
    facts = builder.sizes.facts
    calls = _with_symbols(made, built.tensors, facts.reported)
    live_symbols = {symbol for call in calls for symbol in call.symbols}
    facts = settled(facts.without(set(facts.reported) - live_symbols))
    shapes = [tensor.shape for tensor in built.tensors.values()]
    ranges = held_pivots(facts.symbols, facts.ranges, shapes)
    graph = Graph(
        name,
        facts.symbols,
        inputs,
        outputs,
        built.tensors,
        constants,
        built.nodes,
        {**files, **clusters.digests},
        Placement(total, total - len(live), tuple(each.why for each in live)),
        calls,
        opaque,
        tuple(each for each in built.ranges if each.tensor in {port.tensor for port in inputs} - set(opaque)),
        legal_pivots(facts.symbols, ranges, facts.constraints),
        facts.constraints,
        facts.values,
        retyped=retyped,
        roundings=roundings,
    )
    return Imported(graph, packed.pieces, owned_file, clusters.files, needed)


def _with_loops(numbers: Sequence[int], calls: Sequence[Call], loops: Sequence[SerialLoop]) -> tuple[Call, ...]:
    """All calls in order; `numbers` are those of the clusters. Loops of a segment are behind the cluster that ends it,
    which reads none of their results."""
    placed = list(zip(numbers, calls, strict=True))
    placed += [(loop.segment, call) for loop in loops for call in (loop.start, loop.end)]
    return tuple(call for _, call in sorted(placed, key=lambda each: each[0]))


def _with_symbols(calls: Sequence[Call], tensors: Mapping[str, Tensor], reported: Sequence[str]) -> tuple[Call, ...]:
    """The calls with the sizes that each is the first to report."""
    left = dict.fromkeys(reported)
    result = []
    for call in calls:
        shapes = [tensors[port.tensor].shape for port in call.outputs if port.tensor in tensors]
        names = dict.fromkeys(e.name for shape in shapes for e in shape if isinstance(e, Var) and e.name in left)
        left = {symbol: None for symbol in left if symbol not in names}
        result.append(replace(call, symbols=tuple(names)))
    return tuple(result)
