"""Propagate through random tile-graphs, from tiles of their outputs backwards, against the elements that are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import SLOW, examples
from tests.random_graphs import Array, Model, models
from tilec.ir.algebra import linear_form
from tilec.ir.evaluate import Points, TensorWindow, scalar_value
from tilec.ir.expr import Access, Call, Const, Expr, TensorExpr, Var, as_expr, children
from tilec.ir.propagate import NUMPY, SYMBOLIC, propagate

LONG = settings(max_examples=5000, deadline=None, suppress_health_check=SLOW)
Box = Mapping[str, tuple[int, int]]
Ends = tuple[tuple[int, int], ...]


def guarded(expr: Expr, guards: tuple[tuple[Expr, bool], ...] = ()) -> Iterator[tuple[Access, tuple]]:
    """Every access, with the conditions of the choices around it and how they must turn out."""
    match expr:
        case Call("where", (condition, yes, no)):
            yield from guarded(condition, guards)
            yield from guarded(yes, (*guards, (condition, True)))
            yield from guarded(no, (*guards, (condition, False)))
            return
        case Access():
            yield expr, guards
    for child in children(expr):
        yield from guarded(child, guards)


def touched(expr: TensorExpr, box: Box, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Tensor -> elements read while the iterators run through the box, one row each."""
    windows = {t: TensorWindow(a, (0,) * a.ndim) for t, a in arrays.items()}
    points = Points({i: box[i] for i in expr.iterators}, windows)
    found: dict[str, list[Array]] = {}
    for access, guards in guarded(expr.value):
        seen = np.ones(points.shape, bool)
        for condition, holds in guards:
            seen = seen & (np.asarray(scalar_value(condition, points), bool) == holds)
        places = [np.broadcast_to(scalar_value(index, points), points.shape)[seen] for index in access.index]
        rows = np.stack(places, 1) if places else np.zeros((int(seen.sum()), 0))
        found.setdefault(access.tensor, []).append(rows.astype(np.int64))
    return {tensor: np.unique(np.concatenate(rows), axis=0) for tensor, rows in found.items()}


def exact(expr: TensorExpr, tensor: str) -> bool:
    """Whether the tensor is read at one place, unguarded, by affine indices with each iterator once."""
    reads = [(access, guards) for access, guards in guarded(expr.value) if access.tensor == tensor]
    if len({access.index for access, _ in reads}) > 1 or all(guards for _, guards in reads):
        return False
    atoms = [atom for index in reads[0][0].index for atom in linear_form(index)[0]]
    return all(isinstance(atom, Var) for atom in atoms) and len(set(atoms)) == len(atoms)


def windows_of(model: Model, expr: TensorExpr, box: Box, arrays: Mapping[str, Array]) -> dict[str, Ends]:
    """The windows of a node's reads, by numbers and by expressions, after a comparison with what it reads."""
    shapes = {name: tensor.shape for name, tensor in model.graph.tensors.items()}
    by_number = propagate(expr, {i: (np.asarray(a), np.asarray(b)) for i, (a, b) in box.items()}, shapes, NUMPY, True)
    symbols = {i: (as_expr(lo), as_expr(hi)) for i, (lo, hi) in box.items()}
    by_symbol = propagate(expr, symbols, shapes, SYMBOLIC, clip=True)
    elements = touched(expr, box, arrays)
    found: dict[str, Ends] = {}
    for tensor, window in by_number.items():
        ends = found[tensor] = tuple((int(lo), int(hi)) for lo, hi in window)
        assert by_symbol[tensor] == tuple((Const(lo), Const(hi)) for lo, hi in ends)
        rows = elements[tensor]
        for place, (lo, hi) in zip(rows.T, ends, strict=True):
            assert ((place >= lo) & (place < hi)).all(), (expr.tensor, tensor, box)
        if exact(expr, tensor) and len(rows):
            assert ends == tuple((int(place.min()), int(place.max()) + 1) for place in rows.T)
    return found


def check(model: Model, data: st.DataObject) -> None:
    """One tile of every output; what it needs of the others, node by node."""
    arrays = model.reference(model.arrays())
    needed: dict[str, Ends] = {}
    for port in model.graph.outputs:
        ends = []
        for extent in model.shapes[port.tensor]:
            lo = data.draw(st.integers(0, extent - 1))
            ends.append((lo, data.draw(st.integers(lo + 1, extent))))
        needed[port.tensor] = tuple(ends)
    for node in reversed(model.graph.nodes):
        expr = node.expr
        box = dict(zip(expr.spatial, needed[node.name], strict=True))
        box |= {i: (0, int(expr.domain[i].value)) for i in expr.reduce}  # type: ignore[union-attr]
        for iterator in expr.reduce:
            last = box[iterator][1]
            lo = data.draw(st.integers(0, last - 1))
            step = (lo, data.draw(st.integers(lo + 1, last)))
            windows_of(model, expr, {**box, iterator: step}, arrays)
        for tensor, window in windows_of(model, expr, box, arrays).items():
            if all(lo < hi for lo, hi in window):
                known = needed.get(tensor, window)
                pairs = zip(known, window, strict=True)
                needed[tensor] = tuple((min(a, c), max(b, d)) for (a, b), (c, d) in pairs)
            needed.setdefault(tensor, tuple((0, 0) for _ in window))


@pytest.mark.feature("W04", "W05")
@examples(100, seed=1)
@given(models(), st.data())
def test_windows_cover_what_is_read(model: Model, data: st.DataObject) -> None:
    check(model, data)


@pytest.mark.slow
@LONG
@given(models(), st.data())
def test_windows_cover_what_is_read_in_many_graphs(model: Model, data: st.DataObject) -> None:
    check(model, data)
