"""The import stage: an ONNX file in, a graph of tensor expressions out, weights left where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tilec.artifact import digest_file
from tilec.artifact.safetensors import pack
from tilec.errors import ConfigError, UnsupportedError, did_you_mean
from tilec.importer.builder import Builder, Built, files_of
from tilec.importer.check import opset_of, ordered
from tilec.importer.loader import Model, load_model
from tilec.importer.names import identifier
from tilec.importer.ports import InputPort, input_ports
from tilec.importer.translate import Context, Scope, Translator, Unsupported
from tilec.importer.value import Value
from tilec.ir.graph import Graph, Placement, Port, WeightRef

NO_SIZES: Mapping[str, int] = MappingProxyType({})


class UnsupportedModelError(UnsupportedError):
    """Some nodes of the model cannot be translated; `nodes` lists every one with its remedy, `needed` as `Imported`."""

    def __init__(self, file: str, nodes: Sequence[Unsupported], total: int, needed: Sequence[str] = ()) -> None:
        lines = [f"node {n.node!r} ({n.op}): {n.reason}" + (f"\n    {n.remedy}" if n.remedy else "") for n in nodes]
        message = f"{len(nodes)} of {total} nodes are not supported" + "".join(f"\n  {line}" for line in lines)
        super().__init__(message, file, "`tilec import --report` lists them without writing anything.")
        self.nodes = tuple(nodes)
        self.total = total
        self.needed = tuple(needed)


@dataclass(frozen=True, slots=True)
class Imported:
    """What `import` made: the graph, and the file of weights that it has to write beside it (None: nothing).

    `weights` is the content of `owned_file`, in pieces to be written one after another; the file is named by its
    content, so that the graph does not depend on where it is written.
    """

    graph: Graph
    weights: tuple[bytes | memoryview, ...] = ()
    owned_file: str = ""


def import_model(path: Path, *, name: str | None = None, sizes: Mapping[str, int] = NO_SIZES) -> Imported:
    """Read an ONNX model as a graph of tensor expressions (A04, B02, B06, W01, W43).

    The graph keeps the model's symbolic sizes; `tilec.ir.bind.bind` fixes them afterwards.  `sizes` fixes some from
    the start, for models whose shapes cannot be decided otherwise.

    Raises UsageError (no such file, no such symbol), ConfigError (not a sound ONNX model) and UnsupportedModelError,
    which names every node that cannot be translated.
    """
    model = load_model(path)
    opset = opset_of(model.proto, model.file)
    graph = model.proto.graph
    given = [info for info in graph.input if info.name not in model.initializers]
    ports, symbols = input_ports(given, sizes, model.file)
    nodes = ordered(graph.node, [p.name for p in ports] + list(model.initializers), model.file)
    builder = Builder(symbols)
    scope = _scope(builder, ports, model)
    translator = Translator(builder, model.files)
    functions = {(f.domain, f.name): f for f in model.proto.functions}
    translator.run(nodes, scope, Context(model.file, opset, functions))
    if translator.unsupported:
        raise UnsupportedModelError(model.file, translator.unsupported, len(nodes), _needed(builder, ports, scope))
    outputs = _outputs(builder, graph.output, scope, model.file)
    inputs = tuple(Port(p.name, _defined(scope, p.name).name) for p in ports)
    built = builder.finish([port.tensor for port in (*inputs, *outputs)])
    return _assembled(name or path.stem, symbols, inputs, outputs, built, model, len(nodes))


def _scope(builder: Builder, ports: Sequence[InputPort], model: Model) -> Scope:
    scope: Scope = {}
    for port in ports:
        if port.name in scope:
            raise ConfigError(f"input {port.name!r} is defined twice", model.file)
        scope[port.name] = builder.input(identifier(port.name, "t"), port.shape, port.ttype)
    for name, stored in model.initializers.items():
        scope[name] = builder.constant(identifier(name, "t"), stored)
    return scope


def _needed(builder: Builder, ports: Sequence[InputPort], scope: Scope) -> tuple[str, ...]:
    """The inputs of the model whose contents nodes asked for."""
    asked = builder.asked()
    return tuple(port.name for port in ports if _defined(scope, port.name).name in asked)


def _defined(scope: Scope, name: str) -> Value:
    value = scope.get(name)
    assert isinstance(value, Value)
    return value


def _outputs(builder: Builder, infos: Sequence[Any], scope: Scope, file: str) -> tuple[Port, ...]:
    """The model's outputs, each carried by a node's tensor of its own."""
    ports: list[Port] = []
    for info in infos:
        value = scope.get(info.name)
        if value is None:
            near = did_you_mean(info.name, scope)
            hint = f"Did you mean {near!r}?" if near else "The model is damaged; export it again."
            raise ConfigError(f"output {info.name!r} is defined nowhere", file, hint)
        if not isinstance(value, Value):
            hint = "Return its elements as tensors."
            raise UnsupportedError(f"output {info.name!r} is no tensor", file, hint)
        if not builder.computes(value.name) or any(port.tensor == value.name for port in ports):
            value = builder.copy(info.name, value)
        ports.append(Port(info.name, value.name))
    if not ports:
        raise ConfigError("the model has no outputs", file)
    return tuple(ports)


def _assembled(
    name: str,
    symbols: tuple[str, ...],
    inputs: tuple[Port, ...],
    outputs: tuple[Port, ...],
    built: Built,
    model: Model,
    total: int,
) -> Imported:
    folder = model.path.parent
    files = {file: digest_file(folder / file) for file in files_of(built.constants)}
    constants = dict(built.constants)
    packed = pack(built.owned)
    owned_file = f"constants-{packed.sha256[:16]}.safetensors"
    for tensor, (offset, size) in packed.places.items():
        constants[tensor] = WeightRef(owned_file, offset, size, owned=True)
    if packed.pieces:
        files[owned_file] = packed.sha256
    graph = Graph(
        name,
        symbols,
        inputs,
        outputs,
        built.tensors,
        constants,
        built.nodes,
        files,
        Placement(total, total),
    )
    return Imported(graph, packed.pieces, owned_file)
