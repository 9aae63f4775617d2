"""What a model declares, compared with what it has: versions, types and shapes of inputs with initializers, outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import onnx

from tilec.errors import ConfigError, UnsupportedError
from tilec.importer.check import OWN_DOMAINS, place_of
from tilec.importer.element_types import ELEMENT_TYPES
from tilec.importer.loader import Model
from tilec.importer.named_values import NamedValue, type_of_value
from tilec.importer.onnx_types import extents_text, type_text
from tilec.importer.weights import Stored
from tilec.ir.graph import Default
from tilec.ir.node_labels import label
from tilec.ir.types import TTYPES

OVERRIDABLE_SINCE = 4
"""The IR version from which on initializers need not be inputs, so that one that is an input is a default value."""

LARGEST_DEFAULT = 1 << 20
"""Bytes up to which the contents of an input with an initializer count as a default value, not as a weight."""

_AGAIN = "Export the model again."


def require_versions(model: Model) -> None:
    """Raise ConfigError for a model without a version of its format, UnsupportedError for one of a newer ONNX."""
    proto = model.proto
    if not proto.HasField("ir_version"):
        raise ConfigError(
            "the model does not say which version of ONNX's format it has (ir_version)", model.file, _AGAIN
        )
    newest = int(onnx.IR_VERSION)
    if proto.ir_version > newest:
        message = f"the model has version {proto.ir_version} of ONNX's format, the installed ONNX reads up to {newest}"
        raise UnsupportedError(message, model.file, "Export it with an older version, or install a newer onnx.")
    for entry in proto.opset_import:
        if entry.domain not in OWN_DOMAINS:
            continue
        if entry.version < 1:
            raise ConfigError(f"the model uses opset {entry.version}, which does not exist", model.file, _AGAIN)
        if entry.version > (newest := onnx.defs.onnx_opset_version()):
            message = f"the model uses opset {entry.version}, the installed ONNX defines opsets up to {newest}"
            raise UnsupportedError(message, model.file, "Export it for an older opset, or install a newer onnx.")


def require_ports(model: Model) -> None:
    """Raise ConfigError for an input with an impossible extent or another type or shape than its initializer, and for
    outputs of one name or without an element type."""
    for info in model.proto.graph.input:
        place = f"{model.file}: input {info.name!r}"
        for dim in info.type.tensor_type.shape.dim:
            if dim.HasField("dim_value") and dim.dim_value < -1:
                hint = "An extent that varies has a name, or is -1."
                raise ConfigError(f"the extent {dim.dim_value} is negative", place, hint)
        stored = model.initializers.get(info.name) or model.foreign.get(info.name)
        if stored is not None:
            _require_initializer(info, stored, place)
    names: set[str] = set()
    for info in model.proto.graph.output:
        place = f"{model.file}: output {info.name!r}"
        if info.name in names:
            raise ConfigError("two outputs have this name", place, "Give each output a name of its own.")
        names.add(info.name)
        if info.type.WhichOneof("value") == "tensor_type" and not info.type.tensor_type.elem_type:
            raise ConfigError(
                "the output has no element type", place, "Give it one in `graph.output`, or no type at all."
            )


def _require_initializer(info: Any, stored: Any, place: str) -> None:
    """Raise ConfigError for an input that is declared otherwise than the initializer of its name."""
    hint = "Declare the input as the initializer is, or export the model again."
    if isinstance(stored, Stored):
        code = next(code for code, ttype in ELEMENT_TYPES.items() if ttype == stored.ttype)
        shape = tuple(stored.shape)
    else:
        code, shape = stored.data_type, tuple(stored.dims)
    actual, declared = type_text(onnx.helper.make_tensor_type_proto(code, shape)), type_text(info.type)
    if declared and declared != actual:
        raise ConfigError(f"it is declared as {declared}, its initializer is {actual}", place, hint)
    extents = extents_text(info.type)
    if extents is None:
        return
    fits = len(extents) == len(shape) and all(
        not isinstance(e, int) or e == n for e, n in zip(extents, shape, strict=True)
    )
    if not fits:
        shown = [extent if extent is not None else "?" for extent in extents]
        raise ConfigError(f"it is declared as {shown}, its initializer is {list(shape)}", place, hint)


def require_results(model: Model, nodes: Sequence[tuple[int, Any]], scope: Mapping[str, NamedValue]) -> None:
    """Raise ConfigError for the result of a node that `graph.output` or `graph.value_info` declares as another type."""
    graph = model.proto.graph
    declared = [(info, "graph.output") for info in graph.output] + [(i, "graph.value_info") for i in graph.value_info]
    makers = {name: (number, node) for number, node in nodes for name in node.output if name}
    for info, where in declared:
        wanted = type_text(info.type)
        actual = type_of_value(scope.get(info.name)) if info.name in makers else ""
        if wanted and actual and wanted != actual:
            number, node = makers[info.name]
            raise ConfigError(
                f"its result {info.name!r} is {actual}, `{where}` declares it as {wanted}",
                place_of(model.file, label(node, number), node.op_type),
                f"Declare it as {actual}, or insert a Cast.",
            )


def defaults_of(model: Model, infos: Iterable[Any]) -> tuple[Default, ...]:
    """The inputs whose initializers are default values, which are compiled in."""
    if model.proto.ir_version < OVERRIDABLE_SINCE:
        return ()
    found = []
    for info in infos:
        stored = model.initializers.get(info.name)
        if stored is not None and not TTYPES[stored.ttype].coded:
            small = stored.array.nbytes <= LARGEST_DEFAULT
            digest = sha256(stored.array.tobytes()).hexdigest() if small else ""
            found.append(Default(info.name, stored.ttype, tuple(stored.shape), digest))
    return tuple(found)
