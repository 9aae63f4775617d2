"""Versions and declared types that break a rule of ONNX."""

from __future__ import annotations

from typing import Any

from onnx import TensorProto, helper

from tests.importer.broken.models import change, layer, value


@change(layer)
def opset_none(model: Any) -> None:
    del model.opset_import[:]


@change(layer)
def opset_0(model: Any) -> None:
    model.opset_import[0].version = 0


@change(layer)
def opset_99(model: Any) -> None:
    model.opset_import[0].version = 99


@change(layer)
def opset_5(model: Any) -> None:
    model.opset_import[0].version = 5


@change(layer)
def opset_neg(model: Any) -> None:
    model.opset_import[0].version = -1


@change(layer)
def opset_twice(model: Any) -> None:
    model.opset_import.append(helper.make_opsetid("", 13))


@change(layer)
def ir_0(model: Any) -> None:
    model.ir_version = 0


@change(layer)
def ir_99(model: Any) -> None:
    model.ir_version = 99


@change(layer)
def ir_none(model: Any) -> None:
    model.ClearField("ir_version")


@change(layer)
def value_info_type(model: Any) -> None:
    model.graph.value_info.append(value("m", TensorProto.INT64, [2, 3]))


@change(layer)
def value_info_shape(model: Any) -> None:
    model.graph.value_info.append(value("m", TensorProto.FLOAT, [2, 9]))


@change(layer)
def value_info_rank(model: Any) -> None:
    model.graph.value_info.append(value("m", TensorProto.FLOAT, [2, 3, 1]))


@change(layer)
def value_info_unknown_name(model: Any) -> None:
    model.graph.value_info.append(value("zzz", TensorProto.FLOAT, [2, 9]))


@change(layer)
def value_info_twice(model: Any) -> None:
    model.graph.value_info.extend([value("m", TensorProto.FLOAT, [2, 3]), value("m", TensorProto.INT64, [2, 3])])


@change(layer)
def no_nodes(model: Any) -> None:
    del model.graph.node[:]


@change(layer)
def graph_nameless(model: Any) -> None:
    model.graph.name = ""
