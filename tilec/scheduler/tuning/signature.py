"""Signature of a group up to names: one key for repeated layers, other models and other processes (Welder, 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from tilec.artifact import Json, digest_object
from tilec.ir.canonical import canonical
from tilec.ir.canonical_group import iterator_names, tensor_names
from tilec.ir.expr import operands
from tilec.ir.graph import Node, Tensor
from tilec.ir.text import text_of


@dataclass(frozen=True, slots=True)
class Signature:
    """The sha256 of a group's content, and a description for people: operators, tensors read, tensors made
    (`f32[4, 16]`)."""

    digest: str
    operators: str
    reads: tuple[str, ...]
    makes: tuple[str, ...]


def signature(
    nodes: Sequence[Node], outputs: Sequence[str], tensors: Mapping[str, Tensor], constants: Set[str]
) -> Signature:
    """The signature of a group whose `outputs` leave it.

    `nodes` are those before any decision: expressions, shapes and types of every tensor they touch. Which operands are
    `constants` is part of the content, for constants may be packed.
    """
    names, iterators = tensor_names(nodes), iterator_names(nodes)
    produced = {node.name for node in nodes}
    content: Json = {
        "nodes": [canonical(node.expr, names, iterators[node.name]) for node in nodes],
        "tensors": [[_text(tensors[t]), t in constants] for t in names],
        "outputs": [names[t] for t in outputs],
    }
    read = dict.fromkeys(t for node in nodes for t in operands(node.expr) if t not in produced)
    return Signature(
        digest=digest_object(content),
        operators=" ".join(dict.fromkeys(node.op or "-" for node in nodes)),
        reads=tuple(_text(tensors[t]) for t in read),
        makes=tuple(_text(tensors[t]) for t in outputs),
    )


def _text(tensor: Tensor) -> str:
    return f"{tensor.ttype}[{', '.join(text_of(extent) for extent in tensor.shape)}]"
