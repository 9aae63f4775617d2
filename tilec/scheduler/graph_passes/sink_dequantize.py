"""Dequantisation moved to the readers of quantised tensors, so that codes cross groups and not real numbers (L01)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from tilec.ir.expr import Access, Binary, Call, Const, Expr, Scalar, TensorExpr, Var, operands
from tilec.ir.graph import Graph, Node, Tensor
from tilec.ir.types import TTYPES
from tilec.scheduler.analysis.access import is_movement
from tilec.scheduler.analysis.contraction import is_contraction
from tilec.scheduler.graph_passes.rewrite import fresh, substitute_accesses, with_nodes, with_value
from tilec.scheduler.graph_passes.select_codes import code_of, is_selection, selected_codes
from tilec.scheduler.refusals import RewrittenGraph

CODE_BITS = 16
"""Bits of a code at most: `(code - zero) * scale / scale` rounds to `code - zero` again."""

NORMAL = 2.0**-100, 2.0**100
"""Scales between which neither the product with a code nor the quotient leaves the normal numbers of f32."""


@dataclass(frozen=True, slots=True)
class Dequantized:
    """The body `f32(i32(code) - zero) * scale` of an element; `code` is an access."""

    code: Access
    zero: Expr
    scale: Expr

    @property
    def uniform(self) -> bool:
        """Whether zero point and scale are literals."""
        return isinstance(self.zero, Const) and isinstance(self.scale, Const)

    def quantized(self, value: Scalar, ttype: str) -> Const | None:
        """The code to which a literal is quantised, of a uniform scale and zero point."""
        match self.zero, self.scale:
            case Const(int() as zero), Const(float() as scale):
                return code_of(value, zero, scale, ttype)
            case _:
                return None

    def body(self, code: Access) -> Expr:
        """The real number of another code."""
        number: Expr = Call("i32", (code,))
        if self.zero != Const(0):
            number = Binary("-", number, self.zero)
        return Binary("*", Call("f32", (number,)), self.scale)


def dequantized(body: Expr) -> Dequantized | None:
    """The parts of a dequantised element; None for any other body."""
    match body:
        case Binary("*", Call("f32", (Call("i32", (Access() as code,)),)), scale):
            return Dequantized(code, Const(0), scale)
        case Binary("*", Call("f32", (Binary("-", Call("i32", (Access() as code,)), zero),)), scale):
            return Dequantized(code, zero, scale)
        case _:
            return None


def sink_dequantize(draft: RewrittenGraph) -> RewrittenGraph:
    """Substitute every dequantisation into its readers, move movements in front of it, drop what quantises it again.

    args:
        draft: the graph, and the edges refused so far
    rewrite:
        R[i, j] = f32(i32(Q[i, j]) - 3) * 0.5;  T[j, i] = R[i, j];  Y[j, i] = T[j, i] + B[j, i]
        -> T_codes1[j, i] = Q[i, j];  Y[j, i] = f32(i32(T_codes1[j, i]) - 3) * 0.5 + B[j, i]
    rewrite of a quantisation with the same scale and zero point:
        P[j, i] = u8(round(T[j, i] / 0.5) + 3.0)  ->  P[j, i] = T_codes1[j, i]
    rewrite of a selection that is read by such quantisations alone:
        M[i] = max(j, where(j >= 1, R[i, j - 1], -inf));  P[i] = u8(round(M[i] / 0.5) + 3.0)
        -> M_codes1[i] = max(j, where(j >= 1, Q[i, j - 1], 0));  P[i] = M_codes1[i]
    checks:
        contractions keep reading real numbers: whether they can be sums of integers is decided for all factors at once
        a fill of a movement is 0.0, which is the zero point
        quantisation is monotone: that of a maximum is the maximum of those of its parts, literals among them
    """
    graph = draft.graph
    state = _Sunk(graph)
    for node in graph.nodes:
        state.add(node)
    if not state.changed:
        return draft
    return RewrittenGraph(with_nodes(graph, state.nodes, state.tensors), draft.refused)


@dataclass
class _Sunk:
    """The nodes so far: `real` are the dequantisations among them, `tensors` the new tensors of codes."""

    graph: Graph
    nodes: list[Node] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    real: dict[str, TensorExpr] = field(default_factory=dict)
    changed: bool = False

    @cached_property
    def readers(self) -> dict[str, tuple[Node, ...]]:
        """Tensor -> nodes that read it."""
        return self.graph.consumers()

    @cached_property
    def outputs(self) -> frozenset[str]:
        """Results of the graph."""
        return frozenset(port.tensor for port in self.graph.outputs)

    def add(self, node: Node) -> None:
        """Append a node, rewritten."""
        read = {t: self.real[t] for t in operands(node.expr) if t in self.real}
        expr = node.expr
        if read and (is_movement(expr) or is_selection(expr)):
            expr = self._moved(node, read) or self._substituted(expr, read)
        elif read and not is_contraction(expr):
            expr = self._substituted(expr, read)
        self.changed = self.changed or expr is not node.expr
        self.nodes.append(replace(node, expr=expr))
        if not expr.reduce and self._is_code(expr):
            self.real[node.name] = expr

    def _is_code(self, expr: TensorExpr) -> bool:
        """Whether an expression dequantises codes that a real number of single precision holds."""
        parts = dequantized(expr.body)
        if parts is None:
            return False
        kind = TTYPES[self._type(parts.code.tensor)]
        return kind.kind in ("int", "uint") and kind.bits <= CODE_BITS

    def _type(self, name: str) -> str:
        return (self.tensors.get(name) or self.graph.tensors[name]).ttype

    def _substituted(self, expr: TensorExpr, read: Mapping[str, TensorExpr]) -> TensorExpr:
        value = expr.value
        for producer in read.values():
            value = substitute_accesses(value, producer)
        return with_value(expr, self._again(value, expr.tensor))

    def _again(self, body: Expr, tensor: str) -> Expr:
        """The code itself in place of its quantised real number."""
        match body:
            case Call(ttype, (rounded,)) if ttype == self._type(tensor):
                code = _requantized(rounded)
                if code is not None and self._type(code.tensor) == ttype:
                    return code
        return body

    def _moved(self, node: Node, read: Mapping[str, TensorExpr]) -> TensorExpr | None:
        """The dequantisation of moved codes, whose node is appended; None where scales or zero points differ."""
        bodies = [dequantized(producer.body) for producer in read.values()]
        first = bodies[0]
        if first is None or not first.uniform or len(read) != len(operands(node.expr)):
            return None
        if any(each is None or (each.zero, each.scale) != (first.zero, first.scale) for each in bodies):
            return None
        kinds = {self._type(each.code.tensor) for each in bodies if each is not None}
        if len(kinds) != 1:
            return None
        ttype = kinds.pop()
        codes = self._codes_of(node, read, first, ttype)
        if codes is None:
            return None
        name = fresh(f"{node.name}_codes", self.graph.names | self.tensors.keys())
        self.tensors[name] = Tensor(node.expr.shape, ttype)
        self.nodes.append(replace(node, expr=with_value(replace(node.expr, tensor=name), codes)))
        point = Access(name, tuple(map(Var, node.expr.spatial)))
        return TensorExpr(node.name, node.expr.spatial, (), node.expr.shape, first.body(point))

    def _codes_of(self, node: Node, read: Mapping[str, TensorExpr], real: Dequantized, ttype: str) -> Expr | None:
        """A movement or a selection of real numbers as one of their codes; None where it is not the same."""

        def code(access: Access) -> Expr | None:
            parts = dequantized(substitute_accesses(access, read[access.tensor]))
            return None if parts is None else parts.code

        if is_movement(node.expr):
            moved = selected_codes(node.expr.body, code, lambda value: real.zero if value == 0 else None)
            if moved is not None:
                return moved
        if not self._is_quantised_again(node, real):
            return None
        return selected_codes(node.expr.value, code, lambda value: real.quantized(value, ttype))

    def _is_quantised_again(self, node: Node, real: Dequantized) -> bool:
        """Whether all that reads a node, or what is moved of it, quantises it with its own scale and zero point."""
        readers = self.readers[node.name]
        if node.name in self.outputs or not readers:
            return False
        producer = TensorExpr(node.name, node.expr.spatial, (), node.expr.shape, real.body(real.code))
        return all(
            self._is_quantised_again(reader, real)
            if is_movement(reader.expr) and operands(reader.expr) == (node.name,)
            else isinstance(self._again(substitute_accesses(reader.expr.body, producer), reader.name), Access)
            for reader in readers
        )


def _requantized(body: Expr) -> Access | None:
    """The code whose real number a body quantises with its own scale and zero point; None for any other body."""
    shift: Expr = Const(0.0)
    match body:
        case Binary("+", Call("round", (quotient,)), zero):
            shift = zero
        case Call("round", (quotient,)):
            pass
        case _:
            return None
    match quotient:
        case Call("where", (Binary(">=", number, Const(float() as least)), other, Const(float() as low))):
            if number != other or least != low:
                return None
            quotient = number
        case _:
            pass
    match quotient:
        case Binary("/", real, Const(float() as scale)):
            parts = dequantized(real)
        case _:
            return None
    if parts is None or not NORMAL[0] < scale < NORMAL[1] or parts.scale != Const(scale):
        return None
    same = isinstance(parts.zero, Const) and isinstance(shift, Const) and parts.zero.value == shift.value
    return parts.code if same else None
