"""Contractions of a graph as Einsums, equal ones once: matrix products, convolutions, any sum of products."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from string import ascii_uppercase

from tilec.bounds.einsum.einsum import Einsum, einsum_of
from tilec.errors import TilecError, UsageError
from tilec.ir.canonical import content
from tilec.ir.evaluate import factors
from tilec.ir.expr import accesses, constant_value, operands, rename_tensors
from tilec.ir.graph import Graph, Node, Tensor
from tilec.ir.types import TTYPES, tensor_bytes


@dataclass(frozen=True)
class Contraction:
    """A sum of products of two or more tensors, and the `nodes` that compute it; the Einsum is that of the first."""

    einsum: Einsum
    nodes: tuple[Node, ...]

    @property
    def name(self) -> str:
        """The first node's name."""
        return self.nodes[0].name


def require_bound(graph: Graph) -> None:
    """Raise UsageError while sizes are symbolic."""
    if graph.symbols:
        flags = " ".join(f"--shape {symbol}=SIZE" for symbol in graph.symbols)
        raise UsageError(f"the sizes {', '.join(graph.symbols)} are not bound", graph.name, f"Bind them: {flags}.")


def bits_of(tensor: Tensor) -> int:
    """Bits of an element."""
    return TTYPES[tensor.ttype].bits


def bytes_of(tensor: Tensor) -> int:
    """Bytes of a tensor with constant sizes."""
    size = constant_value(tensor_bytes(tensor.ttype, tensor.shape))
    assert size is not None
    return size


def node_einsum(node: Node, tensors: Mapping[str, Tensor]) -> Einsum | None:
    """A node as an Einsum; None where indices are not affine or nothing is computed."""
    try:
        return einsum_of(node.expr, {name: bits_of(tensor) for name, tensor in _used(node, tensors).items()})
    except TilecError:
        return None


def _used(node: Node, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    names = dict.fromkeys((*(access.tensor for access in accesses(node.expr)), node.name))
    return {name: tensors[name] for name in names}


def contraction_of(node: Node, tensors: Mapping[str, Tensor]) -> Einsum | None:
    """The Einsum of a node that sums products of two or more different accesses; None of any other.

    A sum of squares is none: it reduces one factor.
    """
    if node.expr.reducer != "sum" or len({factor for factor in factors(node.expr.value) if accesses(factor)}) < 2:
        return None
    einsum = node_einsum(node, tensors)
    return einsum if einsum is not None and len(einsum.inputs) > 1 else None


def signature(node: Node, tensors: Mapping[str, Tensor]) -> tuple[str, ...]:
    """Equal for nodes with the same computation on tensors of equal types, independent of names."""
    return (*content(node.expr), *(tensor.ttype for tensor in _used(node, tensors).values()))


def contractions(graph: Graph) -> tuple[Contraction, ...]:
    """Every distinct contraction in order of first use. Raises UsageError while sizes are symbolic."""
    require_bound(graph)
    nodes_by_key: dict[tuple[str, ...], list[Node]] = {}
    einsums: dict[tuple[str, ...], Einsum] = {}
    for node in graph.nodes:
        einsum = contraction_of(node, graph.tensors)
        if einsum is not None:
            key = signature(node, graph.tensors)
            einsums.setdefault(key, einsum)
            nodes_by_key.setdefault(key, []).append(node)
    return tuple(Contraction(einsums[key], tuple(nodes)) for key, nodes in nodes_by_key.items())


def lettered(contraction: Contraction, graph: Graph) -> Einsum:
    """The Einsum with letters for tensors, O for the output, readable for people."""
    expr = contraction.nodes[0].expr
    names = dict(zip(operands(expr), _letters(), strict=False)) | {expr.tensor: "O"}
    body = rename_tensors(expr.body, names)
    bits = {names[name]: bits_of(tensor) for name, tensor in _used(contraction.nodes[0], graph.tensors).items()}
    return einsum_of(replace(expr, tensor="O", body=body), bits)


def _letters() -> Iterator[str]:
    """A, B, C, ... without O, then A1, B1, ..."""
    for turn in count():
        yield from (f"{letter}{turn or ''}" for letter in ascii_uppercase if letter != "O")
