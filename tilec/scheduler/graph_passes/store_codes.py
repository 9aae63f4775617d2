"""Coded tensors stored as plain ones: constants as words, others one code a byte (Ladder, 3.2; L01, L20).

What follows sees plain types only: a code is shifted and masked out of its word and decoded where it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tilec.ir.algebra import linear_form, simplify
from tilec.ir.codes import decoded, encoded, number_type
from tilec.ir.expr import (
    Access,
    Binary,
    Call,
    Const,
    Expr,
    Reduce,
    TensorExpr,
    Var,
    as_expr,
    constant_value,
    rebuild,
    variables,
)
from tilec.ir.graph import Graph, Node, Tensor
from tilec.ir.scalars import is_weak, type_of
from tilec.ir.small_types import decode_integer
from tilec.ir.types import TTYPES, TType, has_numpy_dtype, word_shape
from tilec.ir.words import word_type
from tilec.scheduler.graph_passes.rewrite import fresh, with_nodes
from tilec.scheduler.graph_passes.split_reductions import split_reductions
from tilec.scheduler.refusals import RewrittenGraph

CODE = "u8"
"""Type of a stored code of a tensor that is no constant."""

Extents = Mapping[str, Expr]
"""Iterator that is summed over -> its extent."""

WORD_BITS = 32
"""Bits of the words that a reduction reads."""


def store_codes(draft: RewrittenGraph) -> RewrittenGraph:
    """Give every tensor of a coded type a plain one, and decode it where it is read.

    args:
        draft: the graph, and the edges refused so far
    rewrite, where W is a constant i4[256, 64]:
        Y[n] = sum(k, X[k] * f32(i32(W[k, n])))
        -> W_words[k, n] = W's codes of 8k .. 8k + 7 as one u32  (prepared)
           Y[n] = sum(k1, k2, X[k1*8 + k2] * f32(decode(bitand(shr(W_words[k1, n], 4*k2), 15))))
    checks:
        words hold neighbours along a dimension that the reduction moves along, so that all lanes of a vector along
        another one shift alike; what is no reduction reads the bytes as they are stored
    """
    graph = draft.graph
    if not any(TTYPES[tensor.ttype].coded for tensor in graph.tensors.values()):
        return draft
    storage = _Storage(graph)
    nodes = [replace(node, expr=storage.stored(node.expr)) for node in graph.nodes]
    tensors = {name: _plain(name, tensor, graph) for name, tensor in graph.tensors.items()}
    ports = {port.tensor for port in (*graph.inputs, *graph.outputs)}
    elements = {name: t.ttype for name, t in graph.tensors.items() if name in ports and _has_elements(t.ttype)}
    packed = [node for node, _ in storage.packed.values()]
    tensors |= {node.name: tensor for node, tensor in storage.packed.values()}
    return RewrittenGraph(with_nodes(replace(graph, elements=elements), (*packed, *nodes), tensors), draft.refused)


def _has_elements(ttype: str) -> bool:
    """Whether arrays outside have elements of this coded type; of others they have the codes."""
    return TTYPES[ttype].coded and has_numpy_dtype(ttype)


def _plain(name: str, tensor: Tensor, graph: Graph) -> Tensor:
    ttype = TTYPES[tensor.ttype]
    if not ttype.coded:
        return tensor
    if name not in graph.constants:
        return Tensor(tensor.shape, CODE)
    return Tensor(tuple(as_expr(n) for n in word_shape(ttype, tensor.shape)), word_type(tensor.ttype))


@dataclass
class _Storage:
    """Bodies over codes. `packed` are constants that reductions read in words of their own: (tensor, dimension, codes
    of a word) -> the node that packs them and its tensor."""

    graph: Graph
    packed: dict[tuple[str, int, int], tuple[Node, Tensor]] = field(default_factory=dict)

    def stored(self, expr: TensorExpr) -> TensorExpr:
        """A node's expression over plain tensors."""
        ttype = self.graph.tensors[expr.tensor].ttype
        reduce = {i: expr.domain[i] for i in expr.reduce}
        if TTYPES[ttype].coded:
            return replace(expr, body=self._moved(expr.body, ttype))
        body = self._numbers(expr.body, reduce)
        return expr if body == expr.body else split_reductions(replace(expr, body=body))

    def _kind(self, expr: Expr) -> str:
        return type_of(expr, self.graph.ttypes)

    def _is_coded(self, expr: Expr) -> bool:
        if isinstance(expr, Access):
            return TTYPES[self.graph.tensors[expr.tensor].ttype].coded
        if isinstance(expr, Call) and expr.fn in TTYPES:
            return TTYPES[expr.fn].coded
        return isinstance(expr, Call) and expr.fn == "where" and any(map(self._is_coded, expr.args[1:]))

    def _numbers(self, expr: Expr, reduce: Extents) -> Expr:
        """A body of a plain type, with decoded elements in place of codes."""
        match expr:
            case Call(fn, (operand,)) if fn in TTYPES and not TTYPES[fn].coded and self._is_coded(operand):
                kind = self._kind(operand)
                code = self._code(operand, kind, reduce)
                number = _sign_extended(code, TTYPES[kind]) or decoded(kind, code)
                return number if number_type(kind) == fn else Call(fn, (number,))
            case _:
                return rebuild(expr, lambda e: self._numbers(e, reduce))

    def _moved(self, expr: Expr, ttype: str) -> Expr:
        """A body of a coded type as its code in a byte."""
        match expr:
            case Access(tensor, index) if tensor not in self.graph.constants:
                return Access(tensor, tuple(self._numbers(i, {}) for i in index))
            case Call("where", (condition, yes, no)):
                chosen = (self._moved(yes, ttype), self._moved(no, ttype))
                return Call("where", (self._numbers(condition, {}), *chosen))
            case Reduce():
                raise AssertionError(expr)
            case _:
                return Call(CODE, (self._code(expr, ttype, {}),))

    def _code(self, expr: Expr, ttype: str, reduce: Extents) -> Expr:
        """A body of a coded type as its code, a u32."""
        match expr:
            case Access(tensor, index) if tensor in self.graph.constants:
                return self._from_words(tensor, tuple(self._numbers(i, reduce) for i in index), reduce)
            case Access(tensor, index):
                return Call("u32", (Access(tensor, tuple(self._numbers(i, reduce) for i in index)),))
            case Call("where", (condition, yes, no)):
                chosen = (self._code(yes, ttype, reduce), self._code(no, ttype, reduce))
                return Call("where", (self._numbers(condition, reduce), *chosen))
            case Call(fn, (operand,)) if fn == ttype:
                kind = number_type(ttype)
                plain = self._numbers(Call(kind, (operand,)) if self._is_coded(operand) else operand, reduce)
                return encoded(ttype, plain if self._known(operand) == kind else Call(kind, (plain,)))
            case Const():
                return encoded(ttype, Call(number_type(ttype), (expr,)))
        raise AssertionError(expr)

    def _known(self, operand: Expr) -> str:
        kind = self._kind(operand)
        return kind if is_weak(kind) or not TTYPES[kind].coded else number_type(kind)

    def _from_words(self, tensor: str, index: tuple[Expr, ...], reduce: Extents) -> Expr:
        """A code out of a constant: from words along a reduced dimension, else from the words that it is stored in."""
        ttype = TTYPES[self.graph.tensors[tensor].ttype]
        if not index or ttype.per_word == 1:
            return Call("u32", (Access(tensor, index),))
        reduced = [d for d, i in enumerate(index) if variables(i) & reduce.keys()]
        if not reduced:
            return _extracted(tensor, index, len(index) - 1, ttype.per_word, ttype.bits)
        shape = self.graph.tensors[tensor].shape
        along = max(reduced, key=lambda d: (constant_value(shape[d]) or 0, d))
        per_word = _codes_of_a_word(ttype.bits, index[along], reduce)
        return _extracted(self._packed(tensor, along, per_word), index, along, per_word, ttype.bits)

    def _packed(self, tensor: str, along: int, per_word: int) -> str:
        """The name of a constant's codes in u32 words along a dimension."""
        key = (tensor, along, per_word)
        if key not in self.packed:
            shape, kind = self.graph.tensors[tensor].shape, TTYPES[self.graph.tensors[tensor].ttype]
            taken = self.graph.names.union(node.name for node, _ in self.packed.values())
            name = f"{tensor}_words" if f"{tensor}_words" not in taken else fresh(f"{tensor}_words", taken)
            axes = tuple(f"i{d}" for d in range(len(shape)))
            words = simplify(Binary("//", Binary("+", shape[along], Const(per_word - 1)), Const(per_word)))
            extents = tuple(words if d == along else n for d, n in enumerate(shape))
            body: Expr | None = None
            for number in range(per_word):
                place = simplify(Binary("+", Binary("*", Var(axes[along]), Const(per_word)), Const(number)))
                at = tuple(place if d == along else Var(axis) for d, axis in enumerate(axes))
                code = _extracted(tensor, at, len(at) - 1, kind.per_word, kind.bits)
                within = Call("where", (Binary("<", place, shape[along]), code, Const(0)))
                part = Call("shl", (within, Const(number * kind.bits)))
                body = part if body is None else Call("bitor", (body, part))
            assert body is not None
            node = Node(TensorExpr(name, axes, (), extents, body), "words")
            self.packed[key] = (node, Tensor(extents, f"u{WORD_BITS}"))
        return self.packed[key][0].name


def _codes_of_a_word(bits: int, index: Expr, reduce: Extents) -> int:
    """The number of codes of a word along an index: as many as fit, or fewer of which a whole number makes the runs of
    neighbours that the reduction walks along, where that leaves no more than half of a word unused."""
    most = WORD_BITS // bits
    steps = linear_form(index)[0]
    runs = [reduce.get(i.name) if abs(step) == 1 else Const(step) for i, step in steps.items() if isinstance(i, Var)]
    lengths = [constant_value(run) or 1 for run in runs if run is not None]
    return next((n for n in range(most, most // 2, -1) if all(length % n == 0 for length in lengths)), most)


def _sign_extended(code: Expr, ttype: TType) -> Expr | None:
    """A signed integer out of its word by two shifts; None for any other code."""
    match code:
        case Call("bitand", (Call("shr", (word, place)), _)) if ttype.decode == decode_integer(ttype.bits, signed=True):
            top = Call("shl", (word, Binary("-", Const(WORD_BITS - ttype.bits), place)))
            return Call("shr", (Call("i32", (top,)), Const(WORD_BITS - ttype.bits)))
    return None


def _extracted(tensor: str, index: tuple[Expr, ...], along: int, per_word: int, bits: int) -> Expr:
    """The code at an index of words that hold `per_word` codes along a dimension."""
    at = list(index)
    word = at[along]
    at[along] = simplify(Binary("//", word, Const(per_word)))
    place = Call("u32", (simplify(Binary("*", Binary("%", word, Const(per_word)), Const(bits))),))
    return Call("bitand", (Call("shr", (Call("u32", (Access(tensor, tuple(at)),)), place)), Const((1 << bits) - 1)))
