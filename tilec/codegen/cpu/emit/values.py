"""Scalar expressions of a tile in TIR: every sub-expression once for all points that agree where it depends.

That one rule makes the operand loads of GEMM and convolution shared over the register tile: `A[m, k]` is loaded
once for all columns, `B[k, n]` once for all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Any

from tvm import tirx

from tilec.codegen.cpu.emit.dot_functions import dot
from tilec.codegen.cpu.emit.expression_facts import ExpressionFacts, Place
from tilec.codegen.cpu.emit.indices import ARITHMETIC, Indices, divided, divided_by_size, not_negative
from tilec.codegen.cpu.emit.memory_access import Memories, element, narrow, stored, widen
from tilec.codegen.cpu.emit.rounded_quotients import FEWEST_LANES, rounded_quotient, rounded_quotient_of
from tilec.codegen.cpu.emit.scalar_functions import PRINTERS, convert, multiply_add
from tilec.codegen.cpu.emit.vector_ops import PrimExpr, bind, cast, constant, int64, ramp, reinterpret, splat
from tilec.codegen.cpu.extents import Extent
from tilec.codegen.cpu.guards import Guards, conjuncts, is_monotone
from tilec.codegen.cpu.kernel_ir import Tile
from tilec.codegen.cpu.stride_analysis import displacement
from tilec.ir.algebra import linear_form, simplify
from tilec.ir.dots import DOTS, WORD, WORD_TTYPE
from tilec.ir.evaluate import literal_value
from tilec.ir.expr import COMPARISONS, Access, Binary, Call, Const, Expr, Var, accesses, children
from tilec.ir.scalars import BITCASTS, is_weak
from tilec.ir.types import TTYPES

_WEAK = {"weak int": "i64", "weak float": "f32", "weak bool": "bool"}


@dataclass(frozen=True, slots=True)
class Point:
    """Constant offsets of the unrolled dimensions, and the lanes along the vector dimension."""

    offsets: Mapping[str, int]
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Value:
    """A TIR value; `lanes` is 1 when it is the same along the vector dimension."""

    expr: PrimExpr
    lanes: int

    def across(self, lanes: int) -> PrimExpr:
        """The value in that many lanes."""
        return self.expr if self.lanes == lanes else splat(self.expr, lanes)


class Values:
    """Prints the expressions of one tile. Scopes follow the loops: what is bound in one is gone after it."""

    def __init__(self, tile: Tile, vector: str | None, memories: Memories, indices: Indices) -> None:
        self.memories = memories
        self.vector = vector
        self._unit = tile.unit
        self._ttypes = memories.ttypes
        self._indices = indices
        self._dims = tuple(d.name for d in tile.dims)
        self._scopes: list[dict[Any, Any]] = [{}]
        self._levels: list[tuple[str, PrimExpr, int]] = []
        self._facts = ExpressionFacts(self._dims, vector, self._ttypes)
        self.root = self._facts.interned(tile.value)
        self._places = [self.place(a) for a in (tile.target, *accesses(self.root))]
        self._prepare()

    # -- scopes and loops ---------------------------------------------------------------------------------

    @contextmanager
    def loop(self, dim: str | None = None, first: PrimExpr | None = None, multiple: int = 1) -> Iterator[None]:
        """A scope in which dimension `dim` starts at `first`, a multiple of `multiple`; just a scope without one."""
        self._scopes.append({})
        with self._indices.scope():
            if dim is not None:
                self._levels.append((dim, first, multiple))
                self._prepare()
            yield
        self._scopes.pop()
        if dim is not None:
            self._levels.pop()

    def _prepare(self) -> None:
        for place in self._places:
            self._base(place)

    def _find(self, key: Any) -> Any:
        for scope in reversed(self._scopes):
            if key in scope:
                return scope[key]
        return None

    def hoist(self, expr: Expr, fixed: frozenset[str], widths: Mapping[str, range]) -> None:
        """Evaluate what depends on `fixed` dimensions only, before the loops over the others open."""
        if isinstance(expr, Const | Var) or not (isinstance(expr, Access) or accesses(expr)):
            return
        dims = self.depends(expr)
        if set(dims) <= fixed and self.vector not in dims:
            for offsets in product(*(widths[d] for d in dims)):
                self.value(expr, self._resolved(expr, "f32"), Point(dict(zip(dims, offsets, strict=True))))
            return
        inner = children(expr)[:1] if isinstance(expr, Call) and expr.fn == "where" else children(expr)
        for child in inner if not isinstance(expr, Access) else ():
            if not is_weak(self.kind(child)):
                self.hoist(child, fixed, widths)

    # -- types and dependence -----------------------------------------------------------------------------

    def kind(self, expr: Expr) -> str:
        """The tType of an expression, `weak ...` for literals."""
        return self._facts.of(expr).kind

    def _resolved(self, expr: Expr, want: str) -> str:
        kind = self.kind(expr)
        return want if is_weak(kind) else kind

    def depends(self, expr: Expr) -> tuple[str, ...]:
        """The dimensions along which an expression varies."""
        return self._facts.of(expr).depends

    def place(self, access: Access) -> Place:
        """Where an access lies."""
        return self._facts.place(access)

    # -- offsets ------------------------------------------------------------------------------------------

    def _base(self, place: Place, modulus: int = 1) -> PrimExpr | None:
        """What the open loops and the variables around the tile add to an offset; None for nothing. With a modulus
        the vector dimension stands for a quotient."""
        total = self._outer_base(place)
        strides = dict(place.form.strides)
        for level, (dim, first, _) in enumerate(self._levels, 1):
            stride = strides.get(dim, 0)
            if stride == 0:
                continue
            key = ("base", place.chain, level, modulus)
            known = self._find(key)
            if known is None:
                moved = divided("//", first, modulus, 1) if modulus > 1 and dim == self.vector else first
                step = moved if stride == 1 else tirx.Mul(moved, self._indices.extent(stride))
                known = bind(step if total is None else tirx.Add(total, step))
                self._scopes[-1][key] = known
            total = known
        return total

    def _outer_base(self, place: Place) -> PrimExpr | None:
        if place.form.base == Const(0):
            return None
        key = ("outer", place.base)
        known = self._find(key)
        if known is None:
            known = self._scopes[-1][key] = self._indices.get(place.form.base)
        return known

    def offset(self, place: Place, point: Point, guards: Guards = (), modulus: int = 1) -> tuple[PrimExpr, int]:
        """(first offset or vector of offsets, its lanes); a constant stays one."""
        form = place.form
        at = point.offsets if modulus == 1 else self._quotient(point, modulus)
        moved = displacement(form, at)
        base = self._base(place, modulus)
        if moved.rows is not None:
            rows = self._indices.get(moved.rows)
            base = rows if base is None else tirx.Add(base, rows)
        total = int64(moved.elements) if base is None else base
        if base is not None and moved.elements:
            total = tirx.Add(base, int64(moved.elements))
        if form.rest is None:
            return total, 1
        rest = self.value(form.rest, "i64", point, guards)
        if rest.lanes == 1 or place.along == 0:
            return tirx.Add(splat(total, rest.lanes), rest.expr), rest.lanes
        return tirx.Add(ramp(total, self.along(place), rest.lanes), rest.expr), rest.lanes

    def along(self, place: Place) -> int | PrimExpr:
        """The stride of an access along the vector dimension: a number, or an index where sizes decide it."""
        return place.along if isinstance(place.along, int) else self._indices.get(place.along)

    def divides(self, number: int, place: Place, point: Point) -> bool:
        """Whether the offset of a point is a multiple of a number, as far as is known."""
        form = place.form
        strides = {dim: stride for dim, stride in form.strides if isinstance(stride, int)}
        if form.rest is not None or len(strides) < len(form.strides):
            return False
        steps = (strides.get(dim, 0) * multiple for dim, _, multiple in self._levels)
        coefficients, constant = linear_form(form.base)
        constant += form.constant + sum(stride * point.offsets.get(dim, 0) for dim, stride in strides.items())
        return not any(each % number for each in (constant, *steps, *coefficients.values()))

    def _quotient(self, point: Point, modulus: int) -> dict[str, int]:
        vector = self.vector or ""
        return {**point.offsets, vector: point.offsets.get(vector, 0) // modulus}

    def elements(self, access: Access, point: Point, lanes: int, guards: Guards = ()) -> tuple[PrimExpr, PrimExpr]:
        """(elements as they lie in memory, their offsets), not bound to names: a guard may stand before them."""
        place = self.place(access)
        offset, width = self.offset(place, point, guards)
        if width == 1:
            along = self.along(place)
            return self.memories.get(access.tensor, offset, along, lanes), ramp(offset, along, lanes)
        phases = self._facts.phases(access)
        start = point.offsets.get(self.vector or "", 0)
        multiples = [multiple for dim, _, multiple in self._levels if dim == self.vector]
        modulus = len(phases)
        if not modulus or any(n % modulus for n in (lanes, start, *multiples)):
            return self.memories.gather(access.tensor, offset), offset
        short = lanes // modulus
        parts = []
        for phase in phases:
            first, _ = self.offset(phase, Point(point.offsets), guards, modulus)
            moves = phase.along != 0
            part = self.memories.get(access.tensor, first, self.along(phase), short if moves else 1)
            parts.append(part if moves else splat(part, short))
        order = [lane % modulus * short + lane // modulus for lane in range(lanes)]
        return tirx.Shuffle(parts, [tirx.IntImm("int32", i) for i in order]), offset

    def is_constant(self, place: Place) -> bool:
        """Whether the offset is a number at every point of the unrolled body."""
        return place.form.rest is None and self._base(place) is None

    # -- values -------------------------------------------------------------------------------------------

    def value(self, expr: Expr, want: str, point: Point, guards: Guards = ()) -> Value:
        """The value of an expression at a point; literals take the type `want`."""
        ttype = self._resolved(expr, want)
        match expr:
            case Const(number):
                return Value(constant(number, element(ttype)), 1)
            case Var(name):
                return self._variable(name, point)
        if self._facts.of(expr).constant:
            return Value(constant(literal_value(expr, ttype), element(ttype)), 1)
        dims = self.depends(expr)
        lanes = point.lanes if self.vector in dims else 1
        here = self._guard_key(guards, point)
        key = (id(expr), ttype, tuple(point.offsets.get(d, 0) for d in dims), lanes, here)
        known = self._find(key)
        if known is None:
            made = self._make(expr, ttype, point, lanes, guards)
            known = Value(made.expr if isinstance(expr, Access) else bind(made.expr), made.lanes)
            self._scopes[-1][key] = known
        return known  # type: ignore[no-any-return]

    def _variable(self, name: str, point: Point) -> Value:
        if name not in self._dims:
            return Value(self._indices.variables[name], 1)
        first: PrimExpr = int64(point.offsets.get(name, 0))
        for dim, start, _ in self._levels:
            if dim == name:
                first = tirx.Add(start, first)
        if name == self.vector and point.lanes > 1:
            return Value(ramp(first, 1, point.lanes), point.lanes)
        return Value(first, 1)

    def _make(self, expr: Expr, ttype: str, point: Point, lanes: int, guards: Guards) -> Value:
        match expr:
            case Access():
                return self._load(expr, point, lanes, guards)
            case Call("where", (condition, yes, no)):
                return self._where(condition, yes, no, ttype, point, guards)
            case Call(fn, (operand,)) if fn in TTYPES:
                kind = self.kind(operand)
                source = _WEAK.get(kind, kind)
                value = self._rounded(operand, fn, point, guards) or self.value(operand, source, point, guards)
                exact = source == fn and isinstance(operand, Access)
                return value if exact else Value(_cast(value.expr, source, fn, value.lanes), value.lanes)
            case Call(fn, (operand,)) if fn in BITCASTS:
                source = self.kind(operand)
                value = self.value(operand, source, point, guards)
                return Value(_bits(value.expr, source, BITCASTS[fn], value.lanes), value.lanes)
            case Binary("+", total, Call(fn, words)) if fn in DOTS:
                return self._dot(fn, words, self.value(total, DOTS[fn].accumulator, point, guards), point, guards)
            case Binary(op, left, right) if op in COMPARISONS:
                both = self._met((left, right), "i64")
                return self._apply(op, both, (left, right), point, guards)
            case Binary("//" | "%" as op, left, Const(int() as divisor)) if ttype == "i64" and divisor > 0:
                if not accesses(left) and not_negative(left):
                    value = self.value(left, "i64", point, guards)
                    return Value(divided(op, value.expr, divisor, value.lanes), value.lanes)
                return self._apply(op, ttype, (left, Const(divisor)), point, guards)
            case Binary("//" | "%" as op, left, right) if ttype == "i64" and _are_sizes(left, right):
                a, b = (self.value(e, "i64", point, guards) for e in (left, right))
                lanes = max(a.lanes, b.lanes)
                return Value(divided_by_size(op, a.across(lanes), b.across(lanes), lanes), lanes)
            case Binary("+" | "-" | "*" as op, left, right) if ttype == "i64" and not accesses(expr):
                a, b = (self.value(e, ttype, point, guards) for e in (left, right))
                lanes = max(a.lanes, b.lanes)
                return Value(ARITHMETIC[op](a.across(lanes), b.across(lanes)), lanes)
            case Binary("+", Binary("*", a, b), c) | Binary("+", c, Binary("*", a, b)) if TTYPES[ttype].kind == "float":
                x, y, z = (self.value(e, ttype, point, guards) for e in (a, b, c))
                lanes = max(x.lanes, y.lanes, z.lanes)
                factors = (value.across(lanes) for value in (x, y, z))
                return Value(multiply_add(element(ttype), lanes, *factors), lanes)
            case Binary(op, left, right):
                return self._apply(op, ttype, (left, right), point, guards)
            case Call(fn, args) if fn == WORD:
                return self._word(args, point, lanes, guards)
            case Call(fn, words) if fn in DOTS:
                nothing = Value(constant(0, element(DOTS[fn].accumulator)), 1)
                return self._dot(fn, words, nothing, point, guards)
            case Call(fn, args):
                return self._apply(fn, self._met(args, ttype), args, point, guards)
        raise AssertionError(expr)

    def _dot(self, fn: str, words: tuple[Expr, ...], total: Value, point: Point, guards: Guards) -> Value:
        """A sum with the products of the elements of two words."""
        x, w = (self.value(each, WORD_TTYPE, point, guards) for each in words)
        lanes = max(x.lanes, w.lanes, total.lanes)
        factors = (each.across(lanes) for each in (total, x, w))
        return Value(dot(fn, self._unit, lanes, *factors), lanes)

    def _rounded(self, operand: Expr, ttype: str, point: Point, guards: Guards) -> Value | None:
        """A rounded quotient of vectors that becomes an integer; None for anything else."""
        of = rounded_quotient_of(operand, ttype) if self.kind(operand) == "f32" else None
        if of is None or self.kind(of.dividend) != "f32":
            return None
        x = self.value(of.dividend, "f32", point, guards)
        return Value(rounded_quotient(of, x.lanes, x.expr), x.lanes) if x.lanes >= FEWEST_LANES else None

    def _met(self, args: tuple[Expr, ...], want: str) -> str:
        """The type in which arguments meet: that of the first that has one."""
        kinds = [self.kind(a) for a in args]
        strong = [k for k in kinds if not is_weak(k)]
        if strong:
            return strong[0]
        if "weak float" in kinds:
            return want if TTYPES[want].kind == "float" else "f32"
        return want if kinds[0] != "weak bool" else "bool"

    def _apply(self, fn: str, ttype: str, args: tuple[Expr, ...], point: Point, guards: Guards) -> Value:
        values = [self.value(a, ttype, point, guards) for a in args]
        lanes = max(v.lanes for v in values)
        return Value(PRINTERS[fn](element(ttype), lanes, *(v.across(lanes) for v in values)), lanes)

    def _where(self, condition: Expr, yes: Expr, no: Expr, ttype: str, point: Point, guards: Guards) -> Value:
        chosen = self.value(condition, "bool", point, guards)
        holds = tuple((c, True) for c in conjuncts(condition) if not accesses(c))
        fails = ((condition, False),) if not accesses(condition) else ()
        a = self.value(yes, ttype, point, guards + (holds if accesses(yes) else ()))
        b = self.value(no, ttype, point, guards + (fails if accesses(no) else ()))
        lanes = max(chosen.lanes, a.lanes, b.lanes)
        condition_value = chosen.expr if chosen.lanes == 1 else chosen.across(lanes)
        return Value(tirx.Select(condition_value, a.across(lanes), b.across(lanes)), lanes)

    def _word(self, args: tuple[Expr, ...], point: Point, lanes: int, guards: Guards) -> Value:
        """Elements that lie side by side are one load; others are shifted to their places."""
        found = self._neighbours(args, point, lanes) if not guards else None
        if found is not None:
            offset, memory = found
            elements = self.memories.get(memory, offset, 1, lanes * len(args))
            return Value(reinterpret(elements, element(WORD_TTYPE), lanes), lanes)
        kind = self.kind(args[0])
        bits, word = TTYPES[kind].bits, element(WORD_TTYPE)
        total: PrimExpr | None = None
        for number, arg in enumerate(args):
            value = self.value(arg, kind, point, guards)
            code = cast(_bits(value.expr, kind, f"u{bits}", value.lanes), word, value.lanes)
            placed = splat(code, lanes) if value.lanes < lanes else code
            placed = tirx.shift_left(placed, constant(number * bits, word, lanes)) if number else placed
            total = placed if total is None else tirx.bitwise_or(total, placed)
        return Value(total, lanes)

    def _neighbours(self, args: tuple[Expr, ...], point: Point, lanes: int) -> tuple[PrimExpr, str] | None:
        """(offset, memory) of elements that follow each other along the words and inside each; None for others."""
        first, count = args[0], len(args)
        if not isinstance(first, Access) or self.memories.is_register(first.tensor):
            return None
        place = self.place(first)
        moved = displacement(place.form, point.offsets)
        for number, arg in enumerate(args):
            if not isinstance(arg, Access) or arg.tensor != first.tensor:
                return None
            other = self.place(arg)
            there = displacement(other.form, point.offsets)
            alike = other.chain == place.chain and other.form.rest is None and there.rows == moved.rows
            if not alike or there.elements - moved.elements != number:
                return None
        if lanes > 1 and place.along != count:
            return None
        return self.offset(place, point)[0], first.tensor

    # -- loads --------------------------------------------------------------------------------------------

    def _load(self, access: Access, point: Point, lanes: int, guards: Guards) -> Value:
        where = self.place(access)
        form = where.form
        place = displacement(form, point.offsets)
        rest = tuple(point.offsets.get(d, 0) for d in sorted(form.varying))
        key = ("load", where.load, place, rest, lanes, self._guard_key(guards, point))
        known = self._find(key)
        if known is None:
            known = Value(bind(self._read(access, point, lanes, guards)), lanes)
            self._scopes[-1][key] = known
        return known  # type: ignore[no-any-return]

    def _guard_key(self, guards: Guards, point: Point) -> tuple[Any, ...]:
        """What guards say at a point: their conditions, and where those dimensions stand that they depend on."""
        dims = {d for condition, _ in guards for d in self.depends(condition)}
        lanes = point.lanes if self.vector in dims else 1
        return (guards, tuple(point.offsets.get(d, 0) for d in sorted(dims)), lanes)

    def _read(self, access: Access, point: Point, lanes: int, guards: Guards) -> PrimExpr:
        ttype = self._ttypes[access.tensor]
        whole, index = self.elements(access, point, lanes, guards)
        if self.memories.is_register(access.tensor):
            # Out of bounds there are registers too, whose values nobody takes.
            return widen(whole, ttype, lanes)
        scalars = [g for g in guards if self.vector not in self.depends(g[0])]
        across = [g for g in guards if self.vector in self.depends(g[0])]
        needed = self._all(scalars, point) if scalars else None
        if across and lanes > 1:
            whole = self._gathered(access, index, whole, across, point, lanes)
        elif across:
            some = self._any(across, point)
            needed = some if needed is None else tirx.And(needed, some)
        if needed is not None:
            whole = tirx.if_then_else(needed, whole, constant(0, stored(ttype), lanes))
        return widen(whole, ttype, lanes)

    def _all(self, guards: list[tuple[Expr, bool]], point: Point) -> PrimExpr:
        total: PrimExpr | None = None
        for condition, holds in guards:
            value = self.value(condition, "bool", Point(point.offsets)).expr
            value = value if holds else tirx.Not(value)
            total = value if total is None else tirx.And(total, value)
        return total

    def _any(self, guards: list[tuple[Expr, bool]], point: Point) -> PrimExpr:
        """Whether guards hold in some lane of the point: a value that all lanes share is then needed."""
        vector = self.vector or ""
        first = point.offsets.get(vector, 0)
        lanes = [Point({**point.offsets, vector: first + lane}) for lane in range(point.lanes)]
        return reduce(tirx.Or, (self._all(guards, lane) for lane in lanes))

    def _gathered(
        self,
        access: Access,
        index: PrimExpr,
        whole: PrimExpr,
        guards: list[tuple[Expr, bool]],
        point: Point,
        lanes: int,
    ) -> PrimExpr:
        """A vector load where lanes may be out of bounds: as it is when both ends are inside, else clamped."""
        elements = self.memories.table[access.tensor].elements
        low, high = constant(0, "int64", lanes), splat(self._last(elements), lanes)
        index = bind(index)
        index = tirx.Select(tirx.LT(index, low), low, tirx.Select(tirx.GT(index, high), high, index))
        safe = self.memories.gather(access.tensor, bind(index))
        vector = self.vector or ""
        along = vector if self.memories.symbols else None
        if not all(is_monotone(condition, holds, along) for condition, holds in guards):
            return safe
        first = point.offsets.get(vector, 0)
        ends = [Point({**point.offsets, vector: first + end}) for end in (0, lanes - 1)]
        inside = tirx.And(self._all(guards, ends[0]), self._all(guards, ends[1]))
        return tirx.if_then_else(inside, whole, safe)

    def _last(self, elements: Extent) -> PrimExpr:
        """The offset of the last of some elements."""
        if isinstance(elements, int):
            return int64(elements - 1)
        return self._indices.get(simplify(Binary("-", elements, Const(1))))


def _cast(value: PrimExpr, source: str, target: str, lanes: int) -> PrimExpr:
    """A cast of the language; f16 and bf16 round, but stay in f32 for what is computed next."""
    result = convert(value, element(source), element(target), lanes)
    if target in ("f16", "bf16"):
        return widen(bind(narrow(bind(result), target, lanes)), target, lanes)
    return result


def _bits(value: PrimExpr, source: str, target: str, lanes: int) -> PrimExpr:
    """The bits that a value has in memory, read as another type of that width."""
    whole = bind(narrow(value, source, lanes))
    return widen(bind(reinterpret(whole, stored(target), lanes)), target, lanes)


def _are_sizes(*exprs: Expr) -> bool:
    """Whether expressions of loop variables and dimensions are never negative."""
    return all(not accesses(expr) and not_negative(expr) for expr in exprs)
