"""JSON form of graphs and plans: expressions as text, tensors as `f32[batch, 768]`, one line each where people read.

Importing this module registers the forms of expressions with the artifact codec, so that any frozen dataclass with
expressions in its fields can be written.
"""

from __future__ import annotations

from math import inf, isfinite, nan
from typing import Any

from tilec.artifact import decode, encode, register_form
from tilec.errors import ArtifactError
from tilec.ir.expr import Const, Expr, Scalar, TensorExpr
from tilec.ir.graph import Graph, Inline, Tensor
from tilec.ir.plan import Plan
from tilec.ir.text import parse_expr, parse_tensor, tensor_text, text_of
from tilec.ir.types import is_ttype

_SPECIAL = {"inf": inf, "-inf": -inf, "nan": nan}


def _write_expr(expr: Expr) -> int | str:
    if isinstance(expr, Const) and type(expr.value) is int:
        return expr.value
    return text_of(expr)


def _read_expr(data: Any) -> Expr:
    if type(data) is int:
        return Const(data)
    if isinstance(data, str):
        return parse_expr(data)
    raise ValueError(f"an expression is text or an integer, found {data!r}")


def _write_tensor_expr(expr: TensorExpr) -> dict[str, Any]:
    return {
        "text": tensor_text(expr),
        "extents": {i: _write_expr(e) for i, e in zip(expr.iterators, expr.extents, strict=True)},
    }


def _read_tensor_expr(data: Any) -> TensorExpr:
    match data:
        case {"text": str() as text, "extents": dict() as extents} if len(data) == 2:
            return parse_tensor(text, {str(i): _read_expr(e) for i, e in extents.items()})
        case _:
            raise ValueError("a tensor expression is an object with `text` and `extents`")


def _write_tensor(tensor: Tensor) -> str:
    return f"{tensor.ttype}[{', '.join(str(_write_expr(e)) for e in tensor.shape)}]"


def _read_tensor(data: Any) -> Tensor:
    ttype, bracket, rest = data.rpartition("[") if isinstance(data, str) else ("", "", "")
    if not bracket or not rest.endswith("]"):
        raise ValueError(f"a tensor is written like f32[batch, 768], found {data!r}")
    if not is_ttype(ttype):
        raise ValueError(f"unknown tType {ttype!r} in {data!r}")
    inner = rest[:-1].strip()
    return Tensor(tuple(_split_shape(inner)) if inner else (), ttype)


def _split_shape(text: str) -> list[Expr]:
    """The extents of `batch, minimum(a, b), 3`, parsed as arguments of one call so that nested commas do not split
    them."""
    call = parse_expr(f"shape({text})")
    return list(getattr(call, "args", ()))


def _write_inline(inline: Inline) -> list[Scalar | str]:
    return [v if isfinite(v) else repr(float(v)) for v in inline.values]


def _read_inline(data: Any) -> Inline:
    if not isinstance(data, list):
        raise ValueError(f"an inline constant is a list of numbers, found {data!r}")
    return Inline(tuple(_read_scalar(v) for v in data))


def _read_scalar(data: Any) -> Scalar:
    if isinstance(data, bool | int | float):
        return data
    if isinstance(data, str) and data in _SPECIAL:
        return _SPECIAL[data]
    raise ValueError(f"a number, a boolean or one of the texts inf, -inf, nan is expected, found {data!r}")


register_form(Expr, _write_expr, _read_expr)
register_form(TensorExpr, _write_tensor_expr, _read_tensor_expr)
register_form(Tensor, _write_tensor, _read_tensor)
register_form(Inline, _write_inline, _read_inline)


def graph_to_json(graph: Graph) -> dict[str, Any]:
    """A graph as plain JSON data; `graph_from_json` gives an equal graph back."""
    return dict(encode(graph))


def graph_from_json(data: Any, place: str = "") -> Graph:
    """Decode a graph; `place` names the file. Raises ArtifactError with the path of the invalid value."""
    return decode(Graph, data, place)


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """A plan as plain JSON data; `plan_from_json` gives an equal plan back."""
    return dict(encode(plan))


def plan_from_json(data: Any, place: str = "") -> Plan:
    """Decode a plan; `place` names the file. Raises ArtifactError with the path of the invalid value."""
    plan = decode(Plan, data, place)
    if not plan.levels:
        raise ArtifactError("the plan has no levels", place or None)
    for group in plan.groups:
        if not group.nodes or not group.variants or not all(variant.levels for variant in group.variants):
            raise ArtifactError(f"group {group.name} lacks nodes, variants or their levels", place or None)
    return plan
