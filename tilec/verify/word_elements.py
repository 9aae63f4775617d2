"""Words that leave a group, as the elements that they hold: those are compared, not the bits of several at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilec.ir.dots import WORD, WORD_TTYPE
from tilec.ir.expr import Binary, Call, Const, Expr, TensorExpr, Var
from tilec.ir.graph import Node, Tensor
from tilec.ir.numpy_scalars import elements
from tilec.ir.plan import Group, Plan
from tilec.ir.scalars import type_of
from tilec.ir.types import TTYPES
from tilec.verify.inputs import Array

_NUMBER = "element"
"""The iterator over the elements of a word."""


def with_elements(group: Group, plan: Plan, actual: Mapping[str, Array]) -> tuple[Group, Plan, Mapping[str, Array]]:
    """A group whose outputs of words are outputs of elements besides, a plan with such tensors, and `actual` results
    with their elements.

    rewrite:
        X_words[i, k] = word(X[i, 2*k], X[i, 2*k + 1])
        -> X_words[i, k] as it is, and X_words.elements[i, k, e] = where(e < 1, X[i, 2*k], X[i, 2*k + 1])
    """
    ttypes = {name: tensor.ttype for name, tensor in plan.tensors.items()}
    made: list[Node] = []
    tensors, arrays, outputs = dict(plan.tensors), dict(actual), list(group.outputs)
    for node in group.nodes:
        parts = _parts(node.expr.value) if node.name in outputs and not node.expr.reduce else ()
        if not parts:
            continue
        kind, name = type_of(parts[0], ttypes), f"{node.name}.elements"
        expr = node.expr
        extents = (*expr.extents, Const(len(parts)))
        made.append(replace(node, expr=TensorExpr(name, (*expr.spatial, _NUMBER), (), extents, _chosen(parts))))
        tensors[name] = Tensor(extents, kind)
        arrays[name] = elements(actual[node.name], kind)
        outputs[outputs.index(node.name)] = name
    if not made:
        return group, plan, actual
    split = replace(group, nodes=(*group.nodes, *made), outputs=tuple(outputs))
    return split, replace(plan, tensors=tensors), arrays


def _parts(body: Expr) -> tuple[Expr, ...]:
    """The elements of a body that joins them, also where it turns bits of each over; none for any other body."""
    match body:
        case Call(fn, parts) if fn == WORD:
            return parts
        case Call("bitxor", (Call(fn, parts), Const(int() as turned))) if fn == WORD:
            bits = TTYPES[WORD_TTYPE].bits // len(parts)
            return tuple(
                Call("bitxor", (part, Const(turned >> (number * bits) & ((1 << bits) - 1))))
                for number, part in enumerate(parts)
            )
    return ()


def _chosen(parts: tuple[Expr, ...]) -> Expr:
    """The element of a number."""
    chosen = parts[-1]
    for number in range(len(parts) - 2, -1, -1):
        chosen = Call("where", (Binary("<", Var(_NUMBER), Const(number + 1)), parts[number], chosen))
    return chosen
