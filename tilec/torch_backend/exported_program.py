"""A program of `torch.export` as an ONNX model whose ports have the names of its signature (A02).

Parameters, and buffers that are not written, are constants of the model. A buffer that is written is an input with its
value before the call, and an output, `NAME_after`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import onnx
import torch
from torch import fx
from torch._export.utils import _get_decomp_for_cia
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from torch.utils import _pytree

from tilec.errors import UnavailableError, UnsupportedError
from tilec.torch_backend.decompositions import decompositions
from tilec.torch_backend.index_checks import Check, CheckedGraph, with_checks
from tilec.torch_backend.memory_order import OrderedGraph, in_memory_order
from tilec.torch_backend.translation import OPERATORS, Translated, UntranslatableError, refused_operators, translate

CONSTANTS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
WRITTEN = {OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION, OutputKind.USER_INPUT_MUTATION}

WHOLE = (torch.ops.aten.lstm.input, torch.ops.aten.gru.input)
"""Operators that are translated whole; `tilec.capture_rnn` makes such ones that sizes may vary in."""

Range = tuple[int, int | None]
"""The least and the largest size; None: no limit."""


@dataclass(frozen=True)
class Exported:
    """A translated program, after its decomposition.

    `translated`  the model; positions are those of the placeholders and of the outputs of the graph
    `written`     position of an output -> that of the placeholder whose value it is after the call
    `orders`      the graph, which says where the elements of results lie
    `ranges`      size -> its range, of those that the program limits
    `check`       of indices: the last output of the model, where it is there
    """

    program: ExportedProgram
    translated: Translated
    written: Mapping[int, int]
    ranges: Mapping[str, Range]
    orders: OrderedGraph
    check: Check

    @property
    def model(self) -> onnx.ModelProto:
        """The model without the output that is a check."""
        model = onnx.ModelProto()
        model.CopyFrom(self.translated.model)
        if self.check.is_there:
            del model.graph.output[-1]
        return model

    def state(self) -> dict[int, torch.Tensor]:
        """The buffers that calls write, by their positions among the placeholders: copies of what the program holds."""
        names = [node.name for node in _placeholders(self.program.graph_module)]
        buffers = {spec.arg.name: spec.target for spec in self.program.graph_signature.input_specs if spec.target}
        return {
            place: _value(self.program, buffers[names[place]]).clone()
            for place in self.written.values()
            if names[place] in buffers
        }


def translated_program(program: ExportedProgram, name: str, checked: bool) -> Exported:
    """Translate a program; `checked`: with an output that tells of indices outside of their dimensions.

    Raises UnsupportedError for one with operators that have no translation, which it names, UnavailableError for one on
    another device than the CPU.
    """
    with torch.no_grad():
        program = program.run_decompositions(_rules(program))
    for tensor in (*program.state_dict.values(), *program.constants.values()):
        if isinstance(tensor, torch.Tensor) and tensor.device.type != "cpu":
            raise UnavailableError(
                f"the program has a tensor on {tensor.device}", name, "Export the model on the CPU: `model.cpu()`."
            )
    module = program.graph_module
    _drop_claims(module)
    if refused := refused_operators(module):
        raise _untranslatable(_listed(module, refused), name)
    _drop_constant_results(module)
    written = _written(program)
    constants = _constants(program, set(written.values()))
    with_check = with_checks(module, constants) if checked else CheckedGraph(module, False, frozenset())
    try:
        translated = translate(with_check.module, constants, name)
    except UntranslatableError as error:
        raise _untranslatable(str(error), name) from error
    names = _size_names(module, constants)
    _rename_sizes(translated.model, names)
    orders = in_memory_order(module, constants)
    names_of_outputs = _output_names(program)
    if with_check.is_checked:
        names_of_outputs[translated.results - 1] = "is_index_outside"
    named = _with_names(translated, names_of_outputs)
    check = Check(with_check.is_checked, frozenset())
    return Exported(program, named, written, _ranges(program, names), orders, check)


def _rules(program: ExportedProgram) -> dict[Any, Callable[..., Any]]:
    """The rules of decomposition, with those of composite operators that an export keeps and torch.compile does not."""
    rules = {op: rule for op, rule in decompositions().items() if op not in WHOLE}
    kept = {node.target for node in _calls(program.graph_module)} - rules.keys() - OPERATORS.keys()
    composite = {op for op in kept if isinstance(op, torch._ops.OpOverload) and op._can_decompose()}
    return rules | {op: _get_decomp_for_cia(op) for op in composite}


def _drop_constant_results(module: fx.GraphModule) -> None:
    output = next(node for node in module.graph.nodes if node.op == "output")
    output.args = (tuple(each if isinstance(each, fx.Node) else None for each in output.args[0]),)


def _drop_claims(module: fx.GraphModule) -> None:
    """Remove calls that claim what types tensors have, which they do."""
    for node in _calls(module):
        if node.target is torch.ops.aten._assert_tensor_metadata.default:
            module.graph.erase_node(node)


def _untranslatable(what: str, name: str) -> UnsupportedError:
    return UnsupportedError(
        f"the program is not translated: {what}",
        name,
        'torch.compile(model, backend="tilec") leaves such operators to PyTorch and compiles the rest.',
    )


def _listed(module: fx.GraphModule, refused: Mapping[str, str]) -> str:
    """Operators, each with its reason once."""
    nodes = [node for node in module.graph.nodes if node.name in refused]
    return "; ".join(dict.fromkeys(f"{node.target}: {refused[node.name]}" for node in nodes))


def _calls(module: fx.GraphModule) -> list[fx.Node]:
    return [node for node in module.graph.nodes if node.op == "call_function"]


def _placeholders(module: fx.GraphModule) -> list[fx.Node]:
    return [node for node in module.graph.nodes if node.op == "placeholder"]


def _value(program: ExportedProgram, target: str) -> torch.Tensor:
    """A parameter, buffer or constant."""
    tensor: torch.Tensor = program.state_dict[target] if target in program.state_dict else program.constants[target]
    return tensor.detach()


def _written(program: ExportedProgram) -> dict[int, int]:
    """Position of an output -> position of the placeholder that it overwrites."""
    signature = program.graph_signature
    places = {node.name: place for place, node in enumerate(_placeholders(program.graph_module))}
    inputs = {spec.target: spec.arg.name for spec in signature.input_specs if spec.target} | {
        spec.arg.name: spec.arg.name for spec in signature.input_specs if spec.kind is InputKind.USER_INPUT
    }
    return {
        position: places[inputs[str(spec.target)]]
        for position, spec in enumerate(signature.output_specs)
        if spec.kind in WRITTEN
    }


def _constants(program: ExportedProgram, written: set[int]) -> dict[int, torch.Tensor]:
    """Placeholders, by position, whose values are part of the model."""
    found: dict[int, torch.Tensor] = {}
    for position, spec in enumerate(program.graph_signature.input_specs):
        if spec.kind in CONSTANTS and position not in written:
            found[position] = _value(program, str(spec.target))
    return found


def _output_names(program: ExportedProgram) -> dict[int, str]:
    """Position of an output -> its name: the way to it in the results; `NAME_after` where it overwrites an input."""
    specs = program.graph_signature.output_specs
    users = [position for position, spec in enumerate(specs) if spec.kind is OutputKind.USER_OUTPUT]
    tree = _pytree.tree_unflatten(users, program.call_spec.out_spec) if program.call_spec.out_spec else users
    names = {
        place: re.sub(r"\W+", "_", _pytree.keystr(way)).strip("_") for way, place in _pytree.tree_leaves_with_path(tree)
    }
    named = {place: f"output_{name}" if name.isdigit() else name or "output" for place, name in names.items()}
    inputs = [node.name for node in _placeholders(program.graph_module)]
    return named | {position: f"{inputs[place]}_after" for position, place in _written(program).items()}


def _with_names(translated: Translated, names: Mapping[int, str]) -> Translated:
    """The model with its outputs under other names; one that an input or weight has gets `_out` behind it."""
    graph = translated.model.graph
    taken = {each.name for each in (*graph.input, *graph.initializer)}
    taken |= {name for node in graph.node for name in node.output}
    new: dict[str, str] = {}
    for port in translated.outputs:
        if port.name not in new and port.position in names:
            wanted = names[port.position]
            while wanted in taken:
                wanted += "_out"
            taken.add(wanted)
            new[port.name] = wanted
    for node in graph.node:
        node.output[:] = [new.get(each, each) for each in node.output]
    for value in graph.output:
        value.name = new.get(value.name, value.name)
    outputs = tuple(replace(port, name=new.get(port.name, port.name)) for port in translated.outputs)
    return replace(translated, outputs=outputs)


def _size_names(module: fx.GraphModule, constants: Iterable[int]) -> dict[str, str]:
    """Symbol of PyTorch -> the name that the user gave it, else one that says whose extent it is: INPUT_dimN."""
    names: dict[str, str] = {}
    for position, node in enumerate(_placeholders(module)):
        value = node.meta.get("val")
        if position in constants or not isinstance(value, torch.Tensor):
            continue
        for dim, size in enumerate(value.shape):
            if not isinstance(size, int) and size.node.expr.is_symbol and str(size) not in names:
                given = _given_name(size)
                names[str(size)] = given if given and given not in names.values() else f"{node.name}_dim{dim}"
    return names


def _given_name(size: torch.SymInt) -> str | None:
    """The name of the `Dim` that a size was exported as; files do not keep it."""
    known = size.node.shape_env
    for source in known.var_to_sources.get(size.node.expr, ()):
        name: str = known.source_name_to_debug_name.get(source.name, "")
        if name.isidentifier():
            return name
    return None


def _rename_sizes(model: onnx.ModelProto, names: Mapping[str, str]) -> None:
    for put in model.graph.input:
        for dim in put.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = names.get(dim.dim_param, dim.dim_param)


def _ranges(program: ExportedProgram, names: Mapping[str, str]) -> dict[str, Range]:
    """The ranges of sizes that the program limits beyond 0 and 1."""
    found: dict[str, Range] = {}
    for symbol, limits in program.range_constraints.items():
        low = int(limits.lower)
        high = int(limits.upper) if limits.upper.is_Integer else None
        if str(symbol) in names and (high is not None or low > 2):
            found[names[str(symbol)]] = (low, high)
    return found


def constant_results(program: ExportedProgram) -> dict[int, Any]:
    """Results that are no tensors and no sizes, by position: truth values, None, texts."""
    return {
        position: spec.arg.value
        for position, spec in enumerate(program.graph_signature.output_specs)
        if isinstance(spec.arg, ConstantArgument)
    }


def user_outputs(program: ExportedProgram) -> Sequence[int]:
    """Positions of the results among the outputs of the graph."""
    specs = program.graph_signature.output_specs
    return [position for position, spec in enumerate(specs) if spec.kind is OutputKind.USER_OUTPUT]
