"""Tile programs of f32 as C: every buffer an array, every statement a nest of scalar loops."""

from math import prod

from tilec.errors import UnsupportedError
from tilec.ir.algebra import simplify
from tilec.ir.expr import NEUTRAL, Access, Binary, Call, Const, Var
from tilec.ir.program import Allocate, Barrier, Buffer, ComputeTile, Fill, LoadTiles, Loop, StoreTiles

FUNCTIONS = {"exp": "expf", "sqrt": "sqrtf", "tanh": "tanhf", "erf": "erff", "abs": "fabsf", "i64": "(int64_t)"}
PAIRS = {"maximum": "({0} > {1} ? {0} : {1})", "minimum": "({0} < {1} ? {0} : {1})"}
COMBINE = {"none": "{1}", "sum": "{0} + {1}", "prod": "{0} * {1}", "max": "fmaxf({0}, {1})", "min": "fminf({0}, {1})"}


def kernel_text(program, symbol):
    return "\n".join(_Printer(program).function(symbol))


class _Printer:
    def __init__(self, program):
        self.program = program
        self.names = {}
        self.buffers = {p.name: p for p in program.parameters}
        self.shapes = {p.tensor: p.hi for p in program.parameters} | dict(_shapes(program.body))

    def name(self, text):
        """A C identifier for a name of the program."""
        return self.names.setdefault(text, f"v{len(self.names)}")

    def function(self, symbol):
        yield f"static void {symbol}(float **operands) {{"
        for i, parameter in enumerate(self.program.parameters):
            yield f"float *{self.name(parameter.name)} = operands[{i}];"
            yield from self.window(parameter)
        yield from self.body(self.program.body)
        yield "}"

    def body(self, statements):
        for statement in statements:
            yield from self.statement(statement)

    def statement(self, statement):
        match statement:
            case Allocate(buffer):
                self.buffers[buffer.name] = buffer
                size = prod(max(1, n) for n in _numbers(buffer))
                yield f"static _Thread_local float {self.name(buffer.name)}[{size}];"
                yield from self.window(buffer)
            case Loop(variable, extent, body):
                i = self.name(variable)
                yield f"for (int64_t {i} = 0; {i} < {self.expr(extent)}; {i}++) {{"
                yield from self.body(body)
                yield "}"
            case Fill(name, value):
                b = self.buffers[name]
                index, loops = self.loops(zip(b.lo, b.hi, strict=True))
                yield f"{loops}{self.element(b, index)} = {_literal(value)};"
            case LoadTiles(target, source, fill):
                t, s = self.buffers[target], self.buffers[source]
                index, loops = self.loops(zip(t.lo, t.hi, strict=True))
                yield f"{loops}if ({self.inside(index, s)}) {self.element(t, index)} = {self.element(s, index)};"
                if fill is not None:
                    yield f"{loops}if (!({self.inside(index, s)})) {self.element(t, index)} = {_literal(fill)};"
            case StoreTiles(target, source, lo, hi, combine):
                t, s = self.buffers[target], self.buffers[source]
                index, loops = self.loops(zip(lo or s.lo, hi or s.hi, strict=True))
                place, value = self.element(t, index), self.element(s, index)
                yield f"{loops}if ({self.inside(index, t)}) {place} = {COMBINE[combine].format(place, value)};"
            case ComputeTile():
                yield from self.compute(statement)
            case Barrier():
                pass

    def compute(self, tile):
        if tile.unit:
            raise UnsupportedError(f"no code for the unit {tile.unit!r}")
        box = {i: (self.name(i), self.expr(lo), self.expr(hi)) for i, lo, hi in tile.box}
        reads = {tensor: self.buffers[name] for tensor, name in tile.operands}
        target = self.element(self.buffers[tile.target], [box[i][0] for i in tile.expr.spatial])
        value = self.expr(tile.expr.value, reads)
        yield "".join(_loop(*box[i]) for i in tile.expr.spatial) + "{"
        if tile.expr.reducer is None:
            yield f"{target} = {value};"
        else:
            yield f"float total = {target if tile.accumulate else _literal(NEUTRAL[tile.expr.reducer])};"
            yield "".join(_loop(*box[i]) for i in tile.expr.reduce)
            yield f"total = {COMBINE[tile.expr.reducer].format('total', f'({value})')};"
            yield f"{target} = total;"
        yield "}"

    def window(self, buffer: Buffer):
        if buffer.ttype != "f32":
            raise UnsupportedError(f"{buffer.tensor} has type {buffer.ttype}, the toy knows f32")
        for d, lo in enumerate(buffer.lo):
            yield f"const int64_t {self.name(buffer.name)}_{d} = {self.expr(lo)};"

    def loops(self, box):
        """Indices of fresh names, and the head of loops over a box."""
        ends = [(f"d{d}", self.expr(lo), self.expr(hi)) for d, (lo, hi) in enumerate(box)]
        return [name for name, _, _ in ends], "".join(_loop(*end) for end in ends)

    def inside(self, index, buffer):
        """Whether an element lies in a window and in the tensor."""
        tests = ["1"]
        for i, lo, hi, extent in zip(index, buffer.lo, buffer.hi, self.shapes[buffer.tensor], strict=True):
            tests += [f"{i} >= {self.expr(lo)}", f"{i} < {self.expr(hi)}", f"{i} >= 0", f"{i} < {self.expr(extent)}"]
        return " && ".join(tests)

    def element(self, buffer, index):
        shape, offset, stride = _numbers(buffer), "0", 1
        for d in reversed(buffer.layout or range(len(shape))):
            offset = f"{offset} + ({index[d]} - {self.name(buffer.name)}_{d}) * {stride}"
            stride *= shape[d]
        return f"{self.name(buffer.name)}[{offset}]"

    def expr(self, e, reads=None):
        match e:
            case Const(value):
                return _literal(value)
            case Var(name):
                return self.name(name)
            case Access(tensor, index):
                return self.element(reads[tensor], [self.expr(i, reads) for i in index])
            case Call("where", args):
                return "({} ? {} : {})".format(*(self.expr(a, reads) for a in args))
            case Call(fn, args) if fn in PAIRS:
                return PAIRS[fn].format(*(self.expr(a, reads) for a in args))
            case Call(fn, (arg,)) if fn in FUNCTIONS:
                return f"{FUNCTIONS[fn]}({self.expr(arg, reads)})"
            case Call("neg", (arg,)):
                return f"(-{self.expr(arg, reads)})"
            case Binary("//" | "%" as op, left, right):
                a, b = self.expr(left, reads), self.expr(right, reads)
                floor = f"(({a}) / ({b}) - (({a}) % ({b}) < 0))"  # of positive divisors
                return floor if op == "//" else f"(({a}) - {floor} * ({b}))"
            case Binary(op, left, right):
                sign = {"and": "&&", "or": "||"}.get(op, op)
                return f"({self.expr(left, reads)} {sign} {self.expr(right, reads)})"
        raise UnsupportedError(f"the toy has no function for {e}")


def _loop(name, lo, hi):
    return f"for (int64_t {name} = {lo}; {name} < {hi}; {name}++) "


def _numbers(buffer):
    return [simplify(extent).value for extent in buffer.shape]


def _shapes(statements):
    for statement in statements:
        if isinstance(statement, ComputeTile):
            yield statement.expr.tensor, statement.expr.shape
        elif isinstance(statement, Loop):
            yield from _shapes(statement.body)


def _literal(value):
    if isinstance(value, float):
        return f"{value!r}f" if abs(value) < float("inf") else f"({'-' if value < 0 else ''}INFINITY)"
    return str(int(value))
