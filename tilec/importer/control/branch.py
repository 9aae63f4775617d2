"""If: the branch of a known condition, or both branches and an elementwise selection."""

from __future__ import annotations

from tilec.errors import TilecError, UnsupportedError
from tilec.importer.control.body import Body
from tilec.importer.control.region import Region
from tilec.importer.named_values import Items, Maybe, NamedValue
from tilec.importer.ops.movement import reshaped
from tilec.importer.shapes import ShapeError, same, shape_text
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Const, Expr, Scalar, constant_value, substitute, variables
from tilec.ir.graph import Node
from tilec.ir.text import text_of

MAX_BRANCH_NODES = 64
"""Maximal number of nodes computed for a branch that may not be taken."""

MAX_BRANCH_STEPS = 1 << 20
"""Maximal number of evaluations (1 ms) computed for a branch that may not be taken; symbols count as
`DEFAULT_SYMBOL_SIZE`."""

DEFAULT_SYMBOL_SIZE = 256


def branch(region: Region) -> list[NamedValue]:
    """The outputs of `If`."""
    condition = region.tensor(0)
    known = _decided(region, condition)
    bodies = {
        yes: Body(region, name, f"{region.path}/{name.removesuffix('_branch')}", certain=known is not None)
        for yes, name in _BRANCHES
    }
    outputs = len(region.node.output)
    for body in bodies.values():
        body.expect(0, outputs, f"the node has {outputs} outputs")
    if known is not None:
        body = bodies[bool(known)]
        names = [info.name for info in body.graph.output]
        return body.call((), results=dict(zip(names, region.node.output, strict=False)))
    computed = []
    for body in bodies.values():
        mark = region.translator.builder.mark()
        try:
            computed.append(body.call(()))
        except TilecError as error:
            if not isinstance(error, UnsupportedError) and not isinstance(error.__cause__, ShapeError):
                raise
            # The branch may be one that is never taken for these shapes, so that its error is no error of the model.
            raise _unknown(region, f"{body.attribute} cannot be compiled: {error.message}") from error
        _require_cheap(region, region.translator.builder.since(mark))
    pairs = zip(*computed, strict=True)
    return [_either(region, condition, a, b, number) for number, (a, b) in enumerate(pairs)]


def _decided(region: Region, condition: Value) -> Scalar | None:
    """The value of a condition; None where it depends on inputs or symbolic sizes."""
    if condition.literal is not None:
        return condition.literal.value
    elements = region.translator.builder.known(condition)
    return elements[0].value if elements and isinstance(elements[0], Const) else None


_BRANCHES = ((True, "then_branch"), (False, "else_branch"))


def _require_cheap(region: Region, nodes: tuple[Node, ...]) -> None:
    """Raise UnsupportedError when a branch costs more than leaving the compiled model."""
    steps = sum(_steps(node) for node in nodes)
    if len(nodes) > MAX_BRANCH_NODES or steps > MAX_BRANCH_STEPS:
        raise _unknown(region, f"a branch has {len(nodes)} nodes and {steps} operations, too many to compute both")


def _steps(node: Node) -> int:
    total = 1
    for extent in node.expr.extents:
        symbols: dict[str, Expr] = {name: Const(DEFAULT_SYMBOL_SIZE) for name in variables(extent)}
        total *= constant_value(simplify(substitute(extent, symbols))) or 0
    return total


def _unknown(region: Region, why: str) -> TilecError:
    condition = region.tensor(0)
    if condition.form is not None:
        form = text_of(condition.at([Const(0)] * condition.rank))
        text = f"the condition depends on symbolic sizes, {form}, and {why}"
        return region.unsupported(text, "Bind the sizes with --shape SYMBOL=SIZE.")
    builder = region.translator.builder
    builder.ask(condition)
    hint = "Make the condition a constant of the model"
    if not builder.computes(condition.name):
        name = region.node.input[0]
        hint = f"Give {name!r} an initializer with its value, and that branch alone is compiled"
        if region.tensor(0).ttype == "bool":
            hint += "; tilec.InferenceSession compiles a branch for each value that it is called with"
    return region.unsupported(f"the condition is computed from the model's inputs, and {why}", f"{hint}.")


def _either(region: Region, condition: Value, yes: NamedValue, no: NamedValue, output: int) -> NamedValue:
    """`yes` where the condition holds, else `no`; sequences and optionals element by element."""
    what = f"output {output}"
    match yes, no:
        case Value(), Value():
            if yes.ttype != no.ttype:
                message = f"{what} is {yes.ttype} from then_branch, {no.ttype} from else_branch"
                raise region.invalid(message, "Both branches must return the same types.")
            if yes.rank != no.rank or not all(map(same, yes.shape, no.shape)):
                shapes = f"{shape_text(yes.shape)} or {shape_text(no.shape)}"
                raise _unknown(region, f"{what} has shape {shapes}")
            if yes is no:
                return yes
            scalar = reshaped(region.op, condition, (), part="condition")
            return region.op.map("where(c, a, b)", c=scalar, a=yes, b=no, output=output)
        case Items(), Items():
            if len(yes.held) != len(no.held):
                raise _unknown(region, f"{what} has {len(yes.held)} or {len(no.held)} elements")
            chosen = [_either(region, condition, a, b, output) for a, b in zip(yes.held, no.held, strict=True)]
            return Items(tuple(v for v in chosen if isinstance(v, Value)), yes.ttype or no.ttype)
        case Maybe(None), Maybe(None):
            return yes
        case Maybe(Value() | Items()), Maybe(Value() | Items()):
            element = _either(region, condition, yes.held, no.held, output)
            assert isinstance(element, Value | Items)
            return Maybe(element)
        case _:
            raise _unknown(region, f"{what} is a tensor, sequence or optional depending on it")
