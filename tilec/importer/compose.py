"""Composition: an operator expressed through the translations of ONNX's own operators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilec.importer.operator import Op
from tilec.importer.registry import handler_of
from tilec.importer.value import Value

COMPOSED_OPSET = 22
"""The opset in whose terms operators are composed."""


def applied(
    op: Op,
    kind: str,
    *inputs: Value | None,
    part: str = "",
    output: int = 0,
    opset: int = COMPOSED_OPSET,
    **attributes: Any,
) -> Value:
    """The first result of an operator of ONNX's own domain on these inputs, as the intermediate tensor `part`."""
    return every_result(op, kind, *inputs, part=part, output=output, opset=opset, **attributes)[0]


def every_result(
    op: Op,
    kind: str,
    *inputs: Value | None,
    part: str = "",
    output: int = 0,
    opset: int = COMPOSED_OPSET,
    results: int = 1,
    **attributes: Any,
) -> tuple[Value, ...]:
    """The first `results` results of an operator, see `applied`."""
    handler = handler_of(kind, opset)
    assert handler is not None, kind
    inner = inner_op(op, kind, *inputs, part=part, output=output, opset=opset, results=results, **attributes)
    result = handler(inner)
    values = (result,) if isinstance(result, Value) else tuple(value for value in result if value is not None)
    return values[:results]


def inner_op(
    op: Op,
    kind: str,
    *inputs: Value | None,
    part: str = "",
    output: int = 0,
    opset: int = COMPOSED_OPSET,
    results: int = 1,
    **attributes: Any,
) -> Op:
    """An operator that another one is made of, with the first `results` results, named after the intermediate tensor
    `part`."""
    names = (op.name(part, output), *(op.name(f"{part}_{number}", output) for number in range(1, results)))
    return replace(op, kind=kind, opset=opset, inputs=inputs, outputs=names, attributes=attributes)
