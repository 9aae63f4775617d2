"""NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: one class of each sample, read at the target's index."""

from __future__ import annotations

from tilec.importer.formula import formula
from tilec.importer.names import REDUCED
from tilec.importer.operator import Op, count
from tilec.importer.ops.gather import looked_up, require_range
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, shape_text
from tilec.importer.value import Value
from tilec.ir.expr import Call, Const, Expr


@operator("NegativeLogLikelihoodLoss")
def _negative_log_likelihood(op: Op) -> Value:
    return _narrowed(op, _loss(op, _wide(op)))


def _wide(op: Op) -> Value:
    """The scores; half precision as single, in which losses are computed."""
    x = op.value(0)
    return op.map("f32(x)", x=x, part="wide") if x.ttype in ("f16", "bf16") else x


def _narrowed(op: Op, result: Value, output: int = 0) -> Value:
    """A result in the type of the scores."""
    ttype = op.value(0).ttype
    return result if result.ttype == ttype else op.map(f"{ttype}(x)", x=result, output=output)


@operator("SoftmaxCrossEntropyLoss")
def _softmax_cross_entropy(op: Op) -> tuple[Value, ...]:
    """The loss of the log-softmax, which is the second output."""
    x = _wide(op)
    largest = op.reduce("max", (1,), x=x, part="max")
    total = op.reduce("sum", (1,), "exp(x - m)", x=x, m=largest, part="sum")
    operands = {"x": x, "m": largest, "s": total}
    logarithms = op.elementwise("x - m - log(s)", operands, part="logarithms")
    loss = _narrowed(op, _loss(op, logarithms))
    return (loss, _narrowed(op, logarithms, output=1)) if op.wants(1) else (loss,)


def _loss(op: Op, x: Value) -> Value:
    """`-x[n, target, ...] * weight[target]`, 0 where the target is to be ignored; then unreduced, its sum or its mean.

    The mean divides by the weights that count. Targets count from the end where negative, as in `GatherElements`.
    """
    target, weight = op.value(1), op.optional(2)
    reduction = op.text("reduction", "mean")
    if reduction not in ("none", "sum", "mean"):
        raise op.invalid(f"reduction is {reduction!r}", "It must be none, sum or mean.")
    if x.rank < 2 or target.rank != x.rank - 1:
        raise ShapeError(f"scores {shape_text(x.shape)} and targets {shape_text(target.shape)}")
    for a, b in zip((x.shape[0], *x.shape[2:]), target.shape, strict=True):
        op.require_same(a, b, "samples of scores and targets")
    ignored = op.attributes.get("ignore_index")
    require_range(op, target, x.shape[1], besides=None if ignored is None else int(ignored))
    plain = reduction == "none"
    narrow = "" if x.ttype == op.value(0).ttype else "loss"
    axes = op.axes_of(target.shape) if plain else op.builder.iterators(REDUCED, target.shape)
    place = [a.var for a in axes]
    given = target.at(place)
    chosen = looked_up(op, given, target.ttype, x.shape[1])
    given = given if target.ttype == "i64" else Call("i64", (given,))
    score: Expr = x.access([place[0], chosen, *place[1:]])
    share: Expr | None = None if weight is None else weight.access([chosen])
    if weight is not None and share is not None and weight.ttype != x.ttype:
        share = Call(x.ttype, (share,))

    def counted(body: Expr) -> Expr:
        if ignored is None:
            return body
        return formula("where(t == k, 0.0, x)", t=given, k=int(ignored), x=body)

    body = counted(formula("-x", x=score) if share is None else formula("-x * w", x=score, w=share))
    if plain:
        return op.emit(axes, body, x.ttype, part=narrow)
    total = op.emit((), body, x.ttype, axes, part=narrow if reduction == "sum" else "total")
    if reduction == "sum":
        return total
    if share is None and ignored is None:
        return op.map("x / n", x=total, n=count(target.shape, x.ttype), part=narrow)
    if share is None:
        number = op.emit((), counted(Const(1.0)), x.ttype, axes, part="counted")
    else:
        number = op.emit((), counted(share), x.ttype, axes, part="counted")
    return op.map("x / n", x=total, n=number, part=narrow)
